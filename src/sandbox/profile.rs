//! The sandbox profile: everything in it that is a choice. What is not a choice
//! (no network, read-only root, no capabilities, …) is not a field, so no file
//! and no flag can turn it off.

use crate::sandbox::error::SandboxError;
use crate::sandbox::limit::{Limit, LimitsError};
use crate::sandbox::seccomp::Seccomp;
use serde::Deserialize;
use std::path::Path;
use tki_evidence::settings::Memory;

/// The user inside. An id of our own: nproc limits count per uid over the whole
/// host, so it should not be one that other images use.
pub const USER: &str = "58713:58713";

/// The most bytes of a profile file.
const MAX_PROFILE: u64 = 64 * 1024;

/// What is launched, and within which limits.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The seccomp filter.
    pub seccomp: Seccomp,
    /// The limits.
    pub limits: Limits,
}

/// Resource limits. A profile file may set any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most processes in the container.
    pub pids: i64,
    /// Most memory, in bytes.
    pub memory_bytes: i64,
    /// CPU quota, in thousandths of a CPU.
    pub cpu_millis: i64,
    /// Most open files of a process.
    pub nofile: i64,
    /// Most processes of the user, over the whole host.
    pub nproc: i64,
    /// Size of the file system behind /in and /out, in bytes.
    pub out_bytes: u64,
    /// Size of /tmp, in bytes.
    pub tmp_bytes: u64,
    /// Most files, directories and links behind /in and /out.
    pub out_files: u64,
    /// Most of them in /tmp.
    pub tmp_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pids: 32,
            memory_bytes: 24 * 1024 * 1024,
            cpu_millis: 1500,
            nofile: 64,
            nproc: 4096,
            out_bytes: 2 * 1024 * 1024,
            tmp_bytes: 1024 * 1024,
            out_files: 256,
            tmp_files: 256,
        }
    }
}

/// The file's form: one table, so that other tables can follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    limits: Limits,
}

impl Limits {
    /// What the file system behind /out may hold.
    pub fn out(&self) -> Memory {
        Memory {
            bytes: self.out_bytes,
            files: self.out_files,
        }
    }

    /// Reads the limits of a profile file (TOML).
    pub fn read(path: &Path) -> Result<Self, SandboxError> {
        Self::read_chosen(path).map(|(limits, _)| limits)
    }

    /// The same, with those that the file sets.
    pub fn read_chosen(path: &Path) -> Result<(Self, Vec<Limit>), SandboxError> {
        let path = path.to_owned();
        let bytes = match crate::files::read_bounded(&path, MAX_PROFILE) {
            Ok(bytes) => bytes,
            Err(error) => return Err(SandboxError::Unreadable { path, error }),
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(SandboxError::Binary { path });
        };
        match Self::parse(&text) {
            Ok(limits) => Ok((limits, chosen(&text))),
            Err(error) => Err(SandboxError::Limits { path, error }),
        }
    }

    /// The limits in the text of a profile file, or what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, LimitsError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| line_and_column(text, span.start));
            let (line, column) = place.unwrap_or((1, 1));
            LimitsError::Form {
                line,
                column,
                message: error.message().to_owned(),
            }
        })?;
        file.limits.check()?;
        Ok(file.limits)
    }

    /// Limits that are none, or that no run could keep, are refused.
    fn check(&self) -> Result<(), LimitsError> {
        for limit in Limit::ALL {
            let (value, bounds) = (self.value(limit), limit.bounds());
            if !bounds.contains(&value) {
                let (least, most) = bounds.into_inner();
                return Err(LimitsError::Range {
                    limit,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    fn value(&self, limit: Limit) -> i64 {
        match limit {
            Limit::Pids => self.pids,
            Limit::MemoryBytes => self.memory_bytes,
            Limit::CpuMillis => self.cpu_millis,
            Limit::Nofile => self.nofile,
            Limit::Nproc => self.nproc,
            Limit::OutBytes => self.out_bytes as i64,
            Limit::TmpBytes => self.tmp_bytes as i64,
            Limit::OutFiles => self.out_files as i64,
            Limit::TmpFiles => self.tmp_files as i64,
        }
    }
}

/// The limits that the text of a profile file sets.
fn chosen(text: &str) -> Vec<Limit> {
    let file: toml::Table = toml::from_str(text).unwrap_or_default();
    let limits = file.get("limits").and_then(toml::Value::as_table);
    let sets = |limit: &Limit| limits.is_some_and(|limits| limits.contains_key(limit.name()));
    Limit::ALL.into_iter().filter(sets).collect()
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Limits, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        std::fs::write(&path, text).unwrap();
        Limits::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_sets_some_limits_and_keeps_the_others() {
        let limits = read("[limits]\nout_bytes = 4096\n").unwrap();
        assert_eq!(limits.out_bytes, 4096);
        assert_eq!(limits.pids, Limits::default().pids);
    }

    #[test]
    fn what_a_file_sets_is_known() {
        assert_eq!(
            chosen("[limits]\nnofile = 64\npids = 32\n"),
            [Limit::Pids, Limit::Nofile]
        );
        for text in ["", "[limits]\n", "limits = 7\n", "[limits\n"] {
            assert_eq!(chosen(text), [], "{text}");
        }
    }

    #[test]
    fn what_would_relax_a_boundary_has_no_name() {
        for text in [
            "[limits]\nprivileged = true\n",
            "network = \"host\"\n",
            "[limits]\npids = -1\n",
            "[limits]\npids = 0\n",
            "[limits]\nmemory_bytes = \"lots\"\n",
            "[limits\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let error = read("[limits]\n\nprivileged = true\n").unwrap_err();
        assert!(error.contains("line 3, column 1"), "{error}");
    }
}
