//! A socket between the tool and the engine. It passes every request on,
//! keeps a log of them, and lets a test act at the moment one passes. Without
//! an engine behind it, it is a fake one, for what no real one can be made to
//! show.

use super::ENGINE_SOCKET;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request's first line, without the API's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, …
    pub method: String,
    /// Path and query.
    pub target: String,
}

impl Request {
    /// The parts of the path, and what is asked of them.
    fn is(&self, method: &str, wanted: &[&str]) -> bool {
        let path = self.target.split('?').next().unwrap_or_default();
        // Podman's own API has the same paths below a name of its own.
        let path = path.strip_prefix("/libpod").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        self.method == method
            && parts.len() == wanted.len()
            && parts
                .iter()
                .zip(wanted)
                .all(|(part, wanted)| *wanted == "*" || part == wanted)
    }

    /// Loads an image.
    pub fn is_load(&self) -> bool {
        self.is("POST", &["images", "load"])
    }

    /// Creates a container.
    pub fn is_create(&self) -> bool {
        self.is("POST", &["containers", "create"])
    }

    /// Attaches to one: it has been created.
    pub fn is_attach(&self) -> bool {
        self.is("POST", &["containers", "*", "attach"])
    }

    /// Starts one.
    pub fn is_start(&self) -> bool {
        self.is("POST", &["containers", "*", "start"])
    }

    /// Asks for its configuration: the prober has greeted.
    pub fn is_inspect(&self) -> bool {
        self.is("GET", &["containers", "*", "json"])
    }

    /// Asks the engine about itself.
    pub fn is_info(&self) -> bool {
        self.is("GET", &["info"])
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}", self.method, self.target)
    }
}

/// Tells one request from the others.
pub type Which = fn(&Request) -> bool;

/// What is done with a request.
pub enum Reaction {
    /// The engine answers.
    Pass,
    /// The engine answers, and nobody hears it.
    Lose,
    /// The engine is asked something else: the request's JSON is changed on the way.
    Ask(fn(&mut serde_json::Value)),
    /// The engine answers, and its JSON is changed on the way.
    Rewrite(fn(&mut serde_json::Value)),
    /// The proxy answers with this status and body.
    Answer(u16, &'static str),
    /// The proxy answers with these bytes.
    Raw(&'static [u8]),
    /// The proxy writes what it likes, for as long as the caller listens.
    Write(fn(&mut dyn Write) -> io::Result<()>),
    /// Nobody answers until the caller goes.
    Silence,
}

type Hook = dyn Fn(&Request) -> Reaction + Send + Sync;

/// The listening socket; gone when dropped.
pub struct Proxy {
    folder: tempfile::TempDir,
    log: Arc<Mutex<Vec<Request>>>,
    open: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy that only keeps its log.
    pub fn plain() -> Self {
        Self::with(|_| Reaction::Pass)
    }

    /// A proxy before the usual engine. The hook is called, in a thread of the
    /// request's own, before the request is passed on; it may wait.
    pub fn with(hook: impl Fn(&Request) -> Reaction + Send + Sync + 'static) -> Self {
        Self::before(Path::new(ENGINE_SOCKET), hook)
    }

    /// A proxy before another engine.
    pub fn before(
        engine: &Path,
        hook: impl Fn(&Request) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let (log, stop, open) = (Arc::default(), Arc::<AtomicBool>::default(), Arc::default());
        let shared = Shared {
            engine: engine.to_owned(),
            hook: Arc::new(hook),
            log: Arc::clone(&log),
            open: Arc::clone(&open),
        };
        let stopped = Arc::clone(&stop);
        let listener = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let shared = shared.clone();
                // A caller that goes away in the middle is part of the tests.
                shared.open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let _ = shared.serve(client);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            folder,
            log,
            open,
            stop,
            listener: Some(listener),
        }
    }

    /// The socket's path.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// The address for `--host` and `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.path().display())
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// How many requests so far are like this.
    pub fn count(&self, like: impl Fn(&Request) -> bool) -> usize {
        self.log().iter().filter(|request| like(request)).count()
    }

    /// Waits until no request is under way.
    #[track_caller]
    pub fn settle(&self) {
        super::eventually("every request is answered", || {
            self.open.load(Ordering::SeqCst) == 0
        });
    }

    /// Ids of runs that asked for a container here.
    pub fn run_ids(&self) -> Vec<String> {
        let log = self.log();
        let ids = log.iter().filter(|r| r.is_create()).filter_map(|request| {
            let (_, rest) = request.target.split_once("name=tki-attest-")?;
            Some(rest.split('&').next()?.to_owned())
        });
        ids.collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(self.path());
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

#[derive(Clone)]
struct Shared {
    engine: PathBuf,
    hook: Arc<Hook>,
    log: Arc<Mutex<Vec<Request>>>,
    open: Arc<AtomicUsize>,
}

impl Shared {
    /// One connection, which carries one request: the engine is asked to close
    /// it after its answer, so the caller opens a new one for the next.
    fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let (head, rest) = read_head(&mut client)?;
        let Some(request) = parse(&head) else {
            return Ok(());
        };
        self.log.lock().unwrap().push(request.clone());
        match (self.hook)(&request) {
            Reaction::Pass => self.pass(client, &head, &rest),
            Reaction::Lose => self.lose(client, &head, &rest),
            Reaction::Ask(change) => self.ask(client, &head, &rest, change),
            Reaction::Rewrite(change) => self.rewrite(client, &head, change),
            Reaction::Answer(status, body) => answer(&mut client, status, body),
            Reaction::Raw(bytes) => client.write_all(bytes),
            Reaction::Write(write) => write(&mut client),
            Reaction::Silence => io::copy(&mut client, &mut io::sink()).map(drop),
        }
    }

    fn pass(&self, client: UnixStream, head: &str, rest: &[u8]) -> io::Result<()> {
        let mut engine = UnixStream::connect(&self.engine)?;
        let upgrade = head.to_lowercase().contains("\r\nupgrade:");
        let head = match upgrade {
            // From here on it is not HTTP but the container's own streams.
            true => head.to_owned(),
            false => head.replacen("\r\n", "\r\nConnection: close\r\n", 1),
        };
        engine.write_all(head.as_bytes())?;
        engine.write_all(rest)?;
        let (mut from_client, mut to_engine) = (client.try_clone()?, engine.try_clone()?);
        let up = std::thread::spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_engine);
            // The tool never closes one direction only: it is gone.
            let _ = to_engine.shutdown(Shutdown::Both);
        });
        let down = io::copy(&mut engine, &mut &client);
        // Both ends, so that the other thread ends too.
        let _ = client.shutdown(Shutdown::Both);
        let _ = engine.shutdown(Shutdown::Both);
        let _ = up.join();
        down.map(drop)
    }

    fn ask(
        &self,
        mut client: UnixStream,
        head: &str,
        rest: &[u8],
        change: fn(&mut serde_json::Value),
    ) -> io::Result<()> {
        let mut value = serde_json::from_slice(&read_body(&mut client, head, rest)?)?;
        change(&mut value);
        let body = value.to_string();
        let is_length = |line: &str| line.to_lowercase().starts_with("content-length:");
        let lines = head
            .trim_end()
            .split("\r\n")
            .filter(|line| !is_length(line));
        let head = lines.collect::<Vec<_>>().join("\r\n");
        let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len());
        self.pass(client, &head, body.as_bytes())
    }

    fn lose(&self, mut client: UnixStream, head: &str, rest: &[u8]) -> io::Result<()> {
        let body = read_body(&mut client, head, rest)?;
        let mut engine = UnixStream::connect(&self.engine)?;
        let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        engine.write_all(head.as_bytes())?;
        engine.write_all(&body)?;
        io::copy(&mut engine, &mut io::sink()).map(drop)
    }

    fn rewrite(
        &self,
        mut client: UnixStream,
        head: &str,
        change: fn(&mut serde_json::Value),
    ) -> io::Result<()> {
        let mut engine = UnixStream::connect(&self.engine)?;
        // An answer in the old version of HTTP is not chunked and ends with
        // the connection.
        engine.write_all(head.replacen("HTTP/1.1", "HTTP/1.0", 1).as_bytes())?;
        let mut bytes = Vec::new();
        engine.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut value: serde_json::Value = serde_json::from_str(body)?;
        change(&mut value);
        answer(&mut client, 200, &value.to_string())
    }
}

fn read_head(client: &mut UnixStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// The body of a request, of which a part has been read.
fn read_body(client: &mut UnixStream, head: &str, rest: &[u8]) -> io::Result<Vec<u8>> {
    let length = head.to_lowercase();
    let length = length.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = rest.to_vec();
    body.resize(length.unwrap_or(0).max(rest.len()), 0);
    client.read_exact(&mut body[rest.len()..])?;
    Ok(body)
}

fn parse(head: &str) -> Option<Request> {
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let version = target.strip_prefix("/v").and_then(|rest| rest.find('/'));
    Some(Request {
        method: method.to_owned(),
        target: match version {
            Some(at) if target.as_bytes()[2].is_ascii_digit() => target[at + 2..].to_owned(),
            _ => target.to_owned(),
        },
    })
}

fn answer(client: &mut UnixStream, status: u16, body: &str) -> io::Result<()> {
    write!(
        client,
        "HTTP/1.1 {status} Test\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A place where a hook waits until the test has done what it wants to do.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Default)]
struct Passage {
    reached: bool,
    open: bool,
}

impl Gate {
    /// A hook's part: the caller is here; goes on when the gate is open. Only
    /// the first one waits.
    pub fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        if !std::mem::replace(&mut state.reached, true) {
            changed.notify_all();
            let limit = Duration::from_secs(120);
            drop(changed.wait_timeout_while(state, limit, |state| !state.open));
        }
    }

    /// The test's part: waits until a caller is at the gate.
    #[track_caller]
    pub fn wait(&self) {
        let (state, changed) = &*self.0;
        let limit = Duration::from_secs(60);
        let state = state.lock().unwrap();
        let (state, _) = changed
            .wait_timeout_while(state, limit, |state| !state.reached)
            .unwrap();
        assert!(state.reached, "nobody came to the gate");
    }

    /// Lets everybody through.
    pub fn open(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().open = true;
        changed.notify_all();
    }
}
