//! What another operator needs to run the sandbox: [`facts`] are the digests of
//! this build, [`template`] fills them in, and [`operator`], [`ci`] and
//! [`kubernetes`] are one audience each, with their texts beside
//! them. [`why`] is the reason why it is needed, [`write`] puts it on disk, [`offer`] is
//! what a BLOCKED command says of it, and [`error`] is what can go wrong.

pub mod ci;
pub mod contents;
pub mod error;
pub mod facts;
pub mod kubernetes;
pub mod offer;
pub mod operator;
pub mod template;
pub mod why;
pub mod write;

pub use contents::{Audience, Packet};
pub use facts::Facts;
pub use why::Why;
pub use write::Written;
