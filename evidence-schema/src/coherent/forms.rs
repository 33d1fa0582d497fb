//! What the venue says about itself and the tool, in the form in which the tool writes
//! it. Whether it is true nobody here can tell.

use super::kernel::is_local;
use super::{Found, shown};
use crate::engine_kind::EngineKind;
use crate::evidence::Evidence;
use crate::venue;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// Names of information that every prober gives, before those of processors.
const INFORMATION: &[&str] = &[
    "kernel.osrelease",
    "kernel.kptr_restrict",
    "kernel.dmesg_restrict",
    "kernel.io_uring_disabled",
    "kernel.yama.ptrace_scope",
    "kernel.unprivileged_bpf_disabled",
    "user.max_user_namespaces",
    "lsm.current",
    "lsm.list",
    "uid_map",
    "gid_map",
    "kallsyms",
];

/// The rest of the information.
const PROCESSOR: &str = "cpu.vulnerability.";

pub fn check(found: &mut Found, evidence: &Evidence) {
    let (venue, runtime) = (&evidence.venue_facts, &evidence.runtime);
    found.same(&evidence.tool.name, "tki-attest", "tool.name");
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    found.must(is_hex(&evidence.tool.sha256, 64), "tool.sha256", || {
        shown(&evidence.tool.sha256)
    });
    let machine = &venue.machine_id_hmac;
    found.must(
        machine.is_empty() || is_hex(machine, 64),
        "venue_facts.machine_id_hmac",
        || shown(machine),
    );
    let boot: Vec<&str> = venue.boot_id.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    let is_id = boot.len() == 5
        && boot
            .iter()
            .zip(lengths)
            .all(|(part, most)| is_hex(part, most));
    found.must(
        venue.boot_id.is_empty() || is_id,
        "venue_facts.boot_id",
        || shown(&venue.boot_id),
    );
    // What an engine or a host says of itself may be nothing.
    for (text, field) in [
        (&venue.operating_system, "venue_facts.operating_system"),
        (&venue.host_name, "venue_facts.host_name"),
        (&runtime.engine_version, "runtime.engine_version"),
        (&runtime.oci_runtime, "runtime.oci_runtime"),
    ] {
        found.must(is_line(text), field, || shown(text));
    }
    whereabouts(found, evidence);
    let options: BTreeSet<&String> = runtime.security_options.iter().collect();
    let different = options.len() == runtime.security_options.len();
    found.must(different, "runtime.security_options", || {
        "one is there twice".into()
    });
    for option in &runtime.security_options {
        found.must(is_line(option), "runtime.security_options", || {
            shown(option)
        });
    }
    let variables = &venue.ci_variables;
    let plain = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let is_name = |name: &String| !name.is_empty() && name.bytes().all(plain);
    let different: BTreeSet<&String> = variables.iter().collect();
    let good = different.len() == variables.len() && variables.iter().all(is_name);
    found.must(good, "venue_facts.ci_variables", || {
        shown(&variables.join(","))
    });
    information(found, evidence);
}

/// Where the engine is, and with it whose facts these are: those of this host are there if
/// the engine is here, and not if it is elsewhere.
fn whereabouts(found: &mut Found, evidence: &Evidence) {
    let venue = &evidence.venue_facts;
    let at = &venue.engine_at;
    let is_here = venue::is_here(venue);
    let field = "venue_facts.engine_at";
    found.must(venue::is_place(at), field, || shown(at));
    // An engine without a daemon, and Podman, have no other address than this host's.
    let engine = evidence.runtime.kind();
    let is_far = at.contains("://");
    found.must(engine == Some(EngineKind::Docker) || !is_far, field, || {
        shown(at)
    });
    found.must(is_here || !is_local(engine), field, || shown(at));
    let seen = evidence.witnesses.outside.available;
    found.must(
        is_here || !seen,
        "venue_facts.engine_at, witnesses.outside",
        || "another machine's container was seen from this host".into(),
    );
    let names = &evidence.raw.host_namespaces;
    let fields = "venue_facts.engine_at, raw.host_namespaces";
    found.must(is_here || names.is_empty(), fields, || {
        "namespaces of this host stand for another one's".into()
    });
    for (text, field) in [
        (&venue.virtualisation, "venue_facts.virtualisation"),
        (&venue.chassis, "venue_facts.chassis"),
        (&venue.container, "venue_facts.container"),
        (&venue.kernel, "venue_facts.kernel"),
    ] {
        let good = is_line(text) && (is_here || text.is_empty());
        found.must(good, field, || shown(text));
    }
    // A host always says something of these.
    for (text, field) in [
        (&venue.virtualisation, "venue_facts.virtualisation"),
        (&venue.chassis, "venue_facts.chassis"),
        (&venue.kernel, "venue_facts.kernel"),
    ] {
        found.must(!is_here || !text.is_empty(), field, || shown(text));
    }
    for (text, field) in [
        (&venue.machine_id_hmac, "venue_facts.machine_id_hmac"),
        (&venue.boot_id, "venue_facts.boot_id"),
    ] {
        found.must(is_here || text.is_empty(), field, || shown(text));
    }
    // A job's own container has them, with the socket of the runner's engine in it.
    let variables = venue.ci_variables.join(",");
    let field = "venue_facts.ci_variables";
    found.must(!is_far || variables.is_empty(), field, || shown(&variables));
}

/// One line that a person can read.
fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Nothing that a terminal would obey. Some security modules end a name with a zero.
pub fn is_harmless(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\0'))
}

/// The name of what is known about processors.
fn is_processors(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let bug = name.strip_prefix(PROCESSOR);
    bug.is_some_and(|bug| !bug.is_empty() && bug.bytes().all(plain))
}

/// Every piece of information once, in the order in which it is gathered.
fn information(found: &mut Found, evidence: &Evidence) {
    let mut names = evidence.information.iter().map(|one| one.name.as_str());
    let harmless = evidence
        .information
        .iter()
        .all(|one| is_harmless(&one.value));
    found.must(harmless, "information", || "control characters".into());
    let fixed = INFORMATION.iter().all(|known| names.next() == Some(known));
    let rest: Vec<&str> = names.collect();
    let good = rest.iter().all(|name| is_processors(name));
    let mut sorted = rest.clone();
    sorted.sort_unstable();
    sorted.dedup();
    found.must(
        fixed && good && sorted.len() == rest.len(),
        "information",
        || "not what the prober tells".into(),
    );
}
