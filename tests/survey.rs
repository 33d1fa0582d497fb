//! Surveys: real engines, a real database and real refusals; fakes only for
//! what no real part can be made to show.

/// Engines of this host, and those that cannot be used.
mod engines;
/// Write routes of a file.
mod routes;
/// Servers that send secrets back, and those that must not get them.
mod secrets;
/// Claims of venues against what is seen.
mod venues;

use crate::common::{Said, run, tool};
use serde_json::Value;

/// `tki-attest survey` with these arguments.
fn survey(arguments: &[&str]) -> Said {
    run(tool().arg("survey").args(arguments))
}

/// The same for a program.
#[track_caller]
fn survey_json(arguments: &[&str], status: i32) -> Value {
    let said = survey(&[arguments, &["--format", "json"]].concat());
    assert_eq!(said.status, status, "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// The surface whose name begins like this.
#[track_caller]
fn surface<'a>(survey: &'a Value, name: &str) -> &'a Value {
    let surfaces = survey["surfaces"].as_array().unwrap();
    let found = surfaces
        .iter()
        .find(|surface| surface["surface"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("no {name} in {survey}"))
}

/// All calls of a surface or route as text.
fn calls(value: &Value) -> String {
    let list = value.get("evidence").or(value.get("calls")).unwrap();
    let line = |call: &Value| {
        let (call, result) = (call["call"].as_str(), call["result"].as_str());
        format!("{} → {}\n", call.unwrap(), result.unwrap())
    };
    list.as_array().unwrap().iter().map(line).collect()
}
