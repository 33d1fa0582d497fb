//! What is left of a container when Docker was killed while it made or started it,
//! and what Docker that runs again does not list: a shim ([`shims`]), or a mount in
//! its storage ([`mounts`]). Only what is provably ours and in the storage of this
//! very engine is looked at.

use super::mounts::{self, Mount};
use super::shims;
use crate::engine::contract::Leftover;
use crate::engine::recover::bundle::is_prober;
use crate::engine::recover::groups::{self, Maker};
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerSummary, DriverData};
use bollard::query_parameters::{ListContainersOptionsBuilder, ListImagesOptionsBuilder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Docker that makes a container needs a mount for milliseconds.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// What the engine has forgotten.
#[derive(Debug, Default)]
pub struct Strays {
    /// Where the engine keeps everything, if that is on this host.
    storage: Option<PathBuf>,
    mounts: Vec<Mount>,
}

impl Strays {
    /// Looks for what is not among the containers that the engine lists, and gives it
    /// as leftovers. Where a proxy does not let us ask, there is only the list.
    pub async fn look(docker: &Docker, host: &str) -> Result<(Self, Vec<Leftover>), Error> {
        match Self::ask(docker, host).await {
            Err(Error::DockerResponseServerError { .. }) => Ok(Default::default()),
            other => other,
        }
    }

    async fn ask(docker: &Docker, host: &str) -> Result<(Self, Vec<Leftover>), Error> {
        let Some(storage) = storage(docker, host).await? else {
            return Ok(Default::default());
        };
        // What is seen before the engine is asked and is not in its answer is not
        // one that it has just begun to make.
        let shims = shims::ours(&storage);
        let standing = standing(&storage).await;
        let mut found = Vec::new();
        let mut mounts = Vec::new();
        if !shims.is_empty() || !standing.is_empty() {
            let listed = all(docker).await?;
            let ids: Vec<String> = listed.iter().filter_map(|one| one.id.clone()).collect();
            let stray = shims::unlisted(shims, &ids);
            found.extend(stray.iter().map(|shim| Leftover {
                id: shim.id().to_owned(),
                run_id: shim.bundle.run.id.clone(),
                state: "unlisted".into(),
                deadline: Some(shim.bundle.run.removable_after),
                foreign: None,
            }));
            mounts = forgotten(docker, standing, &listed).await?;
        }
        found.extend(mounts.iter().map(|mount| Leftover {
            id: mount.name.clone(),
            run_id: "unknown".into(),
            state: "only mounted".into(),
            deadline: mount.removable_after(),
            foreign: None,
        }));
        let storage = Some(storage);
        Ok((Self { storage, mounts }, found))
    }

    /// Takes a mount away, if that is one.
    pub fn unmount(&self, id: &str) -> Option<Result<(), (PathBuf, std::io::Error)>> {
        let storage = self.storage.as_deref()?;
        let mount = self.mounts.iter().find(|mount| mount.name == id)?;
        Some(mount.take_away(storage))
    }

    /// Ends what is left of a container that the engine has removed, or does not know, if
    /// that engine is of this host.
    pub fn end(&self, id: &str) {
        if let Some(storage) = self.storage.as_deref() {
            shims::end(id, storage);
            groups::take_away(Maker::Docker, id);
        }
    }
}

/// Every container.
pub async fn all(docker: &Docker) -> Result<Vec<ContainerSummary>, Error> {
    let options = ListContainersOptionsBuilder::new().all(true).build();
    docker.list_containers(Some(options)).await
}

/// The answer, or `None` for "no such object".
pub fn there<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the engine keeps everything, if it is an engine of this host.
async fn storage(docker: &Docker, host: &str) -> Result<Option<PathBuf>, Error> {
    if !host.starts_with("unix://") {
        return Ok(None);
    }
    let info = docker.info().await?;
    // A socket may lead to another machine, and there may be the same directory here.
    let here = rustix::system::uname();
    let is_here = info.name.as_deref() == here.nodename().to_str().ok()
        && info.kernel_version.as_deref() == here.release().to_str().ok();
    let folder = info.docker_root_dir.filter(|_| is_here);
    let folder = folder.and_then(|folder| Path::new(&folder).canonicalize().ok());
    Ok(folder.filter(|folder| folder.parent().is_some()))
}

/// Mounts that stay.
async fn standing(storage: &Path) -> Vec<Mount> {
    let mut standing = mounts::standing(storage);
    if !standing.is_empty() {
        tokio::time::sleep(SECOND_LOOK).await;
        let still = mounts::standing(storage);
        standing.retain(|mount| still.contains(mount));
    }
    standing
}

/// Mounts of images of ours that belong to none of the containers.
async fn forgotten(
    docker: &Docker,
    mut mounts: Vec<Mount>,
    listed: &[ContainerSummary],
) -> Result<Vec<Mount>, Error> {
    if mounts.is_empty() {
        return Ok(mounts);
    }
    let options = ListImagesOptionsBuilder::new().all(true).build();
    let mut ours = Vec::new();
    for image in docker.list_images(Some(options)).await? {
        let Some(image) = there(docker.inspect_image(&image.id).await)? else {
            continue;
        };
        let config = image.config.unwrap_or_default();
        let program = config.entrypoint.unwrap_or_default();
        if let ([program], Some(driver)) = (program.as_slice(), image.graph_driver)
            && is_prober(program)
        {
            ours.push(layers(&driver));
        }
    }
    mounts.retain(|mount| ours.contains(&mount.layers));
    let mut claimed = BTreeSet::new();
    for container in listed.iter().filter(|_| !mounts.is_empty()) {
        let id = container.id.as_deref().unwrap_or_default();
        // One that is being removed is claimed by nobody.
        let found = there(docker.inspect_container(id, None).await)?;
        if let Some(driver) = found.and_then(|found| found.graph_driver) {
            claimed.extend(directory(&driver));
        }
    }
    mounts.retain(|mount| !claimed.contains(mount.container()));
    Ok(mounts)
}

/// The layers of an image, the uppermost first.
fn layers(driver: &DriverData) -> Vec<PathBuf> {
    let upper = driver.data.get("UpperDir").into_iter();
    let lower = driver.data.get("LowerDir").into_iter();
    let lower = lower.flat_map(|lower| lower.split(':'));
    upper
        .map(String::as_str)
        .chain(lower)
        .map(PathBuf::from)
        .collect()
}

/// The directory of a container in the storage.
fn directory(driver: &DriverData) -> Option<String> {
    let folder = Path::new(driver.data.get("MergedDir")?).parent()?;
    Some(folder.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(pairs: &[(&str, &str)]) -> DriverData {
        let pairs = pairs.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        DriverData {
            name: "overlay2".into(),
            data: pairs.collect(),
        }
    }

    #[test]
    fn an_image_tells_its_layers_and_a_container_its_directory() {
        let of = |pairs: &[(&str, &str)]| layers(&driver(pairs));
        assert_eq!(of(&[("UpperDir", "/a")]), [PathBuf::from("/a")]);
        let three = ["/a", "/b", "/c"].map(PathBuf::from);
        assert_eq!(of(&[("LowerDir", "/b:/c"), ("UpperDir", "/a")]), three);
        assert!(of(&[]).is_empty());
        let of = |pairs: &[(&str, &str)]| directory(&driver(pairs));
        let merged = ("MergedDir", "/var/lib/docker/overlay2/ab/merged");
        assert_eq!(of(&[merged]).as_deref(), Some("ab"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("MergedDir", "/")]), None);
    }

    #[test]
    fn what_was_never_looked_for_is_not_taken_away() {
        let strays = Strays::default();
        assert!(strays.unmount("ab").is_none());
        strays.end(&"ab".repeat(32));
    }
}
