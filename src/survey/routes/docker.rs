//! A container engine as a route.

use super::form::{Ability, DockerRoute};
use super::result::RouteResult;
use crate::image::Image;
use crate::survey::engine_api::{Created, look};
use crate::survey::http::Address;
use crate::survey::watch::Watch;

/// Asks the engine; a container is created, and removed, only if permitted.
pub fn probe(
    route: &DockerRoute,
    mut result: RouteResult,
    permitted: bool,
    image: &Image,
    watch: &Watch,
) -> RouteResult {
    let Some(address) = Address::parse(&route.host) else {
        return result.denied(Ability::Containers, "nothing", "its host cannot be read");
    };
    let permission = match permitted {
        true => Ok(()),
        false => Err("not permitted"),
    };
    let look = look(&address, permission, image, watch);
    result.calls = look.calls;
    let proves = "no container can be created, so none can run a script";
    if !look.greeted {
        return result.denied(Ability::Containers, proves, look.problem);
    }
    match look.created {
        Created::Yes => result.works(
            Ability::Containers,
            "a container can be created and removed; it was never started",
        ),
        Created::Left(what) => {
            result.left = Some(format!("container {what}"));
            let why = format!("it could not be removed ({what}): `tki-attest clean` in a minute");
            result.denied(
                Ability::Containers,
                "a container can be created, and not removed",
                why,
            )
        }
        Created::Forbidden(status) => {
            let why = format!("create answered {status}: the socket is for reading");
            result.denied(Ability::Containers, proves, why)
        }
        Created::Refused(status) => {
            let why = format!("create answered {status}");
            result.denied(Ability::Containers, proves, why)
        }
        Created::Lost(why) => result.denied(Ability::Containers, proves, why),
        Created::NotTried(_) => result.not_permitted("creating a container"),
    }
}
