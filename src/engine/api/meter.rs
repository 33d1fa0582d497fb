//! Bounds on what comes back over a connection to an engine.

use crate::engine::api::fault::Fault;
use hyper::Method;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of an answer that says little: a greeting, a version.
const SHORT: u64 = 64 << 10;

/// The most bytes of an answer to a request that does something.
const DONE: u64 = 1 << 20;

/// The most bytes of an answer that describes things: thousands of containers, each
/// with its labels, or one with its seccomp profile.
pub const DESCRIPTION: u64 = 8 << 20;

/// The most opening braces in an answer. A client makes structures of hundreds of bytes
/// each, although an empty one has two on the wire.
const OBJECTS: u64 = 64 << 10;

/// The longest head of an answer that leads to a container's streams.
const HEAD: usize = 64 << 10;

/// The longest frame of a container's streams. Engines send what they read at a time,
/// which is 32 KiB at most.
pub const FRAME: u32 = 1 << 20;

/// How the answer to an attach request begins, if the streams follow.
const UPGRADED: &[u8] = b"HTTP/1.1 101 ";

/// Counts what comes back.
#[derive(Debug)]
pub enum Meter {
    /// An answer: its head, its body and what HTTP puts between.
    Answer {
        /// The most that it may have.
        most: u64,
        /// The bytes so far.
        bytes: u64,
        /// The opening braces so far.
        objects: u64,
    },
    /// The head of an answer that is not over yet, after which a container's streams
    /// may follow.
    Head(Vec<u8>),
    /// A container's streams, in frames. There is no end to them, but each frame is
    /// kept whole: eight bytes, of which the last four are a length, and so many more.
    Frames {
        /// The next frame's first bytes.
        header: Vec<u8>,
        /// What is still to come of this frame.
        left: u32,
    },
}

impl Meter {
    /// The meter for the answer to a request.
    pub fn of(method: &Method, path: &str) -> Self {
        if path.ends_with("/attach") {
            return Self::Head(Vec::new());
        }
        Self::answer(match *method {
            Method::GET if ["/_ping", "/version"].iter().any(|end| path.ends_with(end)) => SHORT,
            // Podman describes a container without its profile.
            Method::GET if path.contains("/libpod/containers/") && !is_list(path) => DONE,
            Method::GET => DESCRIPTION,
            _ => DONE,
        })
    }

    /// A meter for an answer of at most so many bytes.
    pub fn answer(most: u64) -> Self {
        Self::Answer {
            most,
            bytes: 0,
            objects: 0,
        }
    }

    /// Takes note of what has come.
    fn count(&mut self, mut fresh: &[u8]) -> Result<(), Fault> {
        while !fresh.is_empty() {
            fresh = self.step(fresh)?;
        }
        Ok(())
    }

    /// Takes note of some of it; gives the rest.
    fn step<'a>(&mut self, fresh: &'a [u8]) -> Result<&'a [u8], Fault> {
        match self {
            Self::Answer {
                most,
                bytes,
                objects,
            } => {
                *bytes += fresh.len() as u64;
                *objects += fresh.iter().filter(|byte| **byte == b'{').count() as u64;
                at_most(*bytes, *most, "bytes")?;
                at_most(*objects, OBJECTS, "objects")?;
                Ok(&[])
            }
            Self::Head(head) => {
                head.push(fresh[0]);
                at_most(head.len() as u64, HEAD as u64, "bytes of headers")?;
                if head.ends_with(b"\r\n\r\n") {
                    *self = match head.starts_with(UPGRADED) {
                        true => Self::Frames {
                            header: Vec::with_capacity(8),
                            left: 0,
                        },
                        // It says why not.
                        false => Self::answer(DONE),
                    };
                }
                Ok(&fresh[1..])
            }
            Self::Frames { left: 0, header } => {
                let (taken, rest) = fresh.split_at(fresh.len().min(8 - header.len()));
                header.extend_from_slice(taken);
                if let [kind, 0, 0, 0, length @ ..] = header.as_slice()
                    && *kind <= 2
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    let left = u32::from_be_bytes(length);
                    at_most(left.into(), FRAME.into(), "bytes in one frame")?;
                    *self = Self::Frames {
                        header: Vec::with_capacity(8),
                        left,
                    };
                } else if header.len() == 8 || header[0] > 2 {
                    return Err(Fault::NotFramed);
                }
                Ok(rest)
            }
            Self::Frames { left, .. } => {
                let taken = fresh.len().min(*left as usize);
                *left -= taken as u32;
                Ok(&fresh[taken..])
            }
        }
    }
}

fn is_list(path: &str) -> bool {
    path.ends_with("/containers/json")
}

fn at_most(count: u64, most: u64, what: &'static str) -> Result<(), Fault> {
    match count > most {
        true => Err(Fault::Flood { most, what }),
        false => Ok(()),
    }
}

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection from which no more comes than its meter lets through.
pub struct Metered {
    stream: Box<dyn Duplex>,
    meter: Meter,
}

impl Metered {
    /// A connection with a meter.
    pub fn new(stream: Box<dyn Duplex>, meter: Meter) -> Self {
        Self { stream, meter }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.meter.count(&buffer.filled()[before..])?;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is cut: the verdict is the same.
    fn count(method: Method, path: &str, parts: &[&[u8]]) -> Result<(), Fault> {
        let all = parts.concat();
        let verdict = Meter::of(&method, path).count(&all);
        for size in [1, 7, 4096] {
            let mut meter = Meter::of(&method, path);
            let cut = all.chunks(size).try_for_each(|part| meter.count(part));
            assert_eq!(cut, verdict, "in pieces of {size}");
        }
        verdict
    }

    #[test]
    fn an_answer_is_as_long_as_its_question_warrants() {
        let of = |method, path, bytes: u64| {
            count(
                method,
                path,
                &[&vec![b' '; usize::try_from(bytes).unwrap()]],
            )
        };
        for (method, path, most) in [
            (Method::GET, "/_ping", SHORT),
            (Method::GET, "/version", SHORT),
            (Method::GET, "/containers/json", DESCRIPTION),
            (Method::GET, "/containers/ab/json", DESCRIPTION),
            (Method::GET, "/v4.0.0/libpod/containers/json", DESCRIPTION),
            (Method::GET, "/v4.0.0/libpod/containers/ab/json", DONE),
            (Method::POST, "/containers/create", DONE),
            (Method::DELETE, "/containers/ab", DONE),
        ] {
            assert_eq!(of(method.clone(), path, most), Ok(()), "{path}");
            let what = "bytes";
            assert_eq!(of(method, path, most + 1), Err(Fault::Flood { most, what }));
        }
    }

    #[test]
    fn a_list_of_nothing_is_too_long_before_it_is_large() {
        let most = usize::try_from(OBJECTS).unwrap();
        let list = |count: usize| count_of("/images/json", b"{},".repeat(count));
        assert_eq!(list(most), Ok(()));
        assert!(matches!(
            list(most + 1),
            Err(Fault::Flood {
                what: "objects",
                ..
            })
        ));
    }

    fn count_of(path: &str, bytes: Vec<u8>) -> Result<(), Fault> {
        count(Method::GET, path, &[&bytes])
    }

    const OPENED: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n";

    fn streams(parts: &[&[u8]]) -> Result<(), Fault> {
        count(Method::POST, "/containers/ab/attach", parts)
    }

    fn frame(kind: u8, length: u32) -> [u8; 8] {
        let [a, b, c, d] = length.to_be_bytes();
        [kind, 0, 0, 0, a, b, c, d]
    }

    #[test]
    fn frames_go_on_for_ever_and_none_is_long() {
        let whole = [&frame(1, 5)[..], b"hello", &frame(2, 0), &frame(0, 1), b"{"].concat();
        assert_eq!(streams(&[OPENED, &whole.repeat(5000)]), Ok(()));
        let long = vec![0; FRAME as usize];
        assert_eq!(streams(&[OPENED, &frame(1, FRAME), &long, &whole]), Ok(()));
        for length in [FRAME + 1, u32::MAX] {
            let refused = streams(&[OPENED, &whole, &frame(1, length)]);
            assert!(matches!(refused, Err(Fault::Flood { .. })), "{refused:?}");
        }
    }

    #[test]
    fn what_is_not_framed_is_refused() {
        for header in [&b"HTTP/1.1"[..], &frame(3, 1), &[1, 1, 0, 0, 0, 0, 0, 1]] {
            assert_eq!(streams(&[OPENED, header]), Err(Fault::NotFramed));
        }
    }

    #[test]
    fn a_refusal_to_attach_is_an_answer() {
        let refused = b"HTTP/1.1 404 Not Found\r\n\r\n";
        assert_eq!(streams(&[refused, b"no such container"]), Ok(()));
        let most = usize::try_from(DONE).unwrap();
        assert!(streams(&[refused, &vec![b'x'; most + 1]]).is_err());
        assert!(streams(&[&vec![b'x'; HEAD + 1]]).is_err());
    }
}
