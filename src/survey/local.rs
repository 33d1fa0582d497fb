//! Engines without a daemon. What they need is read from the kernel; whether it
//! suffices is found out by a whole run of the sandbox, in a process of its own,
//! which leaves nothing behind.

use crate::survey::call::Call;
use crate::survey::inventory::Context;
use crate::survey::program::{self, ProgramError, find, run};
use crate::survey::surface::{Can, Decision, Surface, Use};
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
pub fn embedded(context: &Context) -> Surface {
    let mut calls: Vec<Call> = NEEDS.iter().map(|path| read(path)).collect();
    calls.push(namespaces());
    calls.push(control_groups());
    attempt(
        "embedded",
        "Embedded engine (in this tool)".into(),
        calls,
        context,
    )
}

/// bubblewrap.
pub fn bwrap(context: &Context) -> Surface {
    let Some(path) = find("bwrap") else {
        let call = Call::new("look for bwrap in PATH", "no such program");
        return Surface::absent("bubblewrap", vec![call]);
    };
    let calls = vec![program_version(&path, context)];
    attempt("bwrap", "bubblewrap".into(), calls, context)
}

/// `PROGRAM --version`.
pub fn program_version(path: &Path, context: &Context) -> Call {
    let call = format!("{} --version", path.display());
    match run(Command::new(path).arg("--version"), 4096, context.watch) {
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
fn attempt(engine: &'static str, name: String, mut calls: Vec<Call>, context: &Context) -> Surface {
    let mut surface = Surface::absent(name, Vec::new());
    surface.decision = Decision::Reject;
    surface.production_risk = "none: it holds no containers of others".into();
    if !context.create {
        surface.can_run = Can::not_tried("nothing is made without permission");
        surface.can_write_files = Can::not_tried("nothing was run");
        surface.can_collect_logs = Can::not_tried("nothing was run");
        surface.decision = Decision::InspectOnly;
        surface.permission_gap = "unknown".into();
        surface.evidence = calls;
        return surface;
    }
    let call = format!("tki-attest run --venue dev --engine {engine} --controls none");
    let outcome = launch(engine, context);
    let (works, ran, result) = match &outcome {
        Ok(Ran { works, ran, said }) => (*works, *ran, said.clone()),
        Err(error) => (false, false, error.to_string()),
    };
    calls.push(Call::new(call, &result));
    surface.evidence = calls;
    let plausible = context.claim(context.host, &context.host.kernel);
    surface.approved = context.approved(&plausible);
    if works {
        surface.can_run = Can::yes("a whole run of the sandbox passed, and left nothing");
        surface.can_write_files = Can::yes("the run's evidence was written and removed");
        surface.can_collect_logs = Can::yes("through the container's own pipes");
        surface.permission_gap = "none".into();
        surface.usable_as = Some(Use { engine, host: None });
    } else if ran {
        surface.can_run = Can::yes("a container ran");
        surface.can_write_files = Can::yes("the run's evidence was written and removed");
        surface.can_collect_logs = Can::yes("through the container's own pipes");
        surface.permission_gap = "a run here proves less than it must: see the evidence".into();
        surface.decision_note = "it runs, and would not be accepted".into();
    } else {
        surface.can_run = Can::no(result);
        surface.can_write_files = Can::no("nothing could be run");
        surface.can_collect_logs = Can::no("nothing could be run");
        surface.permission_gap = "what the run names must be there".into();
    }
    if works {
        (surface.decision, surface.decision_note) = context.decide(true, &plausible);
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
}

fn launch(engine: &str, context: &Context) -> Result<Ran, ProgramError> {
    let folder = tempfile::tempdir().map_err(ProgramError::Start)?;
    let seconds = context.watch.left()?.as_secs().clamp(1, 600);
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["run", "--venue", "dev", "--controls", "none", "--quiet"])
        .args(["--engine", engine, "--format", "json"])
        .args(["--timeout", &seconds.to_string(), "--out"])
        .arg(folder.path());
    let ended = program::run(&mut command, MOST, context.watch)?;
    let value: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    let status = value["status"].as_str().unwrap_or_default();
    let said = match status {
        "" => String::from_utf8_lossy(&ended.said()).trim().to_owned(),
        status => {
            let summary = &value["summary"];
            format!("{status} {summary}")
        }
    };
    Ok(Ran {
        works: ended.status == Some(0),
        ran: !status.is_empty(),
        said: format!("{}: {said}", ended.how()),
    })
}
