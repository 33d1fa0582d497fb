//! The kinds of routes, and what each says of itself in the file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a route can do to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Read.
    Read,
    /// Write documents, which nothing executes.
    Documents,
    /// Write rows or items.
    Items,
    /// Register contracts.
    Contracts,
    /// Make tables and functions.
    Ddl,
    /// Create containers.
    Containers,
    /// Execute programs.
    Execution,
}

impl Ability {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Ability::Read => "read",
            Ability::Documents => "documents",
            Ability::Items => "items",
            Ability::Contracts => "contracts",
            Ability::Ddl => "ddl",
            Ability::Containers => "containers",
            Ability::Execution => "execution",
        }
    }
}

macro_rules! route_form {
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Its name, by which `--allow-writes` permits it.
            pub name: String,
            /// The owner has approved it as a channel: a claim.
            #[serde(default)]
            pub governed: bool,
            /// What it writes to is apart from production: a claim.
            #[serde(default)]
            pub isolated: bool,
            /// What it writes to.
            #[serde(default)]
            pub scope: Option<String>,
            /// Show what was answered although a secret was sent, freed of it as
            /// well as it is recognised.
            #[serde(default)]
            pub show_answers: bool,
            $($fields)*
        }
    };
}

route_form! {
    /// A directory in which a file is written, read back and removed.
    FileRoute {
        /// The directory.
        pub folder: PathBuf,
    }
}
route_form! {
    /// One HTTP request.
    HttpRoute {
        /// `GET`, …
        pub method: String,
        /// `http://host[:port]/path`; the host must be listed.
        pub url: String,
        /// The body.
        #[serde(default)]
        pub body: String,
        /// Headers that are no secrets.
        #[serde(default)]
        pub headers: BTreeMap<String, String>,
        /// Headers whose value is in a variable, by the variable's name.
        #[serde(default)]
        pub secret_headers: BTreeMap<String, String>,
        /// Statuses that mean it worked.
        pub expect: Vec<u16>,
        /// What that shows.
        pub ability: Ability,
    }
}
route_form! {
    /// A role of a PostgreSQL database.
    PostgresRoute {
        /// A listed host, or the directory of a unix socket.
        pub host: String,
        /// The port.
        #[serde(default = "postgres_port")]
        pub port: u16,
        /// The database.
        pub dbname: String,
        /// The role.
        pub user: String,
        /// The variable that holds its password.
        #[serde(default)]
        pub password_env: Option<String>,
        /// The schema that should be apart from production.
        #[serde(default)]
        pub sandbox_schema: Option<String>,
    }
}
route_form! {
    /// A container engine.
    DockerRoute {
        /// `unix:///path` or `tcp://host:port`; such a host must be listed.
        pub host: String,
    }
}
route_form! {
    /// A program.
    CommandRoute {
        /// Its absolute path.
        pub program: PathBuf,
        /// Its arguments.
        #[serde(default)]
        pub arguments: Vec<String>,
        /// Variables that it is given, by name; no other.
        #[serde(default)]
        pub env: Vec<String>,
        /// The same for variables whose values are secrets.
        #[serde(default)]
        pub secret_env: Vec<String>,
        /// The exit status that means it worked.
        #[serde(default)]
        pub expect: i32,
        /// What that shows.
        #[serde(default = "execution")]
        pub ability: Ability,
    }
}

fn postgres_port() -> u16 {
    5432
}

fn execution() -> Ability {
    Ability::Execution
}

/// A route.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Route {
    /// A directory.
    File(FileRoute),
    /// A request.
    Http(HttpRoute),
    /// A role.
    Postgres(PostgresRoute),
    /// An engine.
    Docker(DockerRoute),
    /// A program.
    Command(CommandRoute),
}

/// What every route has.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its kind.
    pub kind: &'static str,
    /// The owner has approved it: a claim.
    pub governed: bool,
    /// It is apart from production: a claim.
    pub isolated: bool,
    /// What it writes to.
    pub scope: Option<&'a str>,
    /// What was answered is shown although a secret was sent.
    pub show_answers: bool,
}

impl Route {
    /// What every route has.
    pub fn about(&self) -> About<'_> {
        macro_rules! about {
            ($route:expr, $kind:literal) => {
                About {
                    name: &$route.name,
                    kind: $kind,
                    governed: $route.governed,
                    isolated: $route.isolated,
                    scope: $route.scope.as_deref(),
                    show_answers: $route.show_answers,
                }
            };
        }
        match self {
            Route::File(route) => about!(route, "file"),
            Route::Http(route) => about!(route, "http"),
            Route::Postgres(route) => about!(route, "postgres"),
            Route::Docker(route) => about!(route, "docker"),
            Route::Command(route) => about!(route, "command"),
        }
    }

    /// The variables that hold its secrets.
    pub fn secret_variables(&self) -> Vec<&str> {
        match self {
            Route::Http(route) => route.secret_headers.values().map(String::as_str).collect(),
            Route::Postgres(route) => route.password_env.as_deref().into_iter().collect(),
            Route::Command(route) => route.secret_env.iter().map(String::as_str).collect(),
            Route::File(_) | Route::Docker(_) => Vec::new(),
        }
    }
}
