//! Runs engine calls to their end, to the run's deadline or to Ctrl-C,
//! whichever comes first.

use crate::engine::EngineError;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// How long removing a container may take when everything else is over.
const CLEAN_UP: Duration = Duration::from_secs(15);

/// A single-threaded runtime with a deadline that signals bring forward.
#[derive(Debug)]
pub struct Driver {
    runtime: Runtime,
    deadline: Instant,
    interrupt: Signal,
    terminate: Signal,
}

impl Driver {
    /// A driver whose calls end within `limit` from now, all together. From
    /// here on SIGINT and SIGTERM are errors and no longer the end.
    pub fn new(limit: Duration) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let guard = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(guard);
        Ok(Self {
            runtime,
            deadline: Instant::now() + limit,
            interrupt,
            terminate,
        })
    }

    /// A driver for calls to the engine that errors call `host`.
    pub fn towards(host: &str, limit: Duration) -> Result<Self, EngineError> {
        Self::new(limit).map_err(|error| EngineError::Unreachable {
            host: host.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Runs a call. `request` names it in errors.
    pub fn run<T>(
        &mut self,
        request: &str,
        call: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let Self {
            runtime,
            deadline,
            interrupt,
            terminate,
        } = self;
        let interrupted = |signal| EngineError::Interrupted {
            signal,
            request: request.into(),
        };
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupt.recv() => Err(interrupted("SIGINT")),
                _ = terminate.recv() => Err(interrupted("SIGTERM")),
                result = call => result,
                () = tokio::time::sleep_until((*deadline).into()) => {
                    Err(EngineError::TimedOut { request: request.into() })
                }
            }
        })
    }

    /// Runs a call that must happen even after a deadline or a signal.
    pub fn run_clean_up<T>(&mut self, call: impl Future<Output = T>) -> Option<T> {
        self.runtime
            .block_on(async { tokio::time::timeout(CLEAN_UP, call).await.ok() })
    }

    /// Starts a call that goes on beside the others.
    pub fn spawn<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(call)
    }

    /// Waits for what a call that was started before came to. `host` is whom it asks.
    pub fn join<T>(
        &mut self,
        request: &str,
        host: &str,
        call: JoinHandle<Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let dropped = |_| EngineError::Vanished {
            host: host.into(),
            request: request.into(),
            reason: "the question was dropped".into(),
        };
        self.run(request, async { call.await.map_err(dropped)? })
    }
}
