//! Docker rights are enough: a user of the group, a container that has nothing but the
//! engine's socket, and what is left of a run that is killed.

use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::Before;
use crate::common::user::OtherUser;
use crate::common::{
    ENGINE_SOCKET, applicable, attest, docker, evidence_in, isolated, need, read_json, run, said,
    tool, verify, whole_engine,
};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Everything on the engine that is not a container of ours: names of volumes and networks.
fn others() -> String {
    let volumes = docker(&["volume", "ls", "-q"]);
    let networks = docker(&["network", "ls", "-q"]);
    format!("{volumes}\n{networks}")
}

/// A volume and a network of another party's; gone when dropped.
struct Bystanders {
    name: String,
}

impl Bystanders {
    fn new() -> Self {
        let name = format!("tki-attest-bystander-{}", std::process::id());
        let label = "dev.tki.attest.run=x";
        docker(&["volume", "create", "--label", label, &name]);
        docker(&["network", "create", "--internal", "--label", label, &name]);
        Self { name }
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        for kind in ["volume", "network"] {
            let _ = run(Command::new("docker").args([kind, "rm", &self.name]));
        }
    }
}

/// `su` to a user whose only right is the docker group: the whole battery, every control,
/// and nothing left.
#[test]
fn a_user_of_the_docker_group_attests_with_every_control() {
    let _engine = whole_engine();
    let user = OtherUser::new();
    need(
        "passwd",
        Command::new("usermod").args(["-aG", "docker", user.name()]),
    )
    .succeeded();
    let bystanders = Bystanders::new();
    let (before, held) = (Before::look(), others());
    let (copy, out) = (user.path("tki-attest"), user.path("out"));
    let line = format!(
        "{} run --venue vps --engine docker --out {}",
        copy.display(),
        out.display()
    );
    let mut su = isolated(Path::new("su"));
    let said = run(su.args(["-", user.name(), "-s", "/bin/sh", "-c", &line]));
    said.succeeded();
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
    let controls = evidence["controls"].as_array().unwrap();
    assert_eq!(controls.len(), applicable("docker", &evidence).len());
    assert!(controls.iter().all(|control| control["holds"] == true));
    assert_eq!(evidence["sandbox"]["out_backing"]["maker"], "engine");
    // What this user may read is read, and what not is named.
    let outside = &evidence["raw"]["outside"];
    assert_eq!(evidence["witnesses"]["outside"]["available"], true);
    assert_eq!(
        outside["absent"],
        serde_json::json!(["namespaces", "descriptors"])
    );
    verify(&path, &[]).succeeded();
    before.nothing_new();
    assert_eq!(others(), held);
    drop(bystanders);
}

/// Most CI runners are containers that have the engine's socket and share nothing else with
/// its host.
#[test]
fn a_container_that_has_only_the_engines_socket_attests() {
    let _engine = whole_engine();
    let held = others();
    let folder = tempfile::tempdir().unwrap();
    let image = format!("tki-attest-test-runner-{}", std::process::id());
    let program = env!("CARGO_BIN_EXE_tki-attest");
    let mut linked = need("libc-bin", Command::new("ldd").arg(program)).stdout;
    linked.push_str(program);
    let mut recipe = String::from("FROM scratch\n");
    for (number, word) in linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .enumerate()
    {
        fs::copy(word, folder.path().join(number.to_string())).unwrap();
        recipe += &format!("COPY {number} {word}\n");
    }
    fs::write(folder.path().join("Dockerfile"), recipe).unwrap();
    let context = folder.path().to_string_lossy().into_owned();
    docker(&["build", "-q", "-t", &image, &context]);
    let socket = format!("{ENGINE_SOCKET}:{ENGINE_SOCKET}");
    let mut command = Command::new("docker");
    command.args([
        "run",
        "--name",
        &image,
        "--network=none",
        "--pids-limit=256",
    ]);
    command.args(["-v", &socket, "--env=HOME=/", "--env=CI=true", &image]);
    command.args([program, "run", "--venue", "ci", "--engine", "docker"]);
    command.args(["--out", "/r"]);
    let said = run(&mut command);
    let reports = folder.path().join("r");
    let from = format!("{image}:/r");
    let copied = run(Command::new("docker").args(["cp", &from, reports.to_str().unwrap()]));
    docker(&["rm", "-f", "-v", &image]);
    docker(&["rmi", "-f", &image]);
    said.succeeded();
    copied.succeeded();
    let path = evidence_in(&reports);
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
    // It sees none of the engine's processes, and says so.
    assert_eq!(evidence["witnesses"]["outside"]["available"], false);
    verify(&path, &[]).succeeded();
    assert_eq!(others(), held);
}

/// No real engine of today ignores what a volume of its local driver is to be made of; one
/// behind this proxy is never asked.
#[test]
fn volumes_that_ignore_their_options_are_noticed_by_the_probes() {
    let _engine = whole_engine();
    let proxy = Proxy::with(|request| match request.is_create() {
        true => Reaction::Ask(|body| {
            let mounts = body["HostConfig"]["Mounts"].as_array_mut().unwrap();
            for mount in mounts {
                mount["VolumeOptions"]["DriverConfig"] = serde_json::Value::Null;
            }
        }),
        false => Reaction::Pass,
    });
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--controls", "safe", "--host"];
    let said = attest(out.path(), &[&arguments[..], &[&proxy.host()]].concat());
    assert_eq!(said.status, 1, "{said:?}");
    let evidence = read_json(&evidence_in(out.path()));
    let verdict = |id: &str| {
        let probes = evidence["probes"].as_array().unwrap();
        let probe = probes.iter().find(|probe| probe["probe_id"] == id).unwrap();
        probe["verdict"].as_str().unwrap().to_owned()
    };
    // What is mounted there says nothing of who should have chosen its flags; that a file
    // of /out can be mapped as code, and that it has no end, are leaks.
    assert_eq!(verdict("XP-FS-FLAGS"), "UNPROVEN");
    assert_eq!(verdict("XP-MEM-EXEC"), "FAIL");
    assert_eq!(verdict("XP-LIM-OUT"), "FAIL");
}

/// An engine that makes no volumes: root makes what it can on the host, and says why.
#[test]
fn an_engine_without_volumes_gets_directories_from_root() {
    let _engine = whole_engine();
    // A real one refuses a driver that it does not have.
    let proxy = Proxy::with(|request| match request.is_create() {
        true => Reaction::Ask(|body| {
            let mounts = body["HostConfig"]["Mounts"].as_array_mut().unwrap();
            for mount in mounts.iter_mut().filter(|mount| mount["Type"] == "volume") {
                mount["VolumeOptions"]["DriverConfig"]["Name"] = "no-such-driver".into();
            }
        }),
        false => Reaction::Pass,
    });
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--controls", "safe", "--host"];
    attest(out.path(), &[&arguments[..], &[&proxy.host()]].concat()).succeeded();
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    let maker = evidence["sandbox"]["out_backing"]["maker"]
        .as_str()
        .unwrap();
    assert!(maker.starts_with("launcher: "), "{maker}");
    assert!(maker.contains("no-such-driver"), "{maker}");
    verify(&path, &[]).succeeded();
}

/// Killed at any moment: a little later there is no volume and no container.
#[test]
fn kills_at_any_moment_leave_no_volume_and_no_network() {
    let _engine = whole_engine();
    let _bystanders = Bystanders::new();
    let (before, held) = (Before::look(), others());
    for delay in [60, 150, 240, 330, 420, 600, 800, 1100, 1500] {
        let out = tempfile::tempdir().unwrap();
        let mut command = tool();
        command.args(["run", "--venue", "vps", "--engine", "docker", "--out"]);
        command.arg(out.path()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        let _ = child.kill();
        said(child.wait_with_output().unwrap());
        before.nothing_new();
    }
    crate::common::eventually("nothing else has changed", || others() == held);
}
