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
//! The way of the data: [`errand`] is the program. After [`selfcheck`] has found the sandbox,
//! [`guard`] lets [`reader`] open each item once; [`provenance`] looks where items are from,
//! [`bundle`] verifies evidence again, [`record`] finds documents that contradict each other,
//! [`places`] looks where claims point to, [`adequacy`] decides, [`audit`] and [`compose`] make
//! the report, and [`write`] the files. [`inspect`] is that order.
//!
//! [`caps`] says how much a packet may hold, and [`wire`] what launcher and inspector say to
//! each other. [`matrix`] is the table of the acceptance tests.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod adequacy;
pub mod audit;
pub mod binding;
pub mod bundle;
pub mod caps;
pub mod compose;
pub mod errand;
pub mod guard;
pub mod ids;
pub mod inspect;
pub mod markdown;
pub mod matrix;
pub mod packet;
pub mod path;
pub mod places;
pub mod provenance;
pub mod quote;
pub mod reader;
pub mod record;
pub mod report;
pub mod rules;
#[cfg(feature = "std")]
pub mod schema;
pub mod selfcheck;
pub mod status;
pub mod system;
pub mod wire;
pub mod words;
pub mod write;
