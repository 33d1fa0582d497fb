//! What is read, what is refused, and that nothing panics.

use proptest::prelude::*;

use crate::{Base, Owner, Recipe, Step};

fn parse(text: &str) -> Recipe {
    Recipe::parse("Dockerfile", text.as_bytes()).unwrap()
}

fn refusal(text: &str) -> String {
    Recipe::parse("Dockerfile", text.as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn the_supported_subset_is_read() {
    let recipe = parse(concat!(
        "\u{feff}# syntax=docker/dockerfile:1.4\r\n",
        "from scratch as only\r\n",
        "COPY --chmod=1777 --chown=1:2 a ./b/ /c/\r\n",
        "copy [\"with space\", \"rel/./x\"]\n",
        "LABEL a=1 \\\n  # a comment inside\n  b=\"2 3\"\n",
        "ENV A=1 B=2 A=3\n",
        "USER 7:8\nWORKDIR //w/./x/\nSTOPSIGNAL 15\n",
        "ENTRYPOINT [\"/e\", \"\\u0041\"]\nCMD []",
    ));
    assert_eq!(recipe.base, Base::Scratch);
    let Step::Copy(first) = &recipe.steps[0] else {
        panic!("{:?}", recipe.steps)
    };
    assert_eq!(first.sources, ["a", "b"]);
    assert_eq!(first.destination, "c");
    assert!(first.absolute && first.into_directory);
    assert_eq!(first.mode, Some(0o1777));
    assert_eq!(first.owner, Some(Owner { uid: 1, gid: 2 }));
    assert_eq!((first.at.line, first.at.column), (3, 1));
    let Step::Copy(second) = &recipe.steps[1] else {
        panic!("{:?}", recipe.steps)
    };
    assert_eq!(second.sources, ["with space"]);
    assert_eq!(second.destination, "rel/x");
    assert!(!second.absolute && !second.into_directory);
    assert!(
        matches!(&recipe.steps[2], Step::Workdir { path, owner: Some(owner), .. }
        if path == "w/x" && *owner == Owner { uid: 7, gid: 8 })
    );
    let settings = recipe.settings;
    assert_eq!(settings.labels["b"], "2 3");
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(settings.env, [pair("A", "3"), pair("B", "2")]);
    assert_eq!(settings.user.as_deref(), Some("7:8"));
    assert_eq!(settings.workdir.as_deref(), Some("/w/x"));
    assert_eq!(settings.stop_signal.as_deref(), Some("15"));
    assert_eq!(settings.entrypoint.unwrap(), ["/e", "A"]);
    assert!(settings.cmd.unwrap().is_empty());
}

#[test]
fn the_escape_directive_is_followed() {
    let recipe = parse("# escape=`\nFROM scratch\nLABEL a=1 `\n  b=x` y\n");
    assert_eq!(recipe.settings.labels["b"], "x y");
}

#[test]
fn the_sandbox_recipe_is_supported() {
    let text = include_bytes!("../../image/Dockerfile.sandbox");
    let recipe = Recipe::parse("image/Dockerfile.sandbox", text).unwrap();
    assert_eq!(recipe.base, Base::Scratch);
    assert!(recipe.settings.entrypoint.is_some());
}

#[test]
fn bytes_that_are_no_dockerfile_are_refused_with_a_place() {
    let refuse = |bytes: &[u8]| Recipe::parse("D", bytes).unwrap_err().to_string();
    assert!(refuse(b"FROM scratch\n\xff").starts_with("D:2:1: Dockerfile: has bytes that are not"));
    assert!(refuse(b"FROM scratch\nLABEL a=\0").starts_with("D:2:9: Dockerfile: has a NUL byte"));
    assert!(refuse(&vec![b'#'; 256 * 1024 + 1]).starts_with("D:1:1: Dockerfile: is larger"));
    assert!(refuse(b"").starts_with("D:1:1: Dockerfile: is empty"));
    assert!(refuse(b"# nothing\n").starts_with("D:1:1: Dockerfile: has no FROM"));
}

#[test]
fn a_file_on_disk_is_read_up_to_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("Dockerfile");
    assert_eq!(Recipe::read(&path).unwrap_err().code(), "image.read");
    std::fs::write(&path, "FROM scratch\n").unwrap();
    Recipe::read(&path).unwrap();
    std::fs::File::create(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(
        Recipe::read(&path).unwrap_err().code(),
        "dockerfile.malformed"
    );
}

#[test]
fn foreign_text_is_escaped_in_errors() {
    for text in [
        "FROM scratch\n\u{1b}[2J x\n",
        "FROM scratch\nUSER \u{1b}]0;x\u{7}\n",
        "FROM scratch\nCOPY --\u{1b}[2Jx a /b\n",
        "FROM scratch\nCOPY \u{202e}\u{9b}../a /b\n",
        "FROM \u{1b}c\nFROM \u{1b}c",
        "# syntax=\u{1b}[2J\nFROM scratch",
        "# escape=\u{1b}\nFROM scratch",
        "FROM scratch\nENV \u{1b}=1\n",
    ] {
        let shown = refusal(text);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
    }
}

#[test]
fn a_refused_instruction_is_named_even_if_it_is_misspelt() {
    let shown = refusal("FROM scratch\n  healthcheck nonsense\n");
    assert!(
        shown.starts_with("Dockerfile:2:3: HEALTHCHECK: makes the engine"),
        "{shown}"
    );
}

/// Pieces that a Dockerfile is likely to be broken with.
#[rustfmt::skip]
const FRAGMENTS: &[&str] = &[
    "FROM ", "scratch", "COPY ", "ADD ", "RUN ", "ENV ", "LABEL ", "CMD ", "ENTRYPOINT ", "USER ",
    "WORKDIR ", "SHELL ", "ONBUILD ", "HEALTHCHECK ", "CMD", "NONE", "VOLUME ", "ARG ", "EXPOSE ",
    "--chmod=", "--chown=", "--", "-", "[", "]", "[\"", "\"]", "\"", "'", ",", "\\", "\\\n", "\\ \n",
    "`", "`\n", "# escape=`\n", "# syntax=", "#", "\n", "\r\n", "\r", " ", "\t", "\u{b}", "<<EOF",
    "<<-\"E\"", "EOF\n", "$A", "${A}", "=", "a=b", "/", "..", "ä", "\u{1F600}", "\\u00", "\\ud83c",
    "\u{feff}", "AS ", "7:8", "0",
];

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(FRAGMENTS).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_it_panic(parts in proptest::collection::vec(fragment(), 0..24)) {
        let _ = Recipe::parse("Dockerfile", parts.concat().as_bytes());
    }

    #[test]
    fn no_text_after_from_makes_it_panic(parts in proptest::collection::vec(fragment(), 0..24)) {
        let text = format!("FROM scratch\n{}", parts.concat());
        if let Err(error) = Recipe::parse("Dockerfile", text.as_bytes()) {
            prop_assert!(!error.to_string().chars().any(char::is_control));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = Recipe::parse("Dockerfile", &bytes);
    }
}
