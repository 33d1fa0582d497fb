//! Shims: containerd has one for each container that Docker starts. Docker that is
//! killed while it starts a container does not know the shim any more, which then
//! waits for ever.

use crate::engine::names::is_id;
use crate::engine::recover::bundle::RuntimeBundle;
use crate::engine::recover::groups::{self, Maker};
use crate::host::held::{Held, value_of};
use crate::host::process::is_deserted;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tki_evidence::stamp::sha256_hex;

/// What a shim is called: the kernel keeps no more of the name of its program.
const PROGRAM: &str = "containerd-shim";

/// The file that a shim executes: `containerd-shim` or `containerd-shim-runc-v2`.
fn is_program(name: &str) -> bool {
    let version = name.strip_prefix(PROGRAM);
    version.is_some_and(|version| version.is_empty() || version.starts_with('-'))
}

/// How long a shim may go on by itself once its container is gone.
const GRACE: Duration = Duration::from_secs(1);

/// How long containerd may take to put away what a shim that was killed leaves.
const PUT_AWAY: Duration = Duration::from_secs(3);

/// Where shims listen, whatever else containerd was told.
const SOCKETS: &str = "/run/containerd/s";

/// A shim of a container of ours.
#[derive(Debug)]
pub struct Shim {
    process: Held,
    folder: PathBuf,
    line: Line,
    /// The container.
    pub bundle: RuntimeBundle,
}

/// What a shim's command line tells.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    container: String,
    namespace: String,
    address: String,
}

impl Shim {
    /// The shim, if this process is one, of a container of ours in this storage.
    fn of(process: Held, storage: &Path) -> Option<Self> {
        let line = Line::read(&process.command_line()?)?;
        // Its working directory is the bundle, called like the container. One that was
        // removed has no path.
        let folder = std::fs::read_link(process.folder().join("cwd")).ok()?;
        if folder.file_name()?.to_str()? != line.container {
            return None;
        }
        let bundle = RuntimeBundle::at(&folder).filter(|bundle| bundle.is_in(storage))?;
        Some(Self {
            process,
            folder,
            line,
            bundle,
        })
    }

    /// The container's id.
    pub fn id(&self) -> &str {
        &self.line.container
    }

    /// Ends it, and what it has started. containerd then puts away what there is
    /// about the container; if it does not know the shim either, a socket stays.
    fn end(self) {
        let children = self.process.children(|_| true);
        self.process.end_with(children);
        let until = Instant::now() + PUT_AWAY;
        while self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let socket = self.line.socket();
        if is_deserted(&socket) {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Shims of containers of ours in this storage.
pub fn ours(storage: &Path) -> Vec<Shim> {
    let shims = Held::parts(PROGRAM, is_program);
    shims
        .filter_map(|process| Shim::of(process, storage))
        .collect()
}

/// Those of them that are nobody's: their container is not listed, and they do not
/// end by themselves.
pub fn unlisted(mut shims: Vec<Shim>, listed: &[String]) -> Vec<Shim> {
    shims.retain(|shim| !listed.iter().any(|id| id == shim.id()));
    let until = Instant::now() + GRACE;
    shims.retain(|shim| !shim.process.has_ended_by(until));
    shims
}

/// Ends what is left of a container of ours that Docker has removed, or does not
/// know.
pub fn end(id: &str, storage: &Path) {
    let mut shims = ours(storage);
    shims.retain(|shim| shim.id() == id);
    let stray = unlisted(shims, &[]);
    if stray.is_empty() {
        return;
    }
    for shim in stray {
        shim.end();
    }
    groups::take_away(Maker::Docker, id);
}

impl Line {
    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let words: Vec<&str> = line.split_terminator('\0').collect();
        // It is also executed to start a shim and to put away what one leaves,
        // which it soon has done.
        if words.iter().any(|word| ["start", "delete"].contains(word)) {
            return None;
        }
        let value = |option| value_of(&words, option).map(str::to_owned);
        Some(Self {
            container: value("-id").filter(|id| is_id(id))?,
            namespace: value("-namespace")?,
            address: value("-address")?,
        })
    }

    /// Where it listens: containerd chooses the name so.
    fn socket(&self) -> PathBuf {
        let Self {
            container,
            namespace,
            address,
        } = self;
        let name = format!("{address}/{namespace}/{container}");
        Path::new(SOCKETS).join(sha256_hex(name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Option<Line> {
        let text: String = words.iter().map(|word| format!("{word}\0")).collect();
        Line::read(text.as_bytes())
    }

    #[test]
    fn a_shim_is_known_by_its_words_and_its_socket_by_them() {
        let id = "8fcf828464e2b55d1ce9e89fadad6b876a3ee1d093be140d4e3678acf3441507";
        let program = "/usr/bin/containerd-shim-runc-v2";
        let address = "/tmp/dkx-fgyorlov/exec/containerd/containerd.sock";
        let words = [
            program,
            "-namespace",
            "tki-test",
            "-id",
            id,
            "-address",
            address,
        ];
        let found = line(&words).unwrap();
        assert_eq!(found.container, id);
        // As containerd 1.6 has named it.
        let name = "1a7c562907ce5a01f30572c56229e9fe21c67f2f4ee87f993953c6e0a894b8de";
        assert_eq!(found.socket(), Path::new(SOCKETS).join(name));
        for action in ["start", "delete"] {
            assert_eq!(line(&[&words[..], &[action]].concat()), None);
        }
        for wrong in ["", "--all", "..", &id[1..], &id.to_uppercase()] {
            let words = words.map(|word| if word == id { wrong } else { word });
            assert_eq!(line(&words), None, "{wrong}");
        }
        assert_eq!(line(&[&words[..], &["-id", id]].concat()), None);
        assert_eq!(line(&words[..5]), None);
        assert_eq!(line(&words[..6]), None);
        assert_eq!(Line::read(b"\xff"), None);
        assert_eq!(Line::read(b""), None);
    }

    /// Nothing of another engine is found, and an id that nobody has ends nothing.
    #[test]
    fn another_engines_storage_holds_no_shim_of_ours() {
        let storage = Path::new("/nowhere");
        assert!(ours(storage).is_empty());
        end(&"ab".repeat(32), storage);
        end("", storage);
    }
}
