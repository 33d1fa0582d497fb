//! The embedded engine for a user who is not root: with control groups that were
//! delegated to them, with some of these, and with none. On version 1 a group is
//! delegated by giving its directory to the user and putting their process into it.

use super::{for_nobody, probe};
use crate::common::listing::{Copy, Moments, length};
use crate::common::{
    NOBODY, Said, evidence_in, isolated, names_in, read_json, required, run, verify,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Groups of the hierarchies of these controllers that belong to [`NOBODY`].
struct Delegated(Vec<PathBuf>);

impl Delegated {
    fn new(controllers: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tki-test-{}-{count}", std::process::id());
        let groups = controllers.iter().map(|controller| {
            let group = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            fs::create_dir(&group).unwrap_or_else(|error| {
                panic!("{}: {error}: no cgroups of version 1", group.display())
            });
            for file in ["", "cgroup.procs", "tasks"] {
                chown(group.join(file), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            group
        });
        Self(groups.collect())
    }

    /// The tool as [`NOBODY`], from inside the groups.
    fn command(&self, copy: &Path) -> Command {
        let script = "for group; do echo $$ > \"$group/cgroup.procs\" || exit 99; done; \
                      exec setpriv --reuid \"$WHO\" --regid \"$WHO\" --clear-groups $COMMAND";
        let mut command = isolated(Path::new("/bin/sh"));
        command
            .env_remove("XDG_RUNTIME_DIR")
            .env("WHO", NOBODY.to_string())
            .args(["-c", script, "sh"])
            .args(&self.0)
            .env("COMMAND", copy);
        command
    }

    /// Groups that another process has made below.
    fn below(&self) -> Vec<PathBuf> {
        let entries = self.0.iter().flat_map(|group| fs::read_dir(group).unwrap());
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for group in &self.0 {
            for _ in 0..1000 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Runs the tool with these words in groups of these controllers.
fn run_in(groups: &Delegated, copy: &Path, words: &str) -> Said {
    let mut command = groups.command(copy);
    command.env("COMMAND", format!("{} {words}", copy.display()));
    run(&mut command)
}

fn unproven(evidence: &Value) -> Vec<&str> {
    let probes = evidence["probes"].as_array().unwrap().iter();
    probes
        .filter(|probe| probe["verdict"] != "PASS")
        .map(|probe| probe["probe_id"].as_str().unwrap())
        .collect()
}

#[test]
fn with_delegated_groups_the_embedded_engine_passes_the_whole_battery() {
    for profile in ["deny-by-default", "targeted-deny"] {
        let folder = tempfile::tempdir().unwrap();
        let (copy, out) = for_nobody(folder.path());
        let groups = Delegated::new(&["pids", "memory", "cpu"]);
        let words = format!(
            "run --venue vps --engine embedded --controls safe --seccomp {profile} --out {}",
            out.display()
        );
        run_in(&groups, &copy, &words).succeeded();
        let path = evidence_in(&out);
        let evidence = read_json(&path);
        assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
        assert_eq!(evidence["summary"]["passed"], required(true));
        let runtime = &evidence["runtime"];
        assert_eq!(
            (&runtime["engine"], &runtime["rootless"]),
            (&"embedded".into(), &true.into())
        );
        assert_eq!(runtime["cgroup_version"], "1");
        let sandbox = &evidence["sandbox"];
        assert_eq!(sandbox["declared"], sandbox["configured"]);
        assert_ne!(sandbox["configured"]["cpu_quota_us"], 0);
        assert_eq!(sandbox["out_backing"]["kind"], "tmpfs");
        assert_eq!(sandbox["gate"]["active"], true);
        assert_eq!(probe(&evidence, "PR-EXEC-1")["enforced_by"], "launcher");
        assert_eq!(evidence["witnesses"]["outside"]["available"], true);
        let agreement = evidence["witnesses"]["agreement"].as_array().unwrap();
        assert!(agreement.iter().all(|row| row["agree"] == true));
        let controls = evidence["controls"].as_array().unwrap();
        assert!(!controls.is_empty());
        for control in controls {
            assert_eq!(control["holds"], true, "{control}");
        }
        verify(&path, &["--require-artifacts"]).succeeded();
        assert_eq!(groups.below(), [""; 0].map(PathBuf::from));
    }
}

/// What the groups do not carry, resource limits do, except for CPU time.
#[test]
fn a_controller_that_was_not_delegated_is_said_and_never_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, out) = for_nobody(folder.path());
    for (delegated, missing) in [
        (&["pids"][..], &["XP-LIM-CPU"][..]),
        (&["memory", "cpu"], &[]),
    ] {
        let groups = Delegated::new(delegated);
        let listed = run_in(&groups, &copy, "engines");
        listed.succeeded();
        let about = listed.stdout.split("embedded").nth(1).unwrap();
        let about = about.split("bwrap").next().unwrap();
        assert!(about.trim_start().starts_with("yes"), "{listed:?}");
        for (controller, words) in [
            ("pids", "RLIMIT_NPROC stands in"),
            ("memory", "RLIMIT_AS stands in"),
            ("cpu", "its probe is UNPROVEN"),
        ] {
            let given_up = !delegated.contains(&controller);
            assert_eq!(about.contains(words), given_up, "{controller}: {listed:?}");
        }
        let words = format!(
            "run --venue vps --engine embedded --controls safe --out {}",
            out.display()
        );
        let said = run_in(&groups, &copy, &words);
        assert_eq!(
            said.status,
            if missing.is_empty() { 0 } else { 3 },
            "{said:?}"
        );
        let path = evidence_in(&out);
        let evidence = read_json(&path);
        assert_eq!(unproven(&evidence), missing);
        let sandbox = &evidence["sandbox"];
        assert_eq!(sandbox["declared"], sandbox["configured"]);
        for control in evidence["controls"].as_array().unwrap() {
            assert_eq!(control["holds"], true, "{control}");
        }
        assert_eq!(groups.below(), [""; 0].map(PathBuf::from));
        fs::remove_dir_all(&out).unwrap();
        fs::create_dir(&out).unwrap();
        chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// A user who has no engine's socket: the embedded one if there are control
/// groups, else bubblewrap if it is there, else the reasons.
#[test]
fn auto_takes_what_a_user_can_have() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, out) = for_nobody(folder.path());
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["setpriv", "bwrap"] {
        let path = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        let path = path.iter().find(|path| path.exists());
        let path = path.unwrap_or_else(|| panic!("{name} is not installed"));
        symlink(path, programs.join(name)).unwrap();
    }
    let words = format!("run --venue dev --out {}", out.display());
    let auto = |groups: &Delegated| {
        let mut command = groups.command(&copy);
        command
            .env("PATH", &programs)
            .env("COMMAND", format!("{} {words}", copy.display()));
        run(&mut command)
    };
    let engine_of = |said: &Said| {
        let path = said
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("evidence"));
        let path = path.unwrap_or_else(|| panic!("{said:?}")).trim().to_owned();
        read_json(Path::new(&path))["runtime"]["engine"].clone()
    };
    let said = auto(&Delegated::new(&["pids", "memory", "cpu"]));
    said.succeeded();
    assert_eq!(engine_of(&said), "embedded");
    let said = auto(&Delegated(Vec::new()));
    // There is no limit of CPU time, which is said.
    assert_eq!(said.status, 3, "{said:?}");
    assert_eq!(engine_of(&said), "bwrap");
    fs::remove_file(programs.join("bwrap")).unwrap();
    let written = names_in(&out);
    let said = auto(&Delegated(Vec::new()));
    said.failed(3, "engine.none");
    for reason in ["docker", "podman", "no control group", "bwrap", "delegated"] {
        assert!(said.stderr.contains(reason), "{reason}: {said:?}");
    }
    assert_eq!(names_in(&out), written);
}

/// The keeper that made the groups is killed, or the tool is.
#[test]
fn killed_at_any_moment_nothing_is_left_in_delegated_groups() {
    let _alone = crate::common::whole_engine();
    let copy = Copy::new("tki-attest-");
    let out = copy.place("out");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    let groups = Delegated::new(&["pids", "memory", "cpu"]);
    let words = format!(
        "run --venue dev --engine embedded -q --out {}",
        out.display()
    );
    let command = || {
        let mut command = groups.command(&copy.program());
        command.env("COMMAND", format!("{} {words}", copy.program().display()));
        copy.mark(&mut command);
        command
    };
    super::strike_twenty(&mut Moments::new(), &copy, length(command()), &command);
    assert_eq!(groups.below(), [""; 0].map(PathBuf::from));
}
