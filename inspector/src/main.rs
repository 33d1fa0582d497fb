//! The entry point of the shipped form: no C library, no standard library.
#![no_std]
#![no_main]

// Pages that are never touched cost nothing; the sandbox's limit is what holds.
tki_inside::program!(
    "tki-inspector",
    mapped tki_inspector::caps::MOST_USED as usize,
    tki_inspector::errand::run
);
