//! The extended probes, by family: kernel surface, ABI, identity, namespaces,
//! file systems, descriptors, memory, limits. They ask what the engine enforces,
//! so they run in its phase; the canonical probes show what the lock adds.

use super::{
    ENGINE, Expect, FactRule, HOSTNAME, NO_CALL, NO_ROUTE, NO_ROUTE_V6, NOT_PERMITTED, NOT_THERE,
    ProbeSpec, READ_ONLY, op,
};

/// What a masked path may be.
const MASKS: &[&str] = &["absent", "null", "empty"];
/// What a frozen path may be.
const FROZEN: &[&str] = &["absent", "ro"];
/// Without 32-bit support in the kernel the entry itself faults.
const NO_ABI: Expect = Expect::Denied(&["EPERM", "ENOSYS", "SIGSYS", "SIGSEGV"]);
const NOT_MAPPED: Expect = Expect::Denied(&["EPERM", "EACCES"]);
const NOT_WRITABLE_OR_THERE: Expect = Expect::Denied(&["EROFS", "EACCES", "EPERM", "ENOENT"]);

/// Either there is no socket to connect with, or nobody of that name.
const NO_PEER: Expect = Expect::Denied(&["EPERM", "EACCES", "EAFNOSUPPORT", "ECONNREFUSED"]);

/// What most of them have in common.
const OF_THE_ENGINE: ProbeSpec = ProbeSpec {
    id: "",
    requirements: &[],
    operation: "",
    expected: "",
    reason: "",
    phases: ENGINE,
    required_phases: ENGINE,
    heavy: false,
    uncalibrated: None,
    operations: &[],
};

/// The extended probes.
pub const EXTENDED: &[ProbeSpec] = &[
    ProbeSpec {
        id: "XP-URING",
        requirements: &["R1", "R9"],
        operation: "io_uring_setup, io_uring_enter, io_uring_register",
        expected: "denied EPERM or ENOSYS",
        reason: "io_uring performs socket and file operations that a filter never sees",
        operations: &[
            op("io_uring_setup", NO_CALL),
            op("io_uring_enter", NO_CALL),
            op("io_uring_register", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-PROGRAMS",
        requirements: &["R9"],
        operation: "bpf, perf_event_open, userfaultfd",
        expected: "denied EPERM or ENOSYS",
        reason: "no programs, counters or fault handlers inside the kernel",
        operations: &[
            op("bpf", NO_CALL),
            op("perf_event_open", NO_CALL),
            op("userfaultfd", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-KEYRING",
        requirements: &["R5"],
        operation: "add_key, request_key, keyctl",
        expected: "denied EPERM or ENOSYS",
        reason: "the kernel's keyrings are not divided between containers",
        operations: &[
            op("add_key", NO_CALL),
            op("request_key", NO_CALL),
            op("keyctl", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ADMIN",
        requirements: &["R6"],
        operation: "kexec, modules, reboot, acct, quotactl, swapon",
        expected: "denied EPERM or ENOSYS",
        reason: "nothing that administers the host; all but quotactl needs a capability as well, so \
                 quotactl alone shows what the filter denies",
        operations: &[
            op("kexec_load", NO_CALL),
            op("kexec_file_load", NO_CALL),
            op("init_module", NO_CALL),
            op("finit_module", NO_CALL),
            op("delete_module", NO_CALL),
            op("reboot", NO_CALL),
            op("acct", NO_CALL),
            op("quotactl", NO_CALL),
            op("swapon", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-HANDLES",
        requirements: &["R6"],
        operation: "open_by_handle_at, name_to_handle_at",
        expected: "denied EPERM or ENOSYS",
        reason: "files by handle pass every check of paths",
        operations: &[
            op("open_by_handle_at", NO_CALL),
            op("name_to_handle_at", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-PAGE-CACHE",
        requirements: &["R6", "R7"],
        operation: "splice, tee, vmsplice",
        expected: "denied EPERM or ENOSYS",
        reason: "pages of files that can only be read have been written to by way of pipes",
        operations: &[
            op("splice", NO_CALL),
            op("tee", NO_CALL),
            op("vmsplice", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FAMILIES",
        requirements: &["R1", "R3"],
        operation: "socket() of every family and of every netlink protocol, with a type that does \
                    not exist",
        expected: "denied each, with EPERM, EACCES or EAFNOSUPPORT, or by SIGSYS",
        reason: "each family is code of the kernel's, and rarely used ones have let callers out",
        operations: &[
            op("socket(0..63, 15)", Expect::Fact(FactRule::Refused(64))),
            op(
                "socket(AF_NETLINK, 15, 0..31)",
                Expect::Fact(FactRule::Refused(32)),
            ),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-PROCESSES",
        requirements: &["R9"],
        operation: "process_vm_writev, kcmp, pidfd_getfd, pidfd_open",
        expected: "denied EPERM or ENOSYS",
        reason: "one process must not write into, compare or rob another",
        operations: &[
            op("process_vm_writev", NO_CALL),
            op("kcmp", NO_CALL),
            op("pidfd_getfd", NO_CALL),
            op("pidfd_open", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-PERSONALITY",
        requirements: &["R9"],
        operation: "personality (a query that changes nothing)",
        expected: "denied EPERM or ENOSYS",
        reason: "another execution domain switches off address randomisation and more",
        operations: &[op("personality", NO_CALL)],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-TTY",
        requirements: &["R9"],
        operation: "ioctl TIOCSTI, also with high bits set, TIOCLINUX and TIOCSETD",
        expected: "denied EPERM",
        reason: "typing into the caller's terminal, or a line discipline that is a module; the \
                 kernel looks at 32 bits of the request, a careless filter at 64",
        operations: &[
            op("ioctl(TIOCSTI)", NOT_PERMITTED),
            op("ioctl(TIOCSTI | 1 << 32)", NOT_PERMITTED),
            op("ioctl(TIOCLINUX)", NOT_PERMITTED),
            op("ioctl(TIOCSETD)", NOT_PERMITTED),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-MOUNT-API",
        requirements: &["R6"],
        operation: "open_tree, move_mount, fsopen, fsmount, mount_setattr, pivot_root, chroot; \
                    statmount, listmount, open_tree_attr and listns are recorded",
        expected: "denied EPERM or ENOSYS",
        reason: "the mount table has a second set of calls; whether the newest are denied follows \
                 from the profile, and XP-ABI-SWEEP holds it to that",
        operations: &[
            op("open_tree", NO_CALL),
            op("move_mount", NO_CALL),
            op("fsopen", NO_CALL),
            op("fsmount", NO_CALL),
            op("mount_setattr", NO_CALL),
            op("pivot_root", NO_CALL),
            op("chroot", NO_CALL),
            op("statmount", Expect::Recorded),
            op("listmount", Expect::Recorded),
            op("open_tree_attr", Expect::Recorded),
            op("listns", Expect::Recorded),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-MAKE",
        requirements: &["R6"],
        operation: "unshare and clone of every kind of namespace, clone3, setns",
        expected: "denied EPERM or ENOSYS",
        reason: "a new namespace gives its maker capabilities over it",
        operations: &[
            op("unshare(mnt)", NO_CALL),
            op("unshare(uts)", NO_CALL),
            op("unshare(ipc)", NO_CALL),
            op("unshare(user)", NO_CALL),
            op("unshare(pid)", NO_CALL),
            op("unshare(net)", NO_CALL),
            op("unshare(cgroup)", NO_CALL),
            op("unshare(time)", NO_CALL),
            op("clone(mnt)", NO_CALL),
            op("clone(uts)", NO_CALL),
            op("clone(ipc)", NO_CALL),
            op("clone(user)", NO_CALL),
            op("clone(pid)", NO_CALL),
            op("clone(net)", NO_CALL),
            op("clone(cgroup)", NO_CALL),
            op("clone3", NO_CALL),
            op("setns", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ABI-I386",
        requirements: &["R1", "R9"],
        operation: "getpid and socketcall by int 0x80, also with arguments that can be read",
        expected: "killed, or no such entry in the kernel",
        reason: "the 32-bit table has other numbers, which a filter may not know",
        operations: &[
            op("int 0x80 getpid", NO_ABI),
            op("int 0x80 socketcall", NO_ABI),
            op("int 0x80 socketcall(AF_ALG)", NO_ABI),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ABI-X32",
        requirements: &["R1", "R9"],
        operation: "getpid and socket in the x32 table",
        expected: "killed, EPERM or ENOSYS",
        reason: "the same numbers from another base, which a filter may not know",
        operations: &[op("x32 getpid", NO_ABI), op("x32 socket", NO_ABI)],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ABI-SWEEP",
        requirements: &["R9", "R12"],
        operation: "every system call number, with arguments that cannot work",
        expected: "what the profile denies is denied, and so is everything on the floor",
        reason: "what was loaded is compared with what was written",
        operations: &[op("sweep", Expect::Fact(FactRule::Sweep))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-USER",
        requirements: &["R9"],
        operation: "user, group and supplementary groups",
        expected: "none is root's",
        reason: "root inside is root outside unless something else stands between",
        operations: &[op("ids", Expect::Fact(FactRule::NotRoot))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-CAPS",
        requirements: &["R9"],
        operation: "the five capability sets",
        expected: "all empty",
        reason: "a capability is a piece of root",
        operations: &[
            op(
                "CapInh",
                Expect::Fact(FactRule::Status("CapInh", "0000000000000000")),
            ),
            op(
                "CapPrm",
                Expect::Fact(FactRule::Status("CapPrm", "0000000000000000")),
            ),
            op(
                "CapEff",
                Expect::Fact(FactRule::Status("CapEff", "0000000000000000")),
            ),
            op(
                "CapBnd",
                Expect::Fact(FactRule::Status("CapBnd", "0000000000000000")),
            ),
            op(
                "CapAmb",
                Expect::Fact(FactRule::Status("CapAmb", "0000000000000000")),
            ),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-NNP",
        requirements: &["R9"],
        operation: "the no-new-privileges bit",
        expected: "1",
        reason: "without it a set-user-id file gives privileges back",
        operations: &[op(
            "NoNewPrivs",
            Expect::Fact(FactRule::Status("NoNewPrivs", "1")),
        )],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-SECCOMP",
        requirements: &["R9"],
        operation: "the seccomp mode",
        expected: "2, a filter",
        reason: "a profile that was not loaded denies nothing",
        operations: &[op(
            "Seccomp",
            Expect::Fact(FactRule::Status("Seccomp", "2")),
        )],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-THREADS",
        requirements: &["R9"],
        operation: "threads of the prober",
        expected: "one",
        reason: "what is true of one thread need not be true of another",
        operations: &[op("threads", Expect::Fact(FactRule::Is("1")))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-SUID",
        requirements: &["R9"],
        operation: "set-user-id and set-group-id files anywhere",
        expected: "none",
        reason: "a file that changes its caller's identity",
        operations: &[op("walk-for-suid", Expect::Fact(FactRule::Is("")))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-ID-LSM",
        requirements: &["R9"],
        operation: "the label of a security module",
        expected: "the one that the engine says it gave, enforced",
        reason: "a label that the engine speaks of and the kernel does not know confines nothing",
        operations: &[op("lsm-label", Expect::Fact(FactRule::Label))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-FRESH",
        requirements: &["R1", "R6"],
        operation: "the mnt, pid, net, ipc, uts and cgroup namespaces; user and time are recorded",
        expected: "neither the kernel's first, nor the host's or, where that is not seen, a neighbour's",
        reason: "a namespace that is shared is not there",
        operations: &[
            op("ns-mnt", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-pid", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-net", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-ipc", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-uts", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-cgroup", Expect::Fact(FactRule::FreshNamespace)),
            op("ns-user", Expect::Recorded),
            op("ns-time", Expect::Recorded),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-PID",
        requirements: &["R6"],
        operation: "own process id, visible processes",
        expected: "1; only the prober's",
        reason: "a process that can be seen can be asked things",
        operations: &[
            op("pid-1", Expect::Fact(FactRule::Is("1"))),
            op("processes", Expect::Fact(FactRule::Is("tki-prober"))),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-HOSTNAME",
        requirements: &["R6"],
        operation: "the host name",
        expected: "that of the sandbox",
        reason: "the host's name tells where one is",
        operations: &[op("hostname", Expect::Fact(FactRule::Is(HOSTNAME)))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-IPC",
        requirements: &["R6"],
        operation: "System V shared memory, semaphores and queues",
        expected: "none visible, the host's canary included",
        reason: "memory shared with the host",
        operations: &[
            op("sysvipc-shm", Expect::Fact(FactRule::Is("0"))),
            op("sysvipc-sem", Expect::Fact(FactRule::Is("0"))),
            op("sysvipc-msg", Expect::Fact(FactRule::Is("0"))),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-ABSTRACT",
        requirements: &["R1"],
        operation: "abstract unix sockets; connecting to the host's canary",
        expected: "none visible; denied EPERM, EACCES or ECONNREFUSED",
        reason: "names without a file that only a network namespace hides",
        operations: &[
            op("proc-net-unix", Expect::Fact(FactRule::Is("0"))),
            op("connect(abstract canary)", NO_PEER),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-NS-SIGNAL",
        requirements: &["R6"],
        operation: "signal 0, which only asks, to every other process but the first",
        expected: "denied ESRCH: there is none",
        reason: "what can be signalled can be stopped and ended",
        operations: &[op("kill(-1, 0)", Expect::Denied(&["ESRCH"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-REACH",
        requirements: &["R1", "R5"],
        operation: "route look-ups, by connecting datagram sockets, to where clouds and engines \
                    answer: metadata services, Docker Desktop's host, bridges, the gateway",
        expected: "denied each, with ENETUNREACH, or no socket is to be had",
        reason: "where there is a network, this names what it leads to: credentials, first of all",
        operations: &[
            op("connect(169.254.169.254/udp)", NO_ROUTE),
            op("connect(169.254.170.2/udp)", NO_ROUTE),
            op("connect(168.63.129.16/udp)", NO_ROUTE),
            op("connect(100.100.100.200/udp)", NO_ROUTE),
            op("connect(192.0.0.192/udp)", NO_ROUTE),
            op("connect(192.168.65.7/udp)", NO_ROUTE),
            op("connect(192.168.65.254/udp)", NO_ROUTE),
            op("connect(172.17.0.1/udp)", NO_ROUTE),
            op("connect([fd00:ec2::254]/udp)", NO_ROUTE_V6),
            op("connect(gateway/udp)", NO_ROUTE),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-FLAGS",
        requirements: &["R6", "R8"],
        operation: "flags of every mount, propagation",
        expected: "nosuid, nodev, noexec and ro where they belong; nothing shared",
        reason: "a mount is as safe as its flags",
        operations: &[op("mount-flags", Expect::Fact(FactRule::MountFlags))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-MASKED",
        requirements: &["R6"],
        operation: "paths of /proc and /sys that engines mask",
        expected: "absent, the null device itself, or an empty read-only mount",
        reason: "a mask that is not the null device is somebody's file; what power, heat and \
                 interrupts tell has given secrets of others away",
        operations: &[
            op("masked(/proc/acpi)", Expect::Fact(FactRule::OneOf(MASKS))),
            op("masked(/proc/asound)", Expect::Fact(FactRule::OneOf(MASKS))),
            op("masked(/proc/kcore)", Expect::Fact(FactRule::OneOf(MASKS))),
            op("masked(/proc/keys)", Expect::Fact(FactRule::OneOf(MASKS))),
            op(
                "masked(/proc/latency_stats)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(/proc/sched_debug)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op("masked(/proc/scsi)", Expect::Fact(FactRule::OneOf(MASKS))),
            op(
                "masked(/proc/timer_list)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(/proc/timer_stats)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(/proc/interrupts)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(/sys/firmware)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(/sys/devices/virtual/powercap)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
            op(
                "masked(thermal_throttle of each CPU)",
                Expect::Fact(FactRule::OneOf(MASKS)),
            ),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-PROC-RO",
        requirements: &["R6", "R8"],
        operation: "read-only mounts over /proc; writing core_pattern, sysrq-trigger, modprobe, \
                    uevent_helper, binfmt_misc",
        expected: "mounted read-only; denied",
        reason: "files through which the host executes programs",
        operations: &[
            op(
                "read-only(/proc/bus)",
                Expect::Fact(FactRule::OneOf(FROZEN)),
            ),
            op("read-only(/proc/fs)", Expect::Fact(FactRule::OneOf(FROZEN))),
            op(
                "read-only(/proc/irq)",
                Expect::Fact(FactRule::OneOf(FROZEN)),
            ),
            op(
                "read-only(/proc/sys)",
                Expect::Fact(FactRule::OneOf(FROZEN)),
            ),
            op(
                "read-only(/proc/sysrq-trigger)",
                Expect::Fact(FactRule::OneOf(FROZEN)),
            ),
            op("open(/proc/sys/kernel/core_pattern)", NOT_WRITABLE_OR_THERE),
            op("open(/proc/sys/kernel/modprobe)", NOT_WRITABLE_OR_THERE),
            op("open(/proc/sysrq-trigger)", NOT_WRITABLE_OR_THERE),
            op("open(/sys/kernel/uevent_helper)", NOT_WRITABLE_OR_THERE),
            op(
                "open(/proc/sys/fs/binfmt_misc/register)",
                NOT_WRITABLE_OR_THERE,
            ),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-CGROUP",
        requirements: &["R8"],
        operation: "writing below /sys/fs/cgroup: a new group, cgroup.procs, release_agent",
        expected: "denied",
        reason: "whoever writes there sets limits, and on version 1 has a program executed on the host",
        operations: &[
            op("mkdir(cgroup)", NOT_WRITABLE_OR_THERE),
            op("open(cgroup.procs)", NOT_WRITABLE_OR_THERE),
            op("open(release_agent)", NOT_WRITABLE_OR_THERE),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-DEVICES",
        requirements: &["R6"],
        operation: "entries of /dev and their numbers; mknod",
        expected: "those of every container; denied EPERM",
        reason: "a device node is the host's hardware",
        operations: &[
            op("devices", Expect::Fact(FactRule::Devices)),
            op("device-numbers", Expect::Fact(FactRule::DeviceNumbers)),
            op("mknod(/out)", NO_CALL),
            op("mknod(/tmp)", NO_CALL),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-REOPEN",
        requirements: &["R6", "R7"],
        operation: "opening again through /proc/self/fd and /proc/self/root",
        expected: "denied EROFS; ENOENT",
        reason: "a second open must not give more than the first",
        operations: &[
            op("reopen(/in for writing)", READ_ONLY),
            op("open(/proc/self/root/../../etc/shadow)", NOT_THERE),
            op("open(/proc/1/root/etc/shadow)", NOT_THERE),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-CWD",
        requirements: &["R6"],
        operation: "the working directory, and a file of the host by way of it",
        expected: "the container's root; denied ENOENT",
        reason: "a directory of the host that a runtime left there is a way out",
        operations: &[
            op("cwd", Expect::Fact(FactRule::Is("/"))),
            op("open(../../../../etc/shadow)", NOT_THERE),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-REALPROC",
        requirements: &["R6"],
        operation: "the kind of file system at /proc; every text of it that evidence rests on, \
                    opened without crossing a mount",
        expected: "proc; each opened, or not there",
        reason: "a file over a text of /proc says whatever it likes",
        operations: &[
            op("fstatfs(/proc)", Expect::Fact(FactRule::Is("0x9fa0"))),
            op("openat2(texts)", Expect::Fact(FactRule::RealTexts)),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-SPECIAL",
        requirements: &["R7", "R8"],
        operation: "a pipe with a name in /out; a hard link in /out to a file of /in",
        expected: "denied EPERM; EXDEV or EPERM",
        reason: "whoever collects /out must find files there, and none that is also an input",
        operations: &[
            op("mkfifo(/out)", NO_CALL),
            op(
                "link(/in to /out)",
                Expect::Denied(&["EXDEV", "EPERM", "ENOSYS"]),
            ),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-CANARY",
        requirements: &["R6"],
        operation: "a file of the host, the launcher's own executable, by its path",
        expected: "denied ENOENT",
        reason: "a path of the host must lead nowhere",
        operations: &[op("open(host canary)", NOT_THERE)],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FS-FILES",
        requirements: &["R6"],
        operation: "every regular file outside /in, /out, /proc, /sys and /dev",
        expected: "exactly the image's and the engine's",
        reason: "what can be read is what was put there",
        operations: &[op("files", Expect::Fact(FactRule::ImageFiles))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-FD",
        requirements: &["R6"],
        operation: "open descriptors",
        expected: "0, 1 and 2, each a pipe or the null device",
        reason: "a descriptor left open by the launcher reaches whatever it reaches",
        operations: &[op("descriptors", Expect::Fact(FactRule::Descriptors))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-MEM-EXEC",
        requirements: &["R9"],
        operation: "mapping as code a written file in /out and /tmp and a file of /proc; \
                    writable code is recorded",
        expected: "denied EPERM or EACCES",
        reason: "execution without exec",
        operations: &[
            op("mmap(PROT_EXEC of a file in /out)", NOT_MAPPED),
            op("mmap(PROT_EXEC of a file in /tmp)", NOT_MAPPED),
            op("mmap(PROT_EXEC of a file in /proc/sys)", NOT_MAPPED),
            op("mmap(RWX)", Expect::Recorded),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-CORE",
        requirements: &["R6", "R9"],
        operation: "where the kernel sends core dumps, and the limit of their size; lowering that \
                    is recorded",
        expected: "no program and a limit of 0 or 1; or a limit of 1, at which none is started",
        reason: "the program that a core dump is piped into is root on the host, and a limit of 0 \
                 does not stop it",
        operations: &[
            op("core dumps", Expect::Fact(FactRule::CoreDumps)),
            op("setrlimit(core, 0)", Expect::Recorded),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-PIDS",
        requirements: &["R9"],
        operation: "fork until the limit",
        expected: "denied EAGAIN",
        reason: "a fork bomb must stop inside",
        heavy: true,
        operations: &[op("fork", Expect::Denied(&["EAGAIN"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-MEMORY",
        requirements: &["R9"],
        operation: "a child that uses more memory than the limit",
        expected: "killed, or denied ENOMEM, and the prober lives",
        reason: "memory of the host is shared",
        heavy: true,
        operations: &[op("allocate", Expect::Denied(&["SIGKILL", "ENOMEM"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-OUT",
        requirements: &["R8"],
        operation: "writing into /out until it is full",
        expected: "denied ENOSPC",
        reason: "a disk of the host must not fill",
        heavy: true,
        operations: &[op("fill(/out)", Expect::Denied(&["ENOSPC"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-TMP",
        requirements: &["R8"],
        operation: "writing into /tmp until it is full",
        expected: "denied ENOSPC",
        reason: "memory of the host must not fill",
        heavy: true,
        operations: &[op("fill(/tmp)", Expect::Denied(&["ENOSPC"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-INODES",
        requirements: &["R8"],
        operation: "making empty files in /out and in /tmp until there is no room for one more",
        expected: "denied ENOSPC",
        reason: "an empty file has no size, and takes memory of the kernel's all the same",
        heavy: true,
        operations: &[
            op("files(/out)", Expect::Denied(&["ENOSPC"])),
            op("files(/tmp)", Expect::Denied(&["ENOSPC"])),
        ],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-NOFILE",
        requirements: &["R9"],
        operation: "open files until the limit",
        expected: "denied EMFILE",
        reason: "descriptors of the host are shared",
        heavy: true,
        operations: &[op("open", Expect::Denied(&["EMFILE"]))],
        ..OF_THE_ENGINE
    },
    ProbeSpec {
        id: "XP-LIM-CPU",
        requirements: &["R9"],
        operation: "two busy children for some periods of the quota",
        expected: "throttled, by the kernel's own count",
        reason: "processors of the host are shared",
        heavy: true,
        operations: &[op("throttling", Expect::Fact(FactRule::Is("throttled")))],
        ..OF_THE_ENGINE
    },
];
