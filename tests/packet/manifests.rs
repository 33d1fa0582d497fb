//! The workflows and manifests against their schemas, shellcheck and Podman.

use super::{packet, shellcheck};
use crate::common::podman::whole_podman;
use crate::common::{Said, need, python_tool, run, tool};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

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
        .env("TOOL_SHA256", digest)
        .current_dir(folder.path());
    let said = run(&mut sh);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
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

/// A fake `kubectl` is right here: there is no cluster. It says what a pod does.
#[test]
fn the_collector_asks_every_node_and_says_who_did_not_answer() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    packet(folder.path(), "kubernetes", "k8s.yml");
    let fake = folder.path().join("kubectl");
    let body = "#!/bin/sh\ncase \"$*\" in\n*' get '*) printf 'pod-a node-a\\npod-b node-b\\n';;\n\
                *attach*pod-a) read -r line; printf '%s\\n' \"$line\";;\n\
                *attach*pod-b) exit 1;;\nesac\n";
    fs::write(&fake, body).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let files = folder.path().join("k8s.files");
    let mut bash = Command::new("bash");
    bash.args(["collect.sh", "got"])
        .current_dir(&files)
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let said = run(&mut bash);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stderr.contains("no answer from pod-b on node-b"),
        "{said:?}"
    );
    let challenge = fs::read(files.join("challenge.json")).unwrap();
    assert_eq!(
        fs::read(files.join("got/node-a.ndjson")).unwrap(),
        challenge
    );
}

/// What Podman's pods can express: everything but standard input, so that the
/// inspector finds its sandbox complete, hears no challenge, and stops.
const POD: &str = "\
import sys, yaml
docs = list(yaml.safe_load_all(open(sys.argv[1])))
named = {doc['kind']: doc for doc in docs}
spec = named['Job']['spec']['template']['spec']
meta = {'name': sys.argv[2], 'annotations': {
    'seccomp.security.alpha.kubernetes.io/pod': 'localhost/seccomp.json'}}
spec['containers'][0]['image'] = 'tki-inspector:attest'
named['ConfigMap']['metadata']['name'] = sys.argv[2]
spec['volumes'][0]['configMap']['name'] = sys.argv[2]
pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': meta, 'spec': spec}
print(yaml.safe_dump_all([named['ConfigMap'], pod]))
";

#[test]
fn podman_plays_the_pod_and_the_inspector_finds_its_sandbox() {
    let _podman = whole_podman();
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "kubernetes", "k8s.yml");
    let name = format!("tki-pod-{}", std::process::id());
    let mut python = python_tool("python");
    let said = run(python.args(["-c", POD]).arg(&path).arg(&name));
    assert_eq!(said.status, 0, "{said:?}");
    let pod = folder.path().join("pod.yml");
    fs::write(&pod, said.stdout).unwrap();
    // What this host's limits permit, and a limit on processes.
    let config = folder.path().join("containers.conf");
    fs::write(
        &config,
        "[containers]\npids_limit = 32\n\
         default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
         [engine]\nruntime = \"runc\"\n",
    )
    .unwrap();
    let podman = |arguments: &[&str]| {
        let mut command = Command::new("podman");
        command
            .args(arguments)
            .env_remove("CONTAINER_HOST")
            .env("CONTAINERS_CONF", &config);
        need("podman and catatonit", &mut command)
    };
    run(tool().args(["build", "--load", "--engine", "podman"])).succeeded();
    let files = folder.path().join("k8s.files");
    let played = podman(&[
        "kube",
        "play",
        "--network=none",
        "--no-hosts",
        "--seccomp-profile-root",
        files.to_str().unwrap(),
        pod.to_str().unwrap(),
    ]);
    let container = format!("{name}-tki-inspector");
    let status = podman(&["wait", &container]);
    let logs = podman(&["logs", &container]);
    let inspected = podman(&["inspect", &container]);
    podman(&["pod", "rm", "--force", &name]);
    podman(&["volume", "rm", "--force", &name]);
    podman(&["rmi", "--force", &pause_image(&podman(&["images"]).stdout)]);
    assert_eq!(played.status, 0, "{played:?}");
    assert_eq!(status.stdout.trim(), "3", "{status:?} {logs:?}");
    let lines: Vec<Value> = logs
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // No invariant of the sandbox is missing in the pod.
    assert_eq!(lines[0]["hello"]["missing"], Value::Array(Vec::new()));
    assert_eq!(lines[1]["refused"]["reason"], "standard input was closed");
    let inspected: Value = serde_json::from_str(&inspected.stdout).unwrap();
    let host = &inspected[0]["HostConfig"];
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Memory"], 24 << 20);
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
