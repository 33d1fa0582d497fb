//! The system calls that both programs need, and nothing else: files, the clock, the end, a
//! filter of their own. One thin function each; errors are errnos.

use core::arch::asm;
use core::ffi::CStr;

mod held;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the programs inside know the system calls of x86-64 Linux only");

/// An errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The errnos that the code compares with.
impl Errno {
    /// Operation not permitted.
    pub const EPERM: Errno = Errno(1);
    /// A symlink where none may be.
    pub const ELOOP: Errno = Errno(40);
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(2);
    /// Another mount, or another file system.
    pub const EXDEV: Errno = Errno(18);
    /// Interrupted by a signal.
    pub const EINTR: Errno = Errno(4);
    /// Try again.
    pub const EAGAIN: Errno = Errno(11);
    /// The file is there already.
    pub const EEXIST: Errno = Errno(17);
    /// No such device, or no such file system type.
    pub const ENODEV: Errno = Errno(19);
    /// Not a directory.
    pub const ENOTDIR: Errno = Errno(20);
    /// Permission denied.
    pub const EACCES: Errno = Errno(13);
    /// The address family is not supported.
    pub const EAFNOSUPPORT: Errno = Errno(97);
    /// Invalid argument.
    pub const EINVAL: Errno = Errno(22);
    /// No such system call.
    pub const ENOSYS: Errno = Errno(38);
}

/// What a system call gives.
pub type Result<T = usize> = core::result::Result<T, Errno>;

/// Their numbers on x86-64.
#[allow(missing_docs)]
pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const GETPID: usize = 39;
    pub const FSYNC: usize = 74;
    pub const PRCTL: usize = 157;
    pub const GETDENTS64: usize = 217;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const OPENAT: usize = 257;
    pub const NEWFSTATAT: usize = 262;
    pub const READLINKAT: usize = 267;
    pub const SECCOMP: usize = 317;
}

/// Paths are looked up from where they say, or from the working directory.
pub const AT_FDCWD: usize = -100isize as usize;
/// The descriptor goes with an exec.
pub const CLOEXEC: usize = 0o2000000;

/// `open` for reading.
pub const O_RDONLY: usize = CLOEXEC;
/// `open` for writing.
pub const O_WRONLY: usize = 1 | CLOEXEC;
/// Create the file if it is missing.
pub const O_CREAT: usize = 0o100;
/// The file must not exist yet.
pub const O_EXCL: usize = 0o200;
/// Writes go to the end.
pub const O_APPEND: usize = 0o2000;
/// It must be a directory.
pub const O_DIRECTORY: usize = 0o200000;
/// Do not follow a symlink at the end.
pub const O_NOFOLLOW: usize = 0o400000;
/// Do not wait for a pipe's other end.
pub const O_NONBLOCK: usize = 0o4000;

/// Any system call. There is one instruction for it in a program, which every call reaches with
/// its number: so a test can read from the program which numbers those are.
///
/// # Safety
/// The arguments must be what the call with this number expects; pointers
/// must be valid for what the kernel does with them.
#[inline(never)]
pub unsafe fn raw(number: usize, a: [usize; 6]) -> Result {
    let result: isize;
    // SAFETY: the caller vouches for the arguments; rcx and r11 are the only
    // registers that `syscall` changes besides rax.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if (-4095..0).contains(&result) {
        Err(Errno(-result as i32))
    } else {
        Ok(result as usize)
    }
}

/// A call whose arguments are plain numbers and NUL-terminated paths, which the
/// kernel only reads: it cannot harm this process's memory.
#[macro_export]
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        let number: usize = $number;
        let mut arguments = [0usize; 6];
        let given: &[usize] = &[$($argument),*];
        arguments[..given.len()].copy_from_slice(given);
        // SAFETY: numbers, file descriptors and borrowed buffers that outlive
        // the call; see the functions around it for what each one is.
        unsafe { $crate::sys::raw(number, arguments) }
    }};
}

/// The address of a path, for the kernel.
pub fn text(path: &CStr) -> usize {
    path.as_ptr() as usize
}

/// A path as two arguments: the directory to start from, and the way from there.
pub fn at(path: &CStr) -> (usize, usize) {
    match held::start(path) {
        Some((folder, rest)) => (folder as usize, text(rest)),
        None => (AT_FDCWD, text(path)),
    }
}

/// Holds the directories open that most paths are below; from now on those are looked up
/// from there.
pub fn hold_directories() {
    const O_PATH: usize = 0o10000000;
    held::hold(|path| open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | CLOEXEC, 0));
}

/// Reads into a buffer.
pub fn read(fd: i32, buffer: &mut [u8]) -> Result {
    call!(
        nr::READ,
        fd as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len()
    )
}

/// Writes a buffer, perhaps not all of it.
pub fn write(fd: i32, buffer: &[u8]) -> Result {
    call!(
        nr::WRITE,
        fd as usize,
        buffer.as_ptr() as usize,
        buffer.len()
    )
}

/// Closes a descriptor of ours.
pub fn close(fd: i32) {
    let _ = call!(nr::CLOSE, fd as usize);
}

/// Opens a file.
pub fn open(path: &CStr, flags: usize, mode: usize) -> Result<i32> {
    let (folder, path) = match held::itself(path).filter(|_| flags & O_DIRECTORY != 0) {
        Some(folder) => (folder as usize, text(c".")),
        None => at(path),
    };
    call!(nr::OPENAT, folder, path, flags, mode).map(|fd| fd as i32)
}

/// Opens a file from a directory that is open. The name is one of a file in it, and no path.
pub fn open_in(folder: i32, name: &CStr, flags: usize, mode: usize) -> Result<i32> {
    call!(nr::OPENAT, folder as usize, text(name), flags, mode).map(|fd| fd as i32)
}

/// Waits until a file is on its device.
pub fn fsync(fd: i32) -> Result {
    call!(nr::FSYNC, fd as usize)
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Type and mode.
    pub mode: u32,
    /// Length in bytes.
    pub size: usize,
    /// Major and minor number, for a device.
    pub device: u64,
    /// The file system that it is on, and its number there.
    pub identity: [u64; 2],
}

/// What is at a path, without following a symlink.
pub fn stat(path: &CStr) -> Result<Stat> {
    const AT_SYMLINK_NOFOLLOW: usize = 0x100;
    let (folder, path) = at(path);
    stat_at(folder, path, AT_SYMLINK_NOFOLLOW)
}

/// What a descriptor is of.
pub fn stat_descriptor(fd: i32) -> Result<Stat> {
    const AT_EMPTY_PATH: usize = 0x1000;
    stat_at(fd as usize, text(c""), AT_EMPTY_PATH)
}

fn stat_at(folder: usize, path: usize, flags: usize) -> Result<Stat> {
    // struct stat of x86-64 has 144 bytes: st_dev, st_ino, st_mode at 24, st_rdev at 40,
    // st_size at 48.
    let mut stat = [0u8; 144];
    call!(
        nr::NEWFSTATAT,
        folder,
        path,
        stat.as_mut_ptr() as usize,
        flags
    )?;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&stat[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    Ok(Stat {
        mode: u32::from_ne_bytes([stat[24], stat[25], stat[26], stat[27]]),
        size: word(48) as usize,
        device: word(40),
        identity: [word(0), word(8)],
    })
}

/// Where a symlink leads.
pub fn readlink(path: &CStr, buffer: &mut [u8]) -> Result {
    let (folder, path) = at(path);
    call!(
        nr::READLINKAT,
        folder,
        path,
        buffer.as_mut_ptr() as usize,
        buffer.len()
    )
}

/// Reads directory entries.
pub fn getdents(fd: i32, buffer: &mut [u8]) -> Result {
    call!(
        nr::GETDENTS64,
        fd as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len()
    )
}

/// New memory of this process's own, if there is so much address space.
pub fn map(size: usize) -> Result<*mut u8> {
    const READ_AND_WRITE: usize = 3;
    // Private, of no file, and not to be counted before it is touched.
    const OWN: usize = 0x2 | 0x20 | 0x4000;
    const NO_FILE: usize = usize::MAX;
    call!(nr::MMAP, 0, size, READ_AND_WRITE, OWN, NO_FILE, 0).map(|start| start as *mut u8)
}

/// Microseconds on a clock that only goes forward; 0 if the clock cannot be
/// read, which the conversation checks for before it relies on any deadline.
pub fn now_us() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    let mut time = [0u64; 2];
    match call!(
        nr::CLOCK_GETTIME,
        CLOCK_MONOTONIC,
        time.as_mut_ptr() as usize
    ) {
        Ok(_) => time[0] * 1_000_000 + time[1] / 1000,
        Err(_) => 0,
    }
}

/// This process's id.
pub fn getpid() -> i32 {
    call!(nr::GETPID).map_or(0, |pid| pid as i32)
}

/// Ends this process, if need be by an illegal instruction: a filter may deny
/// even this call, and process 1 ignores most signals.
pub fn exit(status: i32) -> ! {
    let _ = call!(nr::EXIT_GROUP, status as usize);
    // SAFETY: `ud2` raises SIGILL, which ends the process.
    unsafe { asm!("ud2", options(noreturn, nostack)) }
}

/// One instruction of a classic BPF program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How far to jump if the comparison holds.
    pub jump_true: u8,
    /// How far to jump if it does not.
    pub jump_false: u8,
    /// The operand.
    pub value: u32,
}

/// Puts a filter on top of those that this thread already has.
pub fn seccomp_filter(program: &[Instruction]) -> Result {
    const PR_SET_NO_NEW_PRIVS: usize = 38;
    const SECCOMP_SET_MODE_FILTER: usize = 1;
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const Instruction,
    }
    let program = Program {
        length: program.len() as u16,
        instructions: program.as_ptr(),
    };
    call!(nr::PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
    call!(
        nr::SECCOMP,
        SECCOMP_SET_MODE_FILTER,
        0,
        &raw const program as usize
    )
}
