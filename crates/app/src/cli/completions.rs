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
    write_script(args.shell, &mut script)?;
    if json {
        let script = String::from_utf8_lossy(&script);
        let shell = args.shell.to_string();
        crate::output::json(&serde_json::json!({ "shell": shell, "script": script }))?;
    } else {
        io::stdout().lock().write_all(&script)?;
    }
    Ok(())
}

/// Names that a shell can complete as an argument of a command. Most of these arguments also accept other values, such as
/// files, so that the names are no part of the parser.
struct Names {
    /// Names of the subcommands that lead to the command.
    command: &'static [&'static str],
    argument: &'static str,
    names: Vec<Str>,
}

fn names() -> Vec<Names> {
    fn all<N: Into<Str>>(names: impl IntoIterator<Item = N>) -> Vec<Str> {
        names.into_iter().map(Into::into).collect()
    }
    // Shells would need quotation marks for the others.
    let is_plain = |name: &&str| {
        name.chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
    };
    let settings = Catalogue::get().settings().iter();
    let settings: BTreeSet<&str> = settings.flat_map(Setting::names).filter(is_plain).collect();
    let investigations = || all(Investigation::ALL.map(Investigation::name));
    vec![
        Names {
            command: &["simulate"],
            argument: "scenario",
            names: all(sim::shipped::names()),
        },
        Names {
            command: &["record"],
            argument: "investigation",
            names: investigations(),
        },
        Names {
            command: &["record", "now"],
            argument: "investigation",
            names: investigations(),
        },
        Names {
            command: &["tune", "explain"],
            argument: "name",
            names: all(settings),
        },
        #[cfg(feature = "export")]
        Names {
            command: &["export"],
            argument: "tables",
            names: all(tables::Table::ALL.iter().map(|table| table.name())),
        },
    ]
}

/// Writes the script for a shell.
fn write_script(shell: Shell, out: &mut impl Write) -> io::Result<()> {
    fn with_names(command: Command, path: &[&'static str], names: &Names) -> Command {
        match path {
            [] => command.mut_arg(names.argument, |it| {
                it.value_parser(PossibleValuesParser::new(names.names.clone()))
            }),
            [next, rest @ ..] => {
                command.mut_subcommand(next, |inner| with_names(inner, rest, names))
            }
        }
    }
    let all = names();
    let mut command = (all.iter()).fold(Cli::command(), |command, names| {
        with_names(command, names.command, names)
    });
    generate(shell, &mut command, "laglab", out);
    if shell == Shell::Fish {
        // The generator completes only options.
        for Names { command, names, .. } in &all {
            let place = command.join("; and __fish_seen_subcommand_from ");
            let names: Vec<&str> = names.iter().map(Str::as_str).collect();
            writeln!(
                out,
                "complete -c laglab -n \"__fish_laglab_using_subcommand {place}\" -a \"{}\"",
                names.join(" ")
            )?;
        }
    }
    Ok(())
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
            write_script(shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for name in ["rank-stall", "long-wait", "Win32PrioritySeparation"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }

    /// The generators would offer hidden options.
    #[test]
    fn no_option_is_hidden() {
        fn hidden(command: &Command) -> usize {
            let own = command.get_arguments().filter(|it| it.is_hide_set());
            own.count() + command.get_subcommands().map(hidden).sum::<usize>()
        }
        assert_eq!(hidden(&Cli::command()), 0);
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

    /// Finds a quotation in a fish script that begins or ends within a word, or has no end. Returns its line.
    fn broken_quotation(script: &str) -> Option<usize> {
        let (mut open, mut before, mut line) = (None, '\n', 1);
        let mut chars = script.chars().peekable();
        while let Some(next) = chars.next() {
            let is_end = chars.peek().is_none_or(|after| after.is_whitespace());
            match (open, next) {
                (_, '\\') => line += usize::from(chars.next() == Some('\n')),
                (None, '#') if before.is_whitespace() => {
                    while chars.next_if(|it| *it != '\n').is_some() {}
                }
                (None, '\'' | '"') if !before.is_whitespace() => return Some(line),
                (None, '\'' | '"') => open = Some(next),
                (Some(mark), _) if mark == next && !is_end => return Some(line),
                (Some(mark), _) if mark == next => open = None,
                _ => line += usize::from(next == '\n'),
            }
            before = next;
        }
        open.map(|_| line)
    }

    #[test]
    fn fish_scripts_have_whole_quotations() {
        let mut script = Vec::new();
        write_script(Shell::Fish, &mut script).unwrap();
        let text = str::from_utf8(&script).unwrap();
        let line = broken_quotation(text).map(|line| text.lines().nth(line - 1));
        assert_eq!(line, None);
        for broken in [r#"complete -a "1\t'the "1" mode'""#, "\ncomplete -d 'its"] {
            assert!(broken_quotation(broken).is_some(), "{broken}");
        }
        // Fish is not part of most systems.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &script).unwrap();
        let fish = std::process::Command::new("fish")
            .arg("--no-execute")
            .arg(file.path())
            .output();
        if let Ok(output) = fish {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{error}");
        }
    }
}
