//! What only looks like a part of ours: `clean` and the janitor end and remove none of it,
//! nor anything of the containers that it names.

use super::{Held, send};
use crate::common::impostor::{self, Bystanders, Impostor};
use crate::common::podman::{Storage, podman, whole_podman};
use crate::common::proxy::Request;
use crate::common::{
    ENGINE_SOCKET, NOBODY, attest, docker, eventually, evidence_in, read_json, run, tool,
    whole_engine,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A run of which nothing can be in use any more.
const RUN: &str = "20200101t000000z-0badc0de";

/// Arguments of `docker` and `podman` that keep a container small.
const SMALL: [&str; 3] = ["--network=none", "--pids-limit=16", "--memory=64m"];

/// A process that calls itself what it is not; ended when dropped.
struct Forged {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Forged {
    /// `su`, which waits for a password, by another name: an unprivileged user's process
    /// that the kernel shows as root's, because the program has the set-user-id bit.
    fn by_su(name: &str, words: &[&str], folder: tempfile::TempDir) -> Self {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join(name);
        symlink("/bin/su", &program).unwrap();
        let mut command = Command::new(&program);
        command.args(words);
        Self::start(command, folder)
    }

    /// A shell script by that name, of an unprivileged user's.
    fn by_script(name: &str, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join(name);
        fs::write(&program, "#!/bin/sh\nread word\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(&program);
        command.args(words);
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: tempfile::TempDir) -> Self {
        let child = command
            .current_dir(folder.path())
            .uid(NOBODY)
            .gid(NOBODY)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        let name = command.get_program().to_string_lossy().into_owned();
        let name = name.rsplit('/').next().unwrap().to_owned();
        eventually("it has its name", || {
            fs::read_to_string(&comm).unwrap_or_default().trim() == name
        });
        Self {
            child,
            _folder: folder,
        }
    }

    #[track_caller]
    fn still_runs(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "it was ended");
    }
}

impl Drop for Forged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a monitor of a run of ours would be started with, for this container. Words that
/// `su` is to leave alone come after `--`.
fn monitor_words(id: &str, run: &str) -> Vec<String> {
    let root = podman(&["info", "--format", "{{.Store.GraphRoot}}"]);
    let words = ["-c", id, "root", "--", "-b", &root, "-n"];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.push(format!("tki-attest-{run}"));
    words
}

/// A directory as a shim of a run of ours would be in, and the words of its command line.
fn shim(id: &str, run: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let root = docker(&["info", "-f", "{{.DockerRootDir}}"]);
    let side = |side: &str| {
        let source = format!("/run/tki-attest-{run}/{side}");
        json!({"destination": format!("/{side}"), "source": source})
    };
    let config = json!({
        "process": {"args": ["/tki-prober", "probe"]},
        "root": {"path": format!("{root}/overlay2/x/merged")},
        "mounts": [side("in"), side("out")],
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let words = [
        "root",
        "--",
        "-namespace",
        "moby",
        "-id",
        id,
        "-address",
        "/x",
    ];
    (folder, words.map(str::to_owned).into())
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// A container of Podman's that another party needs; removed when dropped.
struct Production {
    storage: Storage,
    id: String,
}

impl Production {
    fn new() -> Self {
        let storage = Storage::new();
        load(&storage, &Impostor::new("hang"), "production:1");
        let arguments = [&["run", "-d"][..], &SMALL, LIMITS, &["production:1"]].concat();
        let id = storage.podman(&arguments);
        Self { storage, id }
    }

    fn is_running(&self) -> bool {
        let format = "{{.State.Running}}";
        self.storage.podman(&["inspect", "-f", format, &self.id]) == "true"
    }
}

impl Drop for Production {
    fn drop(&mut self) {
        let mut remove = self.storage.on(Command::new("podman"));
        let _ = remove.args(["rm", "--force", &self.id]).output();
    }
}

/// Podman asks for more than this machine's root may give.
const LIMITS: &[&str] = &["--ulimit=nofile=64:64", "--ulimit=nproc=64:64"];

/// Loads an impostor's image into a storage of Podman's.
fn load(storage: &Storage, impostor: &Impostor, tag: &str) {
    let archive: PathBuf = storage.folder.join("image.tar");
    let mut build = tool();
    build.arg("build").args(impostor.arguments());
    run(build.args(["--tag", tag, "--archive"]).arg(&archive)).succeeded();
    storage.podman(&["load", "-q", "-i", archive.to_str().unwrap()]);
}

fn running(id: &str) -> bool {
    docker(&["inspect", "-f", "{{.State.Running}}", id]) == "true"
}

fn clean(arguments: &[&str]) -> String {
    let said = run(tool().arg("clean").args(arguments));
    said.succeeded();
    said.stdout
}

#[test]
fn a_forged_monitor_ends_no_container_of_dockers() {
    let _alone = (whole_engine(), whole_podman());
    let bystanders = Bystanders::new();
    let id = docker(&["inspect", "-f", "{{.Id}}", &bystanders.running()]);
    let all = monitor_words(&id, RUN);
    let mut forged = [
        Forged::by_su("conmon", &words(&all), tempfile::tempdir().unwrap()),
        Forged::by_script("conmon", &words(&all)),
    ];
    for arguments in [
        &["--engine", "podman"][..],
        &["--engine", "podman", "--force"],
    ] {
        let said = clean(arguments);
        assert!(!said.contains(&id[..12]), "{said}");
        assert!(running(&id));
        forged.iter_mut().for_each(Forged::still_runs);
    }
}

/// A container's root is root, and its processes are called what it wants.
#[test]
fn a_forged_monitor_in_a_container_ends_no_other_container() {
    let _alone = (whole_engine(), whole_podman());
    let bystanders = Bystanders::new();
    let id = docker(&["inspect", "-f", "{{.Id}}", &bystanders.running()]);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("conmon");
    fs::copy(impostor::program(), &program).unwrap();
    let mount = format!("type=bind,source={},target=/conmon", program.display());
    let name = format!("tki-test-forged-{}", std::process::id());
    let fixed = ["run", "-d", "--user=0", "--entrypoint=/conmon"];
    let image = bystanders.image();
    let own = ["--mount", &mount, "--name", &name, &image];
    let all = monitor_words(&id, RUN);
    let forged = docker(&[&fixed[..], &SMALL, &own, &words(&all)].concat());
    let said = clean(&["--engine", "podman"]);
    let both = [running(&id), running(&forged)];
    docker(&["rm", "-f", &forged]);
    assert_eq!(both, [true; 2], "{said}");
    assert!(!said.contains(&id[..12]), "{said}");
}

#[test]
fn a_forged_shim_ends_no_container_of_podmans() {
    let _alone = (whole_engine(), whole_podman());
    let production = Production::new();
    let (folder, all) = shim(&production.id, RUN);
    let mut forged = Forged::by_su("containerd-shim", &words(&all), folder);
    for arguments in [&["--engine", "docker"][..], &["--force"]] {
        let said = clean(arguments);
        assert!(!said.contains(&production.id[..12]), "{said}");
        assert!(production.is_running());
        forged.still_runs();
    }
}

/// The janitor tidies up after its own run, whose id everybody sees.
#[test]
fn the_janitor_of_a_killed_run_ends_no_container_that_somebody_names() {
    let _alone = (whole_engine(), whole_podman());
    let production = Production::new();
    let out = tempfile::tempdir().unwrap();
    let held = Held::at(Request::is_start, Path::new(ENGINE_SOCKET), out.path());
    let name = held.container();
    let (folder, all) = shim(&production.id, name.strip_prefix("tki-attest-").unwrap());
    let mut forged = Forged::by_su("containerd-shim", &words(&all), folder);
    let asked = held.proxy.count(Request::is_info);
    send(&held.child, Signal::KILL);
    held.child.wait_with_output().unwrap();
    eventually("the janitor has looked, and removed the container", || {
        let filter = format!("name=^{name}$");
        held.proxy.count(Request::is_info) > asked
            && docker(&["ps", "-aq", "--filter", &filter]).is_empty()
    });
    eventually("the janitor is gone", || {
        crate::common::podman::processes(&[
            "internal-janitor",
            "--engine",
            "auto",
            "--host",
            &held.proxy.host(),
        ])
        .is_empty()
    });
    assert!(production.is_running());
    forged.still_runs();
}

/// An image gives its labels to every container: this one's are another party's production, with
/// what they have in a volume.
#[test]
fn an_image_that_carries_our_label_costs_nobody_a_container_or_a_volume() {
    let _alone = whole_engine();
    let production = Labelled::new();
    let before = production.described();
    for arguments in [&[][..], &["--force"], &["--engine", "docker", "--force"]] {
        let said = clean(arguments);
        let row = format!(
            "kept (not ours) container {} of run x",
            &production.id[..12]
        );
        assert!(said.contains(&row), "{said}");
        assert_eq!(production.described(), before);
    }
    // What is not ours is in the inventory.
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "vps"]).succeeded();
    let evidence = read_json(&evidence_in(out.path()));
    for when in ["before", "after"] {
        let held = &evidence["inventory"][when]["containers"];
        let held: Vec<&Value> = held.as_array().unwrap().iter().collect();
        assert!(
            held.contains(&&production.id.as_str().into()),
            "{when}: {held:?}"
        );
    }
}

/// The same on Podman.
#[test]
fn podman_keeps_a_container_and_a_volume_of_an_image_that_carries_our_label() {
    let _alone = (whole_engine(), whole_podman());
    let storage = Storage::new();
    let impostor = Impostor::new("hang");
    load(&storage, &impostor, "theirs:1");
    let made = storage.podman(&[&["create"][..], &SMALL, LIMITS, &["theirs:1"]].concat());
    let changes = CHANGES.map(|change| ["-c", change]).concat();
    storage.podman(&[&["commit", "-q"][..], &changes, &[&made, "theirs:2"]].concat());
    let id = storage.podman(&[&["run", "-d"][..], &SMALL, LIMITS, &["theirs:2"]].concat());
    let volumes = || storage.podman(&["volume", "ls", "-q"]);
    let (before, list) = (volumes(), || storage.podman(&["ps", "-aq", "--no-trunc"]));
    let (containers, mut said) = (list(), Vec::new());
    for arguments in [&[][..], &["--force"]] {
        let mut command = storage.on(tool());
        let clean = run(command
            .args(["clean", "--engine", "podman"])
            .args(arguments));
        said.push((clean.status, clean.stdout, volumes(), list()));
    }
    let out = tempfile::tempdir().unwrap();
    let mut command = storage.on(tool());
    let attested = run(command
        .args([
            "run",
            "--venue",
            "vps",
            "--controls",
            "none",
            "--engine",
            "podman",
        ])
        .args(["--runtime", "runc", "--out"])
        .arg(out.path()));
    storage.podman(&["rm", "--force", "--volumes", &id, &made]);
    for (status, rows, volumes, list) in said {
        let row = format!("kept (not ours) container {} of run x", &id[..12]);
        assert!(status == 0 && rows.contains(&row), "{rows}");
        assert_eq!((&volumes, &list), (&before, &containers));
    }
    attested.succeeded();
    let evidence = read_json(&evidence_in(out.path()));
    let held = evidence["inventory"]["after"]["containers"].to_string();
    assert!(held.contains(&id), "{held}");
}

/// What an image of another party's says about its containers.
const CHANGES: [&str; 2] = ["LABEL dev.tki.attest.run=x", "VOLUME /data"];

/// A running container of an image with our label and a volume, on Docker; removed when
/// dropped.
struct Labelled {
    id: String,
    volume: String,
    tag: String,
    _impostor: Impostor,
}

impl Labelled {
    fn new() -> Self {
        let impostor = Impostor::new("hang");
        let name = format!("tki-theirs-{}", std::process::id());
        let [plain, tag] = [1, 2].map(|number| format!("{name}:{number}"));
        let mut build = tool();
        build.arg("build").args(impostor.arguments());
        run(build.args(["--load", "--tag", &plain])).succeeded();
        let made = docker(&[&["create"][..], &SMALL, &[&plain]].concat());
        let changes = CHANGES.map(|change| ["-c", change]).concat();
        docker(&[&["commit"][..], &changes, &[&made, &tag]].concat());
        docker(&["rm", "-v", &made]);
        docker(&["rmi", &plain]);
        let id = docker(&[&["run", "-d"][..], &SMALL, &[&tag]].concat());
        let volume = docker(&["inspect", "-f", "{{(index .Mounts 0).Name}}", &id]);
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::write(&data, "theirs").unwrap();
        docker(&["cp", data.to_str().unwrap(), &format!("{id}:/data/file")]);
        Self {
            id,
            volume,
            tag,
            _impostor: impostor,
        }
    }

    /// It runs, and the volume has what was put there.
    fn described(&self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        docker(&[
            "cp",
            &format!("{}:/data/file", self.id),
            copy.to_str().unwrap(),
        ]);
        [
            docker(&["container", "inspect", &self.id]),
            docker(&["volume", "inspect", &self.volume]),
            fs::read_to_string(copy).unwrap(),
        ]
        .join("\n")
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        for arguments in [
            format!("rm -f {}", self.id),
            format!("volume rm -f {}", self.volume),
            format!("rmi -f {}", self.tag),
        ] {
            let _ = Command::new("docker").args(arguments.split(' ')).output();
        }
    }
}
