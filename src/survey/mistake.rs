//! What can be wrong with a file of routes.

use std::io;
use std::path::PathBuf;

/// Why a file of routes is not used.
#[derive(Debug, thiserror::Error)]
pub enum RoutesError {
    /// It cannot be read.
    #[error("{}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no text.
    #[error("{}: not UTF-8", .0.display())]
    NotText(PathBuf),
    /// It says something that is not exactly right.
    #[error("{}: {mistake}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What.
        mistake: Mistake,
    },
    /// A route is permitted that the file does not have.
    #[error("--allow-writes {name:?}: {} has no such route", .file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The route.
        name: String,
    },
}

/// A mistake in the text of a file.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// It is not TOML, or has another form.
    #[error("line {line}, column {column}: {}", .error.message())]
    Form {
        /// Where, from 1.
        line: usize,
        /// Where, from 1.
        column: usize,
        /// What the parser says.
        error: Box<toml::de::Error>,
    },
    /// Another schema.
    #[error("schema is {found:?}, not {wanted:?}")]
    Schema {
        /// The file's.
        found: String,
        /// The one that is read.
        wanted: &'static str,
    },
    /// The subject.
    #[error("subject must be a word of A-Z, 0-9 and _, such as C1_DRYRUN")]
    Subject,
    /// The scope.
    #[error("scope must say in a few words what is to be written to")]
    Scope,
    /// Nothing is needed.
    #[error("needs is empty: any route would do")]
    NoNeeds,
    /// No route, or too many.
    #[error("there must be between 1 and {most} routes")]
    Count {
        /// How many there may be.
        most: usize,
    },
    /// A route without a plain name.
    #[error("route {0}: its name must be a plain word")]
    Name(usize),
    /// Two routes of one name.
    #[error("route {0:?} stands twice")]
    Twice(String),
    /// A mistake in a route.
    #[error("route {name:?}: {mistake}")]
    Route {
        /// The route.
        name: String,
        /// What.
        mistake: RouteMistake,
    },
}

/// A mistake in one route.
#[derive(Debug, thiserror::Error)]
pub enum RouteMistake {
    /// A host that the file does not list.
    #[error("{0} is not among `hosts`, so it is not contacted")]
    NotListed(String),
    /// A path that depends on where the tool is started.
    #[error("{0} must be an absolute path")]
    Relative(&'static str),
    /// A field that PostgreSQL's protocol cannot hold.
    #[error("{0} is empty or has a zero byte")]
    Field(&'static str),
    /// A secret would leave this host unencrypted.
    #[error("a secret would go to {0} in the clear: put a forwarder on 127.0.0.1")]
    InTheClear(String),
    /// An engine's address of another kind.
    #[error("host {0:?} is neither unix:// nor tcp://")]
    NoEngine(String),
    /// A URL that needs TLS, or is none.
    #[error(
        "url must begin with http://; there is no TLS here: put a forwarder that speaks it on \
         127.0.0.1"
    )]
    NotHttp,
    /// A user, and perhaps a password, in a URL.
    #[error("url must not name a user; use secret_headers")]
    User,
    /// The host of a URL.
    #[error("url has no host of plain characters: {0:?}")]
    Host(String),
    /// The path of a URL.
    #[error("the path of url must be plain characters after a /")]
    Path,
    /// The method of a request.
    #[error("method {0:?} is none")]
    Method(String),
    /// Nothing would show that a request worked.
    #[error("expect lists no status")]
    NoExpect,
    /// The body of a request.
    #[error("body has more than {most} bytes")]
    Body {
        /// How many it may have.
        most: usize,
    },
    /// A header that changes the framing of a request.
    #[error("header {0:?} is none that may be set")]
    Header(String),
    /// A secret in the file.
    #[error("the value of {0} is a secret: name its variable in secret_headers")]
    OpenSecret(String),
}
