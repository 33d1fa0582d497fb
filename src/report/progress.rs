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
    /// How long the longest line of this stage was.
    width: usize,
}

impl Progress {
    /// Progress on standard error, if that is a terminal and not `quiet`.
    pub fn new(quiet: bool, paint: Paint) -> Self {
        Self {
            quiet,
            shown: !quiet && std::io::stderr().is_terminal(),
            paint,
            current: None,
            width: 0,
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
            self.width = 0;
        }
    }

    /// How far the stage is.
    pub fn count(&mut self, done: u64, of: u64) {
        if let Some((name, _)) = &self.current {
            let mut err = std::io::stderr();
            let line = format!("  · {name:<8} {done} of {of}");
            self.width = self.width.max(line.chars().count());
            let _ = write!(err, "\r{line}");
            let _ = err.flush();
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
            // Over whatever stood there.
            let rest = self
                .width
                .saturating_sub(format!("  ✓ {name:<8} {took:>5} ms").chars().count());
            let rest = " ".repeat(rest);
            let _ = writeln!(std::io::stderr(), "\r  {mark} {name:<8} {took:>5} ms{rest}");
        }
    }
}

impl Listener for Progress {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Begins(stage) => self.stage(stage.name()),
            Event::Done { done, of } => self.count(done, of),
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
