//! A program as a route. It may do anything, so it is started only if that is
//! permitted.

use super::form::CommandRoute;
use super::result::RouteResult;
use crate::survey::call::{Call, Redactor};
use crate::survey::program::run;
use crate::survey::watch::Watch;
use rustix::fs::{Access, access};
use std::process::Command;

/// The most bytes that are kept of what it says.
const MOST: usize = 64 * 1024;

/// It is there, may be executed, and has the variables that it is to be given.
fn executable(route: &CommandRoute) -> Result<(), String> {
    let program = &route.program;
    match std::fs::metadata(program) {
        Ok(found) if !found.is_file() => return Err("not a file".into()),
        Ok(_) => access(program, Access::EXEC_OK).map_err(|error| error.to_string())?,
        Err(error) => return Err(error.to_string()),
    }
    let names = route.env.iter().chain(&route.secret_env);
    for name in names {
        if std::env::var_os(name).is_none() {
            return Err(format!("variable {name} is not set"));
        }
    }
    Ok(())
}

/// Runs the program, if that is permitted.
pub fn probe(
    route: &CommandRoute,
    mut result: RouteResult,
    permitted: bool,
    watch: &Watch,
) -> RouteResult {
    let call = format!("{} {}", route.program.display(), route.arguments.join(" "));
    if let Err(why) = executable(route) {
        result
            .calls
            .push(Call::new(&call, format!("not started: {why}")));
        return result.denied(route.ability, "it cannot be executed", why);
    }
    if !permitted {
        result.calls.push(Call::new(&call, "not started"));
        return result.not_permitted("the program");
    }
    let mut command = Command::new(&route.program);
    command.args(&route.arguments).env_clear();
    for name in ["PATH"]
        .into_iter()
        .chain(route.env.iter().map(String::as_str))
    {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let mut secrets = Vec::new();
    for name in &route.secret_env {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, &value);
            secrets.push(value.to_string_lossy().into_owned());
        }
    }
    let redactor = Redactor::new(secrets);
    match run(&mut command, MOST, watch) {
        Ok(ended) => {
            let said = redactor.clean_bytes(&ended.said(), ended.cut, 500);
            let how = ended.how();
            result
                .calls
                .push(redactor.call(&call, format!("{how}: {said}")));
            match ended.status == Some(route.expect) {
                true => result.works(
                    route.ability,
                    format!("{} is possible: {how}", route.ability.name()),
                ),
                false => result.denied(
                    route.ability,
                    format!("{} is not possible this way", route.ability.name()),
                    format!("{how} instead of exit {}", route.expect),
                ),
            }
        }
        Err(error) => {
            result.calls.push(redactor.call(&call, error.to_string()));
            let proves = "nothing but that it did not end by itself";
            result.denied(route.ability, proves, error.to_string())
        }
    }
}
