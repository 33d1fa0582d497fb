//! How fast `tki-attest verify` is: megabytes of signed bundles a second on one
//! core, from ten bundles to a hundred thousand, one core beside two, memory,
//! and a Python verifier that does less, in turns with ours.
//!
//! Throughput is over copies, each with files of its own, so that no cache of the
//! processor serves one bundle with what it kept of the last. The Python verifier
//! gets a tenth of them, and the time that it takes to start is measured by itself
//! and taken off; ours is counted with its start.
//!
//! `TKI_BENCH_MOST` bounds the largest number of bundles.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;

/// Links that a file may have on common file systems.
const LINKS: usize = 50_000;

fn main() {
    let work = tempfile::tempdir().expect("a temporary directory");
    let full = Sample::make(work.path(), "full", "safe");
    let plain = Sample::make(work.path(), "plain", "none");
    throughput(&full, &plain);
    scaling(&plain);
}

/// A signed bundle, and what verifies it.
struct Sample {
    folder: PathBuf,
    evidence: PathBuf,
    bytes: u64,
}

impl Sample {
    fn make(work: &Path, name: &str, controls: &str) -> Self {
        let folder = work.join(name);
        std::fs::create_dir(&folder).expect("a directory of our own");
        let path = |name: &str| folder.join(name);
        run(tool()
            .args(["keygen", "--no-passphrase", "-q", "--out"])
            .arg(path("key")));
        let public = std::fs::read_to_string(path("key.pub")).expect("the new key");
        let line = format!("bench namespaces=\"tki-attest\" {public}");
        std::fs::write(path("signers"), line).expect("a file of our own");
        run(tool()
            .args(["request", "-q", "--venue", "vps", "--out"])
            .arg(path("request")));
        // A busy machine may keep a limit from being seen.
        for _ in 0..20 {
            let out = path("out");
            let mut command = tool();
            command.args(["run", "-q", "--venue", "vps", "--controls", controls]);
            command
                .arg("--request")
                .arg(path("request"))
                .arg("--sign")
                .arg(path("key"));
            let status = command.arg("--out").arg(&out).status().expect("the tool");
            if status.success() {
                let evidence = only_json(&out);
                let bytes = size(&evidence)
                    + size(&evidence.with_extension("intoto.jsonl"))
                    + files(&evidence.with_extension(""))
                        .iter()
                        .map(|f| size(f))
                        .sum::<u64>();
                return Self {
                    folder,
                    evidence,
                    bytes,
                };
            }
            let _ = std::fs::remove_dir_all(&out);
        }
        panic!("no run was accepted");
    }

    /// So many copies, each in a directory of its own.
    fn copies(&self, folder: &Path, count: usize) -> Vec<PathBuf> {
        let artifacts = self.evidence.with_extension("");
        let envelope = self.evidence.with_extension("intoto.jsonl");
        let name = |path: &Path| path.file_name().expect("a name").to_owned();
        let copy = |number: usize| {
            let own = folder.join(format!("{number:06}"));
            let below = own.join(name(&artifacts));
            std::fs::create_dir_all(&below).expect("a directory of our own");
            for file in files(&artifacts) {
                std::fs::copy(&file, below.join(name(&file))).expect("a copy");
            }
            for file in [&self.evidence, &envelope] {
                std::fs::copy(file, own.join(name(file))).expect("a copy");
            }
            own.join(name(&self.evidence))
        };
        (0..count).map(copy).collect()
    }

    /// A directory with so many bundles: links to the same evidence and the
    /// same envelope, with the artifacts once.
    fn many(&self, count: usize) -> PathBuf {
        let folder = self.folder.join(format!("many-{count}"));
        std::fs::create_dir(&folder).expect("a directory of our own");
        let artifacts = self.evidence.with_extension("");
        let to = folder.join(artifacts.file_name().expect("a name"));
        std::fs::create_dir(&to).expect("a directory of our own");
        for file in files(&artifacts) {
            std::fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
        }
        let envelope = self.evidence.with_extension("intoto.jsonl");
        let mut last = (PathBuf::new(), PathBuf::new());
        for number in 0..count {
            let json = folder.join(format!("{number:06}.json"));
            let signed = json.with_extension("intoto.jsonl");
            if number % LINKS == 0 {
                std::fs::copy(&self.evidence, &json).expect("a copy");
                std::fs::copy(&envelope, &signed).expect("a copy");
                last = (json, signed);
            } else {
                std::fs::hard_link(&last.0, &json).expect("a link");
                std::fs::hard_link(&last.1, &signed).expect("a link");
            }
        }
        folder
    }

    fn verify(&self, bundles: &[PathBuf], jobs: &str) -> Command {
        let mut command = tool();
        command
            .arg("verify")
            .args(bundles)
            .args(["-q", "--jobs", jobs]);
        command.args(["--require-artifacts", "--require-assurance", "signed-fresh"]);
        command
            .arg("--allowed-signers")
            .arg(self.folder.join("signers"));
        command.arg("--request").arg(self.folder.join("request"));
        command
    }
}

fn throughput(full: &Sample, plain: &Sample) {
    println!("{ROUNDS} rounds, in turns; medians; signed bundles, everything demanded");
    for (name, sample, count) in [
        ("with controls", full, 100),
        ("without controls", plain, 600),
    ] {
        let folder = tempfile::tempdir_in(&sample.folder).expect("a directory of our own");
        let bundles = sample.copies(folder.path(), count);
        let (few, none) = (&bundles[..count / 10], &[]);
        let (mut one, mut two, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        // What is read for the first time is slower for everybody.
        measure(&mut sample.verify(&bundles, "2"));
        for _ in 0..ROUNDS {
            one.push(measure(&mut sample.verify(&bundles, "1")).seconds);
            two.push(measure(&mut sample.verify(&bundles, "2")).seconds);
            let start = measure(&mut command(&python(sample, none))).seconds;
            let all = measure(&mut command(&python(sample, few))).seconds;
            theirs.push((all - start) * 10.0);
        }
        let (one, two, theirs) = (median(one), median(two), median(theirs));
        let megabytes = sample.bytes as f64 * count as f64 / 1e6;
        println!(
            "{name}: {count} bundles of {:.2} MB",
            sample.bytes as f64 / 1e6
        );
        println!(
            "  one core   {:>8.1} MB/s  (goal: at least 100)",
            megabytes / one
        );
        println!(
            "  two cores  {:>8.1} MB/s  {:.2} x",
            megabytes / two,
            one / two
        );
        println!(
            "  Python     {:>8.1} MB/s  ours is {:.1} x on one core (goal: at least 20), {:.1} x on two",
            megabytes / theirs,
            theirs / one,
            theirs / two
        );
    }
}

fn scaling(sample: &Sample) {
    let most = std::env::var("TKI_BENCH_MOST")
        .ok()
        .and_then(|text| text.parse().ok());
    let most = most.unwrap_or(100_000usize);
    println!("from 10 to {most} bundles without controls, on every core");
    let mut count = 10;
    while count <= most {
        let folder = sample.many(count);
        let taken = measure(&mut sample.verify(std::slice::from_ref(&folder), "2"));
        println!(
            "  {count:>7} bundles  {:>8.2} s  {:>7.3} ms each  {:>6.1} MB of memory",
            taken.seconds,
            taken.seconds * 1000.0 / count as f64,
            taken.memory as f64 / 1024.0
        );
        std::fs::remove_dir_all(&folder).expect("a directory of our own");
        count *= 10;
    }
}

/// The Python verifier on some bundles.
fn python(sample: &Sample, bundles: &[PathBuf]) -> Vec<String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = target.unwrap_or_else(|| root.join("target"));
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let mut line = vec![
        text(&target.join("venv/bin/python")),
        text(&root.join("benches/verify.py")),
        text(&root.join("evidence-schema/evidence.v1.schema.json")),
        text(&sample.folder.join("key.pub")),
    ];
    line.extend(bundles.iter().map(|bundle| text(bundle)));
    line
}

fn tool() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tki-attest"))
}

fn command(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}

fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

struct Taken {
    seconds: f64,
    /// The largest resident size, in KiB.
    memory: i64,
}

/// Runs a command that must succeed; its own resources, not those of all
/// children together.
#[expect(clippy::zombie_processes, reason = "wait4 waits for the child")]
fn measure(command: &mut Command) -> Taken {
    let start = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let pid = i32::try_from(child.id()).expect("a process id");
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are to variables of our own that outlive the call,
    // and zero is a valid value of every field.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(pid, &mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let seconds = start.elapsed().as_secs_f64();
    assert!(waited == pid && status == 0, "{command:?}: status {status}");
    Taken {
        seconds,
        memory: usage.ru_maxrss,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).expect("a file of the bundle").len()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a directory of the bundle");
    entries.flatten().map(|entry| entry.path()).collect()
}

fn only_json(folder: &Path) -> PathBuf {
    let mut found = files(folder);
    found.retain(|path| path.extension().is_some_and(|e| e == "json"));
    found.remove(0)
}
