//! The evidence format of tki-attest: what was asked, what was seen, what
//! follows from it. The same pure functions serve `run`, which writes evidence,
//! and `verify`, which trusts nothing in it that can be computed again.
//!
//! # Terminology
//!
//! - **Probe**: a named question to the sandbox (`PR-NET-1`), made of one or
//!   more *operations*, each with an *expectation*. The [`catalogue`] lists them.
//! - **Phase**: `engine` (only what the engine enforces stands) or `locked`
//!   (after the inspector stacked its own seccomp filter).
//! - **Observation**: what the kernel answered to one operation in one phase.
//!   The inspector reports observations and never verdicts.
//! - **Raw fact**: a kernel text (mount table, status, …) kept verbatim.
//! - **Verdict**: `PASS`, `FAIL` or `UNPROVEN`, derived by [`judge`] from
//!   observations and raw facts.
//! - **Control**: an extra container in which one boundary is relaxed, so that
//!   the probe for it must *flip*: come to FAIL.
//! - **Witness**: an independent view of the same container: `inside`,
//!   `outside`, `configured`.
//! - **Venue**: where the run took place: `vps`, `ci` or `dev`.
//! - **Bundle**: the evidence JSON, the artifacts beside it and, if it was
//!   signed, the envelope with the signatures.
//! - **Request**: what the verifying party asks for before a run.
//! - **Policy**: what a verifying party demands beyond the built-in bar.
//! - **Statement**: what a signature is about, in in-toto's form.
//! - **Verification**: a decision with every check that led to it.
//!
//! Without the `std` feature only the catalogue, the fact parsers and the wire
//! format remain, which is all that the inspector links.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

/// The profile that denies what is on the floor and allows the rest (4a).
pub const TARGETED_DENY: &str = include_str!("../../seccomp/targeted-deny.json");
/// The profile that allows what the inspector needs and denies the rest (4b).
pub const DENY_BY_DEFAULT: &str = include_str!("../../seccomp/deny-by-default.json");

pub mod catalogue;
pub mod controls;
pub mod errno;
pub mod facts;
pub mod netlink;
pub mod observation;
pub mod relaxation;
pub mod syscalls;
pub mod wire;

#[cfg(feature = "std")]
pub mod binding;
#[cfg(feature = "std")]
pub mod calibrate;
#[cfg(feature = "std")]
pub mod coherent;
#[cfg(feature = "std")]
pub mod command_line;
#[cfg(feature = "std")]
pub mod derive;
#[cfg(feature = "std")]
pub mod described;
#[cfg(feature = "std")]
pub mod evidence;
#[cfg(feature = "std")]
pub mod fields;
#[cfg(feature = "std")]
pub mod judge;
#[cfg(feature = "std")]
pub mod kernel;
#[cfg(feature = "std")]
pub mod matrix;
#[cfg(feature = "std")]
pub mod policy;
#[cfg(feature = "std")]
pub mod remembered;
#[cfg(feature = "std")]
pub mod request;
#[cfg(feature = "std")]
pub mod schema;
#[cfg(feature = "std")]
pub mod seccomp;
#[cfg(feature = "std")]
pub mod settings;
#[cfg(feature = "std")]
pub mod stamp;
#[cfg(feature = "std")]
pub mod statement;
#[cfg(feature = "std")]
pub mod strict;
#[cfg(feature = "std")]
pub mod time;
#[cfg(feature = "std")]
pub mod transcript;
#[cfg(feature = "std")]
pub mod venue;
#[cfg(feature = "std")]
pub mod verification;
#[cfg(feature = "std")]
pub mod witness;

#[cfg(all(test, feature = "std"))]
mod sizes;
