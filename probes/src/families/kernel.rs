//! The kernel's surface. Every call is made with arguments that cannot work, so
//! that even a call that is let through does nothing; the errno then says that
//! it was let through.

use super::Operation;
use crate::outcome::Outcome;
use crate::sys;

/// No pointer, descriptor, process, flag or size is ever this.
const BAD: usize = usize::MAX;

fn call(number: usize, arguments: [usize; 6]) -> Outcome {
    // SAFETY: the tables below hold only numbers, and pointers to where no
    // memory can be: the kernel has nothing to write to.
    Outcome::reach(unsafe { sys::raw(number, arguments) })
}

/// XP-URING.
pub const URING: &[Operation] = &[
    ("io_uring_setup", |_| call(425, [1, BAD, 0, 0, 0, 0])),
    ("io_uring_enter", |_| call(426, [BAD, 0, 0, 0, 0, 0])),
    ("io_uring_register", |_| call(427, [BAD, 0, 0, 0, 0, 0])),
];

/// XP-PROGRAMS.
pub const PROGRAMS: &[Operation] = &[
    ("bpf", |_| call(321, [BAD, BAD, 0, 0, 0, 0])),
    ("perf_event_open", |_| call(298, [BAD, 0, BAD, BAD, 0, 0])),
    ("userfaultfd", |_| call(323, [0x8000_0001, 0, 0, 0, 0, 0])),
];

/// XP-KEYRING.
pub const KEYRING: &[Operation] = &[
    ("add_key", |_| call(248, [BAD, BAD, 0, 0, 0, 0])),
    ("request_key", |_| call(249, [BAD, BAD, BAD, 0, 0, 0])),
    ("keyctl", |_| call(250, [0xffff, 0, 0, 0, 0, 0])),
];

/// XP-ADMIN.
pub const ADMIN: &[Operation] = &[
    ("kexec_load", |_| call(246, [0, 0xffff, BAD, BAD, 0, 0])),
    ("kexec_file_load", |_| call(320, [BAD, BAD, 0, BAD, BAD, 0])),
    ("init_module", |_| call(175, [BAD, 0, BAD, 0, 0, 0])),
    ("finit_module", |_| call(313, [BAD, BAD, BAD, 0, 0, 0])),
    ("delete_module", |_| call(176, [BAD, 0, 0, 0, 0, 0])),
    ("reboot", |_| call(169, [0, 0, 0, 0, 0, 0])),
    ("acct", |_| call(163, [BAD, 0, 0, 0, 0, 0])),
    ("quotactl", |_| call(179, [0xff, BAD, 0, BAD, 0, 0])),
    ("swapon", |_| call(167, [BAD, 0, 0, 0, 0, 0])),
];

/// XP-HANDLES.
pub const HANDLES: &[Operation] = &[
    ("open_by_handle_at", |_| call(304, [BAD, BAD, 0, 0, 0, 0])),
    ("name_to_handle_at", |_| {
        call(303, [BAD, BAD, BAD, BAD, BAD, 0])
    }),
];

/// XP-PAGE-CACHE.
pub const PAGE_CACHE: &[Operation] = &[
    ("splice", |_| call(275, [BAD, 0, BAD, 0, 1, 0])),
    ("tee", |_| call(276, [BAD, BAD, 1, 0, 0, 0])),
    ("vmsplice", |_| call(278, [BAD, BAD, 1, 0, 0, 0])),
];

/// XP-PROCESSES.
pub const PROCESSES: &[Operation] = &[
    ("process_vm_writev", |_| call(311, [1, BAD, 0, BAD, 0, 1])),
    ("kcmp", |_| call(312, [BAD, BAD, 0, 0, 0, 0])),
    ("pidfd_getfd", |_| call(438, [BAD, 0, 0, 0, 0, 0])),
    ("pidfd_open", |_| call(434, [BAD, 0, 0, 0, 0, 0])),
];

/// XP-PERSONALITY: this value asks and changes nothing.
pub const PERSONALITY: &[Operation] =
    &[("personality", |_| call(135, [0xffff_ffff, 0, 0, 0, 0, 0]))];

const TIOCSTI: usize = 0x5412;
const TIOCLINUX: usize = 0x541c;
const TIOCSETD: usize = 0x5423;

/// XP-TTY: standard input is no terminal, so nothing is typed.
pub const TTY: &[Operation] = &[
    ("ioctl(TIOCSTI)", |_| call(16, [0, TIOCSTI, BAD, 0, 0, 0])),
    ("ioctl(TIOCSTI | 1 << 32)", |_| {
        call(16, [0, TIOCSTI | 1 << 32, BAD, 0, 0, 0])
    }),
    ("ioctl(TIOCLINUX)", |_| {
        call(16, [0, TIOCLINUX, BAD, 0, 0, 0])
    }),
    ("ioctl(TIOCSETD)", |_| call(16, [0, TIOCSETD, BAD, 0, 0, 0])),
];

/// XP-MOUNT-API.
pub const MOUNT_API: &[Operation] = &[
    ("open_tree", |_| call(428, [BAD, BAD, 0, 0, 0, 0])),
    ("move_mount", |_| call(429, [BAD, BAD, BAD, BAD, BAD, 0])),
    ("fsopen", |_| call(430, [BAD, BAD, 0, 0, 0, 0])),
    ("fsmount", |_| call(432, [BAD, BAD, BAD, 0, 0, 0])),
    ("mount_setattr", |_| call(442, [BAD, BAD, BAD, BAD, 0, 0])),
    ("pivot_root", |_| call(155, [BAD, BAD, 0, 0, 0, 0])),
    ("chroot", |_| call(161, [BAD, 0, 0, 0, 0, 0])),
    ("statmount", |_| call(457, [BAD, BAD, BAD, BAD, 0, 0])),
    ("listmount", |_| call(458, [BAD, BAD, BAD, BAD, 0, 0])),
    ("open_tree_attr", |_| {
        call(467, [BAD, BAD, BAD, BAD, BAD, 0])
    }),
    ("listns", |_| call(470, [BAD, BAD, BAD, BAD, 0, 0])),
];

/// A bit that `unshare` never takes, so that it can only fail.
const NOT_FOR_UNSHARE: usize = 1;
/// A thread must share its signal handlers; without that bit clone can only fail.
const CLONE_THREAD: usize = 0x0001_0000;

fn unshare(kind: usize) -> Outcome {
    call(272, [kind | NOT_FOR_UNSHARE, 0, 0, 0, 0, 0])
}

fn clone(kind: usize) -> Outcome {
    call(56, [kind | CLONE_THREAD, 0, 0, 0, 0, 0])
}

const NEWTIME: usize = 0x0000_0080;
const NEWNS: usize = 0x0002_0000;
const NEWCGROUP: usize = 0x0200_0000;
const NEWUTS: usize = 0x0400_0000;
const NEWIPC: usize = 0x0800_0000;
const NEWUSER: usize = 0x1000_0000;
const NEWPID: usize = 0x2000_0000;
const NEWNET: usize = 0x4000_0000;

/// XP-NS-MAKE.
pub const NAMESPACES: &[Operation] = &[
    ("unshare(mnt)", |_| unshare(NEWNS)),
    ("unshare(uts)", |_| unshare(NEWUTS)),
    ("unshare(ipc)", |_| unshare(NEWIPC)),
    ("unshare(user)", |_| unshare(NEWUSER)),
    ("unshare(pid)", |_| unshare(NEWPID)),
    ("unshare(net)", |_| unshare(NEWNET)),
    ("unshare(cgroup)", |_| unshare(NEWCGROUP)),
    ("unshare(time)", |_| unshare(NEWTIME)),
    ("clone(mnt)", |_| clone(NEWNS)),
    ("clone(uts)", |_| clone(NEWUTS)),
    ("clone(ipc)", |_| clone(NEWIPC)),
    ("clone(user)", |_| clone(NEWUSER)),
    ("clone(pid)", |_| clone(NEWPID)),
    ("clone(net)", |_| clone(NEWNET)),
    ("clone(cgroup)", |_| clone(NEWCGROUP)),
    ("clone3", |_| call(435, [BAD, 0, 0, 0, 0, 0])),
    ("setns", |_| call(308, [BAD, 0, 0, 0, 0, 0])),
];
