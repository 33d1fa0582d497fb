//! A connection to an engine, and the calls over it that Docker and Podman share.

use crate::engine::api::endpoint::Endpoint;
use crate::engine::api::raw::Raw;
use crate::engine::api::words::printable;
use crate::engine::api::{ask, connect};
use crate::engine::contract::ImageNames;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::image::Image;
use bollard::query_parameters::{RemoveContainerOptions, RemoveContainerOptionsBuilder};
use bollard::{ClientVersion, Docker};
use hyper::Method;
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
        let mut driver = Driver::towards(&host, limit)?;
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
            driver: Driver::towards(&host, limit)?,
            docker: connect::client(&raw.address, &host, version)?,
            raw: raw.clone(),
            host,
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
                message: printable(&message),
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
