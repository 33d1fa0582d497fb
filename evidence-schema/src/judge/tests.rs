use super::*;
use crate::catalogue::{FactRule, all as every_probe, find};
use crate::evidence::RawFacts;
use alloc::borrow::ToOwned;

const MOUNTS: &str = "\
1 0 0:1 / / ro,relatime - overlay overlay rw
2 1 0:2 / /proc rw,nosuid,nodev,noexec - proc proc rw
3 1 0:3 / /dev rw,nosuid - tmpfs tmpfs rw
4 1 0:4 / /sys ro,nosuid,nodev,noexec - sysfs sysfs ro
5 1 8:1 /a /in ro,nosuid,nodev,noexec - ext4 /dev/vda rw
6 1 0:9 / /out rw,nosuid,nodev,noexec - tmpfs tmpfs rw
7 1 8:1 /h /etc/hosts ro,relatime - ext4 /dev/vda rw
";

pub(crate) fn good_raw() -> RawFacts {
    let status = |filters: u32| {
        let mut text = format!(
            "Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t8\n\
             NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t{filters}\n"
        );
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
        proc_self_limits: format!("{:<26}{:<21}{:<21}bytes\n", "Max core file size", 1, 1),
        host_namespaces: vec!["net:[4026531840]".into()],
        seccomp_profile: PROFILE.into(),
        ..RawFacts::default()
    }
}

/// Observations under which the probe passes.
pub(crate) fn good_observations(probe: &ProbeSpec) -> Vec<Observation> {
    let mut all = Vec::new();
    for phase in probe.phases {
        for operation in probe.operations {
            let mut seen = Observation::new(*phase, operation.id, State::Denied);
            match operation.expect {
                Expect::Denied(proofs) if proofs[0].starts_with("SIG") => {
                    seen.signal = Some(proofs[0].into());
                }
                Expect::Denied(proofs) => {
                    seen.returned = Some(-1);
                    seen.errno = Some(proofs[0].into());
                }
                Expect::Allowed => {
                    seen.state = State::Allowed;
                    seen.returned = Some(0);
                }
                Expect::Recorded => seen.state = State::Error,
                Expect::Fact(rule) => {
                    seen.state = State::Allowed;
                    seen.value = Some(good_value(rule));
                }
            }
            all.push(seen);
        }
    }
    all
}

fn good_value(rule: FactRule) -> String {
    let mounts = crate::facts::mounts(MOUNTS).unwrap();
    match rule {
        FactRule::OnlyLoopback => "lo".into(),
        FactRule::EnvKeys => "HOME".into(),
        FactRule::CanaryAbsent => "absent".into(),
        FactRule::MountTable => crate::facts::mount_summary(&mounts),
        FactRule::MountFlags => crate::facts::flags_summary(&mounts),
        FactRule::Is(value) | FactRule::Status(_, value) => value.into(),
        FactRule::OneOf(values) => values[0].into(),
        FactRule::NotRoot => crate::facts::identity(&good_raw().proc_self_status).unwrap(),
        FactRule::FreshNamespace => "net:[4026532999]".into(),
        FactRule::ImageFiles => "/tki-inspector,/tki-prober,/tki-sandbox".into(),
        FactRule::Devices => "null,zero".into(),
        FactRule::DeviceNumbers => "null=1:3 zero=1:5".into(),
        FactRule::Refused(count) => {
            let answers: Vec<String> = (0..count).map(|n| format!("{n}=EPERM")).collect();
            answers.join(" ")
        }
        FactRule::Descriptors => "0=pipe,1=pipe,2=null".into(),
        FactRule::Sweep => good_sweep(),
        FactRule::CoreDumps => "program 1:1".into(),
        FactRule::RealTexts => crate::catalogue::TEXTS
            .iter()
            .map(|text| format!("{text}=ok"))
            .collect::<Vec<_>>()
            .join(" "),
        FactRule::Label => "none".into(),
        FactRule::NoIpv4Route | FactRule::NoIpv6Route | FactRule::NoSocketFile => String::new(),
    }
}

const PROFILE: &str = r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
    {"names":["exit_group","read","wait4","write"],"action":"SCMP_ACT_ALLOW"}]}"#;

fn good_sweep() -> String {
    let answers: Vec<String> = (0..crate::syscalls::BEYOND)
        .map(|number| match crate::syscalls::name(number) {
            Some("exit_group") => format!("{number}=exit"),
            Some("read" | "wait4" | "write") => format!("{number}=EBADF"),
            Some("pause" | "fork" | "vfork" | "sync") => format!("{number}=skipped"),
            _ => format!("{number}=EPERM"),
        })
        .collect();
    answers.join(" ")
}

fn judged(probe: &ProbeSpec, observations: &[Observation], raw: &RawFacts) -> Judgement {
    judge(probe, observations, &Texts::of_run(raw, &Sweeps::default()))
}

fn verdict_of(id: &str, change: impl Fn(&mut Vec<Observation>, &mut RawFacts)) -> Verdict {
    let probe = find(id).unwrap();
    let mut observations = good_observations(probe);
    let mut raw = good_raw();
    change(&mut observations, &mut raw);
    judged(probe, &observations, &raw).verdict
}

#[test]
fn good_observations_pass() {
    for probe in every_probe() {
        let judgement = judged(probe, &good_observations(probe), &good_raw());
        assert_eq!(judgement, Judgement::pass(), "{}", probe.id);
    }
}

#[test]
fn no_observation_is_never_a_pass() {
    for probe in every_probe() {
        assert_eq!(
            judged(probe, &[], &good_raw()).verdict,
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
    for probe in every_probe() {
        let good = good_observations(probe);
        for index in 0..good.len() {
            let spec = probe
                .operations
                .iter()
                .find(|op| op.id == good[index].operation);
            if !probe.required_phases.contains(&good[index].phase)
                || spec.unwrap().expect == Expect::Recorded
            {
                continue;
            }
            let spoil = |change: &dyn Fn(&mut Vec<Observation>)| {
                let mut observations = good.clone();
                change(&mut observations);
                judged(probe, &observations, &good_raw()).verdict
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
    fn status(raw: &mut RawFacts, from: &str, to: &str) {
        let changed = raw.proc_self_status.replace(from, to);
        assert_ne!(changed, raw.proc_self_status);
        raw.proc_self_status = changed;
    }
    let no_new_privs_off: Change = |r| status(r, "NoNewPrivs:\t1", "NoNewPrivs:\t0");
    let seccomp_off: Change = |r| status(r, "Seccomp:\t2", "Seccomp:\t0");
    let a_capability: Change = |r| status(r, "CapEff:\t0", "CapEff:\t8");
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
        ("XP-ID-NNP", no_new_privs_off, Verdict::Fail),
        ("XP-ID-SECCOMP", seccomp_off, Verdict::Fail),
        ("XP-ID-CAPS", a_capability, Verdict::Fail),
        // Each of these facts has a probe of its own, and only that one.
        ("PR-EXEC-1", no_new_privs_off, Verdict::Pass),
        ("PR-EXEC-1", seccomp_off, Verdict::Pass),
        ("PR-EXEC-1", a_capability, Verdict::Pass),
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
fn readings_that_leak_fail_and_readings_that_say_nothing_do_not_pass() {
    let cases: &[(&str, &str, Verdict)] = &[
        ("XP-NS-FRESH", "pid:[4026531836]", Verdict::Fail),
        ("XP-NS-FRESH", "net:[4026531840]", Verdict::Fail),
        (
            "XP-FS-FILES",
            "/tki-inspector,/tki-prober,/etc/shadow",
            Verdict::Fail,
        ),
        ("XP-FS-FILES", "/tki-sandbox", Verdict::Unproven),
        ("XP-FS-DEVICES", "null,sda", Verdict::Fail),
        ("XP-FD", "0=pipe,1=pipe,2=pipe,3=pipe", Verdict::Fail),
        ("XP-FD", "0=socket,1=pipe,2=pipe", Verdict::Fail),
        ("XP-FD", "0=pipe,1=pipe", Verdict::Fail),
        ("XP-FS-MASKED", "file", Verdict::Fail),
        ("XP-FAMILIES", "", Verdict::Unproven),
        ("XP-FAMILIES", "0=EPERM 1=EPERM", Verdict::Unproven),
        ("XP-FAMILIES", "0=EPERM 2=EPERM", Verdict::Unproven),
        ("XP-FAMILIES", "0=EPERM 1=EINVAL", Verdict::Fail),
        ("XP-FAMILIES", "0=EPERM 1=ok", Verdict::Fail),
        ("XP-ABI-SWEEP", "0=EBADF", Verdict::Unproven),
        ("XP-ABI-SWEEP", "", Verdict::Unproven),
        ("XP-LIM-CPU", "not throttled", Verdict::Fail),
    ];
    for (probe, value, wanted) in cases {
        let verdict = verdict_of(probe, |seen, _| seen[0].value = Some((*value).into()));
        assert_eq!(verdict, *wanted, "{probe} {value}");
    }
}

/// Namespaces are held against the host's, or against a neighbour's where those are not
/// known. A neighbour that came later may have got the same number.
#[test]
fn a_namespace_is_fresh_if_nobody_else_has_it() {
    let verdict = |host: &[&str], neighbour: &[&str]| {
        verdict_of("XP-NS-FRESH", |seen, raw| {
            for seen in seen.iter_mut().filter(|seen| seen.operation == "ns-net") {
                seen.value = Some("net:[4026532999]".into());
            }
            let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            raw.host_namespaces = list(host);
            raw.neighbour_namespaces = list(neighbour);
        })
    };
    let (own, other) = (["net:[4026532999]"], ["net:[4026532000]"]);
    assert_eq!(verdict(&[], &[]), Verdict::Unproven);
    assert_eq!(verdict(&other, &[]), Verdict::Pass);
    assert_eq!(verdict(&own, &[]), Verdict::Fail);
    assert_eq!(verdict(&[], &other), Verdict::Pass);
    assert_eq!(verdict(&[], &own), Verdict::Fail);
    assert_eq!(verdict(&other, &own), Verdict::Pass);
}

#[test]
fn the_sweep_is_held_against_floor_and_profile() {
    let with = |from: &str, to: &str| {
        verdict_of("XP-ABI-SWEEP", |seen, _| {
            let sweep = format!(" {} ", seen[0].value.as_ref().unwrap());
            assert!(sweep.contains(from), "{from}");
            seen[0].value = Some(sweep.replace(from, to).trim().into());
        })
    };
    // io_uring_setup is on the floor; getuid is only denied by the profile.
    assert_eq!(with(" 425=EPERM ", " 425=EFAULT "), Verdict::Fail);
    assert_eq!(with(" 102=EPERM ", " 102=ok "), Verdict::Fail);
    assert_eq!(with(" 425=EPERM ", " 425=ENOSYS "), Verdict::Pass);
    assert_eq!(with(" 425=EPERM ", " 425=SIGSYS "), Verdict::Pass);
    assert_eq!(with(" 425=EPERM ", " 425=skipped "), Verdict::Unproven);
    assert_eq!(with(" 425=EPERM ", " "), Verdict::Unproven);
    // Whatever came back: a profile that lets the floor through is none.
    let under = |profile: &'static str| {
        verdict_of("XP-ABI-SWEEP", move |seen, raw| {
            raw.seccomp_profile = profile.into();
            let sweep = seen[0].value.as_ref().unwrap();
            seen[0].value = Some(sweep.replace(" 102=EPERM", " 102=ok"));
        })
    };
    let open = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
    assert_eq!(under(open), Verdict::Fail);
    assert_eq!(under(crate::TARGETED_DENY), Verdict::Pass);
    assert_eq!(
        verdict_of("XP-ABI-SWEEP", |_, raw| raw.seccomp_profile = "{".into()),
        Verdict::Unproven
    );
}

#[test]
fn mounts_need_their_flags() {
    for (from, to, wanted) in [
        (
            "/out rw,nosuid,nodev,noexec",
            "/out rw,nosuid,nodev",
            Verdict::Unproven,
        ),
        ("/proc rw,nosuid,nodev,noexec", "/proc rw", Verdict::Fail),
        (
            "/dev rw,nosuid -",
            "/dev rw,nosuid shared:4 -",
            Verdict::Fail,
        ),
        // A part of /proc that a runtime has made read-only, and what only looks like one.
        (
            "3 1 0:3",
            "8 2 0:2 /sys /proc/sys ro - proc proc rw\n3 1 0:3",
            Verdict::Pass,
        ),
        (
            "3 1 0:3",
            "8 2 0:2 /sys /proc/sys rw - proc proc rw\n3 1 0:3",
            Verdict::Fail,
        ),
        (
            "3 1 0:3",
            "8 2 0:2 / /process ro - proc proc rw\n3 1 0:3",
            Verdict::Fail,
        ),
        (
            "3 1 0:3",
            "8 2 0:2 / /proc/sys ro - sysfs sysfs rw\n3 1 0:3",
            Verdict::Fail,
        ),
    ] {
        let verdict = verdict_of("XP-FS-FLAGS", |seen, raw| {
            raw.mountinfo = raw.mountinfo.replace(from, to);
            let mounts = crate::facts::mounts(&raw.mountinfo).unwrap();
            for seen in seen {
                seen.value = Some(crate::facts::flags_summary(&mounts));
            }
        });
        assert_eq!(verdict, wanted, "{to}");
    }
}

#[test]
fn who_enforces_exec_follows_from_the_engine_phase() {
    let probe = find("PR-EXEC-1").unwrap();
    let mut seen = good_observations(probe);
    assert_eq!(enforced_by(probe, &seen, true).as_deref(), Some("launcher"));
    // Something else denied it all, and nobody knows for how long.
    assert_eq!(
        enforced_by(probe, &seen, false).as_deref(),
        Some("inspector")
    );
    seen[0].errno = Some("ENOENT".into());
    assert_eq!(
        enforced_by(probe, &seen, true).as_deref(),
        Some("inspector")
    );
    assert_eq!(enforced_by(find("PR-NET-1").unwrap(), &seen, true), None);
}

fn first_value(id: &str, value: &str, change: impl Fn(&mut RawFacts)) -> Verdict {
    verdict_of(id, |seen, raw| {
        seen[0].value = Some(value.into());
        change(raw);
    })
}

#[test]
fn a_core_dump_starts_no_program() {
    let limits = |soft: &str, hard: &str| {
        let text = format!("{:<26}{soft:<21}{hard:<21}bytes\n", "Max core file size");
        move |raw: &mut RawFacts| raw.proc_self_limits.clone_from(&text)
    };
    for (kind, soft, hard, wanted) in [
        ("program", "1", "1", Verdict::Pass),
        ("socket", "1", "1", Verdict::Pass),
        ("file", "1", "1", Verdict::Pass),
        ("file", "0", "0", Verdict::Pass),
        // A limit of nothing does not stop a pipe, and one that can be raised is none.
        ("program", "0", "0", Verdict::Fail),
        ("program", "1", "unlimited", Verdict::Fail),
        ("socket", "0", "1", Verdict::Fail),
        ("file", "0", "unlimited", Verdict::Fail),
        ("file", "4", "4", Verdict::Fail),
        ("drawer", "1", "2", Verdict::Unproven),
    ] {
        let reading = format!("{kind} {soft}:{hard}");
        let verdict = first_value("XP-CORE", &reading, limits(soft, hard));
        assert_eq!(verdict, wanted, "{reading}");
        let lied = first_value("XP-CORE", &reading, limits("7", "7"));
        assert_eq!(lied, Verdict::Fail, "{reading}");
    }
}

#[test]
fn a_text_that_something_lies_over_is_found() {
    let good = good_value(FactRule::RealTexts);
    for (answer, wanted) in [
        ("ok", Verdict::Pass),
        ("ENOENT", Verdict::Pass),
        ("EXDEV", Verdict::Fail),
        ("ELOOP", Verdict::Fail),
        ("other", Verdict::Fail),
        ("ENOSYS", Verdict::Unproven),
        ("EPERM", Verdict::Unproven),
    ] {
        for text in crate::catalogue::TEXTS {
            let everywhere = ![
                "net/",
                "self/cgroup",
                "self/attr",
                "sysvipc",
                "sys/kernel/random",
            ]
            .iter()
            .any(|start| text.starts_with(start) && *text != "net/dev");
            let wanted = match answer {
                "ENOENT" if everywhere => Verdict::Unproven,
                _ => wanted,
            };
            let bad = good.replace(&format!("{text}=ok"), &format!("{text}={answer}"));
            let verdict = verdict_of("XP-FS-REALPROC", |seen, _| {
                seen[1].value = Some(bad.clone())
            });
            assert_eq!(verdict, wanted, "{text}={answer}");
        }
    }
    let fewer = good.rsplit_once(' ').unwrap().0;
    let verdict = verdict_of("XP-FS-REALPROC", |seen, _| {
        seen[1].value = Some(fewer.into())
    });
    assert_eq!(verdict, Verdict::Unproven);
}

#[test]
fn a_label_is_the_one_that_the_engine_speaks_of() {
    let probe = find("XP-ID-LSM").unwrap();
    let verdict = |given: &str, reading: &str, raw_text: &str| {
        let raw = RawFacts {
            lsm_label: raw_text.into(),
            ..good_raw()
        };
        let mut seen = good_observations(probe);
        seen[0].value = Some(reading.into());
        let sweeps = Sweeps::default();
        let mut texts = Texts::of_run(&raw, &sweeps);
        texts.label = given;
        judge(probe, &seen, &texts).verdict
    };
    let selinux = "system_u:system_r:container_t:s0:c1,c2";
    for (given, reading, raw, wanted) in [
        ("", "none", "", Verdict::Pass),
        ("", "unconfined", "unconfined\n", Verdict::Pass),
        (
            "docker-default",
            "docker-default (enforce)",
            "docker-default (enforce)\n",
            Verdict::Pass,
        ),
        (selinux, selinux, &format!("{selinux}\0"), Verdict::Pass),
        (
            "docker-default",
            "docker-default (complain)",
            "docker-default (complain)\n",
            Verdict::Fail,
        ),
        (
            "docker-default",
            "unconfined",
            "unconfined\n",
            Verdict::Fail,
        ),
        ("docker-default", "none", "", Verdict::Fail),
        (
            "docker-default",
            "docker-default (enforce)",
            "unconfined\n",
            Verdict::Fail,
        ),
    ] {
        assert_eq!(
            verdict(given, reading, raw),
            wanted,
            "{given:?} {reading:?} {raw:?}"
        );
    }
}
