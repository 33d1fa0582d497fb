//! Security options, as engines report them. Of `seccomp` and `no-new-privileges` one
//! each is expected; engines apply the last of several, and some take a colon for an
//! equals sign, so anything else is kept apart and shows.

use alloc::string::String;
use alloc::vec::Vec;

/// A value that should stand there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// It does not stand there.
    None,
    /// Once.
    One(&'a str),
    /// More than once, or in another spelling.
    Several,
}

/// What the options of a container come to.
#[derive(Debug)]
pub(super) struct Options<'a> {
    /// The profile that is named.
    pub seccomp: Named<'a>,
    /// The bit is set, and nothing takes it back.
    pub no_new_privileges: bool,
    /// Everything else, in its order.
    pub others: Vec<String>,
}

impl<'a> Options<'a> {
    /// Reads options.
    pub fn of(options: &'a [String]) -> Self {
        let mut found = Self {
            seccomp: Named::None,
            no_new_privileges: false,
            others: Vec::new(),
        };
        let mut bits = 0;
        for option in options {
            match option.as_str() {
                "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true"
                    if bits == 0 =>
                {
                    bits += 1;
                    continue;
                }
                word if word.starts_with("no-new-privileges") => bits += 1,
                word if word.starts_with("seccomp=") && found.seccomp == Named::None => {
                    found.seccomp = Named::One(&word["seccomp=".len()..]);
                    continue;
                }
                word if word.starts_with("seccomp") => found.seccomp = Named::Several,
                // A profile of AppArmor's only takes away.
                word if is_confinement(word) => continue,
                _ => {}
            }
            found.others.push(option.clone());
        }
        let others = found.others.iter();
        let undone = others.filter(|other| other.starts_with("no-new-privileges"));
        found.no_new_privileges = bits > 0 && undone.count() == 0;
        found
    }
}

/// An AppArmor profile, which hosts that have it give every container.
fn is_confinement(option: &str) -> bool {
    let profile = option.strip_prefix("apparmor=");
    profile.is_some_and(|profile| !profile.is_empty() && profile != "unconfined")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;

    fn of(options: &[&str]) -> (bool, bool, usize) {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        let found = Options::of(&options);
        let one = matches!(found.seccomp, Named::One(_));
        (one, found.no_new_privileges, found.others.len())
    }

    #[test]
    fn what_is_there_once_counts() {
        assert_eq!(of(&[]), (false, false, 0));
        assert_eq!(of(&["seccomp=x", "no-new-privileges"]), (true, true, 0));
        assert_eq!(of(&["no-new-privileges:true"]), (false, true, 0));
        assert_eq!(
            of(&["apparmor=docker-default", "seccomp=x"]),
            (true, false, 0)
        );
    }

    #[test]
    fn what_is_there_twice_or_unknown_shows() {
        assert_eq!(
            of(&["no-new-privileges", "no-new-privileges:false"]),
            (false, false, 1)
        );
        assert_eq!(
            of(&["no-new-privileges:false", "no-new-privileges"]),
            (false, false, 2)
        );
        assert_eq!(
            of(&["no-new-privileges", "no-new-privileges"]),
            (false, false, 1)
        );
        assert_eq!(of(&["seccomp:x"]), (false, false, 1));
        assert_eq!(of(&["seccomp:x", "seccomp=y"]), (false, false, 2));
        assert_eq!(
            of(&["apparmor=unconfined", "label=disable", "new"]),
            (false, false, 3)
        );
    }
}
