//! Verifications in every form that `verify` prints, one or many.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::table::Paint;
use crate::report::{decision, junit, markdown};
use crate::verify::{Verification, Verified};
use serde::Serialize;
use std::path::Path;
use tki_text::printable;

pub use crate::report::decision::render as text;

/// How a verification is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum VerifyFormat {
    /// For people.
    Text,
    /// For programs: tki-attest/verification/v1.
    Json,
    /// For issues and wikis.
    Markdown,
    /// For CI systems.
    Junit,
}

/// Prints verifications in one form.
#[derive(Debug)]
pub struct Printer {
    format: VerifyFormat,
    verbose: bool,
    paint: Paint,
    count: usize,
}

/// A bundle that is none, for a program.
#[derive(Serialize)]
struct Unreadable<'a> {
    bundle: String,
    error: &'a str,
    message: String,
    next: &'a str,
}

impl Printer {
    /// Nothing was printed yet.
    pub fn new(format: VerifyFormat, verbose: bool, paint: Paint) -> Self {
        Self {
            format,
            verbose,
            paint,
            count: 0,
        }
    }

    /// The one and only.
    pub fn one(&self, verification: &Verification) -> Result<String, Failure> {
        Ok(match self.format {
            VerifyFormat::Text => text(verification, self.verbose, self.paint),
            VerifyFormat::Json => json(verification)? + "\n",
            VerifyFormat::Markdown => markdown::render(verification),
            VerifyFormat::Junit => {
                format!(
                    "{}{}{}",
                    junit::BEGIN,
                    junit::suite(verification),
                    junit::END
                )
            }
        })
    }

    /// The next of several.
    pub fn next(&mut self, path: &Path, result: &Verified) -> Result<String, Failure> {
        self.count += 1;
        let first = self.count == 1;
        let name = path.to_string_lossy();
        Ok(match (self.format, result) {
            (VerifyFormat::Text, Ok(found)) if self.verbose => text(found, true, self.paint) + "\n",
            (VerifyFormat::Text, Ok(found)) => decision::line(found, self.paint),
            (VerifyFormat::Text, Err(failure)) => format!(
                "{}  {}  [{}]\n",
                self.paint.bad("UNREADABLE       "),
                printable(&name, 300),
                failure.code
            ),
            (VerifyFormat::Json, result) => {
                let value = match result {
                    Ok(found) => json(found)?,
                    Err(failure) => json(&Unreadable {
                        bundle: name.into_owned(),
                        error: failure.code,
                        message: printable(&failure.message, 1000),
                        next: &failure.next,
                    })?,
                };
                format!("{}{value}", if first { "[\n" } else { ",\n" })
            }
            (VerifyFormat::Markdown, result) => {
                let head = if first { markdown::HEAD } else { "" };
                format!("{head}{}", markdown::row(&name, result))
            }
            (VerifyFormat::Junit, result) => {
                let head = if first { junit::BEGIN } else { "" };
                let suite = match result {
                    Ok(found) => junit::suite(found),
                    Err(failure) => junit::unreadable(&name, failure),
                };
                format!("{head}{suite}")
            }
        })
    }

    /// After the last of several.
    pub fn end(&self, worst: Exit) -> String {
        match self.format {
            VerifyFormat::Text => {
                format!(
                    "{} bundles, exit code of the worst: {}\n",
                    self.count, worst as u8
                )
            }
            VerifyFormat::Json if self.count == 0 => "[]\n".into(),
            VerifyFormat::Json => "\n]\n".into(),
            VerifyFormat::Markdown => String::new(),
            VerifyFormat::Junit => junit::END.into(),
        }
    }
}

/// JSON that can be shown on a terminal, too.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(tki_text::json)
        .map_err(|error| Failure::internal("json", error.to_string()))
}
