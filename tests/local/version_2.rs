//! Control groups of version 2, which this machine may not have: Debian's own
//! kernel in a virtual machine without a network, with this tool and nothing else.

use super::NOBODY;
use crate::common::{evidence_in, need, prepared, read_json, verify};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel unpacks its first files into a place that nobody can change the root
/// of, so they move.
const FIRST: &str = r#"#!/bin/busybox sh
/bin/busybox mkdir /new
/bin/busybox mount -t tmpfs -o mode=0755 root /new
/bin/busybox cp -a /bin /lib /lib64 /programs /veth.ko /second /new/
/bin/busybox mkdir /new/proc /new/sys /new/dev /new/tmp /new/run
exec /bin/busybox switch_root /new /second
"#;

/// What a host has set up, then the runs: as root on both engines, and as somebody
/// who was given a group. What they wrote leaves through the second serial line. An emulated
/// machine can be too slow for a probe's deadline, which is UNPROVEN: that may be
/// tried again, a failure may not.
const SECOND: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/programs:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts && mount -t devpts pts /dev/pts
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=0755 run /run
mount -t cgroup2 groups /sys/fs/cgroup
insmod /veth.ko
cd /sys/fs/cgroup
echo '+cpu +memory +pids' > cgroup.subtree_control
cat > /attest <<'END'
out=$1; shift
for try in 1 2 3; do
    rm -rf $out/*
    "$@" --venue vps --timeout 600 --out $out 2>&1
    code=$?
    [ $code = 3 ] || break
done
echo "exit of $out: $code"
END
sh /attest /tmp/root tki-attest run --engine embedded --controls CONTROLS
sh /attest /tmp/bwrap tki-attest run --engine bwrap --controls none
mkdir theirs theirs/shell
echo '+cpu +memory +pids' > theirs/cgroup.subtree_control
for file in theirs theirs/cgroup.procs theirs/shell theirs/shell/cgroup.procs; do
    chown WHO:WHO $file
done
mkdir /tmp/user && chown WHO:WHO /tmp/user
sh -c 'echo $$ > theirs/shell/cgroup.procs; cd /tmp; exec sh /attest /tmp/user \
    /programs/setpriv --reuid WHO --regid WHO --clear-groups \
    tki-attest run --engine embedded --controls none'
echo "left: $(find /sys/fs/cgroup /run /tmp -maxdepth 3 -name 'tki-attest-*' | wc -l)"
stty -F /dev/ttyS1 raw -echo
tar -C /tmp -czf /dev/ttyS1 root bwrap user
echo "all said"
poweroff -f
"#;

/// Controls run into limits within two seconds, which an emulated machine that
/// shares its processors with other tests may not. `TKI_TEST_CONTROLS=safe` runs
/// them nevertheless.
fn controls() -> String {
    std::env::var("TKI_TEST_CONTROLS").unwrap_or("none".into())
}

/// The machine's memory, in MiB.
const MEMORY: &str = "1024";

/// A program with the libraries that it is linked to, below `root`.
fn take(program: &Path, root: &Path) {
    let place = root.join("programs").join(program.file_name().unwrap());
    fs::create_dir_all(root.join("programs")).unwrap();
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
        let copy = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
}

/// The first files, as the kernel takes them.
fn first_files(folder: &Path) -> PathBuf {
    let root = folder.join("files");
    let tool = env!("CARGO_BIN_EXE_tki-attest");
    for program in [tool, "/usr/bin/setpriv", "/usr/bin/bwrap"] {
        take(Path::new(program), &root);
    }
    fs::create_dir(root.join("bin")).unwrap();
    fs::copy("/bin/busybox", root.join("bin/busybox"))
        .unwrap_or_else(|error| panic!("/bin/busybox: {error}: install busybox-static"));
    let module = prepared(Path::new("kernel/veth.ko"), "other-kernel");
    fs::copy(module, root.join("veth.ko")).unwrap();
    let second = SECOND
        .replace("WHO", &NOBODY.to_string())
        .replace("CONTROLS", &controls());
    for (name, text) in [("init", FIRST), ("second", &second)] {
        let path = root.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let packed = folder.join("files.cpio");
    let script = "cd \"$1\" && busybox find . | busybox cpio -o -H newc > \"$2\"";
    let mut pack = Command::new("sh");
    pack.args(["-c", script, "sh"]).arg(&root).arg(&packed);
    let said = need("busybox-static", &mut pack);
    assert_eq!(said.status, 0, "{said:?}");
    packed
}

/// Boots it; gives what stood on its screen, and what the runs wrote.
fn boot(folder: &Path) -> (String, PathBuf) {
    let files = first_files(folder);
    let written = folder.join("written.tar.gz");
    let kernel = prepared(Path::new("kernel/vmlinuz"), "other-kernel");
    // Emulated, because a virtual machine may not be able to have one of its own.
    let mut machine = Command::new("timeout");
    machine
        .args(["600", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max"])
        .args(["-smp", "2", "-m", MEMORY, "-nic", "none", "-nographic"])
        .args(["-no-reboot", "-append", "console=ttyS0 panic=-1 quiet"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(files)
        .args(["-serial", "mon:stdio", "-serial"])
        .arg(format!("file:{}", written.display()))
        .stdin(Stdio::null());
    let said = need("qemu-system-x86", &mut machine);
    let out = folder.join("written");
    fs::create_dir(&out).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&written).arg("-C").arg(&out);
    let unpacked = need("tar", &mut unpack);
    assert_eq!(unpacked.status, 0, "{unpacked:?}: {}", said.stdout);
    (said.stdout, out)
}

fn evidence(out: &Path, passed: u32) -> Value {
    let path = evidence_in(out);
    verify(&path, &["--require-artifacts"]).succeeded();
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
    assert_eq!(evidence["summary"]["passed"], passed);
    assert_eq!(evidence["runtime"]["cgroup_version"], "2");
    let sandbox = &evidence["sandbox"];
    assert_eq!(sandbox["declared"], sandbox["configured"]);
    for limit in ["pids_limit", "memory_swap_bytes", "cpu_quota_us"] {
        assert_ne!(sandbox["configured"][limit], 0, "{limit}");
    }
    assert_eq!(evidence["witnesses"]["outside"]["available"], true);
    evidence
}

#[test]
fn with_groups_of_version_2_engines_without_a_daemon_attest() {
    let folder = tempfile::tempdir().unwrap();
    let (screen, out) = boot(folder.path());
    for who in ["root", "bwrap", "user"] {
        let line = format!("exit of /tmp/{who}: 0");
        assert!(screen.contains(&line), "{line}: {screen}");
    }
    assert!(screen.contains("left: 0"), "{screen}");
    let root = evidence(
        &out.join("root"),
        if controls() == "none" { 46 } else { 52 },
    );
    assert_eq!(root["runtime"]["rootless"], false);
    let ran = root["controls"].as_array().unwrap();
    assert_eq!(ran.is_empty(), controls() == "none");
    for control in ran {
        assert_eq!(control["holds"], true, "{control}");
    }
    let bwrap = evidence(&out.join("bwrap"), 46);
    assert_eq!(bwrap["runtime"]["engine"], "bwrap");
    let user = evidence(&out.join("user"), 46);
    assert_eq!(user["runtime"]["rootless"], true);
}
