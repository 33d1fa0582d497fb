//! What `/proc` says of a process.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Kinds of namespaces.
const KINDS: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// A text about a process, which may be as long as that process likes.
pub fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?
        .take(most + 1)
        .read_to_end(&mut text)?;
    match text.len() as u64 > most {
        true => Err(io::Error::other("too long")),
        false => Ok(text),
    }
}

/// The namespaces that a process is in.
pub fn namespaces(proc: &Path) -> io::Result<Vec<String>> {
    let links = KINDS.iter().filter_map(|kind| {
        let path = proc.join("ns").join(kind);
        match fs::read_link(&path) {
            Ok(target) => Some(Ok(target.to_string_lossy().into_owned())),
            // Older kernels lack some kinds.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(Err(error)),
        }
    });
    links.collect()
}

/// What a process holds open, in one line.
pub fn descriptors(proc: &Path) -> io::Result<String> {
    let mut found: Vec<(u32, String)> = Vec::new();
    for entry in fs::read_dir(proc.join("fd"))?.flatten() {
        let number = entry
            .file_name()
            .to_string_lossy()
            .parse()
            .unwrap_or(u32::MAX);
        let target = match fs::read_link(entry.path()) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            target => target.unwrap_or_default(),
        };
        let target = target.to_string_lossy();
        let kind = target.split(':').next().unwrap_or_default();
        let kind = if kind.starts_with('/') {
            &*target
        } else {
            kind
        };
        found.push((number, format!("{number}={kind}")));
    }
    found.sort();
    let words: Vec<String> = found.into_iter().map(|(_, word)| word).collect();
    Ok(words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sees_what_is_ones_own() {
        let own = Path::new("/proc/self");
        assert!(namespaces(own).unwrap().len() > 5);
        assert!(descriptors(own).unwrap().contains("0="));
    }
}
