//! What people see: [`progress`] while something runs, a [`failure`] where it ends, tables when it is done
//! ([`evidence`], [`decision`], [`inspection`], [`diff`], [`probes`], [`seccomp`]), files for others ([`markdown`],
//! [`junit`], [`binding`], all through [`verification`]), and only text that is safe to print
//! (crate `tki_text`).

pub mod binding;
pub mod decision;
pub mod diff;
pub mod engines;
pub mod evidence;
pub mod failure;
pub mod inspection;
pub mod junit;
pub mod markdown;
pub mod pack;
pub mod probes;
pub mod progress;
pub mod seccomp;
pub mod survey;
pub mod table;
pub mod verification;
