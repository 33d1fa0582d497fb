//! What Docker and Podman have in common: the API of Docker's, spoken over a
//! unix socket or a port.

pub mod address;
pub mod ask;

pub mod client;
pub mod connect;
pub mod container;
pub mod contexts;
pub mod dial;
pub mod endpoint;
pub mod fault;
pub mod fill;

pub mod login;
pub mod meter;

pub mod ping;
pub mod raw;
pub mod tls;
pub mod tunnel;
pub mod volumes;
pub mod words;

pub use client::Api;
