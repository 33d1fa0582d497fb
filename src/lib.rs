//! tki-attest proves, with evidence that another party can check offline, that
//! a container sandbox denies by default.
//!
//! The code is laid out along the data flow: a Dockerfile becomes an image ([`image`]), a
//! profile becomes a container ([`sandbox`], [`engine`], [`launch`]), an observation becomes
//! evidence ([`attest`]), evidence becomes a decision ([`verify`]), a decision becomes a report
//! ([`report`]). No stage reaches back, and a test says so (`src/walls`). [`host`] is what is
//! read from this host or done to it. [`clean`] removes what an
//! interrupted run left behind, [`trust`] signs, [`pack`]
//! makes evidence packets for the inspector, [`diff`] compares two evidences.

pub mod attest;
pub mod clean;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod deadline;
pub mod diff;
pub mod engine;
pub mod executable;
pub mod exit;
pub mod failure;
pub mod files;
pub mod host;
pub mod image;
pub mod inspect;
pub mod launch;
pub mod pack;
pub mod packet;
pub mod random;
pub mod report;
pub mod sandbox;
pub mod state;
pub mod survey;
pub mod trust;
pub mod verify;
#[cfg(test)]
mod walls;
