//! Agents that do not answer. Fakes: a real ssh-agent cannot be made to hang.

use super::bases::plain;
use crate::common::signed::keys;
use crate::common::{names_in, said, shared_engine, tool};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far more than any of these takes, and less than the two minutes for which an agent
/// was once waited for, whatever else was asked for.
const HANGING: Duration = Duration::from_secs(60);

fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes()[..], bytes].concat()
}

fn public() -> PathBuf {
    keys().private("second").with_extension("pub")
}

/// The list of one key that an agent answers with.
fn listed() -> Vec<u8> {
    let text = fs::read_to_string(public()).unwrap();
    let blob = ssh_key::PublicKey::from_openssh(&text).unwrap();
    let blob = blob.to_bytes().unwrap();
    [&[12, 0, 0, 0, 1][..], &string(&blob), &string(b"x")].concat()
}

/// An agent that answers the first questions and then does this with the next one,
/// of which it tells the test.
fn agent(socket: &Path, answers: Vec<Vec<u8>>, then: fn(UnixStream)) -> Receiver<()> {
    let listener = UnixListener::bind(socket).unwrap();
    let (asked, heard) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut question).unwrap();
            stream.write_all(&string(&answer)).unwrap();
        }
        let (stream, _) = listener.accept().unwrap();
        // Nobody waits for it where no answer is what is wanted.
        let _ = asked.send(());
        then(stream);
    });
    heard
}

/// Says nothing, and does not hang up.
fn silent(mut stream: UnixStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Promises a long answer, and gives it one byte at a time.
fn slow(mut stream: UnixStream) {
    let mut going = stream.write_all(&4096_u32.to_be_bytes());
    while going.is_ok() {
        std::thread::sleep(Duration::from_millis(100));
        going = stream.write_all(&[12]);
    }
}

/// `run`, signed by the key in the agent.
fn attest(socket: &Path, out: &Path, timeout: &str) -> Command {
    let mut command = tool();
    command
        .env("SSH_AUTH_SOCK", socket)
        .args(["run", "--venue", "dev", "--controls", "none"])
        .args(["--timeout", timeout, "--sign"])
        .arg(public())
        .arg("--out")
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn an_agent_that_does_not_answer_is_not_waited_for_beyond_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    agent(&at("silent"), Vec::new(), silent);
    agent(&at("slow"), Vec::new(), slow);
    // One whose queue is full, where connecting waits.
    let full: OwnedFd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let address = SocketAddrUnix::new(at("full").as_path()).unwrap();
    rustix::net::bind(&full, &address).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let mut waiting = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK;
        let client =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        if rustix::net::connect(&client, &address).is_err() {
            break;
        }
        waiting.push(client);
    }
    for name in ["silent", "slow", "full"] {
        let began = Instant::now();
        let output = attest(&at(name), &at("out"), "2").output().unwrap();
        said(output).failed(3, "key.agent-slow");
        assert!(began.elapsed() < HANGING, "{name}");
    }
    assert_eq!(names_in(&at("out")), [""; 0]);
}

#[test]
fn ctrl_c_ends_the_wait_for_an_agent() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let copy = plain().copy();
    let before = fs::read(copy.envelope()).unwrap();
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let asked = agent(&socket, vec![listed()], silent);
        let mut command = tool();
        command
            .env("SSH_AUTH_SOCK", &socket)
            .arg("sign")
            .arg(&copy.path)
            .arg("--key")
            .arg(public())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        asked.recv_timeout(HANGING).unwrap();
        let began = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = said(child.wait_with_output().unwrap());
        said.failed(3, "run.interrupted");
        assert!(said.stderr.contains(name), "{said:?}");
        assert!(began.elapsed() < HANGING);
        fs::remove_file(&socket).unwrap();
    }
    assert_eq!(fs::read(copy.envelope()).unwrap(), before);
}

/// The container is gone when the agent is asked to sign: only the agent keeps the
/// tool waiting.
#[test]
fn ctrl_c_ends_the_wait_for_a_signature_under_a_run() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let (socket, out) = (folder.path().join("agent"), folder.path().join("out"));
    let asked = agent(&socket, vec![listed()], silent);
    let child = attest(&socket, &out, "100").spawn().unwrap();
    asked.recv_timeout(HANGING).unwrap();
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = said(child.wait_with_output().unwrap());
    said.failed(3, "run.interrupted");
    assert!(began.elapsed() < HANGING);
    assert_eq!(names_in(&out), [""; 0]);
}
