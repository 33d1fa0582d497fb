//! The walls between the modules of this crate, checked: which module may import which, and
//! that no submodules of a folder import each other in a circle. ARCHITECTURE.md prints the
//! table.
//!
//! [`text`] finds every path in a file, [`tree`] follows `mod` declarations and tells which
//! module a path leads to, [`rules`] is the table, [`check`] holds the one against the other,
//! and [`cuts`] is what the walls were put up against. [`habits`] reads the same texts for what
//! errors look like.
//!
//! What counts: `use` in all its forms, paths in code, in macros and in attributes, relative
//! paths, and re-exports, of which a path through one counts as a path to the module that it
//! leads to. What does not: comments. Code for tests is held to the table, so that a stage can
//! be lifted out together with its tests; it may close a circle inside a folder, and so may a
//! folder's own re-exports of what is in it.

mod check;
mod cuts;
mod habits;
mod rules;
mod text;
mod tree;

mod habits_tests;
mod tests;
