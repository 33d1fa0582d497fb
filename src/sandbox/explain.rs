//! What a seccomp profile allows, in groups that a person can take in.

use serde::Serialize;
use std::collections::BTreeMap;
use tki_evidence::seccomp::{About, Rules};
use tki_evidence::syscalls;

/// Calls of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The kind.
    pub kind: &'static str,
    /// Allowed whatever their arguments.
    pub allowed: Vec<&'static str>,
    /// Allowed or denied by their arguments or by the engine's conditions.
    pub depends: Vec<&'static str>,
    /// Denied.
    pub denied: Vec<&'static str>,
}

/// A profile, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens to a call that no rule names.
    pub default: &'static str,
    /// The groups.
    pub groups: Vec<Group>,
    /// The rules' own reasons, with the calls that they are given for.
    pub reasons: Vec<(String, Vec<String>)>,
}

/// Kinds, with the calls that belong to each. Names are whole: `sendfile` sends
/// nothing, and `mbind` binds memory.
const KINDS: &[(&str, &str)] = &[
    (
        "network",
        "socket socketpair connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg \
         sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt",
    ),
    (
        "io_uring and aio",
        "io_uring_setup io_uring_enter io_uring_register io_setup io_destroy io_submit \
         io_cancel io_getevents io_pgetevents",
    ),
    (
        "programs",
        "execve execveat memfd_create memfd_secret uselib",
    ),
    (
        "namespaces and mounts",
        "mount umount2 mount_setattr move_mount open_tree open_tree_attr fsopen fsconfig \
         fsmount fspick statmount listmount unshare setns pivot_root chroot",
    ),
    (
        "other processes",
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open \
         pidfd_getfd pidfd_send_signal kcmp kill tkill tgkill",
    ),
    (
        "kernel administration",
        "create_module init_module finit_module delete_module query_module get_kernel_syms \
         kexec_load kexec_file_load reboot swapon swapoff quotactl quotactl_fd acct iopl ioperm \
         syslog _sysctl sysfs sethostname setdomainname settimeofday clock_settime \
         clock_adjtime adjtimex bpf perf_event_open userfaultfd add_key request_key keyctl \
         lookup_dcookie vhangup nfsservctl modify_ldt uprobe uretprobe",
    ),
    (
        "processes and threads",
        "clone clone3 fork vfork wait4 waitid exit exit_group futex futex_wait futex_wake \
         futex_waitv futex_requeue set_robust_list get_robust_list set_tid_address gettid \
         getpid getppid getpgid setpgid getpgrp getsid setsid set_thread_area get_thread_area \
         arch_prctl prctl seccomp landlock_create_ruleset landlock_add_rule \
         landlock_restrict_self lsm_get_self_attr lsm_set_self_attr lsm_list_modules rseq \
         membarrier restart_syscall getcpu getrusage getrlimit setrlimit prlimit64 getpriority \
         setpriority ioprio_get ioprio_set sched_yield sched_setparam sched_getparam \
         sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min \
         sched_rr_get_interval sched_setaffinity sched_getaffinity sched_setattr sched_getattr",
    ),
    (
        "identity",
        "getuid getgid geteuid getegid setuid setgid setreuid setregid setresuid getresuid \
         setresgid getresgid setfsuid setfsgid getgroups setgroups capget capset personality",
    ),
    (
        "memory",
        "mmap munmap mprotect mremap msync madvise mincore brk mlock mlock2 mlockall munlock \
         munlockall mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages \
         move_pages remap_file_pages pkey_mprotect pkey_alloc pkey_free mseal map_shadow_stack \
         shmget shmat shmctl shmdt",
    ),
    (
        "signals and time",
        "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
         rt_tgsigqueueinfo rt_sigsuspend sigaltstack signalfd signalfd4 pause alarm getitimer \
         setitimer nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times \
         timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create \
         timerfd_settime timerfd_gettime",
    ),
    (
        "message queues and semaphores",
        "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgsnd \
         msgrcv msgctl semget semop semctl semtimedop",
    ),
];

fn kind(name: &str) -> &'static str {
    let found = KINDS
        .iter()
        .find(|(_, calls)| calls.split(' ').any(|call| call == name));
    found.map_or("files and the rest", |(kind, _)| *kind)
}

/// Explains a profile.
pub fn explain(rules: &Rules) -> Explanation {
    let mut groups: BTreeMap<&'static str, Group> = BTreeMap::new();
    for number in 0..syscalls::BEYOND {
        let Some(name) = syscalls::name(number) else {
            continue;
        };
        let kind = kind(name);
        let group = groups.entry(kind).or_insert_with(|| Group {
            kind,
            allowed: Vec::new(),
            depends: Vec::new(),
            denied: Vec::new(),
        });
        match rules.about(name) {
            About::Allowed => group.allowed.push(name),
            About::Depends => group.depends.push(name),
            About::Denied => group.denied.push(name),
        }
    }
    Explanation {
        default: if rules.default_action.lets_through() {
            "allowed"
        } else {
            "denied"
        },
        groups: groups.into_values().collect(),
        reasons: rules
            .syscalls
            .iter()
            .map(|rule| {
                let reason = rule.comment.clone();
                (
                    reason.unwrap_or_else(|| "no reason given".into()),
                    rule.names.clone(),
                )
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_in_exactly_one_group() {
        let rules = Rules::parse(tki_evidence::DENY_BY_DEFAULT.as_bytes()).unwrap();
        let explanation = explain(&rules);
        let all = explanation.groups.iter();
        let count: usize = all
            .map(|group| group.allowed.len() + group.depends.len() + group.denied.len())
            .sum();
        let known = (0..syscalls::BEYOND)
            .filter(|n| syscalls::name(*n).is_some())
            .count();
        assert_eq!(count, known);
        assert_eq!(explanation.default, "denied");
        let network = explanation
            .groups
            .iter()
            .find(|g| g.kind == "network")
            .unwrap();
        assert!(network.allowed.is_empty() && network.depends.is_empty());
    }

    #[test]
    fn a_call_is_grouped_by_what_it_does_and_not_by_how_it_sounds() {
        for (name, wanted) in [
            ("socket", "network"),
            ("recvmmsg", "network"),
            ("mbind", "memory"),
            ("sendfile", "files and the rest"),
            ("pidfd_send_signal", "other processes"),
            ("ioprio_set", "processes and threads"),
            ("ioperm", "kernel administration"),
            ("io_pgetevents", "io_uring and aio"),
            ("pkey_alloc", "memory"),
            ("keyctl", "kernel administration"),
            ("move_mount", "namespaces and mounts"),
            ("umount2", "namespaces and mounts"),
            ("execveat", "programs"),
            ("memfd_create", "programs"),
            ("timerfd_create", "signals and time"),
            ("utimensat", "files and the rest"),
            ("clock_settime", "kernel administration"),
            ("setuid", "identity"),
            ("semtimedop", "message queues and semaphores"),
            ("swapoff", "kernel administration"),
            ("name_to_handle_at", "files and the rest"),
        ] {
            assert_eq!(kind(name), wanted, "{name}");
        }
    }

    #[test]
    fn kinds_name_calls_that_exist_each_once() {
        let mut known: Vec<&str> = Vec::new();
        for (kind, calls) in KINDS {
            for call in calls.split(' ') {
                assert!(syscalls::number(call).is_some(), "{kind}: {call:?}");
                assert!(!known.contains(&call), "{kind}: {call} is there twice");
                known.push(call);
            }
        }
    }
}
