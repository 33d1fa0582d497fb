//! Inspections: a packet in, reports out, in a sandbox that was attested; and everything that
//! keeps one from beginning.

/// Interrupted and killed.
mod ended;
/// What is not inspected, and in what nothing is.
mod refused;

use crate::common::podman::whole_podman;
use crate::common::private_engine::PrivateEngine;
use crate::common::proxy::{Gate, Proxy, Reaction, Request};
use crate::common::traces::{Before, nothing_left};
use crate::common::{
    ENGINE_SOCKET, NOBODY, Said, docker, evidence_in, isolated, names_in, read_json, root, run,
    tool, verify, whole_engine,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tki_evidence::stamp::sha256_hex;

/// What an inspection writes.
const FILES: [&str; 5] = [
    "actions.ndjson",
    "binding.json",
    "inspection.json",
    "inspection.md",
    "stamp.json",
];

/// Arguments that lead to each engine.
const ENGINES: [(&str, &[&str]); 4] = [
    ("docker", &["--engine", "docker"]),
    ("podman", &["--engine", "podman", "--runtime", "runc"]),
    ("embedded", &["--engine", "embedded"]),
    ("bwrap", &["--engine", "bwrap"]),
];

/// For development: nothing need be accepted.
const DEV: [&str; 3] = ["--venue", "dev", "--dev"];

/// The packet of the five documents.
fn fix7() -> PathBuf {
    root().join("tests/packets/fix7")
}

/// An item, as `packet.json` has it.
fn item(id: &str, path: &str, bytes: &[u8]) -> Value {
    json!({
        "id": id,
        "path": path,
        "sha256": sha256_hex(bytes),
        "size": bytes.len(),
        "media_type": "text/plain",
        "document_type": "report",
        "extent": "complete",
        "source": {
            "authority": "KB",
            "locator": id,
            "captured_at": "2026-06-10T00:00:00Z",
            "captured_by": "a test",
        },
    })
}

/// A claim that a document says this in its first line.
fn says(id: &str, item: &str, quote: &str) -> Value {
    let lines = json!({"first": 1, "last": 1, "quote": quote});
    json!({
        "id": id,
        "text": format!("It says {quote}."),
        "kind": "says",
        "scope": "packet",
        "evidence": [{"item": item, "at": {"lines": lines}}],
    })
}

/// A packet on disk.
struct Packet {
    folder: tempfile::TempDir,
    document: Value,
}

impl Packet {
    /// Of these files, each with a claim that its first line is there.
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut items, mut claims) = (Vec::new(), Vec::new());
        for (number, (path, text)) in files.iter().enumerate() {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
            let id = format!("i{number}");
            items.push(item(&id, path, text.as_bytes()));
            let quote = text.lines().next().unwrap();
            claims.push(says(&format!("C-{number}"), &id, quote));
        }
        let packet = Self {
            folder,
            document: json!({
                "schema": "tki-attest/packet/v1",
                "id": "small",
                "as_of": "2026-06-11T00:00:00Z",
                "items": items,
                "claims": claims,
            }),
        };
        packet.write();
        packet
    }

    fn small() -> Self {
        Self::of(&[("a.txt", "one\n"), ("deep/er/b.txt", "two\nthree\n")])
    }

    /// With something changed in its own file.
    fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.document);
        self.write();
        self
    }

    fn write(&self) {
        fs::write(self.path().join("packet.json"), self.document.to_string()).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// `tki-attest inspect` of this packet.
fn command(packet: &Path, out: &Path, arguments: &[&str]) -> Command {
    let mut command = tool();
    command.arg("inspect").arg("--packet").arg(packet);
    command.arg("--out").arg(out).args(arguments);
    command
}

fn inspect(packet: &Path, out: &Path, arguments: &[&str]) -> Said {
    run(&mut command(packet, out, arguments))
}

/// The directories of inspections below another one.
fn inspections(out: &Path) -> Vec<String> {
    let mut names = names_in(out);
    names.retain(|name| name.starts_with("inspection-"));
    names
}

/// The files that the inspector has written, without the stamp.
fn reports(out: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = out.join(name);
    assert_eq!(names_in(&folder), FILES);
    let own = FILES.iter().filter(|file| **file != "stamp.json");
    own.map(|file| ((*file).to_owned(), fs::read(folder.join(file)).unwrap()))
        .collect()
}

/// Evidence of this machine's Docker Engine for development.
fn evidence_of_docker(out: &Path) -> PathBuf {
    evidence_of(&format!("unix://{ENGINE_SOCKET}"), out)
}

/// The same of the one at this address.
fn evidence_of(host: &str, out: &Path) -> PathBuf {
    let mut command = tool();
    command.args(["run", "--venue", "dev", "--gate", "off", "--host", host]);
    let said = run(command.arg("--out").arg(out));
    // Not all of it is proven if another client uses the engine meanwhile.
    assert!([0, 3].contains(&said.status), "{said:?}");
    evidence_in(out)
}

#[test]
fn the_same_packet_gives_the_same_bytes_on_every_engine_and_leaves_nothing() {
    let _engines = (whole_engine(), whole_podman());
    let before = Before::look();
    let mut first: Option<Vec<(String, Vec<u8>)>> = None;
    for (engine, arguments) in ENGINES {
        let out = tempfile::tempdir().unwrap();
        let said = inspect(&fix7(), out.path(), &[&DEV[..], arguments].concat());
        assert_eq!(said.status, 11, "{engine}: {said:?}");
        // What nobody may overlook comes first.
        assert!(said.stdout.starts_with("NOT ACCEPTED: "), "{said:?}");
        assert_eq!(inspections(out.path()), ["inspection-fix7"]);
        let stamp = read_json(&out.path().join("inspection-fix7/stamp.json"));
        assert_eq!(stamp["sandbox"], "NOT_ACCEPTED");
        assert_eq!(
            (&stamp["accepted"], &stamp["dev"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(stamp["engine"]["name"], engine);
        assert_eq!(stamp["venue"], "dev");
        assert_eq!(stamp["status"], 11);
        let found = reports(out.path(), "inspection-fix7");
        for (name, bytes) in &found {
            let said = stamp["reports"].as_array().unwrap();
            let said = said.iter().find(|one| one["name"] == *name).unwrap();
            assert_eq!(said["sha256"], sha256_hex(bytes), "{engine} {name}");
        }
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{engine}: other bytes"),
        }
    }
    before.nothing_new();
}

/// With evidence that the verifier accepts, made on the spot and given.
#[test]
fn an_accepted_sandbox_is_said_to_be_one() {
    let _engine = whole_engine();
    let before = Before::look();
    let packet = Packet::small();
    // What another client makes meanwhile would stand in the way.
    let docker = PrivateEngine::start();
    let host = docker.host();
    let on_docker = ["--engine", "docker", "--host", &host];
    for (engine, arguments) in [("docker", &on_docker[..]), ENGINES[2]] {
        let out = tempfile::tempdir().unwrap();
        let arguments = [&["--venue", "vps", "--timeout", "120"], arguments].concat();
        let said = inspect(packet.path(), out.path(), &arguments);
        assert_eq!(said.status, 10, "{engine}: {said:?}");
        assert!(said.stdout.starts_with("sandbox  "), "{said:?}");
        let evidence = evidence_in(out.path());
        let name = evidence.file_name().unwrap().to_str().unwrap();
        verify(&evidence, &["--require-artifacts"]).succeeded();
        let given = ["--evidence", evidence.to_str().unwrap()];
        let said = inspect(
            packet.path(),
            out.path(),
            &[&arguments[..], &given].concat(),
        );
        assert_eq!(said.status, 10, "{engine}: {said:?}");
        let names = inspections(out.path());
        assert_eq!(names, ["inspection-small", "inspection-small-2"]);
        for inspection in &names {
            let stamp = read_json(&out.path().join(inspection).join("stamp.json"));
            assert_eq!(stamp["sandbox"], "ACCEPTED");
            assert_eq!(stamp["evidence"]["decision"], "B4_PRIME_ACCEPTED");
            assert_eq!(stamp["evidence"]["name"], name);
            assert_eq!(
                stamp["evidence"]["sha256"],
                sha256_hex(&fs::read(&evidence).unwrap())
            );
        }
        assert!(reports(out.path(), &names[0]) == reports(out.path(), &names[1]));
    }
    assert_eq!(docker.docker(&["ps", "-aq"]), "");
    assert_eq!(docker.docker(&["volume", "ls", "-q"]), "");
    before.nothing_new();
}

/// One container for the inspector and one that is never started; the same volume in both.
#[test]
fn on_docker_the_packet_goes_through_a_container_that_is_never_started() {
    let _engine = whole_engine();
    let folder = tempfile::tempdir().unwrap();
    let evidence = evidence_of_docker(folder.path());
    let proxy = Proxy::plain();
    let host = proxy.host();
    let arguments = ["--host", &host, "--evidence", evidence.to_str().unwrap()];
    let out = folder.path().join("out");
    let said = inspect(
        Packet::small().path(),
        &out,
        &[&DEV[..], &arguments].concat(),
    );
    assert_eq!(said.status, 10, "{said:?}");
    let ids = proxy.run_ids();
    let [filler, inspector] = ids.as_slice() else {
        panic!("{ids:?}");
    };
    assert_eq!(*filler, format!("{inspector}-fill"));
    assert_eq!(proxy.count(|request| request.is_start()), 1);
    let put = |request: &Request| {
        request.method == "PUT" && request.target.ends_with("/archive?path=%2Fin")
    };
    assert_eq!(proxy.count(put), 1, "{:?}", proxy.log());
    nothing_left(&proxy);
}

/// What the inspector reads is what was put there, however it is called and however large it is.
#[test]
fn items_come_through_whole() {
    let _engines = (whole_engine(), whole_podman());
    let large: String = (0..300_000).map(|line| format!("line {line}\n")).collect();
    let deep = format!("{}/x.txt", ["d"; 11].join("/"));
    let long = format!("{}/{}", "n".repeat(180), "m".repeat(180));
    let files = [
        ("ünï cöde.txt", "one\n"),
        (deep.as_str(), "two\n"),
        (&long, "three\n"),
        ("-dash", "four\n"),
        ("large.txt", &large),
    ];
    for (engine, arguments) in ENGINES {
        let packet = Packet::of(&files);
        let out = tempfile::tempdir().unwrap();
        let said = inspect(packet.path(), out.path(), &[&DEV[..], arguments].concat());
        assert_eq!(said.status, 10, "{engine}: {said:?}");
        let report = read_json(&out.path().join("inspection-small/inspection.json"));
        for (item, (path, text)) in report["items"].as_array().unwrap().iter().zip(&files) {
            assert_eq!(item["path"], *path);
            assert_eq!(
                item["sha256"],
                sha256_hex(text.as_bytes()),
                "{engine} {path}"
            );
        }
        // The sandbox was attested with the room that this takes.
        let evidence = read_json(&evidence_in(out.path()));
        let memory = evidence["sandbox"]["declared"]["memory_bytes"].as_u64();
        assert!(memory.unwrap() > 6 * large.len() as u64, "{engine}");
    }
}

/// A digest is for the inspector to compare: the launcher only looks at sizes.
#[test]
fn an_item_of_another_content_is_found_inside() {
    let packet = Packet::small();
    fs::write(packet.path().join("a.txt"), "one?").unwrap();
    let out = tempfile::tempdir().unwrap();
    let said = inspect(
        packet.path(),
        out.path(),
        &[&DEV[..], ENGINES[3].1].concat(),
    );
    assert_eq!(said.status, 11, "{said:?}");
    let report = read_json(&out.path().join("inspection-small/inspection.json"));
    assert_eq!(report["items"][0]["findings"][0]["code"], "PV-DIGEST");
    assert_eq!(report["claims"][0]["verdict"], "UNSUPPORTED");
    assert_eq!(report["claims"][1]["verdict"], "ADEQUATE");
}

/// Digests of what the launcher brings stand in the report.
#[test]
fn what_is_brought_is_named_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("p.toml");
    fs::write(
        &policy,
        "schema = \"tki-attest/policy/v1\"\nmax_age = \"7d\"\n",
    )
    .unwrap();
    let request = folder.path().join("request.json");
    let mut ask = tool();
    ask.args(["request", "--venue", "vps", "--out"]);
    run(ask.arg(&request)).succeeded();
    let arguments = [
        "--policy",
        policy.to_str().unwrap(),
        "--request",
        request.to_str().unwrap(),
        "--require-assurance",
        "signed",
    ];
    let arguments = [&DEV[..], ENGINES[3].1, &arguments].concat();
    let said = inspect(Packet::small().path(), folder.path(), &arguments);
    assert_eq!(said.status, 10, "{said:?}");
    let report = read_json(&folder.path().join("inspection-small/inspection.json"));
    let brought = report["brought"].as_array().unwrap();
    let digest = |name: &str| {
        let one = brought.iter().find(|one| one["name"] == name).unwrap();
        one["sha256"].as_str().unwrap().to_owned()
    };
    assert_eq!(brought.len(), 3);
    assert_eq!(
        digest("policy.toml"),
        sha256_hex(&fs::read(&policy).unwrap())
    );
    assert_eq!(
        digest("request.json"),
        sha256_hex(&fs::read(&request).unwrap())
    );
    assert_eq!(digest("expected.json").len(), 64);
}

/// Where the engine makes no volumes, the launcher's directories stand in, for evidence and
/// inspection alike.
#[test]
fn without_volumes_the_launchers_directories_are_filled() {
    let _engine = whole_engine();
    let before = Before::look();
    let proxy = Proxy::with(|request| {
        // A container with volumes is refused, one with directories is made.
        match request.is_create() && !request.target.contains("directories") {
            true => Reaction::Ask(without_volumes),
            false => Reaction::Pass,
        }
    });
    let host = proxy.host();
    let out = tempfile::tempdir().unwrap();
    let arguments = [&DEV[..], &["--host", &host, "--gate", "off"]].concat();
    let said = inspect(Packet::small().path(), out.path(), &arguments);
    assert_eq!(said.status, 10, "{said:?}");
    let evidence = read_json(&evidence_in(out.path()));
    let maker = evidence["sandbox"]["out_backing"]["maker"]
        .as_str()
        .unwrap();
    assert!(maker.starts_with("launcher: "), "{maker}");
    let is_put = |request: &Request| request.method == "PUT";
    assert_eq!(proxy.count(is_put), 0);
    nothing_left(&proxy);
    before.nothing_new();
}

/// Makes of a volume one of a driver that no engine has.
fn without_volumes(body: &mut Value) {
    let mounts = body["HostConfig"]["Mounts"].as_array_mut();
    for mount in mounts.into_iter().flatten() {
        if mount["Type"] == "volume" {
            mount["VolumeOptions"]["DriverConfig"]["Name"] = json!("tki-no-such-driver");
        }
    }
}

/// A user whose memory is limited by the address space alone gets evidence with room for what the
/// inspector reserves.
#[test]
fn bubblewrap_inspects_for_a_user_without_rights() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let copy = folder.path().join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &copy).unwrap();
    open(&copy, 0o755);
    let (packet, out) = (Packet::small(), folder.path().join("out"));
    open(packet.path(), 0o755);
    fs::create_dir(&out).unwrap();
    chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = isolated(&copy);
    command
        .env_remove("XDG_RUNTIME_DIR")
        .arg("inspect")
        .arg("--packet")
        .arg(packet.path())
        .arg("--out")
        .arg(&out)
        .args(DEV)
        .args(ENGINES[3].1)
        .uid(NOBODY)
        .gid(NOBODY);
    let said = run(&mut command);
    assert_eq!(said.status, 10, "{said:?}");
    reports(&out, "inspection-small");
}

/// The same sandbox, and another program: what the engine says of both.
#[test]
fn the_container_is_the_one_that_was_attested() {
    let _engine = whole_engine();
    let folder = tempfile::tempdir().unwrap();
    let evidence = evidence_of_docker(folder.path());
    let gate = Gate::default();
    let (held, started) = (gate.clone(), AtomicBool::new(false));
    let proxy = Proxy::with(move |request| {
        // Before that, others are looked at.
        if request.is_inspect() && started.load(Ordering::SeqCst) {
            held.pass();
        }
        started.fetch_or(request.is_start(), Ordering::SeqCst);
        Reaction::Pass
    });
    let host = proxy.host();
    let arguments = ["--host", &host, "--evidence", evidence.to_str().unwrap()];
    let packet = Packet::small();
    let mut command = command(
        packet.path(),
        &folder.path().join("out"),
        &[&DEV[..], &arguments].concat(),
    );
    let child = command.spawn().unwrap();
    gate.wait();
    let inspector = format!("tki-attest-{}", proxy.run_ids()[1]);
    let described: Value = serde_json::from_str(&docker(&["inspect", &inspector])).unwrap();
    gate.open();
    let said = crate::common::said(child.wait_with_output().unwrap());
    assert_eq!(said.status, 10, "{said:?}");
    let found = &described[0];
    assert_eq!(found["Path"], "/tki-inspector");
    assert_eq!(found["Args"], json!(["inspect"]));
    assert_eq!(found["Config"]["Labels"]["dev.tki.attest.role"], "inspect");
    let attested = read_json(&evidence.with_extension("").join("container.json"));
    // Whatever the engine was asked for, but for names.
    for setting in [
        "NetworkMode",
        "IpcMode",
        "ReadonlyRootfs",
        "CapDrop",
        "SecurityOpt",
        "PidsLimit",
        "Memory",
        "CpuQuota",
        "Tmpfs",
        "Ulimits",
        "MaskedPaths",
        "ReadonlyPaths",
    ] {
        let [was, is] = [
            &attested["HostConfig"][setting],
            &found["HostConfig"][setting],
        ];
        assert_eq!(was, is, "{setting}");
    }
}
