//! One container in which probes are tried, and what came of it.

use crate::attest::whereabouts::{Elsewhere, Unwitnessed};
use crate::engine::gate::GateChoice;
use crate::engine::{Configured, Launch};
use crate::host::janitor::Janitor;
use crate::host::outside::View;
use crate::image::Image;
use crate::launch::sides::Maker;
use crate::sandbox::profile::Profile;
use std::path::Path;
use std::time::Instant;
use tki_evidence::controller::Controller;
use tki_evidence::controls::Relaxation;
use tki_evidence::evidence::{GateReport, OutBacking};
use tki_evidence::kernel::KernelKind;
use tki_evidence::transcript::Heard;
use tki_evidence::wire::Challenge;

/// What the scout is called, after the run; its role.
pub const SCOUT: &str = "scout";

/// The controls whose /in the neighbour fills, on an engine that makes volumes: with a
/// socket, and with a set-user-id file.
pub const FILLED: [&str; 2] = ["engine-socket", "suid-file"];

/// One container in which probes are tried: the run's own, a control's, or the scout.
#[derive(Debug)]
pub struct Trial<'a> {
    /// The run that it belongs to.
    pub run_id: &'a str,
    /// The control that it is, if it is one.
    pub control: Option<&'a str>,
    /// What that control relaxes.
    pub relaxations: &'a [Relaxation],
    /// The image's id on the engine.
    pub image_id: &'a str,
    /// The image itself.
    pub image: &'a Image,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<&'a str>,
    /// The exec gate.
    pub gate: GateChoice,
    /// Why the gate is not tried on an engine that is asked for it by the profile, unless it
    /// is required.
    pub untried: Option<&'a str>,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// Who makes what stands behind /in and /out.
    pub maker: &'a Maker,
    /// The container whose network some controls join, by the engine's id; empty if there
    /// is none.
    pub neighbour: &'a str,
    /// The sandbox.
    pub profile: &'a Profile,
    /// The engine's kernel can limit swap.
    pub swap_limit: bool,
    /// How many processors the engine's host has.
    pub cpus: i64,
    /// Limits that the engine cannot set.
    pub lacks: &'a [Controller],
    /// Whose kernel it is known to have.
    pub kernel: KernelKind,
    /// Why the engine is taken for another machine's, if it is.
    pub elsewhere: Option<&'a Elsewhere>,
    /// Probes to run.
    pub probes: Vec<String>,
    /// When the run, with all its containers, must have ended.
    pub deadline: Instant,
    /// The same in seconds since 1970: `clean` may remove the container after it.
    pub nobodys_after: u64,
    /// A file of the host that must not be reachable.
    pub canary_file: &'a Path,
    /// A variable that must not be set.
    pub canary_variable: &'a str,
    /// What the verifier or the run chose at random.
    pub nonce: String,
}

impl Trial<'_> {
    /// It is the scout.
    pub fn is_scout(&self) -> bool {
        self.control == Some(SCOUT)
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// As it was launched.
    pub launch: Launch,
    /// What the engine says it set.
    pub configured: Configured,
    /// What the prober was asked.
    pub challenge: Challenge,
    /// What it said.
    pub heard: Heard,
    /// What stood behind /out.
    pub out_backing: OutBacking,
    /// The directory that held the host's side of /in and /out, or the volume that was
    /// /in.
    pub scratch: String,
    /// The container whose network it could have joined.
    pub neighbour: String,
    /// What the host saw of it, or why it could not look.
    pub outside: Result<View, Unwitnessed>,
    /// What the exec gate did.
    pub gate: GateReport,
    /// What the engine said when it refused the gate, and then launched the same container
    /// without it.
    pub gate_refused: Option<String>,
}
