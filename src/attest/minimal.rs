//! The smallest profile under which every probe passes, found by running it.

use crate::attest::error::AttestError;
use crate::attest::memory::Memory;
use crate::attest::run::{Plan, attest};
use crate::engine::EngineError;
use crate::engine::choice::{Connector, Sought};
use crate::engine::gate::GateChoice;
use crate::failure::Failure;
use crate::host::venue::Proofs;
use crate::image::built_in;
use crate::sandbox::minimise::{Minimal, minimise};
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use std::time::Instant;
use tki_evidence::venue::VenueRules;

/// Leaves out one call of the profile `from` after the other; `tell` hears of each whether it
/// is superfluous.
pub fn minimal(
    from: &str,
    sought: &Sought,
    tell: impl FnMut(&str, bool),
) -> Result<Minimal, Failure> {
    let image = built_in::image()?;
    let janitor = sought.janitor()?;
    let connector = Connector::new(sought, None);
    let connect = || connector.connect(sought.timeout);
    let text = Seccomp::resolve(from)?.text;
    // A start can fail for reasons of its own: what does not pass is asked
    // twice before it counts as needed.
    let passes = |seccomp: &Seccomp| -> Result<bool, Failure> {
        let profile = Profile {
            seccomp: seccomp.clone(),
            limits: Limits::default(),
        };
        for _ in 0..2 {
            let plan = Plan {
                venue: "dev",
                venue_rules: VenueRules::built_in(),
                proofs: &Proofs::default(),
                profile: &profile,
                chosen: &[],
                image: &image,
                deadline: Instant::now() + sought.timeout,
                controls: false,
                limits: true,
                runtime: None,
                gate: GateChoice::Off,
                memory: Memory::None,
                janitor: &janitor,
                request: None,
            };
            let attested = connect()
                .map_err(AttestError::from)
                .and_then(|engine| attest(engine, &connect, &plan, &mut ()));
            match attested {
                // Only the probes count here, not what else happens on the engine.
                Ok(bundle) if bundle.all_passed() => return Ok(true),
                Ok(_) => {}
                Err(error) if is_no_verdict(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(false)
    };
    minimise(&text, passes, tell)
}

/// Nothing was tried, and another profile would be tried in vain.
fn is_no_verdict(error: &AttestError) -> bool {
    matches!(
        error.root(),
        AttestError::Engine(
            EngineError::Interrupted { .. }
                | EngineError::Unusable { .. }
                | EngineError::Unreachable { .. }
        )
    )
}
