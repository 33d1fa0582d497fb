//! What can be seen of the venue, and whether it fits the claim. All of it is
//! this tool's own word.

use crate::files::read_bounded;
use crate::host::error::HostError;
use crate::host::system::operating_system;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::path::Path;
use tki_evidence::evidence::VenueFacts;
use tki_evidence::stamp::{hex, sha256_hex};
use tki_evidence::venue::{
    ABSENT, ANOTHER_MACHINE, HARDWARE_PROOF, PLATFORM_PROOF, THIS_HOST, VenueRules,
};
use tki_text::printable;

/// Names of variables by which CI systems make themselves known.
pub const CI_VARIABLES: &[&str] = &[
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "JENKINS_URL",
    "CIRCLECI",
    "TF_BUILD",
    "TEAMCITY_VERSION",
];

/// What the machine's id signs: it is confidential, and this is not.
const MACHINE_TEXT: &[u8] = b"tki-attest/venue/v1";

/// The most bytes of a file about the host.
const MOST: u64 = 64 * 1024;

/// The most bytes of a file of rules.
const MOST_RULES: u64 = 256 * 1024;

/// What is seen from here of another host, which is at `at`.
pub fn unseen(at: &str) -> VenueFacts {
    VenueFacts {
        tier: "self-reported".into(),
        operating_system: String::new(),
        host_name: String::new(),
        // Those are of the tool's own surroundings: a job's container has them, with the
        // socket of the runner's engine in it.
        ci_variables: match at {
            ANOTHER_MACHINE => ci_variables(),
            _ => Vec::new(),
        },
        machine_id_hmac: String::new(),
        boot_id: String::new(),
        kernel: String::new(),
        engine: String::new(),
        engine_at: at.to_owned(),
        virtualisation: String::new(),
        container: String::new(),
        chassis: String::new(),
        platform_signed: ABSENT.into(),
        hardware: ABSENT.into(),
    }
}

/// Names of the variables by which a CI system has made itself known to this process.
fn ci_variables() -> Vec<String> {
    CI_VARIABLES
        .iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .map(|name| (*name).into())
        .collect()
}

/// Looks at this host alone. Its own system stands for the engine's.
pub fn observe_host() -> VenueFacts {
    let system = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let kernel = text(system.release());
    VenueFacts {
        tier: "self-reported".into(),
        operating_system: operating_system(),
        host_name: text(system.nodename()),
        ci_variables: ci_variables(),
        machine_id_hmac: machine_id_hmac(&line("/etc/machine-id")),
        boot_id: boot_id(&line("/proc/sys/kernel/random/boot_id")),
        virtualisation: virtualisation(&kernel, &dmi(), &line("/proc/cpuinfo")).into(),
        container: container(Path::new("/")),
        chassis: chassis(line("/sys/class/dmi/id/chassis_type").trim()).into(),
        kernel,
        engine: String::new(),
        engine_at: THIS_HOST.into(),
        platform_signed: ABSENT.into(),
        hardware: ABSENT.into(),
    }
}

/// Statements about the venue that another party signed, such as a token of the CI
/// system. They are kept and not judged.
#[derive(Debug, Default)]
pub struct Proofs {
    platform: Option<Vec<u8>>,
    hardware: Option<Vec<u8>>,
}

impl Proofs {
    /// Reads those that are given.
    pub fn read(platform: Option<&Path>, hardware: Option<&Path>) -> Result<Self, HostError> {
        let read = |file: Option<&Path>| {
            let read = |path: &Path| match read_bounded(path, MOST) {
                Ok(bytes) if bytes.is_empty() => Err(HostError::EmptyProof { path: path.into() }),
                Ok(bytes) => Ok(bytes),
                Err(error) => Err(HostError::Proof {
                    path: path.into(),
                    error,
                }),
            };
            file.map(read).transpose()
        };
        Ok(Self {
            platform: read(platform)?,
            hardware: read(hardware)?,
        })
    }

    /// Names them in the facts, by digest.
    pub fn name(&self, facts: &mut VenueFacts) {
        let digest = |bytes: &Vec<u8>| format!("sha256:{}", sha256_hex(bytes));
        let name = |proof: &Option<Vec<u8>>| proof.as_ref().map_or(ABSENT.into(), digest);
        facts.platform_signed = name(&self.platform);
        facts.hardware = name(&self.hardware);
    }

    /// Each as an artifact.
    pub fn artifacts(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let named = [
            (PLATFORM_PROOF, &self.platform),
            (HARDWARE_PROOF, &self.hardware),
        ];
        let given = named.map(|(name, proof)| Some((name.to_owned(), proof.clone()?)));
        given.into_iter().flatten()
    }
}

/// A developer's machine may not pass for an approved venue.
pub fn check(
    claim: &str,
    facts: &VenueFacts,
    kernel: &str,
    rules: &VenueRules,
) -> Result<(), HostError> {
    let signs = rules.against(claim, facts, kernel);
    if signs.is_empty() {
        return Ok(());
    }
    Err(HostError::Implausible {
        claim: claim.to_owned(),
        signs,
    })
}

/// The rules in a file, or the built-in ones.
pub fn rules(file: Option<&Path>) -> Result<VenueRules, HostError> {
    let Some(path) = file else {
        return Ok(VenueRules::built_in().clone());
    };
    let path = path.to_owned();
    let bytes = match read_bounded(&path, MOST_RULES) {
        Ok(bytes) => bytes,
        Err(error) => return Err(HostError::Rules { path, error }),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(HostError::RulesText { path });
    };
    VenueRules::parse(&text).map_err(|error| HostError::MalformedRules { path, error })
}

/// The start of a file about the host; empty if it cannot be read.
fn line(path: &str) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// Only an id of the documented form is one: a file that says
/// `uninitialized` would give the same value on every machine.
fn machine_id_hmac(id: &str) -> String {
    let id = id.trim();
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return String::new();
    }
    match Hmac::<Sha256>::new_from_slice(id.to_ascii_lowercase().as_bytes()) {
        Ok(mut mac) => {
            mac.update(MACHINE_TEXT);
            hex(&mac.finalize().into_bytes())
        }
        Err(_) => String::new(),
    }
}

fn boot_id(id: &str) -> String {
    let id = id.trim();
    let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match id.len() == 36 && id.bytes().all(plain) {
        true => id.to_owned(),
        false => String::new(),
    }
}

/// What the firmware calls the machine and its maker.
fn dmi() -> String {
    ["sys_vendor", "product_name", "bios_vendor", "board_vendor"]
        .map(|name| line(&format!("/sys/class/dmi/id/{name}")))
        .concat()
}

/// What the host is virtualised by. The kernel's name is asked first: WSL has
/// no firmware to ask.
fn virtualisation(kernel: &str, dmi: &str, cpus: &str) -> &'static str {
    let (kernel, dmi) = (kernel.to_lowercase(), dmi.to_lowercase());
    if kernel.contains("microsoft") || kernel.contains("wsl") {
        return "wsl";
    }
    let makers = [
        ("apple", "apple"),
        ("parallels", "parallels"),
        ("virtualbox", "virtualbox"),
        ("vmware", "vmware"),
        ("amazon ec2", "amazon"),
        ("google compute", "google"),
        ("openstack", "kvm"),
        ("kvm", "kvm"),
        ("qemu", "qemu"),
        ("bochs", "qemu"),
        ("xen", "xen"),
        ("microsoft corporation", "hyper-v"),
    ];
    if let Some((_, name)) = makers.iter().find(|(sign, _)| dmi.contains(sign)) {
        return name;
    }
    let flagged = cpus
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|word| word == "hypervisor"));
    match (flagged, dmi.is_empty()) {
        (true, _) => "other",
        (false, false) => "none",
        (false, true) => "unknown",
    }
}

/// The container that this tool runs in, by the marks that engines leave.
fn container(root: &Path) -> String {
    let there = |name: &str| root.join(name).exists();
    if there("run/.containerenv") {
        return "podman".into();
    }
    if there(".dockerenv") {
        return "docker".into();
    }
    if there("var/run/secrets/kubernetes.io") {
        return "kubernetes".into();
    }
    match read_bounded(&root.join("run/systemd/container"), 64) {
        Ok(name) => printable(String::from_utf8_lossy(&name).trim(), 40),
        Err(_) => "none".into(),
    }
}

/// The chassis by its number in the SMBIOS table.
fn chassis(number: &str) -> &'static str {
    match number {
        "" => "unknown",
        "3" | "4" | "5" | "6" | "7" | "13" | "15" | "16" | "24" | "35" | "36" => "desktop",
        "8" | "9" | "10" | "14" => "laptop",
        "11" => "hand-held",
        "17" | "23" | "25" | "28" | "29" => "server",
        "30" => "tablet",
        "31" | "32" => "convertible",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_id_does_not_show() {
        let id = "0123456789abcdef0123456789abcdef";
        let shown = machine_id_hmac(&format!("{id}\n"));
        assert_eq!(shown.len(), 64);
        assert!(!shown.contains(id));
        // Computed with `openssl dgst -sha256 -hmac`.
        assert_eq!(
            shown,
            "92aed7dfa4caec2553d07c8a2cc6a7c2465b096c9951e2c78b2d288bafca4412"
        );
        for bad in ["", "uninitialized\n", "0123", &"g".repeat(32)] {
            assert_eq!(machine_id_hmac(bad), "");
        }
    }

    #[test]
    fn hosts_are_told_apart() {
        let flags = "processor : 0\nflags\t\t: fpu hypervisor sse\n";
        for (kernel, dmi, cpus, wanted) in [
            ("5.15.153.1-microsoft-standard-WSL2", "", flags, "wsl"),
            ("6.1.0", "QEMU\nStandard PC\n", flags, "qemu"),
            (
                "6.1.0",
                "Apple Inc.\nApple Virtualization\n",
                flags,
                "apple",
            ),
            ("6.1.0", "Amazon EC2\nt3.micro\n", flags, "amazon"),
            ("6.1.0", "Dell Inc.\nPowerEdge\n", "flags : fpu\n", "none"),
            ("6.1.0", "", flags, "other"),
            ("6.1.0", "", "", "unknown"),
        ] {
            assert_eq!(virtualisation(kernel, dmi, cpus), wanted, "{kernel} {dmi}");
        }
        assert_eq!(chassis("10"), "laptop");
        assert_eq!(chassis("23"), "server");
        assert_eq!(chassis("1"), "other");
        assert_eq!(chassis(""), "unknown");
        assert_eq!(boot_id("x"), "");
    }

    #[test]
    fn containers_leave_marks() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(container(root.path()), "none");
        std::fs::create_dir_all(root.path().join("run/systemd")).unwrap();
        std::fs::write(root.path().join("run/systemd/container"), "lxc\n").unwrap();
        assert_eq!(container(root.path()), "lxc");
        std::fs::write(root.path().join(".dockerenv"), "").unwrap();
        assert_eq!(container(root.path()), "docker");
    }
}
