//! Settings → the command line that a person could have typed instead.

use crate::described::podman::in_pages;
use crate::settings::{Bind, BindKind, Memory, Settings, memory_of};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

/// The program that a person would have typed the line for.
#[derive(Clone, Copy, Debug)]
pub enum Client<'a> {
    /// `docker`.
    Docker,
    /// `podman`, with the OCI runtime that was used.
    Podman(&'a str),
}

/// The equivalent `docker run` or `podman run`. The seccomp profile is named by
/// the file that lies beside the evidence.
pub fn command_line(
    client: Client,
    settings: &Settings,
    name: &str,
    labels: &[(String, String)],
    seccomp_file: &str,
    image: &str,
) -> Vec<String> {
    let mut line = match client {
        Client::Docker => docker_words(),
        Client::Podman(runtime) => podman_words(runtime),
    };
    let mut flag = |name: &str, value: String| line.push(format!("--{name}={value}"));
    flag("name", name.into());
    for (key, value) in labels {
        flag("label", format!("{key}={value}"));
    }
    flag("network", settings.network.clone());
    flag("ipc", settings.ipc.clone());
    flag("cgroupns", settings.cgroupns.clone());
    flag("hostname", settings.hostname.clone());
    flag("read-only", settings.read_only_rootfs.to_string());
    flag("user", settings.user.clone());
    flag("workdir", settings.working_directory.clone());
    let (bind_options, tmpfs_options) = match client {
        Client::Docker => ("", ""),
        Client::Podman(_) => (",nosuid,nodev,noexec", ",notmpcopyup"),
    };
    for bind in &settings.binds {
        let kind = match bind.kind {
            BindKind::Bind => "bind",
            BindKind::Volume => "volume",
        };
        let source = match bind.source.as_str() {
            "" => String::new(),
            source => format!(",src={source}"),
        };
        let access = match (bind.read_only, client) {
            (false, _) => "",
            (true, Client::Docker) => ",readonly",
            (true, Client::Podman(_)) => ",ro",
        };
        let (target, made) = (&bind.target, made_of(client, bind));
        flag(
            "mount",
            format!("type={kind}{source},dst={target}{access}{bind_options}{made}"),
        );
    }
    for tmpfs in &settings.tmpfs {
        // Podman's client knows no number of files; its API hands one on.
        let known = |word: &&str| match client {
            Client::Docker => true,
            Client::Podman(_) => !word.starts_with("nr_inodes="),
        };
        let options: Vec<&str> = tmpfs.options.split(',').filter(known).collect();
        let options = options.join(",");
        flag(
            "tmpfs",
            format!("{}:{options}{tmpfs_options}", tmpfs.target),
        );
    }
    for capability in &settings.cap_drop {
        flag("cap-drop", capability.clone());
    }
    for capability in &settings.cap_add {
        flag("cap-add", capability.clone());
    }
    if settings.no_new_privileges {
        flag("security-opt", "no-new-privileges".into());
    }
    flag("security-opt", format!("seccomp={seccomp_file}"));
    for (name, value) in [
        ("pids-limit", settings.pids_limit),
        ("memory", settings.memory_bytes),
        ("memory-swap", settings.memory_swap_bytes),
        ("cpu-period", settings.cpu_period_us),
        ("cpu-quota", settings.cpu_quota_us),
    ] {
        // A limit of 0 is one that could not be set.
        if value != 0 {
            flag(name, value.to_string());
        }
    }
    for limit in &settings.ulimits {
        flag(
            "ulimit",
            format!("{}={}:{}", limit.name, limit.soft, limit.hard),
        );
    }
    flag("log-driver", settings.log_driver.clone());
    line.push(image.into());
    line.push("probe".into());
    line
}

/// What a volume is made of, in the words of a client. Docker's reads a field with commas
/// in quotes; Podman's reads none, takes a size for a quota on a disk, and has given the
/// flags already.
fn made_of(client: Client, bind: &Bind) -> String {
    let Some(Memory { bytes, files }) = memory_of(&bind.options) else {
        return String::new();
    };
    let memory = "volume-opt=type=tmpfs,volume-opt=device=tmpfs";
    match client {
        Client::Docker => {
            let flags = "noexec,nosuid,nodev";
            format!(",{memory},\"volume-opt=o={flags},size={bytes},nr_inodes={files}\"")
        }
        Client::Podman(_) => {
            let pages = in_pages(&bind.options);
            let mut pages = pages
                .split(',')
                .filter(|word| word.starts_with("nr_blocks="));
            let pages = pages.next().unwrap_or_default();
            format!(",{memory},volume-opt=o={pages}")
        }
    }
}

/// The image is there or the run fails: nothing is ever fetched.
const RUN: [&str; 4] = ["run", "--pull=never", "--rm", "--interactive"];

fn docker_words() -> Vec<String> {
    let mut line = vec!["env".to_owned()];
    for variable in REMOVED_VARIABLES {
        line.push(format!("--unset={variable}"));
    }
    line.push("docker".into());
    line.extend(RUN.map(String::from));
    // A variable that is named but not set where the client runs is removed.
    for variable in REMOVED_VARIABLES {
        line.push(format!("--env={variable}"));
    }
    line
}

fn podman_words(runtime: &str) -> Vec<String> {
    let mut line = vec!["podman".to_owned()];
    if !runtime.is_empty() {
        line.push(format!("--runtime={runtime}"));
    }
    line.extend(RUN.map(String::from));
    let nothing_of_its_own = [
        "--unsetenv-all",
        "--http-proxy=false",
        "--passwd=false",
        "--no-hosts",
        "--systemd=false",
        "--read-only-tmpfs=false",
        "--image-volume=ignore",
    ];
    line.extend(nothing_of_its_own.map(String::from));
    line
}

/// Variables that engines set by themselves and that nobody inside needs.
pub const REMOVED_VARIABLES: &[&str] = &["PATH", "HOSTNAME"];
