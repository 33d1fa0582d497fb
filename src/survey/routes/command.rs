//! A program as a route. It may do anything, so it is started only if that is
//! permitted.

use super::kinds::CommandRoute;
use super::result::Finding;
use crate::deadline::Deadline;
use crate::survey::program::run;
use crate::survey::told::Told;
use rustix::fs::{Access, access};
use std::io;
use std::process::Command;

/// The most bytes that are kept of what it says.
const MOST: usize = 64 * 1024;

/// Why a program is not started.
#[derive(Debug, thiserror::Error)]
enum NotStarted {
    /// A directory, say.
    #[error("not a file")]
    NoFile,
    /// It is not there, or not to be executed.
    #[error(transparent)]
    Program(#[from] io::Error),
    /// A variable that it is to be given.
    #[error("variable {0} is not set")]
    Variable(String),
}

/// It is there, may be executed, and has the variables that it is to be given.
fn executable(route: &CommandRoute) -> Result<(), NotStarted> {
    let program = &route.program;
    if !std::fs::metadata(program)?.is_file() {
        return Err(NotStarted::NoFile);
    }
    access(program, Access::EXEC_OK).map_err(io::Error::from)?;
    let names = route.env.iter().chain(&route.secret_env);
    for name in names {
        if std::env::var_os(name).is_none() {
            return Err(NotStarted::Variable(name.clone()));
        }
    }
    Ok(())
}

/// Runs the program, if that is permitted.
pub fn probe(
    route: &CommandRoute,
    mut finding: Finding,
    permitted: bool,
    deadline: &Deadline,
) -> Finding {
    let call = format!("{} {}", route.program.display(), route.arguments.join(" "));
    if let Err(why) = executable(route) {
        finding.call(call, format!("not started: {why}"));
        return finding.denied(route.ability, "it cannot be executed", why.to_string());
    }
    if !permitted {
        finding.call(call, "not started");
        return finding.not_permitted("the program");
    }
    let mut command = Command::new(&route.program);
    command.args(&route.arguments).env_clear();
    let names = route.env.iter().chain(&route.secret_env);
    for name in ["PATH"].into_iter().chain(names.map(String::as_str)) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    match run(&mut command, MOST, deadline) {
        Ok(ended) => {
            let how = ended.how();
            let between = match ended.stdout.last() {
                None => ": ",
                Some(b'\n') => "",
                Some(_) => "\n",
            };
            // Both streams may be cut, so each is looked at by itself.
            let said = Told::from(how.as_str())
                .with_words(": ", ended.stdout, ended.cut)
                .with_words(between, ended.stderr, ended.cut);
            finding.call(call, said);
            match ended.status == Some(route.expect) {
                true => finding.works(
                    route.ability,
                    format!("{} is possible: {how}", route.ability.name()),
                ),
                false => finding.denied(
                    route.ability,
                    format!("{} is not possible this way", route.ability.name()),
                    format!("{how} instead of exit {}", route.expect),
                ),
            }
        }
        Err(error) => {
            finding.call(call, error.to_string());
            let proves = "nothing but that it did not end by itself";
            finding.denied(route.ability, proves, error.to_string())
        }
    }
}
