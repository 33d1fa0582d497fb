//! Finding the engine, and telling one failure from another.

use crate::engine::api::dial::{Address, Broken};
use crate::engine::api::fault::Fault;
use crate::engine::api::ping::ping;
use crate::engine::api::raw::Raw;
use crate::engine::api::words::{chain, printable};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use bollard::errors::Error;
use bollard::{BollardRequest, ClientVersion, Docker};
use std::sync::Mutex;

/// The oldest API that has everything we set: Docker Engine 19.03.
const LEAST_API: (usize, usize) = (1, 40);
const LEAST_API_NAME: &str = "1.40";

/// Seconds that a single request may take; the run's deadline is shorter.
const REQUEST_SECONDS: u64 = 600;

/// What an engine says, without TLS, at a port where it speaks TLS.
const SPOKEN_TO_IN_THE_CLEAR: &str = "HTTP request to an HTTPS server";

/// Connects and agrees on an API version.
pub fn connect(driver: &mut Driver, address: &Address, host: &str) -> Result<Docker, EngineError> {
    // The client connects late and says little about why it failed.
    driver.run("connecting", address.knock(host))?;
    // Asking costs the engine more than anything else that is asked of it, and
    // the answer stays the same: further connections of this process reuse it.
    static AGREED: Mutex<Option<(String, ClientVersion)>> = Mutex::new(None);
    let mut agreed = AGREED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((known, version)) = agreed.as_ref()
        && known == host
    {
        return client(address, host, version);
    }
    let docker = client(address, host, bollard::API_DEFAULT_VERSION)?;
    // Podman answers in the same words, but means other things by some of them.
    let raw = Raw::at(address.clone(), host);
    match driver.run("GET /_ping", ping(&raw)) {
        Ok(Some(_)) => return Err(podman_there(host)),
        Err(
            error @ (EngineError::Interrupted { .. }
            | EngineError::TimedOut { .. }
            | EngineError::Flood { .. }
            | EngineError::Tls { .. }
            | EngineError::Ssh { .. }
            | EngineError::Peer { .. }),
        ) => {
            return Err(error);
        }
        // What else is wrong shows in the answer to the next question.
        Ok(None) | Err(_) => {}
    }
    let request = "GET /version";
    let docker = driver.run(request, async {
        docker.negotiate_version().await.map_err(|error| {
            match explain(host, request, error) {
                // Nothing has ever answered here.
                EngineError::Vanished { host, reason, .. } => {
                    EngineError::Unreachable { host, reason }
                }
                EngineError::Refused {
                    host,
                    status: 400,
                    message,
                    ..
                } if message.contains(SPOKEN_TO_IN_THE_CLEAR) => EngineError::Tls {
                    host,
                    what: "it speaks TLS, and no authority is given for its certificate".into(),
                    next: "name the authority with --tls-ca, and our own certificate with \
                           --tls-cert and --tls-key",
                },
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

/// A client for an address, with a version that is agreed on. Errors call it `host`.
pub fn client(
    address: &Address,
    host: &str,
    version: &ClientVersion,
) -> Result<Docker, EngineError> {
    let (base, address) = (address.base(), address.clone());
    // The library's own connections have no bound on what comes back.
    let transport = move |request: BollardRequest| {
        let address = address.clone();
        async move {
            address
                .request(request)
                .await
                .map_err(|broken| match broken {
                    Broken::Connection(error) => Error::from(error),
                    Broken::Http(error) => Error::from(error),
                })
        }
    };
    Docker::connect_with_custom_transport(transport, Some(base), REQUEST_SECONDS, version).map_err(
        |error| EngineError::Address {
            host: host.into(),
            why: error.to_string(),
        },
    )
}

/// The client's error as one of ours.
pub fn explain(host: &str, request: &str, error: Error) -> EngineError {
    if let Some(fault) = fault(&error) {
        return fault.explained(host, request);
    }
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

/// What is wrong with the connection, if that is what went wrong.
fn fault(error: &Error) -> Option<&Fault> {
    match error {
        // The library shows such an error in place of itself, so it is nobody's source.
        Error::IOError { err } => Fault::within(err),
        other => Fault::within(other),
    }
}
