//! Engines without a daemon: the embedded one and bubblewrap, as root and as a
//! user without any rights.

/// Control groups that were delegated to a user.
mod delegated;

use crate::common::listing::{
    Copy, Moments, kill_run, length, length_without_limits, strike, until_killed,
};
use crate::common::{
    NOBODY, applicable, attest, evidence_in, isolated, kill_children, read_json, required, run,
    tool, verify,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tki_evidence::controls::CONTROLS;
use tki_evidence::stamp::sha256_hex;

const ENGINES: [&str; 2] = ["embedded", "bwrap"];

fn probe<'a>(evidence: &'a Value, id: &str) -> &'a Value {
    let probes = evidence["probes"].as_array().unwrap();
    probes.iter().find(|probe| probe["probe_id"] == id).unwrap()
}

/// The whole battery with every control that the engine can run.
fn whole_battery(engine: &str, seccomp: &str) {
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--engine", engine, "--controls", "safe"];
    let said = attest(
        out.path(),
        &[&arguments[..], &["--seccomp", seccomp]].concat(),
    );
    said.succeeded();
    let path = evidence_in(out.path());
    verify(&path, &["--require-artifacts"]).succeeded();
    let evidence = read_json(&path);
    assert_eq!(evidence["runtime"]["engine"], engine);
    assert_eq!(evidence["summary"]["passed"], required(true));
    assert_eq!(evidence["witnesses"]["outside"]["available"], true);
    // The gate stood, and the evidence says who refused the execs.
    let gate = &evidence["sandbox"]["gate"];
    assert_eq!(
        (&gate["active"], &gate["allowed"]),
        (&true.into(), &1.into())
    );
    assert!(gate["refused"].as_u64().unwrap() > 0);
    assert_eq!(probe(&evidence, "PR-EXEC-1")["enforced_by"], "launcher");
    // Exactly the controls that it says it can run, and each holds.
    let names: Vec<&str> = evidence["controls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|control| control["control"].as_str().unwrap())
        .collect();
    let wanted: Vec<&str> = applicable(engine, &evidence)
        .iter()
        .map(|control| control.name)
        .collect();
    assert_eq!(names, wanted);
    assert!(wanted.len() < CONTROLS.len());
}

#[test]
fn the_embedded_engine_passes_the_whole_battery() {
    whole_battery("embedded", "deny-by-default");
    whole_battery("embedded", "targeted-deny");
}

#[test]
fn bubblewrap_passes_the_whole_battery() {
    whole_battery("bwrap", "deny-by-default");
    whole_battery("bwrap", "targeted-deny");
}

#[test]
fn without_the_gate_the_prober_refuses() {
    for engine in ENGINES {
        let out = tempfile::tempdir().unwrap();
        let arguments = ["--venue", "vps", "--engine", engine, "--gate", "off"];
        attest(out.path(), &arguments).succeeded();
        let evidence = read_json(&evidence_in(out.path()));
        assert_eq!(evidence["sandbox"]["gate"]["active"], false);
        assert_eq!(probe(&evidence, "PR-EXEC-1")["enforced_by"], "inspector");
    }
}

/// A copy of the tool that anybody may execute, and a place for its output.
fn for_nobody(folder: &Path) -> (PathBuf, PathBuf) {
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let copy = folder.join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &copy).unwrap();
    let out = folder.join("out");
    fs::create_dir(&out).unwrap();
    open(folder, 0o755);
    open(&copy, 0o755);
    chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    (copy, out)
}

fn as_nobody(copy: &Path, out: &Path, arguments: &[&str]) -> crate::common::Said {
    let mut command = isolated(copy);
    command
        .env_remove("XDG_RUNTIME_DIR")
        .args(["run", "--out"])
        .arg(out)
        .args(arguments)
        .uid(NOBODY)
        .gid(NOBODY);
    run(&mut command)
}

/// Whether this kernel lets a user without rights have namespaces.
fn has_user_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["-U", "true"]).uid(NOBODY).gid(NOBODY);
    command.status().is_ok_and(|status| status.success())
}

/// Resource limits stand in for control groups; CPU time has no such limit, and
/// that is said: everything else passes, and nothing is accepted.
#[test]
fn bubblewrap_serves_a_user_without_rights() {
    assert!(
        has_user_namespaces(),
        "this kernel gives no user namespaces to users"
    );
    let folder = tempfile::tempdir().unwrap();
    let (copy, out) = for_nobody(folder.path());
    let said = as_nobody(
        &copy,
        &out,
        &["--venue", "vps", "--engine", "bwrap", "--controls", "safe"],
    );
    assert_eq!(said.status, 3, "{said:?}");
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_PARTIAL");
    assert_eq!(evidence["runtime"]["rootless"], true);
    let unproven: Vec<&str> = evidence["probes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|probe| probe["verdict"] != "PASS")
        .map(|probe| probe["probe_id"].as_str().unwrap())
        .collect();
    assert_eq!(unproven, ["XP-LIM-CPU"]);
    for control in evidence["controls"].as_array().unwrap() {
        assert_eq!(control["holds"], true, "{control}");
    }
    assert_eq!(evidence["sandbox"]["gate"]["active"], true);
    assert_eq!(evidence["sandbox"]["out_backing"]["kind"], "tmpfs");
    let said = verify(&path, &["--require-artifacts"]);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stdout.contains("there is no CPU limit"), "{said:?}");
}

/// Control groups are root's.
#[test]
fn the_embedded_engine_says_what_a_user_without_rights_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, out) = for_nobody(folder.path());
    let said = as_nobody(&copy, &out, &["--venue", "dev", "--engine", "embedded"]);
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains("control group"), "{said:?}");
    assert!(said.stderr.contains("bwrap"), "{said:?}");
}

#[test]
fn without_bubblewrap_there_is_a_clear_error() {
    let out = tempfile::tempdir().unwrap();
    let said = run(tool()
        .env("PATH", out.path())
        .args(["run", "--venue", "dev", "--engine", "bwrap", "--out"])
        .arg(out.path()));
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains("install bubblewrap"), "{said:?}");
}

/// A profile that asks a tracer cannot be compiled here, where there is none.
#[test]
fn a_profile_that_cannot_be_compiled_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traced.json");
    let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64"],
        "syscalls":[{"names":["bpf"],"action":"SCMP_ACT_ERRNO","errnoRet":1},
                    {"names":["socket"],"action":"SCMP_ACT_TRACE"}]}"#;
    fs::write(&file, profile).unwrap();
    for engine in ENGINES {
        let arguments = ["--venue", "dev", "--engine", engine, "--seccomp"];
        let arguments = [&arguments[..], &[file.to_str().unwrap()]].concat();
        let said = attest(&folder.path().join("out"), &arguments);
        said.failed(3, "engine.unusable");
        assert!(said.stderr.contains("tracer"), "{said:?}");
    }
}

/// Twenty times on each, at moments that nobody chose: the tool is killed, or the
/// keeper that holds the gate and the container.
/// A layout of the built-in image whose layer is the plain tar, as `gzip` gives it.
fn plain_layout(folder: &Path) {
    run(tool().args(["build", "-q", "--layout"]).arg(folder)).succeeded();
    let blob = |digest: &str| folder.join("blobs").join(digest.replace(':', "/"));
    let put = |bytes: &[u8]| {
        let digest = format!("sha256:{}", sha256_hex(bytes));
        fs::write(blob(&digest), bytes).unwrap();
        (Value::from(digest), Value::from(bytes.len()))
    };
    let mut index = read_json(&folder.join("index.json"));
    let entry = &mut index["manifests"][0];
    let mut manifest = read_json(&blob(entry["digest"].as_str().unwrap()));
    let layer = &mut manifest["layers"][0];
    let stored = fs::File::open(blob(layer["digest"].as_str().unwrap())).unwrap();
    let unpacked = Command::new("gzip").arg("-dc").stdin(stored).output();
    let unpacked = unpacked.unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar".into();
    (layer["digest"], layer["size"]) = put(&unpacked.stdout);
    (entry["digest"], entry["size"]) = put(manifest.to_string().as_bytes());
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

#[test]
fn a_base_whose_layer_is_a_plain_tar_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    plain_layout(&base);
    let recipe = folder.path().join("Dockerfile");
    fs::write(&recipe, "FROM base\nLABEL made=here\n").unwrap();
    for engine in ENGINES {
        let out = folder.path().join(engine);
        let mut command = tool();
        command.args(["run", "--venue", "dev", "--engine", engine]);
        command.arg("--build-context");
        command.arg(format!("base=oci-layout://{}", base.display()));
        command.arg("--file").arg(&recipe);
        command.arg("--context").arg(folder.path());
        run(command.arg("--out").arg(&out)).succeeded();
        let evidence = read_json(&evidence_in(&out));
        assert_eq!(evidence["summary"]["failed"], 0, "{engine}");
        let built = read_json(&base.join("index.json"));
        assert_ne!(evidence["image_digest"], built["manifests"][0]["digest"]);
    }
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    let _alone = crate::common::whole_engine();
    let copy = Copy::new("tki-attest-");
    let out = copy.place("out");
    let mut moments = Moments::new();
    for engine in ENGINES {
        let command = || {
            let mut command = copy.command(&copy.program());
            command.args(["run", "--venue", "dev", "--engine", engine, "-q", "--out"]);
            command.arg(&out);
            command
        };
        strike_twenty(&mut moments, &copy, length(command()), &command);
    }
}

/// The same for a user without rights, who has resource limits and no control groups.
#[test]
fn killed_at_any_moment_nothing_is_left_of_a_user_without_rights() {
    let _alone = crate::common::whole_engine();
    let copy = Copy::new("tki-attest-");
    let out = copy.place("out");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    let command = || {
        let mut command = copy.command(&copy.program());
        command.args(["run", "--venue", "dev", "--engine", "bwrap", "-q", "--out"]);
        command.arg(&out).env_remove("XDG_RUNTIME_DIR");
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    let length = length_without_limits(command());
    strike_twenty(&mut Moments::new(), &copy, length, &command);
}

/// Kills ten tools and ten keepers.
fn strike_twenty(
    moments: &mut Moments,
    copy: &Copy,
    length: Duration,
    command: &dyn Fn() -> Command,
) {
    let before = copy.look("");
    until_killed(10, || {
        let killed = strike(moments, length, command, kill_run);
        before.nothing_new(|| copy.look(""));
        killed
    });
    // A keeper lives for a part of a run, and for how long is not known: a strike that comes too
    // late says that it is less than was thought.
    let mut life = length / 2;
    for _ in 0..2 {
        until_killed(5, || {
            let killed = strike_keeper(moments.within(life), command());
            if killed == 0 {
                life = (life * 3 / 4).max(Duration::from_millis(2));
            }
            killed
        });
        before.nothing_new(|| copy.look(""));
    }
}

/// Kills a run's keeper so long after its start; tells whether it was still there.
fn strike_keeper(moment: Duration, mut command: Command) -> usize {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_keeper = |child: &mut Child| {
        let list = format!("/proc/{0}/task/{0}/children", child.id());
        let list = fs::read_to_string(list).unwrap_or_default();
        list.split_whitespace().any(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("internal-keeper")
        })
    };
    while !has_keeper(&mut child) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(moment);
    let killed = kill_children(child.id(), "internal-keeper");
    child.wait().unwrap();
    killed
}
