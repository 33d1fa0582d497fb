//! The inspector's program: the layer-2 guard. It depends on nothing, has no code of anything and
//! makes no system call that is not listed here; outside its sandbox it opens nothing.

/// Each invariant of the sandbox relaxed alone.
mod relaxed;

use crate::common::acceptance::proof;
use crate::common::by_hand::ByHand;
use crate::common::inside::{
    cargo, compile, copy_sources, depends_only_on, holds_only, system_calls, unstripped,
};
use crate::common::{attest, evidence_in, need, root, run, whole_engine};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tki_attest::image::built_in::INSPECTOR;
use tki_inside::narrow;

/// Crates that may have code in the binary: JSON, TOML, SHA-256, Ed25519 and OpenSSH's form of
/// its keys, and what these stand on. No network, no driver, no loader, no runtime.
const CRATES: &[&str] = &[
    "__rustc",
    "alloc",
    "base64",
    "base64ct",
    "compiler_builtins",
    "core",
    "curve25519_dalek",
    "digest",
    "ed25519_dalek",
    "hybrid_array",
    "itoa",
    "memchr",
    "once_cell",
    "serde",
    "serde_core",
    "serde_json",
    "serde_spanned",
    "sha2",
    "ssh_encoding",
    "ssh_key",
    "subtle",
    "tki_evidence",
    "tki_inside",
    "tki_inspector",
    "tki_text",
    "tki_verify",
    "toml",
    "toml_datetime",
    "toml_parser",
    "typenum",
    "winnow",
    "zmij",
];

/// The inspector's own file, in a directory of its own. Another process writes it: one that is
/// started by another test meanwhile would hold it open for writing.
fn written() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (
        folder.path().join("bytes"),
        folder.path().join("tki-inspector"),
    );
    fs::write(&source, INSPECTOR).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    need("coreutils", Command::new("cp").arg(source).arg(&path)).succeeded();
    (folder, path)
}

/// A new dependency of the inspector has to be written down here.
#[test]
fn m41_it_depends_on_nothing_that_could_reach_out() {
    let linked = [
        "base64",
        "base64ct",
        "block-buffer",
        "cfg-if",
        "cipher",
        "cpufeatures",
        "crypto-common",
        "curve25519-dalek",
        "digest",
        "ed25519",
        "ed25519-dalek",
        "generic-array",
        "hybrid-array",
        "inout",
        "itoa",
        "memchr",
        "once_cell",
        "pem-rfc7468",
        "serde",
        "serde_core",
        "serde_json",
        "serde_spanned",
        "sha2",
        "signature",
        "ssh-cipher",
        "ssh-encoding",
        "ssh-key",
        "subtle",
        "thiserror",
        "toml",
        "toml_datetime",
        "toml_parser",
        "typenum",
        "winnow",
        "zeroize",
        "zmij",
    ];
    let own = [
        "tki-evidence",
        "tki-inside",
        "tki-inspector",
        "tki-text",
        "tki-verify",
    ];
    // Run by the compiler, and not part of the binary.
    let compiler = [
        "curve25519-dalek-derive",
        "proc-macro2",
        "quote",
        "serde_derive",
        "syn",
        "thiserror-impl",
        "unicode-ident",
    ];
    depends_only_on("tki-inspector", &[&linked[..], &own, &compiler].concat());
    let linked = linked.len();
    proof(
        41,
        format!(
            "{linked} packages and five of ours: none for sockets, databases, credentials or plugins"
        ),
    );
}

#[test]
fn m44_it_names_no_machine() {
    let (_folder, path) = written();
    let said = need("binutils", Command::new("readelf").args(["-lW"]).arg(&path));
    said.succeeded();
    assert!(said.stdout.contains("LOAD"), "{said:?}");
    for loader in ["INTERP", "DYNAMIC", "RWE"] {
        assert!(!said.stdout.contains(loader), "{said:?}");
    }
    assert!(INSPECTOR.len() < 2_000_000, "{} bytes", INSPECTOR.len());
    let home = std::env::var("HOME").unwrap_or_default();
    let below_home = |name: &str| format!("{home}{name}");
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or_else(|_| below_home("/.cargo"));
    let target = std::env::current_exe().unwrap();
    let target = target.parent().unwrap().to_str().unwrap().to_owned();
    let host = rustix::system::uname();
    // A short name may stand in any program.
    let host = Some(host.nodename().to_str().unwrap()).filter(|name| name.len() > 5);
    let host = host.unwrap_or("build-host").to_owned();
    let rustup = below_home("/.rustup");
    for place in [
        env!("CARGO_MANIFEST_DIR"),
        &cargo_home,
        &rustup,
        &target,
        &host,
    ] {
        let found = INSPECTOR
            .windows(place.len())
            .any(|window| window == place.as_bytes());
        assert!(!found, "{place}");
    }
    proof(
        44,
        format!(
            "one static file of {} bytes with no path and no name of this machine",
            INSPECTOR.len()
        ),
    );
}

/// What is called to find out that it is denied, once each, and what puts the lock on.
const ONCE: [(u32, &str); 8] = [
    (9, "mmap: its memory, before anything else"),
    (39, "getpid: is it process 1?"),
    (41, "socket, with impossible arguments"),
    (42, "connect, with impossible arguments"),
    (59, "execve, with impossible arguments"),
    (101, "ptrace, with impossible arguments"),
    (157, "prctl: no new privileges"),
    (317, "seccomp: the lock"),
];

/// The numbers that reach the one instruction are those that the lock allows, and those that
/// are called once before it.
fn judged(calls: &BTreeMap<u32, usize>) -> Result<(), String> {
    for (number, places) in calls {
        let once = ONCE.iter().any(|(own, _)| own == number);
        let allowed = narrow::ALLOWED.iter().any(|(own, _)| own == number);
        match (allowed, once, places) {
            (true, _, _) | (_, true, 1) => {}
            _ => return Err(format!("system call {number} from {places} places")),
        }
    }
    for number in ONCE.iter().chain(narrow::ALLOWED).map(|(number, _)| number) {
        if !calls.contains_key(number) {
            return Err(format!("system call {number} is listed and never made"));
        }
    }
    Ok(())
}

/// The inspector with its symbols, compiled once for both tests that look into it.
fn with_symbols() -> &'static Path {
    static PLACE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let binary = unstripped("tki-inspector", root(), folder.path());
        (folder, binary)
    });
    &made.1
}

#[test]
fn m42_it_holds_no_code_that_is_not_listed() {
    holds_only(with_symbols(), CRATES);
    assert!(CRATES.is_sorted());
    proof(
        42,
        format!(
            "every symbol is of one of {} crates; nothing is undefined",
            CRATES.len()
        ),
    );
}

/// And a call that should not be there is noticed.
#[test]
fn m43_only_listed_system_calls_reach_the_kernel() {
    let calls = system_calls(with_symbols()).unwrap();
    judged(&calls).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("sources");
    copy_sources(root(), &place);
    let path = place.join("inspector/src/system.rs");
    let source = fs::read_to_string(&path).unwrap();
    let at = "let path = c_path(path).map_err(refused)?;";
    let call = "let _ = tki_inside::call!(41, 2, 2, 0);";
    let changed = source.replacen(at, &format!("{at} {call}"), 1);
    assert_ne!(source, changed);
    fs::write(&path, changed).unwrap();
    let binary = unstripped("tki-inspector", &place, &folder.path().join("target"));
    let why = judged(&system_calls(&binary).unwrap()).unwrap_err();
    assert_eq!(why, "system call 41 from 2 places");
    proof(
        43,
        format!(
            "{} numbers reach the one instruction, all listed; with a socket call added: {why}",
            calls.len()
        ),
    );
}

#[test]
fn m45_it_is_the_same_file_wherever_it_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a-rather-long-name-for-a/checkout");
    copy_sources(root(), &place);
    let target = folder.path().join("t");
    let (mut command, binary) = compile::compile("tki-inspector", &cargo(), &place, &target);
    run(command.env("CARGO_NET_OFFLINE", "true")).succeeded();
    assert!(fs::read(binary).unwrap() == INSPECTOR, "the bytes differ");
    let digest = tki_evidence::stamp::sha256_hex(INSPECTOR);
    proof(45, format!("SHA-256 {digest}, here and below another path"));
}

#[test]
fn m21_without_its_sandbox_it_reads_nothing() {
    let (folder, path) = written();
    let log = folder.path().join("strace.log");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(&path)
        .arg("inspect");
    let said = need("strace", strace.stdin(Stdio::null()));
    assert_eq!((said.status, said.stdout.as_str()), (3, ""), "{said:?}");
    for invariant in [
        "sandbox-image",
        "pid-1",
        "in-mount",
        "out-mount",
        "two-binds",
        "non-root",
    ] {
        let line = format!("missing {invariant} ");
        assert!(said.stderr.contains(&line), "{invariant}: {said:?}");
    }
    assert!(
        said.stderr.contains("BLOCKED") && said.stderr.contains("Next: "),
        "{said:?}"
    );
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("\"/proc/self/mountinfo\""), "{log}");
    for line in log.lines().filter(|line| line.contains("open")) {
        let fine = line.contains("\"/proc/") || line.contains("\"/tki-sandbox\"");
        assert!(fine && line.contains("O_RDONLY"), "{line}");
    }
    // What is tried there has arguments that no kernel takes.
    for tried in ["socket(", "connect("] {
        let line = log.lines().find(|line| line.contains(tried)).unwrap();
        assert!(line.contains("-1"), "{line}");
    }
    assert!(!log.contains("/in") && !log.contains("/out"), "{log}");
    // Alone it is done before anybody would notice; the fastest of some starts counts.
    let start = || {
        let begun = Instant::now();
        assert_eq!(run(Command::new(&path).arg("inspect")).status, 3);
        begun.elapsed()
    };
    let fastest = (0..20).map(|_| start()).min().unwrap();
    assert!(fastest < Duration::from_millis(5), "{fastest:?}");
    proof(
        21,
        format!(
            "exit 3 after {} µs; only files of /proc and the marker were opened",
            fastest.as_micros()
        ),
    );
}

#[test]
fn it_never_ends_as_if_all_were_well() {
    let (_folder, path) = written();
    for arguments in [
        &[][..],
        &["inspect"],
        &["inspect", "/tmp"],
        &["version"],
        &["--help"],
    ] {
        let said = run(Command::new(&path).args(arguments));
        assert!([2, 3].contains(&said.status), "{arguments:?}: {said:?}");
        assert_eq!(said.stdout, "", "{said:?}");
    }
}

/// Newer kernels let `uretprobe` and `uprobe` past every filter. From anywhere but their own
/// trampolines the one ends its process by SIGILL, and the other is answered ENXIO.
const PAST_FILTERS: [(u32, &str); 2] = [(335, "signal 4"), (336, "exit 6")];

/// The prober loads the inspector's own filter in a child for each call, and makes it there.
#[test]
fn m38_its_lock_kills_what_it_does_not_need() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev", "-q"]);
    let by_hand = ByHand::new(&evidence_in(out.path()));
    let said = need("docker.io", by_hand.errand("narrow").stdin(Stdio::null()));
    said.succeeded();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 481, "{said:?}");
    const SIGSYS: u32 = 31;
    const EPERM: u32 = 1;
    const EXIT_GROUP: u32 = 231;
    for (number, line) in (0..).zip(lines) {
        let is_listed = |list: &[(u32, &str)]| list.iter().any(|(own, _)| *own == number);
        let (_, ended) = line.split_once(' ').unwrap();
        if is_listed(narrow::DENIED) {
            assert_eq!(ended, format!("exit {EPERM}"), "{line}");
        } else if number == EXIT_GROUP {
            assert_eq!(ended, "exit 255", "{line}");
        } else if is_listed(narrow::ALLOWED) {
            // The kernel looked at the arguments.
            let status: u32 = ended.strip_prefix("exit ").unwrap().parse().unwrap();
            assert!((2..=133).contains(&status), "{line}");
        } else if PAST_FILTERS.contains(&(number, ended)) {
            // The kernel asked no filter.
        } else {
            assert_eq!(ended, format!("signal {SIGSYS}"), "{line}");
        }
    }
    proof(
        38,
        "of 481 numbers the listed ones get through, two end with EPERM, and the rest with SIGSYS",
    );
}
