//! How fast a packet is judged: a thousand items of 100 MiB altogether, beside
//! `openssl dgst -sha256` over the same files, in turns, as ratios of medians. What is judged is
//! timed inside, by the inspector's own clock, from the launcher's go until the reports are on
//! their device; the whole command is timed too, beside the same with a packet of one item.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const ITEMS: usize = 1000;
const EACH: usize = 100 * 1024;

fn main() {
    let engines: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let engines = match engines.is_empty() {
        true => vec!["docker".to_owned(), "embedded".to_owned()],
        false => engines,
    };
    let work = tempfile::tempdir().expect("a temporary directory");
    let large = packet(work.path(), "large", ITEMS);
    let small = packet(work.path(), "small", 1);
    println!(
        "{ROUNDS} rounds, in turns; medians; {ITEMS} items, {} MiB",
        (ITEMS * EACH) >> 20
    );
    for engine in &engines {
        compare(work.path(), engine, &large, &small);
    }
}

fn compare(work: &Path, engine: &str, large: &Path, small: &Path) {
    let evidence = |packet: &Path, name: &str| {
        let out = work.join(format!("{engine}-{name}"));
        run(inspect(engine, packet, &out, None));
        let mut found = std::fs::read_dir(&out).expect("a directory of ours");
        let is_evidence = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        found
            .find_map(|entry| Some(entry.expect("an entry").path()).filter(is_evidence))
            .expect("evidence")
    };
    let (of_large, of_small) = (evidence(large, "large"), evidence(small, "small"));
    let files: Vec<PathBuf> = (0..ITEMS).map(|number| large.join(name(number))).collect();
    let (mut digests, mut judged, mut whole, mut launch, mut checks) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut openssl = Command::new("openssl");
        openssl.args(["dgst", "-sha256"]).args(&files);
        digests.push(time(openssl));
        let out = work.join(format!("{engine}-{round}"));
        whole.push(time(inspect(engine, large, &out, Some(&of_large))));
        let stamp = std::fs::read(out.join("inspection-large/stamp.json")).expect("a stamp");
        let stamp: serde_json::Value = serde_json::from_slice(&stamp).expect("it is JSON");
        let microseconds = |name: &str| {
            let value = stamp[name].as_u64().expect("a number");
            Duration::from_micros(value)
        };
        judged.push(microseconds("judged_us"));
        checks.push(microseconds("selfcheck_us"));
        let out = work.join(format!("{engine}-small-{round}"));
        launch.push(time(inspect(engine, small, &out, Some(&of_small))));
    }
    let base = median(digests);
    let line = |what: &str, time: Duration, note: &str| {
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!(
            "{what:<36} {:>8.1} ms  {ratio:.2} x  {note}",
            time.as_secs_f64() * 1e3
        );
    };
    println!(
        "{:<36} {:>8.1} ms",
        "openssl dgst -sha256",
        base.as_secs_f64() * 1e3
    );
    line(
        &format!("{engine}: judged inside"),
        median(judged),
        "(goal: at most 1.5)",
    );
    line("  the whole command", median(whole), "");
    line("  the same with one small item", median(launch), "");
    let check = median(checks);
    println!(
        "{:<36} {:>8.1} ms  (goal: below 5)",
        "  self-check",
        check.as_secs_f64() * 1e3
    );
    let inspector = tki_attest::image::built_in::INSPECTOR.len();
    println!(
        "{:<36} {:>8} KB  (goal: at most 700)",
        "  the program",
        inspector / 1000
    );
}

fn name(number: usize) -> String {
    format!("items/{number:04}.bin")
}

/// A packet of so many items, each of which is hashed; a claim looks into the first.
fn packet(work: &Path, id: &str, items: usize) -> PathBuf {
    let folder = work.join(format!("{id}-sources"));
    std::fs::create_dir_all(folder.join("items")).expect("a directory of ours");
    let mut claims = format!(
        "schema = \"tki-attest/claims/v1\"\nid = \"{id}\"\nas_of = 2026-01-02T00:00:00Z\n\
         [defaults]\nauthority = \"LOCAL\"\ncaptured_at = 2026-01-01T00:00:00Z\n\
         captured_by = \"bench\"\nextent = \"complete\"\n\n\
         [[item]]\nid = \"text\"\npath = \"text.txt\"\ndocument_type = \"report\"\n\n"
    );
    std::fs::write(folder.join("text.txt"), "It is so.\n").expect("a file of ours");
    for number in 0..items {
        // Bytes that no file system makes smaller, and the same in every run.
        let mut state = number as u64 + 1;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .take(EACH / 8)
        .flatten()
        .collect();
        std::fs::write(folder.join(name(number)), bytes).expect("a file of ours");
        claims += &format!(
            "[[item]]\nid = \"i{number}\"\npath = \"{}\"\ndocument_type = \"other\"\n\n",
            name(number)
        );
    }
    claims += "[[claim]]\nid = \"says\"\nkind = \"says\"\ntext = \"it says so\"\nscope = \"packet\"\n\
               evidence = [{ item = \"text\", quote = \"It is so.\" }]\n";
    std::fs::write(folder.join("claims.toml"), claims).expect("a file of ours");
    let packet = work.join(format!("{id}-packet"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tki-attest"));
    command.arg("pack").arg(&folder).arg("--out").arg(&packet);
    run(command);
    packet
}

fn inspect(engine: &str, packet: &Path, out: &Path, evidence: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tki-attest"));
    command
        .args([
            "inspect", "-q", "--venue", "vps", "--engine", engine, "--packet",
        ])
        .arg(packet)
        .arg("--out")
        .arg(out);
    if let Some(evidence) = evidence {
        command.arg("--evidence").arg(evidence);
    }
    command
}

/// Runs a command that must do what it is asked: an inspection never ends with 0.
fn run(mut command: Command) {
    let done = command
        .stdout(Stdio::null())
        .output()
        .expect("it can be started");
    let fine = matches!(done.status.code(), Some(0 | 10 | 11));
    assert!(
        fine,
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn time(command: Command) -> Duration {
    let begun = Instant::now();
    run(command);
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
