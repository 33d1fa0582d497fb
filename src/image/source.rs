//! Where an image comes from: the files built into this tool, or files that the user names.

use crate::failure::Failure;
use crate::image::{BuildOptions, Context, Image, ImageError, Recipe, build, built_in};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where an image comes from.
#[derive(Clone, Debug, Default)]
pub struct ImageSource {
    /// A Dockerfile and the directory that COPY takes files from, instead of those built
    /// into this tool.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Base images, each as `NAME=oci-layout://DIR`.
    pub bases: Vec<String>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A base image that is not one.
    #[error("--build-context {0:?} is not NAME=oci-layout://DIR")]
    Base(String),
    /// The time for images of the user's files.
    #[error("SOURCE_DATE_EPOCH is {0:?}")]
    Epoch(String),
    /// It cannot be built.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let message = error.to_string();
        match error {
            SourceError::Base(_) => Failure::usage(
                "build-context.malformed",
                message,
                "write for example --build-context base=oci-layout://./base",
            ),
            SourceError::Epoch(_) => Failure::usage(
                "epoch.malformed",
                message,
                "set it to seconds since 1970, or unset it",
            ),
            SourceError::Image(error) => error.into(),
        }
    }
}

impl ImageSource {
    /// Builds the image under this tag.
    pub fn build(&self, tag: &str) -> Result<Image, SourceError> {
        let Some((file, folder)) = &self.files else {
            if tag == built_in::TAG && self.bases.is_empty() {
                return Ok(built_in::image()?);
            }
            let options = self.options(0, tag)?;
            return Ok(build(
                &built_in::recipe()?,
                &built_in::context()?,
                &options,
            )?);
        };
        let options = self.options(source_date_epoch()?, tag)?;
        let context = Context::directory(folder)?;
        Ok(build(&Recipe::read(file)?, &context, &options)?)
    }

    fn options(&self, epoch: u64, tag: &str) -> Result<BuildOptions, SourceError> {
        let bases: Result<BTreeMap<String, PathBuf>, SourceError> =
            self.bases.iter().map(|text| base(text)).collect();
        Ok(BuildOptions {
            epoch,
            tag: tag.to_owned(),
            bases: bases?,
        })
    }
}

fn base(text: &str) -> Result<(String, PathBuf), SourceError> {
    let (name, place) = text.split_once('=').unwrap_or((text, ""));
    match place.strip_prefix("oci-layout://") {
        Some(folder) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(folder)))
        }
        _ => Err(SourceError::Base(text.to_owned())),
    }
}

/// The time that goes into an image built from files of the user's.
fn source_date_epoch() -> Result<u64, SourceError> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Err(_) => Ok(0),
        Ok(text) => text.parse().map_err(|_| SourceError::Epoch(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_image_has_a_name_and_a_layout() {
        let (name, folder) = base("base=oci-layout://./x").unwrap();
        assert_eq!((name.as_str(), folder), ("base", "./x".into()));
        for text in [
            "base",
            "base=",
            "=oci-layout://x",
            "base=oci-layout://",
            "base=x",
        ] {
            let refused = Failure::from(base(text).unwrap_err());
            assert_eq!(refused.code, "build-context.malformed");
            assert!(refused.message.contains(&format!("{text:?}")), "{text}");
        }
    }
}
