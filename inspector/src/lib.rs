//! The offline inspector: what an evidence packet claims, and what its evidence comes to.
//!
//! A **packet** ([`packet`]) is a directory: items, each with its digest and its origin, and
//! claims, each with the places that it rests on. A claim either **says** what a document
//! states, which a quote shows, or how the world **is**, which only a fact shows: a value in a
//! JSON document, the exit status of a recorded step, an accepted bundle. What its evidence
//! comes to is an [`words::Adequacy`], decided by the first [`rules::Rule`] that fits. Statuses
//! stand on a ladder ([`status`]).
//!
//! The report ([`report`]) speaks of each claim by itself. It has no word for the packet as a
//! whole, lets nothing go on, and no program of the workspace takes it as an input.
//!
//! [`caps`] says how much a packet may hold, and [`wire`] what launcher and inspector say to
//! each other.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod caps;
pub mod ids;
pub mod packet;
pub mod path;
pub mod quote;
pub mod report;
pub mod rules;
#[cfg(feature = "std")]
pub mod schema;
pub mod status;
pub mod wire;
pub mod words;
