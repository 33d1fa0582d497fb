//! One container, from create to removed.

use super::{DockerEngine, connect, host_config};
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::time::Duration;
use tki_evidence::evidence::GateReport;
use tki_evidence::wire::{MAX_LINE, MAX_TRANSCRIPT};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// The most of the container's standard error that is kept.
const MAX_COMPLAINT: usize = 4096;

/// Creates, attaches, starts. From the create call on the container is removed
/// whatever happens.
pub fn launch<'a>(
    engine: &'a mut DockerEngine,
    launch: &Launch,
) -> Result<Box<dyn Session + 'a>, EngineError> {
    let docker = engine.docker.clone();
    let options = CreateContainerOptionsBuilder::new()
        .name(&launch.name)
        .build();
    let body = host_config::create_body(launch);
    let mut creating = Box::pin(docker.create_container(Some(options), body));
    // An engine that has begun to make a container finishes, whoever hangs up;
    // so the answer is awaited before the container is removed, by its name.
    let id = match engine.call("POST /containers/create", &mut creating) {
        Ok(created) => created.id,
        Err(error @ (EngineError::Interrupted { .. } | EngineError::TimedOut { .. })) => {
            let _ = engine.driver.run_clean_up(creating);
            remove(engine, &launch.name);
            return Err(error);
        }
        // Its answer may have been lost, and not the request.
        Err(error @ EngineError::Vanished { .. }) => {
            remove(engine, &launch.name);
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let mut session = DockerSession {
        engine,
        id: id.clone(),
        attached: None,
        waiting: None,
        lines: VecDeque::new(),
        partial: Vec::new(),
        received: 0,
        complaint: Vec::new(),
        removed: false,
    };
    let options = AttachContainerOptionsBuilder::new()
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .stream(true)
        .build();
    session.attached = Some(session.engine.call(
        "POST /containers/attach",
        docker.attach_container(&id, Some(options)),
    )?);
    session.waiting = Some(wait_for_removal(session.engine, &id));
    session
        .engine
        .call("POST /containers/start", docker.start_container(&id, None))?;
    Ok(Box::new(session))
}

/// Waits, beside everything else, until the container is removed.
fn wait_for_removal(engine: &DockerEngine, id: &str) -> JoinHandle<Result<i64, Error>> {
    let (docker, id) = (engine.docker.clone(), id.to_owned());
    engine.driver.spawn(async move {
        let options = WaitContainerOptionsBuilder::new()
            .condition("removed")
            .build();
        let mut answers = std::pin::pin!(docker.wait_container(&id, Some(options)));
        match answers.next().await {
            Some(Ok(answer)) => Ok(answer.status_code),
            Some(Err(Error::DockerContainerWaitError { code, .. })) => Ok(code),
            Some(Err(error)) => Err(error),
            None => Ok(-1),
        }
    })
}

/// Removes a container by force and waits until it is gone. Nothing can be done
/// if the engine does not answer; `clean` finds the container by its label.
fn remove(engine: &mut DockerEngine, id: &str) {
    let docker = engine.docker.clone();
    engine.driver.run_clean_up(async {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        // The engine may be removing it already, or may still be creating it.
        for _ in 0..100 {
            match docker.remove_container(id, Some(options.clone())).await {
                Err(Error::DockerResponseServerError {
                    status_code: 404, ..
                }) => break,
                Ok(()) | Err(Error::DockerResponseServerError { .. }) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(_) => break,
            }
        }
    });
}

struct DockerSession<'a> {
    engine: &'a mut DockerEngine,
    id: String,
    attached: Option<AttachContainerResults>,
    waiting: Option<JoinHandle<Result<i64, Error>>>,
    lines: VecDeque<Vec<u8>>,
    partial: Vec<u8>,
    received: usize,
    complaint: Vec<u8>,
    removed: bool,
}

impl DockerSession<'_> {
    /// Takes in a piece of standard output.
    fn take(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.received += bytes.len();
        if self.received > MAX_TRANSCRIPT {
            return Err(EngineError::TooMuch {
                what: format!("more than {MAX_TRANSCRIPT} bytes"),
            });
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if self.partial.len() > MAX_LINE {
                return Err(EngineError::TooMuch {
                    what: format!("a line of more than {MAX_LINE} bytes"),
                });
            }
            if self.partial.last() == Some(&b'\n') {
                self.partial.pop();
                self.lines.push_back(std::mem::take(&mut self.partial));
            }
        }
        Ok(())
    }
}

impl Session for DockerSession<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let docker = self.engine.docker.clone();
        let found = self.engine.call(
            "GET /containers/json",
            docker.inspect_container(&self.id, None),
        )?;
        Ok(Configured {
            settings: host_config::configured(&found),
            image_id: found.image.clone().unwrap_or_default(),
            pid: found
                .state
                .as_ref()
                .and_then(|state| state.pid)
                .and_then(|pid| i32::try_from(pid).ok())
                .filter(|pid| *pid > 1),
            description: serde_json::to_string_pretty(&found).unwrap_or_default(),
        })
    }

    fn send(&mut self, line: &[u8]) -> Result<(), EngineError> {
        let Some(attached) = &mut self.attached else {
            return Ok(());
        };
        let (host, request) = (&self.engine.host, "writing to the container");
        self.engine.driver.run(request, async {
            let sent = async {
                attached.input.write_all(line).await?;
                attached.input.flush().await
            };
            sent.await
                .map_err(|error| connect::explain(host, request, error.into()))
        })
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some(attached) = &mut self.attached else {
                return Ok(None);
            };
            let (host, request) = (&self.engine.host, "reading from the container");
            let next = self.engine.driver.run(request, async {
                match attached.output.next().await {
                    None => Ok(None),
                    Some(Ok(output)) => Ok(Some(output)),
                    Some(Err(error)) => Err(connect::explain(host, request, error)),
                }
            })?;
            match next {
                None => {
                    self.attached = None;
                    // A last line without its newline is a line all the same.
                    return Ok(Some(std::mem::take(&mut self.partial)).filter(|l| !l.is_empty()));
                }
                Some(LogOutput::StdErr { message }) => {
                    let room = MAX_COMPLAINT.saturating_sub(self.complaint.len());
                    self.complaint
                        .extend_from_slice(&message[..message.len().min(room)]);
                }
                Some(output) => self.take(&output.into_bytes())?,
            }
        }
    }

    fn complaint(&mut self) -> String {
        String::from_utf8_lossy(&self.complaint).trim().to_owned()
    }

    fn finish(&mut self) -> Result<Ended, EngineError> {
        self.attached = None;
        let Some(waiting) = self.waiting.take() else {
            return Ok(Ended { status: None });
        };
        let (host, request) = (&self.engine.host, "waiting for the container's removal");
        let status = self.engine.driver.run(request, async {
            match waiting.await {
                Ok(Ok(status)) => Ok(Some(status)),
                // It was removed before the engine heard the question.
                Ok(Err(Error::DockerResponseServerError {
                    status_code: 404, ..
                })) => Ok(None),
                Ok(Err(error)) => Err(connect::explain(host, request, error)),
                Err(_) => Ok(None),
            }
        })?;
        self.removed = true;
        Ok(Ended { status })
    }

    fn gate(&mut self) -> GateReport {
        GateReport {
            reason: "no gate was asked for".into(),
            ..GateReport::default()
        }
    }
}

impl Drop for DockerSession<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort();
        }
        if !self.removed {
            self.attached = None;
            remove(self.engine, &self.id);
        }
    }
}
