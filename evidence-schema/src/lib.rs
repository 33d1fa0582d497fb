//! The evidence format of tki-attest: what was asked, what was seen, what
//! follows from it. The same pure functions serve `run`, which writes evidence,
//! and `verify`, which trusts nothing in it that can be computed again.
//!
//! # Terminology
//!
//! - **Probe**: a named question to the sandbox (`PR-NET-1`), made of one or
//!   more *operations*, each with an *expectation*. The [`catalogue`] lists them.
//! - **Phase**: `engine` (only what the engine enforces stands) or `locked`
//!   (after the prober stacked its own seccomp filter).
//! - **Observation**: what the kernel answered to one operation in one phase.
//!   The prober reports observations and never verdicts.
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
//! Without features the crate holds only the catalogue, the fact parsers and the wire
//! format, which is all that the prober links. `judge` adds everything that follows from
//! what was recorded; like the rest it needs `alloc` and no standard library. `std` adds the
//! JSON Schemas.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

/// The profile that denies what is on the floor and allows the rest (4a).
pub const TARGETED_DENY: &str = include_str!("../../seccomp/targeted-deny.json");
/// The profile that allows what the prober needs and denies the rest (4b).
pub const DENY_BY_DEFAULT: &str = include_str!("../../seccomp/deny-by-default.json");

pub mod catalogue;
#[cfg(feature = "judge")]
pub mod controller;
pub mod controls;
pub mod engine_kind;
pub mod errno;
pub mod facts;
pub mod netlink;
pub mod observation;
pub mod relaxation;
pub mod syscalls;
pub mod wire;

#[cfg(feature = "judge")]
pub mod binding;
#[cfg(feature = "judge")]
pub mod calibrate;
#[cfg(feature = "judge")]
pub mod coherent;
#[cfg(feature = "judge")]
pub mod command_line;
#[cfg(feature = "judge")]
pub mod derive;
#[cfg(feature = "judge")]
pub mod described;
#[cfg(feature = "judge")]
pub mod evidence;
#[cfg(feature = "judge")]
pub mod fields;
#[cfg(feature = "judge")]
pub mod judge;
#[cfg(feature = "judge")]
pub mod kernel;
#[cfg(feature = "judge")]
pub mod matrix;
#[cfg(feature = "judge")]
pub mod policy;
#[cfg(feature = "judge")]
pub mod remembered;
#[cfg(feature = "judge")]
pub mod request;
#[cfg(feature = "std")]
pub mod schema;
#[cfg(feature = "judge")]
pub mod seccomp;
#[cfg(feature = "judge")]
pub mod settings;
#[cfg(feature = "judge")]
pub mod stamp;
#[cfg(feature = "judge")]
pub mod statement;
#[cfg(feature = "judge")]
pub mod step_code;
#[cfg(feature = "judge")]
pub mod strict;
#[cfg(feature = "judge")]
pub mod time;
#[cfg(feature = "judge")]
pub mod transcript;
#[cfg(feature = "judge")]
pub mod venue;
#[cfg(feature = "judge")]
pub mod verification;
#[cfg(feature = "judge")]
pub mod witness;

#[cfg(all(test, feature = "std"))]
mod sizes;
