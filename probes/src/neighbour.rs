//! The neighbour: a container of its own beside the controls, with what two of them are
//! to show to their probes. Its network namespace holds an interface and a socket, its IPC
//! namespace shared memory, and its two volumes hold a decoy each. It greets when all of it is there, says which namespaces it is in, and
//! goes when its standard input is closed.

use crate::conversation::{self, BLOCKED, DONE, Output, Place};
use crate::information;
use crate::sys::{self, Errno, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY, POLLIN, PollFd, Result};
use alloc::format;
use alloc::string::String;
use core::ffi::CStr;
use tki_evidence::netlink;
use tki_evidence::wire::LONGEST_RUN;
use tki_inside::io;

/// The file that the probes try to change.
const TARGET_TEXT: &[u8] = b"The probes try to change this file.\n";

/// A step that failed, and why.
type Failed = (String, Errno);

/// Furnishes the namespace and the volumes, greets, waits, and returns the exit status. The
/// socket has an abstract name, which the controls try.
pub fn furnish_and_wait(name: &[u8]) -> i32 {
    let missing = match conversation::admitted(Place::Own) {
        Ok(missing) => missing,
        Err(status) => return status,
    };
    let Ok(name) = core::str::from_utf8(name) else {
        return conversation::refuse(BLOCKED, "the name is no text".into());
    };
    if let Err((step, errno)) = furnish(name) {
        let errno = tki_evidence::errno::name(errno.0);
        return conversation::refuse(BLOCKED, format!("cannot {step}: {errno}"));
    }
    let mut out = Output::default();
    conversation::greet(&mut out, &missing);
    out.send_raw("namespaces", information::namespaces());
    out.flush();
    match wait_for_the_end() {
        Ok(()) => DONE,
        Err(_) => conversation::refuse(BLOCKED, "cannot wait for standard input".into()),
    }
}

/// What is made, for a person, and what makes it.
type Step = (&'static str, fn() -> Result<()>);

/// What is made in the volumes, in this order.
const STEPS: &[Step] = &[
    ("make shared memory", || sys::shared_memory(4096).map(drop)),
    ("open /in to everybody", || open_to_everybody(c"/in")),
    ("open /out to everybody", || open_to_everybody(c"/out")),
    ("write /in/tki-probe-target", || {
        write_target(c"/in/tki-probe-target")
    }),
    ("write /out/tki-probe-target", || {
        write_target(c"/out/tki-probe-target")
    }),
    ("make /in/docker.sock", || make_socket(c"/in/docker.sock")),
    ("write /out/suid-decoy", || {
        write_new(c"/out/suid-decoy", b"not a program\n", 0o4444)
    }),
];

fn furnish(name: &str) -> core::result::Result<(), Failed> {
    make_interface()?;
    make_unix_socket(name).map_err(|errno| (String::from("make a unix socket"), errno))?;
    for (step, make) in STEPS {
        make().map_err(|errno| (String::from(*step), errno))?;
    }
    Ok(())
}

/// The pair of interfaces, in the network namespace that this is. Requests to the kernel
/// are written to a netlink socket, so that no call is needed that could send elsewhere.
fn make_interface() -> core::result::Result<(), Failed> {
    const AF_NETLINK: usize = 16;
    const SOCK_RAW: usize = 3;
    let socket = sys::socket(AF_NETLINK, SOCK_RAW, 0)
        .map_err(|errno| (String::from("make a netlink socket"), errno))?;
    let modules = io::read_text(c"/proc/modules").ok();
    let is_known = io::c_path(netlink::MODULE_FOLDER).and_then(|path| sys::stat(&path));
    let loads_module = netlink::loads_module(modules.as_deref(), is_known.is_ok());
    let made = netlink::make_way(loads_module, |request, answer| {
        let exchanged = sys::write(socket, request).and_then(|_| sys::read(socket, answer));
        exchanged.map_err(|errno| errno.0)
    });
    sys::close(socket);
    made.map_err(|refusal| {
        let step = format!("put an interface here ({})", refusal.step);
        (step, Errno(refusal.errno))
    })
}

/// A socket that leads nowhere, with a name and no file, which every process in this network
/// namespace sees. It stays open for as long as the neighbour is there.
fn make_unix_socket(name: &str) -> Result<()> {
    const AF_UNIX: usize = 1;
    const SOCK_DGRAM: usize = 2;
    let fd = sys::socket(AF_UNIX, SOCK_DGRAM, 0)?;
    sys::bind(fd, &sys::abstract_address(name)).map(drop)
}

/// Opens a directory's mode. One that is open already may be another process's, whose mode
/// this user cannot change.
fn open_to_everybody(folder: &CStr) -> Result<()> {
    const OPEN: u32 = 0o777;
    match sys::stat(folder)?.mode & 0o7777 {
        OPEN => Ok(()),
        _ => sys::chmod(folder, OPEN as usize).map(drop),
    }
}

/// The file that the probes try to change, unless it came with the volume.
fn write_target(path: &CStr) -> Result<()> {
    match write_new(path, TARGET_TEXT, 0o666) {
        Err(Errno::EEXIST) => Ok(()),
        written => written,
    }
}

/// A socket that nobody serves. Its mode does not depend on the umask.
fn make_socket(path: &CStr) -> Result<()> {
    sys::mknod_socket(path)?;
    sys::chmod(path, 0o666).map(drop)
}

/// Writes a new file. Its mode comes last: it does not depend on the umask, and writing
/// would take a set-user-id bit away.
fn write_new(path: &CStr, text: &[u8], mode: usize) -> Result<()> {
    let fd = sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)?;
    let written = io::write_all(fd, text);
    sys::close(fd);
    written?;
    sys::chmod(path, mode).map(drop)
}

/// Waits until standard input is closed, and no longer than a run can take. What is said
/// there is read and ignored.
fn wait_for_the_end() -> Result<()> {
    let give_up_at = sys::now_us() + LONGEST_RUN * 1_000_000;
    let mut ignored = [0; 512];
    loop {
        let left = give_up_at.saturating_sub(sys::now_us());
        if left == 0 {
            return Ok(());
        }
        let mut fds = [PollFd {
            fd: 0,
            events: POLLIN,
            revents: 0,
        }];
        match sys::poll(&mut fds, left.div_ceil(1000)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        match sys::read(0, &mut ignored) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_made_is_new_and_has_its_mode() {
        let folder = std::env::temp_dir().join(format!("tki-neighbour-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = |name: &str| {
            let path = folder.join(name);
            alloc::ffi::CString::new(path.as_os_str().as_bytes()).unwrap()
        };
        let mode = |name: &str| {
            let found = fs::symlink_metadata(folder.join(name)).unwrap();
            format!("{:o}", found.permissions().mode())
        };
        write_new(&path("decoy"), b"not a program\n", 0o4444).unwrap();
        assert_eq!(mode("decoy"), "104444");
        assert_eq!(write_new(&path("decoy"), b"", 0o600), Err(Errno::EEXIST));
        // A target that came with the volume stays as it is.
        assert_eq!(write_target(&path("decoy")), Ok(()));
        assert_eq!(fs::read(folder.join("decoy")).unwrap(), b"not a program\n");
        write_target(&path("target")).unwrap();
        assert_eq!(mode("target"), "100666");
        assert_eq!(fs::read(folder.join("target")).unwrap(), TARGET_TEXT);
        make_socket(&path("docker.sock")).unwrap();
        assert_eq!(mode("docker.sock"), "140666");
        assert_eq!(make_socket(&path("docker.sock")), Err(Errno::EEXIST));
        open_to_everybody(&path("")).unwrap();
        assert_eq!(mode(""), "40777");
        assert_eq!(open_to_everybody(&path("none")), Err(Errno::ENOENT));
        fs::remove_dir_all(&folder).unwrap();
    }
}
