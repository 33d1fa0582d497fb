//! A packet on disk: the text, and beside it the files that it names.

use crate::cli::Audience;
use crate::failure::Failure;
use crate::files::replace;
use crate::packet::{Facts, Why, ci, kubernetes, operator};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A packet before it is written.
#[derive(Debug)]
pub struct Packet {
    /// The text.
    pub text: String,
    /// Files that go beside it.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// A packet that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// Where the text is.
    pub packet: PathBuf,
    /// Where its files are.
    pub files: Option<PathBuf>,
    /// The packet's id.
    pub id: String,
    /// Of the image's manifest.
    pub image_digest: String,
    /// Of the seccomp profile.
    pub seccomp_sha256: String,
    /// Of this tool.
    pub tool_sha256: String,
}

/// Where the files of a packet are: `packet.md` has `packet.files/`.
pub fn folder_of(out: &Path) -> PathBuf {
    let mut name = out.file_stem().map_or(OsString::new(), OsString::from);
    name.push(".files");
    out.with_file_name(name)
}

/// Nothing is there, or an earlier packet. A project's own pipeline is not.
fn is_free(out: &Path) -> bool {
    use std::io::Read;
    let Ok(file) = fs::File::open(out) else {
        return out.symlink_metadata().is_err();
    };
    let mut start = Vec::new();
    let read = file.take(1024).read_to_end(&mut start);
    let start = String::from_utf8_lossy(&start);
    read.is_ok()
        && ["Packet packet-", "Packet `packet-"]
            .iter()
            .any(|head| start.contains(head))
}

/// Makes and writes a packet.
pub fn write(
    audience: Audience,
    facts: &Facts,
    why: Option<&Why>,
    out: &Path,
) -> Result<Written, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::usage(
            "packet.unwritable",
            format!("{}: {error}", path.display()),
            "give a plain name in a directory that can be written to",
        )
    };
    // The name stands in command lines and in manifests.
    let plain = |c: char| c.is_alphanumeric() || "._-+ ".contains(c);
    let name = out.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(|name| name.chars().all(plain)) {
        return Err(failed(
            out,
            std::io::Error::other("it names no file of plain characters"),
        ));
    }
    if !is_free(out) {
        return Err(Failure::usage(
            "packet.exists",
            format!("{}: it is there, and is no packet", out.display()),
            "give another name: only an earlier packet is replaced",
        ));
    }
    let folder = folder_of(out);
    let shown = folder.file_name().unwrap_or_default().to_string_lossy();
    let packet = match audience {
        Audience::Operator => operator::packet(facts, why, &shown)?,
        Audience::GithubActions => ci::packet(ci::GITHUB, facts, &shown)?,
        Audience::GitlabCi => ci::packet(ci::GITLAB, facts, &shown)?,
        Audience::Kubernetes => kubernetes::packet(facts, &shown)?,
    };
    let has_files = !packet.files.is_empty();
    if has_files {
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        for (name, bytes) in &packet.files {
            let path = folder.join(name);
            replace(&path, bytes).map_err(|error| failed(&path, error))?;
        }
    }
    // The text last: where it is, everything is.
    replace(out, packet.text.as_bytes()).map_err(|error| failed(out, error))?;
    Ok(Written {
        packet: out.to_owned(),
        files: has_files.then_some(folder),
        id: facts.id.clone(),
        image_digest: facts.image.manifest_digest.clone(),
        seccomp_sha256: facts.profile.seccomp.sha256.clone(),
        tool_sha256: facts.tool.sha256.clone(),
    })
}
