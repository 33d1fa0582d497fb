//! Mounts in Docker's own storage. Docker that is killed while it makes a container
//! forgets what it had mounted for it. Only Docker's driver `overlay2` is known here:
//! `overlay2/<layer>/merged` for a container, `overlay2/<layer>-init/merged` for what
//! Docker puts between the image and the container.

use crate::engine::contract::LONGEST_RUN;
use crate::engine::names::is_id;
use rustix::mount::{UnmountFlags, unmount};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The file that tells the prober that it is in an image of ours.
const MARKER: &str = "tki-sandbox";

/// A file system of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number for it, which no other mount has while this one stands.
    number: u64,
    /// Its directory in the storage.
    pub name: String,
    point: PathBuf,
    /// The image's layers below it, the uppermost first.
    pub layers: Vec<PathBuf>,
}

impl Mount {
    /// One of the layers is of an image for the prober.
    fn is_probers(&self) -> bool {
        let marked = |layer: &PathBuf| {
            let marker = layer.join(MARKER).symlink_metadata();
            marker.is_ok_and(|marker| marker.is_file())
        };
        self.layers.iter().any(marked)
    }

    /// The directory of the container that it was made for.
    pub fn container(&self) -> &str {
        self.name.strip_suffix("-init").unwrap_or(&self.name)
    }

    /// Seconds since 1970 after which the run that it was made for has ended.
    pub fn removable_after(&self) -> Option<u64> {
        let made = self.point.parent()?.metadata().ok()?.modified().ok()?;
        let made = made.duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(made + LONGEST_RUN + 1)
    }

    /// Unmounts it if it still stands. What is in use stays, which is an error.
    pub fn take_away(&self, storage: &Path) -> Result<(), (PathBuf, std::io::Error)> {
        if !standing(storage).contains(self) {
            return Ok(());
        }
        // Neither by force nor lazily.
        let failed = |error: rustix::io::Errno| (self.point.clone(), error.into());
        unmount(&self.point, UnmountFlags::NOFOLLOW).map_err(failed)
    }
}

/// File systems of images for the prober that are mounted in this storage.
pub fn standing(storage: &Path) -> Vec<Mount> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = read(&table, &storage.join("overlay2"));
    found.retain(Mount::is_probers);
    found
}

/// Mounts in a directory of `overlay2` that are made as Docker makes them.
fn read(table: &str, folder: &Path) -> Vec<Mount> {
    let mounts = table.lines().filter_map(|line| mount(line, folder));
    mounts.collect()
}

/// A line of `mountinfo`; see proc(5).
fn mount(line: &str, folder: &Path) -> Option<Mount> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ');
    let number = fields.next()?.parse().ok()?;
    let root = fields.nth(2)?;
    let point = PathBuf::from(unescaped(fields.next()?)?);
    let mut fields = kind.split(' ');
    let kind = fields.next()?;
    let options = fields.nth(1)?;
    let option = |name: &str| {
        let mut values = options.split(',').filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            (key == name).then_some(value)
        });
        let value = values.next()?;
        unescaped(value).filter(|_| values.next().is_none())
    };
    if kind != "overlay" || root != "/" {
        return None;
    }
    let name = point.strip_prefix(folder).ok()?.to_str()?;
    let name = name.strip_suffix("/merged")?;
    let container = name.strip_suffix("-init");
    if !is_id(container.unwrap_or(name)) || point != folder.join(name).join("merged") {
        return None;
    }
    // Docker gives paths below its directory where whole ones would be too long.
    if folder.join(option("upperdir")?) != folder.join(name).join("diff") {
        return None;
    }
    let lower = option("lowerdir")?;
    let layers = lower
        .split(':')
        .map(|path| layer(&folder.join(path), folder));
    let mut layers: Vec<PathBuf> = layers.collect::<Option<_>>()?;
    // A container stands on what was put on the image for it.
    if container.is_none() && layers.remove(0) != folder.join(format!("{name}-init/diff")) {
        return None;
    }
    Some(Mount {
        number,
        name: name.to_owned(),
        point,
        layers,
    })
}

/// The layer that one of Docker's short names leads to: `l/NAME` is a link to
/// `../<layer>/diff`.
fn layer(path: &Path, folder: &Path) -> Option<PathBuf> {
    if path.parent()? != folder.join("l") {
        return None;
    }
    let target = std::fs::read_link(path).ok()?;
    let name = target.strip_prefix("..").ok()?.to_str()?;
    let name = name.strip_suffix("/diff")?;
    let known = is_id(name.strip_suffix("-init").unwrap_or(name));
    known.then(|| folder.join(name).join("diff"))
}

/// The kernel writes some characters as three octal digits.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (digits, after) = after.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(digits, 8).ok()?);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A storage with an image of two layers and what is put on it.
    struct Storage {
        folder: tempfile::TempDir,
        layers: [String; 3],
    }

    impl Storage {
        fn new() -> Self {
            let folder = tempfile::Builder::new()
                .prefix("with space")
                .tempdir()
                .unwrap();
            let [x, upper, lower] = ["a1", "b2", "c3"].map(|byte| byte.repeat(32));
            let layers = [format!("{x}-init"), upper, lower];
            let overlay = folder.path().join("overlay2");
            std::fs::create_dir_all(overlay.join("l")).unwrap();
            for (link, layer) in ["INIT", "UPPER", "LOWER"].iter().zip(&layers) {
                std::fs::create_dir_all(overlay.join(layer).join("diff")).unwrap();
                let target = format!("../{layer}/diff");
                std::os::unix::fs::symlink(target, overlay.join("l").join(link)).unwrap();
            }
            Self { folder, layers }
        }

        fn overlay(&self) -> PathBuf {
            self.folder.path().join("overlay2")
        }

        /// As Linux 6.1 shows it.
        fn line(&self, name: &str, lower: &[&str]) -> String {
            let overlay = self.overlay().display().to_string().replace(' ', "\\040");
            let lower: Vec<String> = lower.iter().map(|l| format!("{overlay}/l/{l}")).collect();
            format!(
                "47 44 0:40 / {overlay}/{name}/merged rw,relatime shared:3 - overlay overlay \
                 rw,lowerdir={},upperdir={overlay}/{name}/diff,workdir={overlay}/{name}/work",
                lower.join(":")
            )
        }

        fn read(&self, line: &str) -> Vec<Mount> {
            read(line, &self.overlay())
        }
    }

    #[test]
    fn what_docker_mounts_is_read_with_the_layers_of_its_image() {
        let storage = Storage::new();
        let init = storage.layers[0].as_str();
        let x = init.strip_suffix("-init").unwrap();
        let image = &storage.layers[1..];
        let image: Vec<PathBuf> = image
            .iter()
            .map(|l| storage.overlay().join(l).join("diff"))
            .collect();
        for (name, lower) in [
            (init, &["UPPER", "LOWER"][..]),
            (x, &["INIT", "UPPER", "LOWER"]),
        ] {
            let found = storage.read(&storage.line(name, lower));
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!((found[0].number, found[0].name.as_str()), (47, name));
            assert_eq!((found[0].container(), &found[0].layers), (x, &image));
            assert!(!found[0].is_probers());
            assert!(found[0].removable_after().is_none() == (name == x));
        }
        // Paths below the directory, as for images with many layers.
        let overlay = storage
            .overlay()
            .display()
            .to_string()
            .replace(' ', "\\040");
        let line = storage.line(init, &["UPPER"]);
        let short = line.replace(&format!("={overlay}/"), "=");
        assert_eq!(storage.read(&short), storage.read(&line));
        let found = storage.read(&line).remove(0);
        std::fs::create_dir(image[0].join(MARKER)).unwrap();
        assert!(!found.is_probers());
        std::fs::remove_dir(image[0].join(MARKER)).unwrap();
        std::fs::write(image[0].join(MARKER), "").unwrap();
        assert!(found.is_probers());
    }

    #[test]
    fn any_other_mount_is_left_alone() {
        let storage = Storage::new();
        let init = storage.layers[0].as_str();
        let x = init.strip_suffix("-init").unwrap();
        let good = storage.line(init, &["UPPER"]);
        assert_eq!(storage.read(&good).len(), 1);
        let y = "d4".repeat(32);
        for line in [
            // On something else than Docker says, or on what leads nowhere.
            storage.line(x, &["UPPER", "LOWER"]),
            storage.line(&y, &["INIT", "UPPER"]),
            storage.line(init, &["GONE"]),
            storage.line(init, &["..", "UPPER"]),
            storage.line(init, &["UPPER/x"]),
            storage.line("short", &["UPPER"]),
            storage.line(&format!("{x}/y"), &["UPPER"]),
            good.replace("overlay overlay", "tmpfs overlay"),
            good.replace("0:40 /", "0:40 /in"),
            good.replace("/merged", "/merged/etc"),
            good.replace("upperdir=", "upperdir=/srv,x="),
            good.replace("upperdir=", "upperdir=x,upperdir="),
            good.replace("lowerdir=", "lowerdir=/srv:"),
            good.replace("lowerdir=", "lower="),
            good.replace("\\040", "\\04"),
            good.replace("\\040", "\\999"),
            good.replace("47 44", "x 44"),
            good.replace(" - ", " "),
            String::new(),
        ] {
            assert_eq!(storage.read(&line), [], "{line}");
        }
        assert_eq!(read(&good, Path::new("/var/lib/docker/overlay2")), []);
        assert_eq!(standing(storage.folder.path()), []);
    }

    /// The mount is another one by now, or none.
    #[test]
    fn what_does_not_stand_any_more_is_not_unmounted() {
        let storage = Storage::new();
        let line = storage.line(&storage.layers[0], &["UPPER"]);
        let found = storage.read(&line).remove(0);
        assert!(found.take_away(storage.folder.path()).is_ok());
    }
}
