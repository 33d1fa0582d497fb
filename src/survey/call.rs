//! One probe and what came back: verbatim, but cut, printable and without
//! secrets.

use crate::survey::redact::Redactor;
use serde::Serialize;

/// The most characters of a result.
pub const MOST: usize = 600;

/// A call that was made and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// What was called.
    pub call: String,
    /// What came back.
    pub result: String,
}

impl Call {
    /// A call and a result of our own making or from elsewhere.
    pub fn new(call: impl AsRef<str>, result: impl AsRef<str>) -> Self {
        Redactor::default().call(call, result)
    }
}

/// What came of something, before secrets are taken out: what this tool says about
/// it, and what a server or a program said. Only a [`Redactor`] makes a text of it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub(super) own: String,
    pub(super) words: Vec<Words>,
}

/// Words of somebody else.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) lead: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) cut: bool,
}

impl Told {
    /// Adds what somebody else said, and whether its end is missing; `lead` stands
    /// in front of it.
    pub fn with_words(mut self, lead: &'static str, bytes: impl Into<Vec<u8>>, cut: bool) -> Self {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.words.push(Words { lead, bytes, cut });
        }
        self
    }
}

impl<T: Into<String>> From<T> for Told {
    /// What this tool says itself.
    fn from(own: T) -> Self {
        Self {
            own: own.into(),
            words: Vec::new(),
        }
    }
}
