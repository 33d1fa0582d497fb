//! The prober: asks the kernel, from inside the sandbox, for everything that
//! the sandbox is supposed to refuse, and reports what came back.
//!
//! It reports *observations*, never verdicts. It links no C library and no
//! standard library, so that the list of system calls in [`sys`] is the list of
//! things it can do. Data flows one way: [`conversation`] reads a challenge,
//! [`tki_inside::selfcheck`] decides whether this is the sandbox at all, [`runner`] forks
//! children for the probes, [`families`] hold the operations, [`lock`] stacks the
//! prober's own filter between the two phases. [`neighbour`] is another errand: it
//! furnishes what controls show to their probes, and [`narrow`] tries every call against the
//! inspector's filter.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod conversation;
pub mod families;
pub mod information;
pub mod lock;
pub mod narrow;
pub mod neighbour;
pub mod outcome;
pub mod runner;
pub mod sys;
pub mod walk;

use conversation::Place;
use tki_inside::{EXEC_MARKER_STATUS, io};

/// Runs the prober with its arguments (without the program's name) and
/// returns its exit status.
pub fn run(arguments: &[&[u8]], environment: &[&[u8]]) -> i32 {
    let mut arguments = arguments.iter().copied();
    match arguments.next() {
        Some(b"probe") => match (arguments.next(), arguments.next()) {
            (file, None) => conversation::probe(file, environment, Place::Own),
            _ => usage(),
        },
        Some(b"guest") => match arguments.next() {
            None => conversation::probe(None, environment, Place::Joined),
            Some(_) => usage(),
        },
        Some(b"threads") => match arguments.next() {
            None => match sys::start_idle_thread() {
                Ok(()) => conversation::probe(None, environment, Place::Own),
                Err(_) => conversation::BLOCKED,
            },
            Some(_) => usage(),
        },
        Some(b"neighbour") => match (arguments.next(), arguments.next()) {
            (Some(name), None) => neighbour::furnish_and_wait(name),
            _ => usage(),
        },
        Some(b"narrow") => match arguments.next() {
            None => narrow::sweep(),
            Some(_) => usage(),
        },
        Some(b"exec-marker") => EXEC_MARKER_STATUS,
        Some(b"version") => {
            io::print(1, concat!("tki-prober ", env!("CARGO_PKG_VERSION"), "\n"));
            0
        }
        _ => usage(),
    }
}

fn usage() -> i32 {
    io::print(
        2,
        "usage: tki-prober probe [FILE] | guest | threads | neighbour NAME | narrow | version\n\
         Runs only inside the sandbox that tki-attest launches. The challenge is read from\n\
         standard input, or from FILE where nobody can speak to it.\n",
    );
    2
}
