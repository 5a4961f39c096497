//! `laglab completions`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::{Cli, Failure};

/// Prints a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab completions bash > ~/.local/share/bash-completion/completions/laglab\n  \
    laglab completions zsh > ~/.zfunc/_laglab\n  \
    laglab completions powershell >> $PROFILE")]
pub(super) struct Args {
    /// Shell that reads the script
    shell: Shell,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    // The generator ignores a closed pipe, so it writes to memory first.
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "laglab", &mut script);
    if json {
        let script = String::from_utf8_lossy(&script);
        let shell = args.shell.to_string();
        crate::output::json(&serde_json::json!({ "shell": shell, "script": script }))?;
    } else {
        io::stdout().lock().write_all(&script)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// Calls `check` with the help of each possible value of a command and of its subcommands.
    fn each_value(command: &Command, check: &mut impl FnMut(&str, &str)) {
        for argument in command.get_arguments() {
            for value in argument.get_possible_values() {
                let help = value.get_help().map(ToString::to_string);
                check(value.get_name(), &help.unwrap_or_default());
            }
        }
        command
            .get_subcommands()
            .for_each(|inner| each_value(inner, check));
    }

    /// The generator of fish scripts writes the help of values between quotation marks without escaping it.
    #[test]
    fn help_of_values_has_no_quotation_marks() {
        let mut values = 0;
        each_value(&Cli::command(), &mut |name, help| {
            values += 1;
            assert!(!help.contains(['"', '$']), "{name}: {help}");
        });
        assert!(values > 10, "{values} values");
    }
}
