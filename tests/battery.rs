//! Probes that can fail: every control flips exactly its set on the real engine,
//! every weakened profile makes a probe fail, and the evidence of it all is
//! recomputed from the controls' own conversations.

use crate::common::proxy::{Proxy, Reaction};
use crate::common::{
    applicable, attest, eventually, evidence_in, need, read_json, required, run, shared_engine,
    tool, verify, whole_engine,
};
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Stdio};
use tki_evidence::controls::Control;

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().unwrap();
    items
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

fn probes_of<'a>(evidence: &'a Value, id: &str) -> &'a Value {
    let probes = evidence["probes"].as_array().unwrap();
    probes.iter().find(|probe| probe["probe_id"] == id).unwrap()
}

#[test]
fn every_control_flips_its_set_under_both_profiles() {
    let _engine = whole_engine();
    for profile in ["deny-by-default", "targeted-deny"] {
        let out = tempfile::tempdir().unwrap();
        // No --controls: on an approved venue they are the default.
        let mut command = tool();
        command.args([
            "run",
            "--venue",
            "vps",
            "--timeout",
            "300",
            "--seccomp",
            profile,
        ]);
        let said = run(command.arg("--out").arg(out.path()));
        said.succeeded();
        let path = evidence_in(out.path());
        let evidence = read_json(&path);
        let controls = evidence["controls"].as_array().unwrap();
        let wanted: Vec<&Control> = applicable("docker", &evidence);
        assert_eq!(controls.len(), wanted.len());
        assert_eq!(evidence["summary"]["passed"], required(true));
        for (result, control) in controls.iter().zip(&wanted) {
            assert_eq!(result["control"], control.name);
            let flipped = strings(&result["flipped"]);
            let unproven = strings(&result["unproven"]);
            assert!(
                control.flips(&flipped, &unproven),
                "{}: {flipped:?} {unproven:?}",
                control.name
            );
            assert_eq!(result["holds"], true, "{result}");
        }
        // Nobody is denied by a layer that only another probe stands on.
        let exec = probes_of(&evidence, "PR-EXEC-1");
        assert_eq!(exec["calibrated_by"], json!(["lock"]));
        assert_eq!(exec["denied_by"], json!(["lock"]));
        assert_eq!(exec["layers"], 1);
        // Every probe was made to fail that some control concerns here.
        for probe in evidence["probes"].as_array().unwrap() {
            let id = probe["probe_id"].as_str().unwrap();
            let calibrated = !probe["calibrated_by"].as_array().unwrap().is_empty();
            let kernel_dependent = id.starts_with("XP-ABI-");
            let concerned = wanted.iter().any(|control| control.concerns(id));
            assert!(calibrated == concerned || kernel_dependent, "{id}");
            let by_instrument = id == "XP-ID-THREADS";
            let has_layers = probe["layers"] != 0;
            assert_eq!(calibrated && !by_instrument, has_layers, "{id}");
        }
        let said = verify(&path, &["--require-artifacts"]);
        said.succeeded();
        assert!(said.stdout.contains("each flips its set"), "{said:?}");
    }
}

#[test]
fn the_host_the_engine_and_the_prober_agree() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev"]);
    let evidence = read_json(&evidence_in(out.path()));
    let witnesses = &evidence["witnesses"];
    assert_eq!(witnesses["outside"]["available"], true);
    let agreement = witnesses["agreement"].as_array().unwrap();
    for wanted in [
        "network",
        "user",
        "seccomp",
        "capabilities",
        "binds",
        "limit.pids",
    ] {
        let row = agreement.iter().find(|row| row["fact"] == wanted);
        let row = row.unwrap_or_else(|| panic!("{wanted} is not among {agreement:?}"));
        assert_eq!(row["agree"], true, "{row}");
        assert!(row["outside"].is_string(), "{row}");
    }
    let fresh = agreement.iter().filter(|row| {
        row["fact"].as_str().unwrap().starts_with("namespace.") && row["inside"] == row["outside"]
    });
    assert!(fresh.count() >= 7, "{agreement:?}");
}

/// An engine that does not tell the container's process id leaves the host
/// without a view. The run goes on, the evidence says so and verify repeats it.
#[test]
fn without_a_view_from_outside_the_evidence_says_so() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::with(|request| match request.is_inspect() {
        true => Reaction::Rewrite(|answer| answer["State"]["Pid"] = 0.into()),
        false => Reaction::Pass,
    });
    let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
    said.succeeded();
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    let why = "the engine does not tell the container's process id";
    assert_eq!(evidence["witnesses"]["outside"]["available"], false);
    assert_eq!(evidence["witnesses"]["outside"]["source"], why);
    assert_eq!(evidence["witnesses"]["outside"]["facts"], json!([]));
    let not_proven = strings(&evidence["not_proven"]);
    assert!(not_proven.iter().any(|l| l.contains(why)), "{not_proven:?}");
    let said = verify(&path, &[]);
    said.succeeded();
    let step = said.stdout.lines().find(|l| l.contains("EV-OUTSIDE"));
    let step = step.unwrap();
    assert!(
        step.starts_with("not checked") && step.contains(why),
        "{step}"
    );
}

/// A process that only holds a namespace; gone when dropped.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where other interfaces were made before, ours do not have the first numbers.
#[test]
fn the_interface_gets_its_address_whatever_its_number() {
    let sleeper = Sleeper(
        Command::new("unshare")
            .args(["--net", "sleep", "600"])
            .stdin(Stdio::null())
            .spawn()
            .expect("install the Debian package util-linux"),
    );
    let pid = i32::try_from(sleeper.0.id()).unwrap();
    eventually("a namespace of its own", || {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|name| name.trim() == "sleep")
    });
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{pid}/ns/net")).arg("ip");
        let said = need("iproute2", command.args(arguments));
        said.succeeded();
        said.stdout
    };
    for name in ["a", "b", "c"] {
        let (near, far) = (format!("near-{name}"), format!("far-{name}"));
        inside(&[
            "link", "add", "name", &near, "type", "veth", "peer", "name", &far,
        ]);
    }
    let namespace = fs::File::open(format!("/proc/{pid}/ns/net")).unwrap();
    tki_attest::host::interface::add_to(namespace).unwrap();
    let addresses = inside(&["-o", "-4", "address"]);
    let ours: Vec<&str> = addresses
        .lines()
        .filter(|l| l.contains("192.0.2.2/24"))
        .collect();
    assert_eq!(ours.len(), 1, "{addresses}");
    assert!(ours[0].contains(" tki0 "), "{addresses}");
}

/// Runs with a profile; gives the probes that did not pass.
fn not_passing(profile: &Value) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    fs::write(&file, profile.to_string()).unwrap();
    let out = folder.path().join("out");
    let said = attest(
        &out,
        &["--venue", "dev", "--seccomp", file.to_str().unwrap()],
    );
    assert_eq!(
        said.status, 1,
        "a weakened profile was not disproved: {said:?}"
    );
    let evidence = read_json(&evidence_in(&out));
    let probes = evidence["probes"].as_array().unwrap();
    probes
        .iter()
        .filter(|probe| probe["verdict"] == "FAIL")
        .map(|probe| probe["probe_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn targeted_deny_without_any_one_of_its_rules_fails_a_probe() {
    let _engine = shared_engine();
    let whole: Value = serde_json::from_str(tki_evidence::TARGETED_DENY).unwrap();
    for index in 0..whole["syscalls"].as_array().unwrap().len() {
        let mut weaker = whole.clone();
        let gone = weaker["syscalls"].as_array_mut().unwrap().remove(index);
        let failed = not_passing(&weaker);
        assert!(!failed.is_empty(), "nothing failed without {gone}");
    }
}

#[test]
fn deny_by_default_with_one_more_call_fails_a_probe() {
    let _engine = shared_engine();
    let whole: Value = serde_json::from_str(tki_evidence::DENY_BY_DEFAULT).unwrap();
    // One call of each kind that a probe of its own, or the sweep, covers.
    for (call, probe) in [
        ("socket", "PR-NET-1"),
        ("ptrace", "PR-PTRACE-1"),
        ("process_vm_readv", "PR-PTRACE-1"),
        ("io_uring_enter", "XP-URING"),
        ("keyctl", "XP-KEYRING"),
        ("quotactl", "XP-ADMIN"),
        ("name_to_handle_at", "XP-HANDLES"),
        ("kcmp", "XP-PROCESSES"),
        ("personality", "XP-PERSONALITY"),
        ("ioctl", "XP-TTY"),
        ("chroot", "XP-MOUNT-API"),
        ("unshare", "XP-NS-MAKE"),
        ("clone3", "XP-NS-MAKE"),
        ("perf_event_open", "XP-PROGRAMS"),
        ("recvmsg", "XP-ABI-SWEEP"),
        ("mq_open", "XP-ABI-SWEEP"),
    ] {
        let mut weaker = whole.clone();
        let rule = json!({"names": [call], "action": "SCMP_ACT_ALLOW"});
        weaker["syscalls"].as_array_mut().unwrap().push(rule);
        let failed = not_passing(&weaker);
        assert!(failed.iter().any(|id| id == probe), "{call}: {failed:?}");
    }
}

#[test]
fn the_catalogue_names_a_control_or_a_reason_for_each_probe() {
    let said = run(tool().args(["probes", "--format", "json"]));
    said.succeeded();
    let rows: Value = serde_json::from_str(&said.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len() as u64, required(true));
    for row in rows {
        let controls = row["controls"].as_array().unwrap();
        assert_ne!(controls.is_empty(), row["uncalibrated"].is_null(), "{row}");
    }
}
