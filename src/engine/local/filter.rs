//! A seccomp profile in Docker's JSON form, compiled to the program that the
//! kernel runs. Engines do this with libseccomp; here it is done in Rust, for
//! the same profile bytes.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use tki_evidence::seccomp::{Action, Argument, Condition, Rule, Rules};
use tki_evidence::syscalls;

/// System calls of the x32 ABI have this bit in their number.
const X32_BIT: u32 = 0x4000_0000;
const RET_KILL_PROCESS: u32 = 0x8000_0000;

/// Compiles a profile. Calls of other architectures and of x32 end the process,
/// as they do under an engine when a profile lists only the native one.
pub fn compile(profile: &str) -> Result<Vec<libc::sock_filter>, String> {
    let rules = Rules::parse(profile.as_bytes()).map_err(|error| error.to_string())?;
    let default = action(rules.default_action, rules.default_errno_ret)?;
    let mut matching: Option<SeccompAction> = None;
    let mut table: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut whatever_arguments = Vec::new();
    for rule in rules.syscalls.iter().filter(|rule| applies(rule)) {
        let wanted = action(rule.action, rule.errno_ret)?;
        // Runtimes leave such rules out too.
        if wanted == default {
            continue;
        }
        match &matching {
            None => matching = Some(wanted),
            Some(known) if *known == wanted => {}
            Some(known) => {
                return Err(format!(
                    "it has the actions {known:?} and {wanted:?} beside its default: at most one \
                     can be compiled here"
                ));
            }
        }
        for name in &rule.names {
            // A name that this architecture does not have needs no rule.
            let Some(number) = syscalls::number(name) else {
                continue;
            };
            let conditions = table.entry(i64::from(number)).or_default();
            match rule.args.as_slice() {
                [] => whatever_arguments.push(i64::from(number)),
                arguments => conditions.push(rule_of(arguments)?),
            }
        }
    }
    // An empty list matches whatever the arguments are, and makes every other
    // rule for the call needless.
    for number in whatever_arguments {
        table.insert(number, Vec::new());
    }
    let matching = matching.unwrap_or(match default {
        SeccompAction::Allow => SeccompAction::Errno(libc::EPERM as u32),
        _ => SeccompAction::Allow,
    });
    let filter = SeccompFilter::new(table, default, matching, TargetArch::x86_64)
        .map_err(|error| error.to_string())?;
    let program: BpfProgram = filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| error.to_string())?;
    let mut whole = without_x32();
    whole.extend(program.iter().map(|step| libc::sock_filter {
        code: step.code,
        jt: step.jt,
        jf: step.jf,
        k: step.k,
    }));
    Ok(whole)
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

/// The compiled program does not look at the x32 bit: what an allow-list would
/// refuse as an unknown number, a deny-list would let through.
fn without_x32() -> Vec<libc::sock_filter> {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, X32_BIT),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, RET_KILL_PROCESS),
    ]
}

fn rule_of(arguments: &[Argument]) -> Result<SeccompRule, String> {
    let conditions = arguments
        .iter()
        .map(condition)
        .collect::<Result<Vec<_>, String>>()?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn condition(argument: &Argument) -> Result<SeccompCondition, String> {
    let index = u8::try_from(argument.index).map_err(|_| "an argument beyond the sixth")?;
    let (operator, value) = match argument.op.as_str() {
        "SCMP_CMP_EQ" => (SeccompCmpOp::Eq, argument.value),
        "SCMP_CMP_NE" => (SeccompCmpOp::Ne, argument.value),
        "SCMP_CMP_LT" => (SeccompCmpOp::Lt, argument.value),
        "SCMP_CMP_LE" => (SeccompCmpOp::Le, argument.value),
        "SCMP_CMP_GT" => (SeccompCmpOp::Gt, argument.value),
        "SCMP_CMP_GE" => (SeccompCmpOp::Ge, argument.value),
        "SCMP_CMP_MASKED_EQ" => (SeccompCmpOp::MaskedEq(argument.value), argument.value_two),
        other => return Err(format!("unknown comparison {other:?}")),
    };
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, operator, value)
        .map_err(|error| error.to_string())
}

fn action(action: Action, errno: Option<u32>) -> Result<SeccompAction, String> {
    Ok(match action {
        Action::ScmpActAllow => SeccompAction::Allow,
        Action::ScmpActLog => SeccompAction::Log,
        Action::ScmpActErrno => SeccompAction::Errno(errno.unwrap_or(libc::EPERM as u32)),
        Action::ScmpActKill | Action::ScmpActKillThread => SeccompAction::KillThread,
        Action::ScmpActKillProcess => SeccompAction::KillProcess,
        Action::ScmpActTrap => SeccompAction::Trap,
        Action::ScmpActTrace | Action::ScmpActNotify => {
            return Err("it asks a tracer or a supervisor, which there is none".into());
        }
    })
}

/// The engine's own conditions on a rule, for a container without capabilities
/// on this architecture.
fn applies(rule: &Rule) -> bool {
    let here = |arches: &[String]| {
        arches
            .iter()
            .any(|arch| ["amd64", "x86_64"].contains(&arch.as_str()))
    };
    let included = |condition: &Condition| {
        condition.caps.is_empty() && (condition.arches.is_empty() || here(&condition.arches))
    };
    let excluded = |condition: &Condition| here(&condition.arches);
    rule.includes.as_ref().is_none_or(included) && !rule.excludes.as_ref().is_some_and(excluded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_built_in_profiles_compile() {
        for text in [tki_evidence::TARGETED_DENY, tki_evidence::DENY_BY_DEFAULT] {
            let program = compile(text).unwrap();
            assert!(program.len() > 50, "{}", program.len());
            assert_eq!(bytes(&program).len(), program.len() * 8);
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_refused() {
        for (text, why) in [
            (r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#, "supervisor"),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
                    {"names":["bpf"],"action":"SCMP_ACT_ERRNO","errnoRet":1},
                    {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}"#,
                "at most one",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
                    {"names":["clone"],"action":"SCMP_ACT_ERRNO",
                     "args":[{"index":0,"value":1,"op":"SCMP_CMP_ODD"}]}]}"#,
                "comparison",
            ),
        ] {
            let error = compile(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
