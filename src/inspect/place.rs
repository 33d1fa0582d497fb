//! Whether evidence is of this host and of this engine: what it recorded of both, compared with a
//! fresh look.

use tki_evidence::evidence::{Evidence, Runtime, VenueFacts};
use tki_evidence::venue::is_here;
use tki_text::printable;

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of what.
    pub what: &'static str,
    /// What the evidence says.
    pub attested: String,
    /// What is seen now.
    pub now: String,
}

/// Why evidence is not of this place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Elsewhere {
    /// It is of another host, another engine, or of before the last boot.
    #[error("{}", shown(.0))]
    Differs(Vec<Difference>),
    /// Nothing by which a host is known stands in it.
    #[error("it has neither the machine's id nor that of its boot")]
    Nameless,
}

fn shown(differences: &[Difference]) -> String {
    let lines = differences.iter().map(|one| {
        let [attested, now] = [&one.attested, &one.now].map(|text| match text.as_str() {
            "" => "nothing".to_owned(),
            text => printable(text, 100),
        });
        format!("{}: {attested} then, {now} now", one.what)
    });
    lines.collect::<Vec<String>>().join("; ")
}

/// Compares. Which OCI runtime an engine uses is known once there is a container.
pub fn check(evidence: &Evidence, facts: &VenueFacts, runtime: &Runtime) -> Result<(), Elsewhere> {
    compare((&evidence.venue_facts, &evidence.runtime), (facts, runtime))
}

fn compare(
    (then, was): (&VenueFacts, &Runtime),
    (facts, runtime): (&VenueFacts, &Runtime),
) -> Result<(), Elsewhere> {
    let options = |runtime: &Runtime| runtime.security_options.join(", ");
    let rights = |runtime: &Runtime| match runtime.rootless {
        true => "without root".to_owned(),
        false => "as root".to_owned(),
    };
    let rows = [
        ("the engine", was.engine.clone(), runtime.engine.clone()),
        (
            "the engine's version",
            was.engine_version.clone(),
            runtime.engine_version.clone(),
        ),
        (
            "the engine's place",
            then.engine_at.clone(),
            facts.engine_at.clone(),
        ),
        ("the engine runs", rights(was), rights(runtime)),
        ("its security options", options(was), options(runtime)),
        ("its kernel", was.kernel.clone(), runtime.kernel.clone()),
        ("its architecture", was.arch.clone(), runtime.arch.clone()),
        (
            "its control groups' version",
            was.cgroup_version.clone(),
            runtime.cgroup_version.clone(),
        ),
        (
            "its host's name",
            then.host_name.clone(),
            facts.host_name.clone(),
        ),
        (
            "the machine (HMAC of its id)",
            then.machine_id_hmac.clone(),
            facts.machine_id_hmac.clone(),
        ),
        ("the boot", then.boot_id.clone(), facts.boot_id.clone()),
    ];
    let rows = rows
        .into_iter()
        .filter(|(_, attested, now)| attested != now);
    let differences: Vec<Difference> = rows
        .map(|(what, attested, now)| Difference {
            what,
            attested,
            now,
        })
        .collect();
    if !differences.is_empty() {
        return Err(Elsewhere::Differs(differences));
    }
    // Of an engine elsewhere there is its own word alone, and the decision says so.
    let is_nameless = then.machine_id_hmac.is_empty() && then.boot_id.is_empty();
    match is_here(then) && is_nameless {
        true => Err(Elsewhere::Nameless),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::venue;
    use tki_evidence::kernel::KernelKind;

    fn runtime() -> Runtime {
        Runtime {
            engine: "docker".into(),
            engine_version: "20.10.24".into(),
            api_version: "1.41".into(),
            oci_runtime: "runc".into(),
            kernel: "6.1".into(),
            kernel_kind: KernelKind::Shared,
            arch: "x86_64".into(),
            os: "linux".into(),
            cgroup_version: "2".into(),
            rootless: false,
            security_options: vec!["name=seccomp".into()],
        }
    }

    fn facts() -> VenueFacts {
        VenueFacts {
            host_name: "vps".into(),
            machine_id_hmac: "ab".repeat(32),
            boot_id: "0000".into(),
            engine_at: tki_evidence::venue::THIS_HOST.into(),
            ..venue::unseen("x")
        }
    }

    #[test]
    fn the_same_place_is_the_same_and_every_other_is_named() {
        let same = |facts: &VenueFacts, runtime: &Runtime| {
            compare((&self::facts(), &self::runtime()), (facts, runtime))
        };
        assert_eq!(same(&facts(), &runtime()), Ok(()));
        // The runtime is compared once there is a container.
        let unknown = Runtime {
            oci_runtime: String::new(),
            ..runtime()
        };
        assert_eq!(same(&facts(), &unknown), Ok(()));
        type Change = fn(&mut VenueFacts, &mut Runtime);
        let changes: [(Change, &str); 9] = [
            (|f, _| f.machine_id_hmac = "cd".into(), "the machine"),
            (|f, _| f.boot_id = "1".into(), "the boot: 0000 then, 1 now"),
            (|f, _| f.boot_id.clear(), "the boot: 0000 then, nothing now"),
            (|f, _| f.host_name = "other".into(), "its host's name"),
            (|f, _| f.engine_at = "tcp://x".into(), "the engine's place"),
            (|_, r| r.engine = "podman".into(), "the engine: docker then"),
            (
                |_, r| r.engine_version = "27".into(),
                "the engine's version",
            ),
            (|_, r| r.kernel = "6.2".into(), "its kernel"),
            (|_, r| r.rootless = true, "the engine runs: as root then"),
        ];
        for (change, wanted) in changes {
            let (mut facts, mut runtime) = (facts(), runtime());
            change(&mut facts, &mut runtime);
            let said = same(&facts, &runtime).unwrap_err().to_string();
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
    }

    #[test]
    fn a_host_that_nothing_names_is_no_host() {
        let nameless = VenueFacts {
            machine_id_hmac: String::new(),
            boot_id: String::new(),
            ..facts()
        };
        let found = compare((&nameless, &runtime()), (&nameless, &runtime()));
        assert_eq!(found, Err(Elsewhere::Nameless));
        let far = VenueFacts {
            engine_at: "ssh://operator@vps".into(),
            ..nameless
        };
        assert_eq!(compare((&far, &runtime()), (&far, &runtime())), Ok(()));
    }
}
