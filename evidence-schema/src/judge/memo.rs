//! What is read from a text, kept for the next time the same text is read: a
//! verification judges twenty-one conversations that mostly hold the same ones.
//! Equal texts give equal results, so nobody sees a difference but the clock.

use crate::catalogue::floor;
use crate::facts::{self, BadLine, Mount};
use crate::seccomp::{About, Rules};
use crate::syscalls;
use std::cell::RefCell;
use std::rc::Rc;

/// How many texts of each kind are kept.
const KEPT: usize = 4;

type Kept<T> = RefCell<Vec<(String, Rc<T>)>>;

thread_local! {
    static MOUNTS: Kept<Result<Vec<Mount>, BadLine>> = const { RefCell::new(Vec::new()) };
    static CALLS: Kept<Option<Rc<Calls>>> = const { RefCell::new(Vec::new()) };
}

fn kept<T>(store: &Kept<T>, text: &str, read: impl FnOnce() -> T) -> Rc<T> {
    let mut store = store.borrow_mut();
    if let Some((_, known)) = store.iter().find(|(known, _)| known == text) {
        return Rc::clone(known);
    }
    let new = Rc::new(read());
    if store.len() == KEPT {
        store.remove(0);
    }
    store.push((text.to_owned(), Rc::clone(&new)));
    new
}

/// A mount table.
pub fn mounts(text: &str) -> Rc<Result<Vec<Mount>, BadLine>> {
    MOUNTS.with(|store| kept(store, text, || facts::mounts(text)))
}

/// What is expected of one system call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The inspector does not try it.
    pub not_tried: bool,
    /// The floor or the profile denies it.
    pub must_be_denied: bool,
}

/// What is expected of every system call, by number.
#[derive(Debug)]
pub struct Calls {
    known: Vec<Call>,
    unknown: Call,
}

impl Calls {
    fn new(rules: Option<&Rules>) -> Self {
        let about = |name: &str| Call {
            not_tried: floor::NOT_TRIED.contains(&name),
            must_be_denied: !floor::UNFILTERED.contains(&name)
                && (floor::DENIED.contains(&name)
                    || rules.is_some_and(|rules| rules.about(name) == About::Denied)),
        };
        let unknown = about("unknown");
        let call = |number| syscalls::name(number).map_or(unknown, about);
        Self {
            known: (0..syscalls::BEYOND).map(call).collect(),
            unknown,
        }
    }

    /// A call by its number.
    pub fn get(&self, number: usize) -> Option<&Call> {
        self.known.get(number)
    }

    /// A call that has no name.
    pub fn unknown(&self) -> Call {
        self.unknown
    }
}

/// What a profile expects; `None` if it cannot be read. Without any profile
/// only the floor counts.
pub fn calls(profile: &str) -> Option<Rc<Calls>> {
    let table = CALLS.with(|store| {
        kept(store, profile, || match profile {
            "" => Some(Rc::new(Calls::new(None))),
            text => Rules::parse(text.as_bytes())
                .ok()
                .map(|rules| Rc::new(Calls::new(Some(&rules)))),
        })
    });
    Option::clone(&table)
}
