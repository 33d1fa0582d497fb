//! Engines that never answer, or never stop. Fakes are right here: no real engine has so
//! many callers that it takes no more, or so much to say.

use crate::common::proxy::{Proxy, Reaction, Request, Which};
use crate::common::traces::{nothing_left, nothing_written};
use crate::common::{Said, attest, said, shared_engine, tool};
use crate::leftovers::send;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// So long is for ever.
const FOR_EVER: Duration = Duration::from_secs(120);

/// A listener whose queue is full: a client that connects as usual waits in the kernel.
struct Full {
    folder: tempfile::TempDir,
    _listener: UnixListener,
    _callers: Vec<UnixStream>,
}

impl Full {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("podman")).unwrap();
        let path = folder.path().join("podman/podman.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // Again with the shortest queue.
        rustix::net::listen(&listener, 0).unwrap();
        let mut callers = Vec::new();
        // Without blocking a caller is told that there is no room.
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        loop {
            let socket = rustix::net::socket_with(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::STREAM,
                rustix::net::SocketFlags::NONBLOCK | rustix::net::SocketFlags::CLOEXEC,
                None,
            )
            .unwrap();
            match rustix::net::connect(&socket, &address) {
                Ok(()) => callers.push(UnixStream::from(socket)),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => panic!("{error}"),
            }
        }
        Self {
            folder,
            _listener: listener,
            _callers: callers,
        }
    }

    fn host(&self) -> String {
        let path = self.folder.path().join("podman/podman.sock");
        format!("unix://{}", path.display())
    }
}

/// Every command that connects, with the engine at that address.
fn commands(full: &Full, out: &Path) -> Vec<Command> {
    let mut commands = Vec::new();
    for engine in ["docker", "podman", "auto"] {
        let mut run = tool();
        run.args(["run", "--venue", "dev", "--controls", "none", "--out"]);
        run.arg(out)
            .args(["--engine", engine, "--host", &full.host()]);
        let mut clean = tool();
        clean.args(["clean", "--engine", engine, "--host", &full.host()]);
        commands.extend([run, clean]);
    }
    let mut engines = tool();
    engines.arg("engines").env("DOCKER_HOST", full.host());
    let mut found = tool();
    found.args(["clean", "--engine", "podman"]);
    found.env("XDG_RUNTIME_DIR", full.folder.path());
    commands.extend([engines, found]);
    commands
}

/// Ends a command that does not end by itself, and says so.
fn wait(mut child: std::process::Child) -> Said {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > FOR_EVER {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it goes on for ever");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    said(child.wait_with_output().unwrap())
}

fn spawn(command: &mut Command) -> std::process::Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_queue_that_is_full_is_waited_for_until_the_time_limit() {
    let (full, out) = (Full::new(), tempfile::tempdir().unwrap());
    for mut command in commands(&full, out.path()) {
        let said = wait(spawn(command.args(["--timeout", "1"])));
        // A list of engines has a line for those that do not answer.
        match command.get_args().next() == Some("engines".as_ref()) {
            true => assert!(said.stdout.contains("the time limit passed"), "{said:?}"),
            false => said.failed(3, "run.timeout"),
        }
        nothing_written(out.path());
    }
}

#[test]
fn a_queue_that_is_full_is_waited_for_until_a_signal() {
    let (full, out) = (Full::new(), tempfile::tempdir().unwrap());
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        for mut command in commands(&full, out.path()) {
            let child = spawn(command.args(["--timeout", "600"]));
            let status = PathBuf::from(format!("/proc/{}/status", child.id()));
            crate::common::eventually("it listens for signals", || catches(&status, signal));
            send(&child, signal);
            let said = wait(child);
            said.failed(3, "run.interrupted");
            assert!(said.stderr.contains(name), "{said:?}");
            nothing_written(out.path());
        }
    }
}

/// The kernel would not end the process by this signal.
fn catches(status: &Path, signal: Signal) -> bool {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Who connects when there is room again is served: a queue may be full for a moment.
#[test]
fn a_queue_that_is_full_for_a_moment_is_no_failure() {
    let mut full = Full::new();
    let child = spawn(
        tool()
            .args(["clean", "--engine", "docker", "--timeout", "60"])
            .args(["--host", &full.host()]),
    );
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    crate::common::eventually("it connects", || catches(&status, Signal::INT));
    full._callers.clear();
    // The first that says something is the tool. What it gets is not an engine's.
    for mut caller in full._listener.incoming().flatten() {
        let mut first = [0; 3];
        if caller.read_exact(&mut first).is_ok() {
            let _ = caller.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
            break;
        }
    }
    drop(full);
    let said = wait(child);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(!said.stderr.contains("run.timeout"), "{said:?}");
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/// The tool, with no more memory than it needs.
fn bounded(arguments: &[&str]) -> Said {
    let mut command = Command::new("prlimit");
    // Its own executable, its threads and what they keep in reserve count as well.
    command.arg(format!("--as={}", 1_u64 << 31)).arg("--");
    let tool = tool();
    command.arg(tool.get_program()).args(arguments);
    for (name, value) in tool.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    wait(spawn(&mut command))
}

/// A run with an engine behind a proxy.
fn attest_bounded(proxy: &Proxy, out: &Path) -> Said {
    let (host, out) = (proxy.host(), out.to_str().unwrap());
    let on = ["--engine", "docker", "--timeout", "60", "--host", &host];
    let plain = [
        "run",
        "--venue",
        "dev",
        "--controls",
        "none",
        "--gate",
        "off",
    ];
    bounded(&[&plain[..], &on, &["--out", out]].concat())
}

/// Whatever is asked, at every step of a run: an answer without an end, in each form in
/// which HTTP has one.
#[test]
fn an_answer_without_an_end_is_cut_short() {
    let _engine = shared_engine();
    type Answer = fn(&mut dyn Write) -> std::io::Result<()>;
    let questions: [(&str, Which); 8] = [
        ("ping", |request| request.target.starts_with("/_ping")),
        ("version", |request| request.target.starts_with("/version")),
        ("info", Request::is_info),
        ("containers", |request| {
            request.target.starts_with("/containers/json")
        }),
        ("images", |request| {
            request.target.starts_with("/images/json")
        }),
        ("create", Request::is_create),
        ("wait", |request| request.target.contains("/wait")),
        ("inspect", Request::is_inspect),
    ];
    for (question, is_it) in questions {
        let forms: [(&str, Answer); 3] = [
            ("to the end of the connection", |to| {
                write!(to, "{HEAD}\r\n[")?;
                endless(to, b"\"aaaaaaaaaaaaaaa\",")
            }),
            ("in chunks", |to| {
                write!(to, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
                endless(to, b"10\r\n\"aaaaaaaaaaaaa\",\r\n")
            }),
            ("in headers", |to| {
                write!(to, "{HEAD}X: ")?;
                endless(to, b"aaaaaaaaaaaaaaaa")
            }),
        ];
        for (form, write) in forms {
            let out = tempfile::tempdir().unwrap();
            let proxy = Proxy::with(move |request| match is_it(request) {
                true => Reaction::Write(write),
                false => Reaction::Pass,
            });
            let said = attest_bounded(&proxy, out.path());
            let case = format!("{question} {form}");
            assert_eq!(said.status, 3, "{case}: {said:?}");
            assert!(proxy.count(is_it) > 0, "{case}: nobody asked");
            // A library of ours has a bound on headers of its own.
            let codes = ["engine.flood", "engine.vanished", "engine.unreachable"];
            let codes = &codes[..if form == "in headers" { 3 } else { 1 }];
            let known = codes.iter().any(|code| said.stderr.contains(code));
            assert!(known, "{case}: {said:?}");
            nothing_written(out.path());
            nothing_left(&proxy);
        }
    }
}

fn endless(to: &mut dyn Write, piece: &[u8]) -> std::io::Result<()> {
    let pieces = piece.repeat(4096);
    loop {
        to.write_all(&pieces)?;
    }
}

/// Two bytes on the wire, hundreds in memory.
#[test]
fn a_list_of_nothing_is_cut_short() {
    let _engine = shared_engine();
    let proxy = Proxy::with(
        |request| match request.target.starts_with("/containers/json") {
            true => Reaction::Write(|to| {
                write!(to, "{HEAD}\r\n[{{}}")?;
                to.write_all(&b",{}".repeat(2_500_000))?;
                to.write_all(b"]")
            }),
            false => Reaction::Pass,
        },
    );
    let said = bounded(&["clean", "--engine", "docker", "--host", &proxy.host()]);
    said.failed(3, "engine.flood");
    assert!(said.stderr.contains("objects"), "{said:?}");
}

/// A frame of a container's streams that says it has 4 GiB, and may well have.
#[test]
fn a_frame_without_an_end_is_cut_short() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::with(|request| match request.is_attach() {
        true => Reaction::Write(|to| {
            write!(to, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n")?;
            write!(to, "Upgrade: tcp\r\n\r\n")?;
            to.write_all(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])?;
            endless(to, b"aaaaaaaaaaaaaaaa")
        }),
        false => Reaction::Pass,
    });
    let said = attest_bounded(&proxy, out.path());
    said.failed(3, "engine.flood");
    assert!(said.stderr.contains("in one frame"), "{said:?}");
    nothing_written(out.path());
    nothing_left(&proxy);
}

/// More objects than evidence has room for, each of which is in order.
#[test]
fn an_inventory_that_is_too_large_for_evidence_is_said_to_be() {
    let _engine = shared_engine();
    let proxy = Proxy::with(|request| match request.target.starts_with("/volumes") {
        true => Reaction::Rewrite(|volumes| {
            let volume = |number: usize| {
                let name = format!("{number:0>120}");
                serde_json::json!({"Name": name, "Driver": "local", "Mountpoint": "",
                    "Labels": {}, "Scope": "local", "Options": {}})
            };
            volumes["Volumes"] = (0..16_000).map(volume).collect();
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
            "docker",
            "--host",
            &proxy.host(),
        ],
    );
    said.failed(3, "engine.flood");
    assert!(said.stderr.contains("bytes of names"), "{said:?}");
    nothing_written(out.path());
}
