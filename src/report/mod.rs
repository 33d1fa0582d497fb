//! What people see: [`progress`] while something runs, tables when it is done
//! ([`evidence`], [`decision`], [`probes`], [`seccomp`]), and only text that is safe to print.

pub mod decision;
pub mod engines;
pub mod evidence;
pub mod probes;
pub mod progress;
pub mod seccomp;
pub mod survey;
pub mod table;
pub mod text;
