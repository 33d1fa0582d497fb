//! Debian's own kernel in an emulated machine without a network, with files of a test's
//! own. What a script in it writes leaves through the second serial line.

use super::{need, prepared};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tki_attest::host::process::find_in;

/// The kernel unpacks its first files into a place that nobody can change the root
/// of, so they move.
const FIRST: &str = r#"#!/system/bin/busybox sh
/system/bin/busybox mkdir /new
/system/bin/busybox mount -t tmpfs -o mode=0755 root /new
/system/bin/busybox cp -a /system/. /new/
/system/bin/busybox mkdir -p /new/proc /new/sys /new/dev /new/tmp /new/run /new/var/tmp
exec /system/bin/busybox switch_root /new /second
"#;

/// What every machine has set up, and how it ends.
const SECOND: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/programs:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm && mount -t devpts pts /dev/pts
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=1777 shm /dev/shm
SCRIPT
stty -F /dev/ttyS1 raw -echo
tar -C FROM -czf /dev/ttyS1 NAMES
echo "all said"
poweroff -f
"#;

/// What the kernel is told.
const ARGUMENTS: &str = "console=ttyS0 panic=-1 quiet cryptomgr.notests=1";

/// A machine that has not been booted: its files in a temporary directory.
pub struct Machine {
    folder: tempfile::TempDir,
    system: PathBuf,
}

/// What is left of a machine that has ended.
pub struct Ended {
    /// What stood on the screen.
    pub screen: String,
    /// What its script wrote, below the directory that was asked for.
    pub written: PathBuf,
    _folder: tempfile::TempDir,
}

impl Machine {
    /// A machine with a shell and what belongs to it.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().join("files/system");
        fs::create_dir_all(&system).unwrap();
        let machine = Self { folder, system };
        let shell = fs::read("/bin/busybox")
            .unwrap_or_else(|error| panic!("/bin/busybox: {error}: install busybox-static"));
        machine.write("bin/busybox", &shell, 0o755);
        machine
    }

    /// A file, by its path without the first slash.
    pub fn write(&self, name: &str, bytes: &[u8], mode: u32) {
        let path = self.system.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A program in /programs, with the libraries that it is linked to.
    pub fn take(&self, program: &Path) {
        let place = self
            .system
            .join("programs")
            .join(program.file_name().unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let said = need(
            "binutils",
            Command::new("strip").arg("-o").arg(&place).arg(program),
        );
        assert_eq!(said.status, 0, "{said:?}");
        let listed = need("libc-bin", Command::new("ldd").arg(program)).stdout;
        for library in listed
            .split_whitespace()
            .filter(|word| word.starts_with("/"))
        {
            let copy = self.system.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(library, copy).unwrap();
        }
    }

    /// A program of this machine's, wherever it is: some put it here and some there.
    pub fn take_found(&self, program: &str) {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        let found = find_in(std::env::split_paths(&own).chain(usual), program)
            .unwrap_or_else(|| panic!("there is no {program}: install it"));
        self.take(&found);
    }

    /// Whole directories, at the same paths as here.
    pub fn take_folders(&self, package: &str, folders: &[&str]) {
        let mut copy = Command::new("cp");
        copy.args(["-r", "--parents"]).args(folders);
        assert_eq!(need(package, copy.arg(&self.system)).status, 0);
    }

    /// A module of its kernel, in /modules.
    pub fn take_module(&self, name: &str) {
        let module = prepared(&Path::new("kernel").join(name), "other-kernel");
        self.write(
            &format!("modules/{name}"),
            &fs::read(module).unwrap(),
            0o644,
        );
    }

    /// The first files, as the kernel takes them.
    fn packed(&self, script: &str, from: &str, names: &str) -> PathBuf {
        let second = SECOND
            .replace("FROM", from)
            .replace("NAMES", names)
            .replace("SCRIPT", script);
        self.write("second", second.as_bytes(), 0o755);
        self.write("../init", FIRST.as_bytes(), 0o755);
        let packed = self.folder.path().join("files.cpio");
        let script = "cd \"$1\" && busybox find . | busybox cpio -o -H newc > \"$2\"";
        let mut pack = Command::new("sh");
        pack.args(["-c", script, "sh"])
            .arg(self.system.parent().unwrap())
            .arg(&packed);
        let said = need("busybox-static", &mut pack);
        assert_eq!(said.status, 0, "{said:?}");
        packed
    }

    /// Boots it with so much memory, in MiB, and an empty disk (`/dev/nvme0n1`); runs a
    /// script as its first process, and brings what that leaves by these names in a directory.
    pub fn boot(self, memory: u32, script: &str, from: &str, names: &[&str]) -> Ended {
        let files = self.packed(script, from, &names.join(" "));
        let sent = self.folder.path().join("written.tar.gz");
        let disk = self.folder.path().join("disk");
        fs::File::create(&disk).unwrap().set_len(16 << 20).unwrap();
        // Emulated, because a virtual machine may not be able to have one of its own. The
        // kernel's tests of its ciphers were seen to hang there.
        let mut machine = Command::new("timeout");
        machine
            .args(["600", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max"])
            .args(["-smp", "2", "-m", &memory.to_string()])
            .args(["-nic", "none", "-nographic", "-no-reboot"])
            .args(["-append", ARGUMENTS, "-kernel"])
            .arg(prepared(Path::new("kernel/vmlinuz"), "other-kernel"))
            .arg("-initrd")
            .arg(files)
            .args(["-device", "nvme,drive=disk,serial=1", "-drive"])
            .arg(format!(
                "if=none,id=disk,format=raw,file={}",
                disk.display()
            ))
            .args(["-serial", "mon:stdio", "-serial"])
            .arg(format!("file:{}", sent.display()))
            .stdin(Stdio::null());
        let screen = need("qemu-system-x86", &mut machine).stdout;
        let written = self.folder.path().join("written");
        fs::create_dir(&written).unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&sent).arg("-C").arg(&written);
        let unpacked = need("tar", &mut unpack);
        assert_eq!(unpacked.status, 0, "{unpacked:?}: {screen}");
        Ended {
            screen,
            written,
            _folder: self.folder,
        }
    }
}
