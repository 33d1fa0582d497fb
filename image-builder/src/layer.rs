//! A file tree as one tar in a gzip file, the same bytes every time. The tar is stored in
//! there and not compressed: no digest depends on how a tool compresses, and every run
//! builds the image. A plain tar would be compressed by tools that copy the image, and
//! have another digest from then on.

use std::io;

use flate2::Crc;
use tar::{Builder, EntryType, Header};

use crate::digest;
use crate::error::ContextError;
use crate::recipe::Owner;
use crate::text::shown;
use crate::tree::{Entries, Entry, Node};

/// The latest time that fits a tar header's octal field.
pub(crate) const MAX_EPOCH: u64 = 0o777_7777_7777;

/// A layer, ready to be a blob.
#[derive(Debug)]
pub(crate) struct Layer {
    /// The gzip file.
    pub(crate) gzip: Vec<u8>,
    /// The digest of the tar in it, prefixed.
    pub(crate) diff_id: String,
}

/// Packs a tree; every entry has the same time.
pub(crate) fn pack(entries: &Entries, epoch: u64) -> Result<Layer, ContextError> {
    let mut archive = Archive::new(epoch);
    for (path, entry) in entries {
        archive.entry(path, entry).map_err(|_| {
            let why = format!("`/{}` is too long for a tar header", shown(path));
            let next = "shorten it: 255 bytes for a path, 100 for a file name or a link's target";
            ContextError::new("context.name", why, next)
        })?;
    }
    let tar = archive.finish();
    let diff_id = digest::prefixed(&digest::hex(&tar));
    let gzip = store(&tar);
    Ok(Layer { gzip, diff_id })
}

/// A gzip file (RFC 1952) without a name and without a time, of stored blocks (RFC 1951)
/// of the greatest length.
fn store(bytes: &[u8]) -> Vec<u8> {
    const UNKNOWN_SYSTEM: u8 = 255;
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4096 + 64);
    out.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, UNKNOWN_SYSTEM]);
    let mut rest = bytes;
    loop {
        let length = u16::try_from(rest.len()).unwrap_or(u16::MAX);
        let (block, others) = rest.split_at(length.into());
        out.push(others.is_empty().into());
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
        rest = others;
        if rest.is_empty() {
            break;
        }
    }
    let mut sum = Crc::new();
    sum.update(bytes);
    out.extend(sum.sum().to_le_bytes());
    // Its length modulo 2^32.
    out.extend(sum.amount().to_le_bytes());
    out
}

/// A tar whose headers hold nothing but what is put in here.
pub(crate) struct Archive {
    builder: Builder<Vec<u8>>,
    epoch: u64,
}

impl Archive {
    pub(crate) fn new(epoch: u64) -> Self {
        let builder = Builder::new(Vec::new());
        Self { builder, epoch }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let bytes = self.builder.into_inner();
        bytes.expect("writing to memory does not fail")
    }

    /// Appends an entry; the only error is a name too long for the header.
    fn entry(&mut self, path: &str, entry: &Entry) -> io::Result<()> {
        match &entry.node {
            Node::File(data) => {
                let header = header(EntryType::Regular, path)?;
                self.append(header, entry.mode, entry.owner, data)
            }
            Node::Directory => {
                let header = header(EntryType::Directory, &format!("{path}/"))?;
                self.append(header, entry.mode, entry.owner, &[])
            }
            Node::Symlink(target) => {
                let mut header = header(EntryType::Symlink, path)?;
                header.set_link_name_literal(target)?;
                self.append(header, entry.mode, entry.owner, &[])
            }
        }
    }

    /// Appends a file of root's.
    pub(crate) fn file(&mut self, path: &str, data: &[u8]) -> io::Result<()> {
        let header = header(EntryType::Regular, path)?;
        self.append(header, 0o644, Owner::default(), data)
    }

    /// Appends a directory of root's.
    pub(crate) fn directory(&mut self, path: &str) -> io::Result<()> {
        let header = header(EntryType::Directory, path)?;
        self.append(header, 0o755, Owner::default(), &[])
    }

    fn append(
        &mut self,
        mut header: Header,
        mode: u32,
        owner: Owner,
        data: &[u8],
    ) -> io::Result<()> {
        header.set_mode(mode);
        header.set_uid(owner.uid.into());
        header.set_gid(owner.gid.into());
        header.set_mtime(self.epoch);
        header.set_size(data.len() as u64);
        header.set_cksum();
        self.builder.append(&header, data)
    }
}

fn header(kind: EntryType, path: &str) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_path(path)?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::{Entries, Entry, Node, Owner, pack, store};
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn entry(node: Node) -> Entry {
        Entry {
            node,
            mode: 0o1755,
            owner: Owner {
                uid: 7,
                gid: 2_097_151,
            },
        }
    }

    #[test]
    fn headers_hold_only_what_was_put_in() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        let entries = Entries::from([
            ("a".to_owned(), entry(Node::Directory)),
            ("a/l".to_owned(), entry(Node::Symlink("../x//y".into()))),
            (long.clone(), entry(Node::File(b"data".to_vec()))),
        ]);
        let layer = pack(&entries, 42).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(&*layer.gzip));
        let mut names = Vec::new();
        for found in archive.entries().unwrap() {
            let found = found.unwrap();
            let header = found.header();
            assert_eq!(header.mtime().unwrap(), 42);
            assert_eq!(header.uid().unwrap(), 7);
            assert_eq!(header.gid().unwrap(), 2_097_151);
            assert_eq!(header.mode().unwrap(), 0o1755);
            assert_eq!(header.username(), Ok(Some("")));
            assert_eq!(header.groupname(), Ok(Some("")));
            if let Some(link) = found.link_name_bytes() {
                assert_eq!(&*link, b"../x//y");
            }
            names.push(String::from_utf8(found.path_bytes().into_owned()).unwrap());
        }
        assert_eq!(names, ["a/", "a/l", &long]);
    }

    #[test]
    fn what_is_stored_is_read_again() {
        for length in [0_usize, 1, 65_534, 65_535, 65_536, 131_070, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let stored = store(&bytes);
            let mut again = Vec::new();
            let mut decoder = GzDecoder::new(&*stored);
            decoder.read_to_end(&mut again).unwrap();
            assert!(again == bytes, "{length}");
            // Nothing follows, and each block has five bytes before it.
            assert!(decoder.into_inner().is_empty(), "{length}");
            let blocks = length.div_ceil(65_535).max(1);
            assert_eq!(stored.len(), 18 + length + 5 * blocks);
        }
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        for (path, node) in [
            ("f".repeat(101), Node::File(Vec::new())),
            (format!("{}/x", "d/".repeat(130)), Node::Directory),
            ("l".to_owned(), Node::Symlink("t".repeat(101))),
        ] {
            let error = pack(&Entries::from([(path, entry(node))]), 0).unwrap_err();
            assert_eq!(error.code, "context.name");
        }
    }
}
