//! What an engine or a library says, as text for a message.

/// An error with everything that caused it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// An engine's words, cut and without terminal escapes.
pub fn printable(text: &str) -> String {
    tki_text::printable(text.trim(), 600)
}
