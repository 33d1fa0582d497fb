//! Every system call that the inspector can make, and nothing else. One thin
//! function each; errors are errnos.

use alloc::vec::Vec;
use core::arch::asm;
use core::ffi::CStr;

mod held;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the inspector knows the system calls of x86-64 Linux only");

/// An errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The errnos that the code compares with.
impl Errno {
    /// Operation not permitted.
    pub const EPERM: Errno = Errno(1);
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

/// System call numbers of x86-64.
#[allow(missing_docs)]
pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const MUNMAP: usize = 11;
    pub const SHMGET: usize = 29;
    pub const EXIT: usize = 60;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const BIND: usize = 49;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const FSTATFS: usize = 138;
    pub const FSYNC: usize = 74;
    pub const TRUNCATE: usize = 76;
    pub const GETPID: usize = 39;
    pub const PTRACE: usize = 101;
    pub const PRCTL: usize = 157;
    pub const MOUNT: usize = 165;
    pub const UMOUNT2: usize = 166;
    pub const GETDENTS64: usize = 217;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const OPENAT: usize = 257;
    pub const MKDIRAT: usize = 258;
    pub const MKNODAT: usize = 259;
    pub const NEWFSTATAT: usize = 262;
    pub const UNLINKAT: usize = 263;
    pub const LINKAT: usize = 265;
    pub const SYMLINKAT: usize = 266;
    pub const READLINKAT: usize = 267;
    pub const FCHMODAT: usize = 268;
    pub const PPOLL: usize = 271;
    pub const PIPE2: usize = 293;
    pub const PRLIMIT64: usize = 302;
    pub const PROCESS_VM_READV: usize = 310;
    pub const SECCOMP: usize = 317;
    pub const MEMFD_CREATE: usize = 319;
    pub const EXECVEAT: usize = 322;
    pub const OPENAT2: usize = 437;
}

const AT_FDCWD: usize = -100isize as usize;
const CLOEXEC: usize = 0o2000000;

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

/// Any system call.
///
/// # Safety
/// The arguments must be what the call with this number expects; pointers
/// must be valid for what the kernel does with them.
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
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        let mut arguments = [0usize; 6];
        let given: &[usize] = &[$($argument),*];
        arguments[..given.len()].copy_from_slice(given);
        // SAFETY: numbers, file descriptors and borrowed buffers that outlive
        // the call; see the functions around it for what each one is.
        unsafe { raw($number, arguments) }
    }};
}

fn text(path: &CStr) -> usize {
    path.as_ptr() as usize
}

/// A path as two arguments: the directory to start from, and the way from there.
fn at(path: &CStr) -> (usize, usize) {
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

/// Makes a directory.
pub fn mkdir(path: &CStr, mode: usize) -> Result {
    let (folder, path) = at(path);
    call!(nr::MKDIRAT, folder, path, mode)
}

/// Removes a file.
pub fn unlink(path: &CStr) -> Result {
    let (folder, path) = at(path);
    call!(nr::UNLINKAT, folder, path, 0)
}

/// Removes an empty directory.
pub fn rmdir(path: &CStr) -> Result {
    const AT_REMOVEDIR: usize = 0x200;
    let (folder, path) = at(path);
    call!(nr::UNLINKAT, folder, path, AT_REMOVEDIR)
}

/// Makes a symlink.
pub fn symlink(target: &CStr, path: &CStr) -> Result {
    let (folder, path) = at(path);
    call!(nr::SYMLINKAT, text(target), folder, path)
}

/// Changes a file's mode.
pub fn chmod(path: &CStr, mode: usize) -> Result {
    let (folder, path) = at(path);
    call!(nr::FCHMODAT, folder, path, mode)
}

/// Changes a file's length.
pub fn truncate(path: &CStr, length: usize) -> Result {
    call!(nr::TRUNCATE, text(path), length)
}

/// Waits until a file is on its device.
pub fn fsync(fd: i32) -> Result {
    call!(nr::FSYNC, fd as usize)
}

/// The kind of a file system that `fstatfs` gives for proc.
pub const PROC: u64 = 0x9fa0;

/// The kind of the file system that an open file is on.
pub fn file_system(fd: i32) -> Result<u64> {
    // struct statfs of x86-64 has 120 bytes and begins with the kind.
    let mut found = [0u64; 15];
    call!(nr::FSTATFS, fd as usize, found.as_mut_ptr() as usize)?;
    Ok(found[0])
}

/// Opens a file below a directory for reading, without leaving that, crossing a mount or
/// following a link of the kernel's own.
pub fn open_beneath(folder: i32, path: &CStr) -> Result<i32> {
    const NO_XDEV: u64 = 1;
    const NO_MAGICLINKS: u64 = 2;
    const BENEATH: u64 = 8;
    // struct open_how: flags, mode, how names are resolved.
    let how = [O_RDONLY as u64, 0, NO_XDEV | NO_MAGICLINKS | BENEATH];
    let opened = call!(
        nr::OPENAT2,
        folder as usize,
        text(path),
        how.as_ptr() as usize,
        core::mem::size_of_val(&how)
    );
    opened.map(|fd| fd as i32)
}

/// Makes a second name for a file.
pub fn link(path: &CStr, other: &CStr) -> Result {
    let ((folder, path), (to, other)) = (at(path), at(other));
    call!(nr::LINKAT, folder, path, to, other, 0)
}

/// Makes a pipe with a name.
pub fn mkfifo(path: &CStr) -> Result {
    const S_IFIFO: usize = 0o010000;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFIFO | 0o600, 0)
}

/// Takes the limit of this process's core dumps to nothing.
pub fn lower_core_limit() -> Result {
    const RLIMIT_CORE: usize = 4;
    let nothing = [0u64; 2];
    call!(nr::PRLIMIT64, 0, RLIMIT_CORE, nothing.as_ptr() as usize, 0)
}

/// Asks whether any other process but the first could be sent a signal. None is.
pub fn signal_nothing_to_all() -> Result {
    const ALL: usize = usize::MAX;
    call!(nr::KILL, ALL, 0)
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

/// Makes a node for the null device.
pub fn mknod_null(path: &CStr) -> Result {
    const S_IFCHR: usize = 0o020000;
    const NULL_DEVICE: usize = 1 << 8 | 3;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFCHR | 0o600, NULL_DEVICE)
}

/// Makes a socket's node, which nobody listens at.
pub fn mknod_socket(path: &CStr) -> Result {
    const S_IFSOCK: usize = 0o140000;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFSOCK | 0o600, 0)
}

/// Starts a thread that waits until this process ends, and does nothing else.
pub fn start_idle_thread() -> Result<()> {
    /// Memory, file system, files, signal handlers, process, System V semaphores.
    const A_THREAD: usize = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000;
    let result: isize;
    // SAFETY: the new thread shares this one's stack pointer and never uses it: until the
    // process ends it makes one system call, with numbers for arguments, and should that
    // ever return, ends itself. Registers that it changes are its own.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, {wait}",
            "xor edi, edi",
            "xor esi, esi",
            "xor edx, edx",
            "xor r10d, r10d",
            "mov r8d, 8",
            "syscall",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "2:",
            wait = const nr::PPOLL,
            exit = const nr::EXIT,
            inlateout("rax") nr::CLONE => result,
            in("rdi") A_THREAD, in("rsi") 0, in("rdx") 0, in("r10") 0, in("r8") 0,
            lateout("rcx") _, lateout("r11") _, options(nostack),
        );
    }
    match result {
        0.. => Ok(()),
        errno => Err(Errno(-errno as i32)),
    }
}

/// Makes shared memory that whoever is in this IPC namespace sees. It goes with that.
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

/// Reads directory entries.
pub fn getdents(fd: i32, buffer: &mut [u8]) -> Result {
    call!(
        nr::GETDENTS64,
        fd as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len()
    )
}

/// A pipe: the end to read from and the end to write to.
pub fn pipe() -> Result<(i32, i32)> {
    let mut ends = [0i32; 2];
    call!(nr::PIPE2, ends.as_mut_ptr() as usize, CLOEXEC)?;
    Ok((ends[0], ends[1]))
}

/// A descriptor to wait for, and what happened to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PollFd {
    /// The descriptor.
    pub fd: i32,
    /// What to wait for.
    pub events: i16,
    /// What happened.
    pub revents: i16,
}

/// There is something to read.
pub const POLLIN: i16 = 1;

/// Waits for descriptors, at most this long.
pub fn poll(fds: &mut [PollFd], milliseconds: u64) -> Result {
    let timeout = [milliseconds / 1000, milliseconds % 1000 * 1_000_000];
    call!(
        nr::PPOLL,
        fds.as_mut_ptr() as usize,
        fds.len(),
        timeout.as_ptr() as usize
    )
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

/// Makes a copy of this process. The copy sees `None`; it dies with its parent.
pub fn fork() -> Result<Option<i32>> {
    const SIGCHLD: usize = 17;
    const PR_SET_PDEATHSIG: usize = 1;
    const SIGKILL: usize = 9;
    match call!(nr::CLONE, SIGCHLD)? {
        0 => {
            let _ = call!(nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL);
            Ok(None)
        }
        pid => Ok(Some(pid as i32)),
    }
}

/// Whatever ends this process leaves no core dump. A limit of 0 does not stop a handler
/// that the host has for them.
pub fn leave_no_core() {
    const PR_SET_DUMPABLE: usize = 4;
    let _ = call!(nr::PRCTL, PR_SET_DUMPABLE, 0);
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// Waits for a child to end.
pub fn wait(pid: i32) -> Result<Ended> {
    loop {
        let mut status = 0i32;
        match call!(nr::WAIT4, pid as usize, &raw mut status as usize, 0, 0) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) if status & 0x7f == 0 => return Ok(Ended::Exit((status >> 8) & 0xff)),
            // A stopped child is one that became a tracee: it has not ended.
            Ok(_) if status & 0xff == 0x7f => kill(pid)?,
            Ok(_) => return Ok(Ended::Signal(status & 0x7f)),
        }
    }
}

/// Waits for a child to end; gives the CPU time that it used, in microseconds.
pub fn wait_for_usage(pid: i32) -> Result<u64> {
    // struct rusage begins with two pairs of seconds and microseconds.
    let mut usage = [0u64; 18];
    loop {
        match call!(nr::WAIT4, pid as usize, 0, 0, usage.as_mut_ptr() as usize) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) => return Ok((usage[0] + usage[2]) * 1_000_000 + usage[1] + usage[3]),
        }
    }
}

/// Kills a child of ours.
pub fn kill(pid: i32) -> Result<()> {
    const SIGKILL: usize = 9;
    if pid <= 1 {
        return Err(Errno::EINVAL);
    }
    call!(nr::KILL, pid as usize, SIGKILL).map(|_| ())
}

/// Ends this process, if need be by an illegal instruction: a filter may deny
/// even this call, and process 1 ignores most signals.
pub fn exit(status: i32) -> ! {
    let _ = call!(nr::EXIT_GROUP, status as usize);
    // SAFETY: `ud2` raises SIGILL, which ends the process.
    unsafe { asm!("ud2", options(noreturn, nostack)) }
}

/// Makes a socket.
pub fn socket(family: usize, kind: usize, protocol: usize) -> Result<i32> {
    call!(nr::SOCKET, family, kind | CLOEXEC, protocol).map(|fd| fd as i32)
}

/// Connects a socket. For a datagram socket the kernel only looks for a route.
pub fn connect(fd: i32, address: &[u8]) -> Result {
    call!(
        nr::CONNECT,
        fd as usize,
        address.as_ptr() as usize,
        address.len()
    )
}

/// The address of a unix socket that has a name and no file: family, a NUL, the name.
pub fn abstract_address(name: &str) -> Vec<u8> {
    const AF_UNIX: u16 = 1;
    let mut address = AF_UNIX.to_ne_bytes().to_vec();
    address.push(0);
    address.extend_from_slice(name.as_bytes());
    address
}

/// Gives a socket an address of its own.
pub fn bind(fd: i32, address: &[u8]) -> Result {
    call!(
        nr::BIND,
        fd as usize,
        address.as_ptr() as usize,
        address.len()
    )
}

/// A list of at most three strings, as exec wants it.
fn exec_list(arguments: &[&CStr]) -> [usize; 4] {
    let mut list = [0; 4];
    for (slot, argument) in list.iter_mut().zip(arguments.iter().take(3)) {
        *slot = text(argument);
    }
    list
}

/// Replaces this program with another, with an empty environment.
pub fn execve(path: &CStr, arguments: &[&CStr]) -> Errno {
    let (list, nothing) = (exec_list(arguments), [0usize]);
    let result = call!(
        nr::EXECVE,
        text(path),
        list.as_ptr() as usize,
        nothing.as_ptr() as usize
    );
    result.err().unwrap_or(Errno(0))
}

/// The same through a descriptor (`fd`, with an empty path) or a path.
pub fn execveat(fd: Option<i32>, path: &CStr, arguments: &[&CStr]) -> Errno {
    const AT_EMPTY_PATH: usize = 0x1000;
    let (list, nothing) = (exec_list(arguments), [0usize]);
    let result = call!(
        nr::EXECVEAT,
        fd.map_or(AT_FDCWD, |fd| fd as usize),
        text(path),
        list.as_ptr() as usize,
        nothing.as_ptr() as usize,
        if fd.is_some() { AT_EMPTY_PATH } else { 0 }
    );
    result.err().unwrap_or(Errno(0))
}

/// A file that exists only in memory, which survives an exec.
pub fn memfd_create(name: &CStr) -> Result<i32> {
    call!(nr::MEMFD_CREATE, text(name), 0).map(|fd| fd as i32)
}

/// Tries to mount a file system type that does not exist: it can only fail,
/// and the errno says whether permission or the type was missing. It is a kind of a type
/// that has no kinds: for a name that the kernel does not know at all it would look for a
/// module, with a program of the host's.
pub fn mount_impossible(target: &CStr) -> Result {
    call!(
        nr::MOUNT,
        text(c"tki"),
        text(target),
        text(c"proc.tki"),
        0,
        0
    )
}

/// Tries to unmount with two flags that exclude each other, which is found out after the
/// permission was checked: it can only fail. The second alone would mark the mount, and
/// whoever gives it next would unmount.
pub fn umount_impossible(target: &CStr) -> Result {
    const MNT_DETACH: usize = 2;
    const MNT_EXPIRE: usize = 4;
    call!(nr::UMOUNT2, text(target), MNT_DETACH | MNT_EXPIRE)
}

/// Becomes a tracee of the parent.
pub fn ptrace_traceme() -> Result {
    call!(nr::PTRACE, 0, 0, 0, 0)
}

/// Attaches to another process.
pub fn ptrace_attach(pid: i32) -> Result {
    const PTRACE_ATTACH: usize = 16;
    call!(nr::PTRACE, PTRACE_ATTACH, pid as usize, 0, 0)
}

/// Reads another process's memory at the address of our own buffer, which is
/// valid there too if the process is a fork of this one.
pub fn process_vm_readv(pid: i32, buffer: &mut [u8]) -> Result {
    let area = [buffer.as_mut_ptr() as usize, buffer.len()];
    call!(
        nr::PROCESS_VM_READV,
        pid as usize,
        area.as_ptr() as usize,
        1,
        area.as_ptr() as usize,
        1,
        0
    )
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
