//! Filters that a program stacks on whatever the engine loaded. Filters only ever add up, so
//! this can deny more and never less.

use crate::sys::{self, Instruction, Result};
use alloc::vec;
use alloc::vec::Vec;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO_EPERM: u32 = 0x0005_0001;
const ALLOW: u32 = 0x7fff_0000;

const ARCH_X86_64: u32 = 0xc000_003e;
/// The bit that the x32 table sets in every number.
pub const X32_BIT: u32 = 0x4000_0000;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_FIRST_ARGUMENT: u32 = 16;

/// `clone`, of which only the flags decide.
pub const CLONE: u32 = 56;
/// The flags of `clone` that make a namespace.
pub const NAMESPACE_FLAGS: u32 = 0x7e02_0000;

/// A system call by number, with the reason why it stands in a list.
pub type Reasoned = (u32, &'static str);

/// A filter that denies these calls with EPERM, with them every call of another table, and new
/// namespaces; all else stays with the filters below.
pub fn denying(calls: &[Reasoned]) -> Vec<Instruction> {
    let step = |code, jump_true, jump_false, value| Instruction {
        code,
        jump_true,
        jump_false,
        value,
    };
    let mut program = vec![
        // A system call of another architecture has other numbers: it ends here.
        step(LOAD, 0, 0, OFFSET_ARCH),
        step(JUMP_EQUAL, 1, 0, ARCH_X86_64),
        step(RETURN, 0, 0, KILL_PROCESS),
        step(LOAD, 0, 0, OFFSET_NUMBER),
        // The same architecture counts x32 calls from another base.
        step(JUMP_AT_LEAST, 0, 1, X32_BIT),
        step(RETURN, 0, 0, ERRNO_EPERM),
        // A fork is a clone without flags; one with a namespace flag is not.
        step(JUMP_EQUAL, 0, 4, CLONE),
        step(LOAD, 0, 0, OFFSET_FIRST_ARGUMENT),
        step(JUMP_ANY_BIT, 0, 1, NAMESPACE_FLAGS),
        step(RETURN, 0, 0, ERRNO_EPERM),
        step(RETURN, 0, 0, ALLOW),
    ];
    for (number, _) in calls {
        program.push(step(JUMP_EQUAL, 0, 1, *number));
        program.push(step(RETURN, 0, 0, ERRNO_EPERM));
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    program
}

/// A filter that lets these calls through to the filters below, denies those with EPERM and ends
/// the process at any other, with them every call of another table.
pub fn allowing(allowed: &[Reasoned], denied: &[Reasoned]) -> Vec<Instruction> {
    let step = |code, jump_true, jump_false, value| Instruction {
        code,
        jump_true,
        jump_false,
        value,
    };
    let mut program = vec![
        step(LOAD, 0, 0, OFFSET_ARCH),
        step(JUMP_EQUAL, 1, 0, ARCH_X86_64),
        step(RETURN, 0, 0, KILL_PROCESS),
        // The number of an x32 call is none of those below.
        step(LOAD, 0, 0, OFFSET_NUMBER),
    ];
    for (calls, answer) in [(allowed, ALLOW), (denied, ERRNO_EPERM)] {
        for (number, _) in calls {
            program.push(step(JUMP_EQUAL, 0, 1, *number));
            program.push(step(RETURN, 0, 0, answer));
        }
    }
    program.push(step(RETURN, 0, 0, KILL_PROCESS));
    program
}

/// Stacks a filter on this thread.
pub fn stack(program: &[Instruction]) -> Result {
    sys::seccomp_filter(program)
}
