//! Running the inspector on a packet, in a sandbox that was attested.
//!
//! [`stage`] is the order of it: an engine that can be used, evidence that holds here and now
//! ([`evidence`], [`place`]), the packet's own file ([`packet`]), one container of the settings
//! that were attested ([`container`], [`same`]), what stands behind its /in ([`contents`], [`fill`]),
//! the conversation ([`conversation`]), of which every word is checked ([`report`]), and the report
//! beside a [`stamp`] on disk ([`write`]). [`brought`] is what the launcher adds for bundles in the
//! packet, [`room`] what the packet takes, [`error`] what can go wrong.
//!
//! Nothing here reads an item but to copy it, and nothing takes the report as an input.

pub mod brought;
pub mod container;
pub mod contents;
pub mod conversation;
pub mod error;
pub mod evidence;
pub mod fill;
pub mod packet;
pub mod place;
pub mod report;
pub mod room;
pub mod same;
pub mod stage;
pub mod stamp;
pub mod write;
