//! A port on this host that passes connections on, and hears how each begins.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The first byte of a TLS connection: a handshake follows.
const HANDSHAKE: u8 = 22;

/// Where connections are passed on to.
#[derive(Clone)]
pub enum Behind {
    /// A port.
    Port(SocketAddr),
    /// A unix socket.
    Socket(PathBuf),
}

/// The port; closed when dropped.
pub struct Relay {
    port: u16,
    begun: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Relay {
    /// Opens a port of 127.0.0.1 before something else.
    pub fn before(behind: Behind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (begun, stop) = (Arc::<Mutex<_>>::default(), Arc::<AtomicBool>::default());
        let (first, stopped) = (Arc::clone(&begun), Arc::clone(&stop));
        let listener = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (behind, first) = (behind.clone(), Arc::clone(&first));
                // A client that goes away in the middle is part of the tests.
                std::thread::spawn(move || serve(client, &behind, &first));
            }
        });
        Self {
            port,
            begun,
            stop,
            listener: Some(listener),
        }
    }

    /// Its address for `--host`, where `name` stands for this host.
    pub fn host(&self, name: &str) -> String {
        format!("tcp://{name}:{}", self.port)
    }

    /// How many connections came since the last question. Each has begun with a handshake of
    /// TLS: nothing was said in the clear.
    #[track_caller]
    pub fn handshakes(&self) -> usize {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap());
        assert!(begun.iter().all(|byte| *byte == HANDSHAKE), "{begun:?}");
        begun.len()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn serve(mut client: TcpStream, behind: &Behind, begun: &Mutex<Vec<u8>>) -> io::Result<()> {
    let mut first = [0; 1];
    client.read_exact(&mut first)?;
    begun.lock().unwrap().push(first[0]);
    match behind {
        Behind::Port(address) => {
            let mut engine = TcpStream::connect(address)?;
            engine.write_all(&first)?;
            let (up, down) = (engine.try_clone()?, engine.try_clone()?);
            both_ways(client, up, down, || drop(engine.shutdown(Shutdown::Both)))
        }
        Behind::Socket(path) => {
            let mut engine = UnixStream::connect(path)?;
            engine.write_all(&first)?;
            let (up, down) = (engine.try_clone()?, engine.try_clone()?);
            both_ways(client, up, down, || drop(engine.shutdown(Shutdown::Both)))
        }
    }
}

/// Copies until either side has ended.
fn both_ways(
    client: TcpStream,
    mut up: impl Write + Send + 'static,
    mut down: impl Read,
    end: impl FnOnce(),
) -> io::Result<()> {
    let mut from = client.try_clone()?;
    let other = std::thread::spawn(move || drop(io::copy(&mut from, &mut up)));
    let copied = io::copy(&mut down, &mut &client);
    let _ = client.shutdown(Shutdown::Both);
    end();
    let _ = other.join();
    copied.map(drop)
}
