//! The sandbox as one value: [`profile`] says what it is, [`settings`] turns it
//! into what an engine is asked for. Its filter is read by [`seccomp`], judged
//! by [`lint`], told by [`explain`] and made smaller by [`minimise`]. [`error`] is what can be wrong.

pub mod error;
pub mod explain;
pub mod limit;
pub mod lint;
pub mod minimise;
pub mod profile;
pub mod seccomp;
pub mod settings;
