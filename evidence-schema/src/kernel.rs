//! Whose kernel the container ran on: its host's, as containers mostly do, or one of its
//! own. Found by what two witnesses saw, never by what a runtime is called: the prober
//! reads the boot's id and `/proc/version`, and the host looks at the process behind the
//! container, which is the prober itself, gVisor's sentry or a virtual machine's monitor.

use crate::controls::{Control, Relaxation};
use crate::evidence::{
    Evidence, OutsideFacts, RawFacts, Runtime, SentryFacts, VenueFacts, Verdict,
};
use crate::facts;
use crate::relaxation;
use crate::seccomp::Place;
use crate::settings::Settings;
use crate::venue;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Whose kernel answers inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KernelKind {
    /// The host's.
    #[default]
    Shared,
    /// gVisor's, a program on the host.
    Gvisor,
    /// That of a virtual machine.
    Vm,
}

impl KernelKind {
    /// The name used in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Gvisor => "gvisor",
            Self::Vm => "vm",
        }
    }

    /// It is not the host's.
    pub fn is_own(self) -> bool {
        self != Self::Shared
    }

    /// What the process on the host is called that runs such a kernel.
    pub fn process(self) -> &'static str {
        match self {
            Self::Shared => "the container's first process",
            Self::Gvisor => "the sentry",
            Self::Vm => "the virtual machine's monitor",
        }
    }
}

/// gVisor gives itself the same build in every version.
const GVISOR_BUILD: &str = "#1 SMP Sun Jan 10 15:06:54 PST 2016";

/// Programs that run a virtual machine, or stand before one, by how their names begin.
const MONITORS: &[&str] = &[
    "cloud-hyperviso",
    "containerd-shim-kata",
    "crosvm",
    "dragonball",
    "firecracker",
    "kata-",
    "krun",
    "qemu-",
    "stratovirt",
];

/// The release that a `/proc/version` names, also one without a builder.
pub fn release(proc_version: &str) -> &str {
    let rest = proc_version.strip_prefix("Linux version ");
    rest.and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_default()
}

/// What the prober saw. `host` has the boot's id of the host, or nothing where that
/// is not known, and the release of its kernel.
fn seen_inside(raw: &RawFacts, host: (&str, &str)) -> KernelKind {
    let (own, theirs) = (raw.boot_id.trim_end(), host.0);
    let same_release = release(&raw.proc_version) == host.1;
    let shared = match own.is_empty() || theirs.is_empty() {
        false => own == theirs,
        // One of them does not tell.
        true => same_release || raw.proc_version.is_empty(),
    };
    let is_gvisor =
        raw.proc_version.contains(GVISOR_BUILD) || release(&raw.proc_version).contains("gvisor");
    match (shared, is_gvisor) {
        (true, _) => KernelKind::Shared,
        (false, true) => KernelKind::Gvisor,
        (false, false) => KernelKind::Vm,
    }
}

/// By the conversation alone, before there is evidence.
pub fn by_prober(raw: &RawFacts, runtime: &Runtime, venue: &VenueFacts) -> KernelKind {
    let boot = match venue::is_here(venue) {
        true => venue.boot_id.as_str(),
        // That of the tool's host, which is another one.
        false => "",
    };
    seen_inside(raw, (boot, &runtime.kernel))
}

/// What the host saw: nothing where it could not look.
pub fn by_host(raw: &RawFacts) -> Option<KernelKind> {
    if raw.sentry != SentryFacts::default() {
        return of_process(&raw.sentry.executable, &raw.sentry.command);
    }
    // Only the prober itself is looked at like that.
    (raw.outside != OutsideFacts::default()).then_some(KernelKind::Shared)
}

/// The kernel that a process of the host runs, if it is known to run one.
pub fn of_process(executable: &str, command: &[String]) -> Option<KernelKind> {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let called = command.first().map(|first| base(first));
    let names = [Some(base(executable)), called];
    let mut names = names.iter().flatten().filter(|name| !name.is_empty());
    let boots = command.iter().any(|word| word == "boot");
    if names.clone().any(|name| name.starts_with("runsc")) && boots {
        return Some(KernelKind::Gvisor);
    }
    let is_monitor = |name: &String| MONITORS.iter().any(|known| name.starts_with(known));
    names.any(is_monitor).then_some(KernelKind::Vm)
}

/// What evidence says of it, derived: the prober's word, since it is what judging
/// depends on. That the host's is another one is a disagreement of witnesses.
pub fn kind(evidence: &Evidence) -> KernelKind {
    by_prober(&evidence.raw, &evidence.runtime, &evidence.venue_facts)
}

/// A kernel of its own, as far as it bears on judging what was seen in it.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Which.
    pub kind: KernelKind,
    /// The process that runs it; empty if nobody looked.
    pub sentry: &'a SentryFacts,
    /// The release of the host's kernel, by which an engine reads a profile.
    pub host: &'a str,
}

/// The kernel that this evidence is about, if it is not the host's.
pub fn own(evidence: &Evidence) -> Option<Own<'_>> {
    own_as(kind(evidence), &evidence.raw, &evidence.runtime)
}

/// The same where the kind is known.
pub fn own_as<'a>(kind: KernelKind, raw: &'a RawFacts, runtime: &'a Runtime) -> Option<Own<'a>> {
    kind.is_own().then_some(Own {
        kind,
        sentry: &raw.sentry,
        host: &runtime.kernel,
    })
}

/// The place that a profile was read for: an engine goes by its host's kernel, whichever
/// the container has.
pub fn place(raw: &RawFacts, own: Option<Own>) -> Place {
    match own {
        Some(own) => Place::with_kernel(own.host),
        None => Place::of(&raw.proc_version),
    }
}

/// Why a control of a run with these settings cannot be run on a kernel of its own, if it
/// cannot.
pub fn impossible(control: &Control, run: &Settings, kind: KernelKind) -> Option<&'static str> {
    let by_engine = relaxation::volume(run).is_some();
    let reason = |relaxation: &Relaxation| match relaxation {
        Relaxation::Interface => Some(
            "such a kernel has its own network stack, which no other \
             container can be let into",
        ),
        Relaxation::JoinIpc | Relaxation::JoinPid => {
            Some("each such container has a kernel of its own, whose namespaces no other can join")
        }
        Relaxation::DecoySocket | Relaxation::SuidDecoy if by_engine => {
            Some("there is no neighbour that could put something into /in")
        }
        Relaxation::PidsLimit | Relaxation::MemoryLimit => {
            Some("running into this limit ends such a kernel, and the prober with it")
        }
        Relaxation::NewPrivileges if kind == KernelKind::Gvisor => {
            Some("gVisor shows no such bit, and its sentry always has it")
        }
        _ => None,
    };
    match kind {
        KernelKind::Shared => None,
        _ => control.relaxations.iter().find_map(reason),
    }
}

/// A probe that such a kernel leaves UNPROVEN in a control, which calibrates nothing. gVisor
/// asks whose a file is before it looks at the mount, and root's it is not; and its network
/// stack answers in its own way, which proves nothing where nobody looked at the sentry.
pub fn blinds(control: &str, probe: &str) -> bool {
    [
        ("root-user", "PR-FS-RO-IN"),
        ("seccomp", "PR-NET-2"),
        ("seccomp", "XP-REACH"),
    ]
    .contains(&(control, probe))
}

/// The engine was given a seccomp profile, and the runtime left it out without a word.
pub fn ignored_profile(evidence: &Evidence) -> Option<&'static str> {
    let given = evidence.sandbox.configured.seccomp.len() == 64;
    let mode = facts::status_field(&evidence.raw.proc_self_status, "Seccomp");
    let ignored = given && mode.is_some_and(|mode| mode != "2");
    match kind(evidence) {
        KernelKind::Gvisor if ignored => Some(
            "the runtime ignores the seccomp profile that the engine was given (there is no filter \
             inside): runsc needs --oci-seccomp",
        ),
        KernelKind::Vm if ignored => Some(
            "the runtime ignores the seccomp profile that the engine was given (there is no filter \
             inside): Kata needs disable_guest_seccomp = false",
        ),
        _ => None,
    }
}

/// The probes that have a filter and nothing else in front of them, and did not pass.
pub fn for_want_of_a_filter(probe: &str, verdict: Verdict) -> bool {
    let open = crate::controls::find("seccomp");
    verdict != Verdict::Pass && open.is_some_and(|control| control.concerns(probe))
}

/// What is not shown of a kernel of its own.
pub fn not_proven(evidence: &Evidence) -> Vec<String> {
    let Some(own) = own(evidence) else {
        return Vec::new();
    };
    let process = own.kind.process();
    let mut lines = Vec::new();
    if by_host(&evidence.raw).is_none() {
        lines.push(format!(
            "That the kernel inside is its own ({}): the prober alone says so, since nobody \
             looked at {process} on the host.",
            own.kind.name()
        ));
    }
    lines.push(format!(
        "That nothing breaks out of the kernel inside ({}) into {process}, which is a process of \
         the host's: the probes ask that kernel, and what would hold then is only what the host \
         saw of the process (the facts sentry.…).",
        own.kind.name()
    ));
    if !evidence.controls.is_empty() {
        let engine = evidence.runtime.kind();
        let settings = &evidence.sandbox.configured;
        let left: Vec<&str> = crate::controls::of_engine(engine)
            .filter(|control| impossible(control, settings, own.kind).is_some())
            .map(|control| control.name)
            .collect();
        lines.push(format!(
            "What these controls would have shown, which a kernel of its own ({}) cannot run: {}. \
             A control counts there for the probes that passed in the run and failed in it.",
            own.kind.name(),
            left.join(", ")
        ));
    }
    if let Some(cause) = ignored_profile(evidence) {
        lines.push(format!(
            "That the seccomp profile bears on anything: {cause}."
        ));
    }
    lines
}

/// A boot's id as the kernel writes it, or nothing.
pub fn is_boot_id(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let parts: Vec<&str> = text.split('-').collect();
    text.is_empty()
        || (parts.len() == lengths.len()
            && parts
                .iter()
                .zip(lengths)
                .all(|(part, length)| part.len() == length && part.bytes().all(is_hex)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const BOOT: &str = "e39f1b25-d403-458c-b5ec-79604a845fb2";
    const LINUX: &str = "Linux version 6.1.0-9-amd64 (a@b) (gcc) #1 SMP\n";
    const GVISOR: &str = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";

    fn raw(boot_id: &str, proc_version: &str) -> RawFacts {
        RawFacts {
            boot_id: boot_id.into(),
            proc_version: proc_version.into(),
            ..RawFacts::default()
        }
    }

    #[test]
    fn the_boot_tells_and_else_the_release() {
        let host = (BOOT, "6.1.0-9-amd64");
        let other = BOOT.replace('e', "f");
        for (boot, version, expected) in [
            (BOOT, LINUX, KernelKind::Shared),
            ("", LINUX, KernelKind::Shared),
            ("", GVISOR, KernelKind::Gvisor),
            (&other, GVISOR, KernelKind::Gvisor),
            // The same kernel, booted once more.
            (&other, LINUX, KernelKind::Vm),
            ("", "Linux version 5.19.2 (k@k) #1\n", KernelKind::Vm),
            (
                "",
                "Linux version 4.19.0-gvisor #1 SMP\n",
                KernelKind::Gvisor,
            ),
        ] {
            let with_end = format!("{boot}{}", if boot.is_empty() { "" } else { "\n" });
            assert_eq!(
                seen_inside(&raw(&with_end, version), host),
                expected,
                "{version}"
            );
        }
        // Of an engine elsewhere only the release is known.
        let elsewhere = ("", "6.1.0-9-amd64");
        assert_eq!(
            seen_inside(&raw(&other, LINUX), elsewhere),
            KernelKind::Shared
        );
        assert_eq!(seen_inside(&raw("", GVISOR), elsewhere), KernelKind::Gvisor);
    }

    #[test]
    fn a_process_is_known_by_its_program_and_what_it_was_told() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (executable, line, expected) in [
            (
                "/usr/bin/runsc",
                "runsc-sandbox --root=/x boot --cpu-num 2",
                Some(KernelKind::Gvisor),
            ),
            ("", "runsc-sandbox boot", Some(KernelKind::Gvisor)),
            ("/usr/bin/runsc", "runsc-gofer gofer", None),
            (
                "/usr/bin/qemu-system-x86_64",
                "qemu -m 1",
                Some(KernelKind::Vm),
            ),
            (
                "/opt/kata/bin/firecracker",
                "/opt/kata/bin/firecracker",
                Some(KernelKind::Vm),
            ),
            ("/usr/bin/sleep", "sleep boot", None),
            ("", "", None),
        ] {
            assert_eq!(of_process(executable, &words(line)), expected, "{line}");
        }
        assert_eq!(of_process("", &[]), None);
    }

    #[test]
    fn a_boot_has_one_form() {
        assert!(is_boot_id(BOOT) && is_boot_id(""));
        for wrong in [
            "x",
            "e39f1b25",
            &BOOT.to_uppercase(),
            &format!("{BOOT}-"),
            &BOOT[1..],
        ] {
            assert!(!is_boot_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_host_says_shared_only_of_what_it_saw() {
        let mut seen = RawFacts::default();
        assert_eq!(by_host(&seen), None);
        seen.outside.status = "Name:\ttki-prober\n".into();
        assert_eq!(by_host(&seen), Some(KernelKind::Shared));
        seen.sentry.executable = "/usr/bin/sleep".into();
        assert_eq!(by_host(&seen), None);
    }
}
