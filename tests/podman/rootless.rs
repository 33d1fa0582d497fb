//! Podman of a user who is not root.

use super::ON_PODMAN;
use crate::common::podman::shared_podman;
use crate::common::user::OtherUser;
use crate::common::{eventually, evidence_in, lacking, names_in, need, read_json, run};
use crate::leftovers::send;
use rustix::process::Signal;
use std::path::Path;
use std::process::Stdio;
use tki_evidence::calibrate::applicable;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::kernel::KernelKind;

#[test]
fn without_root_every_probe_passes_and_missing_limits_are_said() {
    let _podman = shared_podman();
    let user = OtherUser::new();
    let mut command = user.command(&user.path("tki-attest"));
    command.args(["run", "--venue", "dev", "--controls", "safe"]);
    command.args(ON_PODMAN).args(["--timeout", "300", "--out"]);
    let said = run(command.arg(user.path("out")));
    assert_eq!(user.services(), [0; 0]);
    let info = need(
        "podman",
        user.command(Path::new("podman")).args([
            "--runtime",
            "runc",
            "info",
            "--format",
            "{{.Host.CgroupControllers}}",
        ]),
    );
    if info.status != 0 {
        lacking(&format!(
            "this kernel has no rootless Podman: {}",
            info.stderr
        ));
        return;
    }
    assert!(
        [0, 3].contains(&said.status) && !said.stdout.is_empty(),
        "{said:?}"
    );
    let evidence = read_json(&evidence_in(&user.path("out")));
    assert_eq!(evidence["runtime"]["rootless"], true, "{said:?}");
    assert_eq!(evidence["summary"]["failed"], 0, "{said:?}");
    assert_eq!(evidence["inventory"]["unchanged"], true);
    let sandbox = &evidence["sandbox"];
    assert_eq!(sandbox["declared"], sandbox["configured"]);
    let controllers = info.stdout;
    for (controller, setting) in [("pids", "pids_limit"), ("memory", "memory_bytes")] {
        let set = sandbox["configured"][setting] != 0;
        assert_eq!(
            set,
            controllers.contains(controller),
            "{setting}: {controllers}"
        );
    }
    let all = ["pids", "memory", "cpu"]
        .iter()
        .all(|name| controllers.contains(name));
    let wanted = if all {
        "SANDBOX_ATTESTED"
    } else {
        "SANDBOX_ATTESTATION_PARTIAL"
    };
    assert_eq!(evidence["status"], wanted);
    assert_eq!(said.status, if all { 0 } else { 3 }, "{said:?}");
    // Every control that relaxes what there is, those in the container's network
    // namespace as well.
    let settings = serde_json::from_value(sandbox["configured"].clone()).unwrap();
    let wanted = applicable(Some(EngineKind::Podman), &settings, KernelKind::Shared);
    let controls = evidence["controls"].as_array().unwrap();
    let names: Vec<&str> = controls
        .iter()
        .map(|control| control["control"].as_str().unwrap())
        .collect();
    assert_eq!(names, wanted.iter().map(|c| c.name).collect::<Vec<_>>());
    assert!(names.contains(&"network") && names.contains(&"seccomp-network"));
    for control in controls {
        // A plain directory has no size that could be relaxed.
        let sized = sandbox["out_backing"]["kind"] == "tmpfs";
        let holds = control["control"] != "out-size" || sized;
        assert_eq!(control["holds"], holds, "{control}");
    }
    // The host looks at what belongs to another user namespace, too.
    let witnesses = &evidence["witnesses"];
    assert_eq!(witnesses["outside"]["available"], true, "{witnesses}");
    for row in witnesses["agreement"].as_array().unwrap() {
        assert_eq!(row["agree"], true, "{row}");
    }
    // Nothing of the run's is left, in the one place where this user can write.
    let left = names_in(&user.path("runtime"));
    assert!(
        !left.iter().any(|name| name.starts_with("tki-attest")),
        "{left:?}"
    );
}

/// A user's first Podman of all makes namespaces, and could go there as a second
/// process that nobody ends.
#[test]
fn without_root_kill_9_takes_the_service_along() {
    let _podman = shared_podman();
    let user = OtherUser::new();
    let mut command = user.command(&user.path("tki-attest"));
    command.args(["run", "--venue", "dev", "--out"]);
    command.arg(user.path("out")).args(ON_PODMAN);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the service runs, or cannot", || {
        !user.services().is_empty() || child.try_wait().unwrap().is_some()
    });
    if let Some(status) = child.try_wait().unwrap() {
        lacking(&format!("this kernel has no rootless Podman: {status}"));
        return;
    }
    send(&child, Signal::KILL);
    child.wait().unwrap();
    eventually("the service is gone", || user.services().is_empty());
}
