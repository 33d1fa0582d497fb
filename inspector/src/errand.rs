//! The program: self-check, greeting, the launcher's go, the inspection, the reports, and what
//! was written read back to the launcher.

use crate::guard::{FileError, Guard};
use crate::inspect::{Inspection, Listener, Refusal, Room, inspect};
use crate::report::Report;
use crate::selfcheck;
use crate::system::System;
use crate::wire::{
    BLOCKED, Done, Go, Hello, INADEQUATE, InspectorMessage, LauncherMessage, MALFORMED, MAX_GO,
    MAX_PIECE, PROTOCOL, Piece, Progress, Refused, TRIAGE, Written, WrittenFile,
};
use crate::words::Adequacy;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_evidence::stamp::sha256_hex;
use tki_inside::{EXEC_MARKER_STATUS, io, sys};

/// Runs the inspector with its arguments (without the program's name); gives its exit status,
/// which is never 0.
pub fn run(arguments: &[&[u8]], environment: &[&[u8]]) -> i32 {
    match arguments {
        [b"inspect"] => errand(environment),
        // A probe executes every program of the image, to see that it cannot.
        [b"exec-marker"] => EXEC_MARKER_STATUS,
        _ => {
            io::print(
                2,
                "usage: tki-inspector inspect\n\
                 Runs only inside the sandbox that `tki-attest inspect` launches, and reads the\n\
                 packet that lies below /in there.\n",
            );
            MALFORMED
        }
    }
}

fn errand(environment: &[&[u8]]) -> i32 {
    let begun = sys::now_us();
    let missing = selfcheck::missing(environment);
    if !missing.is_empty() {
        let mut text = String::from(
            "tki-inspector: BLOCKED: this is not its sandbox. Nothing was opened below /in or /out.\n",
        );
        for invariant in missing {
            text += &format!("  missing {:<17} {}\n", invariant.name, invariant.meaning);
        }
        io::print(2, &(text + "Next: launch it with `tki-attest inspect`.\n"));
        return BLOCKED;
    }
    say(&InspectorMessage::Hello(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        selfcheck_us: sys::now_us().saturating_sub(begun),
    }));
    let go = match hear() {
        Ok(go) => go,
        Err((status, code, reason)) => return refuse(status, code, reason),
    };
    let mut teller = Teller {
        told: 0,
        began_at: sys::now_us(),
        ends_at: sys::now_us().saturating_add(u64::from(go.deadline_ms) * 1000),
    };
    let mut guard = Guard::new(System::new());
    let room = Room {
        memory_bytes: go.memory_bytes,
        out_bytes: go.out_bytes,
    };
    match inspect(&mut guard, room, &mut teller) {
        Err(refusal) => refuse(refusal.status(), refusal.code(), refusal.reason()),
        Ok(inspection) => match hand_over(&mut guard, inspection, &mut teller) {
            Ok(status) => status,
            Err(Trouble::Deadline) => {
                let refusal = Refusal::Deadline;
                refuse(refusal.status(), refusal.code(), refusal.reason())
            }
            Err(Trouble::File(name, error)) => {
                refuse(BLOCKED, "inspect.write", format!("/out/{name}: {error}"))
            }
        },
    }
}

/// What can go wrong once there is a report.
enum Trouble {
    /// A report cannot be written or read back.
    File(&'static str, FileError),
    /// The time is over.
    Deadline,
}

/// Writes the reports, and then reads them to the launcher as they are in /out.
fn hand_over(
    guard: &mut Guard<System>,
    inspection: Inspection,
    teller: &mut Teller,
) -> Result<i32, Trouble> {
    let mut files = Vec::new();
    for (name, bytes) in &inspection.files {
        if !teller.has_time() {
            return Err(Trouble::Deadline);
        }
        let written = guard.write_local_report(name, bytes);
        written.map_err(|error| Trouble::File(name, error))?;
        files.push(WrittenFile {
            name: (*name).to_string(),
            bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        });
    }
    let status = status(&inspection.report);
    let judged_us = sys::now_us().saturating_sub(teller.began_at);
    say(&InspectorMessage::Written(Written {
        files,
        claims: inspection.report.claims.len() as u64,
        inadequate: inadequate(&inspection.report),
    }));
    for (name, _) in &inspection.files {
        let bytes = guard
            .read_back(name)
            .map_err(|error| Trouble::File(name, error))?;
        // What was written is text; a piece ends between two characters.
        let text = String::from_utf8_lossy(&bytes);
        let mut rest = text.as_ref();
        while !rest.is_empty() {
            if !teller.has_time() {
                return Err(Trouble::Deadline);
            }
            let (piece, more) = rest.split_at(piece_of(rest));
            say(&InspectorMessage::Piece(Piece {
                name: (*name).to_string(),
                text: piece.into(),
            }));
            rest = more;
        }
    }
    say(&InspectorMessage::Done(Done { status, judged_us }));
    Ok(status)
}

/// Where a piece of a text ends: between two characters.
fn piece_of(text: &str) -> usize {
    let most = MAX_PIECE.min(text.len());
    (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(most)
}

fn inadequate(report: &Report) -> u64 {
    let claims = report.claims.iter();
    claims
        .filter(|claim| claim.verdict != Adequacy::Adequate)
        .count() as u64
}

/// The exit status of a report: there is none that says that all is well.
pub fn status(report: &Report) -> i32 {
    match inadequate(report) {
        0 => TRIAGE,
        _ => INADEQUATE,
    }
}

/// Tells the launcher how far it is, and knows when to stop.
struct Teller {
    told: u64,
    began_at: u64,
    ends_at: u64,
}

impl Listener for Teller {
    /// A hundred lines at the most.
    fn progress(&mut self, items: u64, of: u64) {
        if items == of || items >= self.told + of.div_ceil(100) {
            self.told = items;
            say(&InspectorMessage::Progress(Progress { items, of }));
        }
    }

    fn has_time(&mut self) -> bool {
        sys::now_us() < self.ends_at
    }
}

/// One line to the launcher. Where nobody listens any more there is nobody to tell.
fn say(message: &InspectorMessage) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        let _ = io::write_all(1, &line);
    }
}

fn refuse(status: i32, code: &str, reason: String) -> i32 {
    say(&InspectorMessage::Refused(Refused {
        status,
        code: code.into(),
        reason,
    }));
    status
}

/// The launcher's line.
fn hear() -> Result<Go, (i32, &'static str, String)> {
    let mut line = Vec::new();
    let mut byte = [0; 256];
    loop {
        match sys::read(0, &mut byte) {
            Ok(0) => {
                let reason = "standard input was closed before the launcher said to begin";
                return Err((BLOCKED, "inspect.no-go", reason.into()));
            }
            Ok(count) => line.extend_from_slice(&byte[..count]),
            Err(sys::Errno::EINTR) => {}
            Err(errno) => {
                return Err((
                    BLOCKED,
                    "inspect.no-go",
                    format!("standard input: errno {}", errno.0),
                ));
            }
        }
        if line.last() == Some(&b'\n') {
            break;
        }
        if line.len() > MAX_GO {
            return Err((
                MALFORMED,
                "inspect.go",
                "the launcher's line is too long".into(),
            ));
        }
    }
    let parsed: Result<LauncherMessage, _> = tki_evidence::strict::parse_as(&line);
    match parsed {
        Ok(LauncherMessage::Go(go)) if go.protocol == PROTOCOL => Ok(go),
        Ok(LauncherMessage::Go(go)) => {
            let reason = format!(
                "the launcher speaks protocol {}, not {PROTOCOL}",
                go.protocol
            );
            Err((MALFORMED, "inspect.go", reason))
        }
        Err(error) => Err((MALFORMED, "inspect.go", error.to_string())),
    }
}
