//! `tki-attest completions` and `tki-attest man`.

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::commands::error::CommandError;
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::{Folder, replace_in};
use clap::CommandFactory;
use std::path::Path;

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tki-attest", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Prints the manual page, or writes one per command.
pub fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    // Gives every command its full name.
    command.build();
    let Some(folder) = &args.out else {
        output::print(&String::from_utf8_lossy(&page(command)?))?;
        return Ok(Exit::Done);
    };
    let place = Folder::open_or_make(folder).map_err(|error| unwritable(folder, error))?;
    let mut pending = vec![command];
    while let Some(command) = pending.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = format!("{name}.1");
        pending.extend(
            command
                .get_subcommands()
                .filter(|sub| sub.get_name() != "help")
                .cloned(),
        );
        replace_in(&place, file.as_ref(), &page(command)?)
            .map_err(|error| unwritable(&folder.join(&file), error))?;
    }
    Ok(Exit::Done)
}

fn page(command: clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(CommandError::Page)?;
    Ok(page)
}

fn unwritable(path: &Path, source: std::io::Error) -> CommandError {
    CommandError::Out {
        path: path.to_owned(),
        source,
    }
}
