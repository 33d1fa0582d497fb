//! A packet becomes a report: each stage hands what it found to the next.

use crate::adequacy::classify;
use crate::binding::bind;
use crate::bundle::{Launcher, LauncherError, judge};
use crate::caps::{Need, need};
use crate::compose::{Found, compose};
use crate::guard::{FileError, Files, Guard, packet_file};
use crate::packet::{Packet, PacketError};
use crate::places::Case;
use crate::provenance::validate;
use crate::reader::read_all;
use crate::record::Records;
use crate::report::Report;
use crate::write::files;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_evidence::stamp::sha256_hex;

/// How much the sandbox lets a packet take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// The size of /out, in bytes.
    pub out_bytes: u64,
}

/// A report and the files that it becomes.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The report.
    pub report: Report,
    /// Each file, by name, in the order in which they are written.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The packet's own file cannot be read.
    #[error("packet.json cannot be read: {0}")]
    Unreadable(FileError),
    /// It is not a packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The launcher brought something that cannot be used.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The packet takes more than the sandbox has.
    #[error(
        "the packet takes up to {} bytes of memory and {} of /out; the sandbox has {} and {}",
        need.memory_bytes, need.out_bytes, room.memory_bytes, room.out_bytes
    )]
    TooLarge {
        /// What it takes.
        need: Need,
        /// What there is.
        room: Room,
    },
    /// The launcher's time is over.
    #[error("the launcher's deadline has passed")]
    Deadline,
}

impl Refusal {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "packet.unreadable",
            Self::Packet(error) => error.code(),
            Self::Launcher(_) => "inspect.launcher",
            Self::TooLarge { .. } => "packet.too-large",
            Self::Deadline => "inspect.deadline",
        }
    }

    /// The exit status that goes with it.
    pub fn status(&self) -> i32 {
        match self {
            Self::Unreadable(_) | Self::Packet(_) | Self::TooLarge { .. } => crate::wire::MALFORMED,
            Self::Launcher(_) | Self::Deadline => crate::wire::BLOCKED,
        }
    }

    /// It for a person.
    pub fn reason(&self) -> String {
        self.to_string()
    }
}

/// Who is told how far it is, and says whether there is time left.
pub trait Listener {
    /// So many of all items were read.
    fn progress(&mut self, items: u64, of: u64);

    /// There is time left.
    fn has_time(&mut self) -> bool;
}

/// A listener that does not care.
impl Listener for () {
    fn progress(&mut self, _: u64, _: u64) {}

    fn has_time(&mut self) -> bool {
        true
    }
}

/// Reads, judges and reports; nothing is written yet.
pub fn inspect<F: Files>(
    guard: &mut Guard<F>,
    room: Room,
    listener: &mut dyn Listener,
) -> Result<Inspection, Refusal> {
    let bytes = packet_file(guard).map_err(|error| match error {
        // Longer than any packet: the form says so.
        FileError::TooLong(most) => Refusal::Packet(PacketError::TooLarge(
            usize::try_from(most).unwrap_or(usize::MAX),
        )),
        error => Refusal::Unreadable(error),
    })?;
    let packet = Packet::parse(&bytes)?;
    let packet_sha256 = sha256_hex(&bytes);
    let need = need(&packet, bytes.len() as u64);
    drop(bytes);
    if need.memory_bytes > room.memory_bytes || need.out_bytes > room.out_bytes {
        return Err(Refusal::TooLarge { need, room });
    }
    let launcher = Launcher::read(guard)?;
    let of = packet.items.len() as u64;
    let reads = read_all(guard, &packet, &mut |items| {
        listener.progress(items, of);
        listener.has_time()
    });
    let reads = reads.ok_or(Refusal::Deadline)?;
    let standings = validate(&packet, &reads, launcher.signers.as_ref());
    let bundles = judge(&packet, &reads, &standings, &launcher);
    let records = Records::of(&packet, &standings);
    let case = Case::new(&packet, &reads, &standings, &bundles);
    let claims = classify(&case, &records, &mut || listener.has_time());
    let claims = claims.ok_or(Refusal::Deadline)?;
    guard.announce_reports();
    let binding = bind(&packet_sha256, &bundles);
    let report = compose(Found {
        packet: &packet,
        packet_sha256: packet_sha256.clone(),
        reads: &reads,
        standings: &standings,
        launcher: &launcher,
        bundles: &bundles,
        records,
        claims,
        actions: guard.log().to_vec(),
    });
    let files = files(&report, &binding);
    Ok(Inspection { report, files })
}
