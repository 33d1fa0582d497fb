//! Files for a volume, through a container that is never started.

use crate::engine::api::connect;
use crate::engine::api::container::Container;
use crate::engine::filling::{Archive, Files, FillError};
use bollard::query_parameters::UploadToContainerOptionsBuilder;
use futures_util::stream;
use hyper::body::Bytes;

/// Where the volume is mounted.
const INPUT: &str = "/in";

/// Has the engine unpack the files below /in of a container that was made and not started.
pub fn fill(container: &mut Container, files: Files) -> Result<(), FillError> {
    let archive = Archive::of(files);
    let wrong = archive.wrong();
    let pieces = stream::iter(archive.map(|piece| piece.map(Bytes::from)));
    let options = UploadToContainerOptionsBuilder::new().path(INPUT).build();
    let docker = container.api.docker.clone();
    let (host, request) = (&container.api.host, "PUT /containers/archive");
    let sending = async {
        let body = bollard::body_try_stream(pieces);
        let sent = docker.upload_to_container(&container.id, Some(options), body);
        sent.await
            .map_err(|error| connect::explain(host, request, error))
    };
    let sent = container.api.driver.run(request, sending);
    // What became of the files comes before what the engine makes of it.
    let wrong = wrong.lock().ok().and_then(|mut wrong| wrong.take());
    match wrong {
        Some(error) => Err(FillError::Source(error)),
        None => Ok(sent?),
    }
}
