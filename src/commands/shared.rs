//! What several commands need: an image, an engine, a connection.

use crate::cli::{EngineArgs, EngineName, ImageSource};
use crate::engine::api::endpoint::Endpoint;
use crate::engine::docker::DockerEngine;
use crate::engine::local::{LocalEngine, Maker, own};
use crate::engine::podman::{Place, PodmanEngine};
use crate::engine::{Engine, EngineError};
use crate::failure::Failure;
use crate::host::janitor::Janitor;
use crate::image::{self, BuildOptions, Context, Image, Recipe, built_in};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Builds the image that the arguments describe.
pub fn build_image(source: &ImageSource, tag: &str) -> Result<Image, Failure> {
    let (Some(file), Some(folder)) = (&source.file, &source.context) else {
        if tag == built_in::TAG && source.build_context.is_empty() {
            return Ok(built_in::image()?);
        }
        let options = BuildOptions {
            epoch: 0,
            tag: tag.to_owned(),
            bases: bases(&source.build_context)?,
        };
        return Ok(image::build(
            &built_in::recipe()?,
            &built_in::context()?,
            &options,
        )?);
    };
    let options = BuildOptions {
        epoch: source_date_epoch()?,
        tag: tag.to_owned(),
        bases: bases(&source.build_context)?,
    };
    let context = Context::directory(folder)?;
    Ok(image::build(&Recipe::read(file)?, &context, &options)?)
}

fn bases(given: &[String]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    given
        .iter()
        .map(|text| {
            let (name, place) = text.split_once('=').unwrap_or((text, ""));
            match place.strip_prefix("oci-layout://") {
                Some(folder) if !name.is_empty() && !folder.is_empty() => {
                    Ok((name.to_owned(), PathBuf::from(folder)))
                }
                _ => Err(Failure::usage(
                    "build-context.malformed",
                    format!("--build-context {text:?} is not NAME=oci-layout://DIR"),
                    "write for example --build-context base=oci-layout://./base",
                )),
            }
        })
        .collect()
}

/// The time that goes into an image built from files of the user's.
fn source_date_epoch() -> Result<u64, Failure> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Err(_) => Ok(0),
        Ok(text) => text.parse().map_err(|_| {
            Failure::usage(
                "epoch.malformed",
                format!("SOURCE_DATE_EPOCH is {text:?}"),
                "set it to seconds since 1970, or unset it",
            )
        }),
    }
}

/// Engines in the order in which `auto` tries them.
pub const CANDIDATES: &[EngineName] = &[
    EngineName::Docker,
    EngineName::Podman,
    EngineName::Embedded,
    EngineName::Bwrap,
];

/// Connects to the engine that the arguments name. The choice is made once, so
/// that every connection of a command leads to the same engine; what was started
/// for it ends with this value.
#[derive(Debug)]
pub struct Connector<'a> {
    args: &'a EngineArgs,
    runtime: Option<&'a str>,
    route: Mutex<Option<Route>>,
}

/// An engine that was found.
#[derive(Clone, Debug)]
enum Route {
    Docker(Arc<Endpoint>),
    Podman(Arc<Place>),
    Local(Maker),
}

impl<'a> Connector<'a> {
    /// A connector for the arguments, and for an OCI runtime if one is named.
    pub fn new(args: &'a EngineArgs, runtime: Option<&'a str>) -> Self {
        Self {
            args,
            runtime,
            route: Mutex::new(None),
        }
    }

    /// Chooses the engine while the process has one thread: one without a daemon
    /// needs namespaces of the tool's own for users who are not root.
    pub fn settle(&self) -> Result<(), EngineError> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        self.connect(self.args.timeout).map(drop)
    }

    /// Makes a connection. Everything that is done with it must end within
    /// `limit`.
    pub fn connect(&self, limit: Duration) -> Result<Box<dyn Engine>, EngineError> {
        let mut route = self
            .route
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(route) = route.as_ref() {
            return self.follow(route, limit);
        }
        let (found, engine) = match self.args.engine {
            EngineName::Auto => self.first(limit)?,
            name => self.reach(name, self.args.at.host.as_deref(), limit)?,
        };
        *route = Some(found);
        Ok(engine)
    }

    /// The first candidate that is there. If none is, the user hears what is
    /// wrong with each; with the engine at an address that was given, what is
    /// wrong there.
    fn first(&self, limit: Duration) -> Result<(Route, Box<dyn Engine>), EngineError> {
        let mut errors = Vec::new();
        // A user who gives an address means the engine that is there.
        let named = self.args.at.wanted().named()?;
        let host = named.as_ref().map(|named| named.host.as_str());
        let candidates = match &named {
            None => CANDIDATES,
            Some(named) if named.is_plain => &CANDIDATES[..2],
            // A context is Docker's.
            Some(_) => &CANDIDATES[..1],
        };
        for name in candidates {
            match self.reach(*name, host, limit) {
                Ok(found) => return Ok(found),
                Err(error) if is_elsewhere(&error) => errors.push(error),
                Err(error) => return Err(error),
            }
        }
        if named.is_some() {
            errors.truncate(1);
            return Err(errors.pop().unwrap_or_else(|| not_one(EngineName::Auto)));
        }
        Err(EngineError::None {
            reasons: errors.iter().map(EngineError::to_string).collect(),
        })
    }

    fn reach(
        &self,
        name: EngineName,
        host: Option<&str>,
        limit: Duration,
    ) -> Result<(Route, Box<dyn Engine>), EngineError> {
        let route = match name {
            EngineName::Docker => Route::Docker(Arc::new(self.args.at.wanted().resolve(limit)?)),
            EngineName::Podman => Route::Podman(Arc::new(Place::find(host, self.runtime, limit)?)),
            EngineName::Embedded => Route::Local(own_namespaces(Maker::Embedded)?),
            EngineName::Bwrap => Route::Local(own_namespaces(Maker::Bwrap)?),
            other @ (EngineName::Auto | EngineName::All) => return Err(not_one(other)),
        };
        let engine = self.follow(&route, limit)?;
        Ok((route, engine))
    }

    fn follow(&self, route: &Route, limit: Duration) -> Result<Box<dyn Engine>, EngineError> {
        Ok(match route {
            Route::Docker(endpoint) => Box::new(DockerEngine::connect(endpoint, limit)?),
            Route::Podman(place) => Box::new(PodmanEngine::connect(place, limit)?),
            Route::Local(maker) => Box::new(LocalEngine::new(*maker, limit)?),
        })
    }
}

/// Where a user without root gets what root has.
fn own_namespaces(maker: Maker) -> Result<Maker, EngineError> {
    own::enter().map_err(|error| EngineError::Unusable {
        engine: maker.name(),
        reason: format!("this user gets no user namespace: {error}"),
        next: "run as root, or let unprivileged users make user namespaces".into(),
    })?;
    Ok(maker)
}

/// The engine is not here or not for us: another one may be.
fn is_elsewhere(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Unreachable { .. }
            | EngineError::Unusable { .. }
            | EngineError::Permission { .. }
            | EngineError::Address { .. }
    )
}

fn not_one(name: EngineName) -> EngineError {
    EngineError::Unusable {
        engine: name.name(),
        reason: "this command needs one engine".into(),
        next: "name one with --engine".into(),
    }
}

/// Connects once.
pub fn connect(args: &EngineArgs) -> Result<Box<dyn Engine>, EngineError> {
    Connector::new(args, None).connect(args.timeout)
}

/// Starts the process that tidies up should this one be killed.
pub fn janitor(args: &EngineArgs) -> Result<Janitor, Failure> {
    let mut words: Vec<OsString> = vec!["--engine".into(), args.engine.name().into()];
    words.extend(args.at.words());
    Ok(Janitor::start(&words)?)
}
