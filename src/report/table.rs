//! Tables for the terminal, with colour where there is one.

use anstyle::{AnsiColor, Style};
use std::io::IsTerminal;
use tki_evidence::evidence::Verdict;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Colours text, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// For standard output.
    pub fn stdout(choice: ColorChoice) -> Self {
        Self::decide(choice, std::io::stdout().is_terminal())
    }

    /// For standard error.
    pub fn stderr(choice: ColorChoice) -> Self {
        Self::decide(choice, std::io::stderr().is_terminal())
    }

    fn decide(choice: ColorChoice, terminal: bool) -> Self {
        Self(match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                terminal && !no_color
            }
        })
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.0 {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Green: success.
    pub fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// Red: failure.
    pub fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// Not known.
    pub fn doubt(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Dimmed: secondary.
    pub fn dim(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// A verdict in its colour, padded to `width` before it is coloured.
    pub fn verdict(self, verdict: Verdict, width: usize) -> String {
        let padded = format!("{:<width$}", verdict.name());
        match verdict {
            Verdict::Pass => self.good(&padded),
            Verdict::Fail => self.bad(&padded),
            Verdict::Unproven => self.doubt(&padded),
        }
    }
}

/// Text in a column of this width.
pub fn column(text: &str, width: usize) -> String {
    let length = text.chars().count();
    let mut out = text.to_owned();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(length)));
    out
}
