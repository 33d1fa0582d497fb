//! The report writer: a report becomes the files in /out, the same bytes for the same packet.

use crate::binding::Binding;
use crate::markdown;
use crate::report::Report;
use crate::wire::{ACTIONS, BINDING, MARKDOWN, REPORT};
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

/// The files, in the order in which they are written.
pub fn files(report: &Report, binding: &Binding) -> Vec<(&'static str, Vec<u8>)> {
    let mut actions = String::new();
    for action in &report.actions {
        actions += &line(action);
        actions.push('\n');
    }
    Vec::from([
        (REPORT, json(report).into_bytes()),
        (MARKDOWN, markdown::markdown(report).into_bytes()),
        (BINDING, binding.to_text().into_bytes()),
        (ACTIONS, actions.into_bytes()),
    ])
}

/// A value as a JSON text of several lines that can be shown.
pub fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut text = tki_text::json(text);
    text.push('\n');
    text
}

fn line(value: &impl Serialize) -> String {
    tki_text::json(serde_json::to_string(value).unwrap_or_default())
}
