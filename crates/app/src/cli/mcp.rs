//! `laglab mcp`: answers about traces for an assistant.

use std::io::IsTerminal;
use std::path::PathBuf;

use mcp::Server;
use tables::Cache;

use super::symbols::SymbolArgs;
use super::{Failure, cache};
use crate::output::say;

/// Answers an assistant's questions about the traces in folders, by the Model Context Protocol, on standard input
/// and output. Only reads, and only below these folders. An assistant starts this command itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab mcp ~/traces\n  \
    laglab mcp before.etl after.etl --symbols ~/symbols\n\n\
    Configuration of an assistant:\n  \
    {\"mcpServers\": {\"laglab\": {\"command\": \"laglab\", \"args\": [\"mcp\", \"/home/me/traces\"]}}}")]
pub(super) struct Args {
    /// Folders with traces, or traces; nothing else is read
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let cache = if args.no_cache {
        Cache::Off
    } else {
        cache::chosen()?
    };
    let symbols = args.symbols.options();
    symbols.check()?;
    let server = Server::new(&args.folders, cache, symbols)
        .map_err(|error| Failure::Input(error.to_string()))?;
    if std::io::stdin().is_terminal() {
        say(
            "waiting for an assistant on standard input; to ask traces yourself, use laglab explain",
        );
    }
    mcp::serve_stdio(server)
        .map_err(|error| Failure::Input(format!("the connection to the assistant failed: {error}")))
}
