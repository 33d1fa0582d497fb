//! What several commands need: an image, an engine, a connection.

use crate::attest::janitor::Janitor;
use crate::cli::{EngineArgs, EngineName, ImageSource};
use crate::engine::docker::DockerEngine;
use crate::engine::local::{LocalEngine, Maker, own};
use crate::engine::{Engine, EngineError};
use crate::failure::Failure;
use crate::image::{self, BuildOptions, Context, Image, Recipe, embedded};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Builds the image that the arguments describe.
pub fn build_image(source: &ImageSource, tag: &str) -> Result<Image, Failure> {
    let (Some(file), Some(folder)) = (&source.file, &source.context) else {
        if tag == embedded::TAG && source.build_context.is_empty() {
            return Ok(embedded::image()?);
        }
        let options = BuildOptions {
            epoch: 0,
            tag: tag.to_owned(),
            bases: bases(&source.build_context)?,
        };
        return Ok(image::build(
            &embedded::recipe()?,
            &embedded::context()?,
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

/// Connects to the engine that the arguments name.
pub fn connect(args: &EngineArgs) -> Result<Box<dyn Engine>, EngineError> {
    match args.engine {
        EngineName::Embedded => Ok(Box::new(LocalEngine::new(Maker::Embedded, args.timeout)?)),
        EngineName::Bwrap => Ok(Box::new(LocalEngine::new(Maker::Bwrap, args.timeout)?)),
        EngineName::Podman | EngineName::All => Err(EngineError::Unusable {
            engine: args.engine.name(),
            reason: "not built yet".into(),
            next: "use --engine docker".into(),
        }),
        EngineName::Auto | EngineName::Docker => Ok(Box::new(DockerEngine::connect(
            args.host.as_deref(),
            args.timeout,
        )?)),
    }
}

/// What must happen before anything else, while the process has one thread: an
/// engine without a daemon needs namespaces of the tool's own for users who are
/// not root.
pub fn settle(args: &EngineArgs) -> Result<(), Failure> {
    match args.engine {
        EngineName::Embedded | EngineName::Bwrap => own::enter().map_err(|error| {
            EngineError::Unusable {
                engine: args.engine.name(),
                reason: format!("this user gets no user namespace: {error}"),
                next: "run as root, or let unprivileged users make user namespaces".into(),
            }
            .into()
        }),
        _ => Ok(()),
    }
}

/// Starts the process that tidies up should this one be killed.
pub fn janitor(args: &EngineArgs) -> Result<Janitor, Failure> {
    let mut words = vec!["--engine".to_owned(), args.engine.name().to_owned()];
    if let Some(host) = &args.host {
        words.extend(["--host".to_owned(), host.clone()]);
    }
    Janitor::start(&words)
}
