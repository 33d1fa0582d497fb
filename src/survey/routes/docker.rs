//! A container engine as a route.

use super::kinds::{Ability, DockerRoute};
use super::result::Finding;
use crate::deadline::Deadline;
use crate::image::Image;
use crate::survey::engine_api::{Created, look};
use crate::survey::http::parse_address;

/// Asks the engine; a container is created, and removed, only if permitted.
pub fn probe(
    route: &DockerRoute,
    mut finding: Finding,
    permitted: bool,
    image: &Image,
    deadline: &Deadline,
) -> Finding {
    let Some(address) = parse_address(&route.host) else {
        return finding.denied(Ability::Containers, "nothing", "its host cannot be read");
    };
    let permission = match permitted {
        true => Ok(()),
        false => Err("not permitted"),
    };
    let look = look(&address, permission, image, deadline);
    for call in look.calls {
        finding.call(call.call, call.result);
    }
    let proves = "no container can be created, so none can run a script";
    if !look.greeted {
        return finding.denied(Ability::Containers, proves, look.problem);
    }
    match look.created {
        Created::Yes => finding.works(
            Ability::Containers,
            "a container can be created and removed; it was never started",
        ),
        Created::Left(what) => {
            finding.left = Some(format!("container {what}"));
            let why = format!("it could not be removed ({what}): `tki-attest clean` in a minute");
            finding.denied(
                Ability::Containers,
                "a container can be created, and not removed",
                why,
            )
        }
        Created::Forbidden(status) => {
            let why = format!("create answered {status}: the socket is for reading");
            finding.denied(Ability::Containers, proves, why)
        }
        Created::Refused(status) => {
            let why = format!("create answered {status}");
            finding.denied(Ability::Containers, proves, why)
        }
        Created::Lost(why) => finding.denied(Ability::Containers, proves, why),
        Created::NotTried(_) => finding.not_permitted("creating a container"),
    }
}
