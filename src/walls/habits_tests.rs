//! Errors have types, in every crate of the workspace.

use super::habits::{compared, free_texts, untyped};
use super::tests::read;
use super::tree::{Sources, Tree};
use std::fs;
use std::path::Path;

/// Where a `Result` may have a text for an error, and why.
const TEXTS: &[(&str, &str)] = &[
    ("src/cli.rs", "clap shows what an argument lacks"),
    ("src/cli/", "clap shows what an argument lacks"),
    (
        "probes/src/walk.rs",
        "what cannot be walked is an observation's text on the wire",
    ),
];

/// The sources of every crate of the workspace without files for tests, by path.
fn sources() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut own = Sources::new();
    read(&root.join("src"), "", &mut own);
    let tree = Tree::of(&own).unwrap();
    let for_tests = |file: &String| {
        tree.modules()
            .any(|(_, source)| source.file == *file && source.in_test)
    };
    own.retain(|file, _| !for_tests(file));
    let mut all = Sources::new();
    all.extend(
        own.into_iter()
            .map(|(file, text)| (format!("src/{file}"), text)),
    );
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if entry.path().join("Cargo.toml").is_file() && entry.path().join("src").is_dir() {
            let below = format!("{}/src/", entry.file_name().to_str().unwrap());
            read(&entry.path().join("src"), &below, &mut all);
        }
    }
    all.retain(|file, _| !file.ends_with("tests.rs"));
    assert!(all.keys().any(|file| file.starts_with("verify/src/")));
    all
}

/// Every line of the sources that a habit does not allow.
fn lines(habit: fn(&str) -> Vec<usize>, allowed: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in sources() {
        if !allowed.iter().any(|(place, _)| file.starts_with(place)) {
            found.extend(habit(&text).iter().map(|line| format!("{file}:{line}")));
        }
    }
    found
}

#[test]
fn no_result_has_a_text_for_an_error() {
    let found = lines(untyped, TEXTS);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    for (place, why) in TEXTS {
        let is_needed = sources()
            .iter()
            .any(|(file, text)| file.starts_with(place) && !untyped(text).is_empty());
        assert!(is_needed || *place == "src/cli.rs", "{place}: {why}");
    }
}

#[test]
fn no_error_is_only_a_text() {
    let found = lines(free_texts, &[]);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn nothing_is_decided_by_the_text_of_a_code() {
    let found = lines(compared, &[]);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn a_result_with_a_text_is_seen_however_it_is_written() {
    let text = "
fn a() -> Result<(), String> {}
fn b() -> std::result::Result<Vec<Option<u8>>, std::string::String> {}
type C<T> = core::result::Result<T, alloc::string::String>;
struct D { thread: JoinHandle<Result<fn(u8) -> u8, String>> }
impl FromStr for D { type Err = String; }
fn e() { let _ = Ok::<_, String>(1); let _: Result::<u8, String>; }
fn good() -> Result<String, Typed> { Ok::<String, Typed>(x) }
fn also<T: From<Result<String>>>() -> io::Result<String> {}
#[cfg(test)]
mod tests { fn f() -> Result<(), String> {} }
fn g(r: Result<(), String>) {}
";
    assert_eq!(untyped(text), [2, 3, 4, 5, 6, 7, 7, 12]);
}

#[test]
fn an_error_that_is_only_a_text_is_seen() {
    let text = r#"
enum E {
    #[error("{0}")]
    A(String),
    #[error("{why}")]
    B {
        /// Why.
        why: String,
    },
    #[error("{0}")]
    C(#[from] Other),
    #[error("no {0}")]
    D(String),
    #[error("nothing")]
    None,
    #[error("{a}")]
    F { a: String, b: u8 },
}
#[error("{0}")]
struct S(String);
"#;
    assert_eq!(free_texts(text), [3, 5, 19]);
}

#[test]
fn a_code_that_decides_is_seen() {
    let text = r#"
fn f() {
    if failure.code == "a.b" {}
    if "a.b" != self.failure.code {}
    match failure.code { "a" | "b" => 1, _ => 2 };
    let _ = failure.code.starts_with("a.");
    let _ = error.code.as_str() == "a";
    let _ = ["a", "b"].contains(&failure.code);
    let _ = matches!(failure.code, "a");
    match step.code { StepCode::Form => "a", _ => "b" };
    let _ = [StepCode::Form].contains(&step.code);
    let _ = status.code() == Some(3);
    let _ = format!("{}: {}", failure.code, "a");
    let _ = step.code == *code;
}
"#;
    assert_eq!(compared(text), [3, 4, 5, 6, 7, 8, 9]);
}
