//! What the floor and a seccomp profile expect of every system call.

use crate::catalogue::floor;
use crate::seccomp::{About, Place, Rules};
use crate::syscalls;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

/// What is expected of one system call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The prober does not try it.
    pub not_tried: bool,
    /// The kernel lets it past every filter.
    pub unfiltered: bool,
    /// It is on the floor.
    pub floor: bool,
    /// The prober could not have told anything without it.
    pub needed: bool,
    /// What the profile says about it.
    pub about: About,
}

impl Call {
    /// The floor or the profile denies it.
    pub fn must_be_denied(self) -> bool {
        !self.unfiltered && (self.floor || self.about == About::Denied)
    }
}

/// What is expected of every system call, by number.
#[derive(Clone, Debug)]
pub struct Calls {
    known: Vec<Call>,
    unknown: Call,
    /// What no rule names is denied.
    pub denies_by_default: bool,
    /// What the profile does not deny of the floor, found by reading it.
    pub open: Vec<String>,
}

impl Calls {
    /// What a profile expects in a place; `None` if it cannot be read. Without any profile
    /// only the floor counts.
    pub fn of(profile: &str, place: Place) -> Option<Cow<'static, Self>> {
        // The profiles that are compiled in are read once; they are the same for
        // every bundle and say nothing about places. Any other is read for each
        // bundle that holds it.
        static BUILT_IN: OnceBox<Vec<(&str, Calls)>> = OnceBox::new();
        let built_in = BUILT_IN.get_or_init(|| {
            let texts = ["", crate::TARGETED_DENY, crate::DENY_BY_DEFAULT].into_iter();
            let read = |text| Some((text, Self::read(text, Place::default())?));
            Box::new(texts.filter_map(read).collect())
        });
        match built_in.iter().find(|(text, _)| *text == profile) {
            Some((_, calls)) => Some(Cow::Borrowed(calls)),
            None => Self::read(profile, place).map(Cow::Owned),
        }
    }

    fn read(profile: &str, place: Place) -> Option<Self> {
        let rules = match profile {
            "" => None,
            text => Some(Rules::parse(text.as_bytes()).ok()?),
        };
        let reading = rules.as_ref().map(|rules| rules.read_for(place));
        let call = |number: u32| {
            let name = syscalls::name(number).unwrap_or("unknown");
            let about = reading.as_ref().map(|reading| reading.about(name));
            Call {
                about: about.unwrap_or(About::Allowed),
                ..floor_of(number)
            }
        };
        let open = reading.as_ref().map(|reading| reading.open_floor());
        let shown = |(name, about): (String, About)| format!("{name} ({})", about.word());
        Some(Self {
            known: (0..syscalls::BEYOND).map(call).collect(),
            unknown: call(syscalls::BEYOND),
            denies_by_default: rules.as_ref().is_some_and(Rules::denies_by_default),
            open: open.unwrap_or_default().into_iter().map(shown).collect(),
        })
    }

    /// A call by its number.
    pub fn get(&self, number: u32) -> Call {
        let index = usize::try_from(number).ok();
        let known = index.and_then(|index| self.known.get(index));
        known.copied().unwrap_or(self.unknown)
    }
}

/// What the floor says about one call. It is part of the tool and looked through once.
fn floor_of(number: u32) -> Call {
    static FLOOR: OnceBox<Vec<Call>> = OnceBox::new();
    let about = |number| {
        let name = syscalls::name(number).unwrap_or("unknown");
        Call {
            not_tried: floor::NOT_TRIED.contains(&name),
            unfiltered: floor::UNFILTERED.contains(&name),
            floor: floor::DENIED.contains(&name),
            needed: floor::TOLD_BY.contains(&name),
            about: About::Allowed,
        }
    };
    let known = FLOOR.get_or_init(|| Box::new((0..syscalls::BEYOND).map(about).collect()));
    let index = usize::try_from(number).ok();
    index
        .and_then(|index| known.get(index).copied())
        .unwrap_or_else(|| about(number))
}
