//! A deadline that Ctrl-C and SIGTERM bring forward, for code that waits by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How long anything waits before it looks at the deadline and for signals again.
pub const TICK: Duration = Duration::from_millis(50);

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The deadline passed.
    #[error("no answer within the time limit")]
    TimedOut,
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted(&'static str),
}

/// A deadline that signals can bring forward.
#[derive(Clone, Debug)]
pub struct Deadline {
    deadline: Instant,
    signal: Arc<AtomicU8>,
}

impl Deadline {
    /// Everything must end within `limit`. From here on SIGINT and SIGTERM are
    /// heard, and no longer the end.
    pub fn start(limit: Duration) -> std::io::Result<Self> {
        let heard = Arc::new(AtomicU8::new(0));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let guard = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        drop(guard);
        let told = Arc::clone(&heard);
        // The thread listens for as long as the process lives.
        std::thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => told.store(1, Ordering::SeqCst),
                    _ = terminate.recv() => told.store(2, Ordering::SeqCst),
                }
            });
        })?;
        Ok(Self {
            deadline: Instant::now() + limit,
            signal: heard,
        })
    }

    /// The same signals, with another deadline.
    pub fn until(&self, deadline: Instant) -> Self {
        Self {
            deadline,
            signal: Arc::clone(&self.signal),
        }
    }

    /// A deadline for tidying up: a signal or a deadline that passed before counts
    /// no longer.
    pub fn for_cleaning() -> Self {
        Self {
            deadline: Instant::now() + Duration::from_secs(10),
            signal: Arc::default(),
        }
    }

    /// The signal that was heard.
    pub fn interrupted(&self) -> Option<&'static str> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            1 => Some("SIGINT"),
            _ => Some("SIGTERM"),
        }
    }

    /// What is left, or why nothing is.
    pub fn left(&self) -> Result<Duration, Stopped> {
        if let Some(name) = self.interrupted() {
            return Err(Stopped::Interrupted(name));
        }
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Stopped::TimedOut),
            left => Ok(left),
        }
    }

    /// What a future comes to, unless the deadline or a signal comes first.
    pub async fn first<T>(&self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        let passed = async {
            loop {
                match self.tick() {
                    Ok(tick) => tokio::time::sleep(tick).await,
                    Err(stopped) => return stopped,
                }
            }
        };
        tokio::select! {
            done = work => Ok(done),
            stopped = passed => Err(stopped),
        }
    }

    /// The next time to look, or why there is none.
    pub fn tick(&self) -> Result<Duration, Stopped> {
        Ok(self.left()?.min(TICK))
    }
}
