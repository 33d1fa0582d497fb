//! The neighbour: what it puts into its network namespace and its volumes, on real
//! engines, and how it ends.

use crate::common::podman::shared_podman;
use crate::common::user::OtherUser;
use crate::common::{lacking, need, run, tool, whole_engine};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The abstract name of its socket.
const CANARY: &str = "tki-canary-of-a-test";

/// An engine's command line, with a name for everything that a test makes there.
struct Bench<'a> {
    program: &'a dyn Fn() -> Command,
    name: String,
}

impl<'a> Bench<'a> {
    /// Makes two volumes, and an image with a busybox.
    fn new(program: &'a dyn Fn() -> Command, context: &Path) -> Self {
        let name = format!("tki-neighbour-test-{}", std::process::id());
        let bench = Self { program, name };
        for volume in bench.volumes() {
            bench.must(&["volume", "create", &volume]);
        }
        fs::write(
            context.join("Dockerfile"),
            "FROM scratch\nCOPY busybox /busybox\n",
        )
        .unwrap();
        fs::copy("/bin/busybox", context.join("busybox"))
            .unwrap_or_else(|error| panic!("/bin/busybox: {error}: install busybox-static"));
        let (tag, context) = (bench.image(), context.to_string_lossy());
        bench.must(&["build", "-q", "-t", &tag, &context]);
        bench
    }

    fn volumes(&self) -> [String; 2] {
        ["in", "out"].map(|end| format!("{}-{end}", self.name))
    }

    fn image(&self) -> String {
        format!("{}:busybox", self.name)
    }

    #[track_caller]
    fn must(&self, arguments: &[&str]) -> String {
        let said = need("the engine", (self.program)().args(arguments));
        assert_eq!(said.status, 0, "{arguments:?}: {said:?}");
        said.stdout.trim().to_owned()
    }

    /// Starts a neighbour. `more` comes before the image.
    fn start(&self, more: &[&str]) -> Neighbour {
        let mut command = (self.program)();
        command.args(["run", "--rm", "-i", "--name", &self.name]);
        command.args(["--network=none", "--read-only", "--user=0:0"]);
        command.args(["--cap-drop=ALL", "--security-opt=no-new-privileges"]);
        command
            .args(more)
            .args(["tki-inspector:attest", "neighbour", CANARY]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Neighbour { child, lines }
    }

    fn mounts(&self) -> Vec<String> {
        let pairs = self.volumes().into_iter().zip(["/in", "/out"]);
        pairs.map(|(name, at)| format!("-v={name}:{at}")).collect()
    }

    /// What a shell sees that joins the neighbour's network and has its volumes.
    fn seen(&self, pids_limit: &[&str], script: &str) -> String {
        let network = format!("--network=container:{}", self.name);
        let (mounts, image) = (self.mounts(), self.image());
        let mut words = vec!["run", "--rm", &network, "--read-only"];
        words.extend(pids_limit);
        words.extend(mounts.iter().map(String::as_str));
        words.extend([image.as_str(), "/busybox", "sh", "-c", script]);
        self.must(&words)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let [input, output] = self.volumes();
        for arguments in [
            &["rm", "-f", &self.name][..],
            &["rmi", &self.image()],
            &["volume", "rm", &input, &output],
        ] {
            let _ = run((self.program)().args(arguments));
        }
    }
}

struct Neighbour {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Neighbour {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Closes its standard input; its status, and what it said besides.
    fn end(mut self) -> (i32, String) {
        drop(self.child.stdin.take());
        let rest = self.line();
        let output = self.child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap_or(-1), rest + &errors)
    }
}

/// Starts one, looks at what it has made, and ends it.
fn furnishes_and_goes(bench: &Bench, pids_limit: &[&str]) {
    let mounts = bench.mounts();
    let mut more = vec!["--cap-add=NET_ADMIN"];
    more.extend(pids_limit);
    more.extend(mounts.iter().map(String::as_str));
    let mut neighbour = bench.start(&more);
    let hello: serde_json::Value = serde_json::from_str(&neighbour.line()).unwrap();
    assert_eq!(hello["hello"]["protocol"], 1, "{hello}");
    assert_eq!(
        hello["hello"]["missing"],
        serde_json::json!(["in-read-only", "non-root", "no-capabilities"])
    );
    let said: serde_json::Value = serde_json::from_str(&neighbour.line()).unwrap();
    let namespaces = said["raw"]["text"].as_str().unwrap();
    assert!(namespaces.contains("net:["), "{said}");
    // What it is told means nothing to it.
    let input = neighbour.child.stdin.as_mut().unwrap();
    input.write_all(b"anything\n").unwrap();
    input.flush().unwrap();
    let script = "cd /; for path in in out in/* out/*; do /busybox stat -c '%n %A' $path; done; \
                  /busybox cat in/tki-probe-target out/tki-probe-target out/suid-decoy; \
                  for end in tki0 tki1; do /busybox ip -o link show $end; done; \
                  /busybox ip -o -4 addr show tki0; /busybox ip route show default; \
                  /busybox grep -c @tki-canary-of-a-test /proc/net/unix";
    let seen = bench.seen(pids_limit, script);
    let lines: Vec<&str> = seen.lines().collect();
    let target = "The probes try to change this file.";
    assert_eq!(
        lines[..9],
        [
            "in drwxrwxrwx",
            "out drwxrwxrwx",
            "in/docker.sock srw-rw-rw-",
            "in/tki-probe-target -rw-rw-rw-",
            "out/suid-decoy -r-Sr--r--",
            "out/tki-probe-target -rw-rw-rw-",
            target,
            target,
            "not a program",
        ],
        "{seen}"
    );
    for (line, end) in lines[9..11].iter().zip(["tki0@", "tki1@"]) {
        assert!(line.contains(end) && line.contains(",UP,"), "{seen}");
    }
    assert!(lines[11].contains(" 192.0.2.2/24 "), "{seen}");
    assert!(lines[12].starts_with("default dev tki0"), "{seen}");
    assert_eq!(lines.last(), Some(&"1"), "{seen}");
    let state = bench.must(&["inspect", "-f", "{{.State.Running}}", &bench.name]);
    assert_eq!(state, "true");
    assert_eq!(neighbour.end(), (0, String::new()));
}

/// It says which step failed, and does not greet.
fn refuses(bench: &Bench, more: &[&str], reason: &str) {
    let mut neighbour = bench.start(more);
    let line = neighbour.line();
    let (status, rest) = neighbour.end();
    assert_eq!(status, 3, "{line}{rest}");
    assert!(line.starts_with("{\"refused\""), "{line}");
    assert!(line.contains(reason), "{line}");
}

#[test]
fn it_furnishes_what_controls_show_on_docker() {
    let _engine = whole_engine();
    run(tool().args(["build", "--load"])).succeeded();
    let context = tempfile::tempdir().unwrap();
    let program = || Command::new("docker");
    let bench = Bench::new(&program, context.path());
    let limit = "--pids-limit=16";
    furnishes_and_goes(&bench, &[limit]);

    // Its volumes have the decoys already.
    let mounts = bench.mounts();
    let both = [limit, &mounts[0], &mounts[1]];
    let again = [&both[..], &["--cap-add=NET_ADMIN"]].concat();
    refuses(&bench, &again, "cannot make /in/docker.sock: EEXIST");
    let reason = "cannot put an interface here (make the pair): EPERM";
    refuses(&bench, &both, reason);
    let (input, memory) = (format!("{}:ro", mounts[0]), "--tmpfs=/out:ro");
    let frozen = [limit, &input, memory, "--cap-add=NET_ADMIN"];
    refuses(&bench, &frozen, "cannot write /out/tki-probe-target: EROFS");

    // Without /in and /out it is not its sandbox.
    let neighbour = bench.start(&[limit, "--cap-add=NET_ADMIN"]);
    let (status, said) = neighbour.end();
    assert_eq!(status, 3, "{said}");
    assert!(said.starts_with("tki-prober: BLOCKED"), "{said}");
    for missing in ["missing in-mount ", "missing out-mount ", "Next: "] {
        assert!(said.contains(missing), "{said}");
    }
}

#[test]
fn it_furnishes_the_same_for_a_user_who_is_not_root() {
    let _podman = shared_podman();
    let user = OtherUser::new();
    let program = || {
        let mut command = user.command(Path::new("podman"));
        command.args(["--runtime", "runc"]);
        command
    };
    let mut info = program();
    info.args(["info", "--format", "{{.Host.CgroupControllers}}"]);
    let info = need("podman", &mut info);
    if info.status != 0 {
        lacking(&format!(
            "this kernel has no rootless Podman: {}",
            info.stderr
        ));
        return;
    }
    let mut build = user.command(&user.path("tki-attest"));
    let archive = user.path("out/image.tar");
    build.args(["build", "--archive"]).arg(&archive);
    run(&mut build).succeeded();
    run(program().args(["load", "-q", "-i"]).arg(&archive)).succeeded();
    let context = user.path("context");
    fs::create_dir(&context).unwrap();
    {
        let bench = Bench::new(&program, &context);
        // Without control groups of one's own there is no limit of theirs: an ulimit is one.
        let limit = match info.stdout.contains("pids") {
            true => "--pids-limit=16",
            false => "--ulimit=nproc=4096:4096",
        };
        furnishes_and_goes(&bench, &[limit]);
    }
    let _ = run(program().args(["rmi", "tki-inspector:attest"]));
}
