//! Evidence v1, the document: recorded facts first, what follows from them
//! after. Names are fixed by the contract; see docs/evidence.md.

use crate::engine_kind::EngineKind;
use crate::kernel::KernelKind;
use crate::observation::Observation;
use crate::settings::Settings;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/evidence/v1";

/// A whole evidence file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Always `tki-attest/evidence/v1`.
    pub schema: String,
    /// Names this run everywhere: container, labels, files.
    pub run_id: String,
    /// What the run came to.
    pub status: Status,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC.
    pub finished: String,
    /// The tool that ran.
    pub tool: Tool,
    /// The claimed venue: `vps`, `ci` or `dev`.
    pub venue: String,
    /// What was observed about the venue.
    pub venue_facts: VenueFacts,
    /// The verifying party's request that this run answers, or null. Never
    /// missing.
    #[serde(deserialize_with = "Option::deserialize")]
    #[cfg_attr(feature = "std", schemars(schema_with = "request_or_null"))]
    pub request: Option<RequestBinding>,
    /// The image's manifest digest, `sha256:…`.
    pub image_digest: String,
    /// The image's other names.
    pub image: ImageIdentity,
    /// SHA-256 (hex) of the exact profile bytes handed to the engine.
    pub seccomp_sha256: String,
    /// The profile's name.
    pub seccomp_profile: String,
    /// The engine and the kernel.
    pub runtime: Runtime,
    /// The container's settings.
    pub sandbox: Sandbox,
    /// Independent views of the same container.
    pub witnesses: Witnesses,
    /// What else the engine held before and after, by id.
    pub inventory: Inventory,
    /// One entry per probe, in the catalogue's order.
    pub probes: Vec<ProbeResult>,
    /// Control runs.
    pub controls: Vec<ControlResult>,
    /// Acceptance tests #24–#37 bound to probes.
    pub matrix: Vec<MatrixRow>,
    /// Which layer denied each system call.
    pub syscalls: SyscallLayers,
    /// Kernel texts, verbatim.
    pub raw: RawFacts,
    /// Worth knowing, never judged.
    pub information: Vec<Information>,
    /// Files beside this one.
    pub artifacts: Vec<Artifact>,
    /// The count of verdicts.
    pub summary: Summary,
    /// What this evidence does not show.
    pub not_proven: Vec<String>,
    /// The stamp; see [`crate::stamp`].
    pub evidence_sha256: String,
}

/// An option that may be null but not missing.
#[cfg(feature = "std")]
fn request_or_null(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<Option<RequestBinding>>()
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Every required probe passed and every witness agrees.
    SandboxAttested,
    /// A boundary leaked or witnesses disagree.
    SandboxAttestationFailed,
    /// Something is not proven.
    SandboxAttestationPartial,
}

impl Status {
    /// The name used in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Status::SandboxAttested => "SANDBOX_ATTESTED",
            Status::SandboxAttestationFailed => "SANDBOX_ATTESTATION_FAILED",
            Status::SandboxAttestationPartial => "SANDBOX_ATTESTATION_PARTIAL",
        }
    }
}

/// What follows from observations and raw facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// The boundary was observed to hold.
    Pass,
    /// Not observed: never a pass.
    Unproven,
    /// The boundary was observed to leak.
    Fail,
}

impl Verdict {
    /// The name used in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Unproven => "UNPROVEN",
            Verdict::Fail => "FAIL",
        }
    }
}

/// The tool that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// `tki-attest`
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 (hex) of its executable.
    pub sha256: String,
}

/// Observations about the venue. Each is self-reported: the tool's own word, which
/// root on the venue could make it say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VenueFacts {
    /// Whose word this is: `self-reported`.
    pub tier: String,
    /// The engine's operating system, as it names it.
    pub operating_system: String,
    /// The engine host's name.
    pub host_name: String,
    /// Names (never values) of CI variables that are set.
    pub ci_variables: Vec<String>,
    /// HMAC-SHA-256 (hex) of a fixed text under the machine's id: the same for
    /// every run on one machine, and the id cannot be found from it. Empty if the
    /// machine has none.
    pub machine_id_hmac: String,
    /// The kernel's id of this boot; empty if it cannot be read.
    pub boot_id: String,
    /// The kernel under this tool; the engine's is `runtime.kernel`.
    pub kernel: String,
    /// The engine and its version.
    pub engine: String,
    /// Where the engine is: `this host`, `another machine, through a unix socket`,
    /// `tcp://host:port`, the same with ` (TLS)`, or `ssh://user@host`. Unless it is this
    /// host, everything that is read on this host is empty: it is about another one.
    pub engine_at: String,
    /// What this host is virtualised by: `kvm`, `wsl`, `apple`, …, `none`, `unknown`.
    pub virtualisation: String,
    /// The container that this tool runs in: `docker`, `podman`, …, `none`.
    pub container: String,
    /// The host's chassis: `server`, `laptop`, …, `unknown`.
    pub chassis: String,
    /// What the platform (a cloud or a CI system) signed about the venue:
    /// `absent`, or `sha256:…` of the artifact `venue-proof-platform`, unchecked.
    pub platform_signed: String,
    /// What the hardware (a TPM) signed about the venue: `absent`, or `sha256:…`
    /// of the artifact `venue-proof-hardware`, unchecked.
    pub hardware: String,
}

/// The request that a run answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestBinding {
    /// SHA-256 (hex) of the request file.
    pub sha256: String,
    /// Its nonce.
    pub nonce: String,
}

/// The image by all its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageIdentity {
    /// `sha256:…` of the manifest.
    pub manifest_digest: String,
    /// `sha256:…` of the config.
    pub config_digest: String,
    /// `sha256:…` of each uncompressed layer.
    pub diff_ids: Vec<String>,
    /// What the engine calls the image that the container was made from. One
    /// of the first two.
    pub engine_reported_id: String,
}

/// The engine and the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// `docker`, `podman`, …
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// The API version in use.
    pub api_version: String,
    /// The OCI runtime's name.
    pub oci_runtime: String,
    /// The engine host's kernel.
    pub kernel: String,
    /// Whose kernel answers inside: the host's (`shared`), gVisor's (`gvisor`) or that of a
    /// virtual machine (`vm`).
    pub kernel_kind: KernelKind,
    /// Its architecture.
    pub arch: String,
    /// Its operating system type.
    pub os: String,
    /// `1` or `2`.
    pub cgroup_version: String,
    /// The engine runs without root.
    pub rootless: bool,
    /// Security options that the engine reports.
    pub security_options: Vec<String>,
}

impl Runtime {
    /// Which engine it is, if this tool knows it.
    pub fn kind(&self) -> Option<EngineKind> {
        EngineKind::find(&self.engine)
    }
}

/// The container's settings, asked for and set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What we asked for.
    pub declared: Settings,
    /// What the engine says it set.
    pub configured: Settings,
    /// The same as a command line for people.
    pub command_line: Vec<String>,
    /// What stands behind /out: `tmpfs` (noexec, size-limited) or `directory`, with the
    /// reason, and who made it.
    pub out_backing: OutBacking,
    /// The launcher's exec gate.
    pub gate: GateReport,
}

/// What the launcher's exec gate did: a supervisor outside of the container
/// that is asked about every execve and execveat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GateReport {
    /// It stood from before the first exec to the end.
    pub active: bool,
    /// How it was put there, or why it was not.
    pub reason: String,
    /// Execs that it let through: exactly one if it is active.
    pub allowed: u32,
    /// Execs that it refused.
    pub refused: u32,
    /// The profile before it was extended to ask the gate; empty if the gate
    /// needed no such change.
    pub plain_profile: String,
}

/// What stands behind /out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutBacking {
    /// `tmpfs` or `directory`.
    pub kind: String,
    /// Its options, or why it is a directory.
    pub reason: String,
    /// Who made it: `engine` (as a volume), or `launcher` (on the host), with what the
    /// engine said if it makes none.
    pub maker: String,
}

/// Independent views of the same container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Witnesses {
    /// What the prober saw.
    pub inside: Witness,
    /// What the host saw.
    pub outside: Witness,
    /// What the engine says it set.
    pub configured: Witness,
    /// Each fact that more than one of them speaks of.
    pub agreement: Vec<Agreement>,
}

/// One view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// The view could be had.
    pub available: bool,
    /// Where it comes from, or why it could not be had.
    pub source: String,
    /// What it says.
    pub facts: Vec<NamedFact>,
}

/// A fact in the witnesses' common vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedFact {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A fact that more than one witness speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// The fact's name.
    pub fact: String,
    /// What was seen inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// What was seen from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// What the engine says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<String>,
    /// They say the same.
    pub agree: bool,
}

/// What the engine held, by id, without our own throwaway containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Before anything was created.
    pub before: Holdings,
    /// After our container was gone.
    pub after: Holdings,
    /// Ids by which the engine knows our own image: the one thing that may
    /// have been added or replaced.
    pub own_images: Vec<String>,
    /// Nothing but our own image changed.
    pub unchanged: bool,
}

/// Ids of what an engine holds, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Holdings {
    /// Containers.
    pub containers: Vec<String>,
    /// Networks.
    pub networks: Vec<String>,
    /// Volumes, by name.
    pub volumes: Vec<String>,
    /// Images.
    pub images: Vec<String>,
    /// Modules that the kernel has loaded, by name; empty if it has none, or if it is
    /// another machine's.
    pub modules: Vec<String>,
}

/// A probe, what was seen, and what follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// The probe's id.
    pub probe_id: String,
    /// What it does.
    pub operation: String,
    /// What must come back.
    pub expected: String,
    /// What came back, in a line.
    pub actual_stderr_or_value: String,
    /// The errnos or signals that came back, or `0`.
    pub errno_or_exit: String,
    /// What follows.
    pub verdict: Verdict,
    /// The probe's own file, relative to the evidence.
    pub artifact_path: String,
    /// Requirements that it proves.
    pub requirements: Vec<String>,
    /// Acceptance tests that it is bound to.
    pub tests: Vec<u32>,
    /// Controls that hold and in which it came to FAIL.
    pub calibrated_by: Vec<String>,
    /// Layers each of which, alone or as part of a smallest set, stands between
    /// the probe and success, found by the controls: `seccomp`, `namespace`,
    /// `mount`, `capability`, `privilege`, `identity`, `limit`, `device`,
    /// `environment`, `descriptor`, `lsm`, `lock`.
    pub denied_by: Vec<String>,
    /// The size of the smallest set of layers without which it failed; 0 if no
    /// control made it.
    pub layers: u32,
    /// Who denied it, where that is not the engine: `inspector` or `launcher`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced_by: Option<String>,
    /// Why the verdict is not PASS; empty if it is.
    pub reasons: Vec<String>,
    /// Everything that was seen.
    pub observations: Vec<Observation>,
}

/// A control run: a boundary relaxed on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ControlResult {
    /// The control's name.
    pub control: String,
    /// What was relaxed, for a reader.
    pub relaxed: String,
    /// The layers that were relaxed.
    pub layers: Vec<String>,
    /// The prober was changed and not the sandbox: no layer follows from it.
    pub instrument: bool,
    /// Probes that were run.
    pub probes: Vec<String>,
    /// Probes that must FAIL, no more and no fewer.
    pub must_flip: Vec<String>,
    /// Probes that may FAIL too, where the kernel has what they try.
    pub may_flip: Vec<String>,
    /// Probes that cannot be tried here and may be UNPROVEN.
    pub blinds: Vec<String>,
    /// Probes that came to FAIL.
    pub flipped: Vec<String>,
    /// Probes that came to UNPROVEN, which calibrates nothing.
    pub unproven: Vec<String>,
    /// Settings that the engine reported differently than for the run's own
    /// container.
    pub changed: Vec<ChangedSetting>,
    /// All flipped that must, none besides those that may, nothing else is
    /// unproven, and exactly the relaxed settings changed, as they should.
    pub holds: bool,
    /// The conversation, relative to the evidence.
    pub artifact_path: String,
}

/// A setting of a control's container that is not the run's own. Names that
/// differ in every run are written as `SCRATCH` and `CANARY`, the profile with marks as
/// `MARKED`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangedSetting {
    /// The setting's name.
    pub setting: String,
    /// Its value in the run's own container, as JSON.
    pub run: String,
    /// Its value in the control's container, as JSON.
    pub control: String,
}

/// Something worth knowing that is never judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Information {
    /// What it is.
    pub name: String,
    /// What was found, cut if it is long.
    pub value: String,
}

/// An acceptance test and what its probes came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MatrixRow {
    /// The test's number.
    pub test: u32,
    /// Its title.
    pub title: String,
    /// The layer that it belongs to.
    pub layer: String,
    /// The probes that it is bound to.
    pub probes: Vec<String>,
    /// The worst verdict among them.
    pub result: Verdict,
}

/// Kernel texts as the prober read them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RawFacts {
    /// `/proc/self/mountinfo`
    pub mountinfo: String,
    /// The environment's keys, sorted.
    pub env_keyset: Vec<String>,
    /// `/proc/net/dev`
    pub proc_net_dev: String,
    /// `/proc/net/route`
    pub proc_net_route: String,
    /// `/proc/net/ipv6_route`, empty where the kernel has no IPv6.
    pub proc_net_ipv6_route: String,
    /// `/proc/self/status` before the lock.
    pub proc_self_status: String,
    /// `/proc/self/status` after the lock.
    pub proc_self_status_locked: String,
    /// `/proc/self/limits`
    pub proc_self_limits: String,
    /// `/proc/self/cgroup`
    pub proc_self_cgroup: String,
    /// `/proc/version`
    pub proc_version: String,
    /// `/proc/self/attr/current`, empty where no security module gives a label.
    pub lsm_label: String,
    /// `/proc/sys/kernel/random/boot_id`, empty where the kernel has none.
    pub boot_id: String,
    /// The namespaces that the prober is in.
    pub namespaces: Vec<String>,
    /// The namespaces of the host's tool, to compare with; empty if unknown.
    pub host_namespaces: Vec<String>,
    /// The namespaces of the run's neighbour: a container beside those that are compared
    /// with it. Empty if there was none.
    pub neighbour_namespaces: Vec<String>,
    /// What the host read of the container's process; empty if it could not.
    pub outside: OutsideFacts,
    /// What the host read of the process that runs a kernel of its own for the container;
    /// empty if the kernel is the host's, or nobody could look.
    pub sentry: SentryFacts,
    /// The seccomp profile, as it was handed to the engine.
    pub seccomp_profile: String,
    /// The sweep of all system calls in the control `marks`, where every denial of the
    /// profile's carries an errno of its own; empty if it was not run.
    pub marked_sweep: String,
}

/// Which layer denied each system call, by name: found by the control in which the
/// filter's denials carry a mark. All empty if it was not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SyscallLayers {
    /// The filter: they came back with the mark, or by SIGSYS.
    pub filter: Vec<String>,
    /// The kernel itself: the profile lets them through, and they were denied all the same,
    /// for want of a right or of the call.
    pub kernel: Vec<String>,
    /// Denied without a mark, and by the profile, too: not every engine hands the default's
    /// errno on, and none knows every call by name.
    pub unmarked: Vec<String>,
    /// Neither: the call was reached.
    pub reached: Vec<String>,
}

/// Kernel texts about the container's process, as the host read them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutsideFacts {
    /// `/proc/PID/status`
    pub status: String,
    /// `/proc/PID/mountinfo`
    pub mountinfo: String,
    /// `/proc/PID/net/dev`
    pub net_dev: String,
    /// `/proc/PID/limits`
    pub limits: String,
    /// `/proc/PID/uid_map`
    pub uid_map: String,
    /// `/proc/PID/gid_map`
    pub gid_map: String,
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// Its descriptors and what each is.
    pub descriptors: String,
    /// Limits of its cgroup, as `name=value`.
    pub cgroup: Vec<String>,
    /// `/proc/PID/attr/current`, empty where no security module gives a label.
    pub lsm_label: String,
    /// Fields of these that are empty because the tool's user had no right to read them:
    /// `namespaces`, `descriptors`.
    #[serde(default)]
    pub absent: Vec<String>,
}

impl OutsideFacts {
    /// The field that holds namespaces, as `absent` names it.
    pub const NAMESPACES: &str = "namespaces";

    /// The field that holds descriptors, as `absent` names it.
    pub const DESCRIPTORS: &str = "descriptors";

    /// Whether the host had no right to read this field.
    pub fn lacks(&self, field: &str) -> bool {
        self.absent.iter().any(|name| name == field)
    }
}

/// Kernel texts about the process that runs a kernel of its own for the container, as the
/// host read them: gVisor's sentry, or a virtual machine's monitor. They are about that
/// process and not about the prober, which the host's kernel does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SentryFacts {
    /// What `/proc/PID/exe` leads to; empty if the tool's user had no right to read it.
    pub executable: String,
    /// `/proc/PID/cmdline`, by words.
    pub command: Vec<String>,
    /// `/proc/PID/status`
    pub status: String,
    /// `/proc/PID/mountinfo`
    pub mountinfo: String,
    /// `/proc/PID/net/dev`
    pub net_dev: String,
    /// `/proc/PID/uid_map`
    pub uid_map: String,
    /// Its namespaces; empty if the tool's user had no right to read them.
    pub namespaces: Vec<String>,
    /// Limits of its cgroup, as `name=value`.
    pub cgroup: Vec<String>,
}

/// A file beside the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Relative to the evidence.
    pub path: String,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// The count of verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Required probes.
    pub required: u32,
    /// Of these: PASS.
    pub passed: u32,
    /// Of these: FAIL.
    pub failed: u32,
    /// Of these: UNPROVEN.
    pub unproven: u32,
}
