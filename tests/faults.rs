//! Attesting when something is wrong. Each fault has its own message, its
//! stable code and its exit code; none is ever a PASS, and none leaves
//! anything behind.

/// Containers that do not behave as the prober does, or are killed.
mod container;
/// Engines that are not there, not ours, too old or not engines.
mod engine;
/// Files that cannot be read or written.
mod files;
/// Engines that never answer, or never stop.
mod floods;
/// Sockets of other users.
mod peers;
/// Engines that name a process which is not the container's.
mod processes;
