//! Addresses of engines as users write them, taken apart and not believed: pure functions.

use hyper::Uri;
use hyper::http::uri::InvalidUri;
use std::path::PathBuf;

/// Ports that Docker means when an address has none: without TLS, and with it.
const PORTS: (u16, u16) = (2375, 2376);

/// Where an engine behind `ssh` listens if the address does not say.
const USUAL_SOCKET: &str = "/var/run/docker.sock";

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// A unix socket.
    Unix(PathBuf),
    /// A port.
    Tcp {
        /// Name or address.
        host: String,
        /// The port, if one is named.
        port: Option<u16>,
        /// Whether it speaks TLS.
        tls: Wish,
    },
    /// A socket on a host that `ssh` reaches.
    Ssh(Target),
}

/// Whether an address speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `http://`: it does not.
    No,
    /// `tcp://`: it does if certificates are given.
    IfGiven,
    /// `https://`: it does.
    Yes,
}

/// What `ssh` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The user, if one is named.
    pub user: Option<String>,
    /// The host.
    pub host: String,
    /// The port, if one is named.
    pub port: Option<u16>,
    /// The engine's socket over there.
    pub socket: String,
}

/// Why a text is no address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// A unix socket without a whole path.
    #[error("the path of a socket begins with /")]
    Relative,
    /// Another scheme, or none.
    #[error("only unix://, tcp://, https:// and ssh:// are supported")]
    Scheme,
    /// A path behind a port.
    #[error("a port has no path")]
    PortPath,
    /// A user before a port.
    #[error("a port has no user: TLS certificates say who asks")]
    PortUser,
    /// No host and port at all.
    #[error(transparent)]
    Malformed(#[from] InvalidUri),
    /// A port alone.
    #[error("it names no host")]
    NoHost,
    /// Colons in the wrong places.
    #[error("its host cannot be told from its port")]
    Ambiguous,
    /// No number from 1 to 65535.
    #[error("its port is none")]
    Port,
    /// A password for `ssh`.
    #[error("no password: ssh asks for none here, give it a key")]
    Password,
    /// A host that `ssh` could take for something else.
    #[error("the host's name has letters, digits and ._- alone, and no - first")]
    Host,
    /// A user that `ssh` could take for something else.
    #[error("the user's name has letters, digits and ._- alone, and no - first")]
    User,
    /// A socket that `ssh` could take for something else.
    #[error("the socket's path has letters, digits and /._- alone")]
    Socket,
}

impl Url {
    /// The address in a text; otherwise why it is none.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix://") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err(AddressError::Relative),
            };
        }
        if let Some(rest) = text.strip_prefix("ssh://") {
            return Target::parse(rest).map(Self::Ssh);
        }
        let schemes = [
            ("tcp://", Wish::IfGiven),
            ("http://", Wish::No),
            ("https://", Wish::Yes),
        ];
        let found = schemes.iter().find_map(|(scheme, tls)| {
            let rest = text.strip_prefix(scheme)?;
            Some((rest, *tls))
        });
        let (rest, tls) = found.ok_or(AddressError::Scheme)?;
        let (host, port, path) = authority(rest)?;
        if !matches!(path, "" | "/") {
            return Err(AddressError::PortPath);
        }
        if rest.contains('@') {
            return Err(AddressError::PortUser);
        }
        Ok(Self::Tcp { host, port, tls })
    }
}

/// An address as errors show it: a user may have written a password into it.
pub fn without_password(text: &str) -> String {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    let end = rest.find('/').unwrap_or(rest.len());
    let user = rest[..end].rsplit_once('@').map(|(user, _)| user);
    match user.and_then(|user| user.split_once(':')) {
        Some((_, password)) => text.replacen(&format!(":{password}@"), ":…@", 1),
        None => text.to_owned(),
    }
}

/// The port of a TCP address, which may have none.
pub fn port_or_usual(port: Option<u16>, tls: bool) -> u16 {
    port.unwrap_or(if tls { PORTS.1 } else { PORTS.0 })
}

/// Host and port as an address has them: IPv6 in brackets.
pub fn host_and_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// A host without the brackets around an address of IPv6.
pub fn without_brackets(host: &str) -> &str {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host)
}

/// Host, port and path of what follows a scheme.
fn authority(rest: &str) -> Result<(String, Option<u16>, &str), AddressError> {
    let uri: Uri = format!("http://{rest}").parse()?;
    let name = uri.host().unwrap_or_default();
    let host = without_brackets(name).to_owned();
    if host.is_empty() {
        return Err(AddressError::NoHost);
    }
    let path = rest.find('/').map_or("", |place| &rest[place..]);
    // The library passes over a port that is none.
    let before = rest[..rest.len() - path.len()].rsplit('@').next();
    let port = before
        .and_then(|before| before.strip_prefix(name))
        .ok_or(AddressError::Ambiguous)?;
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let number: Option<u16> = digits.parse().ok().filter(|number| *number != 0);
            Some(number.ok_or(AddressError::Port)?)
        }
        _ => return Err(AddressError::Port),
    };
    Ok((host, port, path))
}

impl Target {
    /// Only plain names: nothing that `ssh` could take for an option, a variable or a token
    /// of its own.
    fn parse(rest: &str) -> Result<Self, AddressError> {
        let (host, port, path) = authority(rest)?;
        let before = &rest[..rest.len() - path.len()];
        let user = before.rsplit_once('@').map(|(user, _)| user.to_owned());
        let plain = |text: &str, more: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
        };
        if user.as_deref().is_some_and(|user| user.contains(':')) {
            return Err(AddressError::Password);
        }
        if !plain(&host, "._-:") {
            return Err(AddressError::Host);
        }
        if user.as_deref().is_some_and(|user| !plain(user, "._-")) {
            return Err(AddressError::User);
        }
        let socket = match path {
            "" | "/" => USUAL_SOCKET,
            path => path,
        };
        if !plain(socket, "/._-") {
            return Err(AddressError::Socket);
        }
        Ok(Self {
            user,
            host,
            port,
            socket: socket.to_owned(),
        })
    }

    /// The address as evidence and errors have it.
    pub fn shown(&self) -> String {
        let user = self.user.as_deref().map(|user| format!("{user}@"));
        let place = match self.port {
            Some(port) => host_and_port(&self.host, port),
            None if self.host.contains(':') => format!("[{}]", self.host),
            None => self.host.clone(),
        };
        let path = match self.socket.as_str() {
            USUAL_SOCKET => "",
            path => path,
        };
        format!("ssh://{}{place}{path}", user.unwrap_or_default())
    }

    /// The words by which `ssh` is told where to go.
    pub fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_ports_and_hosts() {
        let tcp = |host: &str, port, tls| {
            Some(Url::Tcp {
                host: host.to_owned(),
                port,
                tls,
            })
        };
        for (text, wanted) in [
            (
                "tcp://127.0.0.1:2375",
                tcp("127.0.0.1", Some(2375), Wish::IfGiven),
            ),
            ("http://[::1]:2375/", tcp("::1", Some(2375), Wish::No)),
            ("tcp://engine", tcp("engine", None, Wish::IfGiven)),
            ("https://engine/", tcp("engine", None, Wish::Yes)),
            ("unix:///x y", Some(Url::Unix("/x y".into()))),
        ] {
            assert_eq!(Url::parse(text).ok(), wanted, "{text}");
        }
        assert_eq!(port_or_usual(None, true), 2376);
        assert_eq!(host_and_port("::1", 2376), "[::1]:2376");
        for text in [
            "",
            "/x",
            "unix://x",
            "tcp://",
            "tcp://:2375",
            "tcp://a b",
            "tcp://a/x",
            "tcp://user@a:1",
            "tcp://a:99999",
            "fd://",
            "npipe:////./pipe/docker",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("ssh://a:secret@host/x", "ssh://a:…@host/x"),
            ("tcp://a:s:e@c@host", "tcp://a:…@host"),
            ("unix:///run/a:b@c", "unix:///run/a:b@c"),
            ("ssh://a@host:22", "ssh://a@host:22"),
            ("x", "x"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }

    #[test]
    fn an_address_cannot_become_an_option_of_ssh() {
        for (text, destination, port, socket) in [
            ("ssh://host", "host", None, USUAL_SOCKET),
            ("ssh://op@vps:2222/", "op@vps", Some(2222), USUAL_SOCKET),
            (
                "ssh://op@[::1]:22/run/x.sock",
                "op@::1",
                Some(22),
                "/run/x.sock",
            ),
        ] {
            let Ok(Url::Ssh(target)) = Url::parse(text) else {
                panic!("{text}");
            };
            assert_eq!(target.destination(), destination);
            assert_eq!((target.port, target.socket.as_str()), (port, socket));
            assert_eq!(target.shown(), text.trim_end_matches('/'));
        }
        for text in [
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-x@host",
            "ssh://a@-x",
            "ssh://a:secret@host",
            "ssh://a b@host",
            "ssh://$(x)",
            "ssh://a@b@c",
            "ssh://host:port",
            "ssh://host/run/a:b",
            "ssh://host/run/%h",
            "ssh://host/${HOME}",
            "ssh://host/x?y",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
