//! Where signatures lie: `<stem>.intoto.jsonl` beside the evidence.

use crate::deadline::{Deadline, Stopped};
use crate::trust::dsse::Envelope;
use crate::trust::error::TrustError;
use crate::trust::keys::Key;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use tki_evidence::evidence::Evidence;
use tki_evidence::statement::{self, PAYLOAD_TYPE};

pub use tki_verify::disk::{envelope_beside as beside, read_envelope as read};

/// How long another `sign` may take to write its signature down.
const PATIENCE: Duration = Duration::from_secs(30);

/// An envelope over evidence that nobody has signed yet.
pub fn unsigned(name: &str, bytes: &[u8], evidence: &Evidence) -> Result<Envelope, TrustError> {
    let statement = statement::of_evidence(name, bytes, evidence);
    let payload = serde_json::to_vec(&statement).map_err(TrustError::Statement)?;
    Ok(Envelope {
        payload,
        payload_type: PAYLOAD_TYPE.into(),
        signatures: Vec::new(),
    })
}

/// The envelope of new evidence, signed.
pub fn signed(
    name: &str,
    bytes: &[u8],
    evidence: &Evidence,
    key: &Key,
    deadline: Instant,
) -> Result<Vec<u8>, TrustError> {
    let mut envelope = unsigned(name, bytes, evidence)?;
    key.sign(&mut envelope, deadline)?;
    Ok(envelope.to_line())
}

/// Keeps every other `sign` from this bundle for as long as the file is open. The
/// evidence itself is locked: the envelope is replaced, and may not be there yet.
pub fn lock(evidence: &Path) -> Result<File, TrustError> {
    let unlockable = |error: std::io::Error| TrustError::Unlockable {
        evidence: evidence.to_owned(),
        error,
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file: File = rustix::fs::open(evidence, flags, Mode::empty())
        .map_err(|error| unlockable(error.into()))?
        .into();
    let mut watch = None;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(unlockable(error.into())),
        }
        let watch = match &watch {
            Some(watch) => watch,
            None => watch.insert(Deadline::start(PATIENCE).map_err(unlockable)?),
        };
        match watch.tick() {
            Ok(tick) => std::thread::sleep(tick),
            Err(Stopped::Interrupted(signal)) => {
                let evidence = evidence.to_owned();
                return Err(TrustError::InterruptedLock { signal, evidence });
            }
            Err(Stopped::TimedOut) => {
                let evidence = evidence.to_owned();
                return Err(TrustError::Locked { evidence });
            }
        }
    }
}
