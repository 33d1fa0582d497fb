//! The inspector's filter: what reading a packet and writing a report takes, and nothing else.
//! The prober loads the same filter in a child and tries every call against it.

use crate::filter::{self, Reasoned};
use crate::sys::{Instruction, Result};
use alloc::vec::Vec;

/// What the inspector does, by number, with the reason.
pub const ALLOWED: &[Reasoned] = &[
    (0, "read: items, and the launcher's line"),
    (1, "write: reports, and lines to the launcher"),
    (3, "close: each file once it was read"),
    (
        74,
        "fsync: a report is on its device before its digest is told",
    ),
    (228, "clock_gettime: the launcher's deadline"),
    (231, "exit_group: the end"),
    (257, "openat: items below /in, reports below /out"),
    (262, "newfstatat: an item is a regular file"),
];

/// What it tries once to be told that it cannot; anything else that is not allowed ends it.
pub const DENIED: &[Reasoned] = &[
    (59, "execve: the self-check asks whether it is denied"),
    (322, "execveat: the same through a descriptor"),
];

/// The filter.
pub fn program() -> Vec<Instruction> {
    filter::allowing(ALLOWED, DENIED)
}

/// Stacks it on this thread.
pub fn stack() -> Result {
    filter::stack(&program())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a filter answers to a call, by interpreting it as the kernel does.
    fn answer(program: &[Instruction], arch: u32, number: u32) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                0x20 => accumulator = [number, arch][usize::from(step.value == 4)],
                0x15 => {
                    let jump = match accumulator == step.value {
                        true => step.jump_true,
                        false => step.jump_false,
                    };
                    at += usize::from(jump);
                }
                0x06 => return step.value,
                code => panic!("no instruction of the filter: {code:#x}"),
            }
        }
    }

    #[test]
    fn every_call_that_is_not_listed_ends_the_process() {
        const X86_64: u32 = 0xc000_003e;
        let program = program();
        for number in 0..1024 {
            let is_listed = |list: &[Reasoned]| list.iter().any(|(other, _)| *other == number);
            let wanted = match (is_listed(ALLOWED), is_listed(DENIED)) {
                (true, _) => 0x7fff_0000,
                (_, true) => 0x0005_0001,
                (false, false) => 0x8000_0000,
            };
            assert_eq!(answer(&program, X86_64, number), wanted, "{number}");
            assert_eq!(answer(&program, X86_64, number | 0x4000_0000), 0x8000_0000);
            assert_eq!(answer(&program, 0x4000_0003, number), 0x8000_0000);
        }
    }
}
