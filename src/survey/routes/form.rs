//! The file of routes: TOML, strict, without secrets in it.

use super::http;
use super::kinds::{Ability, Route};
use crate::engine::api::address::{host_and_port, without_brackets};
use crate::engine::api::dial::{Address, is_loopback};
use crate::files::read_bounded;
use crate::survey::http::parse_address;
use crate::survey::mistake::{Mistake, RouteMistake, RoutesError};
use serde::Deserialize;
use std::path::Path;

/// The form of the file.
pub const SCHEMA: &str = "tki-attest/routes/v1";

const MOST_BYTES: u64 = 256 * 1024;
const MOST_ROUTES: usize = 64;

/// A file of routes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    /// `tki-attest/routes/v1`
    pub schema: String,
    /// What is to be done, such as `C1_DRYRUN`: the verdict begins with it.
    pub subject: String,
    /// What must be written to, such as `C1`.
    pub scope: String,
    /// What a channel must be able to do.
    pub needs: Vec<Ability>,
    /// Hosts that may be contacted, as `host:port`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The routes.
    #[serde(rename = "route")]
    pub routes: Vec<Route>,
}

impl Route {
    fn check(&self, hosts: &[String]) -> Result<(), RouteMistake> {
        let listed = |host: &str| match hosts.iter().any(|known| known == host) {
            true => Ok(()),
            false => Err(RouteMistake::NotListed(host.to_owned())),
        };
        match self {
            Route::File(route) if !route.folder.is_absolute() => {
                Err(RouteMistake::Relative("folder"))
            }
            Route::File(_) => Ok(()),
            Route::Http(route) => {
                let target = http::Target::parse(&route.url)?;
                http::check(route, &target)?;
                listed(&target.listed())
            }
            Route::Postgres(route) => {
                for (name, text) in [
                    ("host", &route.host),
                    ("dbname", &route.dbname),
                    ("user", &route.user),
                ] {
                    if text.is_empty() || text.contains('\0') {
                        return Err(RouteMistake::Field(name));
                    }
                }
                if route.host.starts_with('/') {
                    return Ok(());
                }
                let address = format!("{}:{}", route.host, route.port);
                listed(&address)?;
                match route.password_env.is_none() || is_loopback(without_brackets(&route.host)) {
                    true => Ok(()),
                    false => Err(RouteMistake::InTheClear(address)),
                }
            }
            Route::Docker(route) => match parse_address(&route.host) {
                Some(Address::Tcp { host, port, .. }) => listed(&host_and_port(&host, port)),
                Some(_) => Ok(()),
                None => Err(RouteMistake::NoEngine(route.host.clone())),
            },
            Route::Command(route) if !route.program.is_absolute() => {
                Err(RouteMistake::Relative("program"))
            }
            Route::Command(_) => Ok(()),
        }
    }
}

impl Routes {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, RoutesError> {
        let file = || path.to_owned();
        let bytes = read_bounded(path, MOST_BYTES).map_err(|source| RoutesError::Unreadable {
            file: file(),
            source,
        })?;
        let text = String::from_utf8(bytes).map_err(|_| RoutesError::NotText(file()))?;
        Self::parse(&text).map_err(|mistake| RoutesError::Malformed {
            file: file(),
            mistake,
        })
    }

    /// Reads and checks the text of a file.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let routes: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            Mistake::Form {
                line,
                column,
                error: Box::new(error),
            }
        })?;
        routes.check()?;
        Ok(routes)
    }

    fn check(&self) -> Result<(), Mistake> {
        if self.schema != SCHEMA {
            return Err(Mistake::Schema {
                found: self.schema.clone(),
                wanted: SCHEMA,
            });
        }
        let word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if self.subject.is_empty() || self.subject.len() > 64 || !self.subject.chars().all(word) {
            return Err(Mistake::Subject);
        }
        if self.scope.is_empty() || self.scope.chars().count() > 100 {
            return Err(Mistake::Scope);
        }
        if self.needs.is_empty() {
            return Err(Mistake::NoNeeds);
        }
        if self.routes.is_empty() || self.routes.len() > MOST_ROUTES {
            return Err(Mistake::Count { most: MOST_ROUTES });
        }
        for (place, route) in self.routes.iter().enumerate() {
            let name = route.about().name;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                return Err(Mistake::Name(place + 1));
            }
            let earlier = &self.routes[..place];
            if earlier.iter().any(|other| other.about().name == name) {
                return Err(Mistake::Twice(name.to_owned()));
            }
            route.check(&self.hosts).map_err(|mistake| Mistake::Route {
                name: name.to_owned(),
                mistake,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = \"tki-attest/routes/v1\"\nsubject = \"C1_DRYRUN\"\n\
                        scope = \"C1\"\nneeds = [\"ddl\"]\nhosts = [\"127.0.0.1:80\", \"192.0.2.1:80\"]\n";

    fn with(route: &str) -> Result<Routes, Mistake> {
        Routes::parse(&format!("{HEAD}[[route]]\n{route}"))
    }

    #[test]
    fn routes_are_read() {
        for route in [
            "name = \"a\"\nkind = \"file\"\nfolder = \"/tmp\"\n",
            "name = \"a\"\nkind = \"http\"\nmethod = \"POST\"\nurl = \"http://127.0.0.1/x\"\n\
             expect = [200]\nability = \"items\"\nsecret_headers = { Authorization = \"T\" }\n",
            "name = \"a\"\nkind = \"postgres\"\nhost = \"/run/pg\"\ndbname = \"d\"\nuser = \"u\"\n",
            "name = \"a\"\nkind = \"docker\"\nhost = \"unix:///run/docker.sock\"\n",
            "name = \"a\"\nkind = \"command\"\nprogram = \"/bin/true\"\n",
        ] {
            with(route).unwrap();
        }
    }

    #[test]
    fn what_is_not_exactly_right_is_refused() {
        for (route, why) in [
            ("name = \"a\"\nkind = \"ftp\"\n", "ftp"),
            (
                "name = \"a\"\nkind = \"file\"\nfolder = \"/x\"\nmode = 1\n",
                "mode",
            ),
            (
                "name = \"a\"\nkind = \"file\"\nfolder = \"x\"\n",
                "absolute",
            ),
            (
                "name = \"a b\"\nkind = \"file\"\nfolder = \"/x\"\n",
                "plain word",
            ),
            (
                "name = \"a\"\nkind = \"command\"\nprogram = \"sh\"\n",
                "absolute",
            ),
            (
                "name = \"a\"\nkind = \"docker\"\nhost = \"ssh://x\"\n",
                "neither",
            ),
            (
                "name = \"a\"\nkind = \"docker\"\nhost = \"tcp://10.0.0.1:1\"\n",
                "not among",
            ),
            (
                "name = \"a\"\nkind = \"postgres\"\nhost = \"db\"\ndbname = \"d\"\nuser = \"u\"\n",
                "db:5432 is not among",
            ),
            (
                "name = \"a\"\nkind = \"postgres\"\nhost = \"192.0.2.1\"\nport = 80\ndbname = \"d\"\n\
                 user = \"u\"\npassword_env = \"P\"\n",
                "in the clear",
            ),
            (
                "name = \"a\"\nkind = \"postgres\"\nhost = \"/r\"\ndbname = \"d\"\nuser = \"u\"\n\
                 password = \"x\"\n",
                "password",
            ),
        ] {
            let error = with(route).unwrap_err().to_string();
            assert!(error.contains(why), "{route}: {error}");
        }
        let http = |rest: &str| {
            with(&format!(
                "name = \"a\"\nkind = \"http\"\nexpect = [200]\nability = \"items\"\n{rest}"
            ))
            .unwrap_err()
        };
        for (rest, why) in [
            ("method = \"GET\"\nurl = \"https://127.0.0.1/\"\n", "TLS"),
            (
                "method = \"GET\"\nurl = \"http://u:p@127.0.0.1/\"\n",
                "user",
            ),
            (
                "method = \"GET\"\nurl = \"http://127.0.0.2/\"\n",
                "not among",
            ),
            (
                "method = \"GET\"\nurl = \"http://192.0.2.1/\"\nsecret_headers = { A = \"B\" }\n",
                "in the clear",
            ),
            ("method = \"G T\"\nurl = \"http://127.0.0.1/\"\n", "method"),
            ("method = \"GET\"\nurl = \"http://127.0.0.1/a b\"\n", "path"),
            (
                "method = \"GET\"\nurl = \"http://127.0.0.1/\"\nheaders = { Authorization = \"x\" }\n",
                "secret_headers",
            ),
            (
                "method = \"GET\"\nurl = \"http://127.0.0.1/\"\nheaders = { A = \"x\\r\\nB: y\" }\n",
                "header",
            ),
        ] {
            let error = http(rest).to_string();
            assert!(error.contains(why), "{rest}: {error}");
        }
        let twice = "name = \"a\"\nkind = \"file\"\nfolder = \"/x\"\n";
        let error = with(&format!("{twice}[[route]]\n{twice}")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("twice"), "{error}");
        let error = Routes::parse("x").unwrap_err().to_string();
        assert!(error.contains("line 1, column"), "{error}");
    }
}
