//! Memory that is mapped, and memory that others share.

use super::{Errno, Result, nr};
use tki_inside::call;

/// Makes shared memory that every process in this IPC namespace sees. It goes with that.
pub fn shared_memory(length: usize) -> Result {
    const IPC_PRIVATE: usize = 0;
    call!(nr::SHMGET, IPC_PRIVATE, length, 0o600)
}

/// A mapping that nothing points into yet.
#[derive(Debug)]
pub struct Mapping {
    address: usize,
    length: usize,
}

/// Memory may be written.
pub const PROT_WRITE: usize = 2;
/// Memory may be executed.
pub const PROT_EXEC: usize = 4;

impl Mapping {
    /// Maps a file, or memory of its own, readable and as asked.
    pub fn new(fd: Option<i32>, length: usize, protection: usize) -> Result<Self> {
        const PROT_READ: usize = 1;
        const MAP_PRIVATE: usize = 2;
        const MAP_ANONYMOUS: usize = 0x20;
        let flags = MAP_PRIVATE | if fd.is_none() { MAP_ANONYMOUS } else { 0 };
        let address = call!(
            nr::MMAP,
            0,
            length,
            PROT_READ | protection,
            flags,
            fd.unwrap_or(-1) as usize,
            0
        )?;
        Ok(Self { address, length })
    }

    /// Memory of its own that the 32-bit table can point to, with these words at its start.
    pub fn low(words: &[u32]) -> Result<(Self, u32)> {
        const PROT_READ: usize = 1;
        const MAP_PRIVATE_ANONYMOUS_32BIT: usize = 0x2 | 0x20 | 0x40;
        let length = 4096;
        let address = call!(
            nr::MMAP,
            0,
            length,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE_ANONYMOUS_32BIT,
            usize::MAX,
            0
        )?;
        let mapping = Self { address, length };
        let low = u32::try_from(address).map_err(|_| Errno::EINVAL)?;
        // SAFETY: a new page that nothing else points into, longer than any of these lists,
        // aligned to pages.
        unsafe {
            let start = core::ptr::with_exposed_provenance_mut::<u32>(address);
            for (place, word) in words.iter().take(length / 4).enumerate() {
                start.add(place).write(*word);
            }
        }
        Ok((mapping, low))
    }

    /// Memory of its own, every page of it in use.
    pub fn filled(length: usize) -> Result<Self> {
        const PROT_READ: usize = 1;
        const MAP_PRIVATE_ANONYMOUS_POPULATE: usize = 0x2 | 0x20 | 0x8000;
        let address = call!(
            nr::MMAP,
            0,
            length,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE_ANONYMOUS_POPULATE,
            usize::MAX,
            0
        )?;
        Ok(Self { address, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = call!(nr::MUNMAP, self.address, self.length);
    }
}
