//! Finding the engine, and telling one failure from another.

use crate::engine::api::raw::Raw;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::podman::libpod;
use bollard::errors::Error;
use bollard::{ClientVersion, Docker};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

/// The oldest API that has everything we set: Docker Engine 19.03.
const LEAST_API: (usize, usize) = (1, 40);
const LEAST_API_NAME: &str = "1.40";

/// Seconds that a single request may take; the run's deadline is shorter.
const REQUEST_SECONDS: u64 = 600;

/// Connects and agrees on an API version.
pub fn connect(driver: &mut Driver, host: &str) -> Result<Docker, EngineError> {
    // Asking costs the engine more than anything else that is asked of it, and
    // the answer stays the same: further connections of this process reuse it.
    static AGREED: Mutex<Option<(String, ClientVersion)>> = Mutex::new(None);
    let mut agreed = AGREED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((known, version)) = agreed.as_ref()
        && known == host
    {
        return client(host, version);
    }
    let docker = client(host, bollard::API_DEFAULT_VERSION)?;
    // Podman answers in the same words, but means other things by some of them.
    if let Some(socket) = host.strip_prefix("unix://") {
        let raw = Raw::new(socket, host);
        match driver.run("GET /_ping", libpod::ping(&raw)) {
            Ok(Some(_)) => return Err(podman_there(host)),
            Err(error @ (EngineError::Interrupted { .. } | EngineError::TimedOut { .. })) => {
                return Err(error);
            }
            // What else is wrong shows in the answer to the next question.
            Ok(None) | Err(_) => {}
        }
    }
    let request = "GET /version";
    let docker = driver.run(request, async {
        docker.negotiate_version().await.map_err(|error| {
            match explain(host, request, error) {
                // Nothing has ever answered here.
                EngineError::Vanished { host, reason, .. } => {
                    EngineError::Unreachable { host, reason }
                }
                other => other,
            }
        })
    })?;
    let version = docker.client_version();
    if (version.major_version, version.minor_version) < LEAST_API {
        return Err(EngineError::TooOld {
            host: host.into(),
            found: version.to_string(),
            least: LEAST_API_NAME,
        });
    }
    *agreed = Some((host.to_owned(), version));
    Ok(docker)
}

fn podman_there(host: &str) -> EngineError {
    EngineError::Unusable {
        engine: "docker",
        reason: format!("{host} is Podman's"),
        next: "use --engine podman".into(),
    }
}

/// A client for an address, with a version that is agreed on.
pub fn client(host: &str, version: &ClientVersion) -> Result<Docker, EngineError> {
    let address = |why: String| EngineError::Address {
        host: host.into(),
        why,
    };
    if let Some(path) = host.strip_prefix("unix://") {
        // The client connects late and says little about why it failed.
        if let Err(error) = UnixStream::connect(path) {
            return Err(match error.kind() {
                ErrorKind::PermissionDenied => EngineError::Permission { host: host.into() },
                _ => EngineError::Unreachable {
                    host: host.into(),
                    reason: error.to_string(),
                },
            });
        }
        Docker::connect_with_unix(path, REQUEST_SECONDS, version)
            .map_err(|error| address(error.to_string()))
    } else if host.starts_with("tcp://") || host.starts_with("http://") {
        Docker::connect_with_http(host, REQUEST_SECONDS, version)
            .map_err(|error| address(error.to_string()))
    } else {
        Err(address("only unix:// and tcp:// are supported".into()))
    }
}

/// The client's error as one of ours.
pub fn explain(host: &str, request: &str, error: Error) -> EngineError {
    let (host, request) = (host.to_owned(), request.to_owned());
    match error {
        Error::DockerResponseServerError {
            status_code: 403,
            message,
        } => EngineError::Forbidden {
            host,
            request,
            message: printable(&message),
        },
        Error::DockerResponseServerError {
            status_code,
            message,
        } => EngineError::Refused {
            host,
            request,
            status: status_code,
            message: printable(&message),
        },
        Error::DockerStreamError { error } => EngineError::Refused {
            host,
            request,
            status: 200,
            message: printable(&error),
        },
        Error::RequestTimeoutError => EngineError::TimedOut { request },
        other => EngineError::Vanished {
            host,
            request,
            reason: printable(&chain(&other)),
        },
    }
}

/// An error with everything that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// An engine's words, cut and without terminal escapes.
pub fn printable(text: &str) -> String {
    crate::report::text::printable(text.trim(), 600)
}
