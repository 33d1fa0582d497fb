//! Why a list of allowed signers cannot be used.

use alloc::string::String;

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ListError {
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    pub what: ListProblem,
}

/// What is wrong with a line, or with the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    /// Not UTF-8.
    #[error("it is not text")]
    Text,
    /// Nobody could have signed.
    #[error("there is no Ed25519 key in it: nobody could be trusted")]
    NoKey,
    /// Nobody is named.
    #[error("there is no principal")]
    NoPrincipal,
    /// A certificate authority.
    #[error("cert-authority: certificates are not supported; list the keys themselves")]
    Authority,
    /// An option that is unknown, empty, or given twice.
    #[error("the option {0:?} is not understood")]
    Option(String),
    /// What should be the kind of key is another word.
    #[error("{0:?} is neither an option nor a kind of key")]
    Kind(String),
    /// The key's text is not one.
    #[error("the key cannot be read: {0}")]
    Key(ssh_key::Error),
    /// The key's text is that of another kind than its line says.
    #[error("the key is of another kind")]
    OtherKey,
    /// The key's bytes are no public key.
    #[error("the key is not a point of the curve")]
    Point,
    /// Everybody knows a signature that it accepts.
    #[error("the key is weak: anybody can sign for it")]
    Weak,
    /// It ends before it begins.
    #[error("it is valid at no time")]
    Never,
    /// A quotation mark without its partner.
    #[error("a quote is not closed")]
    Quote,
    /// There is no key.
    #[error("the line ends before its key")]
    End,
    /// An option's value without quotation marks.
    #[error("the value {0:?} must stand in quotes")]
    Unquoted(String),
    /// A time in another form.
    #[error("{0:?} is not a time of the form YYYYMMDD[HHMM[SS]][Z]")]
    Time(String),
}
