//! A run. [`one`] is all of it, from the choice of an engine to the evidence on disk, [`answer`]
//! the request that it answers. [`run`] leads the part between and tells what happens
//! ([`events`]); [`trial`] is what is launched,
//! for the run itself and for each of the [`controls`], [`relax`] what a control takes away,
//! [`container`] the launch and [`conversation`] the talk with the prober. Some controls
//! need a [`neighbour`], and a kernel that is not known a [`scout`] beforehand.
//! [`whereabouts`] tells whether the engine is on this host. [`bundle`] writes everything
//! down. [`memory`] spares the next run what this one has tried in vain. Without writing
//! anything down, [`offers`] says what an engine offers, and [`minimal`] finds the smallest
//! profile under which everything passes.

pub mod answer;
pub mod bundle;
pub mod container;
pub mod controls;
pub mod conversation;
pub mod error;
pub mod events;
pub mod memory;
pub mod minimal;
pub mod neighbour;
pub mod offers;
pub mod one;
pub mod relax;
pub mod run;
pub mod scout;
pub mod trial;
pub mod whereabouts;
