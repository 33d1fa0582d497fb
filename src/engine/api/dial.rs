//! Connections to an engine: one for each request, opened without blocking, to a peer
//! that is trusted, and with a bound on what may come back.
//!
//! The client library collects whatever an engine sends. So the bound lies below it: on
//! the bytes of the connection, whatever HTTP makes of them.

use crate::engine::api::meter::{Meter, Metered};
use crate::engine::error::EngineError;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// How long to wait before a listener whose queue is full is tried again: the kernel
/// tells nobody when there is room.
const FULL: Duration = Duration::from_millis(20);

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A port.
    Tcp {
        /// Name or address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What is wrong with an engine's connection. It travels through the client library
/// inside an [`io::Error`], where [`Fault::within`] finds it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The socket is another user's.
    #[error("{what} belongs to uid {uid}")]
    Peer {
        /// The socket itself, or the process that listens.
        what: &'static str,
        /// Whose it is.
        uid: u32,
    },
    /// There is more of it than any engine has to say.
    #[error("its answer has more than {most} {what}")]
    Flood {
        /// So many.
        most: u64,
        /// Of what.
        what: &'static str,
    },
    /// The container's streams do not come in frames.
    #[error("the container's streams are not multiplexed")]
    NotFramed,
}

impl Fault {
    /// The fault that caused an error, if one did.
    pub fn within<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return Some(fault);
            }
            // Its source is what caused the error in it, and not that error itself.
            let inner = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref);
            if let Some(fault) = inner.and_then(|inner| Self::within(inner)) {
                return Some(fault);
            }
            next = error.source();
        }
        None
    }

    /// The same as an engine's error.
    pub fn explained(&self, host: &str, request: &str) -> EngineError {
        let (host, request) = (host.to_owned(), request.to_owned());
        match self {
            Self::Peer { what, uid } => EngineError::Peer {
                host,
                what,
                uid: *uid,
            },
            Self::Flood { .. } => EngineError::Flood {
                host,
                request,
                what: self.to_string(),
            },
            Self::NotFramed => EngineError::Vanished {
                host,
                request,
                reason: self.to_string(),
            },
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        io::Error::other(fault)
    }
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// There is no connection.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// What went over it is not HTTP, or ended too early.
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

impl Address {
    /// The address in `unix:///path` or `tcp://host:port`; otherwise why it is none.
    pub fn parse(host: &str) -> Result<Self, String> {
        if let Some(path) = host.strip_prefix("unix://") {
            return Ok(Self::Unix(path.into()));
        }
        let rest = host
            .strip_prefix("tcp://")
            .or_else(|| host.strip_prefix("http://"))
            .ok_or("only unix:// and tcp:// are supported")?;
        let uri: Uri = format!("http://{rest}")
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| error.to_string())?;
        let name = uri.host().unwrap_or_default();
        // An address of IPv6 stands in brackets.
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        Ok(Self::Tcp {
            host: bare.unwrap_or(name).to_owned(),
            port: uri.port_u16().unwrap_or(80),
        })
    }

    /// The name that requests give the engine.
    fn name(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port } => format!("{host}:{port}"),
        }
    }

    /// The address as a client library wants it, which only makes requests of it.
    pub fn base(&self) -> String {
        format!("http://{}", self.name())
    }

    /// Connects, and checks whose the other end is before the first byte. Waits for a
    /// listener whose queue is full: the caller has a deadline.
    async fn open(&self) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Unix(path) => Ok(Box::new(open_socket(path).await?.0)),
            Self::Tcp { host, port } => {
                let stream = TcpStream::connect(&*resolve(host, *port).await?).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Connects and says nothing: gives the user who listens, if that can be known.
    /// Errors call the engine `name`.
    pub async fn knock(&self, name: &str) -> Result<Option<u32>, EngineError> {
        let knocked = match self {
            Self::Unix(path) => open_socket(path).await.map(|(_, uid)| Some(uid)),
            // The first request tells more about a port than this would.
            Self::Tcp { .. } => Ok(None),
        };
        knocked.map_err(|error| match (Fault::within(&error), error.kind()) {
            (Some(fault), _) => fault.explained(name, "connecting"),
            (None, ErrorKind::PermissionDenied) => EngineError::Permission { host: name.into() },
            (None, _) => EngineError::Unreachable {
                host: name.into(),
                reason: error.to_string(),
            },
        })
    }

    /// Sends a request over a connection of its own; gives the answer's head. What comes
    /// back is bounded, by what was asked.
    pub async fn request<B>(&self, mut request: Request<B>) -> Result<Response<Incoming>, Broken>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let meter = Meter::of(request.method(), request.uri().path());
        let stream = Metered::new(self.open().await?, meter);
        let name = HeaderValue::from_str(&self.name()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, name);
        // A server is asked for a path; which server that is, is settled.
        let target = request.uri().path_and_query().map(ToString::to_string);
        *request.uri_mut() = target
            .unwrap_or_else(|| "/".to_owned())
            .parse()
            .map_err(io::Error::other)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the answer, or with the container's streams.
        tokio::spawn(connection.with_upgrades());
        Ok(sender.send_request(request).await?)
    }
}

/// The addresses of a host. A resolver may take its time, and nobody can stop it: it
/// gets a thread for which nobody waits, as the runtime would for one of its own.
async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (tell, told) = tokio::sync::oneshot::channel();
    let host = host.to_owned();
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        let _ = tell.send(found.map(Iterator::collect));
    });
    told.await.map_err(io::Error::other)?
}

/// Connects to a socket that root or this user owns and listens at; gives the user who
/// listens.
///
/// Whoever is at the other end is told what is to be done as root, and what it answers
/// becomes evidence. Another user could answer anything.
async fn open_socket(path: &Path) -> io::Result<(UnixStream, u32)> {
    let stream = loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tokio::time::sleep(FULL).await;
            }
            other => break other?,
        }
    };
    // The user of whoever called listen(2). Where systemd did that for the engine, it
    // is systemd's.
    let listener = socket_peercred(&stream)?.uid.as_raw();
    // A program that gains privileges may have been started with somebody's socket.
    let owner = std::fs::metadata(path)?.uid();
    for (what, uid) in [("what listens there", listener), ("the socket", owner)] {
        if uid != 0 && uid != geteuid().as_raw() {
            return Err(Fault::Peer { what, uid }.into());
        }
    }
    Ok((stream, listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_and_ports() {
        let tcp = |host: &str, port| {
            Ok(Address::Tcp {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(
            Address::parse("tcp://127.0.0.1:2375"),
            tcp("127.0.0.1", 2375)
        );
        assert_eq!(Address::parse("http://[::1]:2375/"), tcp("::1", 2375));
        assert_eq!(Address::parse("tcp://engine"), tcp("engine", 80));
        let base = |host: &str| Address::parse(host).unwrap().base();
        assert_eq!(base("tcp://[::1]:2375"), "http://[::1]:2375");
        assert_eq!(base("unix:///x y"), "http://localhost");
        for host in ["", "/x", "ssh://x", "https://x", "tcp://", "tcp://a b"] {
            assert!(Address::parse(host).is_err(), "{host}");
        }
    }

    #[test]
    fn a_fault_is_found_wherever_it_was_put() {
        let fault = Fault::NotFramed;
        let error: io::Error = fault.clone().into();
        assert_eq!(Fault::within(&error), Some(&fault));
        let around = Broken::from(io::Error::other(error));
        assert_eq!(Fault::within(&io::Error::other(around)), Some(&fault));
        assert_eq!(Fault::within(&io::Error::other("x")), None);
    }
}
