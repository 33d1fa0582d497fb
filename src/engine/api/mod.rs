//! What Docker and Podman have in common: the API of Docker's, spoken over a
//! unix socket or a port.

pub mod address;
pub mod ask;
pub mod bundle;
pub mod connect;
pub mod container;
pub mod contexts;
pub mod dial;
pub mod endpoint;
pub mod groups;
pub mod login;
pub mod meter;
pub mod ours;
pub mod raw;
pub mod tls;
pub mod tunnel;
pub mod volumes;

use crate::engine::contract::ImageNames;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::image::Image;
use bollard::query_parameters::{
    RemoveContainerOptions, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use bollard::{ClientVersion, Docker};
use endpoint::Endpoint;
use hyper::Method;
use raw::Raw;
use std::time::Duration;

/// A connection to an engine.
#[derive(Debug)]
pub struct Api {
    /// Runs the calls.
    pub driver: Driver,
    /// The client.
    pub docker: Docker,
    /// The same engine without the client.
    pub raw: Raw,
    /// The engine's address, as errors name it.
    pub host: String,
}

impl Api {
    /// Connects to an engine and agrees on an API version. Everything that is done with it
    /// must end within `limit`.
    pub fn connect(endpoint: &Endpoint, limit: Duration) -> Result<Self, EngineError> {
        let host = endpoint.host.clone();
        let mut driver = Self::driver(&host, limit)?;
        let docker = connect::connect(&mut driver, &endpoint.address, &host)?;
        Ok(Self {
            driver,
            docker,
            raw: Raw::at(endpoint.address.clone(), &host),
            host,
        })
    }

    /// Uses an engine that has been greeted and speaks this version of the API.
    pub fn agreed(
        raw: &Raw,
        version: &ClientVersion,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let host = raw.host.clone();
        Ok(Self {
            driver: Self::driver(&host, limit)?,
            docker: connect::client(&raw.address, &host, version)?,
            raw: raw.clone(),
            host,
        })
    }

    /// What runs the calls to an engine.
    pub fn driver(host: &str, limit: Duration) -> Result<Driver, EngineError> {
        Driver::new(limit).map_err(|error| EngineError::Unreachable {
            host: host.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Runs a call.
    pub fn call<T>(
        &mut self,
        request: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        let host = &self.host;
        self.driver.run(request, async {
            call.await
                .map_err(|error| connect::explain(host, request, error))
        })
    }

    /// The answer, or `None` for "no such object".
    pub fn look_up<T>(
        &mut self,
        request: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<Option<T>, EngineError> {
        match self.call(request, call) {
            Ok(found) => Ok(Some(found)),
            Err(EngineError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The id of the image if it is there.
    pub fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        let docker = self.docker.clone();
        let (by_config, by_manifest) = self.call("GET /images", async {
            tokio::try_join!(
                // Image stores disagree on which digest is the id.
                ask::image_id(&docker, &image.config_digest),
                ask::image_id(&docker, &image.manifest_digest),
            )
        })?;
        Ok(by_config.or(by_manifest))
    }

    /// Loads an image.
    pub fn load(&mut self, image: &Image) -> Result<(), EngineError> {
        let (raw, archive) = (&self.raw, image.archive());
        let request = "POST /images/load";
        // Quiet: nobody looks at how far it is.
        let asked = raw.ask(Method::POST, "/images/load?quiet=true", Some(archive));
        let answer = self.driver.run(request, asked)?;
        // It says that all is well before it begins.
        match complaint(&answer.body) {
            None => Ok(()),
            Some(message) => Err(EngineError::Refused {
                host: self.host.clone(),
                request: request.into(),
                status: answer.status.as_u16(),
                message: connect::printable(&message),
            }),
        }
    }

    /// Removes a container of ours, with its volumes that have no name.
    pub fn remove(&mut self, id: &str) -> Result<(), EngineError> {
        let docker = self.docker.clone();
        let options = removal();
        let removed = self.look_up(
            "DELETE /containers",
            docker.remove_container(id, Some(options)),
        );
        match removed {
            // It is being removed already.
            Err(EngineError::Refused { status: 409, .. }) => Ok(()),
            other => other.map(drop),
        }
    }
}

impl Api {
    /// Removes a volume of ours that no container has.
    pub fn remove_volume(&mut self, name: &str) -> Result<(), EngineError> {
        // It becomes part of the request.
        if !volumes::is_name(name) {
            return Ok(());
        }
        let docker = self.docker.clone();
        let mut remove = |force| {
            let options = RemoveVolumeOptionsBuilder::new().force(force).build();
            let removed = docker.remove_volume(name, Some(options));
            self.look_up("DELETE /volumes", removed).map(drop)
        };
        // An engine lets go of it a moment after the container is gone.
        for _ in 0..20 {
            match remove(false) {
                Err(EngineError::Refused { status: 409, .. }) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // One that was killed on the way has a volume without its directory, which it
                // can only forget.
                Err(EngineError::Refused { message, .. }) if is_without_directory(&message) => {
                    return remove(true);
                }
                other => return other,
            }
        }
        remove(false)
    }
}

/// What Docker says of a volume whose directory is gone.
fn is_without_directory(message: &str) -> bool {
    message.contains("/_data") && message.ends_with("no such file or directory")
}

/// How a container of ours is removed: whatever it does, and with its volumes that have no
/// name. Those that have one stay.
pub fn removal() -> RemoveContainerOptions {
    let options = RemoveContainerOptionsBuilder::new();
    options.force(true).v(true).build()
}

/// What an engine complains about in the course of an answer, which has a value on each
/// line.
fn complaint(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Step {
        error: Option<String>,
    }
    let steps = serde_json::Deserializer::from_slice(body).into_iter::<Step>();
    steps.flatten().find_map(|step| step.error)
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn a_volume_without_its_directory_is_known_by_what_docker_says() {
        let said = "remove ab: umount /var/lib/docker/volumes/ab/_data, flags: 0x2: no such file \
                    or directory";
        assert!(super::is_without_directory(said));
        for other in [
            "remove ab: umount /var/lib/docker/volumes/ab/_data: device or resource busy",
            "get ab: no such volume",
            "no such file or directory",
        ] {
            assert!(!super::is_without_directory(other), "{other}");
        }
    }

    #[test]
    fn an_answer_that_began_well_may_end_otherwise() {
        let well = br#"{"stream":"Loaded image: x\n"}"#;
        for body in [&b""[..], b"Loaded", well, &[&well[..], b"\n"].concat()] {
            assert_eq!(complaint(body), None);
        }
        let bad = br#"{"errorDetail":{"message":"no room"},"error":"no room"}"#;
        let both = [&well[..], b"\n", bad].concat();
        for body in [&bad[..], &both] {
            assert_eq!(complaint(body).as_deref(), Some("no room"));
        }
    }
}
