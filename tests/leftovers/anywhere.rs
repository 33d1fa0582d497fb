//! More than twenty kills on each engine with a daemon, at moments that nobody chose: of
//! the tool, and of the engine. The exec gate of these engines is a thread of the tool,
//! so killing the tool is killing the gate. (Of the engines without a daemon the
//! keeper is the engine and holds the gate; see `local`.)

use crate::common::listing::{
    Copy, Listing, Moments, kill_run, length, length_without_limits, strike, until_killed,
};
use crate::common::podman::{Storage, processes, whole_podman};
use crate::common::private_engine::PrivateEngine;
use crate::common::user::OtherUser;
use crate::common::{eventually, lacking, names_in, need, run, tool, whole_engine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills something of a run's, and tells how many processes.
type Kill<'a> = &'a dyn Fn(&mut Child) -> usize;

/// An engine that may be killed, and what was there before that.
struct Docker {
    engine: PrivateEngine,
    copy: Copy,
    moments: Moments,
    before: Listing,
    length: Duration,
}

impl Docker {
    fn new(start_in: impl Fn(PathBuf) -> PrivateEngine) -> Self {
        let copy = Copy::new("/docker/");
        let engine = start_in(copy.place("engine"));
        run(&mut command_on(&engine, &copy)).succeeded();
        let length = length(command_on(&engine, &copy));
        Self {
            before: list(&engine, &copy),
            moments: Moments::new(),
            engine,
            copy,
            length,
        }
    }

    fn command(&self) -> Command {
        command_on(&self.engine, &self.copy)
    }

    /// With a runtime that takes its time.
    fn slow_command(&self) -> Command {
        let mut command = self.command();
        command.args(["--runtime", "slow"]);
        command
    }

    #[track_caller]
    fn nothing_new(&self) {
        self.before.nothing_new(|| list(&self.engine, &self.copy));
    }

    /// Kills the engine under a run, within that time from a beginning, and starts it
    /// again.
    #[track_caller]
    fn strike(&mut self, mut command: Command, begin: impl Fn(), within: Duration) {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        begin();
        std::thread::sleep(self.moments.within(within));
        self.engine.kill();
        child.wait().unwrap();
        self.engine.start_again();
        clean(tool(), &["--host", &self.engine.host()]);
        self.nothing_new();
    }
}

fn command_on(engine: &PrivateEngine, copy: &Copy) -> Command {
    let mut command = copy.command(&copy.program());
    command.args(["run", "--venue", "dev", "-q", "--host", &engine.host()]);
    command.arg("--out").arg(copy.place("out"));
    command
}

fn list(engine: &PrivateEngine, copy: &Copy) -> Listing {
    copy.look(&engine.docker(&["ps", "-aq", "--no-trunc"]))
}

#[test]
fn on_docker_nothing_is_left_wherever_a_kill_strikes() {
    let _alone = (whole_engine(), whole_podman());
    let mut docker = Docker::new(PrivateEngine::start_in);
    until_killed(15, || {
        let (engine, copy) = (&docker.engine, &docker.copy);
        let command = || command_on(engine, copy);
        let killed = strike(&mut docker.moments, docker.length, command, kill_run);
        docker.nothing_new();
        killed
    });
    // The whole of a run; where the engine makes containers; where it starts them.
    for _ in 0..5 {
        docker.strike(docker.command(), || (), docker.length);
    }
    for within in [12, 12, 12, 60, 120] {
        for _ in 0..2 {
            let within = Duration::from_millis(within);
            docker.strike(docker.command(), until_a_run_has_a_directory, within);
        }
    }
    let slow_length = length(docker.slow_command());
    for _ in 0..10 {
        let command = docker.slow_command();
        docker.strike(command, until_a_run_has_a_directory, slow_length);
    }
}

/// Without a containerd beside it, an engine starts one of its own, which goes with it
/// and forgets even more.
#[test]
fn on_docker_nothing_is_left_when_its_containerd_goes_with_it() {
    let _alone = (whole_engine(), whole_podman());
    let mut docker = Docker::new(PrivateEngine::start_alone_in);
    for _ in 0..10 {
        let within = Duration::from_millis(100);
        docker.strike(docker.command(), until_a_run_has_a_directory, within);
    }
}

/// From then on the engine is told to make a container, and then to start it.
fn until_a_run_has_a_directory() {
    let give_up = Instant::now() + Duration::from_secs(10);
    let has_one = || {
        let names = fs::read_dir("/run").unwrap().flatten();
        let mut names = names.map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("tki-attest-2"))
    };
    while !has_one() && Instant::now() < give_up {
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// As the error says: an engine that was killed is started again, and `clean`
/// takes away what it still holds.
fn clean(mut tool: Command, arguments: &[&str]) {
    let said = run(tool.args(["clean", "--force"]).args(arguments));
    said.succeeded();
    print!("{}", said.stdout);
}

/// Podman with a storage of its own, in which nobody else's containers are.
#[test]
fn on_podman_nothing_is_left_wherever_a_kill_strikes() {
    let _alone = (whole_engine(), whole_podman());
    let copy = Copy::new("/libpod");
    let storage = Storage::below(&copy.place(""));
    let out = copy.place("out");
    let command = || {
        let mut command = storage.on(copy.command(&copy.program()));
        command.args(["run", "--venue", "dev", "-q", "--engine", "podman"]);
        command.args(["--runtime", "runc", "--out"]).arg(&out);
        command
    };
    let containers = || {
        let mut listed = String::new();
        // It fails over a container that is removed while it looks.
        eventually("podman lists its containers", || {
            let mut list = storage.on(Command::new("podman"));
            list.args(["ps", "-aq", "--no-trunc", "--external"]);
            let said = need("podman", &mut list);
            listed = said.stdout;
            said.status == 0
        });
        listed
    };
    let mut moments = Moments::new();
    run(&mut command()).succeeded();
    let length = length(command());
    let before = copy.look(&containers());
    // The tool, the service that it started, and the monitor of its container.
    let folder = copy.place("");
    let service = |_: &mut Child| kill_one(&folder, &["system", "service"]);
    let monitor = |_: &mut Child| kill_one(&folder, &["conmon", "--api-version"]);
    until_killed(20, || {
        let killed = strike(&mut moments, length, command, kill_run);
        before.nothing_new(|| copy.look(&containers()));
        killed
    });
    let victims: [Kill; 2] = [&service, &monitor];
    for kill in victims {
        until_killed(5, || {
            let killed = strike(&mut moments, length, command, kill);
            clean(storage.on(tool()), &["--engine", "podman"]);
            before.nothing_new(|| copy.look(&containers()));
            killed
        });
    }
}

/// The same for a user who is not root: Podman keeps namespaces for each, and in
/// these are its mounts.
#[test]
fn on_podman_of_a_user_nothing_is_left_wherever_a_kill_strikes() {
    let _alone = (whole_engine(), whole_podman());
    let copy = Copy::new("/libpod");
    let user = OtherUser::new();
    let program = || {
        let mut command = user.command(&copy.program());
        copy.mark(&mut command);
        command
    };
    let command = || {
        let mut command = program();
        command.args(["run", "--venue", "dev", "-q", "--engine", "podman"]);
        command.args(["--runtime", "runc", "--out"]);
        command.arg(user.path("out"));
        command
    };
    let asked = |words: &[&str]| {
        let mut said = String::new();
        eventually("podman answers", || {
            let mut podman = user.command(Path::new("podman"));
            let heard = need("podman", podman.args(["--runtime", "runc"]).args(words));
            said = heard.stdout;
            heard.status == 0
        });
        said
    };
    let look = || {
        let containers = asked(&["ps", "-aq", "--no-trunc", "--external"]);
        let mounts = asked(&["unshare", "cat", "/proc/self/mountinfo"]);
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        let ours =
            points.filter(|point| point.contains("/overlay/") || point.contains("tki-attest-"));
        let states = names_in(&user.path("runtime/runc"));
        let own = names_in(&user.path("runtime"));
        let own = own.iter().filter(|name| name.starts_with("tki-attest-"));
        let lines = containers.lines().chain(ours);
        let lines = lines
            .chain(states.iter().map(String::as_str))
            .chain(own.map(String::as_str));
        copy.look(&lines.collect::<Vec<_>>().join("\n"))
    };
    let mut info = user.command(Path::new("podman"));
    let info = need("podman", info.args(["--runtime", "runc", "info"]));
    if info.status != 0 {
        lacking(&format!(
            "this kernel has no rootless Podman: {}",
            info.stderr
        ));
        return;
    }
    length_without_limits(command());
    let length = length_without_limits(command());
    let before = look();
    let folder = user.path("");
    let service = |_: &mut Child| kill_one(&folder, &["system", "service"]);
    let monitor = |_: &mut Child| kill_one(&folder, &["conmon", "--api-version"]);
    let victims: [(usize, Kill); 3] = [(10, &kill_run), (5, &service), (5, &monitor)];
    let mut moments = Moments::new();
    for (wanted, kill) in victims {
        until_killed(wanted, || {
            let killed = strike(&mut moments, length, command, kill);
            clean(program(), &["--engine", "podman"]);
            before.nothing_new(look);
            killed
        });
    }
}

/// Kills a process with these arguments that has to do with the directory, if there is
/// one.
fn kill_one(folder: &Path, words: &[&str]) -> usize {
    let folder = folder.to_string_lossy();
    for pid in processes(words) {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&[environment, line].concat()).into_owned();
        if text.contains(folder.trim_end_matches('/'))
            && let Some(pid) = Pid::from_raw(pid)
        {
            return usize::from(kill_process(pid, Signal::KILL).is_ok());
        }
    }
    0
}
