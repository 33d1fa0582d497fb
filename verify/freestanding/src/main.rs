//! Bytes on standard input, a decision on standard output, and nothing else: no C library, no
//! standard library, no file. Shows that the core of `tki-verify` needs none of them.
//!
//! The input is a row of parts, each a name and its bytes, both with their length before them
//! (32 bits, little-endian): `evidence`, `envelope`, `signers`, `now` (seconds since 1970 in
//! decimal), and every artifact by its path. The output is what [`report`] writes.
#![no_std]
#![no_main]

extern crate alloc;

mod memory;
mod report;
mod start;
