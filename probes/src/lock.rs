//! The prober's own filter, stacked on whatever the engine loaded. Filters
//! only ever add up, so this can deny more and never less.
//!
//! An engine cannot deny execve: it loads its filter before the last exec of
//! the container's start. The prober needs no exec, so it denies it itself,
//! and with it everything else that it never does.

use tki_inside::filter::{self, Reasoned};
use tki_inside::sys::Result;

/// What the lock denies, by number, with the reason.
pub const DENIED: &[Reasoned] = &[
    (59, "execve: no second program"),
    (322, "execveat: the same through a descriptor"),
    (
        319,
        "memfd_create: no file to execute that no mount flag covers",
    ),
    (447, "memfd_secret: the same, hidden from the kernel"),
    (41, "socket: no way out"),
    (53, "socketpair: no socket of any kind"),
    (42, "connect"),
    (49, "bind"),
    (50, "listen"),
    (43, "accept"),
    (288, "accept4"),
    (44, "sendto"),
    (46, "sendmsg"),
    (307, "sendmmsg"),
    (101, "ptrace: no hands in another process"),
    (310, "process_vm_readv"),
    (311, "process_vm_writev"),
    (438, "pidfd_getfd: no descriptors of another process"),
    (312, "kcmp"),
    (165, "mount: the mount table stays as it is"),
    (166, "umount2"),
    (428, "open_tree"),
    (429, "move_mount"),
    (430, "fsopen"),
    (431, "fsconfig"),
    (432, "fsmount"),
    (433, "fspick"),
    (442, "mount_setattr"),
    (155, "pivot_root"),
    (161, "chroot"),
    (272, "unshare: no new namespaces"),
    (308, "setns"),
    (
        435,
        "clone3: flags behind a pointer, which a filter cannot see",
    ),
    (425, "io_uring_setup: a second way to every system call"),
    (426, "io_uring_enter"),
    (427, "io_uring_register"),
    (321, "bpf"),
    (298, "perf_event_open"),
    (323, "userfaultfd"),
    (248, "add_key"),
    (249, "request_key"),
    (250, "keyctl"),
    (175, "init_module"),
    (313, "finit_module"),
    (176, "delete_module"),
    (246, "kexec_load"),
    (320, "kexec_file_load"),
    (169, "reboot"),
    (
        304,
        "open_by_handle_at: files by number, past every path check",
    ),
    (135, "personality"),
    (16, "ioctl: no terminal to type into, no device to command"),
];

/// Stacks the filter on this thread.
pub fn stack() -> Result {
    filter::stack(&filter::denying(DENIED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_inside::filter::{CLONE, NAMESPACE_FLAGS, X32_BIT};
    use tki_inside::sys::{self, Errno};

    /// Filters are per thread, so the real kernel can be asked here.
    #[test]
    fn the_kernel_takes_the_filter_and_denies_each_call() {
        std::thread::spawn(|| {
            stack().unwrap();
            for (number, reason) in DENIED {
                // SAFETY: every argument is an invalid pointer or descriptor,
                // so even a call that is let through can do nothing.
                let answer = unsafe { sys::raw(*number as usize, [usize::MAX; 6]) };
                assert_eq!(answer, Err(Errno::EPERM), "{reason}");
            }
            // SAFETY: getpid of the x32 table has no arguments.
            let x32 = unsafe { sys::raw((X32_BIT | 39) as usize, [0; 6]) };
            assert_eq!(x32, Err(Errno::EPERM));
            let clone = |flags: u32| {
                // A thread that does not share its signal handlers cannot be.
                const THREAD: u32 = 0x0001_0000;
                let first = (flags | THREAD) as usize;
                // SAFETY: these flags contradict each other: nothing is cloned.
                unsafe { sys::raw(CLONE as usize, [first, 0, 0, 0, 0, 0]) }
            };
            assert_eq!(clone(0), Err(Errno::EINVAL));
            for bit in (0..32).map(|bit| 1u32 << bit) {
                if NAMESPACE_FLAGS & bit != 0 {
                    assert_eq!(clone(bit), Err(Errno::EPERM), "{bit:#x}");
                }
            }
            assert!(sys::getpid() > 0);
        })
        .join()
        .unwrap();
    }
}
