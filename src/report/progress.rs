//! A line per stage on a terminal, nothing in a pipe.

use crate::attest::events::{Event, Listener};
use crate::report::table::Paint;
use std::io::{IsTerminal, Write};
use std::time::Instant;
use tki_text::printable;

/// Shows which stage a command is in.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
    shown: bool,
    paint: Paint,
    current: Option<(String, Instant)>,
}

impl Progress {
    /// Progress on standard error, if that is a terminal and not `quiet`.
    pub fn new(quiet: bool, paint: Paint) -> Self {
        Self {
            quiet,
            shown: !quiet && std::io::stderr().is_terminal(),
            paint,
            current: None,
        }
    }

    /// The stage before is done and this one begins.
    pub fn stage(&mut self, name: &str) {
        self.finish();
        if self.shown {
            let mut err = std::io::stderr();
            let _ = write!(err, "  · {name:<8} …");
            let _ = err.flush();
            self.current = Some((name.to_owned(), Instant::now()));
        }
    }

    /// Something that the user should know, also in a pipe.
    pub fn note(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        let text = printable(text, 300);
        let start = if self.current.is_some() { "\n" } else { "" };
        let _ = writeln!(std::io::stderr(), "{start}tki-attest: note: {text}");
    }

    /// The last stage is done.
    pub fn finish(&mut self) {
        if let Some((name, since)) = self.current.take() {
            let mark = self.paint.good("✓");
            let took = since.elapsed().as_millis();
            let _ = writeln!(std::io::stderr(), "\r  {mark} {name:<8} {took:>5} ms");
        }
    }
}

impl Listener for Progress {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Begins(stage) => self.stage(stage.name()),
            Event::Note(text) => self.note(text),
        }
    }
}

impl Drop for Progress {
    /// A stage that did not come to its end leaves its line as it is.
    fn drop(&mut self) {
        if self.current.take().is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}
