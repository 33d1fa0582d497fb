//! This host: what it is, whether files can be written, and what else is
//! installed that could run a container but that this tool does not speak to.

use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::local::program_version;
use crate::survey::program::find;
use crate::survey::surface::{Can, Decision, Surface};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Signs of a developer's machine that are files.
const SIGNS: &[&str] = &[
    "/run/host-services",
    "/Users",
    "/mnt/lima-cidata",
    "/proc/sys/fs/binfmt_misc/WSLInterop",
    "/run/WSL",
    "/opt/orbstack-guest",
];

/// This user's files and the host's own signs.
pub fn here(conditions: &Conditions) -> Surface {
    let facts = conditions.host;
    let mut calls = vec![
        Call::new("uname", format!("{} {}", facts.kernel, facts.host_name)),
        Call::new("read /etc/os-release", &facts.operating_system),
        Call::new("virtualisation (firmware, CPU)", &facts.virtualisation),
        Call::new("container (marks of engines)", &facts.container),
        Call::new("chassis (firmware)", &facts.chassis),
    ];
    let signs: Vec<&str> = SIGNS
        .iter()
        .filter(|path| Path::new(path).exists())
        .copied()
        .collect();
    calls.push(Call::new(
        "signs of Docker Desktop, lima, OrbStack, WSL, macOS",
        match signs.is_empty() {
            true => "none".to_owned(),
            false => signs.join(" "),
        },
    ));
    let written = match conditions.create.map(|()| probe_file()) {
        Ok(Ok(())) => Can::yes("a file was written, read back and removed"),
        Ok(Err(error)) => Can::no(error.to_string()),
        Err(why) => Can::not_tried(why),
    };
    calls.push(Call::new(
        "write, read back, remove a file in the temporary directory",
        format!("{}: {}", written.answer.name(), written.why),
    ));
    let plausible = conditions.claim(facts, &facts.kernel);
    Surface {
        approved: conditions.approved(&plausible),
        can_run: Can::no("a shell is no sandbox: see the engines"),
        can_write_files: written,
        can_collect_logs: Can::yes("whatever is run from here"),
        production_risk: "none: nothing runs without an engine".into(),
        permission_gap: "not an execution surface".into(),
        decision: Decision::InspectOnly,
        decision_note: "use it to start tki-attest and to return the evidence".into(),
        ..Surface::absent("This host's shell and file system", calls)
    }
}

fn probe_file() -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    let text = b"tki-attest survey\n";
    file.write_all(text)?;
    file.as_file().sync_all()?;
    let back = std::fs::read(file.path())?;
    if back != text {
        return Err(std::io::Error::other("what was read back differs"));
    }
    file.close()
}

/// containerd and its clients: looked for, not spoken to.
pub fn containerd(conditions: &Conditions) -> Surface {
    let mut calls = Vec::new();
    let socket = Path::new("/run/containerd/containerd.sock");
    let answers = UnixStream::connect(socket);
    calls.push(Call::new(
        format!("connect {}", socket.display()),
        match &answers {
            Ok(_) => "connected".to_owned(),
            Err(error) => error.to_string(),
        },
    ));
    let mut there = answers.is_ok();
    let clients = ["containerd", "nerdctl", "ctr", "crictl"];
    there |= !installed(&clients, conditions, &mut calls).is_empty();
    let mut surface = Surface::absent("containerd, nerdctl", calls);
    if there {
        surface.decision = Decision::InspectOnly;
        surface.decision_note = "tki-attest does not speak to it; use an engine".into();
        surface.can_run = Can::not_tried("tki-attest does not speak containerd's protocol");
        surface.can_write_files = Can::not_tried("nothing was run");
        surface.can_collect_logs = Can::not_tried("nothing was run");
        surface.permission_gap = "no engine of this tool's".into();
    }
    surface
}

/// Those of some programs that are there, each asked for its version.
fn installed<'a>(
    names: &[&'a str],
    conditions: &Conditions,
    calls: &mut Vec<Call>,
) -> Vec<&'a str> {
    let mut there = Vec::new();
    for name in names {
        match find(name) {
            Some(path) => {
                there.push(*name);
                calls.push(program_version(&path, conditions));
            }
            None => calls.push(Call::new(format!("look for {name}"), "no such program")),
        }
    }
    there
}

/// OCI runtimes: what engines start containers with.
pub fn runtimes(conditions: &Conditions) -> Surface {
    let mut calls = Vec::new();
    let known = ["runc", "crun", "youki", "runsc", "kata-runtime"];
    let names = installed(&known, conditions, &mut calls);
    let mut surface = Surface::absent(format!("OCI runtimes ({})", names.join(", ")), calls);
    if names.is_empty() {
        surface.surface = "OCI runtimes".into();
    } else {
        surface.decision = Decision::InspectOnly;
        surface.decision_note = "an engine uses them: run --engine docker|podman --runtime".into();
        surface.can_run = Can::not_tried("only through an engine");
        surface.can_write_files = Can::not_tried("only through an engine");
        surface.can_collect_logs = Can::not_tried("only through an engine");
        surface.permission_gap = "not an engine".into();
    }
    surface
}
