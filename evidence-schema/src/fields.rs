//! Every field of evidence and of a conversation, with the steps of `verify` that read
//! it. Where nothing can contradict a field, or a part of it, the table says why; that
//! part rests on the venue's word, and `not_proven` names it. docs/evidence.md has the
//! same table; `make schema` writes it again.

use crate::coherent::is_counter;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

/// A field, and who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// From the top, `[]` for every item of a list.
    pub path: &'static str,
    /// Steps of `verify` that refuse a lie in it.
    pub steps: &'static str,
    /// What of it rests on the venue's word, and why; empty if nothing does.
    pub word: &'static str,
}

const fn field(path: &'static str, steps: &'static str, word: &'static str) -> Field {
    Field { path, steps, word }
}

/// The field of evidence with this path.
pub fn find(path: &str) -> Option<&'static Field> {
    EVIDENCE.iter().find(|field| field.path == path)
}

/// Whether a field, or a line of it, rests on the venue's word. A list without its `[]`
/// is meant as a whole.
pub fn rests_on_word(path: &str, line: Option<&str>) -> bool {
    // Of a list of things with several fields only this one rests on a word as a whole.
    let list = match path {
        "information" => "information[].name".to_owned(),
        path => format!("{path}[]"),
    };
    let Some(field) = find(path).or_else(|| find(&list)) else {
        return false;
    };
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    match (path, line) {
        ("raw.proc_self_status" | "raw.proc_self_status_locked", line) => {
            line.is_some_and(|line| is_counter(&name(line)))
        }
        ("raw.outside.status", line) => line.is_some_and(|line| {
            is_counter(&name(line)) || matches!(name(line).as_str(), "PPid" | "TracerPid")
        }),
        ("raw.outside.mountinfo", line) => line.is_some_and(|line| line.contains(" - cgroup")),
        _ => !field.word.is_empty(),
    }
}

/// The same for a conversation.
pub fn rests_on_word_in_conversation(path: &str) -> bool {
    let list = format!("{path}[]");
    let own = |field: &&Field| field.path == path || field.path == list;
    let found = CONVERSATION.iter().find(own);
    found.is_some_and(|field| !field.word.is_empty())
}

/// The line of `not_proven` that names what rests on the venue's word.
pub fn not_proven() -> String {
    static LINE: OnceBox<String> = OnceBox::new();
    let line = || {
        let words = |fields: &'static [Field]| fields.iter().filter(|field| !field.word.is_empty());
        let said = words(CONVERSATION).map(|field| field.path);
        let paths: Vec<&str> = words(EVIDENCE)
            .map(|field| field.path)
            .chain(said)
            .collect();
        format!(
            "That these are true, where nothing else in the evidence repeats them: {}.",
            paths.join(", ")
        )
    };
    LINE.get_or_init(|| Box::new(line())).clone()
}

/// The table for readers, in Markdown.
pub fn table() -> String {
    let mut out = String::new();
    for (title, fields) in [
        ("field of evidence", EVIDENCE),
        ("field of a conversation", CONVERSATION),
    ] {
        out += &format!("| {title} | read by | rests on the venue's word |\n|---|---|---|\n");
        for Field { path, steps, word } in fields {
            out += &format!("| `{path}` | {steps} | {word} |\n");
        }
        out.push('\n');
    }
    out
}

/// Every field of evidence.
#[rustfmt::skip]
pub const EVIDENCE: &[Field] = &[
    field("artifacts[].bytes", "EV-ARTIFACTS", ""),
    field("artifacts[].path", "EV-ARTIFACTS", ""),
    field("artifacts[].sha256", "EV-ARTIFACTS", ""),
    field("controls[].artifact_path", "EV-ARTIFACTS EV-CONTROLS", ""),
    field("controls[].blinds[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].changed[].control", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].changed[].run", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].changed[].setting", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].control", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].flipped[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].holds", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].layers[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].instrument", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].may_flip[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].must_flip[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].probes[]", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].relaxed", "EV-CONTROLS EV-DERIVED", ""),
    field("controls[].unproven[]", "EV-CONTROLS EV-DERIVED", ""),
    field("evidence_sha256", "EV-STAMP", ""),
    field("finished", "EV-TIME EV-AGE", "to the second"),
    field("image.config_digest", "EV-IMAGE", ""),
    field("image.diff_ids[]", "EV-IMAGE", ""),
    field("image.engine_reported_id", "EV-IMAGE", ""),
    field("image.manifest_digest", "EV-IMAGE", ""),
    field("image_digest", "EV-IMAGE", ""),
    field("information[].name", "EV-TRANSCRIPT EV-TEXTS", "which bugs of processors the kernel knows"),
    field("information[].value", "EV-TRANSCRIPT EV-TEXTS", "worth knowing, never judged, but for the kernel's release and the ids of the maps"),
    field("inventory.after.containers[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.after.images[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.after.modules[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.after.networks[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.after.volumes[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.before.containers[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.before.images[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.before.modules[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.before.networks[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.before.volumes[]", "EV-INVENTORY", "that both lists are whole: they are held against each other alone"),
    field("inventory.own_images[]", "EV-INVENTORY", ""),
    field("inventory.unchanged", "EV-DERIVED", ""),
    field("matrix[].layer", "EV-DERIVED EV-MATRIX", ""),
    field("matrix[].probes[]", "EV-DERIVED EV-MATRIX", ""),
    field("matrix[].result", "EV-DERIVED EV-MATRIX", ""),
    field("matrix[].test", "EV-DERIVED EV-MATRIX", ""),
    field("matrix[].title", "EV-DERIVED EV-MATRIX", ""),
    field("not_proven[]", "EV-DERIVED", ""),
    field("probes[].actual_stderr_or_value", "EV-DERIVED", ""),
    field("probes[].artifact_path", "EV-TRANSCRIPT EV-ARTIFACTS", ""),
    field("probes[].calibrated_by[]", "EV-DERIVED", ""),
    field("probes[].denied_by[]", "EV-DERIVED", ""),
    field("probes[].enforced_by", "EV-DERIVED", ""),
    field("probes[].errno_or_exit", "EV-DERIVED", ""),
    field("probes[].expected", "EV-DERIVED", ""),
    field("probes[].layers", "EV-DERIVED", ""),
    field("probes[].observations[].errno", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", "which of several errnos that prove the same"),
    field("probes[].observations[].operation", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].observations[].phase", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].observations[].returned", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].observations[].signal", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].observations[].state", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", "what the engine's phase of PR-EXEC-1 came to, where the lock is what counts"),
    field("probes[].observations[].step", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].observations[].value", "EV-DERIVED EV-TRANSCRIPT EV-TEXTS", ""),
    field("probes[].operation", "EV-DERIVED", ""),
    field("probes[].probe_id", "EV-PROBES", ""),
    field("probes[].reasons[]", "EV-DERIVED", ""),
    field("probes[].requirements[]", "EV-DERIVED", ""),
    field("probes[].tests[]", "EV-DERIVED", ""),
    field("probes[].verdict", "EV-DERIVED", ""),
    field("raw.boot_id", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", "which boot it was, where the engine is not on the tool's host"),
    field("raw.env_keyset[]", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", ""),
    field("raw.host_namespaces[]", "EV-TEXTS EV-DERIVED", "the namespaces of the host's tool are nowhere else"),
    field("raw.lsm_label", "EV-TRANSCRIPT EV-TEXTS EV-DERIVED", "where the host could not look, and no engine speaks of a label"),
    field("raw.marked_sweep", "EV-CONTROLS EV-DERIVED", "what the kernel answered to calls that the profile lets through"),
    field("raw.mountinfo", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", ""),
    field("raw.namespaces[]", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", ""),
    field("raw.neighbour_namespaces[]", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT EV-CONTROLS", "which namespaces the neighbour has beside those that controls join: only its own words tell"),
    field("raw.outside.absent[]", "EV-OUTSIDE EV-DERIVED", "that the tool's user had no right to read what is absent"),
    field("raw.outside.cgroup[]", "EV-OUTSIDE EV-WITNESSES", "that the host could not read its limits, where there are none"),
    field("raw.outside.descriptors", "EV-OUTSIDE EV-WITNESSES", ""),
    field("raw.outside.gid_map", "EV-OUTSIDE", "which ids of the host a range is, beyond those of the process"),
    field("raw.outside.limits", "EV-OUTSIDE EV-WITNESSES", ""),
    field("raw.outside.lsm_label", "EV-OUTSIDE EV-WITNESSES", "that the host could not read it, where it is empty"),
    field("raw.outside.mountinfo", "EV-OUTSIDE EV-WITNESSES", "where in the control groups the container's begins"),
    field("raw.outside.namespaces[]", "EV-OUTSIDE EV-WITNESSES", ""),
    field("raw.outside.net_dev", "EV-OUTSIDE EV-WITNESSES", ""),
    field("raw.outside.status", "EV-OUTSIDE EV-WITNESSES", "counters, the parent's number and who of the host traces it"),
    field("raw.outside.uid_map", "EV-OUTSIDE", "which ids of the host a range is, beyond those of the process"),
    field("raw.proc_net_dev", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", ""),
    field("raw.proc_net_ipv6_route", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", "metrics and flags of routes through lo"),
    field("raw.proc_net_route", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", ""),
    field("raw.proc_self_cgroup", "EV-TEXTS EV-TRANSCRIPT", "numbers and paths of control groups, and those without a mount inside"),
    field("raw.proc_self_limits", "EV-TEXTS EV-WITNESSES EV-TRANSCRIPT", ""),
    field("raw.proc_self_status", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", "counters of memory, signals, processors and context switches"),
    field("raw.proc_self_status_locked", "EV-TEXTS EV-DERIVED EV-TRANSCRIPT", "counters of memory, signals, processors and context switches"),
    field("raw.proc_version", "EV-TEXTS EV-VENUE EV-TRANSCRIPT", "who built the kernel, with what and when"),
    field("raw.seccomp_profile", "EV-SECCOMP EV-DERIVED", ""),
    field("raw.sentry.cgroup[]", "EV-OUTSIDE EV-WITNESSES", "that the host could not read its limits, where there are none"),
    field("raw.sentry.command[]", "EV-OUTSIDE EV-WITNESSES", "with which options it was started"),
    field("raw.sentry.executable", "EV-OUTSIDE EV-WITNESSES", "where the program lies"),
    field("raw.sentry.mountinfo", "EV-OUTSIDE", "what the process itself can reach: nothing inside sees it"),
    field("raw.sentry.namespaces[]", "EV-OUTSIDE EV-DERIVED", "the process's own are nowhere else"),
    field("raw.sentry.net_dev", "EV-OUTSIDE EV-DERIVED", "the process's own are nowhere else"),
    field("raw.sentry.status", "EV-OUTSIDE EV-DERIVED", "the process is not the prober's: only its form is known"),
    field("raw.sentry.uid_map", "EV-OUTSIDE", "which ids of the host a range is"),
    field("request.nonce", "EV-REQUEST", ""),
    field("request.sha256", "EV-REQUEST", ""),
    field("run_id", "EV-TEXTS EV-CONTAINER EV-TIME", ""),
    field("runtime.api_version", "EV-TEXTS", "the engine describes itself: only the form is known"),
    field("runtime.arch", "EV-TEXTS EV-VENUE", ""),
    field("runtime.cgroup_version", "EV-TEXTS EV-VENUE", ""),
    field("runtime.engine", "EV-CONTAINER EV-TEXTS EV-VENUE", ""),
    field("runtime.engine_version", "EV-TEXTS EV-VENUE", ""),
    field("runtime.kernel", "EV-TEXTS EV-VENUE", ""),
    field("runtime.kernel_kind", "EV-DERIVED EV-WITNESSES", ""),
    field("runtime.oci_runtime", "EV-TEXTS EV-CONTAINER", "where the engine does not tell it for each container, only its form is known"),
    field("runtime.os", "EV-TEXTS EV-VENUE", ""),
    field("runtime.rootless", "EV-TEXTS EV-VENUE", ""),
    field("runtime.security_options[]", "EV-TEXTS", "the engine describes itself: only `name=rootless` is told elsewhere"),
    field("sandbox.command_line[]", "EV-SANDBOX", ""),
    field("sandbox.configured.auto_remove", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.binds[].kind", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.binds[].options", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.binds[].read_only", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.binds[].source", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.binds[].target", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.cap_add[]", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.cap_drop[]", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.cgroupns", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.covered_texts[]", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.cpu_period_us", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.cpu_quota_us", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.devices[]", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.env[]", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.hostname", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.ipc", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.log_driver", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.lsm", "EV-CONTAINER EV-WITNESSES EV-DERIVED", ""),
    field("sandbox.configured.memory_bytes", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.memory_swap_bytes", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.network", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.no_new_privileges", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.pid", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.pids_limit", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.privileged", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.read_only_rootfs", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.seccomp", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.security_options[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.configured.system_paths_masked", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.tmpfs[].options", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.tmpfs[].target", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.ulimits[].hard", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.ulimits[].name", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.ulimits[].soft", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.user", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.userns", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.uts", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.configured.working_directory", "EV-SANDBOX EV-CONTAINER EV-WITNESSES", ""),
    field("sandbox.declared.auto_remove", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.binds[].kind", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.binds[].options", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.binds[].read_only", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.binds[].source", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.binds[].target", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.cap_add[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.cap_drop[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.cgroupns", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.covered_texts[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.cpu_period_us", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.cpu_quota_us", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.devices[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.env[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.hostname", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.ipc", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.log_driver", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.lsm", "EV-SANDBOX", ""),
    field("sandbox.declared.memory_bytes", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.memory_swap_bytes", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.network", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.no_new_privileges", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.pid", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.pids_limit", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.privileged", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.read_only_rootfs", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.seccomp", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.security_options[]", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.system_paths_masked", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.tmpfs[].options", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.tmpfs[].target", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.ulimits[].hard", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.ulimits[].name", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.ulimits[].soft", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.user", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.userns", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.uts", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.declared.working_directory", "EV-SANDBOX EV-CONTAINER", ""),
    field("sandbox.gate.active", "EV-DERIVED EV-TEXTS", ""),
    field("sandbox.gate.allowed", "EV-DERIVED EV-TEXTS", ""),
    field("sandbox.gate.plain_profile", "EV-SECCOMP EV-TEXTS", ""),
    field("sandbox.gate.reason", "EV-TEXTS", "why it does not stand"),
    field("sandbox.gate.refused", "EV-TEXTS EV-DERIVED", "how often it refused beyond what the probes saw: a signal makes the kernel ask twice"),
    field("sandbox.out_backing.kind", "EV-TEXTS", ""),
    field("sandbox.out_backing.maker", "EV-TEXTS", "what an engine said that makes none"),
    field("sandbox.out_backing.reason", "EV-TEXTS", "why it is a directory"),
    field("schema", "EV-FORM", ""),
    field("seccomp_profile", "EV-SECCOMP", ""),
    field("seccomp_sha256", "EV-SECCOMP", ""),
    field("started", "EV-TIME EV-AGE", "to the second"),
    field("status", "EV-DERIVED EV-STATUS", ""),
    field("summary.failed", "EV-DERIVED", ""),
    field("summary.passed", "EV-DERIVED", ""),
    field("summary.required", "EV-DERIVED", ""),
    field("summary.unproven", "EV-DERIVED", ""),
    field("syscalls.filter[]", "EV-DERIVED", ""),
    field("syscalls.kernel[]", "EV-DERIVED", ""),
    field("syscalls.reached[]", "EV-DERIVED", ""),
    field("syscalls.unmarked[]", "EV-DERIVED", ""),
    field("tool.name", "EV-VERSION EV-TEXTS", ""),
    field("tool.sha256", "EV-TEXTS", "which build of the tool ran: only its form is known"),
    field("tool.version", "EV-VERSION", ""),
    field("venue", "EV-VENUE", ""),
    field("venue_facts.boot_id", "EV-TEXTS", "which machine it was: only its form is known"),
    field("venue_facts.chassis", "EV-TEXTS EV-VENUE", "the venue describes itself"),
    field("venue_facts.ci_variables[]", "EV-TEXTS EV-VENUE", "the tool's environment is nowhere else"),
    field("venue_facts.container", "EV-TEXTS EV-VENUE", "the venue describes itself"),
    field("venue_facts.engine", "EV-TEXTS EV-VENUE", ""),
    field("venue_facts.engine_at", "EV-TEXTS EV-VENUE", "the way that the tool took to the engine: it fits what else was seen, or is not this host"),
    field("venue_facts.hardware", "EV-VENUE EV-ARTIFACTS", ""),
    field("venue_facts.host_name", "EV-TEXTS EV-VENUE", "the venue describes itself"),
    field("venue_facts.kernel", "EV-TEXTS EV-VENUE", ""),
    field("venue_facts.machine_id_hmac", "EV-TEXTS", "which machine it was: only its form is known"),
    field("venue_facts.operating_system", "EV-TEXTS EV-VENUE", "the venue describes itself"),
    field("venue_facts.platform_signed", "EV-VENUE EV-ARTIFACTS", ""),
    field("venue_facts.tier", "EV-VENUE", ""),
    field("venue_facts.virtualisation", "EV-TEXTS EV-VENUE", "the venue describes itself"),
    field("witnesses.agreement[].agree", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.agreement[].configured", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.agreement[].fact", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.agreement[].inside", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.agreement[].outside", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.configured.available", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.configured.facts[].name", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.configured.facts[].value", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.configured.source", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.inside.available", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.inside.facts[].name", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.inside.facts[].value", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.inside.source", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.outside.available", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.outside.facts[].name", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.outside.facts[].value", "EV-DERIVED EV-WITNESSES", ""),
    field("witnesses.outside.source", "EV-OUTSIDE", "why the host could not look"),
];

/// Every field of a conversation, which is read only where the artifacts are there.
#[rustfmt::skip]
pub const CONVERSATION: &[Field] = &[
    field("hello.protocol", "EV-TRANSCRIPT", ""),
    field("hello.version", "EV-TRANSCRIPT EV-VERSION", ""),
    field("hello.missing[]", "EV-TRANSCRIPT", ""),
    field("challenge.protocol", "EV-TRANSCRIPT", ""),
    field("challenge.nonce", "EV-TRANSCRIPT EV-REQUEST EV-CONTROLS", "without a request any nonce is as good as another"),
    field("challenge.probes[]", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.phases[]", "EV-TRANSCRIPT", ""),
    field("challenge.probe_deadline_ms", "EV-TRANSCRIPT", ""),
    field("challenge.overall_deadline_ms", "EV-TRANSCRIPT", "what was left of the run's time"),
    field("challenge.lock", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.env_canary", "EV-TRANSCRIPT EV-CONTROLS", "any name that nothing inside has"),
    field("challenge.host_canary", "EV-TRANSCRIPT EV-CONTROLS", "where the tool's executable lies"),
    field("challenge.limits.pids", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.memory_bytes", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.out_bytes", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.out_files", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.tmp_bytes", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.tmp_files", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.nofile", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.cpu_period_us", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.limits.cpu_quota_us", "EV-TRANSCRIPT EV-CONTROLS", ""),
    field("challenge.accept_missing[]", "EV-TRANSCRIPT", ""),
    field("raw.name", "EV-TRANSCRIPT", ""),
    field("raw.text", "EV-TRANSCRIPT", ""),
    field("info.name", "EV-TRANSCRIPT", ""),
    field("info.text", "EV-TRANSCRIPT", ""),
    field("observation.probe", "EV-TRANSCRIPT", ""),
    field("observation.seen.phase", "EV-TRANSCRIPT", ""),
    field("observation.seen.operation", "EV-TRANSCRIPT", ""),
    field("observation.seen.state", "EV-TRANSCRIPT", ""),
    field("observation.seen.step", "EV-TRANSCRIPT", ""),
    field("observation.seen.returned", "EV-TRANSCRIPT", ""),
    field("observation.seen.errno", "EV-TRANSCRIPT", ""),
    field("observation.seen.signal", "EV-TRANSCRIPT", ""),
    field("observation.seen.value", "EV-TRANSCRIPT", ""),
    field("refused.reason", "EV-TRANSCRIPT", ""),
    field("done.nonce", "EV-TRANSCRIPT", "the challenge's, whatever that is"),
    field("done.observations", "EV-TRANSCRIPT", ""),
    field("done.elapsed_us", "EV-TRANSCRIPT EV-CONTROLS", "how long the probes took, within the run's time"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::step_code::StepCode;
    use crate::wire::{HostMessage, ProberMessage};
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use serde_json::Value;

    /// Every leaf that a schema describes.
    fn leaves(schema: schemars::Schema) -> BTreeSet<String> {
        let root = Value::from(schema);
        let mut found = BTreeSet::new();
        let mut pending = vec![(String::new(), &root)];
        while let Some((path, node)) = pending.pop() {
            let name = node["$ref"]
                .as_str()
                .and_then(|name| name.rsplit('/').next());
            if let Some(name) = name {
                pending.push((path, &root["$defs"][name]));
            } else if let Some(all) = node["anyOf"].as_array().or(node["oneOf"].as_array()) {
                let some = all.iter().filter(|one| one["type"] != "null");
                let inner: Vec<_> = some.collect();
                match inner.iter().all(|one| one["const"].is_string()) {
                    true => drop(found.insert(path)),
                    false => pending.extend(inner.into_iter().map(|one| (path.clone(), one))),
                }
            } else if let Some(properties) = node["properties"].as_object() {
                let below = |key: &String| match path.as_str() {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                pending.extend(properties.iter().map(|(key, node)| (below(key), node)));
            } else if node["type"] == "array" {
                pending.push((format!("{path}[]"), &node["items"]));
            } else {
                found.insert(path);
            }
        }
        found
    }

    fn listed(fields: &[Field]) -> BTreeSet<String> {
        let paths: BTreeSet<String> = fields.iter().map(|field| field.path.into()).collect();
        assert_eq!(paths.len(), fields.len(), "a field is there twice");
        paths
    }

    #[test]
    fn the_table_has_every_field_of_the_types_and_no_other() {
        let mut wire = leaves(schemars::schema_for!(HostMessage));
        wire.extend(leaves(schemars::schema_for!(ProberMessage)));
        let evidence = leaves(schemars::schema_for!(Evidence));
        for (listed, types) in [(listed(EVIDENCE), evidence), (listed(CONVERSATION), wire)] {
            let differing: Vec<&String> = listed.symmetric_difference(&types).collect();
            assert!(differing.is_empty(), "{differing:?}");
        }
    }

    #[test]
    fn every_field_is_read_by_a_step() {
        for field in EVIDENCE.iter().chain(CONVERSATION) {
            let mut steps = field.steps.split(' ');
            assert!(
                steps.all(|step| StepCode::find(step).is_some()),
                "{field:?}"
            );
        }
    }

    /// Where the table stands in the documentation.
    const BEGIN: &str = "<!-- fields: written by `make schema` -->\n";
    const END: &str = "<!-- end of fields -->\n";

    #[test]
    fn the_documentation_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/evidence.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let wanted = format!("{before}{BEGIN}{}{END}{after}", table());
        if std::env::var_os("TKI_WRITE_SCHEMAS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap();
        assert!(found == wanted, "the fields drifted: run `make schema`");
    }
}
