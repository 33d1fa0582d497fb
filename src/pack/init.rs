//! The first `claims.toml` of a directory: every file as an item, with what can be seen of it,
//! and what else can be said in comments.

use crate::clock::rfc3339;
use crate::files::{self, Folder};
use crate::pack::error::{NameProblem, PackError};
use crate::pack::form::{FILE, SCHEMA};
use crate::pack::media::{HEAD, media_type};
use crate::pack::mistake::Unfit;
use crate::pack::tree::{Kind, Tree};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tki_inspector::ids::is_id;
use tki_inspector::packet::MAX_ITEMS;
use tki_inspector::path;

/// A `claims.toml` that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Begun {
    /// It.
    pub claims: PathBuf,
    /// How many items it has.
    pub items: usize,
    /// What it does not name, because no item can be a link, a pipe, a socket or a device.
    pub left_out: Vec<String>,
}

/// What stands before the items.
const HEAD_TEXT: &str = include_str!("init-head.toml");

/// What stands after them.
const CLAIMS_TEXT: &str = include_str!("init-claims.toml");

/// How evidence of ours says what it is.
const EVIDENCE: &str = "\"tki-attest/evidence/v1\"";

/// Writes a first `claims.toml` for a directory; never in the place of one that is there.
pub fn init(folder: &Path, claims: Option<&Path>) -> Result<Begun, PackError> {
    let tree = Tree::open(folder).map_err(|source| PackError::Folder {
        path: folder.to_owned(),
        source,
    })?;
    let out = claims.map_or_else(|| folder.join(FILE), Path::to_owned);
    let exists = || PackError::Exists { path: out.clone() };
    let failed = |source| PackError::Unwritable {
        path: out.clone(),
        source,
    };
    let place = Folder::open(files::folder_of(&out)).map_err(failed)?;
    let Some(name) = out.file_name() else {
        return Err(PackError::NoName { path: out });
    };
    if place.look(name).map_err(failed)?.is_some() {
        return Err(exists());
    }
    let unfit = |path: &str, problem| PackError::File {
        path: folder.join(path),
        problem,
    };
    let listing = tree.listing("").map_err(|problem| unfit("", problem))?;
    if listing.more {
        let path = folder.to_owned();
        return Err(PackError::Many { path });
    }
    let (mut seen, mut left_out) = (Vec::new(), Vec::new());
    for found in listing.found {
        let refused = |problem| PackError::Name {
            path: folder.to_owned(),
            name: found.path.clone(),
            problem,
        };
        if found.kind == Kind::NotText {
            return Err(refused(NameProblem::NotText));
        }
        path::check(&found.path).map_err(|problem| refused(problem.into()))?;
        match found.kind {
            Kind::File => {
                let file = tree.file(&found.path);
                let looked = file.and_then(|file| Seen::of(&found.path, &file));
                seen.push(looked.map_err(|problem| unfit(&found.path, problem))?);
            }
            _ => left_out.push(found.path),
        }
    }
    let seen = without_parts(seen);
    if seen.len() > MAX_ITEMS {
        let path = folder.to_owned();
        return Err(PackError::Many { path });
    }
    let text = text(folder, &seen, &left_out);
    files::write_new_exactly(&out, text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => failed(error),
    })?;
    Ok(Begun {
        claims: out,
        items: seen.len(),
        left_out,
    })
}

/// A file that may become an item.
#[derive(Clone, Debug)]
struct Seen {
    path: String,
    media_type: &'static str,
    changed: u64,
    is_evidence: bool,
}

impl Seen {
    fn of(path: &str, file: &File) -> Result<Self, Unfit> {
        let mut head = Vec::new();
        file.take(HEAD as u64).read_to_end(&mut head)?;
        let start = String::from_utf8_lossy(&head);
        Ok(Self {
            path: path.to_owned(),
            media_type: media_type(path, &head),
            changed: u64::try_from(file.metadata()?.mtime()).unwrap_or(0),
            is_evidence: path.ends_with(".json") && start.contains(EVIDENCE),
        })
    }
}

/// Artifacts and envelopes come with the evidence that they belong to.
fn without_parts(seen: Vec<Seen>) -> Vec<Seen> {
    let stems: BTreeSet<String> = seen
        .iter()
        .filter(|seen| seen.is_evidence)
        .filter_map(|seen| seen.path.strip_suffix(".json").map(str::to_owned))
        .collect();
    let is_part = |path: &str| {
        let is_envelope = path
            .strip_suffix(".intoto.jsonl")
            .is_some_and(|stem| stems.contains(stem));
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
        is_envelope || above.any(|folder| stems.contains(folder))
    };
    let kept = seen.into_iter().filter(|seen| !is_part(&seen.path));
    kept.collect()
}

fn text(folder: &Path, seen: &[Seen], left_out: &[String]) -> String {
    let name = folder.file_name().and_then(|name| name.to_str());
    let mut ids = BTreeSet::new();
    let mut text = HEAD_TEXT
        .replace("{schema}", SCHEMA)
        .replace("{id}", &id_of(name.unwrap_or("packet"), &mut ids));
    ids.clear();
    for seen in seen {
        // The ids of a bundle's parts begin with that of the bundle.
        let like = if seen.is_evidence {
            "bundle"
        } else {
            &seen.path
        };
        let id = quoted(&id_of(like, &mut ids));
        let (path, time) = (quoted(&seen.path), rfc3339(seen.changed));
        text += &match seen.is_evidence {
            true => format!(
                "\n[[item]]\nid = {id}\nbundle = {path} # with its artifacts and its envelope\n\
                 captured_at = {time} # when the file was last changed\n"
            ),
            false => format!(
                "\n[[item]]\nid = {id}\npath = {path} # {}\ndocument_type = \"other\"\n\
                 captured_at = {time} # when the file was last changed\n",
                seen.media_type
            ),
        };
    }
    for path in left_out {
        text += &format!(
            "\n# left out, because it is no regular file: {}\n",
            quoted(path)
        );
    }
    text + CLAIMS_TEXT
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// An id that no other item has yet, like a path.
fn id_of(path: &str, taken: &mut BTreeSet<String>) -> String {
    const ROOM: usize = 58;
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '-',
    };
    let id: String = path.chars().map(plain).take(ROOM).collect();
    let id = match id.trim_start_matches(['.', '_', '-']) {
        "" => "item".to_owned(),
        id => id.to_owned(),
    };
    debug_assert!(is_id(&id));
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    let mut names = std::iter::once(id.clone()).chain(numbered);
    // There are more numbers than items.
    let free = names.find(|name| taken.insert(name.clone()));
    free.unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_like_paths_and_none_is_given_twice() {
        let mut taken = BTreeSet::new();
        let long = "ü/".repeat(200) + "x";
        for (path, wanted) in [
            ("docs/index.md", "docs-index.md"),
            ("docs-index.md", "docs-index.md-2"),
            (".hidden", "hidden"),
            ("ünï", "n-"),
            ("---", "item"),
            (long.as_str(), "item-2"),
        ] {
            let id = id_of(path, &mut taken);
            assert!(is_id(&id), "{id}");
            assert_eq!(id, wanted);
        }
    }
}
