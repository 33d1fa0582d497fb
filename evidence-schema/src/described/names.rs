//! What a container of ours is called, and the id of the run that it belongs to.

use crate::time::rfc3339;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

/// How the name of every container of ours begins; the run's id follows.
pub const NAME_PREFIX: &str = "tki-attest-";
/// The program that tries everything, and what its process is called.
pub const PROBER: &str = "tki-prober";
/// The program that reads a packet, and what its process is called.
pub const INSPECTOR: &str = "tki-inspector";
/// What containers of ours execute.
pub const PROGRAMS: [&str; 2] = [PROBER, INSPECTOR];
/// The label that every container of ours carries, with the run's id.
pub const LABEL_RUN: &str = "dev.tki.attest.run";
/// `probe`, `control`, `neighbour`, `scout` or `inspect`.
pub const LABEL_ROLE: &str = "dev.tki.attest.role";
/// Unix time after which `clean` may remove the container.
pub const LABEL_DEADLINE: &str = "dev.tki.attest.deadline";

/// The id of a run that begins now. It sorts by time.
pub fn run_id(now: u64, random: &str) -> String {
    let time: String = rfc3339(now)
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    format!("{}-{random}", time.to_lowercase())
}

/// It is the id of a run that began then.
pub fn is_run_id(text: &str, started: u64) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let random = text.strip_prefix(&run_id(started, ""));
    random.is_some_and(|random| random.len() == 8 && random.bytes().all(is_hex))
}

/// The labels of a run's container, in the order in which it gets them.
pub fn labels(run_id: &str, role: &str, deadline: u64) -> Vec<(String, String)> {
    vec![
        (LABEL_RUN.into(), run_id.into()),
        (LABEL_ROLE.into(), role.into()),
        (LABEL_DEADLINE.into(), deadline.to_string()),
    ]
}

/// An id that an engine gives a container, in full: safe as an argument and as part
/// of a path.
pub fn is_id(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_when_its_run_began() {
        let now = 1_794_000_000;
        let id = run_id(now, "0123cdef");
        assert!(is_run_id(&id, now), "{id}");
        for (wrong, started) in [
            (id.clone(), now + 1),
            (run_id(now, "0123CDEF"), now),
            (run_id(now, "0123cde"), now),
            (run_id(now, "0123cdef0"), now),
            (run_id(now, "0123cd\u{1b}f"), now),
            (String::new(), now),
            (format!("{id}\u{1b}[31m"), now),
        ] {
            assert!(!is_run_id(&wrong, started), "{wrong:?}");
        }
    }
}
