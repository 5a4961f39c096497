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
