//! Errno and signal names. Evidence carries names, not numbers: numbers differ
//! between architectures and say nothing to a reader.

use alloc::string::String;

/// The generic Linux errno numbers (x86-64, arm64, riscv64).
const ERRNOS: &[(i32, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (15, "ENOTBLK"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (33, "EDOM"),
    (34, "ERANGE"),
    (35, "EDEADLK"),
    (36, "ENAMETOOLONG"),
    (37, "ENOLCK"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (42, "ENOMSG"),
    (43, "EIDRM"),
    (44, "ECHRNG"),
    (45, "EL2NSYNC"),
    (46, "EL3HLT"),
    (47, "EL3RST"),
    (48, "ELNRNG"),
    (49, "EUNATCH"),
    (50, "ENOCSI"),
    (51, "EL2HLT"),
    (52, "EBADE"),
    (53, "EBADR"),
    (54, "EXFULL"),
    (55, "ENOANO"),
    (56, "EBADRQC"),
    (57, "EBADSLT"),
    (59, "EBFONT"),
    (60, "ENOSTR"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (63, "ENOSR"),
    (64, "ENONET"),
    (65, "ENOPKG"),
    (66, "EREMOTE"),
    (67, "ENOLINK"),
    (68, "EADV"),
    (69, "ESRMNT"),
    (70, "ECOMM"),
    (71, "EPROTO"),
    (72, "EMULTIHOP"),
    (73, "EDOTDOT"),
    (74, "EBADMSG"),
    (75, "EOVERFLOW"),
    (76, "ENOTUNIQ"),
    (77, "EBADFD"),
    (78, "EREMCHG"),
    (79, "ELIBACC"),
    (80, "ELIBBAD"),
    (81, "ELIBSCN"),
    (82, "ELIBMAX"),
    (83, "ELIBEXEC"),
    (84, "EILSEQ"),
    (85, "ERESTART"),
    (86, "ESTRPIPE"),
    (87, "EUSERS"),
    (88, "ENOTSOCK"),
    (89, "EDESTADDRREQ"),
    (90, "EMSGSIZE"),
    (91, "EPROTOTYPE"),
    (92, "ENOPROTOOPT"),
    (93, "EPROTONOSUPPORT"),
    (94, "ESOCKTNOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (96, "EPFNOSUPPORT"),
    (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (100, "ENETDOWN"),
    (101, "ENETUNREACH"),
    (102, "ENETRESET"),
    (103, "ECONNABORTED"),
    (104, "ECONNRESET"),
    (105, "ENOBUFS"),
    (106, "EISCONN"),
    (107, "ENOTCONN"),
    (108, "ESHUTDOWN"),
    (109, "ETOOMANYREFS"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (112, "EHOSTDOWN"),
    (113, "EHOSTUNREACH"),
    (114, "EALREADY"),
    (115, "EINPROGRESS"),
    (116, "ESTALE"),
    (117, "EUCLEAN"),
    (118, "ENOTNAM"),
    (119, "ENAVAIL"),
    (120, "EISNAM"),
    (121, "EREMOTEIO"),
    (122, "EDQUOT"),
    (123, "ENOMEDIUM"),
    (124, "EMEDIUMTYPE"),
    (125, "ECANCELED"),
    (126, "ENOKEY"),
    (127, "EKEYEXPIRED"),
    (128, "EKEYREVOKED"),
    (129, "EKEYREJECTED"),
    (130, "EOWNERDEAD"),
    (131, "ENOTRECOVERABLE"),
    (132, "ERFKILL"),
];

const SIGNALS: &[(i32, &str)] = &[
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (19, "SIGSTOP"),
    (31, "SIGSYS"),
];

fn look_up(table: &[(i32, &str)], number: i32, prefix: &str) -> String {
    match table.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => (*name).into(),
        None => alloc::format!("{prefix}{number}"),
    }
}

fn is_known(table: &[(i32, &str)], name: &str, prefix: &str) -> bool {
    table.iter().any(|(_, known)| *known == name)
        || name
            .strip_prefix(prefix)
            .and_then(|number| number.parse::<u16>().ok())
            .is_some_and(|number| look_up(table, number.into(), prefix) == name)
}

/// Whether [`name`] gives this name to a number.
pub fn is_errno(name: &str) -> bool {
    is_known(ERRNOS, name, "ERRNO_")
}

/// Whether [`signal_name`] gives this name to a number.
pub fn is_signal(name: &str) -> bool {
    is_known(SIGNALS, name, "SIGNAL_")
}

/// The name of an errno, or `ERRNO_<n>` for one that has none.
pub fn name(number: i32) -> String {
    look_up(ERRNOS, number, "ERRNO_")
}

/// The number of an errno that has a name.
pub fn number(name: &str) -> Option<i32> {
    let known = ERRNOS.iter().find(|(_, known)| *known == name);
    known.map(|(number, _)| *number)
}

/// Whether this is how an errno or a signal is written.
pub fn is_name(text: &str) -> bool {
    is_errno(text) || is_signal(text)
}

/// The name of a signal, or `SIGNAL_<n>`.
pub fn signal_name(number: i32) -> String {
    look_up(SIGNALS, number, "SIGNAL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(name(1), "EPERM");
        assert_eq!(name(30), "EROFS");
        assert_eq!(name(97), "EAFNOSUPPORT");
        assert_eq!(name(101), "ENETUNREACH");
        assert_eq!(name(4095), "ERRNO_4095");
        assert_eq!(number("ENOSYS"), Some(38));
        assert_eq!(number("ERRNO_4095"), None);
        for name in ["EPERM", "SIGSYS", "ERRNO_1009", "SIGNAL_64"] {
            assert!(is_name(name), "{name}");
        }
        for none in [
            "",
            "EPERMx",
            "ERRNO_1",
            "ERRNO_01009",
            "ERRNO_-1",
            "SIGNAL_31",
        ] {
            assert!(!is_name(none), "{none}");
        }
        assert_eq!(signal_name(31), "SIGSYS");
    }
}
