//! What came of a probe, before secrets are taken out of it.

/// What came of something, before secrets are taken out: what this tool says about
/// it, and what a server or a program said. Only a [`Redactor`] makes a text of it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub(super) own: String,
    pub(super) words: Vec<Words>,
}

/// Words of another party.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) lead: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) cut: bool,
}

impl Told {
    /// Adds what another party said, and whether its end is missing; `lead` stands
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
