//! #14 to #19: what a report says, and what it does not.

use crate::common::acceptance::proof;
use crate::common::inspected::{Made, ROOM};
use crate::common::{run, tool};
use crate::golden::plain;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tki_inspector::adequacy::classify;
use tki_inspector::audit::{ARTICLE_13, ARTICLE_14, Audited};
use tki_inspector::bundle::{Launcher, judge};
use tki_inspector::errand::status;
use tki_inspector::guard::{Guard, Memory};
use tki_inspector::inspect::inspect;
use tki_inspector::packet::Packet;
use tki_inspector::places::Case;
use tki_inspector::provenance::validate;
use tki_inspector::reader::read_all;
use tki_inspector::record::Records;
use tki_inspector::report::{AllowedAction, IS_NOT};
use tki_inspector::rules;
use tki_inspector::wire::{ACTIONS, BINDING, INADEQUATE, MARKDOWN, REPORT, TRIAGE};
use tki_inspector::words::{Adequacy, Held};

/// A packet whose claims come to these: `true` for one that is adequate.
fn claims(adequate: &[bool]) -> Made {
    let mut made = Made::new();
    made.item("a", "listing", "{\"a\": 1}");
    for (index, adequate) in adequate.iter().enumerate() {
        let wanted = if *adequate { 1 } else { 2 };
        let place = json!({"item": "a", "at": {"json": "/a"}, "expect": {"equals": wanted}});
        made.claim(&format!("c{index}"), json!([place]));
    }
    made
}

/// Words that let something go on, or say that all is well.
const GLOBAL: [&str; 22] = [
    "pass",
    "passed",
    "passes",
    "green",
    "ok",
    "okay",
    "success",
    "successful",
    "valid",
    "go",
    "proceed",
    "certified",
    "compliant",
    "clean",
    "safe",
    "secure",
    "allowed",
    "granted",
    "all-clear",
    "cleared",
    "approved",
    "authorized",
];

fn words(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    parts.map(str::to_lowercase).collect()
}

fn global_words(text: &str) -> Vec<String> {
    let found = words(text).into_iter();
    found
        .filter(|word| GLOBAL.contains(&word.as_str()))
        .collect()
}

#[test]
fn m14_there_is_no_word_for_the_packet_as_a_whole() {
    // Every string that is a type or a table, and says something of a claim or of the report.
    let mut vocabulary: Vec<String> = Vec::new();
    vocabulary.extend(Adequacy::ALL.map(|word| word.name().to_owned()));
    vocabulary.extend([Held::Held, Held::NotHeld, Held::NothingToHold].map(|h| h.name().into()));
    let actions = [
        AllowedAction::ReadPacketItem,
        AllowedAction::WriteLocalReport,
    ];
    vocabulary.extend(actions.map(|action| action.name().to_owned()));
    for text in rules::all() {
        vocabulary.push(text.id.name());
        vocabulary.push(text.class.clone());
        vocabulary.push(text.owner.clone());
    }
    for word in &vocabulary {
        assert_eq!(global_words(word), Vec::<String>::new(), "{word}");
    }
    // Whole reports, of packets whose own texts have none of those words.
    let mut strings = 0;
    for adequate in [
        &[][..],
        &[true],
        &[true, true, true],
        &[true, false],
        &[false],
    ] {
        let inspected = claims(adequate).inspected();
        for name in [REPORT, MARKDOWN, BINDING, ACTIONS] {
            // What the report denies of itself: it is no authorization, nothing was allowed,
            // and no green is faked.
            let denied = ["no fake green", "Nothing was changed, started or allowed"];
            let text = denied
                .iter()
                .fold(inspected.file(name).to_owned(), |text, line| {
                    text.replace(line, "")
                });
            assert_eq!(global_words(&text), Vec::<String>::new(), "{name}");
            strings += words(&text).len();
        }
        let report: Value = serde_json::from_str(inspected.file(REPORT)).unwrap();
        for key in [
            "verdict",
            "result",
            "status",
            "decision",
            "conclusion",
            "overall",
        ] {
            assert!(report.get(key).is_none(), "{key}");
        }
        assert_eq!(report["triage"], "TRIAGE_WRITTEN");
        assert_eq!(
            report["totals"].as_array().unwrap().len(),
            Adequacy::ALL.len()
        );
        assert_eq!(report["is_not"], json!(IS_NOT));
    }
    proof(
        14,
        format!(
            "{} words of the vocabulary and {strings} of five reports: none is one of {}",
            vocabulary.len(),
            GLOBAL.len()
        ),
    );
}

#[test]
fn m15_the_exit_status_is_never_0() {
    let of = |made: &Made| match made.inspect() {
        Ok(inspection) => status(&inspection.report),
        Err(refusal) => refusal.status(),
    };
    assert_eq!(of(&claims(&[true, true])), TRIAGE);
    assert_eq!(of(&claims(&[])), TRIAGE);
    assert_eq!(of(&claims(&[true, false])), INADEQUATE);
    let mut none = Made::new();
    none.value["schema"] = "x".into();
    assert_eq!(of(&none), 2);
    assert_eq!((TRIAGE, INADEQUATE), (10, 11));
    // Whatever the program is asked for.
    for arguments in [
        &[][..],
        &[&b"--help"[..]],
        &[b"--version"],
        &[b"inspect", b"x"],
    ] {
        assert_ne!(
            tki_inspector::errand::run(arguments, &[]),
            0,
            "{arguments:?}"
        );
    }
    proof(
        15,
        "10 with adequate claims only and with none, 11 with another, 2 for no packet, 2 for --help",
    );
}

#[test]
fn m16_nothing_consumes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let inspected = claims(&[true]).inspected();
    for (name, bytes) in &inspected.0.files {
        fs::write(at(name), bytes).unwrap();
    }
    let bundle = plain().copy();
    for name in [REPORT, BINDING] {
        let report = at(name);
        run(tool().arg("verify").arg(&report)).failed(2, "inspection.no-input");
        let mut gate = tool();
        gate.arg("gate")
            .arg(&report)
            .args(["--", "touch"])
            .arg(at("started"));
        run(&mut gate).failed(2, "inspection.no-input");
        assert_eq!(
            run(tool().arg("diff").args([&report, &report])).status,
            2,
            "{name}"
        );
        for flag in ["--policy", "--request", "--allowed-signers", "--matrix"] {
            let mut verify = tool();
            verify
                .arg("verify")
                .arg(&bundle.path)
                .arg(flag)
                .arg(&report);
            run(&mut verify).failed(2, "inspection.no-input");
        }
        let mut gate = tool();
        gate.arg("gate")
            .arg(&bundle.path)
            .arg("--policy")
            .arg(&report);
        gate.args(["--", "touch"]).arg(at("started"));
        run(&mut gate).failed(2, "inspection.no-input");
    }
    assert!(!at("started").exists());
    proof(
        16,
        "verify, gate and diff, and --policy, --request, --allowed-signers and --matrix: exit 2 each, nothing started",
    );
}

#[test]
fn m17_the_same_packet_gives_the_same_bytes() {
    let mut bytes = 0;
    for made in [
        Made::of("fix7"),
        Made::of("rejected"),
        claims(&[true, false]),
    ] {
        let first = made.inspect().unwrap();
        let mut input = made.input();
        input.reverse();
        let mut guard = Guard::new(Memory {
            input,
            output: Vec::new(),
        });
        let second = inspect(&mut guard, ROOM, &mut ()).unwrap();
        assert!(first.files == second.files);
        bytes += first
            .files
            .iter()
            .map(|(_, file)| file.len())
            .sum::<usize>();
    }
    // What differs from one host, engine or moment to the next is in no report.
    let report: Value = serde_json::from_str(claims(&[true]).inspected().file(REPORT)).unwrap();
    let keys: Vec<&str> = report
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for key in [
        "engine", "host", "time", "started", "finished", "tool", "version", "run_id",
    ] {
        assert!(!keys.contains(&key), "{key}");
    }
    proof(
        17,
        format!("three packets read in two orders: {bytes} bytes of reports, the same"),
    );
}

#[test]
fn m18_there_is_exactly_one_next_action() {
    let mut next = BTreeMap::new();
    for (name, made) in [
        ("none", claims(&[true, true])),
        ("one", claims(&[true, false])),
        ("many", claims(&[false, true, false, false])),
        ("fix7", Made::of("fix7")),
    ] {
        let report = made.inspected().0.report;
        let line = report.next_action.clone();
        assert!(!line.is_empty() && !line.contains('\n'), "{name}: {line:?}");
        let inadequate = report
            .claims
            .iter()
            .filter(|one| one.verdict != Adequacy::Adequate);
        let inadequate: Vec<&str> = inadequate.map(|claim| claim.id.as_str()).collect();
        let blocked: Vec<&str> = report
            .blockers
            .iter()
            .map(|one| one.claim.as_str())
            .collect();
        assert_eq!(blocked, inadequate, "{name}");
        let ids: BTreeSet<&str> = report.blockers.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids.len(), blocked.len(), "{name}");
        for blocker in &report.blockers {
            let filled = [&blocker.class, &blocker.owner, &blocker.action];
            assert!(
                filled
                    .iter()
                    .all(|text| !text.is_empty() && *text != "NONE"),
                "{name}"
            );
        }
        // It is about one of the blockers, where there is one.
        let named = report.blockers.iter().filter(|one| line.contains(&one.id));
        assert_eq!(named.count() > 0, !blocked.is_empty(), "{name}: {line}");
        next.insert(name, line);
    }
    proof(
        18,
        format!(
            "with no blocker: {:?}; with one: {:?}",
            next["none"], next["one"]
        ),
    );
}

/// What the audits say of a packet whose results were changed afterwards.
fn audited(made: &Made, change: impl Fn(&mut tki_inspector::report::ClaimResult)) -> Vec<String> {
    let packet = Packet::parse(made.value.to_string().as_bytes()).unwrap();
    let mut guard = made.guard();
    let reads = read_all(&mut guard, &packet, &mut |_| true).unwrap();
    let standings = validate(&packet, &reads, None);
    let bundles = judge(&packet, &reads, &standings, &Launcher::default());
    let records = Records::of(&packet, &standings);
    let case = Case::new(&packet, &reads, &standings, &bundles);
    let mut results = classify(&case, &records, &mut || true).unwrap();
    results.iter_mut().for_each(change);
    let audited = Audited {
        packet: &packet,
        standings: &standings,
        bundles: &bundles,
        results: &results,
        blockers: &[],
    };
    let lines = audited.article_13().into_iter().chain(audited.article_14());
    let not_held = lines.filter(|line| line.held == Held::NotHeld);
    not_held.map(|line| line.line).collect()
}

#[test]
fn m19_the_report_audits_itself_line_by_line() {
    let report = Made::of("fix7").inspected().0.report;
    for (found, wanted) in [
        (&report.article_13, &ARTICLE_13[..]),
        (&report.article_14, &ARTICLE_14[..]),
    ] {
        let lines: Vec<&str> = found.iter().map(|line| line.line.as_str()).collect();
        assert_eq!(lines, wanted);
        for line in found {
            assert_eq!(line.held, Held::Held, "{line:?}");
            assert!(!line.shown_by.is_empty(), "{line:?}");
        }
    }
    assert_eq!((ARTICLE_13.len(), ARTICLE_14.len()), (6, 7));
    // A classifier that would call everything adequate is found out.
    let all_is_well = |claim: &mut tki_inspector::report::ClaimResult| {
        claim.verdict = Adequacy::Adequate;
    };
    let found = audited(&Made::of("fix7"), all_is_well);
    for line in [
        "nothing holds by prose alone",
        "every claim that is adequate has its evidence",
        "no fake green: a verdict is that of the rule that decided it",
        "no authorization without its evidence",
        "no hidden mutation",
        "venues are told honestly",
        "no local-first authority",
    ] {
        assert!(found.iter().any(|one| one == line), "{line}: {found:#?}");
    }
    // And so is a report that keeps a blocker back.
    let kept_back = audited(&claims(&[false]), |_| {});
    assert_eq!(kept_back.len(), 1);
    assert!(kept_back[0].starts_with("failures are told honestly"));
    proof(
        19,
        format!(
            "six and seven lines held for fix7; {} of them not where every claim is called adequate",
            found.len()
        ),
    );
}
