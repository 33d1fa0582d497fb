//! A run. [`run`] leads it; [`sides`], [`scratch`] and [`canary`] prepare what lies
//! outside; [`container`] launches one container and talks with its inspector, for the
//! run itself and for each of the [`controls`], some of which need a [`neighbour`];
//! [`outside`] is the host's own
//! look at it, for which it may need a [`visitor`], or at the [`sentry`] that runs its kernel,
//! of which a [`scout`] tells beforehand; [`venue`] looks at the host;
//! [`bundle`] writes everything down. [`memory`] spares the next run what this one has
//! tried in vain. [`janitor`] is there should the tool be killed in the middle.

pub mod bundle;
pub mod canary;
pub mod container;
pub mod controls;
pub mod first;
pub mod interface;
pub mod janitor;
pub mod memory;
pub mod neighbour;
pub mod outside;
pub mod run;
pub mod scout;
pub mod scratch;
pub mod sentry;
pub mod sides;
pub mod venue;
pub mod visitor;
pub mod whereabouts;
