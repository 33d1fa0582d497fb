//! Everything on this machine that runs of the tool under test can leave:
//! containers, mounts, control groups, namespaces, sockets, files, processes.
//! Tests list it before and after, and compare.

use super::{isolated, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A copy of the tool in a directory of its own. Its processes, and those that
/// they start, are known by that directory: it is their program, or in their
/// arguments, or in an environment variable that is handed down.
pub struct Copy {
    folder: tempfile::TempDir,
    groups: &'static str,
}

impl Copy {
    /// Makes the copy, for any user. The engine's control groups have `groups` in
    /// their path.
    pub fn new(groups: &'static str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).unwrap();
        let copy = Self { folder, groups };
        let original = env!("CARGO_BIN_EXE_tki-attest");
        if fs::hard_link(original, copy.program()).is_err() {
            fs::copy(original, copy.program()).unwrap();
        }
        copy
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.folder.path().join("tki-attest")
    }

    /// A place below the directory.
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that starts it, or a program that does.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = isolated(program);
        self.mark(&mut command);
        command
    }

    /// Makes a command's processes known.
    pub fn mark(&self, command: &mut Command) {
        command.env("TKI_TEST_FOLDER", self.folder.path());
    }

    /// Everything that is there now. `containers` are those of the engine.
    pub fn look(&self, containers: &str) -> Listing {
        let mut listing = Listing(BTreeSet::new());
        for line in containers.lines() {
            listing.add("container", line);
        }
        let folder = self.folder.path().to_string_lossy();
        let ours = |text: &str| text.contains(&*folder) || is_abandoned(text);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        for point in mounts.lines().filter_map(|line| line.split(' ').nth(4)) {
            if ours(point) {
                listing.add("mount", point);
            }
        }
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        for name in sockets.lines().filter_map(|line| line.split(' ').nth(7)) {
            // The Docker Engine itself has one by another name at each start.
            let engine = name.contains("/containerd/") && self.groups == "/docker/";
            if (ours(name) || engine) && !name.contains("/libnetwork/") {
                listing.add("socket", name);
            }
        }
        for place in [Path::new("/run"), &std::env::temp_dir()] {
            for entry in fs::read_dir(place).unwrap().flatten() {
                let path = entry.path().to_string_lossy().into_owned();
                if is_abandoned(&path) {
                    listing.add("file", &path);
                }
            }
        }
        // What the runtimes of Podman's containers keep about them.
        let runtimes = ["/run/runc", "/run/crun"].into_iter();
        for place in runtimes.filter(|_| self.groups == "/libpod") {
            for entry in fs::read_dir(place).into_iter().flatten().flatten() {
                listing.add("state", &entry.path().to_string_lossy());
            }
        }
        listing.add_groups(self.groups, Path::new("/sys/fs/cgroup"), 0);
        listing.add_processes(&folder);
        listing
    }
}

/// A path in a directory of a run that lives no more: a run that lives holds its lock.
fn is_abandoned(path: &str) -> bool {
    let Some(start) = path.find("/tki-attest-") else {
        return false;
    };
    let length = path[start + 1..].find('/');
    let folder = length.map_or(path, |length| &path[..=start + length]);
    // A service's socket has no directory any more, and is its process's.
    if !Path::new(folder).exists() && !path.contains("gate.sock") {
        return false;
    }
    let lock = fs::File::open(Path::new(folder).join(".tki-attest-run"));
    !lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// Has the directory as its program, in its arguments or in its environment.
fn is_ours(pid: u32, folder: &str) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.starts_with(folder)
        || read_process(pid, "cmdline").contains(folder)
        || read_process(pid, "environ").contains(folder)
}

fn read_process(pid: u32, name: &str) -> String {
    let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}

fn parent(pid: u32) -> u32 {
    let status = read_process(pid, "status");
    let field = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    field.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0)
}

/// What was there.
pub struct Listing(BTreeSet<String>);

impl Listing {
    fn add(&mut self, kind: &str, what: &str) {
        self.0.insert(format!("{kind} {what}"));
    }

    /// Control groups that an engine makes for a container.
    fn add_groups(&mut self, word: &str, folder: &Path, depth: u32) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            let text = path.to_string_lossy();
            // One that is in use is that of its processes.
            let procs = fs::read_to_string(path.join("cgroup.procs"));
            if text.contains(word) && procs.is_ok_and(|procs| procs.is_empty()) {
                self.add("group", &text);
            }
            if depth < 4 {
                self.add_groups(word, &path, depth + 1);
            }
        }
    }

    /// Processes of ours that have not ended, and the namespaces that they hold.
    fn add_processes(&mut self, folder: &str) {
        let own = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).ok();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            // What has ended has no arguments, and waits only to be counted.
            let line = read_process(pid, "cmdline");
            if pid == std::process::id() || line.is_empty() {
                continue;
            }
            // A container's process has nothing of ours; but its parent has, or
            // is gone.
            let is_prober = read_process(pid, "comm").trim() == "tki-prober";
            let parent = is_prober.then(|| parent(pid));
            let alone = parent.is_some_and(|parent| parent <= 1 || is_ours(parent, folder));
            if !alone && !is_ours(pid, folder) {
                continue;
            }
            // Without its number: an engine that is started again is the same.
            self.add("process", &line);
            for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
                let found = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
                if let Some(found) = found.filter(|found| own(kind).as_ref() != Some(found)) {
                    self.add("namespace", &found.to_string_lossy());
                }
            }
        }
    }

    /// Nothing has come to stay. An engine may need a moment. Others may use the
    /// machine at the same time, and what is theirs comes and goes: after a while
    /// only what has been there for some time counts. No measurement, only bounds.
    #[track_caller]
    pub fn nothing_new(&self, mut look: impl FnMut() -> Listing) {
        let mut first_seen: BTreeMap<String, Instant> = BTreeMap::new();
        let started = Instant::now();
        loop {
            let now = look();
            let new: BTreeSet<String> = now.0.difference(&self.0).cloned().collect();
            first_seen.retain(|what, _| new.contains(what));
            for what in new {
                first_seen.entry(what).or_insert_with(Instant::now);
            }
            let old: Vec<&String> = first_seen
                .iter()
                .filter(|(_, since)| since.elapsed() > Duration::from_secs(6))
                .map(|(what, _)| what)
                .collect();
            let settled = started.elapsed() > Duration::from_secs(12) && old.is_empty();
            if first_seen.is_empty() || settled {
                return;
            }
            let give_up = started.elapsed() > Duration::from_secs(60);
            assert!(!give_up, "still there: {old:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Numbers that nobody chose, and that can be had again: the seed is printed, and
/// `TKI_TEST_SEED` sets it.
pub struct Moments(u64);

impl Moments {
    /// Begins with the seed.
    pub fn new() -> Self {
        use std::hash::{BuildHasher, Hasher};
        let given = std::env::var("TKI_TEST_SEED").ok();
        let random = || std::hash::RandomState::new().build_hasher().finish();
        let seed = given
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(random);
        println!("TKI_TEST_SEED={seed}");
        Self(seed | 1)
    }

    /// A moment within a length of time.
    pub fn within(&mut self, length: Duration) -> Duration {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let whole = u64::try_from(length.as_micros()).unwrap().max(1);
        Duration::from_micros(self.0 % whole)
    }
}

/// Runs under way at the same time: all are struck before anybody looks.
const AT_ONCE: u32 = 5;

/// How long an undisturbed run takes, to spread moments over. No assertion.
pub fn length(mut command: Command) -> Duration {
    let started = Instant::now();
    run(&mut command).succeeded();
    started.elapsed()
}

/// The same for a user who lacks limits, which is status 3 without an error.
pub fn length_without_limits(mut command: Command) -> Duration {
    let started = Instant::now();
    let said = run(&mut command);
    let length = started.elapsed();
    let partial = said.status == 3 && !said.stderr.contains("tki-attest: [");
    assert!(said.status == 0 || partial, "{said:?}");
    length
}

/// Starts some runs, does something to each at a moment of its own, and waits for
/// their end. `kill` tells how many processes it has killed; so does this.
pub fn strike(
    moments: &mut Moments,
    length: Duration,
    command: impl Fn() -> Command,
    kill: impl Fn(&mut Child) -> usize,
) -> usize {
    // Several at once take longer.
    let length = length * AT_ONCE / 2;
    let start = || {
        let mut command = command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut runs: Vec<(Duration, Child)> = (0..AT_ONCE)
        .map(|_| (moments.within(length), start()))
        .collect();
    runs.sort_by_key(|(moment, _)| *moment);
    let started = Instant::now();
    let mut killed = 0;
    for (moment, child) in &mut runs {
        std::thread::sleep(moment.saturating_sub(started.elapsed()));
        killed += kill(child);
    }
    for (_, mut child) in runs {
        child.wait().unwrap();
    }
    killed
}

/// Strikes until so many have been killed. Many strikes miss, but not all.
#[track_caller]
pub fn until_killed(wanted: usize, mut strike: impl FnMut() -> usize) {
    let mut killed = 0;
    for _ in 0..10 * wanted {
        killed += strike();
        if killed >= wanted {
            return;
        }
    }
    panic!("{killed} were killed, not {wanted}");
}

/// Kills a run, if it has not ended.
pub fn kill_run(child: &mut Child) -> usize {
    let runs = child.try_wait().unwrap().is_none();
    usize::from(runs && child.kill().is_ok())
}
