//! #23, #39 and #40: what the process may do, and within which limits.

use crate::common::acceptance::proof;
use crate::common::inspected::{Made, ROOM};
use serde_json::json;
use std::process::{Command, ExitStatus};
use tki_inside::narrow;
use tki_inspector::guard::{FileError, Files, Folder, Guard, Memory};
use tki_inspector::inspect::{Listener, Refusal, Room, inspect};
use tki_inspector::report::{Action, AllowedAction};
use tki_inspector::wire::{ACTIONS, BLOCKED, FILES, MALFORMED};

/// Files that remember who came.
#[derive(Default)]
struct Watched {
    files: Memory,
    seen: Vec<(AllowedAction, String)>,
}

impl Files for &mut Watched {
    fn read(
        &mut self,
        folder: Folder,
        path: &str,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError> {
        let seen = format!("{}/{path}", folder.path());
        self.seen.push((AllowedAction::ReadPacketItem, seen));
        self.files.read(folder, path, most, each)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let seen = format!("/out/{name}");
        self.seen.push((AllowedAction::WriteLocalReport, seen));
        self.files.write(name, bytes)
    }

    fn read_back(&mut self, name: &str) -> Result<Vec<u8>, FileError> {
        self.files.read_back(name)
    }
}

#[test]
fn m23_it_does_two_things_and_says_each() {
    let mut watched = Watched::default();
    watched.files.input = Made::of("fix7").input();
    let mut guard = Guard::new(&mut watched);
    let inspection = inspect(&mut guard, ROOM, &mut ()).unwrap();
    for (name, bytes) in &inspection.files {
        guard.write_local_report(name, bytes).unwrap();
        assert_eq!(&guard.read_back(name).unwrap(), bytes);
    }
    for name in ["x", "../in/packet/packet.json", "inspection.json.tmp"] {
        assert!(guard.write_local_report(name, b"").is_err(), "{name}");
    }
    let log = &inspection.report.actions;
    let said = log
        .iter()
        .map(|action| (action.action, action.path.clone()));
    let said: Vec<(AllowedAction, String)> = said.collect();
    assert_eq!(said, watched.seen);
    let numbers: Vec<u64> = log.iter().map(|action| action.number).collect();
    assert_eq!(numbers, (1..=log.len() as u64).collect::<Vec<u64>>());
    let mut once = said.clone();
    once.sort_by(|one, other| one.1.cmp(&other.1));
    once.dedup();
    assert_eq!(once.len(), said.len(), "a file was opened twice");
    let raw = inspection
        .files
        .iter()
        .find(|(name, _)| *name == ACTIONS)
        .unwrap();
    let raw = String::from_utf8(raw.1.clone()).unwrap();
    let lines: Vec<Action> = raw
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(&lines, log);
    let written = said
        .iter()
        .filter(|(action, _)| *action == AllowedAction::WriteLocalReport);
    assert_eq!(written.count(), FILES.len());
    proof(
        23,
        format!(
            "{} actions, as many files opened, each once; no third kind exists",
            log.len()
        ),
    );
}

/// Set for the test below, which starts itself: which call to try.
const CALL: &str = "TKI_TEST_CALL";

/// This test alone in a process of its own, which does something else there.
fn again(test: &str, call: &str) -> ExitStatus {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(CALL, call);
    let output = again.output().unwrap();
    output.status
}

#[test]
fn m39_it_cannot_become_another_program() {
    const TEST: &str = "matrix::process::m39_it_cannot_become_another_program";
    let Some(call) = std::env::var_os(CALL) else {
        // Without the lock the same calls execute a program that ends with 0.
        for call in ["execve", "execveat"] {
            assert_eq!(again(TEST, call).code(), Some(0), "{call}");
            let locked = format!("{call} locked");
            assert_eq!(again(TEST, &locked).code(), Some(libc::EPERM), "{call}");
        }
        proof(
            39,
            "execve and execveat of /bin/true: EPERM under the lock, executed without it",
        );
        return;
    };
    let call = call.into_string().unwrap();
    let program = narrow::program();
    let path = c"/bin/true".as_ptr();
    let arguments = [path, std::ptr::null()];
    // SAFETY: a path, its arguments and no variables, all of which outlive the call.
    unsafe {
        if call.ends_with(" locked") {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if tki_inside::filter::stack(&program).is_err() {
                libc::_exit(99);
            }
        }
        let none = std::ptr::null::<usize>();
        match call.starts_with("execveat") {
            true => libc::syscall(libc::SYS_execveat, -100, path, arguments.as_ptr(), none, 0),
            false => libc::syscall(libc::SYS_execve, path, arguments.as_ptr(), none),
        };
        libc::_exit(*libc::__errno_location());
    }
}

/// A listener whose time is over once so many items were read.
struct Until(u64);

impl Listener for Until {
    fn progress(&mut self, items: u64, _: u64) {
        self.0 = self.0.saturating_sub(items.min(1));
    }

    fn has_time(&mut self) -> bool {
        self.0 > 0
    }
}

#[test]
fn m40_a_packet_larger_than_its_sandbox_is_refused() {
    let made = Made::of("fix7");
    for room in [
        Room {
            memory_bytes: 4 << 20,
            ..ROOM
        },
        Room {
            out_bytes: 64 << 10,
            ..ROOM
        },
    ] {
        let mut guard = made.guard();
        let refusal = inspect(&mut guard, room, &mut ()).unwrap_err();
        assert!(matches!(refusal, Refusal::TooLarge { .. }), "{refusal}");
        assert_eq!(refusal.status(), MALFORMED);
        let opened: Vec<&str> = guard.log().iter().map(|one| one.path.as_str()).collect();
        assert_eq!(opened, ["/in/packet/packet.json"]);
    }
    let mut guard = made.guard();
    let refusal = inspect(&mut guard, ROOM, &mut Until(5)).unwrap_err();
    assert_eq!((refusal.status(), refusal), (BLOCKED, Refusal::Deadline));
    let is_report = |one: &&Action| one.action == AllowedAction::WriteLocalReport;
    assert_eq!(guard.log().iter().filter(is_report).count(), 0);
    // What the size of an item says is not believed: reading ends where it should.
    let mut liar = Made::new();
    liar.item("a", "listing", &format!("[{}]", "1,".repeat(100_000) + "1"));
    liar.edit("a")["size"] = 3.into();
    liar.claim(
        "a",
        json!([{"item": "a", "at": {"json": "/0"}, "expect": {"equals": 1}}]),
    );
    let inspected = liar.inspected();
    assert!(!inspected.item("a").usable);
    assert!(
        inspected.item("a").bytes <= 4,
        "{}",
        inspected.item("a").bytes
    );
    proof(
        40,
        "too little memory and too little /out are refused before an item is opened; no report after the deadline",
    );
}
