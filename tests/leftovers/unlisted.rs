//! What Docker has forgotten: `clean` ends what is ours, and nothing else.

use crate::common::podman::processes;
use crate::common::private_engine::PrivateEngine;
use crate::common::{eventually, run, tool, whole_engine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tki_attest::clock;

const IMAGE: &str = "tki-inspector:attest";

/// An engine, and a place for directories of runs.
struct Docker {
    engine: PrivateEngine,
    folder: tempfile::TempDir,
}

impl Docker {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = PrivateEngine::start_in(folder.path().join("engine"));
        run(tool().args(["build", "--load", "--host", &engine.host()])).succeeded();
        Self { engine, folder }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A container that waits for its challenge, with /in and /out in this directory.
    fn waiting(&self, scratch: &str, name: &str, image: &str) -> Waiting {
        let sides = ["in", "out"].map(|side| {
            let path = self.place(scratch).join(side);
            fs::create_dir_all(&path).unwrap();
            format!("type=bind,source={},target=/{side}", path.display())
        });
        let fixed = "run --detach --interactive --network none --ipc none --pids-limit 8";
        let mut arguments: Vec<&str> = fixed.split_whitespace().collect();
        for side in &sides {
            arguments.extend(["--mount", side]);
        }
        arguments.extend(["--name", name, image]);
        let id = self.engine.docker(&arguments);
        let format = "{{.GraphDriver.Data.MergedDir}}";
        let root = self.engine.docker(&["inspect", "-f", format, &id]);
        let state = "engine/containerd-state/io.containerd.runtime.v2.task/tki-test";
        let bundle = self.place(state).join(&id);
        let address = fs::read_to_string(bundle.join("address")).unwrap();
        let socket = address.strip_prefix("unix://").unwrap().into();
        let waiting = Waiting {
            id,
            root: root.into(),
            bundle,
            socket,
        };
        assert!(waiting.is_whole(), "{name}");
        waiting
    }

    /// Kills the engine, takes away what it has written down about these, and starts
    /// it again.
    fn forget(&mut self, all: &[&Waiting]) {
        self.engine.kill();
        for one in all {
            let written = self.place("engine/data/containers").join(&one.id);
            fs::remove_dir_all(written).unwrap();
        }
        self.engine.start_again();
        for one in all {
            assert!(one.is_whole(), "{}", one.id);
        }
    }

    fn clean(&self, arguments: &[&str]) -> String {
        let host = self.engine.host();
        let said = run(tool().args(["clean", "--host", &host]).args(arguments));
        said.succeeded();
        said.stdout
    }
}

struct Waiting {
    id: String,
    root: PathBuf,
    bundle: PathBuf,
    socket: PathBuf,
}

impl Waiting {
    fn shim(&self) -> Option<i32> {
        processes(&["-id", &self.id]).pop()
    }

    fn is_mounted(&self) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut points = table.lines().filter_map(|line| line.split(' ').nth(4));
        points.any(|point| Path::new(point) == self.root)
    }

    fn parts(&self) -> [bool; 4] {
        let group = Path::new("/sys/fs/cgroup/pids/docker").join(&self.id);
        [
            self.shim().is_some(),
            self.socket.exists(),
            group.exists(),
            self.is_mounted(),
        ]
    }

    /// Its shim, that one's socket, its control group and its mount are there.
    fn is_whole(&self) -> bool {
        self.parts() == [true; 4]
    }

    #[track_caller]
    fn is_gone(&self) {
        eventually("shim, socket, group and mount are gone", || {
            self.parts() == [false; 4] && !self.bundle.exists()
        });
    }

    /// As if it had been made in 2020.
    fn make_old(&self) {
        let folder = File::open(self.root.parent().unwrap()).unwrap();
        let long_ago = std::time::Duration::from_secs(1_577_836_800);
        folder.set_modified(UNIX_EPOCH + long_ago).unwrap();
    }

    /// The rows about its shim and about its mount.
    fn rows(&self, action: &str) -> [String; 2] {
        let layer = self.root.parent().unwrap().file_name().unwrap();
        [&self.id, layer.to_str().unwrap()]
            .map(|id| format!("{action:<13} container {} of run ", &id[..12]))
    }

    /// containerd puts away what a shim leaves, all but the name of its socket.
    fn end(self) {
        if let Some(shim) = self.shim().and_then(Pid::from_raw) {
            let _ = kill_process(shim, Signal::KILL);
        }
        eventually("containerd has put it away", || {
            !self.bundle.exists() && !self.parts()[2]
        });
        let _ = fs::remove_file(&self.socket);
    }
}

/// An image that a user has made from ours, for something else.
fn derived(docker: &Docker) -> &'static str {
    let file = docker.place("theirs");
    fs::write(&file, "foreign").unwrap();
    let on_engine = |arguments: &[&str]| docker.engine.docker(arguments);
    let id = on_engine(&["create", "--pids-limit=8", "--network=none", IMAGE]);
    on_engine(&["cp", file.to_str().unwrap(), &format!("{id}:/theirs")]);
    let entry = r#"ENTRYPOINT ["/tki-prober", "probe"]"#;
    on_engine(&["commit", "-c", entry, "-c", "CMD []", &id, "theirs"]);
    on_engine(&["rm", &id]);
    "theirs"
}

/// What the engine has written down about containers is taken away while it does not
/// run, so that it knows nothing of them.
#[test]
fn clean_ends_what_docker_has_forgotten_and_only_what_is_ours() {
    let _alone = whole_engine();
    let mut docker = Docker::new();
    let theirs = derived(&docker);
    let today: String = clock::rfc3339(clock::now())
        .to_lowercase()
        .replace(['-', ':'], "");
    let name = "tki-attest-20200101t000000z-00000001";
    let old = docker.waiting(name, name, IMAGE);
    let name = format!("tki-attest-{today}-00000002-network");
    let young = docker.waiting(&name, &name, IMAGE);
    let foreign = [
        // The image is another one, and so is the directory.
        docker.waiting("tki-attest-production", "postgres", theirs),
        docker.waiting("sandbox", "tki-attest-20200101t000000z-00000003", theirs),
    ];
    // All are listed, and none has our label.
    assert_eq!(docker.clean(&["--force"]), "nothing to clean\n");

    docker.forget(&[&old, &young, &foreign[0], &foreign[1]]);
    old.make_old();
    foreign.iter().for_each(Waiting::make_old);
    // Like one of ours in every respect but that it is known.
    let name = "tki-attest-20200101t000000z-00000004";
    let listed = docker.waiting(name, name, IMAGE);
    listed.make_old();

    let planned = docker.clean(&["--dry-run"]);
    let rows = [old.rows("would remove"), young.rows("kept (in use)")];
    for row in rows.as_flattened() {
        assert!(planned.contains(row), "{row}: {planned}");
    }
    assert_eq!(planned.lines().count(), 4, "{planned}");
    assert!(old.is_whole() && young.is_whole());

    // A mount that is in use stays.
    let used = File::open(old.root.join("tki-sandbox")).unwrap();
    let host = docker.engine.host();
    let said = run(tool().args(["clean", "--host", &host]));
    said.failed(3, "engine.busy");
    assert!(old.is_mounted());
    drop(used);

    docker.clean(&[]);
    old.is_gone();
    assert!(young.is_whole(), "its run may still live");
    docker.clean(&["--force"]);
    young.is_gone();
    assert_eq!(docker.clean(&["--force"]), "nothing to clean\n");
    assert!(listed.is_whole());
    docker.engine.docker(&["rm", "--force", &listed.id]);
    listed.is_gone();
    for one in foreign {
        assert!(one.is_whole());
        one.end();
    }
}
