//! One HTTP/1.1 exchange with a peer that may be no engine at all, over the connections of
//! [`dial`](crate::engine::api::dial): with a deadline, without TLS, following nothing, and
//! keeping only so much of an answer.

use crate::deadline::{Deadline, Stopped};
use crate::engine::api::address::{Url, Wish, port_or_usual};
use crate::engine::api::dial::{Address, Broken};
use crate::engine::api::fault::Fault;
use crate::engine::api::meter::{Duplex, Meter, Metered};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH};
use hyper::{HeaderMap, Response};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of an answer's head, and of what is no part of its body.
const MOST_HEAD: usize = 64 * 1024;

/// The most headers of an answer.
const MOST_HEADERS: usize = 1024;

/// The address in `unix:///path`, `tcp://host:port` or `http://host:port`.
pub fn parse_address(url: &str) -> Option<Address> {
    match Url::parse(url).ok()? {
        Url::Unix(path) => Some(Address::Unix(path)),
        Url::Tcp { host, port, tls } if tls != Wish::Yes => Some(Address::Tcp {
            host,
            port: port_or_usual(port, false),
            tls: None,
        }),
        Url::Tcp { .. } | Url::Ssh(_) => None,
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `GET`, …
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Further headers.
    pub headers: &'a [(String, String)],
    /// The body; none if empty.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// A question without a body.
    pub fn get(target: &'a str) -> Self {
        Self {
            method: "GET",
            target,
            headers: &[],
            body: &[],
        }
    }

    fn message(&self) -> Result<hyper::Request<Full<Bytes>>, hyper::http::Error> {
        let mut message = hyper::Request::builder()
            .method(self.method)
            .uri(self.target)
            .header(CONNECTION, "close");
        for (name, value) in self.headers {
            message = message.header(name, value);
        }
        if !self.body.is_empty() || !matches!(self.method, "GET" | "HEAD" | "OPTIONS") {
            message = message.header(CONTENT_LENGTH, self.body.len());
        }
        message.body(Full::new(Bytes::copy_from_slice(self.body)))
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Its words.
    pub reason: String,
    headers: HeaderMap,
    /// The body, as far as it is kept.
    pub body: Vec<u8>,
    /// There was more of it.
    pub cut: bool,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It is no request.
    #[error("not sent: {0}")]
    NotSent(#[from] hyper::http::Error),
    /// The peer does not take the connection.
    #[error("connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection was taken and then lost.
    #[error("{0}")]
    Lost(#[source] io::Error),
    /// What came back is not HTTP.
    #[error("not HTTP: {0}")]
    NotHttp(#[source] hyper::Error),
    /// The head of the answer is longer than any.
    #[error("not HTTP: its head has no end")]
    EndlessHead,
    /// More came than is kept, and still no end.
    #[error("not HTTP: it goes on without end")]
    Endless,
    /// The connection ended before the answer did.
    #[error("not HTTP: it ended in the middle")]
    Unfinished,
    /// Nothing came back in time.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<hyper::Error> for HttpError {
    fn from(error: hyper::Error) -> Self {
        if Fault::within(&error).is_some() {
            return Self::Endless;
        }
        let below = error.source().and_then(|cause| cause.downcast_ref());
        match below.map(io::Error::kind) {
            _ if error.is_parse_too_large() => Self::EndlessHead,
            _ if error.is_incomplete_message() => Self::Unfinished,
            Some(ErrorKind::UnexpectedEof) => Self::Unfinished,
            // A body whose framing cannot be read.
            None | Some(ErrorKind::InvalidInput | ErrorKind::InvalidData) => Self::NotHttp(error),
            Some(_) => Self::Lost(io::Error::other(error)),
        }
    }
}

impl From<Broken> for HttpError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Connection(error) => Self::Lost(error),
            Broken::Http(error) => error.into(),
        }
    }
}

/// Asks, and hears the answer, of which `most` bytes of the body are kept.
pub fn exchange(
    address: &Address,
    request: &Request,
    most: usize,
    deadline: &Deadline,
) -> Result<Answer, HttpError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HttpError::Connect)?;
    runtime.block_on(async {
        let asking = async {
            let stream = address.open_unchecked().await;
            let stream = stream.map_err(HttpError::Connect)?;
            converse(address, stream, request, most).await
        };
        deadline.first(asking).await?
    })
}

async fn converse(
    address: &Address,
    stream: Box<dyn Duplex>,
    request: &Request<'_>,
    most: usize,
) -> Result<Answer, HttpError> {
    // Whatever it is framed in, an answer that never ends is heard no longer.
    let bound = most.saturating_mul(2).saturating_add(MOST_HEAD);
    let stream = Box::new(HeardOut::new(stream));
    let stream = Metered::new(stream, Meter::answer(bound as u64));
    let mut http = http1::Builder::new();
    http.title_case_headers(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD);
    let answer = address.send(stream, &http, request.message()?).await?;
    keep(answer, most).await
}

/// The answer with the start of its body.
async fn keep(answer: Response<Incoming>, most: usize) -> Result<Answer, HttpError> {
    let (head, mut body) = answer.into_parts();
    let usual = head.status.canonical_reason().unwrap_or_default();
    let reason = head.extensions.get::<ReasonPhrase>();
    let mut answer = Answer {
        status: head.status.as_u16(),
        reason: reason.map_or(usual.into(), |reason| {
            String::from_utf8_lossy(reason.as_bytes()).into_owned()
        }),
        headers: head.headers,
        body: Vec::new(),
        cut: false,
    };
    while let Some(frame) = body.frame().await {
        match frame.map_err(HttpError::from) {
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default();
                answer.body.extend_from_slice(&data);
            }
            Err(HttpError::Unfinished) => {
                answer.cut = true;
                break;
            }
            Err(error) => return Err(error),
        }
        if answer.body.len() > most {
            answer.body.truncate(most);
            answer.cut = true;
            break;
        }
    }
    Ok(answer)
}

/// A connection to a peer that may answer before it has heard everything, or hang up
/// rudely when it has said everything: what it said is heard all the same. What it says
/// before it is asked is its answer.
struct HeardOut {
    stream: Box<dyn Duplex>,
    has_asked: bool,
    has_heard: bool,
}

impl HeardOut {
    fn new(stream: Box<dyn Duplex>) -> Self {
        Self {
            stream,
            has_asked: false,
            has_heard: false,
        }
    }
}

impl AsyncRead for HeardOut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_asked {
            // The first write wakes the reader.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.has_heard |= buffer.filled().len() > before;
        Poll::Ready(match read {
            Err(error) if error.kind() == ErrorKind::ConnectionReset && self.has_heard => Ok(()),
            read => read,
        })
    }
}

impl AsyncWrite for HeardOut {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.has_asked {
            self.has_asked = true;
            context.waker().wake_by_ref();
        }
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            // What can still be read tells whether it had answered by then.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                Poll::Ready(Ok(bytes.len()))
            }
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
