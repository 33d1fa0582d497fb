//! The evidence format of tki-attest.
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;
