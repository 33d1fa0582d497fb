//! #20: text that would act.

use crate::common::acceptance::proof;
use crate::common::inspected::{Inspected, Made};
use serde_json::json;
use tki_inspector::wire::{ACTIONS, BINDING, MARKDOWN, REPORT};

/// Texts that would act on a terminal, in Markdown or in a browser.
const HOSTILE: [&str; 10] = [
    "\u{1b}[2J\u{1b}[31mred",
    "a\nb\r\nc",
    "| a | b |\n|---|---|",
    "](http://example.invalid)",
    "![x](http://example.invalid/x.png)",
    "<script>alert(1)</script>",
    "<!-- hidden",
    "\u{202e}desrever\u{2066}",
    "```\n# heading\n```",
    "\u{9b}31m \u{7f} \u{200b} \u{feff}",
];

/// A packet that has this text in every field that takes one.
fn saying(text: &str) -> Made {
    let mut made = Made::new();
    let line: String = text.chars().filter(|c| !c.is_control()).collect();
    made.item("a", "report", &format!("{{\"a\": {}}}", json!(text)));
    made.item("b", "report", text);
    let source = &mut made.edit("b")["source"];
    source["locator"] = line.clone().into();
    source["captured_by"] = line.clone().into();
    let place = json!({"item": "a", "at": {"json": "/a"}, "expect": {"equals": text}});
    made.claim("holds", json!([place]))["text"] = text.into();
    let place = json!({"item": "a", "at": {"json": "/a"}, "expect": {"equals": "x"}});
    made.claim("fails", json!([place]))["text"] = text.into();
    let lines = json!({"first": 1, "last": 1, "quote": text});
    let claim = made.claim("quoted", json!([{"item": "b", "at": {"lines": lines}}]));
    claim["holder"] = line.into();
    made
}

/// What Markdown makes of it: how each line begins, and its cells.
fn structure(inspected: &Inspected) -> Vec<(String, usize)> {
    let lines = inspected.file(MARKDOWN).lines();
    let shape = |line: &str| {
        let begins: String = line.chars().take_while(|c| "#|-* ".contains(*c)).collect();
        let bars = line.matches('|').count() - line.matches("\\|").count();
        (begins, bars)
    };
    lines.map(shape).collect()
}

#[test]
fn m20_text_from_the_packet_does_not_act() {
    let plain = saying("plain").inspected();
    for text in HOSTILE {
        let made = saying(text);
        // What is no text of one line is refused where one line is asked for; where it is
        // taken, it does not act.
        let inspected = match made.inspect() {
            Ok(inspection) => Inspected(inspection),
            Err(refusal) => {
                assert!(
                    !refusal.reason().contains(|c: char| c.is_control()),
                    "{text:?}"
                );
                let mut made = made;
                made.edit("b")["source"]["locator"] = "b".into();
                made.edit("b")["source"]["captured_by"] = "packer".into();
                made.value["claims"][2]["holder"] = "owner".into();
                made.inspected()
            }
        };
        for name in [REPORT, MARKDOWN, BINDING, ACTIONS] {
            let file = inspected.file(name);
            let acts = |c: char| {
                (c.is_control() && c != '\n')
                    || ('\u{200b}'..='\u{200f}').contains(&c)
                    || ('\u{202a}'..='\u{202e}').contains(&c)
                    || ('\u{2066}'..='\u{2069}').contains(&c)
                    || c == '\u{feff}'
            };
            let found = file.chars().find(|c| acts(*c));
            assert_eq!(found, None, "{name}: {text:?}");
        }
        // What is left of it without the characters that are escaped.
        let mut markdown = inspected.file(MARKDOWN).to_owned();
        while let Some(at) = markdown.find('\\') {
            let end = markdown[at + 1..]
                .chars()
                .next()
                .map_or(1, |c| 1 + c.len_utf8());
            markdown.replace_range(at..at + end, "");
        }
        for markup in ["<script", "<!--", "](http", "```", "://"] {
            assert!(!markdown.contains(markup), "{markup}: {text:?}");
        }
        assert_eq!(structure(&inspected), structure(&plain), "{text:?}");
    }
    proof(
        20,
        format!(
            "{} texts in every field: no control character, the structure of plain text",
            HOSTILE.len()
        ),
    );
}
