//! The floor: system calls that no acceptable profile lets through, whatever
//! else it allows and whatever their arguments. The targeted-deny profile denies
//! exactly these.

/// The floor, by name.
pub const DENIED: &[&str] = &[
    "accept",
    "accept4",
    "acct",
    "add_key",
    "adjtimex",
    "bind",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "clone3",
    "connect",
    "delete_module",
    "fanotify_init",
    "fanotify_mark",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "getpeername",
    "getsockname",
    "getsockopt",
    "init_module",
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "listen",
    "lookup_dcookie",
    "mbind",
    "memfd_create",
    "memfd_secret",
    "migrate_pages",
    "mknod",
    "mknodat",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "mq_open",
    "mq_unlink",
    "msgget",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "personality",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "request_key",
    "semget",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_mempolicy",
    "setdomainname",
    "sethostname",
    "setns",
    "setsockopt",
    "settimeofday",
    "shmget",
    "shutdown",
    "socket",
    "socketpair",
    "splice",
    "swapoff",
    "swapon",
    "syslog",
    "tee",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
    "vmsplice",
];

/// Calls that are on the floor with some arguments only: namespaces are made by flags of
/// `clone`, two requests of `ioctl` write into the caller's terminal, and one loads a module
/// for it. The kernel reads such a request as 32 bits.
#[cfg(feature = "judge")]
pub const PARTS: &[(&str, crate::seccomp::Part, &str)] = &[
    ("clone", flag(0x0002_0000), "CLONE_NEWNS"),
    ("clone", flag(0x0200_0000), "CLONE_NEWCGROUP"),
    ("clone", flag(0x0400_0000), "CLONE_NEWUTS"),
    ("clone", flag(0x0800_0000), "CLONE_NEWIPC"),
    ("clone", flag(0x1000_0000), "CLONE_NEWUSER"),
    ("clone", flag(0x2000_0000), "CLONE_NEWPID"),
    ("clone", flag(0x4000_0000), "CLONE_NEWNET"),
    ("ioctl", request(0x5412), "TIOCSTI"),
    ("ioctl", request(0x541c), "TIOCLINUX"),
    ("ioctl", request(0x5423), "TIOCSETD"),
];

#[cfg(feature = "judge")]
const fn flag(bit: u64) -> crate::seccomp::Part {
    crate::seccomp::Part {
        index: 0,
        mask: bit,
        value: bit,
    }
}

#[cfg(feature = "judge")]
const fn request(number: u64) -> crate::seccomp::Part {
    crate::seccomp::Part {
        index: 1,
        mask: 0xffff_ffff,
        value: number,
    }
}

/// What calls of the floor are called in the older tables of x86, where a profile lets
/// those in.
pub const DENIED_ELSEWHERE: &[&str] = &[
    "clock_adjtime64",
    "clock_settime64",
    "io_pgetevents_time64",
    "ipc",
    "recvmmsg_time64",
    "socketcall",
    "stime",
    "umount",
    "vm86",
    "vm86old",
];

/// Calls without which the prober could not have told what it saw.
pub const TOLD_BY: &[&str] = &["exit_group", "read", "wait4", "write"];

/// Calls that the sweep does not try: they would wait for ever, leave a second
/// process on the same stack, or make the whole host write its disks.
pub const NOT_TRIED: &[&str] = &["fork", "pause", "sync", "vfork"];

/// Calls that the kernel lets past every filter, by design: they only do
/// anything where a debugger put a trap, and fault everywhere else.
pub const UNFILTERED: &[&str] = &["uprobe", "uretprobe"];
