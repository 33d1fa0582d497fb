//! What the host has and the container must not see. Everything here goes with
//! this process: nothing is left behind, whatever happens to it.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use tki_evidence::wire::{ENV_CANARY, abstract_canary};

/// Canaries of a run.
#[derive(Debug)]
pub struct Canaries {
    /// A file of the host: this executable, which is there anyway.
    pub file: PathBuf,
    /// The name of an environment variable that only a control sets.
    pub variable: String,
    _socket: Option<UnixListener>,
    _memory: Option<SharedMemory>,
}

impl Canaries {
    /// Puts them out, under names that hold `random`.
    pub fn new(random: &str) -> Self {
        let variable = format!("{ENV_CANARY}{random}");
        let name = abstract_canary(&variable).unwrap_or_default();
        let socket = SocketAddr::from_abstract_name(name.as_bytes())
            .and_then(|address| UnixListener::bind_addr(&address));
        Self {
            file: std::env::current_exe().unwrap_or_default(),
            variable,
            _socket: socket.ok(),
            _memory: SharedMemory::new(),
        }
    }
}

/// A System V segment that is listed until this process ends.
#[derive(Debug)]
struct SharedMemory;

impl SharedMemory {
    fn new() -> Option<Self> {
        // SAFETY: a new private segment of one page; the attached page is never
        // touched, and marking it removed only ends its listing when this
        // process does.
        unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600);
            if id < 0 {
                return None;
            }
            let attached = libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY);
            libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
            (attached as isize != -1).then_some(Self)
        }
    }
}
