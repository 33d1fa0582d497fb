//! One request over a unix socket, for what the client library does not know:
//! Podman's own API. Answers are bounded.

use crate::engine::api::connect::printable;
use crate::engine::error::EngineError;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// The most that an answer may have.
const MAX_ANSWER: usize = 8 << 20;

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

/// A socket, and how errors call the engine behind it.
#[derive(Clone, Debug)]
pub struct Raw {
    /// The socket's path.
    pub socket: String,
    /// The engine's address, as errors name it.
    pub host: String,
}

impl Raw {
    /// The engine at this socket.
    pub fn new(socket: &str, host: &str) -> Self {
        Self {
            socket: socket.to_owned(),
            host: host.to_owned(),
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
        let vanished = |reason: String| EngineError::Vanished {
            host: self.host.clone(),
            request: request.clone(),
            reason: printable(&reason),
        };
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| vanished(error.to_string()))?;
        let exchange = async {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            let message = Request::builder()
                .method(method.clone())
                .uri(target)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body.unwrap_or_default())))?;
            let talk = async {
                let response = sender.send_request(message).await?;
                let (head, body) = response.into_parts();
                let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
                Ok(Answer {
                    status: head.status,
                    headers: head.headers,
                    body,
                })
            };
            // The connection has to be driven; its end is not the answer's.
            let drive = async {
                let _ = connection.await;
                std::future::pending().await
            };
            tokio::select! {
                biased;
                answer = talk => answer,
                never = drive => never,
            }
        };
        exchange
            .await
            .map_err(|error: Box<dyn std::error::Error + Send + Sync>| vanished(error.to_string()))
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
