//! Other ways into the same kernel: the 32-bit table, the x32 table, and every
//! number of the native table.

use super::{Context, Operation, in_child};
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, Mapping, Result};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::arch::asm;
use core::ops::Range;
use tki_evidence::catalogue::floor;
use tki_evidence::{errno, syscalls};
use tki_inside::io;

/// XP-ABI-I386.
pub const I386: &[Operation] = &[
    ("int 0x80 getpid", |_| foreign(|| int80(20, 0, 0))),
    // socketcall(SYS_SOCKET, nowhere)
    ("int 0x80 socketcall", |_| {
        foreign(|| int80(102, 1, u32::MAX))
    }),
    ("int 0x80 socketcall(AF_ALG)", |_| foreign(socketcall_alg)),
];

/// XP-ABI-X32.
pub const X32: &[Operation] = &[
    ("x32 getpid", |_| foreign(|| x32(39))),
    ("x32 socket", |_| foreign(|| x32(41))),
];

/// XP-ABI-SWEEP.
pub const SWEEP: &[Operation] = &[("sweep", sweep)];

/// A call through the 32-bit entry of the kernel.
fn int80(number: u32, first: u32, second: u32) -> Result {
    let result: i32;
    // SAFETY: getpid has no arguments, and socketcall gets a pointer to where no memory can
    // be, or to a page that is only read. rbx is saved because the compiler keeps it.
    unsafe {
        asm!("xchg {first:r}, rbx", "int 0x80", "xchg {first:r}, rbx",
            first = inout(reg) u64::from(first) => _, inlateout("eax") number => result,
            in("ecx") second, lateout("r8") _, lateout("r9") _, lateout("r10") _,
            lateout("r11") _);
    }
    if (-4095..0).contains(&result) {
        Err(Errno(-result))
    } else {
        Ok(result as usize)
    }
}

/// socketcall(SYS_SOCKET, {AF_ALG, a type that does not exist, 0}): the arguments are behind
/// a pointer, where no filter sees them, and the kernel refuses the type before it looks for
/// a module.
fn socketcall_alg() -> Result {
    const SOCKETCALL: u32 = 102;
    const SYS_SOCKET: u32 = 1;
    let (_arguments, low) = Mapping::low(&[38, 15, 0])?;
    int80(SOCKETCALL, SYS_SOCKET, low)
}

fn x32(number: usize) -> Result {
    // SAFETY: no valid pointer or descriptor among the arguments.
    unsafe { sys::raw(0x4000_0000 | number, [usize::MAX; 6]) }
}

/// A filter kills for a foreign entry; a kernel without it faults. Both happen
/// to a copy of this process.
fn foreign(attempt: impl Fn() -> Result) -> Outcome {
    const SIGSEGV: i32 = 11;
    const SIGSYS: i32 = 31;
    const REACHED: i32 = 201;
    let ended = in_child(|| {
        sys::leave_no_core();
        match attempt() {
            Err(errno @ (Errno::EPERM | Errno::ENOSYS)) => errno.0,
            _ => REACHED,
        }
    });
    match ended {
        Ok(Ended::Exit(REACHED)) => Outcome::attempt(Ok(0), &[]),
        Ok(Ended::Exit(number)) => Outcome::attempt(Err::<i64, _>(Errno(number)), &[]),
        Ok(Ended::Signal(number @ (SIGSYS | SIGSEGV))) => Outcome::killed(number),
        Ok(Ended::Signal(number)) => Outcome::signal(number),
        Err(errno) => Outcome::not_reached("fork", errno),
    }
}

/// Numbers beyond the last known one are tried too.
const END: u32 = syscalls::BEYOND + 10;
const _: () = assert!(END < 1024, "the answers must fit into a page");

const MSGGET: u32 = 68;
const SETSID: usize = 112;
const VHANGUP: u32 = 153;

/// Answers that are neither an errno nor a signal.
const OK: i32 = 0;
const SKIPPED: i32 = -1;

fn sweep(_: &Context) -> Outcome {
    let skipped: Vec<u32> = floor::NOT_TRIED
        .iter()
        .filter_map(|name| syscalls::number(name))
        .collect();
    all_answers(END, &skipped, |number| {
        let mut arguments = [usize::MAX; 6];
        if number == MSGGET {
            // Every flag would include the one that makes a queue.
            arguments[1] = 0;
        }
        if number == VHANGUP {
            // A session of its own has no terminal that could be hung up.
            // SAFETY: setsid has no arguments.
            let _ = unsafe { sys::raw(SETSID, [0; 6]) };
        }
        // SAFETY: no pointer, descriptor, flag or size is ever this, so the kernel has
        // nothing to write to; the calls that take no arguments are harmless or on the
        // list of those not tried.
        unsafe { sys::raw(number as usize, arguments) }
    })
}

/// What came back for each number below `end`, as `number=answer`. The attempts are made by
/// copies of this process: a filter may end one, and the next goes on after it.
pub fn all_answers(end: u32, skipped: &[u32], attempt: fn(u32) -> Result) -> Outcome {
    let mut answers: Vec<String> = Vec::new();
    while (answers.len() as u32) < end {
        let answer = |number: u32| match skipped.contains(&number) {
            true => SKIPPED,
            false => attempt(number).map_or_else(|errno| errno.0, |_| OK),
        };
        let from = answers.len() as u32;
        match some_answers(from..end, answer, &mut answers) {
            Err(errno) => return Outcome::not_reached("fork", errno),
            // The copy went with the call that it was making.
            Ok(ended) if (answers.len() as u32) < end => answers.push(match ended {
                Ended::Exit(_) => "exit".into(),
                Ended::Signal(number) => errno::signal_name(number),
            }),
            Ok(_) => {}
        }
    }
    let entries: Vec<String> = answers
        .iter()
        .enumerate()
        .map(|(number, answer)| alloc::format!("{number}={answer}"))
        .collect();
    Outcome::fact(entries.join(" "))
}

/// A copy of this process tries some numbers and tells what came back.
fn some_answers(
    numbers: Range<u32>,
    answer: impl Fn(u32) -> i32,
    answers: &mut Vec<String>,
) -> Result<Ended> {
    let mut bytes = vec![0u8; 4 * numbers.len()];
    let (reader, writer) = sys::pipe()?;
    let pid = match sys::fork() {
        Err(errno) => {
            sys::close(reader);
            sys::close(writer);
            return Err(errno);
        }
        Ok(None) => {
            sys::leave_no_core();
            for number in numbers {
                if io::write_all(writer, &answer(number).to_ne_bytes()).is_err() {
                    break;
                }
            }
            sys::exit(0)
        }
        Ok(Some(pid)) => pid,
    };
    sys::close(writer);
    // All the answers fit into a pipe of one page, and a reader that takes them one by one is woken
    // up for each.
    let ended = sys::wait(pid);
    let mut filled = 0;
    while filled < bytes.len() {
        match sys::read(reader, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    sys::close(reader);
    for answer in bytes[..filled / 4 * 4].chunks_exact(4) {
        let answer = i32::from_ne_bytes([answer[0], answer[1], answer[2], answer[3]]);
        answers.push(match answer {
            OK => "ok".into(),
            SKIPPED => "skipped".into(),
            number => errno::name(number),
        });
    }
    ended
}
