//! The workflows and manifests against their schemas, shellcheck and Podman.

use super::{judge, packet, shellcheck};
use crate::common::podman::whole_podman;
use crate::common::{Daemon, Said, eventually, evidence_in, need, python_tool, run, tool};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use tki_evidence::wire::{Challenge, HostMessage};

fn schema(name: &str, file: &Path) -> Said {
    let mut command = python_tool("check-jsonschema");
    run(command.args(["--builtin-schema", name]).arg(file))
}

/// The shell steps of a workflow: what is indented below `run: |` or `- |`.
fn steps(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed != "run: |" && trimmed != "- |" {
            continue;
        }
        let depth = line.len() - trimmed.len();
        let mut step = String::new();
        while let Some(next) = lines.peek() {
            let own = next.len() - next.trim_start().len();
            if !next.trim().is_empty() && own <= depth {
                break;
            }
            step += next.trim_start();
            step.push('\n');
            lines.next();
        }
        found.push(step);
    }
    found
}

#[track_caller]
fn steps_are_clean(text: &str, shell: &str, folder: &Path, count: usize) {
    let steps = steps(text);
    assert_eq!(steps.len(), count);
    for step in steps {
        let file = folder.join("step.sh");
        fs::write(&file, &step).unwrap();
        let said = shellcheck(shell, &file);
        assert_eq!(said.status, 0, "{step}\n{}", said.stdout);
    }
}

#[test]
fn the_github_workflow_is_one_and_asks_for_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "github-actions", "attest.yml");
    let text = fs::read_to_string(&path).unwrap();
    for name in [
        "vendor.github-workflows",
        "custom.github-workflows-require-timeout",
    ] {
        let said = schema(name, &path);
        assert_eq!(said.status, 0, "{name}: {said:?}");
    }
    // The check can fail.
    let broken = folder.path().join("broken.yml");
    fs::write(&broken, text.replace("runs-on: ubuntu-24.04", "runs: 1")).unwrap();
    assert_ne!(schema("vendor.github-workflows", &broken).status, 0);
    steps_are_clean(&text, "bash", folder.path(), 3);

    assert!(text.contains("\npermissions: {}\n"));
    assert!(!text.contains("write-all") && !text.contains("contents: write"));
    assert!(!text.contains("pull_request"));
    let uses: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("uses: "))
        .collect();
    assert_eq!(uses.len(), 4);
    for action in uses {
        let (_, commit) = action.split_once('@').unwrap();
        let commit = commit.split(' ').next().unwrap();
        assert!(
            commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()),
            "{action}"
        );
    }
    // The job that runs the container has no identity to lend.
    let (before, after) = text.split_once("\n  identity:\n").unwrap();
    assert!(!before.contains("id-token: write") && after.contains("id-token: write"));
    assert!(!after.contains("tki-attest run"));
}

#[test]
fn the_gitlab_pipeline_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "gitlab-ci", "gitlab.yml");
    let text = fs::read_to_string(&path).unwrap();
    let said = schema("vendor.gitlab-ci", &path);
    assert_eq!(said.status, 0, "{said:?}");
    let broken = folder.path().join("broken.yml");
    fs::write(&broken, text.replace("when: manual", "when: whenever")).unwrap();
    assert_ne!(schema("vendor.gitlab-ci", &broken).status, 0);
    steps_are_clean(&text, "sh", folder.path(), 1);
    // Nothing third-party, so nothing to pin.
    assert!(!text.contains("image:") && !text.contains("services:"));
}

/// The steps of both, executed where there is an engine, with the variables
/// that the systems set.
#[test]
fn the_shell_steps_of_the_pipeline_run() {
    let _engine = crate::common::shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "gitlab-ci", "gitlab.yml");
    let text = fs::read_to_string(&path).unwrap();
    fs::copy(
        env!("CARGO_BIN_EXE_tki-attest"),
        folder.path().join("tki-attest"),
    )
    .unwrap();
    let digest = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("TOOL_SHA256: "))
        .unwrap();
    // The controls have tests of their own, and take their time.
    let step = steps(&text)[0].replace("--out reports", "--out reports --controls none");
    let mut sh = crate::common::isolated(Path::new("sh"));
    sh.args(["-c", &step])
        .env("CI", "true")
        .env("GITLAB_CI", "true")
        .env("TKI_VENUE_TOKEN", "header.claims.signature")
        .env("TOOL_SHA256", digest)
        .current_dir(folder.path());
    let said = run(&mut sh);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
    let evidence = evidence_in(&folder.path().join("reports"));
    let proof = evidence.with_extension("").join("venue-proof-platform");
    assert_eq!(fs::read(proof).unwrap(), b"header.claims.signature");
    // Another tool than this one is not run.
    let mut sh = crate::common::isolated(Path::new("sh"));
    sh.args(["-c", &step])
        .env("TOOL_SHA256", "0".repeat(64))
        .current_dir(folder.path());
    assert_ne!(run(&mut sh).status, 0);
}

#[test]
fn the_manifests_are_valid_and_deny_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "kubernetes", "k8s.yml");
    let text = fs::read_to_string(&path).unwrap();
    let validate = |file: &Path| run(python_tool("kubernetes-validate").arg("--strict").arg(file));
    let said = validate(&path);
    assert_eq!(said.status, 0, "{said:?}");
    let broken = folder.path().join("broken.yml");
    fs::write(&broken, text.replace("backoffLimit: 0", "backoffLimits: 0")).unwrap();
    assert_ne!(validate(&broken).status, 0);
    for kind in [
        "Namespace",
        "NetworkPolicy",
        "ConfigMap",
        "Job",
        "DaemonSet",
    ] {
        assert_eq!(
            text.matches(&format!("\nkind: {kind}\n")).count(),
            1,
            "{kind}"
        );
    }
    // Both pods have everything.
    for line in [
        "automountServiceAccountToken: false",
        "hostNetwork: false",
        "runAsNonRoot: true",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "drop: [\"ALL\"]",
        "type: Localhost",
        "privileged: false",
        "imagePullPolicy: Never",
    ] {
        assert!(text.matches(line).count() >= 2, "{line}");
    }
    let script = folder.path().join("k8s.files/collect.sh");
    let said = shellcheck("bash", &script);
    assert_eq!(said.status, 0, "{}", said.stdout);
}

/// Both pods of a packet for Kubernetes as Podman takes them: the Job's pod, and
/// the ConfigMap that it reads, under a name of the test's own.
const POD: &str = "\
import sys, yaml
docs = list(yaml.safe_load_all(open(sys.argv[1])))
named = {doc['kind']: doc for doc in docs}
spec = named[sys.argv[3]]['spec']['template']['spec']
# Podman starts a pod again without a pause, and joins what it says each time.
spec['restartPolicy'] = 'Never'
meta = {'name': sys.argv[2], 'annotations': {
    'seccomp.security.alpha.kubernetes.io/pod': 'localhost/seccomp.json'}}
named['ConfigMap']['metadata']['name'] = sys.argv[2]
for volume in spec['volumes']:
    if 'configMap' in volume:
        volume['configMap']['name'] = sys.argv[2]
    else:
        name = sys.argv[2] + '-' + volume['name']
        for mount in spec['containers'][0]['volumeMounts']:
            if mount['name'] == volume['name']:
                mount['name'] = name
        volume['name'] = name
pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': meta, 'spec': spec}
print(yaml.safe_dump_all([named['ConfigMap'], pod]))
";

/// A pod that Podman plays; it goes with all that Podman made for it.
struct Pod {
    name: String,
    folder: tempfile::TempDir,
}

impl Pod {
    /// Writes the packet, and loads its image into Podman.
    fn new(kind: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = packet(folder.path(), "kubernetes", "k8s.yml");
        let name = format!("tki-{}-{}", kind.to_lowercase(), std::process::id());
        let mut python = python_tool("python");
        let said = run(python.args(["-c", POD]).arg(&path).args([&name, kind]));
        assert_eq!(said.status, 0, "{said:?}");
        fs::write(folder.path().join("pod.yml"), said.stdout).unwrap();
        // What this host's limits permit. Podman takes no limit on processes for a
        // pod; the user's own limit stands in.
        let config = "[containers]\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=64:64\"]\n\
             [engine]\nruntime = \"runc\"\n";
        fs::write(folder.path().join("containers.conf"), config).unwrap();
        run(tool().args(["build", "--load", "--engine", "podman"])).succeeded();
        Self { name, folder }
    }

    fn podman(&self, program: &[&str], arguments: &[&str]) -> Said {
        let (first, rest) = program.split_first().unwrap();
        let mut command = Command::new(first);
        command
            .args(rest)
            .args(arguments)
            .env_remove("CONTAINER_HOST")
            .env(
                "CONTAINERS_CONF",
                self.folder.path().join("containers.conf"),
            );
        need("podman and catatonit", &mut command)
    }

    fn files(&self) -> std::path::PathBuf {
        self.folder.path().join("k8s.files")
    }

    /// The challenge that stands in the manifest.
    fn challenge(&self) -> Challenge {
        let text = fs::read_to_string(self.folder.path().join("k8s.yml")).unwrap();
        let line = text
            .lines()
            .find(|line| line.trim().starts_with("{\"challenge\""));
        let HostMessage::Challenge(challenge) = serde_json::from_str(line.unwrap()).unwrap();
        challenge
    }

    /// Plays it to its end; gives its exit status.
    fn play(&self, program: &[&str], network: &str) -> String {
        let (files, pod) = (self.files(), self.folder.path().join("pod.yml"));
        let played = self.podman(
            program,
            &[
                "kube",
                "play",
                "--start=false",
                "--network",
                network,
                "--seccomp-profile-root",
                files.to_str().unwrap(),
                pod.to_str().unwrap(),
            ],
        );
        assert_eq!(played.status, 0, "{played:?}");
        // The kubelet gives a ConfigMap's files the manifest's mode; Podman 4.3 does
        // not know it.
        let found = self.podman(
            &["podman"],
            &[
                "volume",
                "inspect",
                "--format",
                "{{.Mountpoint}}",
                &self.name,
            ],
        );
        for entry in fs::read_dir(found.stdout.trim()).unwrap() {
            let mode = fs::Permissions::from_mode(0o666);
            fs::set_permissions(entry.unwrap().path(), mode).unwrap();
        }
        let started = self.podman(program, &["pod", "start", &self.name]);
        assert_eq!(started.status, 0, "{started:?}");
        let ended = self.podman(&["podman"], &["wait", &self.container()]);
        ended.stdout.trim().to_owned()
    }

    fn container(&self) -> String {
        format!("{}-tki-inspector", self.name)
    }

    /// The probes that did not pass, and what was missing.
    fn judged(&self, transcript: &[u8]) -> (Vec<String>, Vec<String>) {
        let (missing, results) = judge(transcript, &self.challenge());
        assert_eq!(results.len(), 12);
        let not_passed = results
            .iter()
            .filter(|probe| probe.verdict.name() != "PASS")
            .map(|probe| probe.probe_id.clone());
        (missing, not_passed.collect())
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.podman(&["podman"], &["pod", "rm", "--force", &self.name]);
        for suffix in ["", "-out", "-tmp"] {
            let volume = format!("{}{suffix}", self.name);
            self.podman(&["podman"], &["volume", "rm", "--force", &volume]);
        }
        let images = self.podman(&["podman"], &["images"]).stdout;
        self.podman(&["podman"], &["rmi", "--force", &pause_image(&images)]);
    }
}

/// Podman plays the Job's pod as the manifest has it, image by digest, and the
/// prober in it runs the twelve probes.
#[test]
fn podman_plays_the_job_and_the_probes_run_in_it() {
    let _podman = whole_podman();
    let pod = Pod::new("Job");
    let status = pod.play(&["podman"], "none");
    let logs = pod.podman(&["podman"], &["logs", &pod.container()]);
    assert_eq!(status, "0", "{logs:?}");
    let (missing, not_passed) = pod.judged(logs.stdout.as_bytes());
    assert_eq!(missing, [""; 0]);
    // Podman mounts files of its own, as the kubelet does.
    assert_eq!(not_passed, ["PR-MOUNT-1"]);
    let inspected = pod.podman(&["podman"], &["inspect", &pod.container()]);
    let inspected: Value = serde_json::from_str(&inspected.stdout).unwrap();
    let host = &inspected[0]["HostConfig"];
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Memory"], 24 << 20);
}

/// A pod of a cluster has an interface. This one has a pair of the test's own, in
/// a network namespace of the test's own that leads nowhere. The collector fetches
/// what it says through a stand-in for `kubectl`: there is no cluster.
#[test]
fn the_collector_fetches_what_a_pod_with_an_interface_said() {
    let _podman = whole_podman();
    let pod = Pod::new("DaemonSet");
    let inside = [
        "unshare",
        "--net",
        "sh",
        "-ec",
        "ip link add eth0 type veth peer name eth1; ip link set eth0 up; exec podman \"$@\"",
        "podman",
    ];
    let status = pod.play(&inside, "host");
    assert_eq!(status, "0");
    let fake = |body: &str| {
        let path = pod.folder.path().join("kubectl");
        fs::write(&path, body).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let collect = || {
        let mut bash = Command::new("bash");
        let path = format!("{}:/usr/bin:/bin", pod.folder.path().display());
        run(bash
            .args(["collect.sh", "got", "0"])
            .current_dir(pod.files())
            .env("PATH", path))
    };
    let cluster = format!(
        "#!/bin/sh\ncase \"$*\" in\n\
         *'get pods'*) printf 'pod-a node-a\\npod-b node-b\\n';;\n\
         *'get daemonset'*) printf 2;;\n\
         *'logs pod-a') exec podman logs {};;\n\
         *'logs pod-b') echo 'container is waiting to start' >&2; exit 1;;\nesac\n",
        pod.container()
    );
    fake(&cluster);
    let said = collect();
    assert_eq!(said.status, 1, "{said:?}");
    for wanted in ["no answer from pod-b on node-b", "1 of 2 nodes answered"] {
        assert!(said.stderr.contains(wanted), "{said:?}");
    }
    let transcript = fs::read(pod.files().join("got/node-a.ndjson")).unwrap();
    let (missing, not_passed) = pod.judged(&transcript);
    assert_eq!(missing, ["network-none"]);
    assert_eq!(not_passed, ["PR-NET-2", "PR-MOUNT-1"]);
    assert!(!pod.files().join("got/node-b.ndjson").exists());
    fake(
        &cluster
            .replace("printf 2", "printf 1")
            .replace("\\npod-b node-b", ""),
    );
    let said = collect();
    assert_eq!(said.status, 0, "{said:?}");
}

/// A containerd of the test's own, without its plug-in for Kubernetes: what counts
/// here is the name under which the image is found afterwards.
#[test]
fn the_image_can_be_imported_under_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "kubernetes", "k8s.yml");
    let text = fs::read_to_string(&path).unwrap();
    let at = |name: &str| folder.path().join(name);
    let config = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";
    fs::write(at("config.toml"), config).unwrap();
    let daemon = Command::new("containerd")
        .args(["--config".as_ref(), at("config.toml").as_os_str()])
        .args(["--root".as_ref(), at("root").as_os_str()])
        .args(["--state".as_ref(), at("state").as_os_str()])
        .args(["--address".as_ref(), at("socket").as_os_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}: install the Debian package containerd"));
    let _daemon = Daemon(daemon);
    eventually("containerd listens", || {
        UnixStream::connect(at("socket")).is_ok()
    });
    let mut line = text
        .lines()
        .find_map(|line| line.strip_prefix("#       ctr "))
        .unwrap()
        .split(' ');
    let ctr = |words: &mut dyn Iterator<Item = &str>| {
        let mut command = Command::new("ctr");
        command.env("CONTAINERD_ADDRESS", at("socket"));
        run(command.args(words).current_dir(at("k8s.files")))
    };
    let imported = ctr(&mut line);
    let listed = ctr(&mut ["--namespace", "k8s.io", "images", "list", "-q"].into_iter());
    assert_eq!(imported.status, 0, "{imported:?}");
    let image = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("image: "))
        .unwrap();
    let wanted = format!("docker.io/library/{image}");
    assert!(
        listed.stdout.lines().any(|name| name == wanted),
        "{listed:?}"
    );
}

/// Podman builds an image for the pod's own container; it is not left behind.
fn pause_image(list: &str) -> String {
    let line = list
        .lines()
        .find(|line| line.starts_with("localhost/podman-pause"));
    let mut words = line.unwrap_or_default().split_whitespace();
    format!(
        "{}:{}",
        words.next().unwrap_or("none"),
        words.next().unwrap_or("none")
    )
}
