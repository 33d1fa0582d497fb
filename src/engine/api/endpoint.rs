//! Where the engine is: what the user says, then the environment, then Docker's contexts.

use crate::engine::api::address::{Url, Wish, port_or_usual, without_password};
use crate::engine::api::contexts::{self, DockerContext};
use crate::engine::api::dial::Address;
use crate::engine::api::tls::{Files, Tls};
use crate::engine::api::tunnel::Tunnel;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where Docker is if nobody says otherwise.
const USUAL_SOCKET: &str = "unix:///var/run/docker.sock";

/// What a user says about where the engine is.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its address.
    pub host: Option<String>,
    /// Certificates and key.
    pub tls: Files,
    /// A configuration for `ssh` instead of the user's own.
    pub ssh_config: Option<PathBuf>,
}

/// An engine's address, and everything that is needed to connect to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As errors name it.
    pub host: String,
    /// The same, to connect to.
    pub address: Address,
}

/// An address, and which certificates go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The address, as it was written.
    pub host: String,
    /// Certificates and key.
    tls: Files,
    /// The user gave these for this very address.
    asked: bool,
    /// Docker's client can be told to use it by `DOCKER_HOST` too.
    pub is_plain: bool,
}

impl Wanted {
    /// The address that was given, in the order in which Docker's client looks:
    /// `--host`, `DOCKER_HOST`, `DOCKER_CONTEXT`, the context in use. `None` if nobody did.
    pub fn named(&self) -> Result<Option<Named>, EngineError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let folder = contexts::config_folder();
        if let Some(host) = self.host.clone().or_else(|| variable("DOCKER_HOST")) {
            let asked = !self.tls.is_empty();
            return Ok(Some(Named {
                tls: match asked {
                    true => self.tls.clone(),
                    false => from_environment(&variable, folder.as_deref()),
                },
                host,
                asked,
                is_plain: true,
            }));
        }
        let Some(folder) = folder else {
            return Ok(None);
        };
        let context = contexts::chosen(&folder, variable("DOCKER_CONTEXT").as_deref())?;
        let named = |context: DockerContext| Named {
            asked: !self.tls.is_empty(),
            tls: match self.tls.is_empty() {
                true => context.tls,
                false => self.tls.clone(),
            },
            host: context.host,
            is_plain: false,
        };
        Ok(context.map(named))
    }

    /// The address that was given, or else the usual socket, ready to connect to within
    /// `limit`.
    pub fn resolve(&self, limit: Duration) -> Result<Endpoint, EngineError> {
        let usual = || Named {
            host: USUAL_SOCKET.into(),
            tls: self.tls.clone(),
            asked: !self.tls.is_empty(),
            is_plain: true,
        };
        let named = self.named()?.unwrap_or_else(usual);
        named.open(self.ssh_config.as_deref(), limit)
    }
}

impl Named {
    fn open(self, ssh_config: Option<&Path>, limit: Duration) -> Result<Endpoint, EngineError> {
        let host = self.host.clone();
        let wrong = |why: &str| EngineError::Address {
            host: without_password(&host),
            why: why.to_owned(),
        };
        let url = Url::parse(&host).map_err(|why| wrong(&why.to_string()))?;
        if self.asked && !matches!(&url, Url::Tcp { tls, .. } if *tls != Wish::No) {
            return Err(wrong("TLS files are for tcp:// and https:// alone"));
        }
        let address = match url {
            Url::Unix(path) => Address::Unix(path),
            Url::Tcp { host, port, tls } => {
                let secure = match tls {
                    Wish::No => false,
                    Wish::IfGiven => !self.tls.is_empty(),
                    Wish::Yes => true,
                };
                let tls = secure.then(|| Tls::read(&self.tls, &host)).transpose()?;
                Address::Tcp {
                    port: port_or_usual(port, secure),
                    host,
                    tls,
                }
            }
            Url::Ssh(target) => {
                let mut driver = Driver::towards(&self.host, limit)?;
                let opening = Tunnel::open(&target, ssh_config);
                Address::Ssh(Arc::new(driver.run("ssh", opening)?))
            }
        };
        Ok(Endpoint {
            host: self.host,
            address,
        })
    }
}

/// The files that Docker's variables name. Any of them means TLS, and TLS means that the
/// engine's certificate is checked: `DOCKER_TLS` without `_VERIFY` is no way around that.
fn from_environment(variable: &dyn Fn(&str) -> Option<String>, config: Option<&Path>) -> Files {
    let path = variable("DOCKER_CERT_PATH").map(PathBuf::from);
    let is_wanted = variable("DOCKER_TLS_VERIFY").is_some() || variable("DOCKER_TLS").is_some();
    let folder = path.or_else(|| config.filter(|_| is_wanted).map(Path::to_owned));
    let Some(folder) = folder else {
        return Files::default();
    };
    let mut files = Files::in_folder(&folder);
    // Were it left out because it is missing, the connection would not be secured at all.
    files.ca.get_or_insert_with(|| folder.join("ca.pem"));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_docker_always_mean_a_checked_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let files = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            from_environment(&variable, Some(path))
        };
        assert_eq!(files(&[]), Files::default());
        for set in [
            [("DOCKER_TLS_VERIFY", "1")],
            [("DOCKER_TLS", "1")],
            [("DOCKER_CERT_PATH", path.to_str().unwrap())],
        ] {
            assert_eq!(files(&set).ca, Some(path.join("ca.pem")), "{set:?}");
        }
    }

    #[test]
    fn certificates_are_for_ports_alone() {
        for host in ["unix:///x", "ssh://x", "http://127.0.0.1:1"] {
            let wanted = Wanted {
                host: Some(host.into()),
                tls: Files {
                    ca: Some("/x".into()),
                    ..Files::default()
                },
                ssh_config: None,
            };
            let refused = wanted.resolve(Duration::from_secs(5)).unwrap_err();
            assert!(refused.to_string().contains("alone"), "{refused}");
        }
    }
}
