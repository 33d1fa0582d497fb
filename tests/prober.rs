//! The prober: what it is made of, and what it does where it should do
//! nothing. The layer-2 guard of requirements R2 to R4 and R10: no network
//! client, no driver, no loader is in the binary, because nothing is in it that
//! is not listed here.

use crate::common::by_hand::ByHand;
use crate::common::inside::{self, cargo, compile, copy_sources};
use crate::common::{attest, evidence_in, need, root, run, said, tool, whole_engine};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tki_attest::image::built_in::PROBER;

/// The prober's own file, in a directory of its own.
fn written() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tki-prober");
    fs::write(&path, PROBER).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

/// A new dependency of the prober has to be written down here.
#[test]
fn it_depends_on_nothing_that_is_not_listed() {
    let linked = [
        "itoa",
        "memchr",
        "serde",
        "serde_core",
        "serde_json",
        "zmij",
    ];
    let own = ["tki-evidence", "tki-inside", "tki-prober"];
    // Run by the compiler, and not part of the binary.
    let compiler = [
        "proc-macro2",
        "quote",
        "serde_derive",
        "syn",
        "unicode-ident",
    ];
    let listed = [&linked[..], &own, &compiler].concat();
    inside::depends_only_on("tki-prober", &listed);
}

#[test]
fn it_is_one_small_static_file_that_names_no_machine() {
    assert!(PROBER.len() < 300_000, "{} bytes", PROBER.len());
    let (_folder, path) = written();
    let said = need("binutils", Command::new("readelf").args(["-lW"]).arg(&path));
    said.succeeded();
    assert!(said.stdout.contains("LOAD"), "{said:?}");
    for loader in ["INTERP", "DYNAMIC"] {
        assert!(!said.stdout.contains(loader), "{said:?}");
    }
    assert!(!said.stdout.contains("RWE"), "{said:?}");
    // The home itself is among the paths that a probe tries to open.
    let home = |name: &str| std::env::var("HOME").unwrap_or_default() + name;
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or_else(|_| home("/.cargo"));
    for place in [env!("CARGO_MANIFEST_DIR"), &cargo_home, &home("/.rustup")] {
        let found = PROBER
            .windows(place.len())
            .any(|window| window == place.as_bytes());
        assert!(!found, "{place}");
    }
}

/// Crates that may have code in the binary.
const CRATES: &[&str] = &[
    "__rustc",
    "alloc",
    "compiler_builtins",
    "core",
    "itoa",
    "memchr",
    "serde_core",
    "serde_json",
    "tki_evidence",
    "tki_inside",
    "tki_prober",
    "zmij",
];

#[test]
fn it_contains_no_code_that_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let binary = inside::unstripped("tki-prober", root(), folder.path());
    inside::holds_only(&binary, CRATES);
}

/// The embedded one was compiled here by the build script; this one somewhere
/// else, under a path of another length.
#[test]
fn it_is_the_same_file_wherever_it_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a-rather-long-name-for-a/checkout");
    copy_sources(root(), &place);
    let target = folder.path().join("t");
    let (mut command, binary) = compile::compile("tki-prober", &cargo(), &place, &target);
    run(command.env("CARGO_NET_OFFLINE", "true")).succeeded();
    assert!(fs::read(binary).unwrap() == PROBER, "the bytes differ");
}

/// Set for the test below, which starts itself: where to compile.
const ELSEWHERE: &str = "TKI_TEST_COMPILE_INTO";

/// Neither the user's variables nor their configuration of cargo changes a byte. The
/// test compiles in a process of its own that has them.
#[test]
fn it_follows_no_variable_and_no_configuration() {
    if let Some(target) = std::env::var_os(ELSEWHERE) {
        let workspace = std::env::current_dir().unwrap();
        let (mut command, _) =
            compile::compile("tki-prober", &cargo(), &workspace, Path::new(&target));
        run(command.env("CARGO_NET_OFFLINE", "true")).succeeded();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (place, target) = (folder.path().join("sources"), folder.path().join("target"));
    copy_sources(root(), &place);
    // A wrapper that changes the bytes, if anybody calls it.
    let wrapper = folder.path().join("wrapper");
    let called = folder.path().join("called");
    let script = format!(
        "#!/bin/sh\ntouch {}\nexec \"$@\" -Cdebuginfo=2\n",
        called.display()
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(place.join(".cargo")).unwrap();
    let config = format!(
        "[build]\nrustc-wrapper = \"{0}\"\nrustflags = [\"-Cdebug-assertions=on\"]\n\
         [target.x86_64-unknown-linux-gnu]\nlinker = \"{0}\"\n\
         rustflags = [\"-Coverflow-checks=on\"]\n\
         [profile.release]\noverflow-checks = true\n\
         [profile.inside]\nopt-level = 3\ndebug = 2\nstrip = false\nincremental = true\n",
        wrapper.display()
    );
    fs::write(place.join(".cargo/config.toml"), config).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args([
            "--exact",
            "prober::it_follows_no_variable_and_no_configuration",
        ])
        .current_dir(&place)
        .env(ELSEWHERE, &target)
        .env("CARGO", cargo())
        .env("RUSTC_WRAPPER", &wrapper)
        .env("RUSTC_WORKSPACE_WRAPPER", &wrapper)
        .env("CARGO_BUILD_RUSTC_WRAPPER", &wrapper)
        .env("CARGO_BUILD_RUSTC", &wrapper)
        .env("RUSTFLAGS", "-Cdebug-assertions=on")
        .env("CARGO_BUILD_RUSTFLAGS", "-Cdebug-assertions=on")
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", &wrapper)
        .env("CARGO_PROFILE_INSIDE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_INSIDE_STRIP", "none")
        .env("CARGO_PROFILE_INSIDE_LTO", "off")
        .env("CARGO_PROFILE_INSIDE_BUILD_OVERRIDE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "2")
        .env("CARGO_INCREMENTAL", "1");
    run(&mut again).succeeded();
    assert!(!called.exists(), "a wrapper was called");
    let binary = target.join("x86_64-unknown-linux-gnu/inside/tki-prober");
    assert!(fs::read(binary).unwrap() == PROBER, "the bytes differ");
}

/// What cannot be overruled is at least named.
#[test]
fn configuration_that_counts_all_the_same_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (above, home) = (folder.path().join("above"), folder.path().join("home"));
    let workspace = above.join("workspace");
    for path in [&above.join(".cargo"), &workspace, &home] {
        fs::create_dir_all(path).unwrap();
    }
    let found = || {
        let found = compile::not_overruled(&workspace, &home);
        found
            .into_iter()
            .filter(|(path, _)| path.starts_with(folder.path()))
            .count()
    };
    fs::write(
        home.join("config.toml"),
        "# build-override\n[net]\noffline = true\n",
    )
    .unwrap();
    assert_eq!(found(), 0);
    let text = "[profile.release.build-override]\nopt-level = 3\n";
    fs::write(above.join(".cargo/config.toml"), text).unwrap();
    fs::write(
        home.join("config"),
        "build.rustc-workspace-wrapper = \"x\"\n",
    )
    .unwrap();
    assert_eq!(found(), 2);
}

#[test]
fn outside_a_sandbox_it_names_what_is_missing_and_touches_nothing() {
    for errand in [&["probe"][..], &["neighbour", "name"]] {
        touches_nothing(errand);
    }
    let (_folder, path) = written();
    for arguments in [
        &[][..],
        &["inspect"],
        &["probe2"],
        &["probe", "a", "b"],
        &["neighbour"],
        &["neighbour", "a", "b"],
    ] {
        let said = run(Command::new(&path).args(arguments));
        assert_eq!((said.status, said.stdout.as_str()), (2, ""), "{said:?}");
        assert!(said.stderr.contains("usage: "), "{said:?}");
    }
}

fn touches_nothing(errand: &[&str]) {
    let (folder, path) = written();
    let log = folder.path().join("strace.log");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(&path)
        .args(errand);
    let said = need("strace", strace.stdin(Stdio::null()));
    assert_eq!((said.status, said.stdout.as_str()), (3, ""), "{said:?}");
    for invariant in [
        "sandbox-image",
        "pid-1",
        "in-mount",
        "out-mount",
        "in-read-only",
        "network-none",
        "non-root",
        "no-capabilities",
    ] {
        assert!(
            said.stderr.contains(&format!("missing {invariant} ")),
            "{invariant}: {said:?}"
        );
    }
    assert!(
        said.stderr.contains("BLOCKED") && said.stderr.contains("Next: "),
        "{said:?}"
    );
    let log = fs::read_to_string(log).unwrap();
    for line in log.lines() {
        let call = line
            .split_once(' ')
            .map_or(line, |(_, call)| call.trim_start());
        let fine = [
            "execve(",
            "read(",
            "close(",
            "getpid(",
            "exit",
            "+++",
            "arch_prctl(",
        ]
        .iter()
        .any(|harmless| call.starts_with(harmless))
            || call.starts_with("write(2, ")
            || (call.contains("O_RDONLY")
                && (call.contains("\"/proc/") || call.contains("\"/tki-sandbox\"")));
        assert!(fine, "{line}");
    }
}

/// A new function of `sys` has to be written down here. None of them sends to
/// an address: what the neighbour asks of the kernel it writes to a netlink socket.
#[test]
fn it_has_no_function_for_a_system_call_that_is_not_listed() {
    let calls_of = |path: &str| {
        let source = fs::read_to_string(root().join(path)).unwrap();
        let (_, numbers) = source.split_once("pub mod nr {").unwrap();
        let (numbers, _) = numbers.split_once('}').unwrap();
        let name = |line: &str| {
            let line = line.trim().strip_prefix("pub const ")?;
            line.split(':').next().map(str::to_lowercase)
        };
        let mut found: Vec<String> = numbers.lines().filter_map(name).collect();
        found.sort();
        found.join(" ")
    };
    // What both programs inside can do.
    let shared = "clock_gettime close exit_group fsync getdents64 getpid mmap newfstatat openat prctl \
                  read readlinkat seccomp write";
    assert_eq!(calls_of("inside/src/sys.rs"), shared);
    // What the prober can do beside that, because it has to try it.
    let own = "bind clone connect execve execveat exit fchmodat fstatfs kill linkat memfd_create \
               mkdirat mknodat mmap mount munmap openat2 pipe2 ppoll prlimit64 process_vm_readv \
               ptrace shmget socket symlinkat truncate umount2 unlinkat wait4";
    assert_eq!(calls_of("probes/src/sys.rs"), own);
}

#[test]
fn in_an_ordinary_container_it_refuses_too() {
    let _engine = whole_engine();
    run(tool().args(["build", "--load"])).succeeded();
    let mut command = Command::new("docker");
    command.args([
        "run",
        "--rm",
        "--pids-limit=64",
        "--network=none",
        "tki-inspector:attest",
    ]);
    let said = need("docker.io", &mut command);
    assert_eq!((said.status, said.stdout.as_str()), (3, ""), "{said:?}");
    for invariant in [
        "in-mount",
        "out-mount",
        "in-read-only",
        "rootfs-read-only",
        "no-new-privs",
    ] {
        assert!(
            said.stderr.contains(&format!("missing {invariant} ")),
            "{invariant}: {said:?}"
        );
    }
    for there in ["sandbox-image", "pid-1", "network-none", "non-root"] {
        assert!(!said.stderr.contains(there), "{there}: {said:?}");
    }
}

#[test]
fn in_its_sandbox_it_does_nothing_without_a_proper_challenge() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev", "-q"]);
    let by_hand = ByHand::new(&evidence_in(out.path()));
    let challenge = |protocol: u32, probes: &str, phases: &str| {
        format!(
            "{{\"challenge\":{{\"protocol\":{protocol},\"nonce\":\"n\",\"probes\":[{probes}],\
             \"phases\":[{phases}],\"probe_deadline_ms\":1000,\"overall_deadline_ms\":5000,\
             \"lock\":true,\"env_canary\":\"X\",\"host_canary\":\"/x\",\"limits\":{{\"pids\":0,\
             \"memory_bytes\":0,\"out_bytes\":0,\"tmp_bytes\":0,\"out_files\":0,\
             \"tmp_files\":0,\"nofile\":0,\
             \"cpu_period_us\":0,\"cpu_quota_us\":0}},\"accept_missing\":[]}}}}\n"
        )
    };
    let all = "\"engine\",\"locked\"";
    for (line, status, wanted) in [
        (String::new(), 3, "standard input was closed"),
        ("{\"challenge\":".into(), 3, "standard input was closed"),
        ("hello\n".into(), 2, "malformed"),
        ("{\"challenge\":{}}\n".into(), 2, "malformed"),
        ("x".repeat(70_000), 2, "too long"),
        (challenge(2, "", all), 2, "protocol 2"),
        (challenge(1, "\"PR-NO-1\"", all), 2, "no probe is called"),
        (
            challenge(1, "\"PR-NET-1\"", "\"locked\",\"engine\""),
            2,
            "phases must be in order",
        ),
    ] {
        let mut command = by_hand.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have ended before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(line.as_bytes());
        let said = said(child.wait_with_output().unwrap());
        assert_eq!(said.status, status, "{wanted}: {said:?}");
        let lines: Vec<&str> = said.stdout.lines().collect();
        assert_eq!(lines.len(), 2, "{wanted}: {said:?}");
        assert!(lines[0].contains("\"hello\""), "{said:?}");
        assert!(
            lines[1].contains("\"refused\"") && lines[1].contains(wanted),
            "{said:?}"
        );
    }
}
