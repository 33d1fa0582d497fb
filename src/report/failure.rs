//! A failure: for a person on standard error, for a program on standard output.

use crate::failure::Failure;
use crate::report::table::Paint;
use serde::Serialize;
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

/// What a program reads of a failure.
#[derive(Debug, Serialize)]
struct Document<'a> {
    failure: Told<'a>,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    exit: u8,
    code: &'a str,
    message: &'a str,
    next: &'a str,
}

/// The failure as a JSON text of one line: `{"failure":{"exit":…,"code":…,"message":…,"next":…}}`.
pub fn json(failure: &Failure) -> String {
    let document = Document {
        failure: Told {
            exit: failure.exit as u8,
            code: failure.code,
            message: &failure.message,
            next: &failure.next,
        },
    };
    // Numbers and texts alone: this cannot fail.
    tki_text::json(serde_json::to_string(&document).unwrap_or_default()) + "\n"
}

/// Says it on standard output, as JSON.
pub fn print_json(failure: &Failure) {
    let _ = std::io::stdout().write_all(json(failure).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::json;
    use crate::failure::Failure;

    #[test]
    fn a_program_reads_what_a_person_reads_and_nothing_in_it_acts() {
        let failure = Failure::blocked(
            "engine.none",
            "no \u{1b}[31m\u{202e}engine\nhere",
            "start one",
        );
        let text = json(&failure);
        assert!(!text.trim_end().contains(tki_text::acts), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            serde_json::json!({"failure": {
                "exit": 3,
                "code": "engine.none",
                "message": "no \u{1b}[31m\u{202e}engine\nhere",
                "next": "start one"
            }})
        );
    }
}
