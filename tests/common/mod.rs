//! What the tests share.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tki_evidence::controls::Control;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::settings::Settings;

/// Proofs of acceptance tests.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod acceptance;
/// Bundles that a test changes, and verifying in this process.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod bundle;
/// The command line that evidence records, executed as it stands.
pub mod by_hand;
/// A certificate authority, run by openssl.
pub mod certificates;
/// A bundle in memory whose edits are made consistently.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod consistent;
/// A generator of edits.
pub mod edits;
/// Forgeries with the digests and the stamp that go with them.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod forgery;
/// Containers that are built to misbehave.
pub mod impostor;
/// The programs inside, as they are compiled.
pub mod inside;
/// Packets in memory, and what the inspector's core says of them.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod inspected;
/// Images that are built for tests, and what is in them.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod layers;
/// Everything that a run could leave, before and after.
pub mod listing;
/// Debian's own kernel in an emulated machine.
pub mod machine;
/// A network namespace with an address of its own.
pub mod network;
/// Podman, its services, and what they could leave behind.
pub mod podman;
/// A PostgreSQL server in a temporary directory.
pub mod postgres;
/// A Docker Engine in a temporary directory.
pub mod private_engine;
/// A socket between the tool and the engine that sees every request.
pub mod proxy;
/// Keys, and signed answers to requests.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod signed;
/// An SSH server on the loopback interface, with keys of its own.
pub mod ssh_server;
/// Sweeps with thousands of cases.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub mod sweep;
/// What a run could leave behind.
pub mod traces;
/// A user who is not root.
pub mod user;

/// The engine's usual socket.
pub const ENGINE_SOCKET: &str = "/var/run/docker.sock";

/// A user without any rights, whom nobody else is.
pub const NOBODY: u32 = 48_713;

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tool under test, with an environment that does not leak into it.
pub fn tool() -> Command {
    isolated(Path::new(env!("CARGO_BIN_EXE_tki-attest")))
}

thread_local! {
    /// Where the commands of a test could remember something; removed with the test.
    static STATE: tempfile::TempDir = tempfile::tempdir().unwrap();
}

/// A directory for the state of one command, which is not there yet. No test writes to the
/// user's own, and none knows what another command has seen.
fn fresh_state() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    STATE.with(|state| state.path().join(count.to_string()))
}

/// A copy of the tool, or a program that starts it, in the same environment.
pub fn isolated(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        // What CI systems set is recorded, and a test must see the same in CI
        // and elsewhere.
        .env_remove("CI")
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITLAB_CI")
        .env_remove("BUILDKITE")
        .env_remove("JENKINS_URL")
        .env_remove("CIRCLECI")
        .env_remove("TF_BUILD")
        .env_remove("TEAMCITY_VERSION")
        .env_remove("DOCKER_HOST")
        .env_remove("DOCKER_CONTEXT")
        .env_remove("DOCKER_CONFIG")
        .env_remove("DOCKER_CERT_PATH")
        .env_remove("DOCKER_TLS")
        .env_remove("DOCKER_TLS_VERIFY")
        .env_remove("CONTAINER_HOST")
        .env_remove("SOURCE_DATE_EPOCH")
        .env("XDG_STATE_HOME", fresh_state())
        .stdin(Stdio::null());
    command
}

/// Says which test is passed over and why, where it can be seen: what a test that
/// passes prints is not shown.
pub fn passed_over(why: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {}", why.trim());
}

/// What the test needs is not here. In CI that is a failure.
#[track_caller]
pub fn lacking(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what}");
    passed_over(what);
}

/// What a finished command said.
#[derive(Debug)]
pub struct Said {
    /// Exit status; -1 for a signal.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Said {
    /// Ended with this status and this stable code in brackets, and says what
    /// to do next.
    #[track_caller]
    pub fn failed(&self, status: i32, code: &str) {
        let bracketed = format!("[{code}]");
        assert!(
            self.status == status && self.stderr.contains(&bracketed),
            "expected {status} {bracketed}, got {self:?}"
        );
        assert!(self.stderr.contains("next: "), "{self:?}");
        assert!(!self.stderr.contains('\u{1b}'), "{self:?}");
    }

    /// Ended with 0.
    #[track_caller]
    pub fn succeeded(&self) {
        assert_eq!(self.status, 0, "{self:?}");
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Said {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    said(output)
}

/// A finished command's output as text.
pub fn said(output: Output) -> Said {
    Said {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs another program that the tests need. Its absence is a failure that
/// names the Debian package: `make test` installs them all.
pub fn need(package: &str, command: &mut Command) -> Said {
    match command.output() {
        Ok(output) => said(output),
        Err(error) => panic!("{command:?}: {error}: install the Debian package {package}"),
    }
}

/// A program of the virtual environment that `scripts/python-tools` makes.
pub fn python_tool(name: &str) -> Command {
    let program = Path::new("venv/bin").join(name);
    Command::new(prepared(&program, "python-tools"))
}

/// A file below the target directory that a script of ours makes before the tests.
pub fn prepared(name: &Path, script: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    let path = target.join(name);
    assert!(
        path.exists(),
        "{}: missing: `make test` makes it with scripts/{script}",
        path.display()
    );
    path
}

/// `docker` with arguments; must succeed.
#[track_caller]
pub fn docker(arguments: &[&str]) -> String {
    let said = need("docker.io", Command::new("docker").args(arguments));
    assert_eq!(said.status, 0, "docker {arguments:?}: {}", said.stderr);
    said.stdout.trim().to_owned()
}

/// An inventory is compared before and after each run, so a test that creates
/// anything on the engine by other means must be alone on it.
static ENGINE: RwLock<()> = RwLock::new(());

/// For tests that only use the tool: they may share the engine.
pub fn shared_engine() -> RwLockReadGuard<'static, ()> {
    ENGINE.read().unwrap_or_else(|poison| poison.into_inner())
}

/// For tests that create or remove anything themselves, or look at everything.
pub fn whole_engine() -> RwLockWriteGuard<'static, ()> {
    ENGINE.write().unwrap_or_else(|poison| poison.into_inner())
}

/// `tki-attest run` with these arguments and an output directory.
pub fn attest(out: &Path, arguments: &[&str]) -> Said {
    let mut command = tool();
    command.arg("run").arg("--out").arg(out).args(arguments);
    // So many more containers would only be in the way of most tests.
    if !arguments.contains(&"--controls") {
        command.args(["--controls", "none"]);
    }
    // Whether Docker takes a gate is found out by trying, which is a container
    // more than most tests count.
    if !arguments.contains(&"--gate") && !arguments.contains(&"--engine") {
        command.args(["--gate", "off"]);
    }
    run(&mut command)
}

/// `tki-attest verify` with these arguments.
pub fn verify(evidence: &Path, arguments: &[&str]) -> Said {
    run(tool().arg("verify").arg(evidence).args(arguments))
}

/// How many probes a run must hold.
pub fn required(with_controls: bool) -> u64 {
    tki_evidence::catalogue::required(with_controls).count() as u64
}

/// The controls that a run with these settings has on an engine.
pub fn applicable(engine: &str, evidence: &serde_json::Value) -> Vec<&'static Control> {
    let settings = evidence["sandbox"]["configured"].clone();
    let settings: Settings = serde_json::from_value(settings).unwrap();
    let kind = evidence["runtime"]["kernel_kind"].clone();
    let kind = serde_json::from_value(kind).unwrap();
    tki_evidence::calibrate::applicable(EngineKind::find(engine), &settings, kind)
}

/// The one evidence file in a directory.
#[track_caller]
pub fn evidence_in(out: &Path) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A JSON file's value.
#[track_caller]
pub fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Everything in a directory, by name.
pub fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Waits until something is so, within a generous bound: not a measurement.
#[track_caller]
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < give_up, "{what}: still not so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program that runs for as long as a test does.
pub struct Daemon(pub Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system of our own, mounted for a test.
pub struct Mounted(PathBuf);

impl Mounted {
    /// A tmpfs with these options on a new directory.
    pub fn tmpfs(at: &Path, options: &str) -> Self {
        fs::create_dir_all(at).unwrap();
        let said = need(
            "mount",
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", options, "tki-attest-test"])
                .arg(at),
        );
        assert_eq!(said.status, 0, "the tests need root: {said:?}");
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Kills those children of a process that are executed with this argument; tells
/// how many there were.
pub fn kill_children(parent: u32, argument: &str) -> usize {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    let ours = list.split_whitespace().filter(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(argument)
    });
    let pids = ours.filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw));
    pids.filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
        .count()
}
