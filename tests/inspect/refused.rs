//! Each refusal has its code and its exit status, and leaves no report and nothing else.

use super::{DEV, ENGINES, Packet, command, evidence_of_docker, inspect, inspections};
use crate::common::bundle::write_restamped;
use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{Said, evidence_in, need, read_json, run, tool, whole_engine};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Nothing was attested, and the packet was not even opened.
#[test]
fn without_a_sandbox_nothing_of_the_packet_is_opened() {
    let packet = Packet::small();
    let folder = tempfile::tempdir().unwrap();
    let (out, trace) = (folder.path().join("out"), folder.path().join("trace"));
    let evidence = folder.path().join("none.json");
    let nowhere = ["--venue", "vps", "--host", "unix:///run/nothing.sock"];
    let given = ["--venue", "vps", "--engine", "bwrap", "--evidence"];
    let given = [&given[..], &[evidence.to_str().unwrap()]].concat();
    for (arguments, status, code) in [
        (&nowhere[..], 3, "engine.unreachable"),
        (&given, 2, "evidence.unreadable"),
        (&["--venue", "dev", "--engine", "bwrap"], 2, "inspect.dev"),
        (&["--venue", "vps", "--dev"], 2, "inspect.dev"),
    ] {
        let inner = command(packet.path(), &out, arguments);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-e", "trace=file", "-o"]).arg(&trace);
        strace.arg(inner.get_program()).args(inner.get_args());
        let said = need("strace", &mut strace);
        said.failed(status, code);
        let text = fs::read_to_string(&trace).unwrap();
        let own = packet.path().to_str().unwrap();
        let mut opened = text.lines().filter(|line| line.contains(own));
        // Its own arguments are named when it is executed.
        assert!(opened.all(|line| line.contains("execve(")), "{text}");
        nothing_written(&out);
    }
}

/// A packet that is none is refused before anything is attested.
#[test]
fn a_packet_that_is_none_is_refused_with_its_place() {
    type Fault = fn(&Path);
    let faults: [(Fault, &str, &str); 8] = [
        (
            |p| fs::remove_file(p.join("packet.json")).unwrap(),
            "packet.unreadable",
            "there is no packet.json",
        ),
        (
            |p| fs::write(p.join("packet.json"), "{\n  \"schema\": 1,").unwrap(),
            "packet.malformed",
            "line 2, column",
        ),
        (
            |p| fs::write(p.join("packet.json"), vec![b' '; (4 << 20) + 1]).unwrap(),
            "packet.unreadable",
            "more than 4194304 bytes",
        ),
        (
            |p| fs::remove_file(p.join("a.txt")).unwrap(),
            "packet.item",
            "items[0]: ",
        ),
        (
            |p| fs::write(p.join("deep/er/b.txt"), "more than it was\n").unwrap(),
            "packet.item",
            "items[1]: ",
        ),
        (
            |p| {
                fs::rename(p.join("a.txt"), p.join("b.txt")).unwrap();
                symlink("b.txt", p.join("a.txt")).unwrap();
            },
            "packet.item",
            "symbolic link",
        ),
        (
            |p| {
                fs::rename(p.join("deep"), p.join("other")).unwrap();
                symlink("other", p.join("deep")).unwrap();
            },
            "packet.item",
            "`deep` is not a directory",
        ),
        (
            |p| {
                fs::remove_file(p.join("a.txt")).unwrap();
                let mut mkfifo = Command::new("mkfifo");
                assert!(mkfifo.arg(p.join("a.txt")).status().unwrap().success());
            },
            "packet.item",
            "not a regular file",
        ),
    ];
    let arguments = [&DEV[..], ENGINES[3].1].concat();
    for (fault, code, wanted) in faults {
        let packet = Packet::small();
        fault(packet.path());
        let out = tempfile::tempdir().unwrap();
        let said = inspect(packet.path(), out.path(), &arguments);
        said.failed(2, code);
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        nothing_written(out.path());
    }
    type Change = fn(&mut Value);
    let changes: [(Change, &str, &str); 4] = [
        (
            |p| p["items"][1]["path"] = json!("../a.txt"),
            "packet.field",
            "items[1].path",
        ),
        (
            |p| p["items"][1]["id"] = json!("i0"),
            "packet.field",
            "items[1].id",
        ),
        (
            |p| p["more"] = json!(1),
            "packet.malformed",
            "unknown field",
        ),
        (
            |p| p["items"][0]["size"] = json!(5u64 << 30),
            "packet.too-large",
            "more than 1073741824 bytes",
        ),
    ];
    for (change, code, wanted) in changes {
        let packet = Packet::small().with(change);
        let out = tempfile::tempdir().unwrap();
        let said = inspect(packet.path(), out.path(), &arguments);
        said.failed(2, code);
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        nothing_written(out.path());
    }
}

/// Evidence that Docker's own inspections would be let in with.
struct Given {
    folder: tempfile::TempDir,
    evidence: PathBuf,
}

impl Given {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let evidence = evidence_of_docker(folder.path());
        Self { folder, evidence }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn inspect(&self, arguments: &[&str]) -> Said {
        let evidence = ["--evidence", self.evidence.to_str().unwrap()];
        let arguments = [&evidence[..], arguments].concat();
        inspect(Packet::small().path(), &self.out(), &arguments)
    }

    /// The evidence, changed and stamped anew.
    fn changed(&self, change: impl FnOnce(&mut Value)) {
        let mut value = read_json(&self.evidence);
        change(&mut value);
        write_restamped(&self.evidence, value);
    }
}

#[test]
fn evidence_that_is_not_of_this_sandbox_here_and_now_is_not_enough() {
    let _engine = whole_engine();
    let before = Before::look();
    let given = Given::new();
    let on_docker = [&DEV[..], ENGINES[0].1].concat();
    let with = |more: &[&'static str]| [&on_docker[..], more].concat();
    for (arguments, status, code, wanted) in [
        // Not accepted, and in earnest.
        (
            vec!["--venue", "vps", "--engine", "docker"],
            3,
            "inspect.not-accepted",
            "EV-",
        ),
        (
            with(&["--max-age", "0s"]),
            3,
            "inspect.not-accepted",
            "EV-AGE",
        ),
        (
            [&DEV[..], ENGINES[2].1].concat(),
            3,
            "inspect.other-host",
            "the engine: docker then, embedded now",
        ),
        (
            with(&["--seccomp", "targeted-deny"]),
            3,
            "inspect.other-settings",
            "the seccomp profile deny-by-default",
        ),
        (
            with(&["--gate", "require"]),
            3,
            "inspect.other-settings",
            "an exec gate is required",
        ),
    ] {
        std::thread::sleep(Duration::from_millis(1100));
        let said = given.inspect(&arguments);
        said.failed(status, code);
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        nothing_written(&given.out());
    }
    before.nothing_new();
}

#[test]
fn false_evidence_is_disproved_and_evidence_of_elsewhere_is_not_of_here() {
    let _engine = whole_engine();
    let on_docker = [&DEV[..], ENGINES[0].1].concat();
    type Change = fn(&mut Value);
    let changes: [(Change, i32, &str); 3] = [
        // A verdict that does not follow, and a boot that the prober did not see.
        (
            |e| e["probes"][0]["verdict"] = json!("FAIL"),
            1,
            "inspect.evidence-false",
        ),
        (
            |e| e["venue_facts"]["boot_id"] = json!("11111111-1111-1111-1111-111111111111"),
            1,
            "inspect.evidence-false",
        ),
        (
            |e| e["venue_facts"]["machine_id_hmac"] = json!("00".repeat(32)),
            3,
            "inspect.other-host",
        ),
    ];
    for (change, status, code) in changes {
        let given = Given::new();
        given.changed(change);
        given.inspect(&on_docker).failed(status, code);
        nothing_written(&given.out());
    }
    // Something that is no evidence at all.
    let given = Given::new();
    fs::write(&given.evidence, "{}").unwrap();
    given.inspect(&on_docker).failed(2, "evidence.malformed");
}

/// The engine says that it set something else than what was attested: the container ends, and
/// nothing was read.
#[test]
fn a_container_of_other_settings_is_not_let_go() {
    let _engine = whole_engine();
    let before = Before::look();
    let given = Given::new();
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 3] = [
        (
            |c| c["HostConfig"]["Memory"] = json!(1 << 30),
            "memory_bytes",
        ),
        (
            |c| c["HostConfig"]["Privileged"] = json!(true),
            "privileged",
        ),
        (
            |c| c["Image"] = json!(format!("sha256:{}", "0".repeat(64))),
            "its image was",
        ),
    ];
    for (change, wanted) in changes {
        let proxy = Proxy::with(move |request| match request.is_inspect() {
            true => Reaction::Rewrite(change),
            false => Reaction::Pass,
        });
        let host = proxy.host();
        let said = given.inspect(&[&DEV[..], &["--host", &host]].concat());
        said.failed(3, "inspect.other-settings");
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        proxy.settle();
        nothing_left(&proxy);
        nothing_written(&given.out());
    }
    before.nothing_new();
}

/// A packet that takes more than was attested is refused with what to attest; the limits that
/// somebody chose stay.
#[test]
fn a_sandbox_that_is_too_small_is_said_to_be() {
    let text = format!("first\n{}", "x".repeat(8 << 20));
    let packet = Packet::of(&[("large.txt", text.as_str())]);
    let folder = tempfile::tempdir().unwrap();
    let mut attest = tool();
    attest.args(["run", "--venue", "dev"]).args(ENGINES[3].1);
    run(attest.arg("--out").arg(folder.path())).succeeded();
    let evidence = evidence_in(folder.path());
    let profile = folder.path().join("p.toml");
    fs::write(&profile, "[limits]\nmemory_bytes = 33554432\n").unwrap();
    let on_bwrap = [&DEV[..], ENGINES[3].1].concat();
    for given in [
        ["--evidence", evidence.to_str().unwrap()],
        ["--profile", profile.to_str().unwrap()],
    ] {
        let out = folder.path().join("out");
        let said = inspect(packet.path(), &out, &[&on_bwrap[..], &given].concat());
        said.failed(3, "inspect.room");
        assert!(said.stderr.contains("`memory_bytes = "), "{said:?}");
        nothing_written(&out);
    }
    // Without either there is room.
    let out = folder.path().join("out");
    let said = inspect(packet.path(), &out, &on_bwrap);
    assert_eq!(said.status, 10, "{said:?}");
}

/// Writes what a container of Docker's would say on its standard output: these lines, with time
/// between the first and the others for the launcher to let it go.
fn speak(to: &mut dyn Write, lines: &[&str]) -> io::Result<()> {
    write!(to, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n")?;
    write!(to, "Upgrade: tcp\r\n\r\n")?;
    for line in lines {
        let length = u32::try_from(line.len() + 1).unwrap();
        to.write_all(&[1, 0, 0, 0])?;
        to.write_all(&length.to_be_bytes())?;
        writeln!(to, "{line}")?;
        to.flush()?;
        std::thread::sleep(Duration::from_millis(1500));
    }
    Ok(())
}

const HELLO: &str = concat!(
    r#"{"hello":{"protocol":1,"version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","selfcheck_us":1}}"#
);

#[test]
fn what_is_not_the_inspector_is_never_believed() {
    let _engine = whole_engine();
    let before = Before::look();
    let given = Given::new();
    type Speech = fn(&mut dyn Write) -> io::Result<()>;
    let speeches: [(Speech, i32, &str, &str); 5] = [
        (
            |to| speak(to, &["\u{1b}[2J\u{7}PASS PASS PASS"]),
            3,
            "inspector.garbled",
            "does not speak as the inspector does",
        ),
        (
            |to| speak(to, &[&HELLO.replace("\"0.", "\"9.")]),
            3,
            "inspector.garbled",
            "it is of version 9.",
        ),
        (
            |to| speak(to, &[HELLO, r#"{"done":{"status":10,"judged_us":1}}"#]),
            3,
            "inspector.garbled",
            "`done` is not due",
        ),
        (
            |to| {
                let refused = json!({"refused": {
                    "status": 2, "code": "packet.field", "reason": "items[0]: \u{1b}[31mx",
                }});
                speak(to, &[HELLO, &refused.to_string()])
            },
            2,
            "inspect.packet",
            r"items[0]: \u{1b}[31mx (packet.field)",
        ),
        (
            |to| speak(to, &[&"x".repeat(300 << 10)]),
            3,
            "inspector.flood",
            "a line of more than",
        ),
    ];
    for (speech, status, code, wanted) in speeches {
        let proxy = Proxy::with(move |request| match request.is_attach() {
            true => Reaction::Write(speech),
            false => Reaction::Pass,
        });
        let host = proxy.host();
        let said = given.inspect(&[&DEV[..], &["--host", &host]].concat());
        said.failed(status, code);
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        proxy.settle();
        nothing_left(&proxy);
        nothing_written(&given.out());
    }
    // The prober in its place.
    let proxy = Proxy::with(|request| match request.is_create() {
        true => Reaction::Ask(|body| body["Entrypoint"] = json!(["/tki-prober"])),
        false => Reaction::Pass,
    });
    let host = proxy.host();
    let said = given.inspect(&[&DEV[..], &["--host", &host]].concat());
    assert_eq!(said.status, 3, "{said:?}");
    nothing_left(&proxy);
    nothing_written(&given.out());
    before.nothing_new();
}

/// Time that is up, and an output directory that is none.
#[test]
fn a_deadline_and_an_output_directory_that_is_none() {
    let packet = Packet::small();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let arguments = [&DEV[..], ENGINES[3].1].concat();
    inspect(packet.path(), &file, &arguments).failed(2, "out.unwritable");
    let _engine = whole_engine();
    let given = Given::new();
    let proxy = Proxy::with(|request| match request.is_inspect() {
        true => Reaction::Silence,
        false => Reaction::Pass,
    });
    let host = proxy.host();
    let said = given.inspect(&[&DEV[..], &["--host", &host, "--timeout", "3"]].concat());
    said.failed(3, "run.timeout");
    nothing_left(&proxy);
    assert!(inspections(&given.out()).is_empty());
}
