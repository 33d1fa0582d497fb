//! Questions that change nothing, in Docker's words.

use crate::engine::api::fault::Fault;
use crate::engine::contract::{EngineFacts, Identity};
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use bollard::query_parameters::{ListImagesOptionsBuilder, ListNetworksOptions};
use tki_evidence::controller::Controller;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::{Holdings, Runtime};
use tki_evidence::kernel::KernelKind;
use tki_evidence::settings::MOST_CPUS;

/// The id of an image by tag or digest, `None` if there is no such image.
pub async fn image_id(docker: &Docker, name: &str) -> Result<Option<String>, Error> {
    match docker.inspect_image(name).await {
        Ok(image) => Ok(image.id),
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the engine holds beside containers and volumes.
pub async fn holdings(docker: &Docker) -> Result<Holdings, Error> {
    let every = ListImagesOptionsBuilder::new().all(true).build();
    let (networks, images) = tokio::try_join!(
        docker.list_networks(None::<ListNetworksOptions>),
        docker.list_images(Some(every)),
    )?;
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids.dedup();
        ids
    };
    Ok(Holdings {
        containers: Vec::new(),
        networks: sorted(networks.into_iter().filter_map(|net| net.id).collect()),
        volumes: Vec::new(),
        images: sorted(images.into_iter().map(|image| image.id).collect()),
        modules: Vec::new(),
    })
}

/// The most bytes of names in an inventory: evidence has two, and a bound of its own.
/// There is room for thirty thousand objects.
const MAX_HELD: u64 = 2 << 20;

/// Tells whether an inventory would make evidence that nobody reads.
pub fn within_bounds(held: &Holdings) -> Result<(), Fault> {
    let lists = [
        &held.containers,
        &held.networks,
        &held.volumes,
        &held.images,
    ];
    // In JSON every name has a line of its own.
    let size = |name: &String| name.len() as u64 + 16;
    let size: u64 = lists.into_iter().flatten().map(size).sum();
    match size > MAX_HELD {
        false => Ok(()),
        true => Err(Fault::Flood {
            most: MAX_HELD,
            what: "bytes of names",
        }),
    }
}

/// What the engine says about itself, in our own words.
pub fn facts(info: SystemInfo, api_version: String, host: &str) -> EngineFacts {
    let security_options = info.security_options.unwrap_or_default();
    let rootless = security_options
        .iter()
        .any(|option| option == "name=rootless");
    let runtime_commit = info.runc_commit.and_then(|commit| commit.id);
    let cgroup_version = info.cgroup_version.map(|version| version.to_string());
    EngineFacts {
        runtime: Runtime {
            engine: EngineKind::Docker.name().into(),
            engine_version: info.server_version.unwrap_or_default(),
            api_version,
            oci_runtime: info.default_runtime.unwrap_or_default(),
            kernel_kind: KernelKind::Shared,
            kernel: info.kernel_version.unwrap_or_default(),
            arch: info.architecture.unwrap_or_default(),
            os: info.os_type.unwrap_or_default(),
            cgroup_version: cgroup_version.unwrap_or_default(),
            rootless,
            security_options,
        },
        operating_system: info.operating_system.unwrap_or_default(),
        host_name: info.name.unwrap_or_default(),
        reached: None,
        swap_limit: info.swap_limit.unwrap_or(false),
        cpus: info.ncpu.unwrap_or(1).clamp(1, MOST_CPUS),
        lacks: [
            (Controller::Pids, info.pids_limit),
            (Controller::Memory, info.memory_limit),
            (Controller::Cpu, info.cpu_cfs_quota),
        ]
        .into_iter()
        .filter(|(_, can)| *can == Some(false))
        .map(|(controller, _)| controller)
        .collect(),
        notes: Vec::new(),
        identity: Some(Identity {
            address: host.to_owned(),
            id: info.id.unwrap_or_default(),
            runtime_commit: runtime_commit.unwrap_or_default(),
        }),
    }
}
