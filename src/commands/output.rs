//! Results on standard output.

use crate::commands::error::CommandError;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use tki_text::printable;

/// Prints a text. A reader that has seen enough and closed the pipe is no error.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::Output(error)),
        _ => Ok(()),
    }
}

/// Says on standard error what else can be done. It is no result, and whether it was read
/// changes nothing.
pub fn hint(text: &str) {
    let _ = writeln!(std::io::stderr(), "tki-attest: {}", printable(text, 4000));
}

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), CommandError> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}
