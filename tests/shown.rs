//! What a person reads, as it stands in `tests/snapshots/`. A change of a word fails here;
//! CONTRIBUTING.md says how to look at it and take it in.

/// What the commands say when they cannot go on.
mod errors;
/// The help of every command.
mod help;
/// A run's tables, a survey's, the engines'.
mod reports;
/// What `verify` and `diff` say of bundles.
mod verdicts;

use crate::common::Said;

/// Compares a text with the file of this name.
#[track_caller]
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Everything that a command said, and how it ended.
fn transcript(said: &Said) -> String {
    assert!(!said.stdout.contains('\u{1b}') && !said.stderr.contains('\u{1b}'));
    let mut text = format!("exit {}\n", said.status);
    for (name, stream) in [("stdout", &said.stdout), ("stderr", &said.stderr)] {
        if !stream.is_empty() {
            text += &format!("--- {name}\n{}\n", stream.trim_end());
        }
    }
    text
}
