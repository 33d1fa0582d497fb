//! Proofs that fit a kernel of its own. Its /proc has not everything that Linux has, and
//! its numbers mean nothing to the host. What is only missing in that form is proven by what
//! the host saw of the process that runs such a kernel (`sentry`), or is UNPROVEN. What was
//! seen to leak is judged as everywhere.

use super::Texts;
use super::facts::{FIRST, Problem};
use crate::catalogue::{OperationSpec, ProbeSpec};
use crate::evidence::{SentryFacts, Verdict};
use crate::facts;
use crate::kernel::Own;
use crate::observation::{Observation, State};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;

/// What is wrong with an operation by a rule for such kernels; `None` if the usual rule
/// holds there, too.
pub fn check(
    probe: &ProbeSpec,
    operation: &OperationSpec,
    seen: &Observation,
    texts: &Texts,
) -> Option<Vec<Problem>> {
    let own = texts.own.as_ref()?;
    let problem = match (probe.id, operation.id) {
        ("XP-ID-CAPS", "CapAmb") if texts.status("CapAmb").is_none() => ambient(own, texts),
        ("XP-ID-NNP", "NoNewPrivs") if texts.status("NoNewPrivs").is_none() => privileges(own),
        ("XP-NS-FRESH", id) => {
            let kind = id.strip_prefix("ns-")?;
            if matches!(kind, "user" | "time") || is_first(seen) {
                return None;
            }
            namespace(kind, own, texts)
        }
        ("XP-FD", "descriptors") if is_three_pipes(seen) => is_unseen(own),
        ("XP-FS-REOPEN", "open(/proc/1/root/etc/shadow)")
            if is_denied_by(seen, "EACCES") && texts.status("Pid") == Some("1") =>
        {
            is_unseen(own)
        }
        ("PR-NET-2" | "XP-REACH", id)
            if id.starts_with("connect(") && is_denied_by(seen, "EHOSTUNREACH") =>
        {
            unreachable(own)
        }
        ("XP-LIM-PIDS", _) if seen.state == State::Error => fatal(own, "pids"),
        ("XP-LIM-MEMORY", _) if seen.state == State::Error => fatal(own, "memory"),
        _ => return None,
    };
    let unproven = |why| (Verdict::Unproven, why);
    Some(problem.map(unproven).into_iter().collect())
}

/// What of the host's view a probe was judged by, in a line that goes with what came back
/// inside; `None` if that alone was judged.
pub fn proof<O: Borrow<Observation>>(
    probe: &ProbeSpec,
    observations: &[O],
    texts: &Texts,
) -> Option<String> {
    let own = texts.own.as_ref()?;
    let sentry = own.sentry;
    let is_judged_here = observations.iter().map(Borrow::borrow).any(|seen| {
        let mut operations = probe.operations.iter();
        let operation = operations.find(|operation| operation.id == seen.operation);
        operation.is_some_and(|operation| check(probe, operation, seen, texts).is_some())
    });
    let seen = match probe.id {
        "XP-ID-CAPS" | "XP-ID-NNP" => ["Seccomp", "NoNewPrivs"]
            .map(|name| format!("{name} {}", status(sentry, name).unwrap_or("unknown")))
            .join(", "),
        "XP-NS-FRESH" => sentry.namespaces.join(", "),
        "PR-NET-2" => format!(
            "interfaces {}",
            facts::interfaces(&sentry.net_dev).join(",")
        ),
        "XP-LIM-PIDS" | "XP-LIM-MEMORY" => sentry.cgroup.join(", "),
        _ => return None,
    };
    (is_judged_here && !sentry.status.is_empty())
        .then(|| format!("[host] {}: {seen}", own.kind.process()))
}

/// A field of the process's status on the host.
fn status<'a>(sentry: &'a SentryFacts, name: &str) -> Option<&'a str> {
    facts::status_field(&sentry.status, name)
}

/// Nobody looked at the process, and so there is no proof.
fn unseen(own: &Own) -> String {
    format!("nobody looked at {} on the host", own.kind.process())
}

/// Why what such a kernel shows in another form is not believed: only the prober says that
/// it is one.
fn is_unseen(own: &Own) -> Option<String> {
    own.sentry
        .status
        .is_empty()
        .then(|| format!("only the prober says whose kernel this is: {}", unseen(own)))
}

/// What keeps the process that runs the kernel from the host is not there.
fn unconfined(own: &Own) -> Option<String> {
    if own.sentry.status.is_empty() {
        return Some(unseen(own));
    }
    let wrong = [("Seccomp", "2"), ("NoNewPrivs", "1")]
        .into_iter()
        .find(|(name, wanted)| status(own.sentry, name) != Some(wanted));
    wrong.map(|(name, wanted)| {
        format!(
            "{} on the host has {name} {}, not {wanted}",
            own.kind.process(),
            status(own.sentry, name).unwrap_or("unknown")
        )
    })
}

/// A kernel that shows no ambient set. None can be in it that is not permitted and
/// inheritable as well, and the process that runs the kernel is confined.
fn ambient(own: &Own, texts: &Texts) -> Option<String> {
    let empty = |name: &&str| {
        texts
            .status(name)
            .is_some_and(|bits| bits.bytes().all(|bit| bit == b'0'))
    };
    let shown = ["CapInh", "CapPrm", "CapEff", "CapBnd"];
    match shown.iter().all(empty) {
        false => Some("this kernel shows no ambient set, and others are not empty".into()),
        true => unconfined(own).map(|why| format!("this kernel shows no ambient set, and {why}")),
    }
}

/// A kernel that shows no such bit. The process that runs it must have it: whatever is
/// executed inside, nothing gains a privilege on the host.
fn privileges(own: &Own) -> Option<String> {
    unconfined(own).map(|why| format!("this kernel shows no such bit, and {why}"))
}

/// It is a first namespace of whichever kernel.
fn is_first(seen: &Observation) -> bool {
    seen.value
        .as_deref()
        .is_some_and(|value| FIRST.contains(&value))
}

/// A number of another kernel says nothing about the host's. The process that runs it must
/// be in a namespace that is not the host's.
fn namespace(kind: &str, own: &Own, texts: &Texts) -> Option<String> {
    let of_kind = |list: &'_ [String]| -> Option<String> {
        let is_own = |link: &&String| link.split_once(':').is_some_and(|(own, _)| own == kind);
        list.iter().find(is_own).cloned()
    };
    let process = own.kind.process();
    let Some(link) = of_kind(&own.sentry.namespaces) else {
        let why = match own.sentry.status.is_empty() {
            true => unseen(own),
            false => format!("there was no right to read the namespaces of {process}"),
        };
        return Some(format!(
            "a number of the container's own kernel says nothing about the host, and {why}"
        ));
    };
    let Some(host) = of_kind(texts.host_namespaces) else {
        return Some("the host's namespaces are not known".into());
    };
    let shared = link == host || FIRST.contains(&link.as_str());
    shared.then(|| {
        format!(
            "{process} is in the host's {kind} namespace ({link}): only the kernel that it runs \
             keeps the container out of it"
        )
    })
}

/// Descriptors 0, 1 and 2, each a pipe of the host's, whose name this kernel does not show.
fn is_three_pipes(seen: &Observation) -> bool {
    let reading = seen.value.as_deref().unwrap_or_default();
    let entries: Vec<_> = reading
        .split(',')
        .map(|entry| entry.split_once('='))
        .collect();
    let numbers = ["0", "1", "2"];
    seen.state == State::Allowed
        && entries.len() == numbers.len()
        && entries.iter().zip(numbers).all(|(entry, number)| {
            entry.is_some_and(|(own, kind)| {
                own == number && ["pipe", "fifo", "null"].contains(&kind)
            })
        })
}

fn is_denied_by(seen: &Observation, errno: &str) -> bool {
    seen.state == State::Denied
        && seen.errno.as_deref() == Some(errno)
        && seen.signal.is_none()
        && seen.returned == Some(-1)
}

/// A limit that was not run into, because such a kernel would not have survived.
fn fatal(own: &Own, name: &str) -> Option<String> {
    let told = |entry: &&String| entry.split_once('=').is_some_and(|(own, _)| own == name);
    let seen = match own.sentry.cgroup.iter().find(told) {
        Some(limit) => format!("the host read {limit} of the control group"),
        None => "the host did not read it".into(),
    };
    Some(format!(
        "not run into: that would have ended {} with the kernel and the prober; {seen}",
        own.kind.process()
    ))
}

/// Its own network stack knows no way; nor does the host for the process that runs it.
fn unreachable(own: &Own) -> Option<String> {
    let names = facts::interfaces(&own.sentry.net_dev);
    match names.as_slice() {
        ["lo"] => None,
        [] => Some(format!(
            "denied by EHOSTUNREACH of its own network stack, and {}",
            unseen(own)
        )),
        names => Some(format!(
            "denied by EHOSTUNREACH of its own network stack, and {} on the host has interfaces: {}",
            own.kind.process(),
            names.join(",")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::evidence::RawFacts;
    use crate::judge::{Judgement, Sweeps, judge};
    use crate::kernel::KernelKind;
    use crate::observation::Phase;
    use alloc::vec;

    const ZERO: &str = "0000000000000000";

    fn raw() -> RawFacts {
        let host = ["mnt", "pid", "net", "ipc", "uts", "cgroup"];
        let links = |number: u32| -> Vec<String> {
            host.iter()
                .map(|kind| format!("{kind}:[{number}]"))
                .collect()
        };
        let mut raw = RawFacts {
            proc_self_status: format!(
                "Pid:\t1\nCapInh:\t{ZERO}\nCapPrm:\t{ZERO}\nCapEff:\t{ZERO}\nCapBnd:\t{ZERO}\n"
            ),
            host_namespaces: links(7),
            ..RawFacts::default()
        };
        raw.sentry = SentryFacts {
            status: "NoNewPrivs:\t1\nSeccomp:\t2\n".into(),
            net_dev: "Inter-|\n face |\n    lo: 0\n".into(),
            namespaces: links(8),
            ..SentryFacts::default()
        };
        raw
    }

    fn judged(id: &str, seen: &[Observation], raw: &RawFacts, own: bool) -> Judgement {
        let sweeps = Sweeps::default();
        let own = own.then_some(Own {
            kind: KernelKind::Gvisor,
            sentry: &raw.sentry,
            host: "6.1.0",
        });
        let texts = Texts::of_run(raw, &sweeps).on(own);
        judge(catalogue::find(id).unwrap(), seen, &texts)
    }

    fn read(operation: &str, value: &str) -> Observation {
        Observation {
            value: Some(value.into()),
            ..Observation::new(Phase::Engine, operation, State::Allowed)
        }
    }

    fn denied(operation: &str, errno: &str) -> Observation {
        Observation {
            returned: Some(-1),
            errno: Some(errno.into()),
            ..Observation::new(Phase::Engine, operation, State::Denied)
        }
    }

    fn capabilities() -> Vec<Observation> {
        let mut seen: Vec<Observation> = ["CapInh", "CapPrm", "CapEff", "CapBnd"]
            .iter()
            .map(|name| read(name, ZERO))
            .collect();
        seen.push(Observation {
            value: Some("the status has no such field".into()),
            ..Observation::new(Phase::Engine, "CapAmb", State::Error)
        });
        seen
    }

    #[test]
    fn a_field_that_is_not_there_is_proven_by_the_sentry_or_not_at_all() {
        let nnp = [Observation::new(Phase::Engine, "NoNewPrivs", State::Error)];
        for (id, seen) in [("XP-ID-CAPS", capabilities()), ("XP-ID-NNP", nnp.to_vec())] {
            assert_eq!(
                judged(id, &seen, &raw(), true).verdict,
                Verdict::Pass,
                "{id}"
            );
            let (whole, sweeps) = (raw(), Sweeps::default());
            let texts = Texts::of_run(&whole, &sweeps).on(Some(Own {
                kind: KernelKind::Gvisor,
                sentry: &whole.sentry,
                host: "6.1.0",
            }));
            let told = proof(catalogue::find(id).unwrap(), &seen, &texts);
            let wanted = "[host] the sentry: Seccomp 2, NoNewPrivs 1";
            assert_eq!(told.as_deref(), Some(wanted));
            assert_eq!(
                proof(catalogue::find("XP-FD").unwrap(), &seen, &texts),
                None
            );
            // The host's kernel has to show it itself.
            assert_eq!(
                judged(id, &seen, &raw(), false).verdict,
                Verdict::Unproven,
                "{id}"
            );
            for (text, why) in [
                ("", "nobody looked at the sentry"),
                ("NoNewPrivs:\t0\nSeccomp:\t2\n", "NoNewPrivs 0, not 1"),
                ("NoNewPrivs:\t1\nSeccomp:\t0\n", "Seccomp 0, not 2"),
                ("NoNewPrivs:\t1\n", "Seccomp unknown, not 2"),
            ] {
                let mut raw = raw();
                raw.sentry.status = text.into();
                let judgement = judged(id, &seen, &raw, true);
                assert_eq!(judgement.verdict, Verdict::Unproven, "{id} {text}");
                assert!(judgement.reasons[0].contains(why), "{judgement:?}");
            }
        }
    }

    #[test]
    fn an_ambient_set_is_unproven_beside_others_that_are_not_empty() {
        let mut raw = raw();
        raw.proc_self_status = raw.proc_self_status.replace(ZERO, "0000000000000400");
        let judgement = judged("XP-ID-CAPS", &capabilities(), &raw, true);
        assert_eq!(judgement.verdict, Verdict::Fail);
        assert!(
            judgement.reasons.iter().any(|why| why.contains("ambient")),
            "{judgement:?}"
        );
    }

    fn namespaces() -> Vec<Observation> {
        let probe = catalogue::find("XP-NS-FRESH").unwrap();
        let ids = probe.operations.iter().map(|operation| operation.id);
        ids.map(|id| match id {
            "ns-net" => read(id, "net:[110]"),
            _ => denied(id, "ENOENT"),
        })
        .collect()
    }

    #[test]
    fn a_namespace_is_the_sentrys() {
        let seen = namespaces();
        assert_eq!(
            judged("XP-NS-FRESH", &seen, &raw(), true).verdict,
            Verdict::Pass
        );
        assert_eq!(
            judged("XP-NS-FRESH", &seen, &raw(), false).verdict,
            Verdict::Unproven
        );
        let mut shared = raw();
        shared.sentry.namespaces[1] = "pid:[7]".into();
        let judgement = judged("XP-NS-FRESH", &seen, &shared, true);
        assert_eq!(judgement.verdict, Verdict::Unproven);
        let [why] = judgement.reasons.as_slice() else {
            panic!("{judgement:?}");
        };
        assert!(
            why.contains("the sentry is in the host's pid namespace"),
            "{why}"
        );
        let mut unseen = raw();
        unseen.sentry = SentryFacts::default();
        let judgement = judged("XP-NS-FRESH", &seen, &unseen, true);
        assert_eq!(judgement.verdict, Verdict::Unproven);
        assert_eq!(judgement.reasons.len(), 6);
        let mut closed = raw();
        closed.sentry.namespaces.clear();
        let judgement = judged("XP-NS-FRESH", &seen, &closed, true);
        assert_eq!(judgement.verdict, Verdict::Unproven);
        assert!(
            judgement.reasons[0].contains("no right to read the namespaces of the sentry"),
            "{judgement:?}"
        );
        let mut alone = raw();
        alone.host_namespaces.clear();
        assert_eq!(
            judged("XP-NS-FRESH", &seen, &alone, true).verdict,
            Verdict::Unproven
        );
        // The first of that kernel is still the first.
        let mut first = seen;
        first[1] = read("ns-pid", "pid:[4026531836]");
        assert_eq!(
            judged("XP-NS-FRESH", &first, &raw(), true).verdict,
            Verdict::Fail
        );
    }

    #[test]
    fn a_pipe_without_a_name_is_one_only_there() {
        for (value, own, shared) in [
            ("0=fifo,1=fifo,2=fifo", Verdict::Pass, Verdict::Fail),
            ("0=null,1=pipe,2=fifo", Verdict::Pass, Verdict::Fail),
            ("0=pipe,1=pipe,2=pipe", Verdict::Pass, Verdict::Pass),
            ("0=fifo,1=fifo", Verdict::Fail, Verdict::Fail),
            ("0=fifo,1=fifo,2=fifo,3=fifo", Verdict::Fail, Verdict::Fail),
            ("0=fifo,1=fifo,2=other", Verdict::Fail, Verdict::Fail),
            ("0=fifo,1=fifo,3=fifo", Verdict::Fail, Verdict::Fail),
        ] {
            let seen = [read("descriptors", value)];
            assert_eq!(judged("XP-FD", &seen, &raw(), true).verdict, own, "{value}");
            assert_eq!(
                judged("XP-FD", &seen, &raw(), false).verdict,
                shared,
                "{value}"
            );
        }
    }

    #[test]
    fn no_host_is_reachable_where_the_sentry_has_no_interface() {
        let mut seen: Vec<Observation> = Vec::new();
        for operation in catalogue::find("PR-NET-2").unwrap().operations {
            seen.push(match operation.id {
                id if id.starts_with("connect(") => denied(id, "EHOSTUNREACH"),
                "interfaces" => read("interfaces", "lo"),
                id => read(id, ""),
            });
        }
        let about = |raw: &RawFacts, own| -> Vec<String> {
            let reasons = judged("PR-NET-2", &seen, raw, own).reasons;
            reasons
                .into_iter()
                .filter(|why| why.starts_with("connect(") && why.contains("phase engine"))
                .collect()
        };
        assert!(about(&raw(), true).is_empty());
        assert_eq!(about(&raw(), false).len(), 2);
        let mut open = raw();
        open.sentry.net_dev += "  eth0: 0\n";
        assert!(about(&open, true)[0].contains("has interfaces: lo,eth0"));
        open.sentry.net_dev.clear();
        assert!(about(&open, true)[0].contains("nobody looked"));
    }

    #[test]
    fn a_limit_that_ends_the_kernel_is_not_run_into_and_not_proven() {
        let mut seen = raw();
        seen.sentry.cgroup = vec!["pids=512".into()];
        let fork = [Observation::new(Phase::Engine, "fork", State::Error)];
        let judgement = judged("XP-LIM-PIDS", &fork, &seen, true);
        assert_eq!(judgement.verdict, Verdict::Unproven);
        assert!(
            judgement.reasons[0].contains("the host read pids=512"),
            "{judgement:?}"
        );
        let allocate = [Observation::new(Phase::Engine, "allocate", State::Error)];
        let judgement = judged("XP-LIM-MEMORY", &allocate, &seen, true);
        assert!(
            judgement.reasons[0].contains("the host did not read it"),
            "{judgement:?}"
        );
        let through = [read("fork", "")];
        assert_eq!(
            judged("XP-LIM-PIDS", &through, &seen, true).verdict,
            Verdict::Fail
        );
    }

    #[test]
    fn a_closed_root_of_the_prober_itself_is_closed() {
        let seen = [
            denied("reopen(/in for writing)", "EROFS"),
            denied("open(/proc/self/root/../../etc/shadow)", "ENOENT"),
            denied("open(/proc/1/root/etc/shadow)", "EACCES"),
        ];
        assert_eq!(
            judged("XP-FS-REOPEN", &seen, &raw(), true).verdict,
            Verdict::Pass
        );
        assert_eq!(
            judged("XP-FS-REOPEN", &seen, &raw(), false).verdict,
            Verdict::Unproven
        );
        let mut unseen = raw();
        unseen.sentry = SentryFacts::default();
        for (id, seen) in [
            ("XP-FS-REOPEN", &seen[..]),
            ("XP-FD", &[read("descriptors", "0=fifo,1=fifo,2=fifo")]),
        ] {
            assert_eq!(
                judged(id, seen, &unseen, true).verdict,
                Verdict::Unproven,
                "{id}"
            );
        }
        let mut other = raw();
        other.proc_self_status = other.proc_self_status.replace("Pid:\t1", "Pid:\t2");
        assert_eq!(
            judged("XP-FS-REOPEN", &seen, &other, true).verdict,
            Verdict::Unproven
        );
    }
}
