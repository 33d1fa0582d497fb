//! Control groups of version 2, which this machine may not have: Debian's own
//! kernel in a virtual machine without a network, with this tool and what a test
//! takes along.

use crate::common::machine::{Ended, Machine};
use crate::common::{NOBODY, evidence_in, read_json, required, verify};
use serde_json::Value;
use std::path::Path;

/// What a host has set up, and the runs. An emulated machine can be too slow for a
/// probe's deadline, which is UNPROVEN: that may be tried again, a failure may not.
const HOST: &str = r#"
chmod 1777 /var/tmp
mount -t tmpfs -o mode=0755 run /run
mount -t cgroup2 groups /sys/fs/cgroup
mount -t securityfs security /sys/kernel/security
ln -s /programs /sbin
insmod /modules/veth.ko
insmod /modules/overlay.ko
cd /sys/fs/cgroup
echo '+cpu +memory +pids' > cgroup.subtree_control
cat > /attest <<'END'
out=$1; shift
for try in ${TRIES:-1 2 3}; do
    rm -rf $out/*
    "$@" --venue vps --timeout 600 --out $out 2>&1
    code=$?
    [ $code = 3 ] || break
done
echo "exit of $out: $code"
END
# A group, its directories, and a way to be there, for a user who is not root.
mkdir theirs theirs/shell
echo '+cpu +memory +pids' > theirs/cgroup.subtree_control
for file in theirs theirs/cgroup.procs theirs/shell theirs/shell/cgroup.procs; do
    chown WHO:WHO $file
done
mkdir -p /tmp/user /home/somebody /run/user/WHO
chown WHO:WHO /tmp/user /home/somebody /run/user/WHO
cat > /as-somebody <<'END'
echo $$ > /sys/fs/cgroup/theirs/shell/cgroup.procs
cd /home/somebody
export HOME=/home/somebody USER=somebody XDG_RUNTIME_DIR=/run/user/WHO
exec /programs/setpriv --reuid WHO --regid WHO --clear-groups "$@"
END
RUNS
echo "left: $(find /sys/fs/cgroup /run /tmp -maxdepth 3 -name 'tki-attest-*' | wc -l)"
"#;

/// As root on both engines without a daemon, and as a user who was given a group.
const WITHOUT_A_DAEMON: &str = r#"
sh /attest /tmp/root tki-attest run --engine embedded --controls CONTROLS
sh /attest /tmp/bwrap tki-attest run --engine bwrap --controls none
sh /as-somebody sh /attest /tmp/user tki-attest run --engine embedded --controls none
"#;

/// On Podman as it comes, which uses crun here, with runc, and as a user with ranges of
/// ids. Podman looks for its programs in this place. The kernel could load the module that makes
/// pairs of interfaces, and has not: the network control does without.
const ON_PODMAN: &str = r#"
ln -s /programs /usr/bin
rmmod veth
sh /attest /tmp/crun tki-attest run --engine podman --controls safe
sh /attest /tmp/runc tki-attest run --engine podman --runtime runc --controls none
chmod u+s /programs/newuidmap /programs/newgidmap
echo 'somebody:100000:65536' | tee /etc/subuid > /etc/subgid
sh /as-somebody sh /attest /tmp/user tki-attest run --engine podman --controls safe
echo "groups of somebody: $(find /sys/fs/cgroup/theirs -mindepth 1 -type d | tr '\n' ' ')"
podman ps -aq --external > /tmp/list && echo "containers: $(wc -l < /tmp/list)"
sh /as-somebody podman ps -aq --external > /tmp/list &&
    echo "containers of somebody: $(wc -l < /tmp/list)"
"#;

/// On a Docker Engine that has no networks to offer: one in the first group, where it cannot
/// limit swap, and one in a group of its own, as services are.
const ON_DOCKER: &str = r#"
ln -s /run /var/run
engine() {
    dockerd --bridge=none --iptables=false --ip6tables=false > /tmp/dockerd.log 2>&1 &
    for second in $(seq 120); do
        tki-attest clean --engine docker > /tmp/clean 2>&1 && break
        sleep 1
    done
}
engine
sh /attest /tmp/first tki-attest run --engine docker --controls none
kill $! && wait $!
mkdir docker.service
echo $$ > docker.service/cgroup.procs
engine
echo $$ > cgroup.procs
sh /attest /tmp/docker tki-attest run --engine docker --controls CONTROLS
kill $! && wait $!
"#;

/// Controls run into limits within two seconds, which an emulated machine that
/// shares its processors with other tests may not. `TKI_TEST_CONTROLS=safe` runs
/// them nevertheless.
fn controls() -> String {
    std::env::var("TKI_TEST_CONTROLS").unwrap_or("none".into())
}

/// The machine's memory, in MiB.
const MEMORY: u32 = 2048;

/// A machine with this tool, some programs and what engines read.
fn machine(programs: &[&str]) -> Machine {
    let machine = Machine::new();
    machine.take(Path::new(env!("CARGO_BIN_EXE_tki-attest")));
    for name in [&["apparmor_parser"], programs].concat() {
        machine.take_found(name);
    }
    machine.take_module("veth.ko");
    machine.take_module("overlay.ko");
    // Engines' own profiles of AppArmor are made of these.
    let folders = [
        "/etc/apparmor",
        "/etc/apparmor.d",
        "/usr/share/apparmor-features",
    ];
    machine.take_folders("apparmor", &folders);
    let users =
        format!("root:x:0:0::/:/bin/sh\nsomebody:x:{NOBODY}:{NOBODY}::/home/somebody:/bin/sh\n");
    machine.write("etc/passwd", users.as_bytes(), 0o644);
    let policy = br#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
    machine.write("etc/containers/policy.json", policy, 0o644);
    machine
}

/// The name of a run, and the status that it ends with.
type Exit = (&'static str, i32);

/// Boots it with some programs and makes runs, each of which writes into a directory by
/// its name.
fn boot(programs: &[&str], runs: &str, exits: &[Exit]) -> Ended {
    let script = HOST
        .replace("RUNS", runs)
        .replace("WHO", &NOBODY.to_string())
        .replace("CONTROLS", &controls());
    let written: Vec<&str> = exits.iter().map(|(name, _)| *name).collect();
    let ended = machine(programs).boot(MEMORY, &script, "/tmp", &written);
    let screen = &ended.screen;
    for (name, code) in exits {
        let line = format!("exit of /tmp/{name}: {code}");
        assert!(screen.contains(&line), "{line}: {screen}");
    }
    assert!(screen.contains("left: 0"), "{screen}");
    ended
}

fn evidence(out: &Path, passed: u64) -> Value {
    let path = evidence_in(out);
    verify(&path, &["--require-artifacts"]).succeeded();
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
    assert_eq!(evidence["summary"]["passed"], passed);
    assert_eq!(evidence["runtime"]["cgroup_version"], "2");
    let sandbox = &evidence["sandbox"];
    // Which label a container gets is the engine's to say.
    let mut configured = sandbox["configured"].clone();
    configured["lsm"] = "".into();
    assert_eq!(sandbox["declared"], configured);
    for limit in ["pids_limit", "memory_swap_bytes", "cpu_quota_us"] {
        assert_ne!(sandbox["configured"][limit], 0, "{limit}");
    }
    assert_eq!(evidence["witnesses"]["outside"]["available"], true);
    evidence
}

/// Of a run with the controls, if they were asked for.
fn evidence_with_controls(out: &Path) -> Value {
    let wanted = controls();
    let evidence = evidence(
        out,
        if wanted == "none" {
            required(false)
        } else {
            required(true)
        },
    );
    let ran = evidence["controls"].as_array().unwrap();
    assert_eq!(ran.is_empty(), wanted == "none");
    for control in ran {
        assert_eq!(control["holds"], true, "{control}");
    }
    evidence
}

#[test]
fn with_groups_of_version_2_engines_without_a_daemon_attest() {
    let programs = ["setpriv", "bwrap"];
    let exits = [("root", 0), ("bwrap", 0), ("user", 0)];
    let ended = boot(&programs, WITHOUT_A_DAEMON, &exits);
    let out = &ended.written;
    let root = evidence_with_controls(&out.join("root"));
    assert_eq!(root["runtime"]["rootless"], false);
    let bwrap = evidence(&out.join("bwrap"), required(false));
    assert_eq!(bwrap["runtime"]["engine"], "bwrap");
    let user = evidence(&out.join("user"), required(false));
    assert_eq!(user["runtime"]["rootless"], true);
}

/// crun refuses hosts with groups of both versions, and is what Podman uses elsewhere.
#[test]
fn with_groups_of_version_2_podman_attests_with_crun_with_runc_and_for_a_user() {
    let programs = [
        "podman",
        "conmon",
        "crun",
        "runc",
        "newuidmap",
        "newgidmap",
        "setpriv",
    ];
    let exits = [("crun", 0), ("runc", 0), ("user", 0)];
    let ended = boot(&programs, ON_PODMAN, &exits);
    let (screen, out) = (&ended.screen, &ended.written);
    assert!(screen.contains("containers: 0"), "{screen}");
    assert!(screen.contains("containers of somebody: 0"), "{screen}");
    assert!(!screen.contains("crun cannot run"), "{screen}");
    let crun = evidence(&out.join("crun"), required(true));
    for control in crun["controls"].as_array().unwrap() {
        assert_eq!(control["holds"], true, "{control}");
    }
    // Most hosts have an AppArmor: its label can be taken away.
    let probes = crun["probes"].as_array().unwrap();
    let by = |id: &str| {
        let probe = probes.iter().find(|probe| probe["probe_id"] == id);
        probe.unwrap()["calibrated_by"].clone()
    };
    assert_eq!(by("XP-ID-LSM"), serde_json::json!(["label"]));
    // No module was loaded, and what it would have made was not missed.
    let modules = &crun["inventory"]["after"]["modules"];
    assert!(!modules.as_array().unwrap().is_empty(), "{modules}");
    assert!(!modules.to_string().contains("veth"), "{modules}");
    let network = serde_json::json!(["seccomp-network", "network"]);
    assert_eq!(by("PR-NET-2"), network);
    let runc = evidence(&out.join("runc"), required(false));
    for (evidence, runtime) in [(crun, "crun"), (runc, "runc")] {
        assert_eq!(evidence["runtime"]["engine"], "podman");
        assert_eq!(evidence["runtime"]["oci_runtime"], runtime);
        assert_eq!(evidence["sandbox"]["gate"]["active"], true, "{runtime}");
    }
    // Without systemd Podman makes groups for a user only in one that is named to it.
    let user = evidence(&out.join("user"), required(true));
    assert_eq!(user["runtime"]["rootless"], true);
    for control in user["controls"].as_array().unwrap() {
        assert_eq!(control["holds"], true, "{control}");
    }
    let left = "groups of somebody: /sys/fs/cgroup/theirs/shell \n";
    assert!(screen.replace('\r', "").contains(left), "{screen}");
}

fn information<'a>(evidence: &'a Value, name: &str) -> &'a str {
    let all = evidence["information"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name).unwrap();
    found["value"].as_str().unwrap()
}

/// The engine, the control groups and the AppArmor that most hosts have.
#[test]
fn with_groups_of_version_2_docker_attests() {
    let programs = ["dockerd", "containerd", "containerd-shim-runc-v2", "runc"];
    let exits = [("first", 0), ("docker", 0)];
    let ended = boot(&programs, ON_DOCKER, &exits);
    let out = &ended.written;
    let docker = evidence_with_controls(&out.join("docker"));
    let first = evidence_in(&out.join("first"));
    verify(&first, &["--require-artifacts"]).succeeded();
    let first = read_json(&first);
    for (evidence, has_swap_limit) in [(docker, true), (first, false)] {
        // As on most hosts, in words of the kernel's.
        let confined = information(&evidence, "lsm.current");
        assert_eq!(confined, "docker-default (enforce)");
        assert_eq!(evidence["raw"]["lsm_label"], "docker-default (enforce)\n");
        assert_eq!(evidence["sandbox"]["configured"]["lsm"], "docker-default");
        let agreed = evidence["witnesses"]["agreement"].as_array().unwrap();
        let label = agreed.iter().find(|row| row["fact"] == "lsm").unwrap();
        let words = ["inside", "outside", "configured"];
        assert!(
            words.iter().all(|word| label[*word] == "docker-default"),
            "{label}"
        );
        assert_eq!(evidence["runtime"]["engine"], "docker");
        assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
        let configured = &evidence["sandbox"]["configured"];
        assert_eq!(configured["memory_swap_bytes"] != 0, has_swap_limit);
    }
}
