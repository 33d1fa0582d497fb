//! Containers that the engine lists with our label, and whose they are.

use crate::engine::contract::LABEL_RUN;
use crate::engine::recover::docker::there;
use crate::engine::recover::ours::{Described, ImageDescribed, Labels, Mounted, Whole};
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary, ImageInspect};
use std::collections::HashMap;

/// It carries our label, by whomever it was given.
pub fn carries_label(container: &ContainerSummary) -> bool {
    let labels = container.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(LABEL_RUN))
}

/// Those of the containers that carry our label, as the engine describes them. One that
/// is gone by now is left out.
pub async fn labelled(
    docker: &Docker,
    listed: &[ContainerSummary],
) -> Result<Vec<Described>, Error> {
    let labelled = listed.iter().filter(|one| carries_label(one));
    let mut found = Vec::new();
    for one in labelled {
        let Some(id) = one.id.as_deref() else {
            continue;
        };
        let whole = match docker.inspect_container(id, None).await {
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => continue,
            // It is being made or removed, and must not be in the way of the others.
            Err(Error::DockerResponseServerError { .. }) => None,
            other => Some(whole(other?)),
        };
        let image = one.image_id.as_deref().unwrap_or_default();
        let image = there(docker.inspect_image(image).await)?;
        found.push(Described {
            id: id.to_owned(),
            name: one
                .names
                .iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or_default(),
            state: one.state.map(|state| state.to_string()).unwrap_or_default(),
            labels: sorted(one.labels.clone()),
            whole,
            image: image.map(describe),
        });
    }
    Ok(found)
}

fn whole(container: ContainerInspectResponse) -> Whole {
    let mounts = container.mounts.unwrap_or_default().into_iter();
    let program = container.path.into_iter();
    let host = container.host_config;
    Whole {
        program: program.chain(container.args.unwrap_or_default()).collect(),
        auto_remove: host.and_then(|host| host.auto_remove).unwrap_or(false),
        mounts: mounts
            .map(|mount| Mounted {
                kind: mount.typ.map(|kind| kind.to_string()).unwrap_or_default(),
                name: mount.name.unwrap_or_default(),
                source: mount.source.unwrap_or_default(),
                destination: mount.destination.unwrap_or_default(),
            })
            .collect(),
    }
}

fn describe(image: ImageInspect) -> ImageDescribed {
    let config = image.config.unwrap_or_default();
    ImageDescribed {
        labels: sorted(config.labels),
        entrypoint: config.entrypoint.unwrap_or_default(),
    }
}

fn sorted(labels: Option<HashMap<String, String>>) -> Labels {
    labels.into_iter().flatten().collect()
}
