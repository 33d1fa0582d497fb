//! How long a whole `tki-attest run` takes beside `docker run` and `podman run`
//! of the same image with the same flags, doing nothing and making the same probes,
//! and beside `runc` and `bwrap` alone. Each beside its peer in the same run, in turns, as a
//! ratio of medians. None begins before what the one before has left behind is over:
//! `podman run` is back while its monitor still starts Podman once more, and that would be
//! measured with its neighbour.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tki_attest::engine::local::filter;

const ROUNDS: usize = 15;

fn main() {
    // Cargo says `--bench`; names of engines choose, and without any all are measured.
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted = |engine: &str| named.is_empty() || named.iter().any(|name| name == engine);
    settle();
    println!("{ROUNDS} rounds, in turns; medians");
    let docker = wanted("docker").then(|| compare("docker"));
    if wanted("podman") {
        compare("podman");
    }
    if wanted("embedded") {
        compare_local("embedded", 1.5, runc_line, docker);
    }
    if wanted("bwrap") {
        compare_local("bwrap", 2.0, bwrap_line, None);
    }
}

/// An engine without a daemon, beside the program that does the same by hand.
fn compare_local(
    engine: &str,
    goal: f64,
    line: fn(&serde_json::Value, &Path) -> Vec<String>,
    docker: Option<Duration>,
) {
    let work = tempfile::tempdir().expect("a temporary directory");
    let out = work.path().join("reports");
    let attest = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tki-attest"));
        command
            .args(["run", "-q", "--venue", "dev", "--engine", engine])
            .args(["--controls", "none", "--out"])
            .arg(&out);
        command
    };
    time(&mut attest());
    let description = files(&out, "json").remove(0);
    let description = description.with_extension("").join("container.json");
    let description = std::fs::read(description).expect("the container's description");
    let description: serde_json::Value = serde_json::from_slice(&description).expect("it is JSON");
    unpack_image(work.path());
    let peer_line = line(&description["made"]["config"], work.path());
    let nothing: Vec<String> = peer_line
        .iter()
        .map(|word| match word.as_str() {
            "probe" => "version".into(),
            word => word.replace("probe.json", "version.json"),
        })
        .collect();
    let challenge = challenge(&out);
    time(&mut command(&nothing));
    converse(&mut command(&peer_line), &challenge);
    let (mut ours, mut theirs, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(converse(&mut command(&peer_line), &challenge));
        idle.push(time(&mut command(&nothing)));
        ours.push(time(&mut attest()));
    }
    let (ours, theirs, idle) = (median(ours), median(theirs), median(idle));
    let ratio = |peer: Duration| ours.as_secs_f64() / peer.as_secs_f64();
    let peer = match engine {
        "embedded" => "runc run",
        other => other,
    };
    for (what, took) in [("nothing", idle), ("the same probes", theirs)] {
        println!(
            "{:<36} {:>8.1} ms",
            format!("{peer} ({what})"),
            millis(took)
        );
    }
    println!(
        "{:<36} {:>8.1} ms  {:>5.2} x  (goal: at most {goal}; {:.2} x beside nothing)",
        format!("tki-attest run --engine {engine}"),
        millis(ours),
        ratio(theirs),
        ratio(idle)
    );
    if let Some(docker) = docker {
        println!(
            "{:<36} {:>11}  {:>5.2} x  (goal: at most 0.25)",
            "  beside docker run",
            "",
            ratio(docker)
        );
    }
    println!("{:<36} {:>8.1} ms", "inside the container", inside(&out));
}

/// A Podman service that runs for as long as its measurements do, as Docker's
/// does; without it the tool starts one for each run.
struct Service {
    child: std::process::Child,
    address: String,
}

impl Service {
    fn start(evidence: &serde_json::Value, work: &Path) -> Self {
        let socket = work.join("podman.sock");
        let runtime = evidence["runtime"]["oci_runtime"].as_str().expect("a name");
        let address = format!("unix://{}", socket.display());
        let child = Command::new("podman")
            .args(["--runtime", runtime, "system", "service", "--time=0"])
            .arg(&address)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("podman is installed");
        let service = Self { child, address };
        let give_up = Instant::now() + Duration::from_secs(30);
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < give_up, "the service does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the prober was asked in the first run, as it was sent.
fn challenge(out: &Path) -> Vec<u8> {
    let transcript = files(out, "json").remove(0).with_extension("");
    let transcript = std::fs::read(transcript.join("transcript.ndjson")).expect("the transcript");
    transcript
        .split_inclusive(|byte| *byte == b'\n')
        .find(|line| line.starts_with(b"{\"challenge\""))
        .expect("the challenge")
        .to_vec()
}

/// The same conversation by hand: the challenge in, everything out.
fn converse(command: &mut Command, challenge: &[u8]) -> Duration {
    use std::io::{Read, Write};
    settle();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(challenge).expect("the challenge is taken");
    let mut said = String::new();
    let mut output = child.stdout.take().expect("a pipe");
    output.read_to_string(&mut said).expect("it speaks");
    drop(input);
    let status = child.wait().expect("it ends");
    let took = start.elapsed();
    assert!(
        status.success() && said.contains("\"done\""),
        "{command:?}: {said}"
    );
    took
}

/// The image's files in `rootfs`, and directories for the binds.
fn unpack_image(work: &Path) {
    let layout = work.join("layout");
    let built = Command::new(env!("CARGO_BIN_EXE_tki-attest"))
        .args(["build", "-q", "--layout"])
        .arg(&layout)
        .stdout(Stdio::null())
        .status()
        .expect("the image is built");
    assert!(built.success());
    let read = |path: std::path::PathBuf| -> serde_json::Value {
        let bytes = std::fs::read(path).expect("a file of the layout");
        serde_json::from_slice(&bytes).expect("it is JSON")
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().expect("a digest");
        layout.join("blobs").join(digest.replace(':', "/"))
    };
    let manifest = read(blob(&read(layout.join("index.json"))["manifests"][0]));
    let rootfs = work.join("rootfs");
    for name in ["rootfs", "in", "out", "tmp", "state"] {
        std::fs::create_dir_all(work.join(name)).expect("a directory of our own");
    }
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(blob(&manifest["layers"][0]))
        .arg("-C")
        .arg(&rootfs)
        .status()
        .expect("tar runs");
    assert!(unpacked.success());
    for name in ["proc", "dev", "in", "out", "tmp", "sys/fs/cgroup/cpu"] {
        std::fs::create_dir_all(rootfs.join(name)).expect("a mount point");
    }
}

/// `runc run` of the bundle that the embedded engine was given.
fn runc_line(config: &serde_json::Value, work: &Path) -> Vec<String> {
    let mut config = config.clone();
    let mounts = config["mounts"].as_array_mut().expect("mounts");
    mounts.retain(|mount| mount["destination"] != "/sys/fs/cgroup");
    for mount in mounts.iter_mut().filter(|mount| mount["type"] == "bind") {
        let target = mount["destination"].as_str().expect("a target").to_owned();
        mount["source"] = format!("{}{target}", work.display()).into();
    }
    config["linux"]["cgroupsPath"] = "/tki-bench-runc".into();
    let profile = include_bytes!("../seccomp/deny-by-default.json");
    let mut profile: serde_json::Value =
        serde_json::from_slice(profile).expect("the built-in profile");
    for rule in profile["syscalls"].as_array_mut().expect("rules") {
        rule.as_object_mut().expect("a rule").remove("comment");
    }
    config["linux"]["seccomp"] = profile;
    // Two bundles with the same files: one that probes and one that does nothing.
    config["root"]["path"] = work.join("rootfs").to_string_lossy().into_owned().into();
    for what in ["probe", "version"] {
        let bundle = work.join(format!("{what}.json"));
        std::fs::create_dir_all(&bundle).expect("a directory of our own");
        config["process"]["args"] = serde_json::json!(["/tki-prober", what]);
        let text = serde_json::to_vec(&config).expect("it was JSON");
        std::fs::write(bundle.join("config.json"), text).expect("a file of our own");
    }
    let place = |name: &str| work.join(name).to_string_lossy().into_owned();
    let words = ["runc", "--root", &place("state"), "run", "--bundle"];
    let words = words.map(str::to_owned).into_iter();
    words
        .chain([place("probe.json"), "tki-bench".into()])
        .collect()
}

/// bubblewrap by hand, with the arguments that ours was given.
fn bwrap_line(arguments: &serde_json::Value, work: &Path) -> Vec<String> {
    let given: Vec<&str> = arguments
        .as_array()
        .expect("arguments")
        .iter()
        .filter_map(|word| word.as_str())
        .collect();
    let profile = include_str!("../seccomp/deny-by-default.json");
    let program = filter::compile(profile).expect("the built-in profile compiles");
    let file = work.join("seccomp.bpf");
    std::fs::write(&file, filter::bytes(&program)).expect("a file of our own");
    // The shell opens the compiled profile for it.
    let mut line = vec![
        "sh".to_owned(),
        "-c".to_owned(),
        format!("exec bwrap --seccomp 9 \"$@\" 9<{}", file.display()),
        "sh".to_owned(),
    ];
    let mut words = given.into_iter();
    while let Some(word) = words.next() {
        match word {
            // What only a keeper can give.
            "--info-fd" | "--block-fd" | "--seccomp" => {
                words.next();
            }
            path if path.contains("/frozen-") => {
                let target = words.next().expect("a target").to_owned();
                line.extend([target.clone(), target]);
            }
            path if path.starts_with("/run/tki-attest-") => {
                let target = words.next().expect("a target").to_owned();
                let source = match target.as_str() {
                    "/" => "rootfs".to_owned(),
                    "/sys/fs/cgroup/cpu" => "state".to_owned(),
                    other => other.trim_start_matches('/').to_owned(),
                };
                let source = work.join(source).to_string_lossy().into_owned();
                line.extend([source, target]);
            }
            other => line.push(other.to_owned()),
        }
    }
    line
}

fn compare(engine: &str) -> Duration {
    let tool = env!("CARGO_BIN_EXE_tki-attest");
    let work = tempfile::tempdir().expect("a temporary directory");
    let out = work.path().join("reports");
    let whole = work.path().join("whole");
    let attest = |controls: &str, out: &Path| {
        let mut command = Command::new(tool);
        command
            // What runs remember here is of these measurements alone.
            .env("XDG_STATE_HOME", work.path().join("state"))
            .args(["run", "-q", "--venue", "dev", "--engine", engine])
            .args(["--controls", controls, "--out"])
            .arg(out);
        command
    };
    // The first run loads the image and gives the flags for the peer. It also finds out
    // whether the engine takes the exec gate.
    time(&mut attest("none", &out));
    let evidence = first_evidence(&out);
    let peer_line = peer(&evidence, work.path(), false, Sides::Binds);
    time(&mut command(&peer_line));
    let probing_line = peer(&evidence, work.path(), true, Sides::Binds);
    let challenge = challenge(&out);

    // An engine that takes the gate has it tried each time.
    let is_remembered = work.path().join("state/tki-attest/gate.json").exists();
    let service = (engine == "podman").then(|| Service::start(&evidence, work.path()));
    let (mut ours, mut theirs, mut battery) = (Vec::new(), Vec::new(), Vec::new());
    let (mut served, mut probing, mut volumes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut tried, mut bare) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        theirs.push(time(&mut command(&peer_line)));
        volumes.push(with_volumes(engine, &evidence, work.path(), round));
        ours.push(time(&mut attest("none", &out)));
        probing.push(converse(&mut command(&probing_line), &challenge));
        if is_remembered {
            tried.push(time(attest("none", &out).arg("--no-state")));
        }
        if let Some(service) = &service {
            let mut attest = attest("none", &out);
            served.push(time(attest.arg("--host").arg(&service.address)));
        }
        if round % 3 == 0 {
            battery.push(time(&mut attest("safe", &whole)));
            let containers = containers_of(&whole);
            bare.push((containers, four_at_a_time(&peer_line, containers)));
        }
    }
    let containers = bare.first().map_or(0, |(containers, _)| *containers);
    let bare = median(bare.into_iter().map(|(_, took)| took).collect());
    let (ours, theirs, battery) = (median(ours), median(theirs), median(battery));
    let ratio = |time: Duration| time.as_secs_f64() / theirs.as_secs_f64();
    let row = |name: &str, time: Duration, note: &str| {
        println!("{name:<36} {:>8.1} ms  {note}", millis(time));
    };
    let probing = median(probing);
    row(&format!("{engine} run --rm (nothing)"), theirs, "");
    row(&format!("{engine} run --rm (the same probes)"), probing, "");
    let volumes = median(volumes);
    row(
        &format!("{engine} run --rm (nothing, volumes)"),
        volumes,
        &format!(
            "{:>5.2} x  (goal: at most 1.1 beside binds)",
            ratio(volumes)
        ),
    );
    let beside_probes = ours.as_secs_f64() / probing.as_secs_f64();
    row(
        match is_remembered {
            true => "tki-attest run (second, remembering)",
            false => "tki-attest run --controls none",
        },
        ours,
        &format!(
            "{:>5.2} x  (goal: at most {}; {beside_probes:.2} x beside the same probes)",
            ratio(ours),
            if is_remembered { "0.80" } else { "1.25" }
        ),
    );
    if is_remembered {
        let tried = median(tried);
        let note = format!("{:>5.2} x  (goal: at most 1.25)", ratio(tried));
        row("  with the exec gate tried", tried, &note);
    }
    if service.is_some() {
        let served = median(served);
        let note = format!("{:>5.2} x", ratio(served));
        row("  with a service that runs already", served, &note);
    }
    row(
        "tki-attest run --controls safe",
        battery,
        &format!("{:>5.2} x", ratio(battery)),
    );
    row(
        &format!("  beside {containers} of nothing, four at once"),
        bare,
        &format!(
            "{:>5.2} x  (goal: at most 0.60)",
            battery.as_secs_f64() / bare.as_secs_f64()
        ),
    );
    println!("{:<36} {:>8.1} ms", "inside the container", inside(&out));
    theirs
}

/// How many containers a run with controls made: its own, one for each control, and the
/// neighbour, if there was one.
fn containers_of(out: &Path) -> usize {
    let evidence = files(out, "json").remove(0);
    let neighbours = evidence
        .with_extension("")
        .join("neighbour.ndjson")
        .exists();
    let controls = first_evidence(out)["controls"]
        .as_array()
        .map_or(0, Vec::len);
    1 + controls + usize::from(neighbours)
}

/// So many bare containers, four at a time: what a run with controls has to be beside.
fn four_at_a_time(line: &[String], containers: usize) -> Duration {
    settle();
    let (started, next) = (Instant::now(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < containers {
                    let done = command(line)
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .status();
                    assert!(done.is_ok_and(|status| status.success()), "{line:?}");
                }
            });
        }
    });
    started.elapsed()
}

fn command(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}

/// Waits until no more of the engines' helpers run than at the beginning, for so
/// long at most.
fn settle() {
    static AT_FIRST: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let at_first = *AT_FIRST.get_or_init(helpers);
    let give_up = Instant::now() + Duration::from_secs(2);
    while helpers() > at_first && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that engines start for a container. A monitor stays for as long as the
/// Podman that it has started.
fn helpers() -> usize {
    let names = ["conmon", "runc", "containerd-shim"];
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let called =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("comm")).ok());
    called
        .filter(|called| names.iter().any(|name| called.starts_with(name)))
        .count()
}

fn time(command: &mut Command) -> Duration {
    settle();
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

/// The same container with the volumes that a run has: a new one with a name, and one that
/// goes with it. The first is taken away when the clock has stopped.
fn with_volumes(engine: &str, evidence: &serde_json::Value, work: &Path, round: usize) -> Duration {
    let name = format!("tki-attest-bench-{}-{round}", std::process::id());
    let line = peer(evidence, work, false, Sides::Volumes(&name));
    let took = time(&mut command(&line));
    let mut remove = Command::new(engine);
    let removed = remove.args(["volume", "rm", &name]).stdout(Stdio::null());
    assert!(removed.status().expect("the engine's client").success());
    took
}

/// What stands behind /in and /out of a peer.
#[derive(Clone, Copy)]
enum Sides<'a> {
    /// Directories of our own.
    Binds,
    /// Volumes as a run has them; the name of the first.
    Volumes(&'a str),
}

/// The recorded command line, with sides of our own, and to probe or to do nothing.
fn peer(evidence: &serde_json::Value, work: &Path, probe: bool, sides: Sides) -> Vec<String> {
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
        .filter(|word| !word.starts_with("--name="))
        .filter(|word| probe || *word != "--interactive")
        .map(|word| {
            let is_input = word.contains("dst=/in");
            if let (true, Sides::Volumes(name)) = (word.starts_with("--mount="), sides) {
                match word.split_once("src=").filter(|_| is_input) {
                    None => word.into(),
                    Some((before, after)) => {
                        let (_, after) = after.split_once(',').expect("a target");
                        format!("{before}src={name},{after}")
                    }
                }
            } else if word.starts_with("--mount=") && is_input {
                format!(
                    "--mount=type=bind,src={}/in,dst=/in,readonly",
                    work.display()
                )
            } else if word.starts_with("--mount=") {
                format!("--mount=type=bind,src={}/out,dst=/out", work.display())
            } else if word.starts_with("--security-opt=seccomp=") {
                format!("--security-opt=seccomp={}", profile.display())
            } else if word == "probe" && !probe {
                "version".into()
            } else {
                word.into()
            }
        })
        .collect()
}

/// The median of what the prober said it took, from the transcripts.
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
