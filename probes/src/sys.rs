//! Every system call that the prober can make: those that it shares with the prober
//! ([`tki_inside::sys`]), and those that it has because it must try them.

mod files;
mod memory;
mod mounts;
mod processes;
mod programs;
mod sockets;
mod tracing;

pub use files::*;
pub use memory::*;
pub use mounts::*;
pub use processes::*;
pub use programs::*;
pub use sockets::*;
pub use tki_inside::sys::*;
pub use tracing::*;

/// The numbers of its own calls on x86-64.
#[allow(missing_docs)]
pub mod nr {
    pub use tki_inside::sys::nr::*;

    pub const MMAP: usize = 9;
    pub const MUNMAP: usize = 11;
    pub const SHMGET: usize = 29;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const BIND: usize = 49;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const EXIT: usize = 60;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const TRUNCATE: usize = 76;
    pub const PTRACE: usize = 101;
    pub const FSTATFS: usize = 138;
    pub const MOUNT: usize = 165;
    pub const UMOUNT2: usize = 166;
    pub const MKDIRAT: usize = 258;
    pub const MKNODAT: usize = 259;
    pub const UNLINKAT: usize = 263;
    pub const LINKAT: usize = 265;
    pub const SYMLINKAT: usize = 266;
    pub const FCHMODAT: usize = 268;
    pub const PPOLL: usize = 271;
    pub const PIPE2: usize = 293;
    pub const PRLIMIT64: usize = 302;
    pub const PROCESS_VM_READV: usize = 310;
    pub const MEMFD_CREATE: usize = 319;
    pub const EXECVEAT: usize = 322;
    pub const OPENAT2: usize = 437;
}
