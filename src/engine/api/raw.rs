//! One request and its whole answer, for what the client library does not know, Podman's
//! own API, and for answers that it reads as a stream, in which errors lose their cause.

use crate::engine::api::dial::{Address, Broken};
use crate::engine::api::fault::Fault;
use crate::engine::api::words::{chain, printable};
use crate::engine::error::EngineError;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Method, Request, StatusCode, header};
use serde::de::DeserializeOwned;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// An engine, and how errors call it.
#[derive(Clone, Debug)]
pub struct Raw {
    /// The socket's path; empty if it is not one of this host's.
    pub socket: String,
    /// The engine's address, as errors name it.
    pub host: String,
    /// The same, to connect to.
    pub address: Address,
}

impl Raw {
    /// The engine at this socket.
    pub fn new(socket: &str, host: &str) -> Self {
        Self {
            socket: socket.to_owned(),
            host: host.to_owned(),
            address: Address::Unix(socket.into()),
        }
    }

    /// The engine at this address.
    pub fn at(address: Address, host: &str) -> Self {
        let socket = match &address {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp { .. } | Address::Ssh(_) => String::new(),
        };
        Self {
            socket,
            host: host.to_owned(),
            address,
        }
    }

    /// Sends a request over a connection of its own, and hears the answer.
    pub async fn send(
        &self,
        method: Method,
        target: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, EngineError> {
        let name = target.split('?').next().unwrap_or_default();
        let request = format!("{method} {name}");
        let exchanged = self.exchange(method, target, body).await;
        exchanged.map_err(|error| match Fault::within(&error) {
            Some(fault) => fault.explained(&self.host, &request),
            None => EngineError::Vanished {
                host: self.host.clone(),
                request,
                reason: printable(&chain(&error)),
            },
        })
    }

    async fn exchange(
        &self,
        method: Method,
        target: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Broken> {
        let message = Request::builder()
            .method(method)
            .uri(target)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(std::io::Error::other)?;
        let (head, body) = self.address.request(message).await?.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// Sends a request that must succeed.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, EngineError> {
        let request = format!("{method} {}", target.split('?').next().unwrap_or_default());
        let answer = self.send(method, target, body).await?;
        let host = self.host.clone();
        match answer.status {
            status if status.is_success() => Ok(answer),
            StatusCode::FORBIDDEN => Err(EngineError::Forbidden {
                host,
                request,
                message: message(&answer.body),
            }),
            status => Err(EngineError::Refused {
                host,
                request,
                status: status.as_u16(),
                message: message(&answer.body),
            }),
        }
    }

    /// Asks for a value.
    pub async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, EngineError> {
        let answer = self.ask(Method::GET, target, None).await?;
        self.read(&format!("GET {target}"), &answer.body)
    }

    /// An answer's body as a value.
    pub fn read<T: DeserializeOwned>(&self, request: &str, body: &[u8]) -> Result<T, EngineError> {
        serde_json::from_slice(body).map_err(|error| EngineError::Vanished {
            host: self.host.clone(),
            request: request.to_owned(),
            reason: format!("its answer cannot be read: {error}"),
        })
    }
}

/// What an engine says about a refusal.
fn message(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Refusal {
        message: String,
    }
    let text = match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => refusal.message,
        Err(_) => String::from_utf8_lossy(&body[..body.len().min(2048)]).into_owned(),
    };
    printable(&text)
}
