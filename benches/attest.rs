//! How long a whole `tki-attest run` takes beside `docker run` and `podman run`
//! of the same image with the same flags doing nothing. Each beside its peer in
//! the same run, in turns, as a ratio of medians.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

fn main() {
    println!("{ROUNDS} rounds, in turns; medians");
    compare("docker");
    compare("podman");
}

fn compare(engine: &str) {
    let tool = env!("CARGO_BIN_EXE_tki-attest");
    let work = tempfile::tempdir().expect("a temporary directory");
    let out = work.path().join("reports");
    let whole = work.path().join("whole");
    let attest = |controls: &str, out: &Path| {
        let mut command = Command::new(tool);
        command
            .args(["run", "-q", "--venue", "dev", "--engine", engine])
            .args(["--controls", controls, "--out"])
            .arg(out);
        command
    };
    // The first run loads the image and gives the flags for the peer.
    time(&mut attest("none", &out));
    let evidence = first_evidence(&out);
    let peer_line = peer(&evidence, work.path());
    time(&mut command(&peer_line));

    let (mut ours, mut theirs, mut battery) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        theirs.push(time(&mut command(&peer_line)));
        ours.push(time(&mut attest("none", &out)));
        if round % 3 == 0 {
            battery.push(time(&mut attest("safe", &whole)));
        }
    }
    let (ours, theirs, battery) = (median(ours), median(theirs), median(battery));
    let ratio = |time: Duration| time.as_secs_f64() / theirs.as_secs_f64();
    let row = |name: &str, time: Duration, note: &str| {
        println!("{name:<34} {:>8.1} ms  {note}", millis(time));
    };
    row(&format!("{engine} run --rm (nothing)"), theirs, "");
    row(
        "tki-attest run --controls none",
        ours,
        &format!("{:>5.2} x  (goal: at most 1.25)", ratio(ours)),
    );
    row(
        "tki-attest run --controls safe",
        battery,
        &format!("{:>5.2} x  (goal: at most 12)", ratio(battery)),
    );
    println!("{:<34} {:>8.1} ms", "inside the container", inside(&out));
}

fn command(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let took = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn first_evidence(out: &Path) -> serde_json::Value {
    let path = files(out, "json").remove(0);
    let bytes = std::fs::read(path).expect("the evidence just written");
    serde_json::from_slice(&bytes).expect("the evidence just written")
}

fn files(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("the output directory")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

/// The recorded command line, with directories of our own and nothing to do.
fn peer(evidence: &serde_json::Value, work: &Path) -> Vec<String> {
    for name in ["in", "out"] {
        std::fs::create_dir_all(work.join(name)).expect("a directory of our own");
    }
    let profile = work.join("seccomp.json");
    let seccomp = match evidence["seccomp_profile"].as_str() {
        Some("deny-by-default") => include_bytes!("../seccomp/deny-by-default.json"),
        other => panic!("unexpected profile {other:?}"),
    };
    std::fs::write(&profile, seccomp).expect("a file of our own");
    let words = evidence["sandbox"]["command_line"]
        .as_array()
        .expect("a command line");
    words
        .iter()
        .filter_map(|word| word.as_str())
        .filter(|word| !word.starts_with("--name=") && *word != "--interactive")
        .map(|word| {
            if word.starts_with("--mount=") && word.contains("dst=/in") {
                format!(
                    "--mount=type=bind,src={}/in,dst=/in,readonly",
                    work.display()
                )
            } else if word.starts_with("--mount=") {
                format!("--mount=type=bind,src={}/out,dst=/out", work.display())
            } else if word.starts_with("--security-opt=seccomp=") {
                format!("--security-opt=seccomp={}", profile.display())
            } else if word == "probe" {
                "version".into()
            } else {
                word.into()
            }
        })
        .collect()
}

/// The median of what the inspector said it took, from the transcripts.
fn inside(out: &Path) -> f64 {
    let mut all: Vec<f64> = files(out, "json")
        .iter()
        .filter_map(|path| {
            std::fs::read_to_string(path.with_extension("").join("transcript.ndjson")).ok()
        })
        .filter_map(|text| {
            let last: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
            Some(last["done"]["elapsed_us"].as_f64()? / 1000.0)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
