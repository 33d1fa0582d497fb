use super::snapshot;
use crate::common::{run, tool};
use clap::CommandFactory;
use tki_attest::cli::Cli;

/// Every command and command of a command, by its words.
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut pending = vec![(Vec::new(), Cli::command())];
    while let Some((words, command)) = pending.pop() {
        for below in command.get_subcommands() {
            let words = [&words[..], &[below.get_name().to_owned()]].concat();
            found.push(words.clone());
            pending.push((words, below.clone()));
        }
    }
    found.sort();
    found
}

#[test]
fn the_help_of_every_command() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for words in commands {
        let mut command = tool();
        let said = run(command.env_remove("COLUMNS").args(&words).arg("--help"));
        said.succeeded();
        assert_eq!(said.stderr, "", "{words:?}");
        let name = ["help"].into_iter().chain(words.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join("-");
        snapshot(&name, &said.stdout);
    }
}
