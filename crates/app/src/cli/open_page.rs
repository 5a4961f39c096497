//! `laglab open`: shows traces in the browser.

use std::collections::HashMap;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use serde::Serialize;
use serve::{ServedTrace, Server};
use session::{SEVERAL_SYSTEMS, SymbolOptions};
use tables::ScratchFolder;

use super::open::{TabledTrace, names};
use super::symbols::SymbolArgs;
use super::{Failure, simulate};
use crate::output::say;
use crate::output::{self, Printable};
use crate::watch::Terminal;

/// Environment variable with the folder for presets of the user.
const FOLDER: &str = "LAGLAB_CONFIG";

/// Shows traces in the browser: timeline, tables that can be grouped, stacks, causes of lag. Serves the
/// page only on this machine and to this user, until Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab open trace.etl\n  \
    laglab open before.etl after.etl\n  \
    laglab open before.etl --against after.etl\n  \
    laglab open kernel.etl user.etl --merge\n  \
    laglab open rank-stall\n  \
    laglab open samples.parquet\n  \
    laglab open trace.etl --view mine.json\n  \
    laglab open trace.etl --no-browser --port 8080\n\n\
    List the scenarios: laglab simulate --list")]
pub(super) struct Args {
    /// Traces to show side by side: .etl, .etl.zip, .diagsession, netsh's .cab, packets (.pcapng,
    /// .pcap), samples of `laglab measure` (.parquet), recordings of Linux (perf.data, trace.dat, their text), or the name of a
    /// scenario to simulate
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Compare the trace with this trace, recorded after a change: show what takes more or less time, with
    /// pictures
    #[arg(long, value_name = "AFTER", conflicts_with = "merge")]
    against: Option<PathBuf>,
    /// Read all files as one trace
    #[arg(long)]
    merge: bool,
    /// Serve on this port of 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Print the address and start no browser
    #[arg(long)]
    no_browser: bool,
    /// Start with the tabs, graphs, filters and notes of a file that the page saved
    #[arg(long, value_name = "FILE")]
    view: Option<PathBuf>,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// JSON output of `laglab open`. It has the address of the page and the names of its traces.
#[derive(Serialize)]
struct PageJson<'o> {
    address: &'o str,
    traces: &'o [String],
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    if args.against.is_some() && args.traces.len() > 1 {
        return Err(Failure::Input(format!(
            "cannot compare {} traces with --against: it compares one trace with one; `laglab prove diff` compares \
             several on each side",
            args.traces.len()
        )));
    }
    let view = args.view.as_deref().map(saved_view).transpose()?;
    let paths: Vec<&Path> = (args.traces.iter().chain(&args.against))
        .map(PathBuf::as_path)
        .collect();
    let simulated = SimulatedTraces::make(&paths)?;
    let files: Vec<PathBuf> = paths.iter().map(|trace| simulated.file(trace)).collect();
    let groups: Vec<&[PathBuf]> = if args.merge {
        vec![&files]
    } else {
        files.chunks(1).collect()
    };
    let names = distinct(names(&groups));
    let mut traces = Vec::new();
    for (files, name) in groups.iter().zip(&names) {
        let tables = TabledTrace::new(files, args.no_cache).open_any()?;
        if !tables.store().info().is_one_system {
            say(SEVERAL_SYSTEMS);
        }
        if args.against.is_some() && tables.store().info().only_table.is_some() {
            return Err(Failure::input(
                &files[0],
                "this file has no events to compare; give traces of Windows (.etl)",
            ));
        }
        let symbols = simulated.symbols(files, &args.symbols.options());
        symbols.check()?;
        traces.push(ServedTrace::new(name.clone(), tables, symbols));
    }
    let server = Server::bind(
        args.port,
        traces,
        args.against.is_some(),
        presets_file(),
        view,
        Arc::new(Terminal),
    )?;
    let address = server.address();
    if json {
        let (address, traces) = (address.as_str(), names.as_slice());
        output::json(&PageJson { address, traces })?;
    } else {
        let mut out = output::for_people();
        for (name, files) in names.iter().zip(&groups) {
            let simulated = if simulated.is_among(files) {
                ", simulated"
            } else {
                ""
            };
            writeln!(out, "{}{simulated}", Printable(name))?;
        }
        writeln!(
            out,
            "{address}\nPress Ctrl-C to stop. Anyone with this address can read the traces."
        )?;
        out.flush()?;
    }
    if !args.no_browser && open::that_detached(&address).is_err() {
        say("cannot start a browser; open the address yourself");
    }
    Ok(server.run()?)
}

/// Traces that were simulated from scenarios in the arguments. The traces are deleted when this value is dropped.
#[derive(Default)]
struct SimulatedTraces {
    folder: Option<ScratchFolder>,
    /// Trace file and symbol store of each scenario, by the scenario name in the arguments.
    traces: HashMap<PathBuf, (PathBuf, PathBuf)>,
}

impl SimulatedTraces {
    /// Simulates each scenario in the arguments. An argument is a file, not a scenario, if a file of this
    /// name exists.
    fn make(traces: &[&Path]) -> Result<SimulatedTraces, Failure> {
        let mut simulated = SimulatedTraces::default();
        for given in traces.iter().copied() {
            let is_scenario = |name: &&str| simulate::is_shipped(name) && !given.exists();
            let Some(name) = given.to_str().filter(is_scenario) else {
                if !given.exists() && given.extension().is_none() {
                    let meant = given.to_str().and_then(simulate::scenario_like);
                    let meant =
                        meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
                    let message = format!(
                        "no file or scenario has this name; {meant}`laglab simulate --list` lists the \
                         scenarios"
                    );
                    return Err(Failure::input(given, message));
                }
                continue;
            };
            if simulated.traces.contains_key(given) {
                continue;
            }
            let folder = match &simulated.folder {
                Some(folder) => folder,
                None => simulated.folder.insert(
                    ScratchFolder::new()
                        .map_err(|error| Failure::writing(&env::temp_dir(), &error))?,
                ),
            };
            let folder = folder.path().join(name);
            std::fs::create_dir_all(&folder).map_err(|error| Failure::writing(&folder, &error))?;
            let files = simulate::into_folder(name, &folder)?;
            simulated.traces.insert(given.to_owned(), files);
        }
        Ok(simulated)
    }

    /// Returns the file for a trace argument: the simulated trace of a scenario, or else the path itself.
    fn file(&self, given: &Path) -> PathBuf {
        let files = self.traces.get(given);
        files.map_or_else(|| given.to_owned(), |(trace, _)| trace.clone())
    }

    fn symbol_store(&self, file: &Path) -> Option<&Path> {
        let mut traces = self.traces.values();
        let (_, symbols) = traces.find(|(trace, _)| trace == file)?;
        Some(symbols)
    }

    fn is_among(&self, files: &[PathBuf]) -> bool {
        files.iter().any(|file| self.symbol_store(file).is_some())
    }

    /// Returns the symbol options for a trace. For a simulated trace, they include its symbol store.
    fn symbols(&self, files: &[PathBuf], given: &SymbolOptions) -> SymbolOptions {
        let stores = files.iter().filter_map(|file| self.symbol_store(file));
        stores.fold(given.clone(), |options, store| options.with_folder(store))
    }
}

/// Makes names unique: a name that occurred before gets a number.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !distinct.contains(name));
        distinct.extend(free);
    }
    distinct
}

/// Maximum number of bytes of a file with a view.
const LONGEST_VIEW: u64 = 1 << 20;

/// Reads the file of `--view`. The page checks the content of the view, like the content of a link.
fn saved_view(path: &Path) -> Result<serde_json::Value, Failure> {
    let advice = "give a file that the page saved with `Save view`";
    let text = files::read_file(path, LONGEST_VIEW);
    let text = text.map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            Failure::input(path, format!("it is larger than 1 MiB; {advice}"))
        }
        _ => Failure::reading(path, &error),
    })?;
    match serde_json::from_slice(&text) {
        Ok(view @ serde_json::Value::Object(_)) => Ok(view),
        Ok(_) => Err(Failure::input(path, format!("this is no view; {advice}"))),
        Err(error) => Err(Failure::input(
            path,
            format!("this is no view: {error}; {advice}"),
        )),
    }
}

/// Returns the path of the file with the user's presets. It is in the folder of [`FOLDER`], or else in the
/// platform's configuration folder.
fn presets_file() -> Option<PathBuf> {
    let folder = match env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => {
            let places = etcetera::base_strategy::choose_native_strategy().ok()?;
            places.config_dir().join("laglab")
        }
    };
    Some(folder.join("presets.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_a_view_are_views() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("view.json");
        std::fs::write(&file, r#"{"page": "analysis"}"#).unwrap();
        assert_eq!(saved_view(&file).unwrap()["page"], "analysis");
        for text in ["", "[]", "7", "{", &format!("{}{{}}", " ".repeat(1 << 20))] {
            std::fs::write(&file, text).unwrap();
            assert!(saved_view(&file).is_err());
        }
        assert!(saved_view(&folder.path().join("none.json")).is_err());
    }

    #[test]
    fn traces_of_one_name_are_numbered() {
        let names = ["a", "b", "a", "a"].map(str::to_owned);
        assert_eq!(distinct(names.into()), ["a", "b", "a (2)", "a (3)"]);
    }
}
