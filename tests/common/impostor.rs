//! Images whose `/tki-prober` is not the prober.

use super::{docker, need, run, tool};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// One program for all of them: what it does is written in a file beside it,
/// because neither its arguments nor its environment can be chosen.
const SOURCE: &str = r#"
use std::io::{BufRead, Write};
fn main() {
    let behaviour = std::fs::read_to_string("/behaviour").unwrap();
    let mut out = std::io::stdout().lock();
    let hello = "{\"hello\":{\"protocol\":1,\"version\":\"VERSION\",\"missing\":[]}}\n";
    let hello = match behaviour.trim() { "hello-old" => &hello.replace("0.", "9."), _ => hello };
    let mut challenge = String::new();
    if behaviour.starts_with("hello-") {
        out.write_all(hello.as_bytes()).unwrap();
        out.flush().unwrap();
        std::io::stdin().lock().read_line(&mut challenge).unwrap();
    }
    let nonce = challenge.split("\"nonce\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let nonce = nonce.unwrap_or("none");
    let done = |nonce: &str, count: u32| {
        format!("{{\"done\":{{\"nonce\":\"{nonce}\",\"observations\":{count},\"elapsed_us\":1}}}}\n")
    };
    let observation = "{\"observation\":{\"probe\":\"PR-NET-1\",\"seen\":{\"phase\":\"engine\",\
                       \"operation\":\"socket-inet-stream\",\"state\":\"denied\",\
                       \"returned\":-1,\"errno\":\"EPERM\"}}}\n";
    let mut say = |text: &str| out.write_all(text.as_bytes());
    let _ = match behaviour.trim() {
        "garbage" => say("\u{1b}[2J\u{7}PASS PASS PASS\n"),
        "binary" => { let all: Vec<u8> = (0..=255).collect(); out.write_all(&all) }
        "megabytes" => (0..200_000).try_for_each(|_| say("this is not the prober at all\n")),
        "endless-line" => (0..8_000).try_for_each(|_| say(&"x".repeat(1024))),
        "hello-megabytes" => (0..2000).try_for_each(|_| {
            say(&format!("{{\"raw\":{{\"name\":\"mountinfo\",\"text\":\"{}\"}}}}\n", "x".repeat(9000)))
        }),
        "hello-flood" => (0..200_000).try_for_each(|_| say(observation)),
        "hello-done" | "hello-old" => say(&done(nonce, 0)),
        "hello-hours" => say(&done(nonce, 0).replace("us\":1", "us\":9999999999")),
        "hello-miscount" => say(&done(nonce, 12)),
        "hello-wrong-nonce" => say(&done("0000", 0)),
        "hello-more" => say(&done(nonce, 0)).and_then(|()| say(observation)),
        "hello-refuse" => say("{\"refused\":{\"reason\":\"I would rather not\"}}\n"),
        "hello-die" => Ok(()),
        "hello-fail-after" => say(&done(nonce, 0)),
        "noise" => (0..4096).try_for_each(|_| std::io::stderr().write_all(&[b'e'; 1024])),
        "exit" => Ok(()),
        // Whatever comes of it, and for ever.
        "hello-execs" => loop {
            use std::os::unix::process::CommandExt;
            let _ = std::process::Command::new("/tki-prober").exec();
        },
        "hang" | "hello-hang" => { drop(out); loop { std::thread::park() } }
        other => panic!("{other}?"),
    };
    drop(out);
    std::process::exit(match behaviour.trim() { "exit" => 1, "hello-fail-after" => 7, _ => 0 });
}
"#;

/// The program, compiled once for all tests.
pub fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (source, binary) = (folder.path().join("i.rs"), folder.path().join("i"));
        let text = SOURCE.replace("VERSION", env!("CARGO_PKG_VERSION"));
        fs::write(&source, text).unwrap();
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args([
            "--edition=2024",
            "-O",
            "-Ctarget-feature=+crt-static",
            "-Cstrip=symbols",
        ]);
        let said = need(
            "rustc and libc6-dev",
            rustc.arg(&source).arg("-o").arg(&binary),
        );
        assert_eq!(said.status, 0, "{}", said.stderr);
        (folder, binary)
    });
    path
}

/// A Dockerfile and its context; the image that was built from it is removed
/// from the engine at the end, and the tool's own image gets its tag back.
pub struct Impostor {
    folder: tempfile::TempDir,
    config_digest: String,
}

impl Impostor {
    /// An image that does this. Only with the whole engine in hand.
    pub fn new(behaviour: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let context = folder.path().join("context");
        fs::create_dir(&context).unwrap();
        fs::copy(program(), context.join("impostor")).unwrap();
        fs::write(context.join("behaviour"), behaviour).unwrap();
        fs::write(
            folder.path().join("Dockerfile"),
            "FROM scratch\n\
             COPY --chmod=444 behaviour /behaviour\n\
             COPY --chmod=555 impostor /tki-prober\n\
             USER 58713:58713\n\
             ENTRYPOINT [\"/tki-prober\"]\n",
        )
        .unwrap();
        let mut impostor = Self {
            folder,
            config_digest: String::new(),
        };
        let built = run(tool()
            .arg("build")
            .args(impostor.arguments())
            .args(["--format", "json"]));
        built.succeeded();
        let built: serde_json::Value = serde_json::from_str(&built.stdout).unwrap();
        impostor.config_digest = built["config_digest"].as_str().unwrap().to_owned();
        impostor
    }

    /// Arguments of `build` and `run` that name it.
    pub fn arguments(&self) -> [String; 4] {
        let path = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        [
            "--file".into(),
            path("Dockerfile"),
            "--context".into(),
            path("context"),
        ]
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        // The engine may still be busy with the container that used it.
        for _ in 0..20 {
            let mut remove = Command::new("docker");
            remove.args(["rmi", "-f", &self.config_digest]);
            let busy = remove
                .output()
                .is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains("conflict"));
            if !busy {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let _ = tool().args(["build", "--load"]).output();
    }
}

/// What another party keeps on the same engine; removed when dropped.
pub struct Bystanders {
    name: String,
    /// Goes last: the containers use its image.
    impostor: Impostor,
}

impl Bystanders {
    /// A running and a created container with an image of their own, a volume
    /// and a network. Only with the whole engine in hand.
    pub fn new() -> Self {
        let bystanders = Self {
            name: format!("tki-bystander-{}", std::process::id()),
            impostor: Impostor::new("hang"),
        };
        let name = &bystanders.name;
        let mut build = tool();
        build.arg("build").args(bystanders.impostor.arguments());
        run(build.args(["--load", "--tag", &format!("{name}:1")])).succeeded();
        docker(&["volume", "create", name]);
        docker(&["network", "create", "--internal", name]);
        let common = ["--pids-limit=16", "--memory=32m", "--network=none"];
        for (verb, suffix) in [
            (&["create"][..], "created"),
            (&["run", "-d"][..], "running"),
        ] {
            let mut arguments = verb.to_vec();
            arguments.extend(common);
            let own = format!("--name={name}-{suffix}");
            let (label, image) = ("--label=dev.tki.attest=not-ours", format!("{name}:1"));
            arguments.extend([own.as_str(), label, image.as_str()]);
            docker(&arguments);
        }
        bystanders
    }

    /// The name of the container that runs.
    pub fn running(&self) -> String {
        format!("{}-running", self.name)
    }

    /// The image of both.
    pub fn image(&self) -> String {
        format!("{}:1", self.name)
    }

    /// Everything that the engine says about them.
    pub fn described(&self) -> String {
        let (one, two) = (
            format!("{}-created", self.name),
            format!("{}-running", self.name),
        );
        [
            docker(&["container", "inspect", &one, &two]),
            docker(&["volume", "inspect", &self.name]),
            docker(&["network", "inspect", &self.name]),
            docker(&["image", "inspect", &format!("{}:1", self.name)]),
        ]
        .join("\n")
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        let name = &self.name;
        for arguments in [
            format!("rm -f {name}-created {name}-running"),
            format!("volume rm -f {name}"),
            format!("network rm {name}"),
            format!("rmi -f {name}:1"),
        ] {
            let _ = Command::new("docker").args(arguments.split(' ')).output();
        }
    }
}
