//! Recipe + context → image.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::PathBuf;

use crate::archive::{Image, Parts};
use crate::base::{self, Foundation};
use crate::config::{self, Config, History, RootFs, Runtime};
use crate::context::{Budget, Context};
use crate::error::{ContextError, DockerfileError, ImageError, Location};
use crate::ids;
use crate::layer::{self, Layer, MAX_EPOCH};
use crate::manifest::{self, Descriptor};
use crate::name::ImageName;
use crate::paths;
use crate::recipe::{Base, Owner, Recipe, Step};
use crate::text::shown;
use crate::tree::Tree;

/// What is not in the Dockerfile and still decides about the image's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// The time of every file and of the image, in seconds since 1970. The
    /// caller takes it from `SOURCE_DATE_EPOCH`, or 0.
    pub epoch: u64,
    /// The image's name, such as `tki-inspector:attest`.
    pub tag: String,
    /// OCI layouts that `FROM` may name.
    pub bases: BTreeMap<String, PathBuf>,
}

/// Builds an image for the architecture of this machine. Equal inputs give
/// equal bytes.
pub fn build(
    recipe: &Recipe,
    context: &Context,
    options: &BuildOptions,
) -> Result<Image, ImageError> {
    build_for(config::architecture(ARCH), recipe, context, options)
}

/// Builds for a given architecture.
fn build_for(
    architecture: &str,
    recipe: &Recipe,
    context: &Context,
    options: &BuildOptions,
) -> Result<Image, ImageError> {
    let name = ImageName::parse(&options.tag)?;
    if options.epoch > MAX_EPOCH {
        return Err(ImageError::Option {
            option: "epoch",
            value: options.epoch.to_string(),
            why: "is later than a tar header can say",
        });
    }
    let mut foundation = match &recipe.base {
        Base::Scratch => Foundation::default(),
        Base::Named(base) => match options.bases.get(base) {
            Some(dir) => base::read(dir, architecture)?,
            None => return Err(no_such_base(recipe, base).into()),
        },
    };
    let base_tree = std::mem::take(&mut foundation.tree);
    let layer = grow(recipe, context, options.epoch, &foundation, base_tree)?;
    Ok(assemble(
        architecture,
        recipe,
        options.epoch,
        name,
        foundation,
        layer,
    ))
}

fn no_such_base(recipe: &Recipe, base: &str) -> Box<DockerfileError> {
    Box::new(DockerfileError {
        code: "dockerfile.base",
        at: recipe.from.clone(),
        instruction: "FROM".to_owned(),
        why: format!(
            "the base `{}` is not given, and nothing is fetched",
            shown(base)
        ),
        next: "use FROM scratch, or give it with --build-context NAME=oci-layout://DIR".to_owned(),
    })
}

/// Carries out the steps. There is a new layer if there are steps, and if there
/// would be none at all: an image without layers does not load everywhere.
fn grow(
    recipe: &Recipe,
    context: &Context,
    epoch: u64,
    foundation: &Foundation,
    base_tree: BTreeMap<String, crate::tree::BaseNode>,
) -> Result<Option<Layer>, ImageError> {
    if recipe.steps.is_empty() && !foundation.layers.is_empty() {
        return Ok(None);
    }
    let inherited = foundation.config.config.clone().unwrap_or_default();
    let mut workdir = inherited_workdir(&inherited);
    let mut tree = Tree::over(base_tree);
    let mut budget = Budget::default();
    for step in &recipe.steps {
        match step {
            Step::Copy(copy) => tree
                .copy(copy, &workdir, context, &mut budget)
                .map_err(|problem| at(&copy.at, "COPY", problem))?,
            Step::Workdir {
                path,
                owner,
                at: place,
            } => {
                workdir.clone_from(path);
                if !tree.has_directory(path) {
                    workdir_owner(*owner, &inherited)
                        .and_then(|owner| tree.make_directory(path, owner))
                        .map_err(|problem| at(place, "WORKDIR", problem))?;
                }
            }
        }
    }
    Ok(Some(layer::pack(&tree.into_entries(), epoch)?))
}

fn at(at: &Location, instruction: &'static str, problem: ContextError) -> ImageError {
    let (at, problem) = (at.clone(), Box::new(problem));
    ImageError::Step {
        at,
        instruction,
        problem,
    }
}

/// Where relative destinations start before the first `WORKDIR`.
fn inherited_workdir(inherited: &Runtime) -> String {
    let workdir = inherited.working_dir.as_deref().unwrap_or_default();
    paths::clean(workdir).unwrap_or_default()
}

/// Who owns a directory that `WORKDIR` creates: the user in force, as BuildKit has it.
fn workdir_owner(owner: Option<Owner>, inherited: &Runtime) -> Result<Owner, ContextError> {
    let user = inherited.user.as_deref().unwrap_or_default();
    match (owner, user) {
        (Some(owner), _) => Ok(owner),
        (None, "") => Ok(Owner::default()),
        (None, user) => ids::user(user).map_err(|why| {
            let next = "write USER with numbers before WORKDIR";
            ContextError::new("context.user", format!("the base's user {why}"), next)
        }),
    }
}

fn assemble(
    architecture: &str,
    recipe: &Recipe,
    epoch: u64,
    name: ImageName,
    foundation: Foundation,
    layer: Option<Layer>,
) -> Image {
    let Foundation { layers, config, .. } = foundation;
    let mut runtime = config.config.unwrap_or_default();
    runtime.apply(&recipe.settings);
    let mut history = base_history(config.history, layers.len());
    let mut diff_ids = config.rootfs.diff_ids;
    let (mut descriptors, mut blobs): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
    let created = config::rfc3339(epoch);
    history.push(History {
        created: Some(created.clone()),
        created_by: Some("tki-attest build".to_owned()),
        empty_layer: layer.is_none().then_some(true),
        ..History::default()
    });
    if let Some(layer) = layer {
        descriptors.push(Descriptor::of(manifest::LAYER_GZIP, &layer.gzip));
        diff_ids.push(layer.diff_id);
        blobs.push(layer.gzip);
    }
    let config = manifest::json(&Config {
        created: Some(created),
        architecture: architecture.to_owned(),
        variant: config.variant,
        os: "linux".to_owned(),
        config: Some(runtime),
        rootfs: RootFs {
            kind: "layers".to_owned(),
            diff_ids: diff_ids.clone(),
        },
        history: Some(history),
    });
    Image::assemble(Parts {
        name,
        epoch,
        config,
        diff_ids,
        layers: descriptors.into_iter().zip(blobs).collect(),
    })
}

/// The base's history if it fits its layers; otherwise one entry for each, as
/// readers pair the two by position.
fn base_history(history: Option<Vec<History>>, layers: usize) -> Vec<History> {
    let history = history.unwrap_or_default();
    let full = |entry: &&History| entry.empty_layer != Some(true);
    if history.iter().filter(full).count() == layers {
        return history;
    }
    let entry = History {
        created_by: Some("base layer".to_owned()),
        ..History::default()
    };
    vec![entry; layers]
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
