//! What the programs inside the sandbox run on: no C library, no standard library, and only
//! the system calls that each of them needs.
//!
//! [`sys`] is the list of those calls, [`io`] reads and writes files with them, [`heap`] gives
//! memory, [`filter`] puts a filter of the program's own on top of the engine's, [`narrow`] is
//! the inspector's, which the prober sweeps, and
//! [`selfcheck`] tells whether this is the sandbox at all. With the feature `freestanding` the
//! crate also brings what a program without a standard library starts with ([`program!`]).
//! Nothing in here opens a socket, starts a program, makes a process or looks into another
//! one: what the prober needs for that is its own.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

/// The exit status of a program of ours that was executed with `exec-marker`, which it should
/// not have been. Above every errno, so that a child can report either.
pub const EXEC_MARKER_STATUS: i32 = 200;

pub mod filter;
pub mod heap;
pub mod io;
pub mod narrow;
pub mod selfcheck;
#[cfg(feature = "freestanding")]
pub mod start;
pub mod sys;
