//! What the floor and a seccomp profile expect of every system call.

use crate::catalogue::floor;
use crate::seccomp::{About, Rules};
use crate::syscalls;
use std::borrow::Cow;
use std::sync::OnceLock;

/// What is expected of one system call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The inspector does not try it.
    pub not_tried: bool,
    /// The floor or the profile denies it.
    pub must_be_denied: bool,
}

/// What is expected of every system call, by number.
#[derive(Clone, Debug)]
pub struct Calls {
    known: Vec<Call>,
    unknown: Call,
}

impl Calls {
    /// What a profile expects; `None` if it cannot be read. Without any profile
    /// only the floor counts.
    pub fn of(profile: &str) -> Option<Cow<'static, Self>> {
        // The profiles that are compiled in are read once; they are the same for
        // every bundle. Any other is read for each bundle that holds it.
        static BUILT_IN: OnceLock<Vec<(&str, Calls)>> = OnceLock::new();
        let built_in = BUILT_IN.get_or_init(|| {
            ["", crate::TARGETED_DENY, crate::DENY_BY_DEFAULT]
                .into_iter()
                .filter_map(|text| Some((text, Self::read(text)?)))
                .collect()
        });
        match built_in.iter().find(|(text, _)| *text == profile) {
            Some((_, calls)) => Some(Cow::Borrowed(calls)),
            None => Self::read(profile).map(Cow::Owned),
        }
    }

    fn read(profile: &str) -> Option<Self> {
        let rules = match profile {
            "" => None,
            text => Some(Rules::parse(text.as_bytes()).ok()?),
        };
        let named = rules.as_ref().map(Rules::named).unwrap_or_default();
        let otherwise = rules.as_ref().map_or(About::Allowed, Rules::otherwise);
        let call = |number: u32| {
            let name = syscalls::name(number).unwrap_or("unknown");
            let denied = named.get(name).copied().unwrap_or(otherwise) == About::Denied;
            let floor = floor_of(number);
            Call {
                not_tried: floor.not_tried,
                must_be_denied: !floor.unfiltered && (floor.denied || denied),
            }
        };
        Some(Self {
            known: (0..syscalls::BEYOND).map(call).collect(),
            unknown: call(syscalls::BEYOND),
        })
    }

    /// A call by its number.
    pub fn get(&self, number: u32) -> Call {
        let index = usize::try_from(number).ok();
        let known = index.and_then(|index| self.known.get(index));
        known.copied().unwrap_or(self.unknown)
    }
}

/// What the floor says about one call.
#[derive(Clone, Copy)]
struct Floor {
    not_tried: bool,
    unfiltered: bool,
    denied: bool,
}

/// The floor is part of the tool and looked through once.
fn floor_of(number: u32) -> Floor {
    static FLOOR: OnceLock<Vec<Floor>> = OnceLock::new();
    let about = |number| {
        let name = syscalls::name(number).unwrap_or("unknown");
        Floor {
            not_tried: floor::NOT_TRIED.contains(&name),
            unfiltered: floor::UNFILTERED.contains(&name),
            denied: floor::DENIED.contains(&name),
        }
    };
    let known = FLOOR.get_or_init(|| (0..syscalls::BEYOND).map(about).collect());
    let index = usize::try_from(number).ok();
    index
        .and_then(|index| known.get(index).copied())
        .unwrap_or_else(|| about(number))
}
