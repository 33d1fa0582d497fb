//! Paths of items: from the packet's own directory, downwards, in one spelling.

use alloc::string::String;
use tki_text::acts;

/// The most bytes of a path.
pub const MAX_PATH: usize = 512;

/// The most bytes of a name in it.
const MAX_NAME: usize = 200;

/// The most directories that it may go down.
const MAX_DEPTH: usize = 12;

/// Why a path is not one of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing, or too much of it.
    #[error("it has no name in it, or more than {MAX_PATH} bytes")]
    Length,
    /// It begins at the root.
    #[error("it begins with `/`")]
    Absolute,
    /// It has a part that leads nowhere, back or up.
    #[error("it has an empty part, `.` or `..`")]
    Detour,
    /// It has characters that another system, a terminal or a shell takes for more than a name.
    #[error("it has a control character, a backslash or a character that is not seen")]
    Character,
    /// It goes down too far.
    #[error("it goes down more than {MAX_DEPTH} directories")]
    Depth,
}

/// Whether this is a path below the packet's directory, in the only spelling that it has.
pub fn check(path: &str) -> Result<(), PathError> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Err(PathError::Length);
    }
    if path.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if path.chars().any(|c| acts(c) || c == '\\') {
        return Err(PathError::Character);
    }
    let mut depth = 0;
    for name in path.split('/') {
        if matches!(name, "" | "." | "..") {
            return Err(PathError::Detour);
        }
        if name.len() > MAX_NAME {
            return Err(PathError::Length);
        }
        depth += 1;
    }
    match depth <= MAX_DEPTH {
        true => Ok(()),
        false => Err(PathError::Depth),
    }
}

/// The path of an item as the inspector opens it.
pub fn below(folder: &str, path: &str) -> String {
    alloc::format!("{folder}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn one_spelling_downwards_is_taken() {
        for good in ["a", "a/b.json", "docs/ünï.md", "-x", "a b"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let deep = ["d"; 13].join("/");
        let long = "x".repeat(MAX_PATH + 1);
        let name = "x".repeat(MAX_NAME + 1);
        for (bad, why) in [
            ("", PathError::Length),
            (long.as_str(), PathError::Length),
            (&name, PathError::Length),
            ("/etc/shadow", PathError::Absolute),
            ("../x", PathError::Detour),
            ("a/../x", PathError::Detour),
            ("a/./x", PathError::Detour),
            ("a//x", PathError::Detour),
            ("a/", PathError::Detour),
            (".", PathError::Detour),
            ("a\\b", PathError::Character),
            ("a\0b", PathError::Character),
            ("a\u{1b}[2J", PathError::Character),
            ("a\u{202e}b", PathError::Character),
            (&deep, PathError::Depth),
        ] {
            assert_eq!(check(bad), Err(why), "{bad:?}");
            assert!(!why.to_string().is_empty());
        }
    }
}
