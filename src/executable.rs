//! What evidence says of this executable: its name, its version and its digest.

use crate::failure::Failure;
use std::sync::{Arc, OnceLock};
use tki_evidence::evidence::Tool;
use tki_evidence::stamp::hex;

/// This executable cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("/proc/self/exe: {0}")]
pub struct UnreadableTool(#[source] Arc<std::io::Error>);

impl From<UnreadableTool> for Failure {
    fn from(error: UnreadableTool) -> Self {
        Failure::internal("tool.digest", error.to_string())
    }
}

/// Begins to find out what [`describe`] tells, beside everything else and after it:
/// nothing waits for that before the end.
pub fn begin_to_describe() {
    const NICENESS: i32 = 10;
    std::thread::spawn(|| {
        // The kernel counts threads as processes. If it will not, this one is as others.
        let this = rustix::thread::gettid();
        let _ = rustix::process::setpriority_process(Some(this), NICENESS);
        describe()
    });
}

/// This executable, by name, version and digest, which is found out once: it takes
/// a while.
pub fn describe() -> Result<Tool, UnreadableTool> {
    static TOOL: OnceLock<Result<Tool, UnreadableTool>> = OnceLock::new();
    TOOL.get_or_init(read).clone()
}

fn read() -> Result<Tool, UnreadableTool> {
    use sha2::{Digest, Sha256};
    use std::io::Read;
    let unreadable = |error| UnreadableTool(Arc::new(error));
    let mut file = std::fs::File::open("/proc/self/exe").map_err(unreadable)?;
    let mut digest = Sha256::new();
    // A piece that stays in the nearest cache until it has been hashed.
    let mut buffer = vec![0; 32 << 10];
    loop {
        match file.read(&mut buffer).map_err(unreadable)? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(Tool {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        sha256: hex(&digest.finalize()),
    })
}
