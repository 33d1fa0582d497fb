//! Engines that are not there, not ours, too old or not engines.

use crate::common::proxy::{Proxy, Reaction, Request, Which};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{
    attest, docker, evidence_in, isolated, need, run, shared_engine, whole_engine,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn no_engine_is_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let (dead, out) = (folder.path().join("dead.sock"), folder.path().join("out"));
    // The file of a socket stays when its listener goes.
    drop(UnixListener::bind(&dead).unwrap());
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    for path in [
        Path::new("/nowhere/docker.sock"),
        &dead,
        &plain,
        folder.path(),
    ] {
        let host = format!("unix://{}", path.display());
        let said = attest(&out, &["--venue", "vps", "--host", &host]);
        said.failed(3, "engine.unreachable");
        assert!(said.stderr.contains(&host), "{said:?}");
        nothing_written(&out);
    }
    // A port of the loopback interface on which nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("tcp://{}", free.local_addr().unwrap());
    drop(free);
    attest(&out, &["--venue", "vps", "--host", &host]).failed(3, "engine.unreachable");
    nothing_written(&out);
}

#[test]
fn a_socket_without_permission_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let (binary, out) = (folder.path().join("tki-attest"), folder.path().join("out"));
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
    open(&binary, 0o755);
    fs::create_dir(&out).unwrap();
    open(&out, 0o777);
    let mut nobody = isolated(Path::new("setpriv"));
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    nobody
        .arg(&binary)
        .args(["run", "--engine", "docker", "--controls", "none"])
        .args(["--venue", "vps", "--out"])
        .arg(&out);
    let said = need("util-linux", &mut nobody);
    said.failed(3, "engine.permission");
    assert!(said.stderr.contains("docker.sock"), "{said:?}");
    nothing_written(&out);
}

/// A fake is right here: the engine itself has no read-only socket; those who
/// want one put a filtering proxy before it, as this does.
#[test]
fn a_read_only_socket_is_said_to_be_one() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let proxy = Proxy::with(|request| match request.method.as_str() {
        "GET" | "HEAD" => Reaction::Pass,
        _ => Reaction::Answer(403, "{\"message\":\"read-only\u{1b}[31m\"}"),
    });
    let said = attest(&out, &["--venue", "vps", "--host", &proxy.host()]);
    said.failed(3, "engine.read-only");
    assert!(said.stderr.contains("POST /"), "{said:?}");
    nothing_written(&out);
    nothing_left(&proxy);
}

/// A fake is right here: an engine this old does not run on this machine.
#[test]
fn an_old_engine_is_too_old() {
    let out = tempfile::tempdir().unwrap();
    let version = "{\"Version\":\"1.12.6\",\"ApiVersion\":\"1.24\",\"MinAPIVersion\":\"1.12\"}";
    let proxy = Proxy::with(move |_| Reaction::Answer(200, version));
    let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
    said.failed(3, "engine.too-old");
    assert!(
        said.stderr.contains("1.24") && said.stderr.contains("1.40"),
        "{said:?}"
    );
    nothing_written(out.path());
}

/// Fakes are right here: no engine answers like this.
#[test]
fn what_is_not_an_engine_is_not_taken_for_one() {
    let out = tempfile::tempdir().unwrap();
    type Answer = fn() -> Reaction;
    let cases: [(Answer, &str); 6] = [
        (
            || Reaction::Raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
            "engine.unreachable",
        ),
        (|| Reaction::Raw(b""), "engine.unreachable"),
        (
            || Reaction::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
            "engine.unreachable",
        ),
        (|| Reaction::Answer(200, "[1, 2"), "engine.unreachable"),
        (|| Reaction::Answer(200, "{}"), "engine.unreachable"),
        (
            || Reaction::Answer(500, "{\"message\":\"\\u001b[2Jno\"}"),
            "engine.refused",
        ),
    ];
    for (reaction, code) in cases {
        let proxy = Proxy::with(move |_| reaction());
        let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
        said.failed(3, code);
        nothing_written(out.path());
    }
    let proxy = Proxy::with(|_| Reaction::Silence);
    let host = proxy.host();
    let said = attest(
        out.path(),
        &["--venue", "vps", "--host", &host, "--timeout", "2"],
    );
    said.failed(3, "run.timeout");
    nothing_written(out.path());
}

/// The time limit is the whole run's: a control that hangs uses up the same one,
/// and is named.
#[test]
fn a_control_that_hangs_ends_with_the_runs_own_time_limit() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    // The run's own container is asked about first; what comes then are controls.
    let asked = AtomicUsize::new(0);
    let proxy = Proxy::with(move |request| {
        if request.is_inspect() && asked.fetch_add(1, Ordering::SeqCst) > 0 {
            Reaction::Silence
        } else {
            Reaction::Pass
        }
    });
    let host = proxy.host();
    let arguments = ["--venue", "vps", "--controls", "safe", "--timeout", "10"];
    let said = attest(out.path(), &[&arguments[..], &["--host", &host]].concat());
    said.failed(3, "run.timeout");
    assert!(said.stderr.contains("control "), "{said:?}");
    nothing_written(out.path());
    nothing_left(&proxy);
}

/// The engine answers at first, then no longer, at each request of a run.
#[test]
fn an_engine_that_is_lost_at_any_request_blocks_and_leaves_nothing() {
    let _engine = whole_engine();
    let before = Before::look();
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::plain();
    attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]).succeeded();
    let requests = proxy.log().len();
    assert!(requests >= 12, "{:?}", proxy.log());
    // The first two ask who is there at all.
    for lost in 2..requests {
        let out = tempfile::tempdir().unwrap();
        let count = std::sync::atomic::AtomicUsize::new(0);
        let proxy = Proxy::with(move |_| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if number == lost {
                return Reaction::Raw(b"");
            }
            Reaction::Pass
        });
        let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
        let at = proxy.log()[lost].clone();
        assert_eq!(said.status, 3, "{at}: {said:?}");
        let known = ["engine.vanished", "container.ended-early"];
        assert!(
            known.iter().any(|code| said.stderr.contains(code)),
            "{at}: {said:?}"
        );
        nothing_written(out.path());
        nothing_left(&proxy);
    }
    before.nothing_new();
}

/// The engine does what it is asked, but its answer does not arrive: what it
/// made is known by its name, and goes.
#[test]
fn an_answer_that_is_lost_leaves_no_container() {
    let _engine = whole_engine();
    let before = Before::look();
    let requests: [Which; 3] = [Request::is_create, Request::is_start, Request::is_inspect];
    for lost in requests {
        let out = tempfile::tempdir().unwrap();
        let proxy = Proxy::with(move |request| match lost(request) {
            true => Reaction::Lose,
            false => Reaction::Pass,
        });
        let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
        said.failed(3, "engine.vanished");
        nothing_written(out.path());
        nothing_left(&proxy);
    }
    before.nothing_new();
}

/// A rewritten answer is right here: Docker Desktop does not run on Linux
/// servers.
#[test]
fn a_developers_machine_may_not_pass_for_a_server() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let desktop = || {
        Proxy::with(|request| match request.is_info() {
            true => Reaction::Rewrite(|info| info["OperatingSystem"] = "Docker Desktop".into()),
            false => Reaction::Pass,
        })
    };
    for venue in ["vps", "ci"] {
        let proxy = desktop();
        let said = attest(&out, &["--venue", venue, "--host", &proxy.host()]);
        said.failed(3, "venue.implausible");
        assert_eq!(
            proxy.count(|request| request.method != "GET"),
            0,
            "{:?}",
            proxy.log()
        );
        nothing_written(&out);
    }
    let proxy = desktop();
    attest(&out, &["--venue", "dev", "--host", &proxy.host()]).succeeded();
    // And the party that edits the venue afterwards still has the facts against them.
    let path = evidence_in(&out);
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("\"venue\": \"dev\"", "\"venue\": \"vps\"");
    assert_ne!(text, edited);
    fs::write(&path, edited).unwrap();
    let said = run(crate::common::tool().arg("verify").arg(&path));
    assert_eq!(said.status, 1, "{said:?}");
    let venue = said
        .stdout
        .lines()
        .find(|line| line.contains("EV-VENUE"))
        .unwrap();
    assert!(
        venue.starts_with("BLOCKED") && venue.contains("Docker Desktop"),
        "{venue}"
    );
}

#[test]
fn an_address_of_another_kind_is_a_usage_error() {
    let out = tempfile::tempdir().unwrap();
    for host in [
        "npipe:////./pipe/docker_engine",
        "/var/run/docker.sock",
        "x",
    ] {
        let said = attest(out.path(), &["--venue", "vps", "--host", host]);
        said.failed(2, "engine.address");
        assert!(said.stderr.contains(host), "{said:?}");
        nothing_written(out.path());
    }
    let host = "ssh://root:secret@127.0.0.1";
    let said = attest(out.path(), &["--venue", "vps", "--host", host]);
    said.failed(2, "engine.address");
    assert!(!said.stderr.contains("secret"), "{said:?}");
}

/// The engine refuses: here because the name is taken, in life for any reason.
#[test]
fn an_engine_that_refuses_is_quoted() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::with(|request| {
        if request.is_create() {
            let name = request.target.split("name=").nth(1).unwrap_or_default();
            let name = name.split('&').next().unwrap_or_default();
            docker(&[
                "create",
                "--pids-limit=8",
                "--name",
                name,
                "tki-inspector:attest",
            ]);
        }
        Reaction::Pass
    });
    run(crate::common::tool().args(["build", "--load"])).succeeded();
    let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
    said.failed(3, "engine.refused");
    assert!(said.stderr.contains("(HTTP 409)"), "{said:?}");
    // A container of that name which is not ours stays: it has no label.
    for id in proxy.run_ids() {
        let name = format!("tki-attest-{id}");
        assert_eq!(
            docker(&["inspect", "-f", "{{.State.Status}}", &name]),
            "created"
        );
        let _ = Command::new("docker").args(["rm", "-f", &name]).output();
    }
    nothing_written(out.path());
    nothing_left(&proxy);
}
