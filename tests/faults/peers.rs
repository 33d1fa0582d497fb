//! Sockets of other users. Root that talks to one is told what to believe, and what to
//! read, by a user who is not root.

use crate::common::podman::{shared_podman, whole_podman};
use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::nothing_written;
use crate::common::user::OtherUser;
use crate::common::{
    Daemon, attest, eventually, evidence_in, need, read_json, run, shared_engine, tool,
};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Stdio;

/// A program of another user's that listens and keeps what it is told.
const LISTEN: &str = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listener.listen(64)
while True:
    caller, _ = listener.accept()
    with open(sys.argv[2], 'ab') as heard:
        heard.write(caller.recv(65536))
    caller.close()
";

/// The user, who listens where Podman's service would, and what the user heard.
fn listening(user: &OtherUser) -> (Daemon, std::path::PathBuf, std::path::PathBuf) {
    let folder = user.path("runtime/podman");
    let made = run(user.command(Path::new("mkdir")).arg(&folder));
    made.succeeded();
    let (socket, heard) = (folder.join("podman.sock"), folder.join("heard"));
    let child = user
        .command(Path::new("/usr/bin/python3"))
        .args(["-c", LISTEN])
        .args([&socket, &heard])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let daemon = Daemon(child);
    eventually("it listens", || {
        fs::metadata(&socket).is_ok_and(|socket| socket.mode() & 0o777 == 0o666)
    });
    (daemon, socket, heard)
}

#[track_caller]
fn was_told_nothing(heard: &Path) {
    let heard = fs::read(heard).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&heard), "");
}

#[test]
fn an_address_that_is_another_users_is_refused_before_a_word() {
    let user = OtherUser::new();
    let (_daemon, socket, heard) = listening(&user);
    let uid = fs::metadata(&socket).unwrap().uid();
    let host = format!("unix://{}", socket.display());
    let out = tempfile::tempdir().unwrap();
    for engine in ["docker", "podman", "auto"] {
        let given = ["--venue", "dev", "--engine", engine];
        let by_flag = attest(out.path(), &[&given[..], &["--host", &host]].concat());
        let mut by_variable = tool();
        by_variable.args(["clean", "--engine", engine]);
        let by_variable = run(by_variable.env("DOCKER_HOST", &host));
        for said in [by_flag, by_variable] {
            said.failed(3, "engine.peer");
            assert!(said.stderr.contains(&host), "{said:?}");
            assert!(
                said.stderr.contains(&format!("run as uid {uid}")),
                "{said:?}"
            );
        }
        nothing_written(out.path());
    }
    let said = run(tool()
        .args(["clean", "--engine", "podman"])
        .env("CONTAINER_HOST", &host));
    said.failed(3, "engine.peer");
    was_told_nothing(&heard);
}

/// `sudo -E` and `su` keep the runtime directory of the user before.
#[test]
fn a_runtime_directory_of_another_users_is_passed_over() {
    let _podman = shared_podman();
    let user = OtherUser::new();
    let (_daemon, socket, heard) = listening(&user);
    let out = tempfile::tempdir().unwrap();
    let said = run(tool()
        .args([
            "run",
            "--venue",
            "dev",
            "--engine",
            "podman",
            "--controls",
            "none",
            "--out",
        ])
        .arg(out.path())
        .env("XDG_RUNTIME_DIR", user.path("runtime")));
    said.succeeded();
    let (note, host) = ("it is not used", socket.display().to_string());
    assert!(
        said.stderr.contains(note) && said.stderr.contains(&host),
        "{said:?}"
    );
    let evidence = read_json(&evidence_in(out.path()));
    assert_eq!(evidence["runtime"]["engine"], "podman");
    assert_eq!(evidence["runtime"]["rootless"], false);
    was_told_nothing(&heard);
}

/// Root listens, but the file is another user's: who else has a hand in it is not known.
#[test]
fn a_socket_that_is_another_users_is_refused_whoever_listens() {
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::with(|_| Reaction::Silence);
    chown(proxy.path(), Some(crate::common::NOBODY), None).unwrap();
    let said = attest(out.path(), &["--venue", "dev", "--host", &proxy.host()]);
    said.failed(3, "engine.peer");
    assert!(said.stderr.contains("the socket at"), "{said:?}");
    assert_eq!(proxy.log(), []);
    nothing_written(out.path());
}

/// A user who may use root's engine is nobody's victim: root is who listens.
#[test]
fn roots_engine_is_anybodys_who_may_use_it() {
    let _engine = shared_engine();
    let user = OtherUser::new();
    let mut command = user.command(&user.path("tki-attest"));
    let socket = Path::new(crate::common::ENGINE_SOCKET);
    let group = fs::metadata(socket).unwrap().gid().to_string();
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = {
        let mut with_group = crate::common::isolated(Path::new("setpriv"));
        let words = words.iter().map(|word| match word.to_str() {
            Some("--init-groups") => format!("--groups={group}").into(),
            _ => word.clone(),
        });
        with_group
            .args(words)
            .env("XDG_RUNTIME_DIR", user.path("runtime"));
        with_group
    };
    let said = need(
        "util-linux",
        command.args(["clean", "--engine", "docker", "--dry-run"]),
    );
    said.succeeded();
}

/// An engine names the file that it says describes the container. A rewritten answer is
/// right here: Podman does not lie about it. It may be on another machine, though, behind
/// a socket that is forwarded, where the same path is another file.
#[test]
fn no_file_becomes_evidence_because_an_engine_named_it() {
    let _podman = whole_podman();
    let service = crate::common::podman::PodmanService::start("runc");
    // As another container's would be: it has what a description needs, and a secret.
    let production = "/run/tki-production-config.json";
    fs::write(
        production,
        r#"{"process":{"user":{"uid":0,"gid":0},"env":["PASSWORD=hunter2"]},"root":{},"linux":{}}"#,
    )
    .unwrap();
    let proxy = Proxy::before(&service.socket(), |request| match request.is_inspect() {
        true => Reaction::Rewrite(|told| {
            told["OCIConfigPath"] = "/run/tki-production-config.json".into();
        }),
        false => Reaction::Pass,
    });
    let out = tempfile::tempdir().unwrap();
    let said = attest(
        out.path(),
        &[
            "--venue",
            "dev",
            "--engine",
            "podman",
            "--host",
            &proxy.host(),
        ],
    );
    fs::remove_file(production).unwrap();
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains(production), "{said:?}");
    assert!(!said.stderr.contains("hunter2"), "{said:?}");
    nothing_written(out.path());
}
