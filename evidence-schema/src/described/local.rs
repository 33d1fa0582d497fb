//! What the local engines write down of a container: what its maker was given, what
//! the keeper set itself, and what the kernel said of it once it ran. A setting that
//! was only handed over, or promised, is read from the kernel's words, so that what
//! is reported as configured is what holds.

use super::{Described, DescribedError, bwrap, embedded, unique};
use crate::engine_kind::EngineKind;
use crate::facts;
use crate::settings::{Settings, Tmpfs, Ulimit};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole description.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `embedded` or `bwrap`.
    pub engine: String,
    /// The container's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The image's id.
    pub image: String,
    /// Its first process.
    pub pid: i32,
    /// Names of the resource limits that are meant to be there.
    pub ulimits: Vec<String>,
    /// How it was made.
    pub made: Made,
    /// What the kernel said of it; null if it was gone by then.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kernel: Option<Kernel>,
}

/// How a container was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// What its maker was given: an OCI configuration or a list of arguments.
    pub config: Value,
    /// SHA-256 (hex) of the profile that was compiled and loaded, or `unconfined`.
    pub seccomp: String,
    /// Memory file systems that the keeper mounted.
    pub tmpfs: Vec<Tmpfs>,
    /// Limits that control groups of the keeper's carry; null if its maker set them.
    #[serde(deserialize_with = "Option::deserialize")]
    pub limits: Option<Carried>,
}

/// Limits that control groups carry; 0 for one that they cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// Most processes.
    pub pids_limit: i64,
    /// Most memory, in bytes.
    pub memory_bytes: i64,
    /// Memory and swap, in bytes.
    pub memory_swap_bytes: i64,
    /// Period of the CPU quota, in microseconds.
    pub cpu_period_us: i64,
    /// CPU time in each period, in microseconds.
    pub cpu_quota_us: i64,
}

/// What the kernel says about a container's first process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// `/proc/PID/status`.
    pub status: String,
    /// `/proc/PID/limits`.
    pub limits: String,
    /// Limits of its control groups.
    pub groups: GroupLimits,
    /// Where its standard output and standard error lead; empty if nobody may see.
    pub output: Vec<String>,
}

/// Limits of the control groups of a process, in the kernel's words. What
/// cannot be read is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLimits {
    /// Processes.
    pub pids: Option<String>,
    /// Memory.
    pub memory: Option<String>,
    /// Memory and swap together.
    pub memory_swap: Option<String>,
    /// CPU time in each period.
    pub cpu_quota_us: Option<String>,
    /// The period.
    pub cpu_period_us: Option<String>,
}

/// Reads what was written down of a container of this engine's.
pub(super) fn read(engine: &str, bytes: &[u8]) -> Result<Described, DescribedError> {
    let document: Document = unique::read(bytes)?;
    if document.engine != engine {
        let (maker, engine) = (document.engine, engine.to_owned());
        return Err(DescribedError::OtherMaker { maker, engine });
    }
    described(&document)
}

/// What a description says.
pub fn described(document: &Document) -> Result<Described, DescribedError> {
    let made = &document.made;
    let (mut settings, program) = match EngineKind::find(&document.engine) {
        Some(EngineKind::Embedded) => {
            let program = made.config["process"]["args"].as_array();
            let program = words(program.map_or(&[][..], Vec::as_slice))?;
            (embedded::configured(&made.config, &made.seccomp), program)
        }
        Some(EngineKind::Bwrap) => {
            let arguments = made.config.as_array().ok_or(DescribedError::NoArguments)?;
            let arguments = words(arguments)?;
            let settings = bwrap::configured(&arguments, &made.tmpfs, &made.seccomp);
            let program = arguments.into_iter().skip_while(|word| word != "--");
            (settings, program.skip(1).collect())
        }
        _ => return Err(DescribedError::NoMaker),
    };
    if let Some(carried) = made.limits {
        carry(carried, &mut settings);
    }
    if let Some(kernel) = &document.kernel {
        read_back(kernel, &document.ulimits, &mut settings);
    }
    Ok(Described {
        settings,
        name: document.name.clone(),
        labels: document.labels.clone(),
        image_id: document.image.clone(),
        program,
        oci_runtime: None,
        pid: Some(document.pid),
    })
}

fn words(list: &[Value]) -> Result<Vec<String>, DescribedError> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let words: Option<Vec<String>> = list.iter().map(word).collect();
    words.ok_or(DescribedError::Argument)
}

/// Limits that the maker was not told of.
fn carry(carried: Carried, settings: &mut Settings) {
    settings.pids_limit = carried.pids_limit;
    settings.memory_bytes = carried.memory_bytes;
    settings.memory_swap_bytes = carried.memory_swap_bytes;
    settings.cpu_period_us = carried.cpu_period_us;
    settings.cpu_quota_us = carried.cpu_quota_us;
}

/// Replaces, in settings that were handed over, what the kernel was asked for.
fn read_back(kernel: &Kernel, ulimits: &[String], settings: &mut Settings) {
    let status = &kernel.status;
    settings.no_new_privileges = facts::status_field(status, "NoNewPrivs") == Some("1");
    settings.ulimits = rlimits(&kernel.limits, ulimits);
    let groups = &kernel.groups;
    // A limit that nobody asked for is the host's own.
    let replace = |promised: &mut i64, found: &Option<String>| {
        if *promised > 0 {
            *promised = found.as_deref().and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    };
    replace(&mut settings.pids_limit, &groups.pids);
    replace(&mut settings.memory_bytes, &groups.memory);
    replace(&mut settings.memory_swap_bytes, &groups.memory_swap);
    replace(&mut settings.cpu_quota_us, &groups.cpu_quota_us);
    replace(&mut settings.cpu_period_us, &groups.cpu_period_us);
    // Output that goes into a pipe of the tool's is written down by nobody else.
    let is_pipe = |target: &String| target.starts_with("pipe:");
    let piped = kernel.output.len() == 2 && kernel.output.iter().all(is_pipe);
    settings.log_driver = if piped { "none" } else { "unknown" }.into();
}

/// Those of the resource limits that are meant to be there, as they are. One
/// that the kernel does not have is left out.
fn rlimits(limits: &str, wanted: &[String]) -> Vec<Ulimit> {
    let found = wanted.iter().filter_map(|name| {
        let row = match name.as_str() {
            "as" => "Max address space",
            "core" => "Max core file size",
            "nofile" => "Max open files",
            "nproc" => "Max processes",
            _ => return None,
        };
        let (soft, hard) = facts::limit(limits, row)?;
        Some(Ulimit {
            name: name.clone(),
            soft: soft.parse().ok()?,
            hard: hard.parse().ok()?,
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A limit that is not there, or is another one, is not the one promised.
    #[test]
    fn only_what_the_kernel_has_is_read_back() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max core file size        0                    0                    bytes     \n\
Max processes             unlimited            unlimited            processes \n\
Max open files            64                   128                  files     \n\
Max address space         58720256             58720256             bytes     \n";
        let limit = |name: &str, soft, hard| Ulimit {
            name: name.into(),
            soft,
            hard,
        };
        let wanted = ["as", "core", "nofile", "nproc", "rss"].map(str::to_owned);
        assert_eq!(
            rlimits(text, &wanted),
            [
                limit("as", 58_720_256, 58_720_256),
                limit("core", 0, 0),
                limit("nofile", 64, 128)
            ]
        );
    }

    fn document(kernel: Option<Kernel>) -> Document {
        Document {
            engine: "bwrap".into(),
            name: "n".into(),
            labels: BTreeMap::new(),
            image: "i".into(),
            pid: 7,
            ulimits: vec!["nofile".into()],
            made: Made {
                config: serde_json::json!(["--unshare-all", "--", "/tki-prober", "probe"]),
                seccomp: "unconfined".into(),
                tmpfs: Vec::new(),
                limits: Some(Carried {
                    pids_limit: 32,
                    ..Carried::default()
                }),
            },
            kernel,
        }
    }

    /// No promise is kept that the kernel does not confirm.
    #[test]
    fn promises_that_do_not_hold_are_seen() {
        let promised = described(&document(None)).unwrap();
        assert_eq!(promised.settings.pids_limit, 32);
        assert!(promised.settings.no_new_privileges);
        assert_eq!(promised.program, ["/tki-prober", "probe"]);
        let kernel = Kernel {
            status: "NoNewPrivs:\t0\n".into(),
            limits: String::new(),
            groups: GroupLimits::default(),
            output: vec!["pipe:[1]".into(), "/var/log/x".into()],
        };
        let found = described(&document(Some(kernel))).unwrap().settings;
        assert_eq!((found.pids_limit, found.no_new_privileges), (0, false));
        assert_eq!(found.log_driver, "unknown");
    }

    #[test]
    fn another_engines_form_is_refused() {
        let text = serde_json::to_string(&document(None)).unwrap();
        assert!(read("bwrap", text.as_bytes()).is_ok());
        assert!(read("embedded", text.as_bytes()).is_err());
        let embedded = text.replace("bwrap", "embedded");
        let found = read("embedded", embedded.as_bytes()).unwrap();
        assert_eq!(found.settings.network, "host");
        for other in ["docker", "podman", "x"] {
            let said = super::super::read(other, text.as_bytes());
            assert!(
                said.is_err() || said.is_ok_and(|found| found.name.is_empty()),
                "{other}"
            );
        }
    }
}
