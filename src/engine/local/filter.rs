//! A seccomp profile in Docker's JSON form, compiled to the program that the
//! kernel runs. Engines do this with libseccomp; here it is done in Rust, for
//! the same profile bytes.
//!
//! ```text
//! another architecture, or x32           → end the process
//! the number of a call that rules name   → each rule in its order: conditions, then its action
//!                                          none of them: the default
//! any other number                       → the default
//! ```

use std::collections::BTreeMap;
use tki_evidence::seccomp::{Action, Argument, Comparison, Place, Rule, Rules};
use tki_evidence::strict::StrictError;
use tki_evidence::syscalls;

/// System calls of the x32 ABI have this bit in their number.
const X32_BIT: u32 = 0x4000_0000;
/// What the kernel calls x86-64.
const ARCHITECTURE: u32 = 0xc000_003e;

/// Where the kernel puts the call's number, its architecture and its first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The longest program that the kernel takes.
const MAX_STEPS: usize = 4096;

/// Why a profile cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is no profile.
    #[error(transparent)]
    Malformed(#[from] StrictError),
    /// The kernel does not take it.
    #[error("it takes {0} steps; the kernel takes {MAX_STEPS}")]
    TooManySteps(usize),
    /// No jump reaches beyond one of its rules.
    #[error("it is too long")]
    TooLong,
    /// It asks a process that is not there.
    #[error("it asks a tracer or a supervisor, which there is none")]
    Asks,
}

/// Compiles a profile. Calls of other architectures and of x32 end the process,
/// as they do under an engine when a profile lists only the native one.
pub fn compile(profile: &str) -> Result<Vec<libc::sock_filter>, FilterError> {
    let rules = Rules::parse(profile.as_bytes())?;
    let default = result(rules.default_action, rules.default_errno_number())?;
    let mut program = vec![
        load(NUMBER),
        jump(libc::BPF_JSET, X32_BIT, 0, 1),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    for (number, rules) in by_number(&rules) {
        let decided = decide(&rules, default)?;
        program.push(jump(libc::BPF_JEQ, number, 1, 0));
        program.push(skip(decided.len())?);
        program.extend(decided);
    }
    program.push(end(default));
    match program.len() {
        0..=MAX_STEPS => Ok(program),
        steps => Err(FilterError::TooManySteps(steps)),
    }
}

/// The rules for each call, by its number. A name that this architecture does not have
/// needs none.
fn by_number(rules: &Rules) -> BTreeMap<u32, Vec<&Rule>> {
    let release = rustix::system::uname();
    let reading = rules.read_for(Place::with_kernel(&release.release().to_string_lossy()));
    let numbers = (0..syscalls::BEYOND).filter_map(|number| {
        let found: Vec<&Rule> = reading.rules_for(syscalls::name(number)?).collect();
        (!found.is_empty()).then_some((number, found))
    });
    numbers.collect()
}

/// What happens to one call: always ends.
fn decide(rules: &[&Rule], default: u32) -> Result<Vec<libc::sock_filter>, FilterError> {
    // A rule without conditions makes every other rule for the call needless.
    if let Some(rule) = rules.iter().find(|rule| rule.args.is_empty()) {
        return Ok(vec![end(result(rule.action, rule.errno_number())?)]);
    }
    let mut steps = Vec::new();
    for rule in rules {
        let conditions: Vec<_> = rule.args.iter().map(condition).collect();
        let own = [
            conditions.concat(),
            vec![Step::Is(end(result(rule.action, rule.errno_number())?))],
        ]
        .concat();
        // A condition that is not met leads behind the rule's end.
        for (place, step) in own.iter().enumerate() {
            steps.push(match step {
                Step::Is(step) => *step,
                Step::NotMet => skip(own.len() - place - 1)?,
            });
        }
    }
    steps.push(end(default));
    Ok(steps)
}

/// A step of a rule.
#[derive(Clone, Copy)]
enum Step {
    Is(libc::sock_filter),
    /// On to the next rule.
    NotMet,
}

/// Compares an argument; a program that comes to the end of it has met the condition.
fn condition(argument: &Argument) -> Vec<Step> {
    let low_at = ARGUMENTS + 8 * argument.index;
    let (low, high) = (load(low_at), load(low_at + 4));
    let halves = |value: u64| ((value & 0xffff_ffff) as u32, (value >> 32) as u32);
    let (value, value_high) = halves(argument.value);
    let (two, two_high) = halves(argument.value_two);
    let is = |operation: u32, value: u32, met: u8, not: u8| jump(operation, value, met, not);
    let [equal, greater, reaches] = [libc::BPF_JEQ, libc::BPF_JGT, libc::BPF_JGE];
    // `None` stands for what leads to the next rule.
    let steps: Vec<Option<libc::sock_filter>> = match argument.op {
        Comparison::Equal => vec![
            Some(high),
            Some(is(equal, value_high, 1, 0)),
            None,
            Some(low),
            Some(is(equal, value, 1, 0)),
            None,
        ],
        Comparison::NotEqual => vec![
            Some(high),
            Some(is(equal, value_high, 0, 3)),
            Some(low),
            Some(is(equal, value, 0, 1)),
            None,
        ],
        Comparison::MaskedEqual => vec![
            Some(high),
            Some(and(value_high)),
            Some(is(equal, two_high, 1, 0)),
            None,
            Some(low),
            Some(and(value)),
            Some(is(equal, two, 1, 0)),
            None,
        ],
        Comparison::Greater | Comparison::GreaterOrEqual => vec![
            Some(high),
            Some(is(greater, value_high, 5, 0)),
            Some(is(equal, value_high, 1, 0)),
            None,
            Some(low),
            Some(match argument.op {
                Comparison::Greater => is(greater, value, 1, 0),
                _ => is(reaches, value, 1, 0),
            }),
            None,
        ],
        Comparison::Less | Comparison::LessOrEqual => vec![
            Some(high),
            Some(is(greater, value_high, 1, 0)),
            Some(is(equal, value_high, 1, 4)),
            None,
            Some(low),
            Some(match argument.op {
                Comparison::Less => is(reaches, value, 0, 1),
                _ => is(greater, value, 0, 1),
            }),
            None,
        ],
    };
    let step = |step: Option<libc::sock_filter>| step.map_or(Step::NotMet, Step::Is);
    steps.into_iter().map(step).collect()
}

fn load(at: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

fn and(mask: u32) -> libc::sock_filter {
    step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask)
}

fn jump(operation: u32, value: u32, met: u8, not: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | operation | libc::BPF_K, met, not, value)
}

/// Past so many steps.
fn skip(steps: usize) -> Result<libc::sock_filter, FilterError> {
    let steps = u32::try_from(steps).map_err(|_| FilterError::TooLong)?;
    Ok(step(libc::BPF_JMP | libc::BPF_JA, 0, 0, steps))
}

fn end(result: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, result)
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// The program as bytes, in the kernel's form.
pub fn bytes(program: &[libc::sock_filter]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    bytes
}

/// What the kernel is told to do.
fn result(action: Action, errno: u32) -> Result<u32, FilterError> {
    Ok(match action {
        Action::ScmpActAllow => libc::SECCOMP_RET_ALLOW,
        Action::ScmpActLog => libc::SECCOMP_RET_LOG,
        Action::ScmpActErrno => libc::SECCOMP_RET_ERRNO | errno & libc::SECCOMP_RET_DATA,
        Action::ScmpActKill | Action::ScmpActKillThread => libc::SECCOMP_RET_KILL_THREAD,
        Action::ScmpActKillProcess => libc::SECCOMP_RET_KILL_PROCESS,
        Action::ScmpActTrap => libc::SECCOMP_RET_TRAP,
        Action::ScmpActTrace | Action::ScmpActNotify => return Err(FilterError::Asks),
    })
}

/// A profile as the program that the kernel runs, for `bwrap --seccomp`.
pub fn compiled(profile: &str) -> Result<Vec<u8>, FilterError> {
    Ok(bytes(&compile(profile)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would make of a call.
    fn run(program: &[libc::sock_filter], number: u32, arguments: [u64; 6]) -> u32 {
        let word = |at: u32| match at {
            NUMBER => number,
            ARCHITECTURE_AT => ARCHITECTURE,
            at => {
                let argument = arguments[((at - ARGUMENTS) / 8) as usize];
                (argument >> (((at - ARGUMENTS) % 8) * 8)) as u32
            }
        };
        let (mut at, mut held) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            let code = u32::from(step.code);
            match code & 0x07 {
                libc::BPF_LD => held = word(step.k),
                libc::BPF_ALU => held &= step.k,
                libc::BPF_RET => return step.k,
                _ => {
                    let met = match code & 0xf0 {
                        libc::BPF_JA => {
                            at += step.k as usize;
                            continue;
                        }
                        libc::BPF_JEQ => held == step.k,
                        libc::BPF_JGT => held > step.k,
                        libc::BPF_JGE => held >= step.k,
                        _ => held & step.k != 0,
                    };
                    at += usize::from(if met { step.jt } else { step.jf });
                }
            }
        }
    }

    fn errno(number: u32) -> u32 {
        libc::SECCOMP_RET_ERRNO | number
    }

    #[test]
    fn both_built_in_profiles_compile() {
        for text in [tki_evidence::TARGETED_DENY, tki_evidence::DENY_BY_DEFAULT] {
            for text in [text, &tki_evidence::seccomp::marked(text).unwrap()] {
                let program = compile(text).unwrap();
                assert!(program.len() > 50, "{}", program.len());
                assert_eq!(bytes(&program).len(), program.len() * 8);
            }
        }
    }

    /// What is compiled is what is read: every call, by number.
    #[test]
    fn the_program_does_what_the_profile_says() {
        use tki_evidence::seccomp::About;
        for text in [tki_evidence::TARGETED_DENY, tki_evidence::DENY_BY_DEFAULT] {
            let rules = Rules::parse(text.as_bytes()).unwrap();
            let reading = rules.read_for(Place::default());
            let program = compile(text).unwrap();
            for number in 0..syscalls::BEYOND {
                let name = syscalls::name(number).unwrap_or("unknown");
                // The second is TIOCSTI with high bits, the last has every flag.
                let values = [0, 0xffff_0000_5412, u64::MAX];
                let results = values.map(|value| run(&program, number, [value; 6]));
                match reading.about(name) {
                    About::Denied => assert_eq!(results, [errno(1); 3], "{name}"),
                    About::Allowed => {
                        assert_eq!(results, [libc::SECCOMP_RET_ALLOW; 3], "{name}");
                    }
                    About::Depends => assert!(
                        results.contains(&errno(1)) && results.contains(&libc::SECCOMP_RET_ALLOW),
                        "{name}"
                    ),
                }
            }
            let killed = libc::SECCOMP_RET_KILL_PROCESS;
            assert_eq!(run(&program, X32_BIT | 1, [0; 6]), killed);
        }
    }

    /// Every comparison, around the places where one half of 64 bits decides.
    #[test]
    fn arguments_are_compared_as_64_bits() {
        let values = [0, 1, 2, 0xffff_ffff, 1 << 32, (1 << 32) + 1, 3 << 32];
        type Holds = fn(u64, u64) -> bool;
        let operations: [(&str, Holds); 7] = [
            ("EQ", |a, b| a == b),
            ("NE", |a, b| a != b),
            ("LT", |a, b| a < b),
            ("LE", |a, b| a <= b),
            ("GT", |a, b| a > b),
            ("GE", |a, b| a >= b),
            ("MASKED_EQ", |a, b| a & b == 1),
        ];
        for (name, holds) in operations {
            for wanted in values {
                let text = format!(
                    r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
                    {{"names":["bpf"],"action":"SCMP_ACT_ERRNO","errnoRet":7,"args":[
                     {{"index":2,"value":{wanted},"valueTwo":1,"op":"SCMP_CMP_{name}"}},
                     {{"index":5,"value":9,"op":"SCMP_CMP_EQ"}}]}},
                    {{"names":["bpf"],"action":"SCMP_ACT_ERRNO","errnoRet":8,"args":[
                     {{"index":0,"value":3,"op":"SCMP_CMP_EQ"}}]}}]}}"#
                );
                let program = compile(&text).unwrap();
                let bpf = syscalls::number("bpf").unwrap();
                for value in values {
                    let seen = run(&program, bpf, [0, 0, value, 0, 0, 9]);
                    let wanted = match holds(value, wanted) {
                        true => errno(7),
                        false => libc::SECCOMP_RET_ALLOW,
                    };
                    assert_eq!(seen, wanted, "{value} {text}");
                    assert_eq!(run(&program, bpf, [3, 0, value, 0, 0, 0]), errno(8));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_refused() {
        for text in [
            r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#,
            r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
                {"names":["bpf"],"action":"SCMP_ACT_TRACE"}]}"#,
        ] {
            assert_eq!(compile(text), Err(FilterError::Asks));
        }
        let rule = r#"{"names":["bpf"],"action":"SCMP_ACT_ERRNO","args":[
            {"index":0,"value":3,"op":"SCMP_CMP_EQ"}]}"#;
        let rules = vec![rule; 700].join(",");
        let long = format!(r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{rules}]}}"#);
        let refused = compile(&long);
        assert!(matches!(refused, Err(FilterError::TooManySteps(_))));
    }
}
