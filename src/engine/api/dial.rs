//! Connections to an engine: one for each request, opened without blocking, to a peer
//! that is trusted, and with a bound on what may come back.
//!
//! The client library collects whatever an engine sends. So the bound lies below it: on
//! the bytes of the connection, whatever HTTP makes of them.

use crate::engine::api::address::host_and_port;
use crate::engine::api::fault::Fault;
use crate::engine::api::meter::{Duplex, Meter, Metered};
use crate::engine::api::tls::Tls;
use crate::engine::api::tunnel::Tunnel;
use crate::engine::error::EngineError;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// How long to wait before a listener whose queue is full is tried again: the kernel
/// tells nobody when there is room.
const FULL: Duration = Duration::from_millis(20);

/// How long one address of an unchecked peer's name is tried.
const UNREACHED: Duration = Duration::from_secs(5);

/// Where an engine listens, with all that is needed to get there.
#[derive(Clone, Debug)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A port.
    Tcp {
        /// Name or address.
        host: String,
        /// The port.
        port: u16,
        /// Certificates, if it speaks TLS.
        tls: Option<Tls>,
    },
    /// A socket on another host.
    Ssh(Arc<Tunnel>),
}

/// The process that listens at a unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The user.
    pub uid: u32,
    /// The process that called listen(2), if it is in this process id namespace.
    pub pid: Option<i32>,
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
    /// How an engine is reached that may be another machine's: any but one behind a unix
    /// socket. A port of this host's may be forwarded.
    pub fn far(&self) -> Option<String> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { host, port, tls } => {
                let tls = tls.as_ref().map_or("", |_| " (TLS)");
                Some(format!("tcp://{}{tls}", host_and_port(host, *port)))
            }
            Self::Ssh(tunnel) => Some(tunnel.shown().to_owned()),
        }
    }

    /// A socket of this host, or its loopback interface by a name that says so.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => is_loopback(host),
            Self::Ssh(_) => false,
        }
    }

    /// What the user should know about the connection.
    pub fn note(&self) -> Option<String> {
        let Self::Tcp { host, tls, .. } = self else {
            return None;
        };
        match tls {
            Some(tls) if tls.is_known => None,
            Some(_) => Some(
                "no certificate of ours is given (--tls-cert): the engine takes orders from \
                 anybody who reaches its port"
                    .into(),
            ),
            None if is_loopback(host) => None,
            None => Some(
                "the connection to the engine is not encrypted, and neither side shows who it \
                 is: a party between can answer anything; use TLS (--tls-ca) or ssh://"
                    .into(),
            ),
        }
    }

    /// The name that requests give the engine.
    pub fn name(&self) -> String {
        match self {
            Self::Unix(_) | Self::Ssh(_) => "localhost".to_owned(),
            Self::Tcp { host, port, .. } => host_and_port(host, *port),
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
            Self::Tcp { host, port, tls } => {
                let stream = open_port(host, *port).await?;
                match tls {
                    None => Ok(Box::new(stream)),
                    Some(tls) => Ok(Box::new(tls.shake(stream).await?)),
                }
            }
            Self::Ssh(tunnel) => Ok(Box::new(tunnel.connect().await?)),
        }
    }

    /// Connects to any peer, whoever owns it, and waits for no queue: what comes back is an
    /// observation about that peer and never evidence.
    pub async fn open_unchecked(&self) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Self::Tcp {
                host,
                port,
                tls: None,
            } => {
                let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
                for address in resolve(host, *port).await? {
                    let connecting = TcpStream::connect(address);
                    match tokio::time::timeout(UNREACHED, connecting).await {
                        Ok(Ok(stream)) => return Ok(Box::new(stream)),
                        Ok(Err(error)) => last = error,
                        Err(_) => {
                            last = io::Error::new(ErrorKind::TimedOut, "connection timed out");
                        }
                    }
                }
                Err(last)
            }
            Self::Tcp { .. } | Self::Ssh(_) => self.open().await,
        }
    }

    /// Connects and says nothing: gives who listens, if that can be known. Errors call the
    /// engine `name`.
    pub async fn knock(&self, name: &str) -> Result<Option<Listener>, EngineError> {
        let knocked = match self {
            Self::Unix(path) => open_socket(path).await.map(|(_, listener)| Some(listener)),
            Self::Tcp {
                host,
                port,
                tls: Some(tls),
            } => welcome(host, *port, tls).await.map(|()| None),
            // The first request tells more about a port than this would.
            Self::Tcp { .. } | Self::Ssh(_) => Ok(None),
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
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response<Incoming>, Broken>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let meter = Meter::of(request.method(), request.uri().path());
        let stream = Metered::new(self.open().await?, meter);
        self.send(stream, &http1::Builder::new(), request).await
    }

    /// Sends a request over this connection; gives the answer's head.
    pub async fn send<B>(
        &self,
        stream: Metered,
        http: &http1::Builder,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>, Broken>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let name = HeaderValue::from_str(&self.name()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, name);
        // A server is asked for a path; which server that is, is settled.
        let target = request.uri().path_and_query().map(ToString::to_string);
        *request.uri_mut() = target
            .unwrap_or_else(|| "/".to_owned())
            .parse()
            .map_err(io::Error::other)?;
        let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await?;
        // It ends with the answer, or with the container's streams.
        tokio::spawn(connection.with_upgrades());
        Ok(sender.send_request(request).await?)
    }
}

/// Whether a host is this one's loopback interface, by a name that says so.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Connects to a port.
async fn open_port(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(&*resolve(host, port).await?).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects to a port that speaks TLS, and is taken there for who we are.
async fn welcome(host: &str, port: u16, tls: &Tls) -> io::Result<()> {
    let stream = open_port(host, port).await?;
    tls.shake(stream).await?.welcomed().await
}

/// The addresses of a host. A resolver may take its time, and nobody can stop it: it
/// gets a thread for which nobody waits, as the runtime would for one of its own.
pub async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
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
/// The peer is told what is to be done as root, and what it answers
/// becomes evidence. Another user could answer anything.
async fn open_socket(path: &Path) -> io::Result<(UnixStream, Listener)> {
    let stream = loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tokio::time::sleep(FULL).await;
            }
            other => break other?,
        }
    };
    // The user of the process that called listen(2). Where systemd did that for the engine, it
    // is systemd's.
    let peer = stream.peer_cred()?;
    let listener = Listener {
        uid: peer.uid(),
        pid: peer.pid(),
    };
    // A program that gains privileges may have been started with another user's socket.
    let owner = std::fs::metadata(path)?.uid();
    for (what, uid) in [("what listens there", listener.uid), ("the socket", owner)] {
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
    fn only_a_unix_socket_may_be_of_this_host() {
        let port = |host: &str| Address::Tcp {
            host: host.to_owned(),
            port: 2375,
            tls: None,
        };
        let unix = Address::Unix("/x y".into());
        assert_eq!((unix.base(), unix.far()), ("http://localhost".into(), None));
        assert_eq!(port("::1").base(), "http://[::1]:2375");
        assert_eq!(port("::1").far().unwrap(), "tcp://[::1]:2375");
        for (host, is_noted) in [
            ("127.0.0.1", false),
            ("::1", false),
            ("localhost", false),
            ("192.0.2.1", true),
            ("engine", true),
        ] {
            assert_eq!(port(host).note().is_some(), is_noted, "{host}");
        }
    }
}
