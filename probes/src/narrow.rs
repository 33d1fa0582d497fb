//! One more errand: the inspector's own filter, loaded in a child for each system call, which the
//! child then makes. What comes back is told and never judged; a test holds it against the
//! filter's list.

use crate::conversation::{self, Place};
use crate::families::in_child;
use crate::sys::Ended;
use alloc::format;
use tki_inside::{call, io, narrow, sys};

/// The highest number that is tried: beyond the last call of any kernel that is known.
const LAST: usize = 480;

/// The status of a child whose filter could not be loaded. No errno is as large.
const NO_FILTER: i32 = 201;

/// Tells of each call how a child ended that made it: by a signal, or with the errno.
pub fn sweep() -> i32 {
    if let Err(status) = conversation::admitted(Place::Own) {
        return status;
    }
    for number in 0..=LAST {
        let ended = in_child(|| match narrow::stack() {
            Err(_) => NO_FILTER,
            Ok(_) => {
                const NONE: usize = usize::MAX;
                match call!(number, NONE, NONE, NONE, NONE, NONE, NONE) {
                    Ok(_) => 0,
                    Err(sys::Errno(errno)) => errno,
                }
            }
        });
        let line = match ended {
            Ok(Ended::Exit(status)) => format!("{number} exit {status}\n"),
            Ok(Ended::Signal(signal)) => format!("{number} signal {signal}\n"),
            Err(errno) => format!("{number} not reached {}\n", errno.0),
        };
        io::print(1, &line);
    }
    conversation::DONE
}
