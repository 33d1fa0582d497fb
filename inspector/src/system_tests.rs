//! The real kernel: what is no regular file is not read, and nothing is written over.

use super::*;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, process};

/// A root with /in/packet and /out, gone when dropped.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("tki-inspector-{}-{name}", process::id()));
        fs::create_dir_all(root.join("in/packet/docs")).unwrap();
        fs::create_dir_all(root.join("out")).unwrap();
        Self(root)
    }

    fn system(&self) -> System {
        let root = self.0.to_str().unwrap().to_owned();
        System {
            // A test's own memory, for as long as it runs.
            root: Box::leak(root.into_boxed_str()),
            ..System::new()
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(root: &Root, path: &str, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let mut system = root.system();
    let each = &mut |piece: &[u8]| bytes.extend_from_slice(piece);
    let count = system.read(Folder::Packet, path, most, each)?;
    assert_eq!(count, bytes.len() as u64);
    Ok(bytes)
}

fn fifo(path: &Path) {
    let made = process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_regular_file_is_read_to_its_end_and_no_further() {
    let root = Root::new("regular");
    let long = vec![7; 3 * PIECE + 1];
    fs::write(root.path("in/packet/docs/a"), &long).unwrap();
    assert_eq!(read(&root, "docs/a", long.len() as u64).unwrap(), long);
    let most = long.len() as u64 - 1;
    assert_eq!(read(&root, "docs/a", most), Err(FileError::TooLong(most)));
}

#[test]
fn links_pipes_directories_and_what_is_not_there_are_refused_without_waiting() {
    let root = Root::new("irregular");
    fs::write(root.path("secret"), "x").unwrap();
    symlink(root.path("secret"), root.path("in/packet/link")).unwrap();
    symlink(root.path("in/packet/docs"), root.path("in/packet/linked")).unwrap();
    fs::write(root.path("in/packet/docs/a"), "a").unwrap();
    fifo(&root.path("in/packet/pipe"));
    for irregular in ["link", "linked/a", "pipe", "docs", "docs/a/b"] {
        assert_eq!(
            read(&root, irregular, 9),
            Err(FileError::Irregular),
            "{irregular}"
        );
    }
    assert_eq!(read(&root, "docs/b", 9), Err(FileError::Missing));
}

#[test]
fn a_file_without_an_end_is_cut_off_where_the_packet_says_that_it_ends() {
    let root = Root::new("sparse");
    let file = fs::File::create(root.path("in/packet/huge")).unwrap();
    file.set_len(4 << 30).unwrap();
    assert_eq!(read(&root, "huge", 10), Err(FileError::TooLong(10)));
}

#[test]
fn a_report_is_a_new_file_that_can_be_read_back() {
    let root = Root::new("report");
    let mut system = root.system();
    system.write("inspection.json", b"{}").unwrap();
    assert_eq!(system.read_back("inspection.json").unwrap(), b"{}");
    const EEXIST: i32 = 17;
    let again = system.write("inspection.json", b"[]");
    assert_eq!(again, Err(FileError::Errno(EEXIST)));
    symlink(root.path("elsewhere"), root.path("out/inspection.md")).unwrap();
    assert_eq!(
        system.write("inspection.md", b"x"),
        Err(FileError::Errno(EEXIST))
    );
    assert!(!root.path("elsewhere").exists());
}
