use super::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// An item of these bytes, as `packet.json` has it.
pub fn item(id: &str, path: &str, bytes: &[u8]) -> Value {
    json!({
        "id": id,
        "path": path,
        "sha256": sha256_hex(bytes),
        "size": bytes.len(),
        "media_type": "text/plain",
        "document_type": "report",
        "extent": "complete",
        "source": {
            "authority": "LOCAL",
            "locator": path,
            "captured_at": "2026-06-10T00:00:00Z",
            "captured_by": "a test",
        },
    })
}

/// A packet with two items and one claim.
pub fn small() -> Value {
    json!({
        "schema": "tki-attest/packet/v1",
        "id": "small",
        "as_of": "2026-06-11T00:00:00Z",
        "items": [item("a", "a.txt", b"one\n"), item("b", "deep/er/b.txt", b"two\n")],
        "claims": [{
            "id": "C-1",
            "text": "It says one.",
            "kind": "says",
            "scope": "packet",
            "evidence": [{"item": "a", "at": {"lines": {"first": 1, "last": 1, "quote": "one"}}}],
        }],
    })
}

/// Writes it, with its items.
pub fn written(folder: &Path, packet: &Value) {
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    fs::write(folder.join("a.txt"), "one\n").unwrap();
    fs::write(folder.join("deep/er/b.txt"), "two\n").unwrap();
    fs::write(folder.join(FILE), packet.to_string()).unwrap();
}

fn refused(folder: &Path) -> String {
    Packet::open(folder).unwrap_err().to_string()
}

#[test]
fn a_packet_is_held_with_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &small());
    let packet = Packet::open(folder.path()).unwrap();
    assert_eq!(packet.says.id, "small");
    assert_eq!(packet.sha256, sha256_hex(small().to_string().as_bytes()));
    let mut opened = open(&packet.folder(), &packet.says.items[1]).unwrap();
    let mut text = String::new();
    io::Read::read_to_string(&mut opened, &mut text).unwrap();
    assert_eq!(text, "two\n");
}

#[test]
fn each_fault_names_its_place() {
    type Fault = fn(&Path);
    let faults: [(Fault, &str); 9] = [
        (|p| fs::remove_file(p.join(FILE)).unwrap(), "no packet.json"),
        (|p| fs::write(p.join(FILE), "{").unwrap(), "line 1, column"),
        (
            |p| fs::write(p.join("a.txt"), "more\n").unwrap(),
            "items[0]: ",
        ),
        (
            |p| fs::write(p.join("a.txt"), "more\n").unwrap(),
            "has 5 bytes, and the packet says 4",
        ),
        (
            |p| fs::remove_file(p.join("deep/er/b.txt")).unwrap(),
            "items[1]: ",
        ),
        (
            |p| {
                fs::remove_file(p.join("a.txt")).unwrap();
                symlink("/etc/passwd", p.join("a.txt")).unwrap();
            },
            "symbolic link",
        ),
        (
            |p| {
                fs::rename(p.join("deep"), p.join("other")).unwrap();
                symlink("other", p.join("deep")).unwrap();
            },
            "`deep` is not a directory",
        ),
        (
            |p| {
                fs::remove_file(p.join("a.txt")).unwrap();
                let fifo = p.join("a.txt");
                let mode = rustix::fs::Mode::from(0o600);
                rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
            },
            "not a regular file",
        ),
        (
            |p| {
                fs::remove_dir_all(p.join("deep")).unwrap();
                fs::write(p.join("deep"), "").unwrap();
            },
            "`deep` is not a directory",
        ),
    ];
    for (fault, wanted) in faults {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &small());
        fault(folder.path());
        let said = refused(folder.path());
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(refused(Path::new("/nowhere/at/all")).contains("/nowhere/at/all"));
}

#[test]
fn a_packet_that_the_inspector_could_not_hold_is_refused_before() {
    let folder = tempfile::tempdir().unwrap();
    let large = vec![b'x'; 40 << 20];
    let mut packet = small();
    packet["items"][0] = item("a", "a.txt", &large);
    written(folder.path(), &packet);
    fs::write(folder.path().join("a.txt"), &large).unwrap();
    let needed = |folder: &Path| Packet::open(folder).unwrap().need();
    // A claim rests on it, and it is verified as a bundle.
    assert!(needed(folder.path()).unwrap().memory_bytes > 6 * (40 << 20));
    packet["items"][0]["document_type"] = json!("evidence-bundle");
    written(folder.path(), &packet);
    fs::write(folder.path().join("a.txt"), &large).unwrap();
    let said = needed(folder.path()).unwrap_err().to_string();
    assert!(said.contains("536870912 at the most"), "{said}");
}

/// Nobody has to make the files to be told so.
#[test]
fn a_packet_that_no_memory_would_hold_is_refused_by_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut packet = small();
    packet["items"][0]["size"] = json!(4u64 << 30);
    written(folder.path(), &packet);
    assert!(refused(folder.path()).contains("1073741824 bytes"));
}
