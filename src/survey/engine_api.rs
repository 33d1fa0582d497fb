//! What an engine with Docker's API is asked: is the socket writable, does it
//! greet, what does it say about itself, and does it create a container. That
//! one is made from our own image, carries our label and limits, is never
//! started, and is removed.

use crate::clock;
use crate::deadline::Deadline;
use crate::engine::api::dial::Address;
use crate::engine::contract::{LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN, NAME_PREFIX};
use crate::image::Image;
use crate::random::random_hex;
use crate::survey::call::Call;
use crate::survey::http::{Answer, HttpError, Request, exchange};
use crate::survey::redact::Redactor;
use rustix::fs::{Access, access};
use serde_json::{Value, json};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use tki_evidence::described::names;

/// The most bytes of an answer that is taken apart.
const MOST: usize = 1 << 20;

/// Seconds after which `clean` may remove the container, should it be left.
const REMOVABLE_AFTER: u64 = 60;

/// What came of a create call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// 201, and it was removed.
    Yes,
    /// 201, and it could not be removed.
    Left(String),
    /// 401, 403 or 405: the socket is for reading.
    Forbidden(u16),
    /// Another answer.
    Refused(u16),
    /// No answer.
    Lost(String),
    /// Nobody asked.
    NotTried(&'static str),
}

/// What an engine answered.
#[derive(Clone, Debug)]
pub struct Look {
    /// The socket is there but not for us.
    pub permission: bool,
    /// It greeted as an engine does.
    pub greeted: bool,
    /// It is Podman.
    pub podman: bool,
    /// Its version.
    pub version: String,
    /// Its operating system, as it names it.
    pub operating_system: String,
    /// Its kernel.
    pub kernel: String,
    /// Its host's name.
    pub host_name: String,
    /// Containers that it holds, if it tells.
    pub containers: Option<usize>,
    /// The image was not there, and was loaded.
    pub loaded: bool,
    /// What came of a create call.
    pub created: Created,
    /// Why it did not greet.
    pub problem: String,
    /// Every call and its result.
    pub calls: Vec<Call>,
}

/// Whether a container may be made, or why not.
pub type Permission = Result<(), &'static str>;

/// Asks an engine.
pub fn look(address: &Address, create: Permission, image: &Image, deadline: &Deadline) -> Look {
    let mut look = Look {
        permission: false,
        greeted: false,
        podman: false,
        version: String::new(),
        operating_system: String::new(),
        kernel: String::new(),
        host_name: String::new(),
        containers: None,
        loaded: false,
        created: Created::NotTried("it did not greet"),
        problem: String::new(),
        calls: Vec::new(),
    };
    if let Address::Unix(path) = address {
        look.calls.push(stat(path));
    }
    let client = Client { address, deadline };
    match client.ask(&Request::get("/_ping"), &mut look.calls, greeting) {
        Ok(answer) if answer.status == 200 && is_engine(&answer) => {
            look.greeted = true;
            look.podman = answer.header("libpod-api-version").is_some();
        }
        Ok(answer) => {
            look.problem = match answer.status {
                200 => "what answers is no engine".into(),
                status => format!("it answers its greeting with HTTP {status}"),
            };
            return look;
        }
        Err(error) => {
            look.permission = is_permission(&error);
            look.problem = error.to_string();
            return look;
        }
    }
    describe(&client, &mut look);
    look.created = match create {
        Ok(()) => try_create(&client, image, &mut look),
        Err(why) => Created::NotTried(why),
    };
    look
}

fn is_engine(answer: &Answer) -> bool {
    answer.header("api-version").is_some() || answer.header("libpod-api-version").is_some()
}

fn is_permission(error: &HttpError) -> bool {
    matches!(error, HttpError::Connect(error)
        if error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Whose the socket is, and whether we may write to it.
fn stat(path: &Path) -> Call {
    let call = format!("stat, access(W_OK) {}", path.display());
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return Call::new(call, error.to_string()),
    };
    let kind = match found.file_type().is_socket() {
        true => "socket",
        false => "not a socket",
    };
    let writable = match access(path, Access::WRITE_OK) {
        Ok(()) => "writable".to_owned(),
        Err(error) => format!("not writable: {error}"),
    };
    Call::new(
        call,
        format!(
            "{kind}, mode {:o}, owner {}:{}, {writable}",
            found.mode() & 0o7777,
            found.uid(),
            found.gid()
        ),
    )
}

/// Makes calls and keeps them.
struct Client<'a> {
    address: &'a Address,
    deadline: &'a Deadline,
}

impl Client<'_> {
    fn ask(
        &self,
        request: &Request,
        calls: &mut Vec<Call>,
        tell: fn(&Answer) -> String,
    ) -> Result<Answer, HttpError> {
        let answer = exchange(self.address, request, MOST, self.deadline);
        let target = request.target.split('?').next().unwrap_or_default();
        let call = format!("{} {target}", request.method);
        let result = match &answer {
            Ok(answer) => format!("{} {}", status(answer), tell(answer)),
            Err(error) => error.to_string(),
        };
        calls.push(Call::new(call, result));
        answer
    }

    /// A call of which only the status and the start of the body matter.
    fn plain(&self, request: &Request, calls: &mut Vec<Call>) -> Result<Answer, HttpError> {
        self.ask(request, calls, |answer| {
            Redactor::default().clean_bytes(&answer.body, answer.cut, 300)
        })
    }
}

fn status(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.reason)
}

fn greeting(answer: &Answer) -> String {
    let mut text = Redactor::default().clean_bytes(&answer.body, answer.cut, 60);
    for name in ["server", "api-version", "libpod-api-version"] {
        if let Some(value) = answer.header(name) {
            text += &format!(", {name} {value}");
        }
    }
    text
}

/// A field of an object as text.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// The body as a value; `null` if it is none.
fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn describe(client: &Client, look: &mut Look) {
    let version = client.ask(&Request::get("/version"), &mut look.calls, |answer| {
        let value = value(answer);
        let (own, api) = (text(&value, "Version"), text(&value, "ApiVersion"));
        format!("Version {own}, ApiVersion {api}")
    });
    if let Ok(answer) = &version {
        look.version = text(&value(answer), "Version");
    }
    // The whole answer would name proxies and their passwords.
    let info = client.ask(&Request::get("/info"), &mut look.calls, |answer| {
        let value = value(answer);
        let names = ["OperatingSystem", "KernelVersion", "Name", "DefaultRuntime"];
        let told = names.map(|name| format!("{name} {:?}", text(&value, name)));
        told.join(", ")
    });
    if let Ok(answer) = &info {
        let value = value(answer);
        look.operating_system = text(&value, "OperatingSystem");
        look.kernel = text(&value, "KernelVersion");
        look.host_name = text(&value, "Name");
    }
    let list = Request::get("/containers/json?all=1");
    let list = client.ask(&list, &mut look.calls, |answer| match value(answer) {
        Value::Array(all) => format!("{} containers", all.len()),
        _ => Redactor::default().clean_bytes(&answer.body, answer.cut, 200),
    });
    if let Ok(answer) = &list {
        look.containers = value(answer).as_array().map(Vec::len);
    }
}

/// Makes a container and removes it. Its image is loaded if it is not there,
/// and stays, as it does after a run.
fn try_create(client: &Client, image: &Image, look: &mut Look) -> Created {
    let calls = &mut look.calls;
    let mut known = None;
    for digest in [&image.config_digest, &image.manifest_digest] {
        let target = format!("/images/{digest}/json");
        let asked = client.ask(&Request::get(&target), calls, |answer| {
            match answer.status {
                200 => format!("Id {}", text(&value(answer), "Id")),
                _ => Redactor::default().clean_bytes(&answer.body, answer.cut, 200),
            }
        });
        if asked.is_ok_and(|answer| answer.status == 200) {
            known = Some(digest.clone());
            break;
        }
    }
    if known.is_none() {
        let archive = image.archive();
        let headers = [("Content-Type".to_owned(), "application/x-tar".to_owned())];
        let request = Request {
            method: "POST",
            headers: &headers,
            body: &archive,
            ..Request::get("/images/load?quiet=1")
        };
        let answer = client.plain(&request, calls);
        look.loaded = answer.is_ok_and(|answer| answer.status == 200);
    }
    // Whatever came of the load, what create answers is the question.
    let digest = known.unwrap_or_else(|| image.config_digest.clone());
    let now = clock::now();
    let Ok(run_id) = random_hex::<4>().map(|random| names::run_id(now, &random)) else {
        return Created::NotTried("no random name is to be had");
    };
    create(client, &run_id, now, &digest, calls)
}

fn create(client: &Client, run_id: &str, now: u64, image: &str, calls: &mut Vec<Call>) -> Created {
    let name = format!("{NAME_PREFIX}{run_id}");
    let body = json!({
        "Image": image,
        "Cmd": ["probe"],
        "NetworkDisabled": true,
        "Labels": {
            LABEL_RUN: run_id,
            LABEL_ROLE: "survey",
            LABEL_DEADLINE: (now + REMOVABLE_AFTER).to_string(),
        },
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": true,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": 8,
            "Memory": 32 << 20,
        },
    })
    .to_string();
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let target = format!("/containers/create?name={name}");
    let request = Request {
        method: "POST",
        headers: &headers,
        body: body.as_bytes(),
        ..Request::get(&target)
    };
    match client.plain(&request, calls) {
        Ok(answer) if answer.status == 201 => remove(client, &name, calls),
        Ok(answer) if matches!(answer.status, 401 | 403 | 405) => Created::Forbidden(answer.status),
        Ok(answer) => Created::Refused(answer.status),
        Err(error @ HttpError::Connect(_)) => Created::Lost(error.to_string()),
        // The engine may have made it all the same.
        Err(error) => match remove(client, &name, calls) {
            Created::Left(what) => Created::Left(what),
            _ => Created::Lost(error.to_string()),
        },
    }
}

/// Removes the container, even after a deadline or Ctrl-C.
fn remove(client: &Client, name: &str, calls: &mut Vec<Call>) -> Created {
    let deadline = Deadline::for_cleaning();
    let client = Client {
        address: client.address,
        deadline: &deadline,
    };
    let target = format!("/containers/{name}?force=1&v=1");
    let request = Request {
        method: "DELETE",
        ..Request::get(&target)
    };
    let removed = client.plain(&request, calls);
    let target = format!("/containers/{name}/json");
    let gone = client.plain(&Request::get(&target), calls);
    match (removed, gone) {
        (_, Ok(answer)) if answer.status == 404 => Created::Yes,
        (Ok(answer), _) => Created::Left(format!("{name}: HTTP {}", answer.status)),
        (Err(error), _) => Created::Left(format!("{name}: {error}")),
    }
}
