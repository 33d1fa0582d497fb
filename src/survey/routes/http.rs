//! One request to a host that the file lists. There is no TLS here: what needs
//! it is reached through a forwarder of the user's on the loopback interface.

use super::kinds::HttpRoute;
use super::result::Finding;
use crate::deadline::Deadline;
use crate::engine::api::address::Url;
use crate::engine::api::dial::Address;
use crate::survey::http::{Request, exchange};
use crate::survey::mistake::RouteMistake;
use crate::survey::told::Told;
use hyper::http::uri::PathAndQuery;

/// The most bytes of an answer that are kept.
const MOST: usize = 64 * 1024;

/// Methods that only ask.
const SAFE: &[&str] = &["GET", "HEAD", "OPTIONS"];

/// Headers whose value is a secret.
const SECRET: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "x-auth-token",
];

/// A URL taken apart.
#[derive(Clone, Debug)]
pub struct Target {
    /// Host and port.
    pub address: Address,
    /// Path and query.
    pub path: String,
}

impl Target {
    /// Only `http://host[:port]/path`.
    pub fn parse(url: &str) -> Result<Self, RouteMistake> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(RouteMistake::NotHttp);
        };
        let (host, path) = match rest.find(['/', '?']) {
            Some(place) => rest.split_at(place),
            None => (rest, "/"),
        };
        if host.contains('@') {
            return Err(RouteMistake::User);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || ".:-[]_".contains(c);
        let found = Url::parse(&format!("http://{host}"));
        let (
            Ok(Url::Tcp {
                host: name, port, ..
            }),
            true,
        ) = (found, host.chars().all(plain))
        else {
            return Err(RouteMistake::Host(host.to_owned()));
        };
        // A fragment is no part of what a server is asked for.
        let is_whole = path
            .parse()
            .is_ok_and(|target: PathAndQuery| target == path);
        if !is_whole || !path.starts_with('/') {
            return Err(RouteMistake::Path);
        }
        Ok(Self {
            address: Address::Tcp {
                host: name,
                port: port.unwrap_or(80),
                tls: None,
            },
            path: path.to_owned(),
        })
    }

    /// `host:port`, as the file lists it.
    pub fn listed(&self) -> String {
        self.address.name()
    }
}

/// Nothing in a request may change its framing, and no secret may stand in the
/// file or leave this host in the clear.
pub fn check(route: &HttpRoute, target: &Target) -> Result<(), RouteMistake> {
    if !route.secret_headers.is_empty() && !target.address.is_here() {
        return Err(RouteMistake::InTheClear(target.listed()));
    }
    let method = &route.method;
    if method.is_empty() || method.len() > 16 || !method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err(RouteMistake::Method(method.clone()));
    }
    if route.expect.is_empty() {
        return Err(RouteMistake::NoExpect);
    }
    if route.body.len() > MOST {
        return Err(RouteMistake::Body { most: MOST });
    }
    for (name, value) in route.headers.iter().chain(&route.secret_headers) {
        let token = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        let framing = ["host", "connection", "content-length", "transfer-encoding"];
        if name.is_empty()
            || !name.bytes().all(token)
            || framing.contains(&name.to_ascii_lowercase().as_str())
            || value.chars().any(char::is_control)
        {
            return Err(RouteMistake::Header(name.clone()));
        }
    }
    let open = route.headers.keys().find(|name| {
        let name = name.to_ascii_lowercase();
        SECRET.contains(&name.as_str())
    });
    match open {
        Some(name) => Err(RouteMistake::OpenSecret(name.clone())),
        None => Ok(()),
    }
}

/// Sends the request, if it only asks or is permitted.
pub fn probe(
    route: &HttpRoute,
    mut finding: Finding,
    permitted: bool,
    deadline: &Deadline,
) -> Finding {
    let call = format!("{} {}", route.method, route.url);
    if !permitted && !SAFE.contains(&route.method.as_str()) {
        finding.call(call, "not sent");
        return finding.not_permitted("the request");
    }
    let Ok(target) = Target::parse(&route.url) else {
        return finding.denied(route.ability, "nothing", "its url cannot be read");
    };
    let mut headers: Vec<(String, String)> = route
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, variable) in &route.secret_headers {
        match std::env::var(variable) {
            Ok(value) if !value.is_empty() && !value.chars().any(char::is_control) => {
                headers.push((name.clone(), value));
            }
            _ => {
                let why = format!("variable {variable} is not set to a plain value");
                finding.call(call, format!("not sent: {why}"));
                return finding.denied(route.ability, "nothing: it was not sent", why);
            }
        }
    }
    let request = Request {
        method: &route.method,
        target: &target.path,
        headers: &headers,
        body: route.body.as_bytes(),
    };
    match exchange(&target.address, &request, MOST, deadline) {
        Ok(answer) => {
            let status = answer.status;
            let said = Told::from(status.to_string())
                .with_words(" ", answer.reason, false)
                .with_words(" ", answer.body, answer.cut);
            finding.call(call, said);
            match route.expect.contains(&status) {
                true => finding.works(
                    route.ability,
                    format!("{} is possible: {status} answered", route.ability.name()),
                ),
                false => finding.denied(
                    route.ability,
                    format!("{} is not possible", route.ability.name()),
                    format!("HTTP {status} instead of {:?}", route.expect),
                ),
            }
        }
        Err(error) => {
            finding.call(call, error.to_string());
            let proves = "nothing but that nobody answered";
            finding.denied(route.ability, proves, error.to_string())
        }
    }
}
