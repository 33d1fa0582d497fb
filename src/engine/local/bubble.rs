//! Settings → bubblewrap's arguments. The way back is `described::bwrap`, so that a
//! setting which was lost on the way shows.

use std::path::Path;
use tki_evidence::settings::{MASKED, Settings};

/// Descriptors that bubblewrap is given.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// The compiled seccomp program, if there is one.
    pub seccomp: Option<i32>,
    /// Where it writes the container's process id.
    pub info: i32,
    /// What it waits for before the exec.
    pub block: i32,
}

/// The arguments, without the program's own name. `rootfs` is the unpacked
/// image, and each memory file system of the settings has been mounted at the
/// place that `tmpfs` gives for it: bubblewrap's own would be executable. `frozen`
/// are paths of /proc with the mounts that stand for them, `groups` the control group
/// whose counters the container may read.
pub fn arguments(
    settings: &Settings,
    program: &[String],
    rootfs: &Path,
    tmpfs: &[(String, String)],
    frozen: &[(String, String)],
    groups: Option<&(String, String)>,
    descriptors: Descriptors,
) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| list.extend(words.iter().map(|word| (*word).to_owned()));
    let (uid, gid) = settings
        .user
        .split_once(':')
        .unwrap_or((&settings.user, "0"));
    add(&[
        "--unshare-all",
        "--unshare-user",
        "--as-pid-1",
        "--die-with-parent",
    ]);
    add(&["--new-session", "--clearenv", "--uid", uid, "--gid", gid]);
    add(&["--chdir", &settings.working_directory]);
    add(&["--hostname", &settings.hostname, "--cap-drop", "ALL"]);
    for name in &settings.cap_add {
        add(&["--cap-add", &format!("CAP_{name}")]);
    }
    for entry in &settings.env {
        if let Some((name, value)) = entry.split_once('=') {
            add(&["--setenv", name, value]);
        }
    }
    let root = if settings.read_only_rootfs {
        "--ro-bind"
    } else {
        "--bind"
    };
    add(&[root, &rootfs.to_string_lossy(), "/"]);
    add(&["--proc", "/proc", "--dev", "/dev"]);
    if settings.system_paths_masked {
        for path in MASKED.iter().filter(|path| path.starts_with("/proc/")) {
            // What this kernel does not have needs no mask.
            let found = std::fs::metadata(path);
            if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
                add(&["--tmpfs", path, "--remount-ro", path]);
            } else if found.is_ok() {
                add(&["--ro-bind", "/dev/null", path]);
            }
        }
        for (source, path) in frozen {
            add(&["--ro-bind", source, path]);
        }
    }
    for text in &settings.covered_texts {
        add(&["--ro-bind", "/dev/null", text]);
    }
    if let Some((source, target)) = groups {
        add(&["--ro-bind", source, target]);
    }
    // First, because a file of the host may lie below.
    for (source, target) in tmpfs {
        add(&["--bind", source, target]);
    }
    for bind in &settings.binds {
        let kind = if bind.read_only {
            "--ro-bind"
        } else {
            "--bind"
        };
        add(&[kind, &bind.source, &bind.target]);
    }
    for device in &settings.devices {
        if let Some((host, inside)) = device.split_once(':') {
            add(&["--dev-bind", host, inside]);
        }
    }
    // Last, so that nothing needs to be made in it any more.
    add(&["--remount-ro", "/dev"]);
    add(&["--info-fd", &descriptors.info.to_string()]);
    add(&["--block-fd", &descriptors.block.to_string()]);
    if let Some(fd) = descriptors.seccomp {
        add(&["--seccomp", &fd.to_string()]);
    }
    add(&["--"]);
    list.extend_from_slice(program);
    list
}
