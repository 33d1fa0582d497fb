//! Numbers in a Dockerfile: users, modes, signals.

use crate::recipe::Owner;
use crate::text::shown;

/// The largest id that `USER` may name: runtimes use signed 32-bit ids.
const MAX_USER: u32 = i32::MAX as u32;
/// The largest id that fits a tar header's octal field.
const MAX_OWNER: u32 = 0o777_7777;

/// A decimal id without sign or leading zeros.
fn id(text: &str, max: u32) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    let value = text.parse().ok().filter(|_| plain && canonical)?;
    (value <= max).then_some(value)
}

/// `UID` or `UID:GID`. A missing group is the number of the user, as BuildKit has it.
fn pair(text: &str, max: u32) -> Option<Owner> {
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    let (uid, gid) = (id(user, max)?, id(group, max)?);
    Some(Owner { uid, gid })
}

/// A user that is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not numeric, and the image has no user database", shown(.0))]
pub(crate) struct NotNumeric(String);

/// The argument of `USER`.
pub(crate) fn user(text: &str) -> Result<Owner, NotNumeric> {
    pair(text, MAX_USER).ok_or_else(|| NotNumeric(text.to_owned()))
}

/// The value of `--chown`.
pub(crate) fn owner(text: &str) -> Result<Owner, (String, &'static str)> {
    pair(text, MAX_OWNER).ok_or_else(|| {
        let why = format!(
            "`{}` is not UID or UID:GID with numbers up to {MAX_OWNER}",
            shown(text)
        );
        (why, "write for example --chown=1000:1000")
    })
}

/// The value of `--chmod`.
pub(crate) fn mode(text: &str) -> Result<u32, (String, &'static str)> {
    let octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| octal && *mode <= 0o7777)
        .ok_or_else(|| {
            let why = format!("`{}` is not an octal mode up to 7777", shown(text));
            (why, "write for example --chmod=0755")
        })
}

/// Whether the text names a signal: a number or a name such as `SIGTERM` or `SIGRTMIN+3`.
pub(crate) fn is_signal(text: &str) -> bool {
    if let Some(number) = id(text, 64) {
        return number > 0;
    }
    let (name, offset) = match text.split_once(['+', '-']) {
        Some((name, offset)) => (name, id(offset, 64).is_some()),
        None => (text, true),
    };
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    offset && name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::{is_signal, mode, owner, user};
    use crate::Owner;

    #[test]
    fn users_are_numbers() {
        assert_eq!(user("5"), Ok(Owner { uid: 5, gid: 5 }));
        assert_eq!(user("0:7"), Ok(Owner { uid: 0, gid: 7 }));
        for text in [
            "",
            "root",
            "+1",
            "-1",
            "01",
            "1:",
            ":1",
            "1:2:3",
            "2147483648",
            "1 ",
        ] {
            assert!(user(text).is_err(), "{text}");
        }
        assert!(user("2147483647").is_ok());
        assert!(owner("2097151").is_ok());
        assert!(owner("2097152").is_err());
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(mode("1777"), Ok(0o1777));
        assert_eq!(mode("0755"), Ok(0o755));
        for text in ["", "u+x", "888", "+7", "17777", "77777777777777777"] {
            assert!(mode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn signals() {
        for text in ["SIGTERM", "TERM", "15", "SIGRTMIN+3", "SIGUSR1"] {
            assert!(is_signal(text), "{text}");
        }
        for text in ["", "0", "65", "sigterm", "SIG TERM", "SIGRTMIN+", "+3"] {
            assert!(!is_signal(text), "{text}");
        }
    }
}
