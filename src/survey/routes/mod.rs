//! Write channels that a file names, each probed with an actual call: [`form`]
//! is the file, [`file`], [`http`], [`postgres`], [`docker`] and [`command`] are
//! the kinds of routes, [`questions`] what follows from all of them, and
//! [`verdict`] leads. Nothing is changed on a route that was not permitted.

pub mod command;
pub mod docker;
pub mod file;
pub mod form;
pub mod http;
pub mod postgres;
pub mod questions;
pub mod result;
mod socket;
pub mod verdict;

pub use result::{Permit, RouteResult};
pub use verdict::{RouteSurvey, survey};
