//! Write channels that a file names, each probed with an actual call: [`form`]
//! is the file, [`kinds`] what it may hold, [`file`], [`http`], [`postgres`], [`docker`] and
//! [`command`] probe one kind of route each, [`questions`] what follows from all of them, and
//! [`verdict`] leads. Nothing is changed on a route that was not permitted.

pub mod command;
pub mod docker;
pub mod file;
pub mod form;
pub mod http;
pub mod kinds;
pub mod postgres;
pub mod questions;
pub mod result;
mod socket;
pub mod verdict;

pub use result::{Permit, RouteResult};
pub use verdict::{RouteSurvey, survey};
