//! tki-attest proves, with evidence that another party can check offline, that
//! a container sandbox denies by default.
//!
//! The way of the data is the layout of the code: a Dockerfile becomes an image
//! ([`image`]), a profile becomes a container, an observation becomes evidence,
//! evidence becomes a decision, a decision becomes a report. No stage reaches back.

pub mod exit;
pub mod failure;
pub mod image;
