//! Profiles from elsewhere: seccomp profiles that `seccomp lint`, `explain` and `run`
//! read, and the TOML file of limits. Whatever comes out, nothing panics, nothing
//! escapes to the terminal, and no filter is longer than the kernel takes.
#![no_main]

#[path = "../edits.rs"]
mod edits;

use arbitrary::{Arbitrary, Unstructured};
use edits::{Edit, apply};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tki_attest::engine::local::compiled_filter;
use tki_attest::report::seccomp as report;
use tki_attest::report::table::{ColorChoice, Paint};
use tki_attest::sandbox::explain::explain;
use tki_attest::sandbox::lint::lint;
use tki_attest::sandbox::profile::Limits;
use tki_attest::sandbox::seccomp::Seccomp;
use tki_evidence::seccomp::{Rules, gated, is_gated};

/// The most instructions of a filter, and the bytes of each.
const MOST: usize = 4096 * 8;

#[derive(Arbitrary, Debug)]
enum Input {
    /// A built-in profile, edited.
    Edited { allows: bool, edits: Vec<Edit> },
    /// Any bytes as a profile.
    Profile(Vec<u8>),
    /// Lines of a file of limits.
    Limits(Vec<(Key, Number)>),
    /// Any text as one.
    Toml(String),
}

#[derive(Arbitrary, Debug)]
enum Key {
    Table,
    Pids,
    MemoryBytes,
    CpuMillis,
    OutBytes,
    Other(String),
}

#[derive(Arbitrary, Debug)]
enum Number {
    Plain(i64),
    Large(u64),
    Text(String),
}

fn profile(bytes: &[u8]) {
    if let Ok(rules) = Rules::parse(bytes) {
        let plain = Paint::stdout(ColorChoice::Never);
        let findings = lint(&rules);
        let explanation = explain(&rules);
        for text in [
            report::findings(&findings, plain),
            report::explanation(&explanation, true, plain),
        ] {
            assert!(!text.contains('\u{1b}'), "an escape got through");
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(filter) = compiled_filter(text) {
        assert!(filter.len() <= MOST, "{} bytes", filter.len());
    }
    // What `run` takes can be extended by an exec gate, and is known again afterwards.
    if Seccomp::from_text("fuzzed", text).is_ok()
        && let Some(extended) = gated(text, "/run/socket")
    {
        assert!(
            is_gated(&extended, text),
            "an extended profile is not known again"
        );
    }
}

fn limits(text: &str) {
    if let Ok(limits) = Limits::parse(text) {
        assert!((8..=4096).contains(&limits.pids));
        assert!((16 << 20..=1 << 40).contains(&limits.memory_bytes));
        assert!((4096..=1 << 40).contains(&limits.out_bytes));
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    match input {
        Input::Edited { allows, edits } => {
            let base = match allows {
                true => tki_evidence::TARGETED_DENY,
                false => tki_evidence::DENY_BY_DEFAULT,
            };
            let mut document: Value = serde_json::from_str(base).expect("a profile");
            apply(&mut document, &edits);
            profile(document.to_string().as_bytes());
        }
        Input::Profile(bytes) => profile(&bytes),
        Input::Limits(lines) => {
            let lines = lines.iter().map(|(key, number)| {
                let number = match number {
                    Number::Plain(number) => number.to_string(),
                    Number::Large(number) => number.to_string(),
                    Number::Text(text) => text.clone(),
                };
                match key {
                    Key::Table => "[limits]\n".to_owned(),
                    Key::Pids => format!("pids = {number}\n"),
                    Key::MemoryBytes => format!("memory_bytes = {number}\n"),
                    Key::CpuMillis => format!("cpu_millis = {number}\n"),
                    Key::OutBytes => format!("out_bytes = {number}\n"),
                    Key::Other(key) => format!("{key} = {number}\n"),
                }
            });
            limits(&lines.collect::<String>());
        }
        Input::Toml(text) => limits(&text),
    }
});
