use super::*;
use crate::catalogue::{CANONICAL, find};

const MOUNTS: &str = "\
1 0 0:1 / / ro,relatime - overlay overlay rw
2 1 0:2 / /proc rw,nosuid - proc proc rw
3 1 0:3 / /dev rw,nosuid - tmpfs tmpfs rw
4 1 0:4 / /sys ro - sysfs sysfs ro
5 1 8:1 /a /in ro,relatime - ext4 /dev/vda rw
6 1 0:9 / /out rw,noexec - tmpfs tmpfs rw
7 1 8:1 /h /etc/hosts ro,relatime - ext4 /dev/vda rw
";

pub(crate) fn good_raw() -> RawFacts {
    let status = |filters: u32| {
        let mut text = format!("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t{filters}\n");
        for set in crate::facts::CAPABILITY_SETS {
            text.push_str(&format!("{set}:\t0000000000000000\n"));
        }
        text
    };
    RawFacts {
        mountinfo: MOUNTS.into(),
        env_keyset: vec!["HOME".into()],
        proc_net_dev: "a\nb\n    lo: 0\n".into(),
        proc_net_route: "Iface\n".into(),
        proc_net_ipv6_route: String::new(),
        proc_self_status: status(1),
        proc_self_status_locked: status(2),
        ..RawFacts::default()
    }
}

/// Observations under which the probe passes.
pub(crate) fn good_observations(probe: &ProbeSpec) -> Vec<Observation> {
    let mut all = Vec::new();
    for phase in [Phase::Engine, Phase::Locked] {
        for operation in probe.operations {
            let mut seen = Observation::new(phase, operation.id, State::Denied);
            match operation.expect {
                Expect::Denied(errnos) => {
                    seen.returned = Some(-1);
                    seen.errno = Some(errnos[0].into());
                }
                Expect::Allowed => {
                    seen.state = State::Allowed;
                    seen.returned = Some(0);
                }
                Expect::Fact(_) => {
                    seen.state = State::Allowed;
                    seen.value = Some(match operation.id {
                        "interfaces" => "lo".into(),
                        "env-keyset" => "HOME".into(),
                        "env-canary" => "absent".into(),
                        "mount-table" => {
                            crate::facts::mount_summary(&crate::facts::mounts(MOUNTS).unwrap())
                        }
                        _ => String::new(),
                    });
                }
            }
            all.push(seen);
        }
    }
    all
}

fn verdict_of(id: &str, change: impl Fn(&mut Vec<Observation>, &mut RawFacts)) -> Verdict {
    let probe = find(id).unwrap();
    let mut observations = good_observations(probe);
    let mut raw = good_raw();
    change(&mut observations, &mut raw);
    judge(probe, &observations, &raw).verdict
}

#[test]
fn good_observations_pass() {
    for probe in CANONICAL {
        let judgement = judge(probe, &good_observations(probe), &good_raw());
        assert_eq!(judgement, Judgement::pass(), "{}", probe.id);
    }
}

#[test]
fn no_observation_is_never_a_pass() {
    for probe in CANONICAL {
        assert_eq!(
            judge(probe, &[], &good_raw()).verdict,
            Verdict::Unproven,
            "{}",
            probe.id
        );
    }
}

/// Every single operation of every probe matters, in every required phase and
/// in every way in which it can go wrong.
#[test]
fn each_operation_alone_spoils_its_probe() {
    for probe in CANONICAL {
        let good = good_observations(probe);
        for index in 0..good.len() {
            if !probe.required_phases.contains(&good[index].phase) {
                continue;
            }
            let spoil = |change: &dyn Fn(&mut Vec<Observation>)| {
                let mut observations = good.clone();
                change(&mut observations);
                judge(probe, &observations, &good_raw()).verdict
            };
            let name = (&probe.id, &good[index].operation);
            assert_eq!(
                spoil(&|all| drop(all.remove(index))),
                Verdict::Unproven,
                "{name:?} removed"
            );
            assert_eq!(
                spoil(&|all| all.push(good[index].clone())),
                Verdict::Unproven,
                "{name:?} doubled"
            );
            for state in [State::NotReached, State::Error] {
                let verdict = spoil(&|all| all[index].state = state);
                assert_eq!(verdict, Verdict::Unproven, "{name:?} {state:?}");
            }
            let flipped = match good[index].state {
                State::Denied => State::Allowed,
                _ => State::Denied,
            };
            let verdict = spoil(&|all| all[index].state = flipped);
            assert_ne!(verdict, Verdict::Pass, "{name:?} flipped");
        }
    }
}

#[test]
fn the_wrong_errno_does_not_prove_the_boundary() {
    let verdict = verdict_of("PR-FS-RO-IN", |seen, _| {
        seen[0].errno = Some("EACCES".into());
    });
    assert_eq!(verdict, Verdict::Unproven);
    let verdict = verdict_of("PR-NET-1", |seen, _| seen[0].errno = None);
    assert_eq!(verdict, Verdict::Unproven);
    let verdict = verdict_of("PR-NET-1", |seen, _| seen[0].returned = Some(3));
    assert_eq!(verdict, Verdict::Unproven);
}

#[test]
fn a_kill_by_the_filter_counts_where_eperm_does() {
    let kill = |seen: &mut Observation, signal: &str| {
        seen.errno = None;
        seen.returned = None;
        seen.signal = Some(signal.into());
    };
    let verdict = verdict_of("PR-NET-1", |seen, _| kill(&mut seen[0], "SIGSYS"));
    assert_eq!(verdict, Verdict::Pass);
    let verdict = verdict_of("PR-NET-1", |seen, _| kill(&mut seen[0], "SIGSEGV"));
    assert_eq!(verdict, Verdict::Unproven);
    let verdict = verdict_of("PR-FS-RO-IN", |seen, _| kill(&mut seen[0], "SIGSYS"));
    assert_eq!(verdict, Verdict::Unproven);
}

#[test]
fn raw_facts_overrule_readings() {
    type Change = fn(&mut RawFacts);
    let cases: &[(&str, Change, Verdict)] = &[
        (
            "PR-NET-2",
            |r| r.proc_net_dev.push_str("  eth0: 1\n"),
            Verdict::Fail,
        ),
        ("PR-NET-2", |r| r.proc_net_dev.clear(), Verdict::Fail),
        (
            "PR-NET-2",
            |r| r.proc_net_route.push_str("eth0 0\n"),
            Verdict::Fail,
        ),
        ("PR-NET-2", |r| r.proc_net_route.clear(), Verdict::Unproven),
        (
            "PR-NET-2",
            |r| r.proc_net_ipv6_route.push_str("0 eth0\n"),
            Verdict::Fail,
        ),
        (
            "PR-ENV-1",
            |r| r.env_keyset.push("TOKEN".into()),
            Verdict::Fail,
        ),
        ("PR-ENV-1", |r| r.env_keyset.clear(), Verdict::Fail),
        ("PR-MOUNT-1", |r| r.mountinfo.clear(), Verdict::Unproven),
        (
            "PR-EXEC-1",
            |r| {
                r.proc_self_status = r
                    .proc_self_status
                    .replace("NoNewPrivs:\t1", "NoNewPrivs:\t0")
            },
            Verdict::Fail,
        ),
        (
            "PR-EXEC-1",
            |r| r.proc_self_status = r.proc_self_status.replace("Seccomp:\t2", "Seccomp:\t0"),
            Verdict::Fail,
        ),
        (
            "PR-EXEC-1",
            |r| r.proc_self_status = r.proc_self_status.replace("CapEff:\t0", "CapEff:\t8"),
            Verdict::Fail,
        ),
        (
            "PR-EXEC-1",
            |r| r.proc_self_status.clear(),
            Verdict::Unproven,
        ),
        (
            "PR-EXEC-1",
            |r| r.proc_self_status_locked = r.proc_self_status.clone(),
            Verdict::Unproven,
        ),
    ];
    for (index, (probe, change, wanted)) in cases.iter().enumerate() {
        assert_eq!(
            verdict_of(probe, |_, raw| change(raw)),
            *wanted,
            "case {index}"
        );
    }
}

#[test]
fn the_mount_table_holds_two_binds_and_nothing_else() {
    let problems = |text: &str| facts::mount_table(&crate::facts::mounts(text).unwrap());
    assert!(problems(MOUNTS).is_empty());
    let with = |line: &str| problems(&format!("{MOUNTS}{line}\n"));
    for (line, wanted) in [
        (
            "9 1 8:1 /x /data ro - ext4 /dev/vda rw",
            "unexpected mount /data (ext4)",
        ),
        (
            "9 1 0:9 / /secrets ro - tmpfs tmpfs rw",
            "unexpected mount /secrets (tmpfs)",
        ),
        (
            "9 1 8:1 /x /run/docker.sock rw - tmpfs tmpfs rw",
            "unexpected mount",
        ),
        (
            "9 1 8:1 /x /in ro - ext4 /dev/vda rw",
            "/in is mounted more than once",
        ),
        (
            "9 1 8:1 /x /in/deeper ro - ext4 /dev/vda rw",
            "unexpected mount",
        ),
        (
            "9 1 8:1 /x /out/deeper rw - ext4 /dev/vda rw",
            "unexpected mount",
        ),
        (
            "9 1 8:1 /x /etc/hostname rw - ext4 /dev/vda rw",
            "/etc/hostname is writable",
        ),
        (
            "9 1 0:9 / /procx ro - proc proc rw",
            "unexpected mount /procx (proc)",
        ),
        (
            "9 1 8:1 / / ro - ext4 /dev/vda rw",
            "/ is mounted more than once",
        ),
    ] {
        let found = with(line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].contains(wanted), "{line}: {found:?}");
    }
    for (from, to, wanted) in [
        ("/ / ro", "/ / rw", "/ is writable"),
        ("/in ro", "/in rw", "/in is writable"),
        ("/out rw", "/out ro", "/out is read-only"),
        ("/out rw", "/output rw", "/out is not a mount"),
    ] {
        let found = problems(&MOUNTS.replacen(from, to, 1));
        assert!(found.iter().any(|p| p == wanted), "{to}: {found:?}");
    }
}

#[test]
fn who_enforces_exec_follows_from_the_engine_phase() {
    let probe = find("PR-EXEC-1").unwrap();
    let mut seen = good_observations(probe);
    assert_eq!(enforced_by(probe, &seen).as_deref(), Some("launcher"));
    seen[0].errno = Some("ENOENT".into());
    assert_eq!(enforced_by(probe, &seen).as_deref(), Some("inspector"));
    assert_eq!(enforced_by(find("PR-NET-1").unwrap(), &seen), None);
}
