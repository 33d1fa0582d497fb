//! Whether a launch has the settings that were attested. Entry point, name and labels are no
//! settings; what is behind /in may be another directory or volume, and the exec gate has a socket
//! of its own. Everything else must be the same.

use tki_evidence::derive;
use tki_evidence::evidence::{Evidence, OutBacking};
use tki_evidence::settings::{Bind, BindKind, Deviation, Settings, deviations};

/// What was attested of a container: what the engine said that it set, without what one container
/// alone has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common(Settings);

impl Common {
    /// Of the container of this evidence.
    pub fn attested(evidence: &Evidence) -> Self {
        Self::of(derive::without_gate(evidence))
    }

    /// Of a container that was launched under the plain profile of this digest; an exec gate may
    /// have extended that to `given`. Anything else that the engine has is no such profile.
    pub fn launched(configured: &Settings, plain: &str, given: &str) -> Self {
        let mut settings = configured.clone();
        if settings.seccomp == given {
            settings.seccomp = plain.to_owned();
        }
        Self::of(settings)
    }

    fn of(mut settings: Settings) -> Self {
        settings.binds.iter_mut().for_each(without_name);
        settings.lsm = without_categories(&settings.lsm);
        Self(settings)
    }

    /// Every setting in which the other differs from this.
    pub fn differences(&self, other: &Self) -> Vec<Deviation> {
        let mut found = deviations(&self.0, &other.0);
        // Nobody asks for a label. Here it is what was attested.
        if self.0.lsm.is_empty() && !other.0.lsm.is_empty() {
            found.push(Deviation {
                setting: "lsm".into(),
                declared: "none".into(),
                configured: other.0.lsm.clone(),
            });
        }
        found
    }
}

/// A directory of the host lies in that of its run, and /in is a volume of its run. What a volume
/// is made of stays.
fn without_name(bind: &mut Bind) {
    let is_runs_own = bind.kind == BindKind::Bind || bind.target == "/in";
    if is_runs_own && ["/in", "/out"].contains(&bind.target.as_str()) {
        bind.source.clear();
    }
}

/// SELinux gives each container categories of its own, behind the third colon of its label.
fn without_categories(label: &str) -> String {
    let parts: Vec<&str> = label.splitn(4, ':').collect();
    match parts.as_slice() {
        [user, role, kind, _] => format!("{user}:{role}:{kind}"),
        _ => label.to_owned(),
    }
}

/// What stands behind /out is made of the same, by the same party.
pub fn same_backing(attested: &OutBacking, launched: &OutBacking) -> bool {
    let party = |maker: &str| maker.split(':').next().unwrap_or_default().to_owned();
    let made_of = |backing: &OutBacking| match backing.kind.as_str() {
        "tmpfs" => backing.reason.clone(),
        // Why it is a plain directory is told in the system's words.
        _ => String::new(),
    };
    attested.kind == launched.kind
        && made_of(attested) == made_of(launched)
        && party(&attested.maker) == party(&launched.maker)
}

/// Settings that differ, in a line.
pub fn shown(different: &[Deviation]) -> String {
    let lines = different.iter().map(|one| {
        let [attested, launched] = [&one.declared, &one.configured];
        format!("{}: {attested} then, {launched} now", one.setting)
    });
    lines.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::{Limits, Profile};
    use crate::sandbox::seccomp::Seccomp;
    use crate::sandbox::settings::settings;
    use tki_evidence::settings::{Memory, Ulimit, memory};

    const PLAIN: &str = "plain";

    fn of_host(run: &str) -> Settings {
        let profile = Profile {
            seccomp: Seccomp::resolve("deny-by-default").unwrap(),
            limits: Limits::default(),
        };
        let side = |name: &str| format!("/run/tki-attest-{run}/{name}");
        let binds = vec![
            Bind::of_host(&side("in"), "/in", true),
            Bind::of_host(&side("out"), "/out", false),
        ];
        let mut settings = settings(&profile, binds, true);
        settings.seccomp = PLAIN.into();
        settings
    }

    fn with_volumes(run: &str) -> Settings {
        let size = Memory {
            bytes: 4096,
            files: 64,
        };
        Settings {
            binds: vec![
                Bind::of_engine(&format!("tki-attest-{run}"), "/in", true),
                Bind {
                    options: memory(size),
                    ..Bind::of_engine("", "/out", false)
                },
            ],
            ..of_host(run)
        }
    }

    fn differences(attested: Settings, launched: &Settings) -> Vec<String> {
        let attested = Common::of(attested);
        let launched = Common::launched(launched, PLAIN, "gated");
        let found = attested.differences(&launched);
        found.into_iter().map(|one| one.setting).collect()
    }

    #[test]
    fn another_run_of_the_same_settings_is_the_same() {
        assert!(differences(of_host("a"), &of_host("b")).is_empty());
        assert!(differences(with_volumes("a"), &with_volumes("b")).is_empty());
        let mut gated = with_volumes("b");
        gated.seccomp = "gated".into();
        assert!(differences(with_volumes("a"), &gated).is_empty());
        let labelled = |category: &str| Settings {
            lsm: format!("system_u:system_r:container_t:s0:{category}"),
            ..of_host("a")
        };
        assert!(differences(labelled("c1,c2"), &labelled("c3,c4")).is_empty());
    }

    #[test]
    fn every_other_difference_is_one() {
        type Change = fn(&mut Settings);
        let changes: [(Change, &str); 22] = [
            (|s| s.network = "host".into(), "network"),
            (|s| s.privileged = true, "privileged"),
            (|s| s.read_only_rootfs = false, "read_only_rootfs"),
            (|s| s.user = "0:0".into(), "user"),
            (|s| s.env.push("X".into()), "env"),
            (|s| s.cap_add.push("NET_ADMIN".into()), "cap_add"),
            (|s| s.cap_drop.clear(), "cap_drop"),
            (|s| s.no_new_privileges = false, "no_new_privileges"),
            (|s| s.seccomp = "unconfined".into(), "seccomp"),
            (|s| s.security_options.push("x".into()), "security_options"),
            (|s| s.system_paths_masked = false, "system_paths_masked"),
            (|s| s.lsm = "unconfined".into(), "lsm"),
            (|s| s.devices.push("/dev/kvm".into()), "devices"),
            (|s| s.pids_limit += 1, "pids_limit"),
            (|s| s.memory_bytes += 1, "memory_bytes"),
            (|s| s.cpu_quota_us += 1, "cpu_quota_us"),
            (|s| s.tmpfs[0].options.push_str(",exec"), "tmpfs"),
            (
                |s| {
                    s.ulimits.push(Ulimit {
                        name: "as".into(),
                        soft: 1,
                        hard: 1,
                    });
                },
                "ulimits",
            ),
            (|s| s.binds[0].read_only = false, "binds"),
            (
                |s| s.binds[1].options = "type=tmpfs,device=tmpfs".into(),
                "binds",
            ),
            (|s| s.binds[1].source = "/srv".into(), "binds"),
            (|s| s.binds.push(Bind::of_host("/", "/host", true)), "binds"),
        ];
        for (change, setting) in changes {
            let mut launched = with_volumes("b");
            change(&mut launched);
            assert_eq!(differences(with_volumes("a"), &launched), [setting]);
        }
        // A volume in place of a directory is another thing.
        assert_eq!(differences(of_host("a"), &with_volumes("a")), ["binds"]);
        // A profile that neither was asked for nor comes of the gate.
        let mut other = of_host("b");
        other.seccomp = "other".into();
        assert_eq!(differences(of_host("a"), &other), ["seccomp"]);
        let labelled = Settings {
            lsm: "docker-default".into(),
            ..of_host("a")
        };
        assert_eq!(differences(labelled, &of_host("b")), ["lsm"]);
    }

    #[test]
    fn the_size_of_out_and_who_made_it_count() {
        let backing = |kind: &str, reason: &str, maker: &str| OutBacking {
            kind: kind.into(),
            reason: reason.into(),
            maker: maker.into(),
        };
        let own = backing("tmpfs", "noexec,size=1", "launcher: x");
        assert!(same_backing(
            &own,
            &backing("tmpfs", "noexec,size=1", "launcher: y")
        ));
        for other in [
            backing("directory", "noexec,size=1", "launcher: x"),
            backing("tmpfs", "noexec,size=2", "launcher: x"),
            backing("tmpfs", "noexec,size=1", "engine"),
        ] {
            assert!(!same_backing(&own, &other), "{other:?}");
        }
        let plain = |why: &str| backing("directory", why, "launcher");
        assert!(same_backing(&plain("EPERM"), &plain("EACCES")));
    }
}
