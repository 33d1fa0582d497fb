//! What evidence says of this executable: its name, its version and its digest.

use crate::failure::Failure;
use std::sync::OnceLock;
use tki_evidence::evidence::Tool;
use tki_evidence::stamp::hex;

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
pub fn describe() -> Result<Tool, Failure> {
    static TOOL: OnceLock<Result<Tool, Failure>> = OnceLock::new();
    TOOL.get_or_init(read).clone()
}

fn read() -> Result<Tool, Failure> {
    use sha2::{Digest, Sha256};
    use std::io::Read;
    let unreadable = |error: std::io::Error| {
        Failure::internal("tool.digest", format!("/proc/self/exe: {error}"))
    };
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
