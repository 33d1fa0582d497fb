//! The sandbox profile: everything in it that is a choice. What is not a choice
//! (no network, read-only root, no capabilities, …) is not a field, so no file
//! and no flag can turn it off.

use crate::failure::Failure;
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
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Self::read_chosen(path).map(|(limits, _)| limits)
    }

    /// The same, with the names of those that the file sets.
    pub fn read_chosen(path: &Path) -> Result<(Self, Vec<String>), Failure> {
        let shown = path.display();
        let unreadable = |why: String| {
            Failure::usage(
                "profile.unreadable",
                format!("{shown}: {why}"),
                "give a TOML file with a [limits] table; docs/sandbox.md shows one",
            )
        };
        let bytes = crate::files::read_bounded(path, MAX_PROFILE)
            .map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8".into()))?;
        let limits = Self::parse(&text).map_err(unreadable)?;
        Ok((limits, chosen(&text)))
    }

    /// The limits in the text of a profile file, or what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| line_and_column(text, span.start));
            let (line, column) = place.unwrap_or((1, 1));
            format!("line {line}, column {column}: {}", error.message())
        })?;
        file.limits.check()?;
        Ok(file.limits)
    }

    /// Limits that are none, or that no run could keep, are refused.
    fn check(&self) -> Result<(), String> {
        let bounds = [
            ("pids", self.pids, 8, 4096),
            ("memory_bytes", self.memory_bytes, 16 << 20, 1 << 40),
            ("cpu_millis", self.cpu_millis, 10, 1_024_000),
            ("nofile", self.nofile, 16, 1 << 20),
            ("nproc", self.nproc, 8, 1 << 22),
            ("out_bytes", self.out_bytes as i64, 4096, 1 << 40),
            ("tmp_bytes", self.tmp_bytes as i64, 4096, 1 << 40),
            ("out_files", self.out_files as i64, 32, 1 << 20),
            ("tmp_files", self.tmp_files as i64, 32, 1 << 20),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(format!(
                    "limits.{name} is {value}; it must be between {least} and {most}"
                ));
            }
        }
        Ok(())
    }
}

/// The names of the limits that the text of a profile file sets.
fn chosen(text: &str) -> Vec<String> {
    let file: toml::Table = toml::from_str(text).unwrap_or_default();
    let limits = file.get("limits").and_then(toml::Value::as_table);
    limits.map_or_else(Vec::new, |limits| limits.keys().cloned().collect())
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
        Limits::read(&path).map_err(|failure| failure.message)
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
            ["nofile", "pids"]
        );
        for text in ["", "[limits]\n", "limits = 7\n", "[limits\n"] {
            assert_eq!(chosen(text), [""; 0], "{text}");
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
