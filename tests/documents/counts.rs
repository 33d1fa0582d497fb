use crate::common::{required, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tki_evidence::calibrate::takes_label;
use tki_evidence::catalogue::{CANONICAL, EXTENDED, all, floor};
use tki_evidence::controls::{CONTROLS, of_engine};
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::matrix::Matrix;
use tki_evidence::seccomp::{About, Rules};
use tki_evidence::{DENY_BY_DEFAULT, syscalls};

/// Everything that is counted.
struct Counts {
    probes: usize,
    canonical: usize,
    extended: usize,
    light: usize,
    operations: usize,
    canonical_operations: usize,
    controls: usize,
    docker: usize,
    embedded: usize,
    bwrap: usize,
    floor: usize,
    allowed: usize,
    bound: usize,
}

fn counts() -> Counts {
    let unlabelled = |engine| {
        of_engine(Some(engine))
            .filter(|own| !takes_label(own))
            .count()
    };
    let rules = Rules::parse(DENY_BY_DEFAULT.as_bytes()).unwrap();
    let names = (0..syscalls::BEYOND).filter_map(syscalls::name);
    let operations = |probe: &tki_evidence::catalogue::ProbeSpec| probe.operations.len();
    Counts {
        probes: all().count(),
        canonical: CANONICAL.len(),
        extended: EXTENDED.len(),
        light: usize::try_from(required(false)).unwrap(),
        operations: all().map(operations).sum(),
        canonical_operations: CANONICAL.iter().map(operations).sum(),
        controls: CONTROLS.len(),
        docker: unlabelled(EngineKind::Docker),
        embedded: unlabelled(EngineKind::Embedded),
        bwrap: unlabelled(EngineKind::Bwrap),
        floor: floor::DENIED.len(),
        allowed: names
            .filter(|name| rules.about(name) != About::Denied)
            .count(),
        bound: Matrix::rev4()
            .tests
            .iter()
            .filter(|test| !test.probes.is_empty())
            .count(),
    }
}

/// A number in words, as far as the documents write one so.
fn in_words(number: usize) -> &'static str {
    match number {
        7 => "seven",
        8 => "eight",
        11 => "eleven",
        12 => "twelve",
        13 => "thirteen",
        35 => "thirty-five",
        36 => "thirty-six",
        37 => "thirty-seven",
        38 => "thirty-eight",
        other => panic!("write {other} in words here"),
    }
}

/// A document on one line, however it is broken into lines.
fn flowing(name: &str) -> String {
    let text = fs::read_to_string(root().join(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn sentences_with_numbers_have_those_of_the_code() {
    let n = counts();
    let canonical = in_words(n.canonical);
    let heavy = in_words(n.probes - n.light);
    let controls = in_words(n.controls);
    let sentences = [
        (
            "README.md",
            format!(
                "{} probes ({canonical} canonical, {} extended; the {heavy} that run into limits",
                n.probes, n.extended
            ),
        ),
        (
            "README.md",
            format!("SANDBOX_ATTESTED {0} of {0} required probes PASS", n.probes),
        ),
        (
            "README.md",
            format!("{} controls, each flips its set", n.docker),
        ),
        ("README.md", format!("{} tests bound, all PASS", n.bound)),
        (
            "README.md",
            format!(
                "controls run beside: {} on Docker and Podman, {} on the embedded engine, {} with bubblewrap",
                n.docker, n.embedded, n.bwrap
            ),
        ),
        (
            "docs/guide.md",
            format!("{0} of {0} required probes PASS", n.light),
        ),
        (
            "docs/guide.md",
            format!("{} controls, each flips its set", n.docker),
        ),
        (
            "docs/guide.md",
            format!("{} tests bound, all PASS", n.bound),
        ),
        (
            "docs/sandbox.md",
            format!("{0} of {0} required probes PASS", n.light),
        ),
        (
            "docs/sandbox.md",
            format!("allow-list of {} calls", n.allowed),
        ),
        (
            "docs/sandbox.md",
            format!("Both built-in profiles pass all {} probes", n.probes),
        ),
        ("docs/controls.md", format!("## The {controls} controls")),
        (
            "docs/controls.md",
            format!(
                "Docker and Podman run {} of them, or {} where AppArmor gives a label; the embedded engine {}, bubblewrap {}",
                n.docker,
                n.docker + 1,
                n.embedded,
                n.bwrap
            ),
        ),
        (
            "docs/controls.md",
            format!("has {} required probes", n.light),
        ),
        (
            "docs/probes.md",
            format!(
                "{} probes with {} operations: {canonical} canonical ones (`PR-…`, {} operations) and {} extended ones (`XP-…`, {} operations)",
                n.probes,
                n.operations,
                n.canonical_operations,
                n.extended,
                n.operations - n.canonical_operations
            ),
        ),
        ("docs/probes.md", format!("{} calls that no", n.floor)),
        (
            "seccomp/README.md",
            format!("both passing all {} probes", n.probes),
        ),
        (
            "seccomp/README.md",
            format!("a deny-list of {} calls", n.floor),
        ),
        (
            "seccomp/README.md",
            format!("an allow-list of {} calls", n.allowed),
        ),
    ];
    for (name, sentence) in sentences {
        assert!(
            flowing(name).contains(&sentence),
            "{name} does not say: {sentence}"
        );
    }
}

/// Examples that leave probes out say how many.
#[test]
fn a_table_that_is_cut_short_says_by_how_much() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (shown, rest) = text.split_once("[… ").unwrap();
    let left: usize = rest.split_once(" more probes").unwrap().0.parse().unwrap();
    let (_, table) = shown.rsplit_once("```console").unwrap();
    let is_row = |line: &&str| line.starts_with("PR-") || line.starts_with("XP-");
    assert_eq!(table.lines().filter(is_row).count() + left, counts().probes);
}

/// Every document for readers; the changelog tells of versions.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "seccomp/README.md",
    ]
    .map(|name| root().join(name))
    .into();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        found.push(entry.unwrap().path());
    }
    found.retain(|path| path.extension().is_some_and(|end| end == "md"));
    found
}

/// Whatever other sentence names so many probes, operations or controls names a number that
/// there is.
#[test]
fn no_other_number_of_them_is_named() {
    let n = counts();
    let heavy = n.probes - n.light;
    let extended_operations = n.operations - n.canonical_operations;
    let known = [
        (
            "probes",
            BTreeSet::from([n.probes, n.canonical, n.extended, n.light, heavy]),
        ),
        (
            "operations",
            BTreeSet::from([n.operations, n.canonical_operations, extended_operations]),
        ),
        (
            "controls",
            BTreeSet::from([n.controls, n.docker, n.docker + 1, n.embedded, n.bwrap]),
        ),
    ];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(3) {
            for (noun, numbers) in &known {
                let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()) == *noun;
                let of_kind = ["canonical", "extended", "required"].contains(&pair[1]);
                let named = plain(pair[1]) || of_kind && plain(pair[2]);
                let number = pair[0].trim_start_matches(['(', '`']).parse::<usize>();
                // A probe that fails twice is no number of probes; only large ones are counts.
                if let Ok(number) = number
                    && named
                    && number > 9
                {
                    seen += 1;
                    if !numbers.contains(&number) {
                        wrong.push(format!("{}: {}", path.display(), pair.join(" ")));
                    }
                }
            }
        }
    }
    assert!(seen > 10, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
