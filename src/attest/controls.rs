//! Runs the controls, a few at a time.

use crate::attest::container;
use crate::attest::error::AttestError;
use crate::attest::neighbour::{self, Beside};
use crate::attest::trial::{Outcome, Trial};
use crate::engine::Connect;
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tki_evidence::controller::Controller;
use tki_evidence::controls::{CONTROLS, Control, probes};
use tki_evidence::request::control_nonce;

/// How many containers run at the same time.
const AT_ONCE: usize = 4;

/// What a control came to.
pub type ControlOutcome = (&'static Control, Outcome);

/// Runs controls, each in a container of its own, over connections of its
/// own, within what is left of the run's time. `template` is the trial of the run
/// itself, `beside` its neighbour, which some of them need.
pub fn run(
    connect: &Connect,
    template: &Trial,
    wanted: &[&'static Control],
    beside: &Beside,
) -> Result<Vec<ControlOutcome>, AttestError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let needs = |control: &&Control| neighbour::is_needed_by(control, template.maker);
    let waiting = Mutex::new(order(wanted, needs));
    let need_it = AtomicUsize::new(wanted.iter().copied().filter(needs).count());
    let work = || -> Result<Vec<ControlOutcome>, AttestError> {
        let mut engine = connect()?;
        let mut done = Vec::new();
        loop {
            let next = waiting.lock().ok().and_then(|mut list| list.pop());
            let Some(control) = next else {
                return Ok(done);
            };
            let neighbour = match needs(&control) {
                true => beside.wait().map(|known| known.id.as_str()),
                false => Some(""),
            };
            let outcome = neighbour
                .ok_or(AttestError::NoNeighbour)
                .and_then(|id| run_one(engine.as_mut(), control, template, id));
            // Where its namespaces stand for those of the host, it stays to the end: another
            // container would get their numbers, and not seem to have fresh ones.
            let is_last = needs(&control) && need_it.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_last && template.elsewhere.is_none() {
                beside.let_go();
            }
            // The others need not go on when one cannot.
            if outcome.is_err()
                && let Ok(mut list) = waiting.lock()
            {
                list.clear();
            }
            done.push((control, outcome?));
        }
    };
    // Where a resource limit stands in for a control group, the processes of one
    // container count for all others of the same user, too.
    let at_once = match template.lacks.contains(&Controller::Pids) {
        true => 1,
        false => AT_ONCE,
    };
    let panicked = |_| Err(AttestError::ControlsPanicked);
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(panicked))
            .collect::<Vec<_>>()
    });
    let mut all = Vec::new();
    for result in results {
        all.extend(result?);
    }
    let place = |control: &Control| CONTROLS.iter().position(|known| known.name == control.name);
    all.sort_by_key(|(control, _)| place(control));
    Ok(all)
}

/// The controls in the order in which they are taken from the end of the list. The neighbour
/// takes a while until it is there and a while until it is gone: others go before and after
/// those that need it.
fn order(wanted: &[&'static Control], needs: impl Fn(&&Control) -> bool) -> Vec<&'static Control> {
    let (mut in_between, mut order): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(needs);
    let after = order.split_off(order.len().min(2 * AT_ONCE));
    order.append(&mut in_between);
    order.extend(after);
    order.reverse();
    order
}

fn run_one(
    engine: &mut dyn crate::engine::Engine,
    control: &'static Control,
    template: &Trial,
    neighbour: &str,
) -> Result<Outcome, AttestError> {
    let trial = Trial {
        neighbour,
        control: Some(control.name),
        relaxations: control.relaxations,
        probes: probes(control).map(|probe| probe.id.to_owned()).collect(),
        nonce: control_nonce(&template.nonce, control.name),
        // What a control takes away must not be made up for by the gate.
        gate: GateChoice::Off,
        ..*template
    };
    time_left(trial.deadline, "the controls")
        .map_err(AttestError::from)
        .and_then(|_| container::run(engine, &trial, &mut ()))
        .map_err(|error| AttestError::Control {
            name: control.name,
            error: Box::new(error),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_need_the_neighbour_are_neither_first_nor_last() {
        let wanted: Vec<&Control> = CONTROLS.iter().collect();
        let needs = |control: &&Control| control.name == "ipc" || control.name == "processes";
        let mut order = order(&wanted, needs);
        order.reverse();
        assert_eq!(order.len(), wanted.len());
        let places: Vec<usize> = (0..order.len()).filter(|at| needs(&order[*at])).collect();
        assert_eq!(places, [2 * AT_ONCE, 2 * AT_ONCE + 1]);
        assert!(super::order(&[], needs).is_empty());
    }
}
