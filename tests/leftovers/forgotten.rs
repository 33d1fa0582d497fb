//! What Podman has forgotten: `clean` ends what is ours, and nothing else.

use crate::common::podman::{Storage, processes, whole_podman};
use crate::common::{eventually, run, tool};
use std::fs;
use std::path::Path;
use std::process::Command;
use tki_attest::clock;

/// A Podman with a storage of its own.
struct Podman(Storage);

impl Podman {
    /// A container that waits to be started, and its monitor. The runtime is told that it
    /// is of this run, as the tool does it; Podman is not.
    fn waiting(&self, name: &str, run: &str) -> Waiting {
        let fixed = "create --network none --ipc none --pids-limit 8 --ulimit nofile=64:64 \
                     --ulimit nproc=64:64 --rm";
        let mut arguments: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
        let deadline = match run.starts_with("2020") {
            true => 1,
            false => clock::now() + 600,
        };
        let run_label = format!("run={run}");
        for label in [&run_label, "role=probe", &format!("deadline={deadline}")] {
            arguments.push(format!("--annotation=dev.tki.attest.{label}"));
        }
        for side in ["in", "out"] {
            let path = self.0.folder.join(format!("tki-attest-{run}")).join(side);
            fs::create_dir_all(&path).unwrap();
            let path = path.display();
            arguments.push(format!("--mount=type=bind,source={path},target=/{side}"));
        }
        arguments.extend(["--name", name, "tki-inspector:attest", "probe"].map(str::to_owned));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let id = self.0.podman(&arguments);
        self.0.podman(&["init", name]);
        let waiting = Waiting { id };
        assert!(waiting.is_whole(), "{name}");
        waiting
    }

    fn clean(&self, arguments: &[&str]) -> String {
        let mut command = self.0.on(tool());
        command.args(["clean", "--engine", "podman"]);
        let said = run(command.args(arguments));
        said.succeeded();
        said.stdout
    }
}

struct Waiting {
    id: String,
}

impl Waiting {
    fn parts(&self) -> [bool; 3] {
        let group = format!("/sys/fs/cgroup/pids/libpod_parent/libpod-{}", self.id);
        [
            !processes(&["conmon", "--api-version", "1", "-c", &self.id]).is_empty(),
            Path::new("/run/runc").join(&self.id).exists(),
            Path::new(&group).exists(),
        ]
    }

    /// Its monitor, what the runtime keeps and its control group are there.
    fn is_whole(&self) -> bool {
        self.parts() == [true; 3]
    }

    fn end(&self) {
        let mut delete = Command::new("runc");
        let _ = delete.args(["delete", "--force", &self.id]).output();
    }

    #[track_caller]
    fn is_gone(&self) {
        eventually("monitor, state and group are gone", || {
            self.parts() == [false; 3]
        });
    }
}

/// A test that fails leaves nothing running.
impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// Podman's database is taken away, so that it knows what is in its storage and
/// nothing else; of one container not even that.
#[test]
fn clean_ends_what_podman_has_forgotten_and_only_what_is_ours() {
    let _alone = whole_podman();
    let podman = Podman(Storage::new());
    let mut build = podman.0.on(tool());
    run(build
        .args(["run", "--venue", "dev", "-q", "--engine", "podman"])
        .args(["--runtime", "runc", "--out"])
        .arg(podman.0.folder.join("out")))
    .succeeded();
    let today: String = clock::rfc3339(clock::now())
        .to_lowercase()
        .replace(['-', ':'], "");
    let named = |run: &str| podman.waiting(&format!("tki-attest-{run}"), run);
    let stored = named("20200101t000000z-00000001");
    let second = "20200101t000000z-00000002";
    let unlisted = podman.waiting(&format!("tki-attest-{second}-network"), second);
    let young = named(&format!("{today}-00000003"));
    let bystanders =
        ["tki-attest-production", "postgres"].map(|name| podman.waiting(name, "production"));
    // Without labels none is ours for as long as Podman knows them.
    assert_eq!(podman.clean(&["--force"]), "nothing to clean\n");

    fs::remove_file(podman.0.folder.join("storage/libpod/bolt_state.db")).unwrap();
    podman.0.podman(&["rm", "--force", &unlisted.id]);
    assert!(unlisted.parts()[0], "Podman does not know its monitor");
    let planned = podman.clean(&["--dry-run"]);
    for (one, row) in [
        (&stored, "would remove  container "),
        (&unlisted, "would remove  container "),
        (&young, "kept (in use) container "),
    ] {
        let row = format!("{row}{}", &one.id[..12]);
        assert!(planned.contains(&row), "{row}: {planned}");
    }
    assert_eq!(planned.lines().count(), 3, "{planned}");
    assert!(stored.is_whole());

    podman.clean(&[]);
    stored.is_gone();
    unlisted.is_gone();
    assert!(young.is_whole(), "its run may still live");
    podman.clean(&["--force"]);
    young.is_gone();
    assert_eq!(podman.clean(&["--force"]), "nothing to clean\n");
    for bystander in &bystanders {
        assert!(bystander.is_whole());
        bystander.end();
        bystander.is_gone();
        podman.0.podman(&["rm", "--force", &bystander.id]);
    }
    assert_eq!(podman.0.podman(&["ps", "-aq", "--external"]), "");
}
