//! The entry point, in two forms: freestanding (shipped) and ordinary (tests).
#![cfg_attr(feature = "freestanding", no_std, no_main)]

#[cfg(feature = "freestanding")]
tki_inside::program!("tki-prober", 24 << 20, tki_prober::run);

#[cfg(not(feature = "freestanding"))]
fn main() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let arguments: Vec<Vec<u8>> = std::env::args_os()
        .skip(1)
        .map(OsStringExt::into_vec)
        .collect();
    let environment: Vec<Vec<u8>> = std::env::vars_os()
        .map(|(key, value)| [key.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    let environment: Vec<&[u8]> = environment.iter().map(Vec::as_slice).collect();
    std::process::exit(tki_prober::run(&arguments, &environment));
}
