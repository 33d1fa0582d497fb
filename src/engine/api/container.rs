//! One container, from create to removed.

use crate::engine::api::client::{Api, removal};
use crate::engine::api::{connect, volumes};
use crate::engine::contract::{Ended, LABEL_RUN, Launch};
use crate::engine::error::EngineError;
use crate::engine::lines::Lines;
use crate::engine::recover::groups::{self, Maker};
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use futures_util::StreamExt;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// The most of the container's standard error that is kept.
const MAX_COMPLAINT: usize = 4096;

/// A container that is removed when this is dropped.
pub struct Container<'a> {
    /// The engine.
    pub api: &'a mut Api,
    /// The container's id.
    pub id: String,
    attached: Option<AttachContainerResults>,
    waiting: Option<JoinHandle<Result<Option<i64>, EngineError>>>,
    lines: Lines,
    complaint: Vec<u8>,
    removed: bool,
    /// Whose control groups it has.
    maker: Maker,
    /// Volumes that go with it, by name.
    volumes: Vec<String>,
    /// The run that it is of.
    run: String,
}

impl<'a> Container<'a> {
    /// Runs a create call, which gives the id. From then on the container is
    /// removed whatever happens.
    pub fn create(
        api: &'a mut Api,
        maker: Maker,
        launch: &Launch,
        request: &str,
        creating: impl Future<Output = Result<String, EngineError>>,
    ) -> Result<Self, EngineError> {
        let name = &launch.name;
        let volumes = launch.volumes.iter().filter(|volume| volume.goes_along);
        let volumes: Vec<String> = volumes.map(|volume| volume.name.clone()).collect();
        let mut labels = launch.labels.iter();
        let run = labels.find(|(label, _)| label == LABEL_RUN);
        let run = run.map(|(_, run)| run.clone()).unwrap_or_default();
        let mut creating = Box::pin(creating);
        // An engine that has begun to make a container finishes, even if the client hangs up;
        // so the answer is awaited before the container is removed, by its name.
        let id = match api.driver.run(request, &mut creating) {
            Ok(id) => id,
            Err(error @ (EngineError::Interrupted { .. } | EngineError::TimedOut { .. })) => {
                let _ = api.driver.run_clean_up(creating);
                remove(api, maker, name, &volumes, &run);
                return Err(error);
            }
            // Its answer may have been lost, and not the request.
            Err(error @ EngineError::Vanished { .. }) => {
                remove(api, maker, name, &volumes, &run);
                return Err(error);
            }
            Err(error) => {
                // The engine may have made them before it refused. `clean` finds what is left.
                let _ = volumes::let_go(api, &volumes);
                return Err(error);
            }
        };
        Ok(Self {
            api,
            id,
            attached: None,
            waiting: None,
            lines: Lines::new(launch.most_said),
            complaint: Vec::new(),
            removed: false,
            maker,
            volumes,
            run,
        })
    }

    /// Attaches to its standard streams.
    pub fn attach(&mut self) -> Result<(), EngineError> {
        let docker = self.api.docker.clone();
        let options = AttachContainerOptionsBuilder::new()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        self.attached = Some(self.api.call(
            "POST /containers/attach",
            docker.attach_container(&self.id, Some(options)),
        )?);
        Ok(())
    }

    /// Starts it.
    pub fn start(&mut self) -> Result<(), EngineError> {
        let docker = self.api.docker.clone();
        self.api.call(
            "POST /containers/start",
            docker.start_container(&self.id, None),
        )
    }

    /// Waits for its removal beside everything else. The call gives its exit
    /// status, if the engine still knows it.
    pub fn wait_beside(
        &mut self,
        call: impl Future<Output = Result<Option<i64>, EngineError>> + Send + 'static,
    ) {
        self.waiting = Some(self.api.driver.spawn(call));
    }

    /// Sends a line to its standard input.
    pub fn send(&mut self, line: &[u8]) -> Result<(), EngineError> {
        let Some(attached) = &mut self.attached else {
            return Ok(());
        };
        let (host, request) = (&self.api.host, "writing to the container");
        self.api.driver.run(request, async {
            let sent = async {
                attached.input.write_all(line).await?;
                attached.input.flush().await
            };
            sent.await
                .map_err(|error| connect::explain(host, request, error.into()))
        })
    }

    /// The next line of its standard output; `None` when it has ended.
    pub fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        loop {
            if let Some(line) = self.lines.pop() {
                return Ok(Some(line));
            }
            let Some(attached) = &mut self.attached else {
                return Ok(None);
            };
            let (host, request) = (&self.api.host, "reading from the container");
            let next = self.api.driver.run(request, async {
                match attached.output.next().await {
                    None => Ok(None),
                    Some(Ok(output)) => Ok(Some(output)),
                    Some(Err(error)) => Err(connect::explain(host, request, error)),
                }
            })?;
            match next {
                None => {
                    self.attached = None;
                    return Ok(self.lines.rest());
                }
                Some(LogOutput::StdErr { message }) => {
                    let room = MAX_COMPLAINT.saturating_sub(self.complaint.len());
                    self.complaint
                        .extend_from_slice(&message[..message.len().min(room)]);
                }
                Some(output) => self.lines.take(&output.into_bytes())?,
            }
        }
    }

    /// What it wrote to standard error so far.
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.complaint).trim().to_owned()
    }

    /// Waits until it has ended and is removed, as [`Self::wait_beside`] was told.
    pub fn finish(&mut self) -> Result<Ended, EngineError> {
        let Some(waiting) = self.waiting.take() else {
            return Ok(Ended { status: None });
        };
        self.finish_by(async { waiting.await.unwrap_or(Ok(None)) })
    }

    /// Runs a call that ends when it has ended and is removed.
    pub fn finish_by(
        &mut self,
        call: impl Future<Output = Result<Option<i64>, EngineError>>,
    ) -> Result<Ended, EngineError> {
        self.attached = None;
        let request = "waiting for the container's removal";
        let status = self.api.driver.run(request, call)?;
        self.removed = true;
        volumes::let_go(self.api, &self.volumes)?;
        self.volumes.clear();
        if status != Some(0) {
            volumes::sweep(self.api, &self.run);
        }
        Ok(Ended { status })
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort();
        }
        if !self.removed {
            self.attached = None;
            remove(self.api, self.maker, &self.id, &self.volumes, &self.run);
        } else {
            let _ = volumes::let_go(self.api, &self.volumes);
        }
    }
}

/// Removes a container by force and waits until it is gone, and then its volumes. Nothing
/// can be done if the engine does not answer; `clean` finds the container.
fn remove(api: &mut Api, maker: Maker, id: &str, volumes: &[String], run: &str) {
    let docker = api.docker.clone();
    api.driver.run_clean_up(async {
        let options = removal();
        // The engine may be removing it already, which is a conflict.
        for _ in 0..500 {
            match docker.remove_container(id, Some(options.clone())).await {
                Err(Error::DockerResponseServerError { status_code, .. }) if status_code != 404 => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                _ => break,
            }
        }
    });
    let _ = volumes::let_go(api, volumes);
    volumes::sweep(api, run);
    // An engine behind a port is another machine's as far as anybody knows.
    if api.host.starts_with("unix://") || maker == Maker::Podman {
        groups::take_away(maker, id);
    }
}
