//! The terms of a conversation: what a host of this version asks, and how an
//! prober of this version introduces and ends itself. A challenge that no run
//! sends is not a run's.

use alloc::string::{String, ToString};
use tki_evidence::evidence::Evidence;
use tki_evidence::facts;
use tki_evidence::judge::Texts;
use tki_evidence::observation::Phase;
use tki_evidence::relaxation::Relaxation;
use tki_evidence::request::is_hex_of_32_bytes;
use tki_evidence::settings::Settings;
use tki_evidence::settings::{ADDRESS_SPACE, CPU_PERIOD_US};
use tki_evidence::time::parse_rfc3339;
use tki_evidence::transcript::Heard;
use tki_evidence::wire::{Challenge, ENV_CANARY, LONGEST_RUN, Limits, PROBE_DEADLINE_MS, PROTOCOL};

/// The longest path that the kernel takes.
const MAX_PATH: usize = 4096;

/// The smallest and the largest file system that a profile can ask for behind /out.
const OUT_BYTES: core::ops::RangeInclusive<u64> = 4096..=1 << 40;

/// The most files that /out may have room for.
const OUT_FILES: u64 = 1 << 20;

/// The most by which the kernel rounds the size of a memory file system: its pages.
const MOST_PAGE: u64 = 64 * 1024;

/// Why a conversation is none that a run has.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// The challenge has a field that no host sends.
    #[error("the challenge's {field} is none that tki-attest {version} sends")]
    Challenge {
        /// The field.
        field: &'static str,
        /// The version of the host.
        version: String,
    },
    /// A limit to run into is not the one that was set.
    #[error("it was asked with another limit, {0}")]
    Limit(&'static str),
    /// The limits of /out do not fit what stood behind it.
    #[error("it was asked with another /out than a {0}")]
    OutKind(String),
    /// /out was made with another size.
    #[error("it was asked with another size of /out than was made")]
    OutMade,
    /// /out has room for another number of files.
    #[error("it was asked with another number of files in /out than it has room for")]
    OutFiles,
    /// /out has another size in the mount table.
    #[error("it was asked with another size of /out than it has")]
    OutSize,
    /// What the host accepted is not what the prober named.
    #[error("it was let off other invariants than it misses")]
    LetOff,
    /// What the prober says of itself does not fit.
    #[error("{0}")]
    Untrue(&'static str),
    /// A time in the evidence is none.
    #[error("it is not known how long the run took")]
    Times,
    /// The conversation outlasted the run.
    #[error("it took longer than the run")]
    TooLong,
}

/// Checks what was asked and how it was answered, of the run or of a control with
/// these relaxations.
pub fn check(
    evidence: &Evidence,
    challenge: &Challenge,
    heard: &Heard,
    relaxations: &[Relaxation],
    texts: &Texts,
) -> Result<(), TermsError> {
    asked(evidence, challenge)?;
    limits(evidence, &challenge.limits)?;
    greeted(evidence, challenge, heard, relaxations, texts)?;
    ended(evidence, heard)
}

/// Every field of the challenge that the evidence does not say itself.
fn asked(evidence: &Evidence, challenge: &Challenge) -> Result<(), TermsError> {
    let longest = u128::from(LONGEST_RUN) * 1000;
    let left = u128::from(challenge.overall_deadline_ms);
    let fits = [
        ("protocol", challenge.protocol == PROTOCOL),
        ("nonce", is_hex_of_32_bytes(&challenge.nonce)),
        ("phases", challenge.phases == [Phase::Engine, Phase::Locked]),
        (
            "probe_deadline_ms",
            challenge.probe_deadline_ms == PROBE_DEADLINE_MS,
        ),
        ("overall_deadline_ms", (1..=longest).contains(&left)),
        ("env_canary", is_variable(&challenge.env_canary)),
        ("host_canary", is_path(&challenge.host_canary)),
    ];
    match fits.iter().find(|(_, fits)| !fits) {
        Some((field, _)) => Err(TermsError::Challenge {
            field,
            version: evidence.tool.version.clone(),
        }),
        None => Ok(()),
    }
}

/// The name of a variable that only a control sets.
fn is_variable(name: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let random = name.strip_prefix(ENV_CANARY);
    random.is_some_and(|random| random.len() == 8 && random.bytes().all(is_hex))
}

/// An absolute path, without a way up and without anything that is not text.
fn is_path(path: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let below = path.strip_prefix('/');
    path.len() < MAX_PATH
        && !path.contains(char::is_control)
        && below.is_some_and(|below| below.split('/').all(is_plain))
}

/// The limits to run into are those that were set. One that control groups could not
/// carry is carried by a resource limit.
fn limits(evidence: &Evidence, asked: &Limits) -> Result<(), TermsError> {
    let declared = &evidence.sandbox.declared;
    let ulimit = |name: &str| {
        let found = declared.ulimits.iter().find(|limit| limit.name == name);
        found.map_or(0, |limit| limit.soft)
    };
    let pids = match declared.pids_limit {
        0 => ulimit("nproc"),
        most => most,
    };
    let memory = match declared.memory_bytes {
        0 => ulimit("as").saturating_sub(ADDRESS_SPACE),
        most => most,
    };
    let period = match declared.cpu_period_us {
        0 => CPU_PERIOD_US,
        period => period,
    };
    let is = |asked: u64, set: i64| u64::try_from(set) == Ok(asked);
    // Limits that a kernel of its own would not survive are not run into.
    let or_none = |asked: u64| asked == 0 && evidence.runtime.kernel_kind.is_own();
    let fits = [
        (
            "pids",
            is(asked.pids.into(), pids) || or_none(asked.pids.into()),
        ),
        (
            "memory_bytes",
            is(asked.memory_bytes, memory) || or_none(asked.memory_bytes),
        ),
        (
            "tmp_bytes",
            Some(asked.tmp_bytes) == of_tmp(declared, "size="),
        ),
        (
            "tmp_files",
            asked.tmp_files == of_tmp(declared, "nr_inodes=").unwrap_or(0),
        ),
        ("nofile", is(asked.nofile.into(), ulimit("nofile"))),
        ("cpu_period_us", is(asked.cpu_period_us.into(), period)),
        (
            "cpu_quota_us",
            is(asked.cpu_quota_us.into(), declared.cpu_quota_us),
        ),
        // A plain directory of the host has no size of its own.
        (
            "out_bytes",
            asked.out_bytes == 0 || OUT_BYTES.contains(&asked.out_bytes),
        ),
        (
            "out_files",
            (asked.out_files == 0) == (asked.out_bytes == 0) && asked.out_files <= OUT_FILES,
        ),
    ];
    match fits.iter().find(|(_, fits)| !fits) {
        Some((name, _)) => Err(TermsError::Limit(name)),
        None => Ok(()),
    }
}

/// What /tmp was asked to have.
fn of_tmp(settings: &Settings, option: &str) -> Option<u64> {
    let tmp = settings.tmpfs.iter().find(|tmpfs| tmpfs.target == "/tmp")?;
    let mut words = tmp.options.split(',');
    words.find_map(|word| word.strip_prefix(option)?.parse().ok())
}

/// The size of /out in the run's challenge is that of what stood behind it.
pub fn check_out(evidence: &Evidence, asked: &Limits) -> Result<(), TermsError> {
    let backing = &evidence.sandbox.out_backing.kind;
    if (backing == "tmpfs") != (asked.out_bytes > 0) {
        return Err(TermsError::OutKind(backing.clone()));
    }
    for (option, asked) in [("size=", asked.out_bytes), ("nr_inodes=", asked.out_files)] {
        let mut words = evidence.sandbox.out_backing.reason.split(',');
        let made = words.find_map(|word| word.strip_prefix(option));
        if backing == "tmpfs" && made != Some(asked.to_string().as_str()) {
            return Err(TermsError::OutMade);
        }
    }
    match mounted_out(&evidence.raw.mountinfo) {
        Some(Mounted {
            files: Some(files), ..
        }) if backing == "tmpfs" && files != asked.out_files => Err(TermsError::OutFiles),
        Some(Mounted { size, .. })
            if backing == "tmpfs" && size.abs_diff(asked.out_bytes) >= MOST_PAGE =>
        {
            Err(TermsError::OutSize)
        }
        _ => Ok(()),
    }
}

/// What a mount table says of /out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mounted {
    size: u64,
    files: Option<u64>,
}

/// The size of /out in a mount table, if the kernel shows one.
fn mounted_out(table: &str) -> Option<Mounted> {
    let mounts = facts::mounts(table).ok()?;
    let out = mounts.iter().rev().find(|m| m.mount_point == "/out")?;
    let word = |name: &str| {
        let mut words = out.super_options.split(',');
        words.find_map(|word| word.strip_prefix(name))
    };
    let kilobytes: u64 = word("size=")?.strip_suffix('k')?.parse().ok()?;
    Some(Mounted {
        size: kilobytes.checked_mul(1024)?,
        files: word("nr_inodes=").and_then(|files| files.parse().ok()),
    })
}

/// The prober is of the version that asked, and misses what its own texts show to
/// be missing.
fn greeted(
    evidence: &Evidence,
    challenge: &Challenge,
    heard: &Heard,
    relaxations: &[Relaxation],
    texts: &Texts,
) -> Result<(), TermsError> {
    if challenge.accept_missing != heard.hello.missing {
        return Err(TermsError::LetOff);
    }
    let later = relaxations.contains(&Relaxation::Interface);
    match heard.untrue(&evidence.tool.version, later, texts) {
        Some(why) => Err(TermsError::Untrue(why)),
        None => Ok(()),
    }
}

/// It took no longer than the run.
fn ended(evidence: &Evidence, heard: &Heard) -> Result<(), TermsError> {
    let times = parse_rfc3339(&evidence.started).zip(parse_rfc3339(&evidence.finished));
    let (started, finished) = times.ok_or(TermsError::Times)?;
    // Both are rounded down to a second.
    let most = finished.saturating_sub(started).saturating_add(1);
    let most = most.saturating_mul(1_000_000);
    if heard.elapsed_us > most {
        return Err(TermsError::TooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_have_one_form() {
        assert!(is_variable("TKI_CANARY_0123cdef"));
        for wrong in ["", "TKI_CANARY_", "TKI_CANARY_0123CDEF", "X_0123cdef"] {
            assert!(!is_variable(wrong), "{wrong}");
        }
        for path in ["/usr/bin/tki-attest", "/a b/tki-attest (deleted)"] {
            assert!(is_path(path), "{path}");
        }
        for wrong in ["", "/", "a", "/a/../b", "/a//b", "/a/", "/a\u{1b}[2J"] {
            assert!(!is_path(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_size_of_out_is_read_as_the_kernel_writes_it() {
        let line = "36 35 0:31 /out /out rw,nosuid - tmpfs tki rw,size=2048k,mode=755\n";
        let size = 2048 * 1024;
        assert_eq!(mounted_out(line), Some(Mounted { size, files: None }));
        let files = Some(256);
        let counted = line.replace("mode", "nr_inodes=256,mode");
        assert_eq!(mounted_out(&counted), Some(Mounted { size, files }));
        assert_eq!(mounted_out(&line.replace("size=2048k,", "")), None);
        assert_eq!(
            mounted_out(&line.replace("2048k", "99999999999999999999k")),
            None
        );
    }
}
