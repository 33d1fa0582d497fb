//! Everything that can go wrong in an inspection, and what to do then.

use crate::attest::error::AttestError;
use crate::engine::EngineError;
use crate::engine::filling::FillError;
use crate::executable::UnreadableTool;
use crate::failure::Failure;
use crate::host::error::HostError;
use crate::image::ImageError;
use crate::inspect::conversation::TalkError;
use crate::inspect::packet::PacketError;
use crate::inspect::place::Elsewhere;
use crate::inspect::room::TooSmall;
use crate::inspect::same;
use crate::launch::error::LaunchError;
use crate::random::RandomError;
use crate::verify::error::BroughtError;
use crate::verify::{Step, VerifyError};
use std::io;
use std::path::PathBuf;
use tki_evidence::settings::Deviation;
use tki_text::printable;
use tki_verify::disk::BundleError;

/// Everything that can go wrong in an inspection.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The venue `dev`, and nobody said that it is for development.
    #[error("--venue dev is no approved venue: what is inspected there is for development only")]
    Unsaid,
    /// The other way round.
    #[error("--dev is for --venue dev alone, and venue {0} is claimed")]
    NotDev(&'static str),
    /// What the launcher brings.
    #[error(transparent)]
    Brought(#[from] BroughtError),
    /// The packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The image that this tool carries.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There are no random names.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// This executable has no digest.
    #[error(transparent)]
    Tool(#[from] UnreadableTool),
    /// The engine does not take the image.
    #[error(transparent)]
    Attest(#[from] AttestError),
    /// A container does not come to its end.
    #[error(transparent)]
    Launch(LaunchError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// It is not one.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The evidence is not enough.
    #[error("{0}")]
    NotAttested(#[from] NotAttested),
    /// It is of another host or engine.
    #[error("the evidence is of another place: {0}")]
    Elsewhere(#[from] Elsewhere),
    /// The sandbox is too small for the packet.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// The launch would not have, or does not have, what was attested.
    #[error("the sandbox is not the one that was attested: {0}; nothing was kept")]
    Other(#[from] OtherSandbox),
    /// /in cannot be filled.
    #[error("cannot put the packet behind /in: {0}")]
    Unfilled(#[source] FillError),
    /// A launch without a gate was refused for the gate.
    #[error("refused without being asked")]
    GateRefused,
    /// What the container says is not the inspector's language, or not true.
    #[error("the container does not speak as the inspector does: {0}")]
    Misspoken(TalkError),
    /// The inspector refused the packet, or its sandbox.
    #[error("the inspector refused: {} ({})", printable(.reason, 1000), printable(.code, 60))]
    Refused {
        /// It is the packet that it refused.
        packet: bool,
        /// Its code.
        code: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// Its exit status is not the one that it had said.
    #[error("the inspector said that it ends with {said}, and ended with {status}")]
    OtherEnd {
        /// What it said.
        said: i32,
        /// What it did.
        status: i64,
    },
    /// The report cannot be written.
    #[error("cannot write the report into {}: {error}", .folder.display())]
    Unwritable {
        /// The directory.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The output directory has a report under every name.
    #[error("{}: every name for this packet is taken", .0.display())]
    Full(PathBuf),
    /// A value has no form as JSON.
    #[error(transparent)]
    Json(serde_json::Error),
}

/// Why evidence is not enough for an inspection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAttested {
    /// It is disproved.
    #[error("{}: the sandbox is disproved: {}: {}", .bundle.display(), .step.code, printable(&.step.got, 300))]
    False {
        /// The bundle.
        bundle: PathBuf,
        /// The step that finds it.
        step: Box<Step>,
    },
    /// It is not proven.
    #[error(
        "{}: the sandbox is not accepted: {}: expected {}, got {}",
        .bundle.display(),
        .step.code,
        printable(&.step.expected, 200),
        printable(&.step.got, 300)
    )]
    Blocked {
        /// The bundle.
        bundle: PathBuf,
        /// The step that finds it.
        step: Box<Step>,
    },
    /// Another version wrote it.
    #[error("{}: the sandbox is not accepted: another version of tki-attest wrote this", .0.display())]
    Unread(PathBuf),
    /// It is of another venue.
    #[error("the evidence is of venue {}, and {claimed} is claimed", printable(.attested, 40))]
    Venue {
        /// Its venue.
        attested: String,
        /// The venue of the launch.
        claimed: String,
    },
    /// It is of another seccomp profile.
    #[error("the evidence is of the seccomp profile {}", printable(.attested, 60))]
    Profile {
        /// Its profile's name.
        attested: String,
    },
}

/// In what a launch is not what was attested.
#[derive(Debug, thiserror::Error)]
pub enum OtherSandbox {
    /// Settings.
    #[error("{}", printable(&same::shown(.0), 1000))]
    Settings(Vec<Deviation>),
    /// The image.
    #[error("its image was {} and is {}", printable(.attested, 80), printable(.launched, 80))]
    Image {
        /// The image that was attested.
        attested: String,
        /// The image of the launch.
        launched: String,
    },
    /// The OCI runtime.
    #[error("its OCI runtime was {} and is {}", printable(.attested, 80), printable(.launched, 80))]
    Runtime {
        /// The runtime that was attested.
        attested: String,
        /// The runtime of the launch.
        launched: String,
    },
    /// What stands behind /out.
    #[error("what stands behind /out was {} and is {}", printable(.attested, 200), printable(.launched, 200))]
    Backing {
        /// What stood there.
        attested: String,
        /// What stands there.
        launched: String,
    },
    /// The exec gate, of which the launch was asked for another.
    #[error("an exec gate {}", match .attested {
        true => "stood before it, and none stands before this one",
        false => "is required, and none stood before the one that was attested",
    })]
    Gate {
        /// It stood.
        attested: bool,
    },
}

impl From<LaunchError> for InspectError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Engine(error) => Self::Engine(error),
            error => Self::Launch(error),
        }
    }
}

impl From<TalkError> for InspectError {
    fn from(error: TalkError) -> Self {
        match error {
            TalkError::Refused {
                packet,
                code,
                reason,
            } => Self::Refused {
                packet,
                code,
                reason,
            },
            error => Self::Misspoken(error),
        }
    }
}

impl From<PacketError> for Failure {
    fn from(error: PacketError) -> Self {
        const FORM: &str = "`tki-attest pack` writes it; docs/inspector.md describes the form";
        let what = error.to_string();
        match error {
            PacketError::Unreadable { .. } => Self::usage(
                "packet.unreadable",
                what,
                "give a directory that can be read",
            ),
            PacketError::None(_) => Self::usage("packet.unreadable", what, FORM),
            PacketError::Form { error, .. } => Self::usage(error.code(), what, FORM),
            PacketError::TooMuch(_) | PacketError::Memory { .. } => Self::usage(
                "packet.too-large",
                what,
                "make packets of its parts, or name excerpts in place of whole files",
            ),
            PacketError::Item { .. } => Self::usage(
                "packet.item",
                what,
                "put the file there as it was when it was packed, or pack anew",
            ),
        }
    }
}

impl From<NotAttested> for Failure {
    fn from(error: NotAttested) -> Self {
        const AGAIN: &str = "leave out --evidence: then it is made on the spot";
        let what = error.to_string();
        match error {
            NotAttested::False { step, .. } => Self::new(
                crate::exit::Exit::Disproved,
                "inspect.evidence-false",
                what,
                format!(
                    "nothing is read in a sandbox that is disproved: {}",
                    or_else(
                        &step.next,
                        "see what is wrong with it (`tki-attest verify`)"
                    )
                ),
            ),
            NotAttested::Blocked { step, .. } => {
                Self::blocked("inspect.not-accepted", what, or_else(&step.next, AGAIN))
            }
            NotAttested::Unread(_) => Self::blocked("inspect.not-accepted", what, AGAIN),
            NotAttested::Venue { .. } => Self::blocked(
                "inspect.other-venue",
                what,
                format!("claim the venue of the evidence, or {AGAIN}"),
            ),
            NotAttested::Profile { .. } => Self::blocked(
                "inspect.other-settings",
                what,
                format!("launch under that profile (--seccomp), or {AGAIN}"),
            ),
        }
    }
}

fn or_else<'a>(text: &'a str, other: &'a str) -> &'a str {
    match text {
        "" => other,
        text => text,
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        const NOT_OURS: &str = "nothing it said counts and nothing was kept; use the image of this \
                                tki-attest and inspect again";
        let what = error.to_string();
        match error {
            InspectError::Unsaid | InspectError::NotDev(_) => Self::usage(
                "inspect.dev",
                what,
                "say --venue dev --dev to try it out, or claim the venue that this is without --dev",
            ),
            InspectError::Brought(error) => error.into(),
            InspectError::Packet(error) => error.into(),
            InspectError::Image(error) => error.into(),
            InspectError::Engine(error) => error.into(),
            InspectError::Host(error) => error.into(),
            InspectError::Random(error) => error.into(),
            InspectError::Tool(error) => error.into(),
            InspectError::Attest(error) => error.into(),
            InspectError::Launch(error) => error.into(),
            InspectError::Bundle(error) => error.into(),
            InspectError::Verify(error) => error.into(),
            InspectError::NotAttested(error) => error.into(),
            InspectError::Elsewhere(_) => Self::blocked(
                "inspect.other-host",
                what,
                "inspect where the evidence was made, or leave out --evidence: then it is made on \
                 the spot",
            ),
            InspectError::TooSmall(error) => Self::blocked("inspect.room", what, error.next()),
            InspectError::Other(_) => Self::blocked(
                "inspect.other-settings",
                what,
                "attest the sandbox as it is now: leave out --evidence, or run `tki-attest run` \
                 again",
            ),
            InspectError::Unfilled(FillError::Engine(error)) => Self {
                message: what,
                ..error.into()
            },
            InspectError::Unfilled(FillError::Source(_)) => Self::usage(
                "packet.item",
                what,
                "leave the packet as it is while it is inspected, and inspect again",
            ),
            InspectError::Unfilled(FillError::NoVolumes) => {
                Self::internal("inspect.no-volumes", what)
            }
            InspectError::GateRefused => Self::internal("gate", what),
            InspectError::Misspoken(_) | InspectError::OtherEnd { .. } => {
                Self::blocked("inspector.garbled", what, NOT_OURS)
            }
            InspectError::Refused { packet: true, .. } => Self::usage(
                "inspect.packet",
                what,
                "correct what it names, or pack anew (`tki-attest pack`)",
            ),
            InspectError::Refused { packet: false, .. } => Self::blocked(
                "inspector.refused",
                what,
                "nothing was kept; see whether something on the host changes containers, then \
                 inspect again",
            ),
            InspectError::Unwritable { .. } => Self::usage(
                "out.unwritable",
                what,
                "give an --out directory that can be written to and has room",
            ),
            InspectError::Full(_) => Self::usage("out.full", what, "give another --out"),
            InspectError::Json(_) => Self::internal("json", what),
        }
    }
}
