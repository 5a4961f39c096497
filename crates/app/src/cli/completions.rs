//! `laglab completions`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::builder::{PossibleValuesParser, Str};
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use record::Investigation;
use tune::catalogue::{Catalogue, Setting};

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
    generate(args.shell, &mut with_names(), "laglab", &mut script);
    if json {
        let script = String::from_utf8_lossy(&script);
        let shell = args.shell.to_string();
        crate::output::json(&serde_json::json!({ "shell": shell, "script": script }))?;
    } else {
        io::stdout().lock().write_all(&script)?;
    }
    Ok(())
}

/// Returns the program's command, in which arguments have the names that a shell can complete. Most of these arguments
/// also accept other values, such as files, so that the names are no part of the parser.
fn with_names() -> Command {
    fn known<N: Into<Str>>(command: Command, argument: &'static str, names: Vec<N>) -> Command {
        let names: Vec<Str> = names.into_iter().map(Into::into).collect();
        command.mut_arg(argument, |it| {
            it.value_parser(PossibleValuesParser::new(names))
        })
    }
    let investigations = || Investigation::ALL.map(Investigation::name).to_vec();
    // Shells would need quotation marks for the others.
    let is_plain = |name: &&str| {
        name.chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
    };
    let settings: BTreeSet<&str> = (Catalogue::get().settings().iter())
        .flat_map(Setting::names)
        .filter(is_plain)
        .collect();
    let settings: Vec<&str> = settings.into_iter().collect();
    let command = Cli::command()
        .mut_subcommand("simulate", |command| {
            known(command, "scenario", sim::shipped::names().collect())
        })
        .mut_subcommand("record", |command| {
            known(command, "investigation", investigations())
                .mut_subcommand("now", |now| known(now, "investigation", investigations()))
        })
        .mut_subcommand("tune", |command| {
            command.mut_subcommand("explain", |explain| known(explain, "name", settings))
        });
    #[cfg(feature = "export")]
    let command = command.mut_subcommand("export", |command| {
        known(
            command,
            "tables",
            tables::Table::ALL.iter().map(|it| it.name()).collect(),
        )
    });
    command
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn scripts_complete_names() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            generate(shell, &mut with_names(), "laglab", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in ["rank-stall", "long-wait", "Win32PrioritySeparation"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
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
