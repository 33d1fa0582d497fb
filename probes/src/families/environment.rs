//! The environment: keys only. A value is never read into a message.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys;
use alloc::string::String;
use alloc::vec::Vec;
use tki_inside::io;

/// PR-ENV-1.
pub const KEYS: &[Operation] = &[("env-keyset", keyset), ("env-canary", canary)];

/// The sorted keys of an environment.
pub fn sorted_keys<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut keys: Vec<String> = entries
        .filter(|entry| !entry.is_empty())
        .filter_map(|entry| entry.split(|byte| *byte == b'=').next())
        .map(|key| String::from_utf8_lossy(key).into_owned())
        .collect();
    keys.sort();
    keys
}

/// The kernel's record of the environment, read afresh.
fn recorded() -> sys::Result<Vec<String>> {
    let text = io::read_text(c"/proc/self/environ")?;
    Ok(sorted_keys(text.as_bytes().split(|byte| *byte == 0)))
}

fn keyset(_: &Context) -> Outcome {
    match recorded() {
        Ok(keys) => Outcome::fact(keys.join(",")),
        Err(errno) => Outcome::unreadable(errno),
    }
}

fn canary(context: &Context) -> Outcome {
    match recorded() {
        Ok(keys) if keys.contains(&context.env_canary) => Outcome::fact("present".into()),
        Ok(_) => Outcome::fact("absent".into()),
        Err(errno) => Outcome::unreadable(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::sorted_keys;

    #[test]
    fn keys_are_sorted_and_values_left_out() {
        let entries: [&[u8]; 4] = [b"B=secret=x", b"A=1", b"", b"C"];
        assert_eq!(sorted_keys(entries.into_iter()), ["A", "B", "C"]);
    }
}
