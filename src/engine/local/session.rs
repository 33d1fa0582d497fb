//! One container of a keeper, from its start to its end.

use super::job::{Job, Layer, MAX_MESSAGE, News};
use super::reserve::Keeper;
use super::state::LocalEngine;
use super::{keeper, kernel, orphans};
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use crate::engine::gate::Closed;
use crate::engine::lines::Lines;
use crate::host::process::wait_at_most;
use crate::image::Image;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::process::Child;
use std::time::Duration;
use tki_evidence::described::local::{self, Document};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

/// The most of the container's standard error that is kept.
const MAX_COMPLAINT: usize = 4096;
/// How long to wait for what a keeper that has ended had said before, and between
/// two looks whether it has.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long a keeper may take to take everything away.
const CLEAN_UP: Duration = Duration::from_secs(15);

/// Starts a keeper with a container.
pub fn launch<'a>(
    engine: &'a mut LocalEngine,
    launch: &Launch,
    image: &Image,
) -> Result<Box<dyn Session + 'a>, EngineError> {
    let name = engine.maker.name();
    let failed = |what: &str, error: std::io::Error| EngineError::Vanished {
        host: name.into(),
        request: what.into(),
        reason: error.to_string(),
    };
    engine.get_ready();
    let layers = image.layers();
    let job = Job {
        maker: engine.maker,
        name: launch.name.clone(),
        program: launch.program,
        arguments: launch.arguments.clone(),
        settings: launch.settings.clone(),
        seccomp: launch.seccomp.clone(),
        gate: launch.gate,
        extras: launch.extras,
        support: engine.support.clone(),
        layers: layers
            .iter()
            .map(|layer| Layer {
                length: layer.bytes.len() as u64,
                gzip: layer.gzip,
            })
            .collect(),
    };
    let keeper = engine.reserve.take().map_or_else(Keeper::start, Ok);
    let started = keeper.and_then(|keeper| keeper.begin(&job, &layers));
    let (child, socket, ends) = started.map_err(|error| failed("starting the keeper", error))?;
    let [input, output, complaints] = ends;
    let mut session = LocalSession {
        child,
        name: launch.name.clone(),
        control: None,
        input: None,
        output: None,
        complaints: None,
        lines: Lines::new(launch.most_said),
        complaint: Vec::new(),
        started: None,
        gate: Closed::default(),
        finished: false,
        engine,
    };
    let connected = session.engine.driver.run("talking to the keeper", async {
        let wrap = || -> std::io::Result<_> {
            socket.set_nonblocking(true)?;
            Ok((
                BufReader::new(tokio::net::UnixStream::from_std(socket)?),
                pipe::Sender::from_owned_fd(input)?,
                pipe::Receiver::from_owned_fd(output)?,
                pipe::Receiver::from_owned_fd(complaints)?,
            ))
        };
        wrap().map_err(|error| failed("talking to the keeper", error))
    })?;
    session.control = Some(connected.0);
    session.input = Some(connected.1);
    session.output = Some(connected.2);
    session.complaints = Some(connected.3);
    let news = session.news("starting the container");
    session.engine.ready = None;
    match news? {
        News::Started { pid, made } => {
            let ulimits = launch.settings.ulimits.iter();
            session.started = Some(Document {
                engine: name.into(),
                name: launch.name.clone(),
                labels: launch.labels.iter().cloned().collect(),
                image: launch.image.clone(),
                pid,
                ulimits: ulimits.map(|limit| limit.name.clone()).collect(),
                made: *made,
                kernel: None,
            });
        }
        News::Failed { reason } => {
            let complaint = session.complaint();
            session.finished = true;
            return Err(EngineError::Unusable {
                engine: name,
                reason: match complaint.as_str() {
                    "" => reason,
                    said => format!("{reason} ({})", tki_text::printable(said, 300)),
                },
                next: "correct what it names, or use another --engine; `tki-attest engines` lists \
                       them"
                    .into(),
            });
        }
        News::Ended { .. } => {
            return Err(failed(
                "starting the container",
                std::io::Error::other("it ended before it started"),
            ));
        }
    }
    Ok(Box::new(session))
}

struct LocalSession<'a> {
    engine: &'a mut LocalEngine,
    child: Child,
    name: String,
    control: Option<BufReader<tokio::net::UnixStream>>,
    input: Option<pipe::Sender>,
    output: Option<pipe::Receiver>,
    complaints: Option<pipe::Receiver>,
    lines: Lines,
    complaint: Vec<u8>,
    /// What is known of it, but for the kernel's part.
    started: Option<Document>,
    gate: Closed,
    finished: bool,
}

impl LocalSession<'_> {
    /// The keeper's next message.
    fn news(&mut self, request: &str) -> Result<News, EngineError> {
        let name = self.engine.maker.name();
        let gone = |reason: String| EngineError::Vanished {
            host: name.into(),
            request: request.into(),
            reason,
        };
        let Some(control) = &mut self.control else {
            return Err(gone("the keeper is gone".into()));
        };
        let child = &mut self.child;
        let line = self.engine.driver.run(request, async {
            let mut line = Vec::new();
            let mut limited = control.take(MAX_MESSAGE);
            let reading = pin!(limited.read_until(b'\n', &mut line));
            // Orphans of a keeper that was killed hold its end of the socket.
            let ended = pin!(async {
                while let Ok(None) = child.try_wait() {
                    tokio::time::sleep(LAST_WORDS).await;
                }
            });
            let read = match select(reading, ended).await {
                Either::Left((read, _)) => read,
                Either::Right(((), reading)) => {
                    let rest = tokio::time::timeout(LAST_WORDS, reading).await;
                    rest.unwrap_or(Ok(0))
                }
            };
            match read {
                Ok(0) => Err(gone("the keeper was killed".into())),
                Ok(_) => Ok(line),
                Err(error) => Err(gone(error.to_string())),
            }
        })?;
        serde_json::from_slice(&line).map_err(|error| gone(error.to_string()))
    }

    /// Takes in what the container has written to standard error so far.
    fn read_complaints(&mut self) {
        let Some(complaints) = &mut self.complaints else {
            return;
        };
        let mut piece = [0; 1024];
        while self.complaint.len() < MAX_COMPLAINT {
            match complaints.try_read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(count) => self.complaint.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Hangs up and waits until the keeper has taken everything away.
    fn end(&mut self) {
        let pid = self.child.id();
        self.wait_for_keeper();
        orphans::keepers().retain(|known| *known != pid);
    }

    fn wait_for_keeper(&mut self) {
        self.control = None;
        if let Some(status) = wait_at_most(&mut self.child, CLEAN_UP) {
            if !status.success() {
                keeper::clean_after(&self.name, &self.engine.support);
            }
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        keeper::clean_after(&self.name, &self.engine.support);
    }
}

impl Session for LocalSession<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let failed = |reason: String| EngineError::Vanished {
            host: self.engine.maker.name().into(),
            request: "asking what was set".into(),
            reason,
        };
        let Some(document) = &mut self.started else {
            return Err(failed("it never started".into()));
        };
        document.kernel = kernel::ask(document.pid);
        let described = local::described(document).map_err(|error| failed(error.to_string()))?;
        let description = serde_json::to_string_pretty(document);
        Ok(Configured {
            group: self.name.clone(),
            settings: described.settings,
            image_id: described.image_id,
            oci_runtime: described.oci_runtime,
            pid: described.pid,
            description: description.map_err(|error| failed(error.to_string()))?,
        })
    }

    fn send(&mut self, line: &[u8]) -> Result<(), EngineError> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        let (host, request) = (self.engine.maker.name(), "writing to the container");
        self.engine.driver.run(request, async {
            input
                .write_all(line)
                .await
                .map_err(|error| EngineError::Vanished {
                    host: host.into(),
                    request: request.into(),
                    reason: error.to_string(),
                })
        })
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        loop {
            if let Some(line) = self.lines.pop() {
                return Ok(Some(line));
            }
            let Some(output) = &mut self.output else {
                return Ok(None);
            };
            let (host, request) = (self.engine.maker.name(), "reading from the container");
            let mut piece = vec![0; 64 * 1024];
            let count = self.engine.driver.run(request, async {
                output
                    .read(&mut piece)
                    .await
                    .map_err(|error| EngineError::Vanished {
                        host: host.into(),
                        request: request.into(),
                        reason: error.to_string(),
                    })
            })?;
            self.read_complaints();
            if count == 0 {
                self.output = None;
                return Ok(self.lines.rest());
            }
            self.lines.take(&piece[..count])?;
        }
    }

    fn complaint(&mut self) -> String {
        self.read_complaints();
        String::from_utf8_lossy(&self.complaint).trim().to_owned()
    }

    fn finish(&mut self) -> Result<Ended, EngineError> {
        self.input = None;
        self.output = None;
        let news = self.news("waiting for the container's end")?;
        self.finished = true;
        self.end();
        match news {
            News::Ended { status, gate } => {
                self.gate = gate;
                Ok(Ended {
                    status: Some(status),
                })
            }
            _ => Ok(Ended { status: None }),
        }
    }

    fn gate(&mut self) -> Closed {
        self.gate.clone()
    }
}

impl Drop for LocalSession<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
