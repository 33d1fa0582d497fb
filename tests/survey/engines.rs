//! Engines of this host, and those that cannot be used.

use super::{calls, surface, survey, survey_json};
use crate::common::podman::{shared_podman, whole_podman};
use crate::common::proxy::{Proxy, Reaction, Request};
use crate::common::ssh_server::SshServer;
use crate::common::traces::{Before, nothing_left};
use crate::common::{eventually, isolated, need, run, said, shared_engine, tool, whole_engine};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

/// The arguments that look at one engine only.
fn only(host: &str) -> [&str; 3] {
    ["--only-hosts", "--host", host]
}

#[test]
fn every_engine_of_this_host_is_found_and_probed() {
    let _engine = whole_engine();
    let _podman = whole_podman();
    let before = Before::look();
    let found = survey_json(&["--timeout", "120"], 0);
    assert_eq!(found["schema"], "tki-attest/survey/v1");
    assert_eq!(found["verdict"], "ROUTE_AVAILABLE");
    assert_eq!(found["route"]["engine"], "docker");
    assert_eq!(found["route"]["venue"], "vps");
    for name in [
        "Docker Engine at unix:///var/run/docker.sock",
        "Podman, rootful",
    ] {
        let row = surface(&found, name);
        assert_eq!(row["decision"], "use", "{row}");
        assert_eq!(row["can_run"]["answer"], "yes", "{row}");
        let calls = calls(row);
        for wanted in [
            "GET /_ping → 200",
            "GET /version → 200",
            "/containers/create → 201",
        ] {
            assert!(calls.contains(wanted), "{wanted}: {calls}");
        }
        // It is gone, and the engine says so.
        assert!(calls.contains("/json → 404"), "{calls}");
    }
    for name in ["Embedded engine", "bubblewrap"] {
        let row = surface(&found, name);
        assert_eq!(row["decision"], "use", "{row}");
        assert!(calls(row).contains("exit 0: SANDBOX_ATTESTED"), "{row}");
    }
    let embedded = calls(surface(&found, "Embedded engine"));
    for need in [
        "max_user_namespaces",
        "actions_avail",
        "lsm",
        "/proc/self/ns",
        "cgroup",
    ] {
        assert!(embedded.contains(need), "{need}: {embedded}");
    }
    assert!(calls(surface(&found, "OCI runtimes")).contains("runc version"));
    assert_eq!(surface(&found, "CI job")["decision"], "absent");
    assert_eq!(surface(&found, "Human operator")["decision"], "prepare");
    assert_eq!(surface(&found, "GitHub Actions")["decision"], "prepare");
    // Every row has every column.
    for row in found["surfaces"].as_array().unwrap() {
        for column in [
            "surface",
            "venue_type",
            "approved",
            "can_run",
            "can_write_files",
            "can_collect_logs",
            "production_risk",
            "permission_gap",
            "decision",
            "evidence",
        ] {
            assert!(!row[column].is_null(), "{column}: {row}");
        }
    }
    before.nothing_new();
}

#[test]
fn the_route_of_a_survey_works_as_it_stands() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::plain();
    let found = survey_json(&only(&proxy.host()), 0);
    let command = found["route"]["command"].as_str().unwrap();
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("tki-attest"));
    let said = run(tool()
        .args(words)
        .args(["--controls", "none"])
        .current_dir(folder.path()));
    said.succeeded();
    assert!(folder.path().join("reports").is_dir());
}

#[test]
fn a_container_is_created_never_started_and_removed() {
    let _engine = whole_engine();
    let proxy = Proxy::plain();
    let found = survey_json(&only(&proxy.host()), 0);
    let row = surface(&found, "Docker Engine");
    assert_eq!(row["decision"], "use", "{row}");
    assert_eq!(proxy.count(Request::is_create), 1);
    assert_eq!(proxy.count(Request::is_start), 0, "{:?}", proxy.log());
    assert_eq!(proxy.count(|request| request.method == "DELETE"), 1);
    assert_eq!(proxy.run_ids().len(), 1);
    nothing_left(&proxy);
}

#[test]
fn read_only_asks_and_makes_nothing() {
    let _engine = shared_engine();
    let proxy = Proxy::plain();
    let host = proxy.host();
    let arguments = [&only(&host)[..], &["--read-only"]].concat();
    let found = survey_json(&arguments, 3);
    assert_eq!(found["verdict"], "B4_PRIME_OPERATOR_ACTION_REQUIRED");
    assert!(
        found["next"].as_str().unwrap().contains("--read-only"),
        "{found}"
    );
    assert_eq!(
        proxy.count(|request| request.method != "GET"),
        0,
        "{:?}",
        proxy.log()
    );
    // Neither a file nor a service, nor a run of the engines without a daemon.
    let folder = tempfile::tempdir().unwrap();
    let said = run(tool()
        .args(["survey", "--read-only", "--format", "json"])
        .env("TMPDIR", folder.path()));
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    for name in ["Podman, rootful", "Embedded engine", "bubblewrap"] {
        let row = surface(&found, name);
        assert_eq!(row["can_run"]["answer"], "not-tried", "{row}");
    }
    let row = surface(&found, "This host");
    assert_eq!(row["can_write_files"]["answer"], "not-tried", "{row}");
}

/// A fake is right here: the engine itself has no read-only socket.
#[test]
fn a_read_only_socket_can_be_inspected_and_no_more() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let packet = folder.path().join("packet.md");
    let proxy = Proxy::with(|request| match request.method.as_str() {
        "GET" | "HEAD" => Reaction::Pass,
        _ => Reaction::Answer(403, "{\"message\":\"read-only\u{1b}[31m\"}"),
    });
    let host = proxy.host();
    let arguments = [&only(&host)[..], &["--packet", packet.to_str().unwrap()]].concat();
    let found = survey_json(&arguments, 3);
    assert_eq!(found["verdict"], "B4_PRIME_OPERATOR_ACTION_REQUIRED");
    assert_eq!(found["route"], Value::Null);
    let row = surface(&found, "Docker Engine");
    assert_eq!(row["decision"], "inspect-only", "{row}");
    assert_eq!(row["can_run"]["answer"], "no");
    assert!(
        row["can_run"]["why"].as_str().unwrap().contains("403"),
        "{row}"
    );
    assert!(
        calls(row).contains("POST /containers/create → 403"),
        "{row}"
    );
    assert!(
        found["next"].as_str().unwrap().contains("an operator"),
        "{found}"
    );
    let text = fs::read_to_string(&packet).unwrap();
    assert!(text.contains("B4_PRIME_OPERATOR_ACTION_REQUIRED"), "{text}");
    assert!(text.contains("create answered 403"), "{text}");
    // For a person, the verdict and the offer.
    let said = survey(&only(&host));
    assert_eq!(said.status, 3);
    assert!(
        said.stdout
            .contains("\nB4_PRIME_OPERATOR_ACTION_REQUIRED\n  next: "),
        "{said:?}"
    );
    assert!(said.stderr.contains("packet --for operator"), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'));
    nothing_left(&proxy);
}

/// A rewritten answer is right here: Docker Desktop does not run on Linux
/// servers.
#[test]
fn docker_desktop_is_for_development_only() {
    let _engine = shared_engine();
    let proxy = Proxy::with(|request| match request.is_info() {
        true => Reaction::Rewrite(|info| info["OperatingSystem"] = "Docker Desktop".into()),
        false => Reaction::Pass,
    });
    let found = survey_json(&only(&proxy.host()), 3);
    assert_eq!(found["verdict"], "B4_PRIME_OPERATOR_ACTION_REQUIRED");
    let row = surface(&found, "Docker Engine");
    assert_eq!(row["decision"], "development-only", "{row}");
    assert!(
        row["approved"].as_str().unwrap().contains("Docker Desktop"),
        "{row}"
    );
    nothing_left(&proxy);
}

#[test]
fn what_does_not_answer_as_an_engine_is_rejected_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let nowhere = folder.path().join("nowhere");
    for (path, decision, why) in [
        (&dead, "reject", "Connection refused"),
        (&plain, "reject", "Connection refused"),
        (&nowhere, "absent", "No such file"),
    ] {
        let host = format!("unix://{}", path.display());
        let found = survey_json(&only(&host), 3);
        let row = surface(&found, "Docker Engine");
        assert_eq!(row["decision"], decision, "{row}");
        assert!(calls(row).contains(why), "{row}");
    }
    let cases: [(&'static [u8], &str); 4] = [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (b"", "it ended in the middle"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK",
            "no engine",
        ),
        (
            b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\n\x1b[2J",
            "HTTP 500",
        ),
    ];
    for (answer, why) in cases {
        let proxy = Proxy::with(move |_| Reaction::Raw(answer));
        let found = survey_json(&only(&proxy.host()), 3);
        let row = surface(&found, "Docker Engine");
        assert_eq!(row["decision"], "reject", "{row}");
        assert!(
            row["can_run"]["why"].as_str().unwrap().contains(why),
            "{row}"
        );
    }
}

/// Nobody answers for ever; the time limit ends it, and the rest is told.
#[test]
fn an_engine_that_hangs_costs_its_own_row_only() {
    let proxy = Proxy::with(|_| Reaction::Silence);
    let host = proxy.host();
    let found = survey_json(&[&only(&host)[..], &["--timeout", "1"]].concat(), 3);
    let row = surface(&found, "Docker Engine");
    assert!(
        row["can_run"]["why"]
            .as_str()
            .unwrap()
            .contains("time limit"),
        "{row}"
    );
    assert_eq!(
        surface(&found, "This host")["can_write_files"]["answer"],
        "yes"
    );
}

#[test]
fn a_socket_without_permission_says_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let binary = folder.path().join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
    open(&binary, 0o755);
    let mut nobody = isolated(Path::new("setpriv"));
    nobody
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["survey", "--format", "json"])
        .args(only("unix:///var/run/docker.sock"));
    let said = need("util-linux", &mut nobody);
    assert_eq!(said.status, 3, "{said:?}");
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    let row = surface(&found, "Docker Engine");
    assert_eq!(row["decision"], "reject", "{row}");
    assert!(
        calls(row).contains("not writable: Permission denied"),
        "{row}"
    );
    assert!(
        calls(row).contains("GET /_ping → connect: Permission denied"),
        "{row}"
    );
    assert!(
        found["next"]
            .as_str()
            .unwrap()
            .contains("member of the group"),
        "{found}"
    );
}

/// The engine made the container, and nobody heard it.
#[test]
fn a_lost_answer_leaves_no_container() {
    let _engine = whole_engine();
    let proxy = Proxy::with(|request| match request.is_create() {
        true => Reaction::Lose,
        false => Reaction::Pass,
    });
    let found = survey_json(&only(&proxy.host()), 3);
    let row = surface(&found, "Docker Engine");
    assert_eq!(row["can_run"]["answer"], "no", "{row}");
    assert_eq!(proxy.run_ids().len(), 1);
    nothing_left(&proxy);
}

#[test]
fn a_signal_ends_a_survey_and_leaves_nothing() {
    let _engine = whole_engine();
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let proxy = Proxy::with(|request| match request.is_create() {
            true => Reaction::Silence,
            false => Reaction::Pass,
        });
        let child = tool()
            .arg("survey")
            .args(only(&proxy.host()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        eventually("create is asked", || proxy.count(Request::is_create) == 1);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = said(child.wait_with_output().unwrap());
        said.failed(3, "run.interrupted");
        assert!(said.stderr.contains(name), "{said:?}");
        nothing_left(&proxy);
    }
}

#[test]
fn podmans_socket_is_known_as_podmans() {
    let _podman = shared_podman();
    let service = crate::common::podman::PodmanService::start("runc");
    let found = survey_json(&only(&service.host()), 0);
    let row = surface(&found, "Podman at unix://");
    assert_eq!(row["decision"], "use", "{row}");
    assert_eq!(found["route"]["engine"], "podman");
}

/// A real server on the loopback interface: the engine behind it is this host's.
#[test]
fn an_engine_behind_ssh_is_asked_what_it_is_and_for_nothing_else() {
    let _engine = shared_engine();
    let server = SshServer::start("");
    let url = server.url();
    let ask = |config: &Path| {
        let arguments = ["--ssh-config", config.to_str().unwrap()];
        let found = survey_json(&[&only(&url)[..], &arguments].concat(), 3);
        surface(&found, "Engine behind ssh://").clone()
    };
    // Whatever the user's configuration would start or leave open.
    let (master, marker) = (
        server.folder().join("master"),
        server.folder().join("marker"),
    );
    let more = format!(
        "ControlMaster auto\nControlPersist 600\nControlPath {}\nPermitLocalCommand yes\n\
         LocalCommand touch {}\nRemoteCommand touch {}\nRequestTTY force\n",
        master.display(),
        marker.display(),
        marker.display()
    );
    let row = ask(&server.config("user", true, &more));
    assert_eq!(row["decision"], "prepare", "{row}");
    assert_eq!(row["can_run"]["answer"], "not-tried", "{row}");
    let text = calls(&row);
    for wanted in [
        "→ exit 0: Linux ",
        "\\ndocker ",
        " containers\\npodman version ",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!master.exists() && !marker.exists());
    // A server that is not known is not spoken to, and a stranger is not let in.
    for (key, known, why) in [
        ("user", false, "Host key verification failed"),
        ("stranger", true, "Permission denied (publickey)"),
    ] {
        let row = ask(&server.config(key, known, ""));
        assert_eq!(row["decision"], "reject", "{row}");
        assert!(calls(&row).contains(why), "{row}");
    }
}

/// The party over there may say anything, for ever.
#[test]
fn what_comes_back_through_ssh_is_bounded_and_printable() {
    let server = SshServer::start("ForceCommand printf '\\033[31m'; yes token=abc\n");
    let url = server.url();
    let config = server.config("user", true, "");
    let more = ["--timeout", "2", "--ssh-config", config.to_str().unwrap()];
    let found = survey_json(&[&only(&url)[..], &more].concat(), 3);
    let row = surface(&found, "Engine behind ssh://");
    assert_eq!(row["decision"], "reject", "{row}");
    assert!(calls(row).contains("time limit"), "{row}");
    let server = SshServer::start("ForceCommand printf '\\033[31m token=abc'\n");
    let url = server.url();
    let config = server.config("user", true, "");
    let more = ["--ssh-config", config.to_str().unwrap()];
    let found = survey_json(&[&only(&url)[..], &more].concat(), 3);
    let text = calls(surface(&found, "Engine behind ssh://"));
    assert!(text.contains("token=[redacted]"), "{text}");
}

/// A context is a user's configuration, not a wish to be contacted now.
#[test]
fn a_context_on_another_host_is_named_and_not_contacted() {
    let _engine = shared_engine();
    let _podman = shared_podman();
    let folder = tempfile::tempdir().unwrap();
    let meta = folder.path().join("contexts/meta/x");
    fs::create_dir_all(&meta).unwrap();
    fs::write(
        meta.join("meta.json"),
        r#"{"Name":"far","Endpoints":{"docker":{"Host":"tcp://192.0.2.1:2375"}}}"#,
    )
    .unwrap();
    let mut command = tool();
    command
        .args(["survey", "--format", "json", "--read-only"])
        .env("DOCKER_CONFIG", folder.path());
    let said = run(&mut command);
    assert_eq!(said.status, 3, "{said:?}");
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    let row = surface(&found, "Docker Engine at tcp://192.0.2.1:2375");
    assert!(calls(row).contains("not contacted"), "{row}");
}
