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

impl Redactor {
    /// A call and its result without secrets.
    pub fn call(&self, call: impl AsRef<str>, result: impl AsRef<str>) -> Call {
        Call {
            call: self.clean(call.as_ref(), MOST),
            result: self.clean(result.as_ref(), MOST),
        }
    }
}
