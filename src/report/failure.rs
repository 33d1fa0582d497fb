//! A failure, as a person sees it on standard error.

use crate::failure::Failure;
use crate::report::table::Paint;
use std::io::Write;
use tki_text::printable;

/// Says it on standard error.
pub fn print(failure: &Failure, paint: Paint) {
    // A message may quote a file's name or content: its lines stay, its
    // escapes do not.
    let harmless = |message: &str| {
        let lines = message.lines().map(|line| printable(line, 4000));
        lines.collect::<Vec<String>>().join("\n")
    };
    let _ = writeln!(
        std::io::stderr(),
        "{} [{}] {}\n  next: {}",
        paint.bad("tki-attest:"),
        failure.code,
        harmless(&failure.message),
        harmless(&failure.next)
    );
}
