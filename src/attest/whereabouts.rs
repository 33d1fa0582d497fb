//! Whether the engine is on this host. Canaries, the outside witness and most facts about
//! the venue are of this host, and mean nothing for another one.

use crate::engine::EngineFacts;
use crate::host::unseen::Unseen;
use crate::host::venue;
use std::collections::BTreeSet;
use tki_evidence::evidence::VenueFacts;
use tki_evidence::venue::{ANOTHER_MACHINE, THIS_HOST};
use tki_text::printable;

/// Where the engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// On this host, as far as can be told.
    Here,
    /// Perhaps on another one, which is as good as certainly.
    Elsewhere {
        /// How it is reached.
        at: String,
        /// Why it is taken for another machine's.
        why: Elsewhere,
    },
}

/// Why an engine is taken for another machine's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Elsewhere {
    /// It has an address.
    #[error("the engine is at {at}")]
    Reached {
        /// As a user would write it.
        at: String,
    },
    /// It names another host, or another kernel.
    #[error(
        "the engine says that it runs on {its_name} (Linux {its_kernel}), and this is {name} \
         (Linux {kernel})"
    )]
    Differs {
        /// What it calls its host.
        its_name: String,
        /// The kernel that it names.
        its_kernel: String,
        /// This host.
        name: String,
        /// This kernel.
        kernel: String,
    },
}

/// Why a container has no outside witness. Evidence repeats it.
#[derive(Debug, thiserror::Error)]
pub enum Unwitnessed {
    /// It is on another machine.
    #[error(transparent)]
    Elsewhere(#[from] Elsewhere),
    /// It is a control's.
    #[error("controls are not looked at")]
    Control,
    /// The host could not look.
    #[error(transparent)]
    Unseen(#[from] Unseen),
}

impl Whereabouts {
    /// An engine is here if it has no address or a unix socket, and what it says about its
    /// host is true of this one: a port and a socket alike may be forwarded from anywhere.
    pub fn of(facts: &EngineFacts) -> Self {
        let here = rustix::system::uname();
        let [name, kernel] = [here.nodename(), here.release()].map(|text| text.to_string_lossy());
        Self::compare(facts, &name, &kernel)
    }

    fn compare(facts: &EngineFacts, name: &str, kernel: &str) -> Self {
        if let Some(reached) = &facts.reached {
            return Self::Elsewhere {
                at: printable(reached, 300),
                why: Elsewhere::Reached {
                    at: printable(reached, 300),
                },
            };
        }
        let (its_name, its_kernel) = (&facts.host_name, &facts.runtime.kernel);
        if its_name == name && its_kernel == kernel {
            return Self::Here;
        }
        Self::Elsewhere {
            at: ANOTHER_MACHINE.into(),
            why: Elsewhere::Differs {
                its_name: printable(its_name, 64),
                its_kernel: printable(its_kernel, 64),
                name: printable(name, 64),
                kernel: printable(kernel, 64),
            },
        }
    }

    /// As evidence has it.
    pub fn shown(&self) -> &str {
        match self {
            Self::Here => THIS_HOST,
            Self::Elsewhere { at, .. } => at,
        }
    }

    /// Why it is taken for another machine's, if it is.
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        match self {
            Self::Here => None,
            Self::Elsewhere { why, .. } => Some(why),
        }
    }

    /// Looks at the engine's host: at what the engine says, and, if it is this one, at what can
    /// be seen here. What is true of this host is not said of another.
    pub fn venue(&self, engine: &EngineFacts) -> VenueFacts {
        let runtime = &engine.runtime;
        let seen = match self {
            Self::Here => venue::observe_host(),
            Self::Elsewhere { at, .. } => venue::unseen(at),
        };
        VenueFacts {
            operating_system: engine.operating_system.clone(),
            host_name: engine.host_name.clone(),
            engine: format!("{} {}", runtime.engine, runtime.engine_version),
            ..seen
        }
    }

    /// The modules that the engine's kernel has loaded, if that is this host's.
    pub fn modules(&self) -> Vec<String> {
        match self {
            Self::Here => names(&std::fs::read_to_string("/proc/modules").unwrap_or_default()),
            Self::Elsewhere { .. } => Vec::new(),
        }
    }
}

/// The names in `/proc/modules`, sorted.
fn names(modules: &str) -> Vec<String> {
    let names = modules
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::evidence::Runtime;
    use tki_evidence::kernel::KernelKind;

    #[test]
    fn modules_are_listed_by_name() {
        let text = "veth 45056 0 - Live 0x0000000000000000\nloop 40960 2 - Live 0x0\n";
        assert_eq!(names(text), ["loop", "veth"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn only_a_socket_whose_engine_agrees_is_of_this_host() {
        let facts = |reached: Option<&str>| EngineFacts {
            runtime: Runtime {
                engine: "docker".into(),
                engine_version: String::new(),
                api_version: String::new(),
                oci_runtime: String::new(),
                kernel_kind: KernelKind::Shared,
                kernel: "6.1".into(),
                arch: String::new(),
                os: String::new(),
                cgroup_version: String::new(),
                rootless: false,
                security_options: Vec::new(),
            },
            operating_system: String::new(),
            host_name: "a".into(),
            reached: reached.map(str::to_owned),
            swap_limit: false,
            cpus: 1,
            lacks: Vec::new(),
            notes: Vec::new(),
            identity: None,
        };
        let at = |reached, name, kernel| {
            let found = Whereabouts::compare(&facts(reached), name, kernel);
            assert_eq!(found.elsewhere().is_none(), found.shown() == THIS_HOST);
            found.shown().to_owned()
        };
        assert_eq!(at(None, "a", "6.1"), THIS_HOST);
        assert_eq!(at(None, "b", "6.1"), ANOTHER_MACHINE);
        assert_eq!(at(None, "a", "6.2"), ANOTHER_MACHINE);
        let port = "tcp://127.0.0.1:2375";
        assert_eq!(at(Some(port), "a", "6.1"), port);
    }
}
