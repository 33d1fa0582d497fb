//! Engines without a daemon. What they need is read from the kernel; whether it
//! suffices is found out by a whole run of the sandbox, in a process of its own,
//! which leaves nothing behind.

use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::program::{self, ProgramError, find, run};
use crate::survey::surface::{Can, Decision, Obstacle, Surface, Use};
use std::path::Path;
use std::process::Command;

/// The most bytes of what the child says.
const MOST: usize = 64 * 1024;

/// What the kernel must offer.
const NEEDS: &[&str] = &[
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/seccomp/actions_avail",
    "/sys/kernel/security/lsm",
    "/sys/fs/cgroup/cgroup.controllers",
];

/// The engine inside this tool.
pub fn embedded(conditions: &Conditions) -> Surface {
    let mut calls: Vec<Call> = NEEDS.iter().map(|path| read(path)).collect();
    calls.push(namespaces());
    calls.push(control_groups());
    attempt(
        "embedded",
        "Embedded engine (in this tool)".into(),
        calls,
        conditions,
    )
}

/// bubblewrap.
pub fn bwrap(conditions: &Conditions) -> Surface {
    let Some(path) = find("bwrap") else {
        let call = Call::new("look for bwrap in PATH", "no such program");
        return Surface::absent("bubblewrap", vec![call]);
    };
    let calls = vec![program_version(&path, conditions)];
    attempt("bwrap", "bubblewrap".into(), calls, conditions)
}

/// `PROGRAM --version`.
pub fn program_version(path: &Path, conditions: &Conditions) -> Call {
    let call = format!("{} --version", path.display());
    match run(
        Command::new(path).arg("--version"),
        4096,
        conditions.deadline,
    ) {
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.said()).into_owned();
            let first = said.lines().next().unwrap_or_default().to_owned();
            Call::new(call, format!("{}: {first}", ended.how()))
        }
        Err(error) => Call::new(call, error.to_string()),
    }
}

/// A file of the kernel's.
fn read(path: &str) -> Call {
    let text = std::fs::read_to_string(path);
    Call::new(
        format!("read {path}"),
        match &text {
            Ok(text) => text.trim(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "no such file",
            Err(_) => "cannot be read",
        },
    )
}

fn namespaces() -> Call {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/ns")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Call::new("list /proc/self/ns", names.join(" "))
}

/// Hierarchies of version 1, where there are any.
fn control_groups() -> Call {
    let text = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let enabled: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.ends_with('1'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    Call::new("read /proc/cgroups (enabled)", enabled.join(" "))
}

/// A run of the sandbox for development, into a directory that goes.
fn attempt(
    engine: &'static str,
    name: String,
    mut calls: Vec<Call>,
    conditions: &Conditions,
) -> Surface {
    let mut surface = Surface::absent(name, Vec::new());
    surface.decision = Decision::Reject;
    surface.production_risk = "none: it holds no containers of others".into();
    if let Err(why) = conditions.create {
        surface.can_run = Can::not_tried(why);
        surface.obstacle = Obstacle::NotPermitted;
        surface.can_write_files = Can::not_tried("nothing was run");
        surface.can_collect_logs = Can::not_tried("nothing was run");
        surface.decision = Decision::InspectOnly;
        surface.permission_gap = "unknown".into();
        surface.evidence = calls;
        return surface;
    }
    let call = format!("tki-attest run --venue dev --engine {engine} --controls none");
    let Ran {
        works,
        ran,
        said,
        next,
    } = launch(engine, conditions).unwrap_or_else(|error| Ran {
        works: false,
        ran: false,
        said: error.to_string(),
        next: "it must come to its end".into(),
    });
    calls.push(Call::new(call, &said));
    surface.evidence = calls;
    let plausible = conditions.claim(conditions.host, &conditions.host.kernel);
    surface.approved = conditions.approved(&plausible);
    if works {
        surface.can_run = Can::yes("a whole run of the sandbox passed, and left nothing");
        surface.can_write_files = Can::yes("the run's evidence was written and removed");
        surface.can_collect_logs = Can::yes("through the container's own pipes");
        surface.permission_gap = "none".into();
        conditions.decide(&mut surface, Use::of(engine, None), &plausible);
    } else if ran {
        surface.can_run = Can::yes("a container ran");
        surface.can_write_files = Can::yes("the run's evidence was written and removed");
        surface.can_collect_logs = Can::yes("through the container's own pipes");
        surface.permission_gap = format!("a run here proves less than it must: {next}");
        surface.decision_note = "it runs, and would not be accepted".into();
    } else {
        surface.can_run = Can::no(said);
        surface.can_write_files = Can::no("nothing could be run");
        surface.can_collect_logs = Can::no("nothing could be run");
        surface.permission_gap = next;
    }
    surface
}

/// What came of a run.
struct Ran {
    /// Everything was attested.
    works: bool,
    /// There was a container.
    ran: bool,
    said: String,
    /// What is missing, or would help.
    next: String,
}

fn launch(engine: &str, conditions: &Conditions) -> Result<Ran, ProgramError> {
    let folder = tempfile::tempdir().map_err(ProgramError::Start)?;
    let seconds = conditions.deadline.left()?.as_secs().clamp(1, 600);
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["run", "--venue", "dev", "--controls", "none", "--quiet"])
        .args(["--engine", engine, "--format", "json"])
        .args(["--timeout", &seconds.to_string(), "--out"])
        .arg(folder.path());
    let ended = program::run(&mut command, MOST, conditions.deadline)?;
    let value: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    let status = value["status"].as_str().unwrap_or_default();
    let (said, next) = match status {
        "" => failure(&String::from_utf8_lossy(&ended.stderr)),
        status => {
            let summary = &value["summary"];
            let short: Vec<&str> = value["sandbox"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(serde_json::Value::as_str)
                .collect();
            let said = format!("{status} {summary}");
            match short.is_empty() {
                true => (said, "not every probe was proven".into()),
                false => (format!("{said}: {}", short.join("; ")), short.join("; ")),
            }
        }
    };
    Ok(Ran {
        works: ended.status == Some(0),
        ran: !status.is_empty(),
        said: format!("{}: {said}", ended.how()),
        next,
    })
}

/// What a failed run says, and what it says to do next.
fn failure(text: &str) -> (String, String) {
    let mut lines = text.lines().map(str::trim);
    let said = lines.next().unwrap_or_default();
    let said = said.strip_prefix("tki-attest: ").unwrap_or(said);
    let next = lines.find_map(|line| line.strip_prefix("next: "));
    (
        said.to_owned(),
        next.unwrap_or("what the run names must be there")
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::failure;

    #[test]
    fn a_failure_is_taken_apart() {
        let text = "tki-attest: [engine.unusable] no group\n  next: run as root\n    or: else\n";
        let (said, next) = failure(text);
        assert_eq!(said, "[engine.unusable] no group");
        assert_eq!(next, "run as root");
        assert_eq!(failure("").0, "");
    }
}
