//! gVisor, whose kernel is not the host's: Debian's `runsc` on a Docker Engine of our own and
//! on Podman, with its seccomp profile and without. Where there is no runsc these fail.

use crate::common::bundle::write_restamped;
use crate::common::podman::{podman, whole_podman};
use crate::common::private_engine::{PrivateEngine, write_program};
use crate::common::user::OtherUser;
use crate::common::{attest, eventually, evidence_in, isolated, need, read_json, run, verify};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// How runsc takes the profile of the engine.
const FILTERED: (&str, &str) = (
    "runsc-filtered",
    "#!/bin/sh\nexec runsc --platform=ptrace --network=none --oci-seccomp \"$@\"\n",
);

/// How it is installed mostly, and leaves the profile out without a word.
const IGNORING: (&str, &str) = (
    "runsc-ignoring",
    "#!/bin/sh\nexec runsc --platform=ptrace --network=none \"$@\"\n",
);

/// What the report and the reasons say of it.
const CAUSE: &str = "runsc needs --oci-seccomp";

/// An engine with both.
fn engine() -> PrivateEngine {
    let said = need("runsc", Command::new("runsc").arg("--version"));
    assert_eq!(said.status, 0, "{said:?}");
    PrivateEngine::start_with(&[FILTERED, IGNORING])
}

/// What is left on an engine, and of gVisor's processes, which end a moment after their
/// container.
fn left(engine: &PrivateEngine) -> [String; 3] {
    let folder = engine.socket().parent().unwrap().display().to_string();
    let sentries = || {
        let processes = need("procps", Command::new("ps").args(["-eo", "args"]));
        let ours = |line: &&str| line.starts_with("runsc-") && line.contains(&folder);
        let lines: Vec<&str> = processes.stdout.lines().filter(ours).collect();
        lines.join("\n")
    };
    eventually("no process of gVisor's is left", || sentries().is_empty());
    [
        engine.docker(&["ps", "--all", "--quiet"]),
        engine.docker(&["volume", "ls", "--quiet"]),
        sentries(),
    ]
}

/// The results by verdict, each with its reasons in one line.
fn not_passed<'a>(evidence: &'a Value, verdict: &str) -> Vec<(&'a str, String)> {
    let probes = evidence["probes"].as_array().unwrap().iter();
    let of_verdict = probes.filter(|probe| probe["verdict"] == verdict);
    of_verdict
        .map(|probe| {
            let reasons = probe["reasons"].as_array().unwrap().iter();
            let reasons: Vec<&str> = reasons.map(|reason| reason.as_str().unwrap()).collect();
            (probe["probe_id"].as_str().unwrap(), reasons.join("; "))
        })
        .collect()
}

fn ids<'a>(results: &[(&'a str, String)]) -> Vec<&'a str> {
    results.iter().map(|(id, _)| *id).collect()
}

fn agreement<'a>(evidence: &'a Value, fact: &str) -> &'a Value {
    let rows = evidence["witnesses"]["agreement"].as_array().unwrap();
    let mut rows = rows.iter().filter(|row| row["fact"] == fact);
    rows.next().unwrap_or_else(|| panic!("nobody says {fact}"))
}

/// What is true of gVisor's kernel with and without a filter: boundaries that leak, each
/// with a part of its reason.
const LEAKS: [(&str, &str); 5] = [
    ("XP-FS-FLAGS", "/tmp lacks nosuid,nodev"),
    ("XP-FS-MASKED", "masked(/sys/firmware)"),
    ("XP-FS-PROC-RO", "read-only(/proc/sys)"),
    ("XP-FS-DEVICES", "also there: fuse, net"),
    (
        "XP-MEM-EXEC",
        "mmap(PROT_EXEC of a file in /tmp) in phase engine: allowed",
    ),
];

/// What it lets through when the limits are run into as well: it has none on files.
fn leaks_with_limits() -> Vec<(&'static str, &'static str)> {
    let files = ("XP-LIM-INODES", "files(/tmp) in phase engine: allowed");
    [&LEAKS[..], &[files]].concat()
}

/// What it has no proof of in any form: it has neither the call nor the text.
const WITHOUT_PROOF: [&str; 2] = ["XP-FS-REALPROC", "XP-CORE"];

#[track_caller]
fn has_all(results: &[(&str, String)], wanted: &[(&str, &str)]) {
    for (id, part) in wanted {
        let found = results.iter().find(|(known, _)| known == id);
        let (_, reasons) = found.unwrap_or_else(|| panic!("{id} is not among {results:?}"));
        assert!(reasons.contains(part), "{id}: {reasons}");
    }
}

/// What both witnesses say of the kernel, and what the host saw of its sentry.
#[track_caller]
fn is_gvisor(evidence: &Value) {
    assert_eq!(evidence["runtime"]["kernel_kind"], "gvisor");
    let kernel = agreement(evidence, "kernel");
    assert_eq!(kernel["inside"], "gvisor");
    assert_eq!(kernel["outside"], "gvisor");
    assert_eq!(kernel["agree"], true);
    let outside = evidence["witnesses"]["outside"]["facts"]
        .as_array()
        .unwrap();
    for (name, value) in [
        ("sentry.seccomp", "filter"),
        ("sentry.no_new_privileges", "1"),
        ("sentry.network", "none"),
        ("limit.pids", "512"),
    ] {
        let said = json!({"name": name, "value": value});
        assert!(outside.contains(&said), "{said} is not in {outside:?}");
    }
    // Nothing of the sentry's is taken for the container's.
    let rows = evidence["witnesses"]["agreement"].as_array().unwrap();
    for row in rows {
        let name = row["fact"].as_str().unwrap();
        let is_shared = name == "kernel" || name.starts_with("limit.");
        assert_eq!(row["outside"].is_string(), is_shared, "{row}");
    }
    assert_eq!(evidence["raw"]["outside"]["status"], "");
}

/// What a verifier derives is the same, and it finds the texts in order.
#[track_caller]
fn is_verified(path: &Path, steps: &[&str]) -> Value {
    let said = verify(path, &["--format", "json"]);
    assert_eq!(said.status, 1, "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let checks = report["steps"].as_array().unwrap();
    for step in steps {
        let mut found = checks.iter().filter(|check| check["code"] == *step);
        let check = found.next().unwrap_or_else(|| panic!("no {step}"));
        assert_eq!(check["outcome"], "ok", "{check}");
    }
    report
}

const IN_ORDER: [&str; 6] = [
    "EV-ARTIFACTS",
    "EV-TEXTS",
    "EV-OUTSIDE",
    "EV-DERIVED",
    "EV-TRANSCRIPT",
    "EV-SANDBOX",
];

fn on(engine: &PrivateEngine, runtime: &str, more: &[&str]) -> Vec<String> {
    let host = engine.host();
    let words = [
        "--venue",
        "dev",
        "--engine",
        "docker",
        "--host",
        &host,
        "--runtime",
        runtime,
    ];
    let words = words.into_iter().chain(["--timeout", "300"]);
    words
        .chain(more.iter().copied())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_kernel_of_its_own_is_judged_by_proofs_that_fit() {
    let engine = engine();
    let out = tempfile::tempdir().unwrap();
    let words = on(&engine, FILTERED.0, &["--controls", "safe"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = attest(out.path(), &words);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stderr.contains("a kernel of its own (gvisor)"),
        "{said:?}"
    );
    assert!(
        said.stdout
            .contains("the container has one of its own (gvisor)"),
        "{said:?}"
    );
    assert!(!said.stdout.contains(CAUSE), "{said:?}");

    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    is_gvisor(&evidence);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_FAILED");
    assert_eq!(agreement(&evidence, "seccomp")["agree"], true);
    // Nobody wrote a file with limits.
    let declared = &evidence["sandbox"]["declared"];
    assert_eq!(declared["pids_limit"], 512);
    assert_eq!(declared["memory_bytes"], 1 << 30);

    let failed = not_passed(&evidence, "FAIL");
    let leaks = leaks_with_limits();
    assert_eq!(
        ids(&failed),
        leaks.iter().map(|(id, _)| *id).collect::<Vec<_>>()
    );
    has_all(&failed, &leaks);
    let unproven = not_passed(&evidence, "UNPROVEN");
    let open = [
        ("XP-NS-FRESH", "the sentry is in the host's pid namespace"),
        ("XP-FS-REALPROC", "not opened (EPERM): self/mountinfo"),
        ("XP-CORE", "not read: ENOENT"),
        ("XP-LIM-PIDS", "the host read pids=512 of the control group"),
        ("XP-LIM-MEMORY", "the host read memory=1073741824"),
        ("XP-LIM-CPU", "cpu.stat cannot be read"),
    ];
    assert_eq!(ids(&unproven), open.map(|(id, _)| id));
    has_all(&unproven, &open);

    // Every control that can be run shows what it should, or nothing.
    let controls = evidence["controls"].as_array().unwrap();
    let (mut names, mut silent) = (Vec::new(), Vec::new());
    for control in controls {
        let name = control["control"].as_str().unwrap();
        names.push(name);
        if control["holds"] != true {
            silent.push(name);
        }
    }
    assert_eq!(
        silent,
        [
            "marks",
            "covered-text",
            "exec-tmpfs",
            "system-paths",
            "device",
            "inodes",
            "core-size",
            "cpu"
        ]
    );
    for cannot in [
        "network",
        "ipc",
        "processes",
        "suid-file",
        "pids",
        "memory",
        "new-privileges",
    ] {
        assert!(!names.contains(&cannot), "{cannot}");
    }
    let probes = evidence["probes"].as_array().unwrap();
    let calibrated = |id: &str| {
        let probe = probes.iter().find(|probe| probe["probe_id"] == id).unwrap();
        probe["calibrated_by"].clone()
    };
    let nnp = probes
        .iter()
        .find(|probe| probe["probe_id"] == "XP-ID-NNP")
        .unwrap();
    let actual = nnp["actual_stderr_or_value"].as_str().unwrap();
    let proof = "[host] the sentry: Seccomp 2, NoNewPrivs 1";
    assert!(actual.ends_with(proof), "{actual}");
    assert_eq!(calibrated("PR-NET-1"), json!(["seccomp"]));
    assert_eq!(calibrated("PR-FS-RO-IN"), json!(["input"]));
    assert_eq!(calibrated("XP-ID-CAPS"), json!(["capability"]));
    assert_eq!(calibrated("XP-FS-FLAGS"), json!([]));
    assert_eq!(calibrated("XP-ADMIN"), json!([]));
    let not_proven = evidence["not_proven"].to_string();
    for part in [
        "a kernel of its own (gvisor) cannot run: ",
        "into the sentry",
        "XP-ADMIN",
    ] {
        assert!(not_proven.contains(part), "{not_proven}");
    }
    is_verified(&path, &IN_ORDER);
    is_verified(&path, &["EV-WITNESSES", "EV-CONTROLS"]);
    assert_eq!(left(&engine), [""; 3]);
    forged(&path);
}

/// Another kernel than was seen, or another sentry, is noticed.
fn forged(path: &Path) {
    let good = read_json(path);
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 7] = [
        ("EV-DERIVED", |e| {
            e["runtime"]["kernel_kind"] = json!("shared")
        }),
        ("EV-DERIVED", |e| e["runtime"]["kernel_kind"] = json!("vm")),
        ("EV-DERIVED", |e| {
            e["raw"]["boot_id"] = json!(format!(
                "{}\n",
                e["venue_facts"]["boot_id"].as_str().unwrap()
            ));
        }),
        ("EV-TEXTS", |e| e["raw"]["boot_id"] = json!("yesterday")),
        ("EV-OUTSIDE", |e| {
            e["raw"]["sentry"]["command"] = json!(["sleep"])
        }),
        ("EV-OUTSIDE", |e| {
            e["raw"]["sentry"]["status"] = json!("Name:\texe\n")
        }),
        ("EV-OUTSIDE", |e| {
            e["raw"]["outside"]["status"] = json!("Name:\ttki-prober\n")
        }),
    ];
    for (number, (step, change)) in changes.into_iter().enumerate() {
        let mut evidence = good.clone();
        change(&mut evidence);
        let folder = path.parent().unwrap();
        let other = folder.join(format!("forged-{number}.json"));
        write_restamped(&other, evidence);
        let said = verify(&other, &["--format", "json"]);
        assert_eq!(said.status, 1, "{number}: {said:?}");
        let report: Value = serde_json::from_str(&said.stdout).unwrap();
        let checks = report["steps"].as_array().unwrap();
        let refused = checks
            .iter()
            .any(|check| check["code"] == step && check["outcome"] == "false");
        assert!(refused, "{number}: {checks:?}");
        fs::remove_file(&other).unwrap();
    }
}

#[test]
fn a_profile_that_the_runtime_ignores_is_named_as_the_cause() {
    let engine = engine();
    let out = tempfile::tempdir().unwrap();
    let words = on(&engine, IGNORING.0, &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = attest(out.path(), &words);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stdout.contains(CAUSE), "{said:?}");
    assert!(
        said.stdout.contains("witnesses disagree on seccomp"),
        "{said:?}"
    );

    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    is_gvisor(&evidence);
    assert_eq!(agreement(&evidence, "seccomp")["agree"], false);
    let failed = not_passed(&evidence, "FAIL");
    has_all(&failed, &LEAKS);
    let caused = [
        "PR-NET-1",
        "PR-SOCK-1",
        "PR-PTRACE-1",
        "XP-ID-SECCOMP",
        "XP-ABI-SWEEP",
    ];
    has_all(&failed, &caused.map(|id| (id, CAUSE)));
    // What a filter has nothing to do with has its own reasons alone.
    for (id, reasons) in &failed {
        let leaks = LEAKS.iter().any(|(leak, _)| leak == id);
        assert_eq!(reasons.contains(CAUSE), !leaks, "{id}: {reasons}");
    }
    assert!(evidence["not_proven"].to_string().contains(CAUSE));
    is_verified(&path, &IN_ORDER);
    assert_eq!(left(&engine), [""; 3]);
}

#[test]
fn limits_in_a_file_win() {
    let engine = engine();
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("limits.toml");
    fs::write(&file, "[limits]\npids = 300\n").unwrap();
    let words = on(&engine, FILTERED.0, &["--profile", file.to_str().unwrap()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = attest(out.path(), &words);
    assert_eq!(said.status, 1, "{said:?}");
    let evidence = read_json(&evidence_in(out.path()));
    assert_eq!(evidence["sandbox"]["declared"]["pids_limit"], 300);
    assert_eq!(evidence["sandbox"]["declared"]["memory_bytes"], 1 << 30);

    // Too few for gVisor: it does not start, and nothing is concluded of that.
    let few = out.path().join("few.toml");
    fs::write(&few, "[limits]\npids = 8\n").unwrap();
    let words = on(&engine, FILTERED.0, &["--profile", few.to_str().unwrap()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let nothing = out.path().join("nothing");
    let said = attest(&nothing, &words);
    assert_eq!(said.status, 3, "{said:?}");
    assert_eq!(left(&engine), [""; 3]);

    // A runtime that only has another name shares the kernel, and its limits stay.
    let shared = out.path().join("shared");
    let words = on(&engine, "slow", &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    attest(&shared, &words).succeeded();
    let evidence = read_json(&evidence_in(&shared));
    assert_eq!(evidence["runtime"]["kernel_kind"], "shared");
    assert_eq!(agreement(&evidence, "kernel")["outside"], "shared");
    assert_eq!(evidence["sandbox"]["declared"]["pids_limit"], 32);
    assert_eq!(left(&engine), [""; 3]);
}

/// Proofs that the host's view of the sentry gives.
const BY_SENTRY: [&str; 5] = [
    "XP-ID-CAPS",
    "XP-ID-NNP",
    "XP-NS-FRESH",
    "XP-FS-REOPEN",
    "XP-FD",
];

/// Where the engine is on another machine nobody looks at the sentry. The other name of the
/// host makes it one.
#[test]
fn what_only_the_sentry_proves_is_unproven_elsewhere() {
    let engine = engine();
    let out = tempfile::tempdir().unwrap();
    let mut command = isolated(Path::new("unshare"));
    command.args([
        "--uts",
        "sh",
        "-c",
        "hostname elsewhere && exec \"$@\"",
        "sh",
    ]);
    command
        .arg(env!("CARGO_BIN_EXE_tki-attest"))
        .args(["run", "--gate", "off", "--out"]);
    command
        .arg(out.path())
        .args(on(&engine, FILTERED.0, &["--controls", "safe"]));
    let said = run(&mut command);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stdout
            .contains("nobody looked at the sentry on the host"),
        "{said:?}"
    );
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    assert_eq!(evidence["runtime"]["kernel_kind"], "gvisor");
    assert_eq!(evidence["witnesses"]["outside"]["available"], false);
    assert_eq!(
        ids(&not_passed(&evidence, "FAIL")),
        leaks_with_limits()
            .iter()
            .map(|(id, _)| *id)
            .collect::<Vec<_>>()
    );
    let unproven = not_passed(&evidence, "UNPROVEN");
    let limits = ["XP-LIM-PIDS", "XP-LIM-MEMORY", "XP-LIM-CPU"];
    let mut wanted = [&BY_SENTRY[..], &WITHOUT_PROOF, &limits].concat();
    let mut found = ids(&unproven);
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
    has_all(
        &unproven,
        &BY_SENTRY.map(|id| (id, "nobody looked at the sentry")),
    );
    let alone = "the prober alone says so";
    assert!(evidence["not_proven"].to_string().contains(alone));
    is_verified(
        &path,
        &[
            "EV-ARTIFACTS",
            "EV-TEXTS",
            "EV-DERIVED",
            "EV-TRANSCRIPT",
            "EV-CONTROLS",
        ],
    );
    assert_eq!(left(&engine), [""; 3]);
}

/// A user who has the socket and nothing else sees less of the sentry.
#[test]
fn another_user_sees_the_sentry_but_not_its_namespaces() {
    let engine = engine();
    let user = OtherUser::new();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(engine.socket().parent().unwrap(), 0o711);
    open(&engine.socket(), 0o666);
    let mut command = user.command(&user.path("tki-attest"));
    command
        .args(["run", "--gate", "off", "--out"])
        .arg(user.path("out"));
    let said = run(command.args(on(&engine, FILTERED.0, &[])));
    assert_eq!(said.status, 1, "{said:?}");
    let path = evidence_in(&user.path("out"));
    let evidence = read_json(&path);
    is_gvisor(&evidence);
    assert_eq!(evidence["raw"]["sentry"]["executable"], "");
    assert_eq!(evidence["raw"]["sentry"]["namespaces"], json!([]));
    let unproven = not_passed(&evidence, "UNPROVEN");
    assert_eq!(
        ids(&unproven),
        [&["XP-NS-FRESH"][..], &WITHOUT_PROOF].concat()
    );
    has_all(
        &unproven,
        &[("XP-NS-FRESH", "no right to read the namespaces")],
    );
    is_verified(&path, &IN_ORDER);
    assert_eq!(left(&engine), [""; 3]);
}

#[test]
fn podman_drives_it_with_directories_of_the_launcher() {
    let said = need("runsc", Command::new("runsc").arg("--version"));
    assert_eq!(said.status, 0, "{said:?}");
    let _podman = whole_podman();
    let before = podman(&["volume", "ls", "--quiet"]);
    let out = tempfile::tempdir().unwrap();
    let runtime = out.path().join(FILTERED.0);
    write_program(&runtime, FILTERED.1);
    let words = ["--venue", "dev", "--engine", "podman", "--timeout", "300"];
    let runtime = ["--runtime", runtime.to_str().unwrap()];
    let said = attest(&out.path().join("out"), &[&words[..], &runtime].concat());
    assert_eq!(said.status, 1, "{said:?}");
    // It hands the options of a volume to the runtime as options of a mount.
    assert!(
        said.stderr.contains("the engine makes no volumes"),
        "{said:?}"
    );
    let path = evidence_in(&out.path().join("out"));
    let evidence = read_json(&path);
    is_gvisor(&evidence);
    assert_eq!(ids(&not_passed(&evidence, "FAIL")), LEAKS.map(|(id, _)| id));
    assert_eq!(
        ids(&not_passed(&evidence, "UNPROVEN")),
        [&["XP-NS-FRESH"][..], &WITHOUT_PROOF].concat()
    );
    // How many files /tmp may hold cannot be said there.
    let but_one: Vec<&str> = IN_ORDER
        .into_iter()
        .filter(|step| *step != "EV-SANDBOX")
        .collect();
    is_verified(&path, &but_one);
    let containers = podman(&[
        "ps",
        "--all",
        "--quiet",
        "--filter",
        "label=dev.tki.attest.run",
    ]);
    assert_eq!(containers, "");
    assert_eq!(podman(&["volume", "ls", "--quiet"]), before);
}
