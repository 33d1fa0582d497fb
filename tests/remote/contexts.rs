//! Docker's contexts, as its client makes them: which engine they choose, and which are
//! refused.

use super::{attested_at, held};
use crate::common::certificates::{Authority, Holder, Validity};
use crate::common::private_engine::PrivateEngine;
use crate::common::proxy::Proxy;
use crate::common::traces::nothing_written;
use crate::common::{ENGINE_SOCKET, NOBODY, Said, isolated, need, run, tool, whole_engine};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of Docker's client; gone when dropped.
struct Client(tempfile::TempDir);

impl Client {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// `docker context` with arguments; must succeed.
    fn context(&self, arguments: &[&str]) {
        let mut command = isolated(Path::new("docker"));
        command.env("DOCKER_CONFIG", self.0.path()).arg("context");
        need("docker.io", command.args(arguments)).succeeded();
    }

    /// Makes a context for what `docker` is told about an engine.
    fn create(&self, name: &str, engine: &str) {
        self.context(&["create", name, "--docker", engine]);
    }

    /// The tool, in whose environment this context is chosen, or none.
    fn tool(&self, context: Option<&str>) -> Command {
        let mut command = tool();
        command.env("DOCKER_CONFIG", self.0.path());
        if let Some(name) = context {
            command.env("DOCKER_CONTEXT", name);
        }
        command
    }

    /// Connects to the engine that is chosen, and changes nothing.
    fn ask(&self, context: Option<&str>, more: &[&str]) -> Said {
        let mut command = self.tool(context);
        run(command.args(["clean", "--dry-run"]).args(more))
    }

    /// The one file of this name below the directory.
    #[track_caller]
    fn file(&self, name: &str) -> PathBuf {
        let mut folders = vec![self.0.path().to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.file_name() == name => found.push(entry.path()),
                    false => {}
                }
            }
        }
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    }
}

#[test]
fn a_context_with_certificates_attests_over_tls() {
    let _engine = whole_engine();
    let authority = Authority::new("ours");
    let pair = authority.issue("client", Holder::Client, Validity::Now);
    let engine = PrivateEngine::start_tls(&authority, Validity::Now);
    let host = format!("tcp://{}", engine.port());
    let client = Client::new();
    let words = format!(
        "host={host},ca={},cert={},key={}",
        authority.certificate().display(),
        pair.cert.display(),
        pair.key.display()
    );
    client.create("far", &words);
    let before = held(&engine);
    let out = tempfile::tempdir().unwrap();
    let mut command = client.tool(Some("far"));
    command.args(["run", "--venue", "vps", "--controls", "none", "--out"]);
    let said = run(command.arg(out.path()));
    attested_at(&said, out.path(), &format!("{host} (TLS)"));
    assert_eq!(held(&engine), before);

    // Its key is as secret as any, and its authority is not for others to choose.
    let ca = client.file("ca.pem");
    chown(&ca, Some(NOBODY), None).unwrap();
    let said = client.ask(Some("far"), &[]);
    said.failed(2, "engine.tls-file");
    assert!(said.stderr.contains("ca.pem: it belongs to"), "{said:?}");
    fs::remove_file(&ca).unwrap();
    client.ask(Some("far"), &[]).failed(2, "engine.tls-file");
}

#[test]
fn the_context_that_is_chosen_is_the_engine_that_is_asked() {
    let _engine = whole_engine();
    let (near, far) = (Proxy::plain(), Proxy::plain());
    let client = Client::new();
    client.create("near", &format!("host={}", near.host()));
    client.create("far", &format!("host={}", far.host()));
    let asked = || {
        let counts = (near.log().len(), far.log().len());
        move |near: &Proxy, far: &Proxy| (near.log().len() > counts.0, far.log().len() > counts.1)
    };
    // Docker's client looks in this order.
    client.context(&["use", "near"]);
    let far_host = far.host();
    for (context, variable, flag, wanted) in [
        (None, None, None, (true, false)),
        (Some("far"), None, None, (false, true)),
        (Some("near"), Some(&far_host), None, (false, true)),
        (Some("none"), Some(&far_host), None, (false, true)),
        (Some("near"), None, Some(&far_host), (false, true)),
        (Some("none"), None, Some(&far_host), (false, true)),
    ] {
        let since = asked();
        let mut command = client.tool(context);
        command.args(["clean", "--dry-run"]);
        if let Some(host) = variable {
            command.env("DOCKER_HOST", host);
        }
        if let Some(host) = flag {
            command.args(["--host", host]);
        }
        run(&mut command).succeeded();
        let case = (context, variable, flag);
        assert_eq!(since(&near, &far), wanted, "{case:?}");
    }
    // The name of none of them is the usual socket's.
    let since = asked();
    client
        .ask(Some("default"), &["--engine", "docker"])
        .succeeded();
    assert_eq!(since(&near, &far), (false, false));
}

/// What is chosen and cannot be used is never replaced by the usual socket.
#[test]
fn a_context_that_cannot_be_used_is_refused_and_nothing_stands_in() {
    let _engine = whole_engine();
    let proxy = Proxy::plain();
    let client = Client::new();
    client.create("mine", &format!("host={}", proxy.host()));
    client.context(&["use", "mine"]);
    client.ask(None, &[]).succeeded();

    let refused = |context: Option<&str>, why: &str| {
        let trace = client.0.path().join("trace");
        let asked = proxy.log().len();
        for engine in ["auto", "docker"] {
            let mut command = isolated(Path::new("strace"));
            command.args(["-f", "-qq", "-e", "trace=connect", "-o"]);
            command.arg(&trace).arg(env!("CARGO_BIN_EXE_tki-attest"));
            command.args(["run", "--venue", "vps", "--engine", engine, "--out"]);
            command.arg(client.0.path().join("out"));
            command.env("DOCKER_CONFIG", client.0.path());
            if let Some(name) = context {
                command.env("DOCKER_CONTEXT", name);
            }
            let said = need("strace", &mut command);
            said.failed(2, "engine.context");
            assert!(said.stderr.contains(why), "{why}: {said:?}");
            let trace = fs::read_to_string(&trace).unwrap();
            assert!(!trace.contains(ENGINE_SOCKET), "{why}: {trace}");
        }
        assert_eq!(proxy.log().len(), asked, "{why}");
        nothing_written(&client.0.path().join("out"));
    };
    refused(Some("missing"), "No such file");
    refused(Some("../../etc"), "No such file");

    // Another user would choose where root's orders go.
    let (meta, config) = (client.file("meta.json"), client.file("config.json"));
    for file in [&meta, &config] {
        chown(file, Some(NOBODY), None).unwrap();
        refused(None, &format!("it belongs to uid {NOBODY}"));
        chown(file, Some(0), None).unwrap();
    }
    client.ask(None, &[]).succeeded();

    fs::write(&config, "{").unwrap();
    refused(None, "not its configuration");
    fs::write(&config, r#"{"currentContext": "mine"}"#).unwrap();
    fs::write(&meta, "{}").unwrap();
    refused(None, "not a context");
    client.create("loose", "host=tcp://127.0.0.1:1,skip-tls-verify=true");
    refused(Some("loose"), "SkipTLSVerify");
}
