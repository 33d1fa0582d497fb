//! One HTTP/1.1 exchange over a unix socket or a port, with a deadline. It
//! speaks no TLS, follows nothing, and keeps only so much of an answer.

use crate::deadline::{Deadline, Stopped, TICK};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// The most bytes of an answer's head, and of what is no part of its body.
const MOST_HEAD: usize = 64 * 1024;

/// The most heads that say only that another one follows.
const MOST_HEADS: usize = 8;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this host.
    Unix(PathBuf),
    /// Host and port.
    Tcp(String),
}

impl Address {
    /// `unix:///path`, `tcp://host:port` or `http://host:port`.
    pub fn parse(url: &str) -> Option<Self> {
        if let Some(path) = url.strip_prefix("unix://") {
            return path.starts_with('/').then(|| Address::Unix(path.into()));
        }
        let rest = url
            .strip_prefix("tcp://")
            .or_else(|| url.strip_prefix("http://"))?;
        let rest = rest.trim_end_matches('/');
        let plain = |c: char| c.is_ascii_alphanumeric() || ".:-[]_".contains(c);
        if rest.is_empty() || !rest.chars().all(plain) {
            return None;
        }
        let has_port = rest
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Some(Address::Tcp(match has_port {
            true => rest.to_owned(),
            false => format!("{rest}:2375"),
        }))
    }
}

impl Address {
    /// A socket of this host, or its loopback interface by a name that says so.
    pub fn is_here(&self) -> bool {
        let Address::Tcp(address) = self else {
            return true;
        };
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `GET`, …
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The value of `Host`.
    pub host: &'a str,
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
            host: "localhost",
            headers: &[],
            body: &[],
        }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Its words.
    pub reason: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it is kept.
    pub body: Vec<u8>,
    /// There was more of it.
    pub cut: bool,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Nobody takes the connection.
    #[error("connect: {0}")]
    Connect(io::Error),
    /// It was taken and then lost.
    #[error("{0}")]
    Lost(io::Error),
    /// What came back is not HTTP.
    #[error("not HTTP: {0}")]
    NotHttp(&'static str),
    /// Nothing came back in time.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Asks, and hears the answer, of which `most` bytes of the body are kept.
pub fn exchange(
    address: &Address,
    request: &Request,
    most: usize,
    deadline: &Deadline,
) -> Result<Answer, HttpError> {
    match address {
        Address::Unix(path) => {
            let stream = connect_unix(path).map_err(HttpError::Connect)?;
            stream
                .set_read_timeout(Some(TICK))
                .and_then(|()| stream.set_write_timeout(Some(TICK)))
                .map_err(HttpError::Connect)?;
            converse(stream, request, most, deadline)
        }
        Address::Tcp(address) => {
            let stream = connect_tcp(address, deadline)?;
            stream
                .set_read_timeout(Some(TICK))
                .and_then(|()| stream.set_write_timeout(Some(TICK)))
                .map_err(HttpError::Connect)?;
            converse(stream, request, most, deadline)
        }
    }
}

/// Connecting to a listener whose queue is full would wait; this does not.
fn connect_unix(path: &std::path::Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The addresses of a name. Asking for them cannot be cut short, so another thread
/// asks, and is left alone when the time is up.
pub fn resolve(address: &str, deadline: &Deadline) -> Result<Vec<SocketAddr>, HttpError> {
    let (sender, receiver) = mpsc::channel();
    let name = address.to_owned();
    std::thread::spawn(move || {
        let found = name.to_socket_addrs().map(Iterator::collect);
        let _ = sender.send(found);
    });
    loop {
        match receiver.recv_timeout(deadline.tick()?) {
            Ok(found) => return found.map_err(HttpError::Connect),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let error = io::Error::other("the name could not be looked up");
                return Err(HttpError::Connect(error));
            }
        }
    }
}

fn connect_tcp(address: &str, deadline: &Deadline) -> Result<TcpStream, HttpError> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in resolve(address, deadline)? {
        match TcpStream::connect_timeout(&address, deadline.left()?.min(Duration::from_secs(5))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(HttpError::Connect(last))
}

fn converse(
    mut stream: impl Read + Write,
    request: &Request,
    most: usize,
    deadline: &Deadline,
) -> Result<Answer, HttpError> {
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
        request.method, request.target, request.host
    );
    for (name, value) in request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !request.body.is_empty() || !matches!(request.method, "GET" | "HEAD" | "OPTIONS") {
        head += &format!("Content-Length: {}\r\n", request.body.len());
    }
    head += "\r\n";
    let sent = send(&mut stream, head.as_bytes(), deadline)
        .and_then(|()| send(&mut stream, request.body, deadline));
    match sent {
        Ok(()) => {}
        // It may have answered before it had heard everything.
        Err(HttpError::Lost(error)) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error),
    }
    receive(&mut stream, request.method == "HEAD", most, deadline)
}

fn send(stream: &mut impl Write, mut bytes: &[u8], deadline: &Deadline) -> Result<(), HttpError> {
    while !bytes.is_empty() {
        deadline.tick()?;
        match stream.write(bytes) {
            Ok(0) => return Err(HttpError::Lost(ErrorKind::WriteZero.into())),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_tick(&error) => {}
            Err(error) => return Err(HttpError::Lost(error)),
        }
    }
    Ok(())
}

/// Nothing happened for a moment.
fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn receive(
    stream: &mut impl Read,
    headless: bool,
    most: usize,
    deadline: &Deadline,
) -> Result<Answer, HttpError> {
    let mut heard = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut ended = false;
    loop {
        if let Some(answer) = read_answer(&heard, ended, headless, most)? {
            return Ok(answer);
        }
        // Whatever it is framed in, an answer that never ends is heard no longer.
        if heard.len() > most.saturating_mul(2).saturating_add(MOST_HEAD) {
            return Err(HttpError::NotHttp("it goes on without end"));
        }
        if ended {
            return Err(HttpError::NotHttp("it ended in the middle"));
        }
        deadline.tick()?;
        match stream.read(&mut buffer) {
            Ok(0) => ended = true,
            Ok(count) => heard.extend_from_slice(&buffer[..count]),
            Err(error) if is_tick(&error) => {}
            // A peer that hangs up rudely may have said everything.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !heard.is_empty() => {
                ended = true;
            }
            Err(error) => return Err(HttpError::Lost(error)),
        }
    }
}

/// The answer, once enough of it has been heard.
fn read_answer(
    mut heard: &[u8],
    ended: bool,
    headless: bool,
    most: usize,
) -> Result<Option<Answer>, HttpError> {
    for _ in 0..MOST_HEADS {
        let Some((mut answer, rest)) = read_head(heard)? else {
            return Ok(None);
        };
        if (100..200).contains(&answer.status) && answer.status != 101 {
            heard = rest;
            continue;
        }
        let body = match headless || matches!(answer.status, 101 | 204 | 304) {
            true => Some((Vec::new(), false)),
            false => read_body(&answer, rest, ended, most)?,
        };
        return Ok(body.map(|(body, cut)| {
            (answer.body, answer.cut) = (body, cut);
            answer
        }));
    }
    Err(HttpError::NotHttp("it only ever announces an answer"))
}

/// A head and what follows it; `None` if more is to come.
fn read_head(heard: &[u8]) -> Result<Option<(Answer, &[u8])>, HttpError> {
    let within = &heard[..heard.len().min(MOST_HEAD)];
    let Some(end) = within.windows(4).position(|window| window == b"\r\n\r\n") else {
        if heard.len() > MOST_HEAD {
            return Err(HttpError::NotHttp("its head has no end"));
        }
        if !b"HTTP/1.".starts_with(&heard[..heard.len().min(7)]) {
            return Err(HttpError::NotHttp("it does not begin like an answer"));
        }
        return Ok(None);
    };
    let head = std::str::from_utf8(&heard[..end])
        .map_err(|_| HttpError::NotHttp("its head is not text"))?;
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let (version, rest) = first.split_once(' ').unwrap_or((first, ""));
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let status = match code.parse() {
        Ok(status @ 100..=999) if version.starts_with("HTTP/1.") && code.len() == 3 => status,
        _ => return Err(HttpError::NotHttp("its first line is none")),
    };
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let answer = Answer {
        status,
        reason: reason.to_owned(),
        headers,
        body: Vec::new(),
        cut: false,
    };
    Ok(Some((answer, &heard[end + 4..])))
}

/// The body and whether there was more of it; `None` if more is to come.
fn read_body(
    answer: &Answer,
    rest: &[u8],
    ended: bool,
    most: usize,
) -> Result<Option<(Vec<u8>, bool)>, HttpError> {
    if answer
        .header("transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    {
        return read_chunks(rest, ended, most);
    }
    if let Some(length) = answer.header("content-length") {
        let length: usize = length
            .parse()
            .map_err(|_| HttpError::NotHttp("its length is no number"))?;
        let there = rest.len().min(length).min(most);
        return Ok(match () {
            () if rest.len() >= length && length <= most => Some((rest[..length].to_vec(), false)),
            () if rest.len() >= most || ended => Some((rest[..there].to_vec(), true)),
            () => None,
        });
    }
    Ok(match ended || rest.len() > most {
        true => Some((rest[..rest.len().min(most)].to_vec(), rest.len() > most)),
        false => None,
    })
}

fn read_chunks(
    mut rest: &[u8],
    ended: bool,
    most: usize,
) -> Result<Option<(Vec<u8>, bool)>, HttpError> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|line| line.split(';').next())
            .and_then(|size| usize::from_str_radix(size.trim(), 16).ok())
            .ok_or(HttpError::NotHttp("a chunk has no size"))?;
        if size == 0 {
            return Ok(Some((body, false)));
        }
        rest = &rest[end + 2..];
        let there = rest.len().min(size);
        body.extend_from_slice(&rest[..there]);
        if body.len() > most {
            body.truncate(most);
            return Ok(Some((body, true)));
        }
        if rest.len() < size.saturating_add(2) {
            break;
        }
        rest = &rest[size + 2..];
    }
    Ok(ended.then_some((body, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<Option<Answer>, HttpError> {
        read_answer(text.as_bytes(), true, false, 64)
    }

    #[test]
    fn answers_are_read_in_every_framing() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi trailing",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nhi",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nhi",
        ] {
            let answer = whole(text).unwrap().unwrap();
            assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hi"[..]));
            assert!(!answer.cut, "{text}");
            // Every beginning of it is not yet an answer, and never a panic.
            for length in 0..text.len() {
                let _ = read_answer(&text.as_bytes()[..length], false, false, 64);
            }
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_is_no_answer_is_refused() {
        let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100));
        let answer = whole(&long).unwrap().unwrap();
        assert_eq!((answer.body.len(), answer.cut), (64, true));
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        ] {
            assert!(whole(text).is_err(), "{text}");
        }
        assert!(whole("HTTP/1.1 200 OK\r\nContent-Le").unwrap().is_none());
        // As many announcements as there may ever be would fill a stack.
        let announced = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000);
        assert!(whole(&announced).is_err());
    }

    #[test]
    fn an_answer_without_an_end_is_not_kept_in_memory() {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut endless = (&head[..]).chain(io::repeat(b'0'));
        let deadline = Deadline::for_cleaning();
        let error = receive(&mut endless, false, 64, &deadline).unwrap_err();
        assert!(error.to_string().contains("without end"), "{error}");
    }

    #[test]
    fn addresses_are_of_three_kinds() {
        assert_eq!(
            Address::parse("tcp://127.0.0.1:2375"),
            Some(Address::Tcp("127.0.0.1:2375".into()))
        );
        assert_eq!(
            Address::parse("unix:///run/x"),
            Some(Address::Unix("/run/x".into()))
        );
        for (url, here) in [
            ("unix:///run/x", true),
            ("tcp://127.0.0.1:1", true),
            ("tcp://[::1]", true),
            ("tcp://localhost:2375", true),
            ("tcp://192.0.2.1:2375", false),
            ("tcp://localhost.example:2375", false),
        ] {
            assert_eq!(Address::parse(url).unwrap().is_here(), here, "{url}");
        }
        for url in ["ssh://x", "unix://relative", "tcp://", "tcp://a b", "x"] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
    }
}
