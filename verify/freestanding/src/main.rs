//! Bytes on standard input, a decision on standard output, and nothing else: no C library, no
//! standard library, no file. Shows that the core of `tki-verify` needs none of them.
//!
//! The input is a row of parts, each a name and its bytes, both with their length before them
//! (32 bits, little-endian): `evidence`, `envelope`, `signers`, `now` (seconds since 1970 in
//! decimal), and every artifact by its path. The output is what [`report`] writes.
#![no_std]
#![no_main]

extern crate alloc;

mod report;

use alloc::vec::Vec;
use tki_inside::{io, sys};

// Pages that are never touched cost nothing.
tki_inside::program!("tki-verify-freestanding", 512 << 20, run);

fn run(_: &[&[u8]], _: &[&[u8]]) -> i32 {
    let mut input = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match sys::read(0, &mut piece) {
            Ok(0) => break,
            Ok(read) => input.extend_from_slice(&piece[..read]),
            Err(_) => return 2,
        }
    }
    match io::write_all(1, report::report(&input).as_bytes()) {
        Ok(()) => 0,
        Err(_) => 2,
    }
}
