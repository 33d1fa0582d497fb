//! What is read from this host or done to it, whichever engine makes the containers:
//! processes that are held ([`held`], [`process`]), control groups ([`groups`]), directories of
//! a run ([`claim`], [`scratch`]) and the [`janitor`] that takes them away should the tool be
//! killed, what the host sees of a container ([`outside`], with [`first`], [`sentry`] and
//! [`visitor`]), an [`interface`] put into its network, the [`canary`] files that it must not
//! see, and facts about the venue ([`venue`], [`system`]). [`error`] is what can go wrong,
//! [`unseen`] why the host could not look.

pub mod canary;
pub mod claim;
pub mod descriptors;
pub mod error;
pub mod first;
pub mod groups;
pub mod held;
pub mod interface;
pub mod janitor;
pub mod namespaces;
pub mod outside;
pub mod proc;
pub mod process;
pub mod scratch;
pub mod sentry;
pub mod system;
pub mod unseen;
pub mod venue;
pub mod visitor;
