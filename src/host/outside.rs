//! The outside witness: while the prober waits for its go, the host reads
//! what the kernel says about the container's first process. Some of it the kernel shows to
//! root alone, or to the user whose engine it is. For others that is absent, and said to be.

use crate::host::first::{First, Marks, Named};
use crate::host::groups::group_limits;
use crate::host::proc::{bounded, descriptors, namespaces};
use crate::host::sentry::Sentry;
use crate::host::unseen::Unseen;
use crate::host::visitor;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use tki_evidence::evidence::{OutsideFacts, SentryFacts};

/// What the host saw of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// Its first process, which is the prober.
    First(OutsideFacts),
    /// The process that runs a kernel of its own for it.
    Sentry(SentryFacts),
}

impl View {
    /// Where it comes from, as evidence has it.
    pub fn source(&self) -> &'static str {
        match self {
            Self::First(_) => "the host, from /proc of the container's first process",
            Self::Sentry(_) => {
                "the host, from /proc of the process that runs the container's own kernel"
            }
        }
    }
}

/// The process behind the container that the engine names: what the host sees of it, or why
/// it could not look.
pub fn view(named: Named, marks: &Marks) -> Result<View, Unseen> {
    match First::find(named, marks) {
        Ok(first) => look(&first).map(View::First),
        // Where the kernel is not the host's, another process is in its place.
        Err(why) => match Sentry::find(named, marks) {
            Some(sentry) => look_at_sentry(&sentry).map(View::Sentry),
            None => Err(why),
        },
    }
}

/// What the host saw of the process that runs a kernel.
fn look_at_sentry(sentry: &Sentry) -> Result<SentryFacts, Unseen> {
    let proc = sentry.folder();
    let read = |name| {
        let read = bounded(&proc.join(name), MOST_TEXT);
        let text = read.map_err(|error| Unseen::Unreadable { name, error })?;
        String::from_utf8(text).map_err(|_| Unseen::NotText(name))
    };
    let mut rights = Rights {
        is_root: rustix::process::geteuid().is_root(),
        absent: Vec::new(),
    };
    let facts = SentryFacts {
        executable: sentry.executable.clone(),
        command: sentry.command.clone(),
        status: read("status")?,
        mountinfo: read("mountinfo")?,
        net_dev: read("net/dev")?,
        uid_map: read("uid_map")?,
        namespaces: rights.had(namespaces(&proc), OutsideFacts::NAMESPACES)?,
        cgroup: cgroup_limits(&read("cgroup")?),
    };
    match sentry.is_there() {
        true => Ok(facts),
        false => Err(Unseen::KernelEnded),
    }
}

/// The longest text about a process that is kept.
const MOST_TEXT: u64 = 256 * 1024;

/// What the host saw, or why it could not look.
fn look(first: &First) -> Result<OutsideFacts, Unseen> {
    let proc = first.folder();
    let read = |name| {
        let text = fs::read_to_string(proc.join(name));
        text.map_err(|error| Unseen::Unreadable { name, error })
    };
    let is_visitor_needed = visitor::is_needed();
    let mut rights = Rights {
        is_root: !is_visitor_needed,
        absent: Vec::new(),
    };
    let descriptors = || match is_visitor_needed {
        true => visitor::send(first),
        false => descriptors(&proc),
    };
    let facts = OutsideFacts {
        status: read("status")?,
        mountinfo: read("mountinfo")?,
        net_dev: read("net/dev")?,
        limits: read("limits")?,
        uid_map: read("uid_map")?,
        gid_map: read("gid_map")?,
        namespaces: rights.had(namespaces(&proc), OutsideFacts::NAMESPACES)?,
        descriptors: rights.had(descriptors(), OutsideFacts::DESCRIPTORS)?,
        cgroup: cgroup_limits(&read("cgroup")?),
        // Without a security module there is none, or nothing to read in it.
        lsm_label: read("attr/current").unwrap_or_default(),
        absent: rights.absent,
    };
    // Otherwise another process could have had its number meanwhile.
    match first.is_there() {
        true => Ok(facts),
        false => Err(Unseen::Ended),
    }
}

/// What the tool's user has no right to.
struct Rights {
    /// Root has a right to everything.
    is_root: bool,
    /// Fields that could not be read for want of a right.
    absent: Vec<String>,
}

impl Rights {
    /// What was read; nothing if there was no right to, which is then written down.
    fn had<T: Default>(&mut self, read: io::Result<T>, name: &'static str) -> Result<T, Unseen> {
        match read {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !self.is_root => {
                self.absent.push(name.to_owned());
                Ok(T::default())
            }
            read => read.map_err(|error| Unseen::Unreadable { name, error }),
        }
    }
}

/// The namespaces that this tool itself is in.
pub fn own_namespaces() -> Vec<String> {
    namespaces(Path::new("/proc/self")).unwrap_or_default()
}

/// Limits of the process's cgroup, under the names that the engine's own
/// settings have. A limit that cannot be read is left out.
fn cgroup_limits(membership: &str) -> Vec<String> {
    let limits = group_limits(membership);
    [
        ("pids", limits.pids),
        ("memory", limits.memory),
        ("cpu_quota_us", limits.cpu_quota_us),
        ("cpu_period_us", limits.cpu_period_us),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(is_root: bool) -> Rights {
        Rights {
            is_root,
            absent: Vec::new(),
        }
    }

    fn refused<T>() -> io::Result<T> {
        Err(ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn what_a_user_has_no_right_to_is_absent() {
        let mut user = rights(false);
        let namespaces: Vec<String> = user.had(refused(), "namespaces").unwrap();
        let descriptors: String = user.had(refused(), "descriptors").unwrap();
        assert!(namespaces.is_empty() && descriptors.is_empty());
        assert_eq!(user.absent, ["namespaces", "descriptors"]);
        let mut user = rights(false);
        let read = user.had(Ok("0=pipe".to_owned()), "descriptors");
        assert_eq!(read.unwrap(), "0=pipe");
        assert!(user.absent.is_empty());
    }

    #[test]
    fn nothing_else_makes_it_absent() {
        let mut user = rights(false);
        let gone = user.had::<String>(Err(ErrorKind::NotFound.into()), "descriptors");
        assert!(gone.unwrap_err().to_string().starts_with("descriptors: "));
        let other = user.had::<String>(Err(io::Error::other("not ours")), "descriptors");
        assert_eq!(other.unwrap_err().to_string(), "descriptors: not ours");
        let mut root = rights(true);
        let refused = root.had::<String>(refused(), "namespaces");
        assert!(refused.unwrap_err().to_string().starts_with("namespaces: "));
        assert!(user.absent.is_empty() && root.absent.is_empty());
    }
}
