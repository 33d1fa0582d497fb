//! Names of containers of ours: all that tells whose something is where an engine
//! keeps no label. And what an engine's own ids look like.

use crate::clock::parse_rfc3339;
use crate::engine::contract::{LONGEST_RUN, NAME_PREFIX};
pub use tki_evidence::described::names::is_id;

/// How the name of the container ends that is never started: an inspection's /in is filled
/// through it.
pub const FILLER: &str = "-fill";

/// What a name tells about its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Seconds since 1970 after which it has ended, whatever its time limit was.
    pub removable_after: u64,
}

/// The run that a container with this name belongs to; `None` if the name is not
/// one that this tool gives.
pub fn run_of(name: &str) -> Option<Run> {
    // 20261116t113832z-ee16ab8f, and for a control -its-name.
    let rest = name.strip_prefix(NAME_PREFIX)?;
    let (id, control) = rest.split_at_checked(25)?;
    let (time, random) = id.split_once('-')?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_word = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'-');
    let control_fits = match control.strip_prefix('-') {
        None => control.is_empty(),
        Some(control) => !control.is_empty() && control.bytes().all(is_word),
    };
    if random.len() != 8 || !random.bytes().all(is_hex) || !control_fits {
        return None;
    }
    Some(Run {
        id: id.to_owned(),
        removable_after: started(time)? + LONGEST_RUN + 1,
    })
}

/// The moment in an id, `20261116t113832z`.
fn started(time: &str) -> Option<u64> {
    let (day, moment) = time.strip_suffix('z')?.split_once('t')?;
    let cut = |text: &str, from, to| text.get(from..to).map(str::to_owned);
    if day.len() != 8 || moment.len() != 6 {
        return None;
    }
    let day = [cut(day, 0, 4)?, cut(day, 4, 6)?, cut(day, 6, 8)?].join("-");
    let moment = [cut(moment, 0, 2)?, cut(moment, 2, 4)?, cut(moment, 4, 6)?].join(":");
    parse_rfc3339(&format!("{day}T{moment}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::described::names::run_id;

    #[test]
    fn what_this_tool_gives_is_known_again() {
        let now = 1_794_000_000;
        let id = run_id(now, "ee16ab8f");
        let run = Run {
            id: id.clone(),
            removable_after: now + 601,
        };
        for name in ["", "-network", "-seccomp-network"] {
            let name = format!("tki-attest-{id}{name}");
            assert_eq!(run_of(&name).as_ref(), Some(&run), "{name}");
        }
    }

    #[test]
    fn any_other_name_is_of_no_run() {
        let good = "tki-attest-20261116t113832z-ee16ab8f";
        assert!(run_of(good).is_some());
        for name in [
            "",
            "postgres",
            "tki-attest-",
            "tki-attest-mine",
            "tki-attest-not-ours-at-all-really-x",
            "my-tki-attest-20261116t113832z-ee16ab8f",
            "tki-attest-20261116t113832z-ee16ab8",
            "tki-attest-20261116t113832z-ee16ab8g",
            "tki-attest-20261116t113832z-EE16AB8F",
            "tki-attest-20261316t113832z-ee16ab8f",
            "tki-attest-20261116t113832z-ee16ab8f2",
            "tki-attest-20261116t113832z-ee16ab8f-",
            "tki-attest-20261116t113832z-ee16ab8f-A",
            "tki-attest-20261116t113832z-ee16ab8f_db",
            "tki-attest-20261116t113832z-ee16ab8\u{e9}",
        ] {
            assert_eq!(run_of(name), None, "{name}");
        }
    }
}
