//! `laglab simulate`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use record::{Capture, Investigation, Keyword, wprp};
use serde::Serialize;
use session::NewFile;
use sim::scenario::ScenarioError;
use sim::{ModuleTruth, RunError, Truth, shipped};
use sim::{Override, Scenario};
use symbols::write::{Function, write_pdb};
use symbols::{PdbId, in_store};
use wording::{TomlText, closest_one};

use super::Failure;
use crate::output::{self, Columns, Side, grouped};
use crate::watch::{self, Watch};

/// Simulates a scenario with a model of Windows, and writes a trace and the true events of the model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab simulate --list\n  \
    laglab simulate rank-stall -o stall.etl\n  \
    laglab simulate rank-stall --seed 7 --windows 11-25H2\n  \
    laglab simulate rank-stall --show > mine.toml\n  \
    laglab simulate mine.toml --set machine.processors=16\n  \
    laglab simulate rank-stall --profile dpc\n  \
    laglab simulate rank-stall --symbols symbols\n  \
    laglab simulate load --events 20000000 -o load.etl\n\n\
    The command also writes FILE.truth.json: everything that happened in the model.\n\
    docs/scenarios.md describes scenarios, docs/truth.md the truth file.")]
pub(super) struct Args {
    /// Name of a built-in scenario, or a scenario file
    #[arg(value_name = "SCENARIO", required_unless_present = "list")]
    scenario: Option<String>,
    /// Trace to write or replace [default: SCENARIO.etl]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Random seed [default: seed of the scenario]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Release of Windows: 7, 10-22H2, 11-23H2 or 11-25H2 [default: release of the scenario]
    #[arg(long, value_name = "RELEASE")]
    windows: Option<String>,
    /// Duration of the trace, such as 30s [default: duration of the scenario]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Record only the events of a WPR profile (FILE.wprp, or FILE.wprp!NAME) or of the kit for an
    /// investigation (such as dpc; see laglab record --list)
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// End the trace after N events
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Compress the trace
    #[arg(long)]
    compress: bool,
    /// Override a value of the scenario, such as machine.processors=16 (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Also write PDBs of the modules, to a symbol store in this folder
    #[arg(long, value_name = "DIR")]
    symbols: Option<PathBuf>,
    /// List the built-in scenarios
    #[arg(long, conflicts_with_all = ["scenario", "output", "show", "symbols"])]
    list: bool,
    /// Print the text of the scenario instead of running it
    #[arg(long, conflicts_with_all = ["output", "seed", "windows", "duration", "events", "compress", "set", "symbols", "profile"])]
    show: bool,
}

/// JSON output of `laglab simulate`. Programs rely on its fields.
#[derive(Serialize)]
struct Report<'a> {
    trace: String,
    truth: String,
    bytes: u64,
    scenario: &'a str,
    title: &'a str,
    seed: u64,
    windows_build: u32,
    events: u64,
    events_lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<String>,
}

/// JSON output of `laglab simulate --show`. Programs rely on its fields.
#[derive(Serialize)]
struct ScenarioJson<'a> {
    scenario: &'a str,
    toml: &'a str,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let Some(name) = args.scenario.as_deref().filter(|_| !args.list) else {
        return list(json);
    };
    let text = text(name)?;
    if args.show {
        if json {
            let (scenario, toml) = (name, &*text);
            return Ok(output::json(&ScenarioJson { scenario, toml })?);
        }
        let mut out = output::for_programs();
        write!(out, "{}", TomlText(&text))?;
        return Ok(out.flush()?);
    }
    let scenario = read(name, &text, &settings(args)?)?;
    let trace = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}.etl", scenario.name())),
    };
    let truth_path = trace.with_extension("truth.json");
    for written in [&trace, &truth_path] {
        is_not_the_scenario(written, name)?;
    }
    // Both files are created first. If one cannot be written, no time is lost on the simulation.
    let (new_trace, new_truth) = (NewFile::create(&trace)?, NewFile::create(&truth_path)?);
    let truth = write(&scenario, args.seed, &trace, &new_trace)?;
    write_truth(&truth, &truth_path, &new_truth)?;
    if let Some(store) = &args.symbols {
        write_symbols(&truth.modules, store)?;
    }
    let bytes = new_trace.finish()?;
    new_truth.finish()?;
    let report = Report {
        trace: trace.display().to_string(),
        truth: truth_path.display().to_string(),
        bytes,
        scenario: &truth.scenario,
        title: &truth.title,
        seed: truth.seed,
        windows_build: truth.windows_build,
        events: truth.events,
        events_lost: truth.events_lost,
        symbols: (args.symbols.as_ref()).map(|store| store.display().to_string()),
    };
    if json {
        return Ok(output::json(&report)?);
    }
    Ok(say(&report)?)
}

/// Returns an error if the file that would be written is the scenario file.
fn is_not_the_scenario(written: &Path, name: &str) -> Result<(), Failure> {
    if files::is_same_file(written, Path::new(name)) {
        Err(Failure::input(
            written,
            "this is the scenario file; give another file to write",
        ))
    } else {
        Ok(())
    }
}

/// Simulates a built-in scenario or a scenario file, and writes only the trace. Returns the path of the trace:
/// `output`, or else `SCENARIO.etl` in the current folder.
pub(super) fn only_trace(name: &str, output: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let scenario = read(name, &text(name)?, &[])?;
    let trace = output.unwrap_or_else(|| PathBuf::from(format!("{}.etl", scenario.name())));
    is_not_the_scenario(&trace, name)?;
    write_trace(&scenario, &trace)?;
    Ok(trace)
}

/// Simulates a scenario, and writes only the trace.
fn write_trace(scenario: &Scenario, trace: &Path) -> Result<Truth, Failure> {
    let new = NewFile::create(trace)?;
    let truth = write(scenario, None, trace, &new)?;
    new.finish()?;
    Ok(truth)
}

/// Returns the built-in scenario with this name, or with the most similar name.
pub(super) fn scenario_like(name: &str) -> Option<&'static str> {
    closest_one(name, shipped::names())
}

/// Returns true if there is a built-in scenario with this name.
#[cfg(feature = "open")]
pub(super) fn is_shipped(name: &str) -> bool {
    shipped::text(name).is_some()
}

/// Simulates a built-in scenario or a scenario file, and writes the trace into a folder. Returns the path of
/// the trace and the path of the symbol store with the PDBs of its modules.
#[cfg(feature = "open")]
pub(super) fn into_folder(name: &str, folder: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    let scenario = read(name, &text(name)?, &[])?;
    let trace = folder.join(format!("{}.etl", scenario.name()));
    let truth = write_trace(&scenario, &trace)?;
    let store = folder.join("symbols");
    write_symbols(&truth.modules, &store)?;
    Ok((trace, store))
}

/// Returns the text of a built-in scenario or of a scenario file.
fn text(name: &str) -> Result<String, Failure> {
    if let Some(text) = shipped::text(name) {
        return Ok(text.to_owned());
    }
    let path = Path::new(name);
    if path.extension().is_none() && !path.exists() {
        let meant = scenario_like(name)
            .map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
        return Err(Failure::Input(format!(
            "unknown scenario `{name}`; {meant}`laglab simulate --list` lists all; a scenario file ends in .toml"
        )));
    }
    read_text(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::input(path, "this is not a scenario: the file is not UTF-8 text")
        }
        // `read_text` created this error, so its text already names the cause.
        io::ErrorKind::Other => Failure::input(path, error),
        _ => Failure::reading(path, &error),
    })
}

/// Reads a scenario file. Returns an error if the file is larger than any real scenario.
fn read_text(path: &Path) -> io::Result<String> {
    const MAX_BYTES: u64 = 4 << 20;
    let bytes = files::read_file(path, MAX_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            io::Error::other("this is not a scenario: the file is larger than 4 MiB")
        }
        _ => error,
    })?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns the values from the arguments. They replace values of the scenario.
fn settings(args: &Args) -> Result<Vec<Override>, Failure> {
    let line = |path: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("{path} = {value:?}"))
    };
    let mut all: Vec<String> = args.set.clone();
    all.extend(line("machine.windows", &args.windows));
    all.extend(line("duration", &args.duration));
    all.extend(args.events.map(|events| format!("events = {events}")));
    if let Some(profile) = &args.profile {
        all.extend(sim::recording_settings(&profiled(profile)?));
    }
    all.extend(args.compress.then(|| "record.compressed = true".to_owned()));
    all.iter()
        .map(|setting| Override::parse(setting).map_err(refused))
        .collect()
}

/// Returns the events that a WPR profile, or the kit of an investigation, records.
fn profiled(profile: &str) -> Result<Capture, Failure> {
    if let Some(investigation) = Investigation::from_name(profile) {
        return Ok(investigation.capture());
    }
    let (path, name) = match profile.rsplit_once('!') {
        Some((path, name)) if !Path::new(profile).exists() => (path, Some(name)),
        _ => (profile, None),
    };
    let path = Path::new(path);
    let text = super::record::read_profile(path)?;
    let selected = wprp::select(&text, name).map_err(|error| Failure::input(path, error))?;
    let mut missing = selected.unused;
    let keywords = selected.capture.keywords();
    let of_files = keywords.filter(|k| matches!(k, Keyword::FileIo | Keyword::FileIoInit));
    missing.extend(of_files.map(|keyword| keyword.wpr().to_owned()));
    if !missing.is_empty() {
        crate::output::say(&format!(
            "the model cannot simulate these events of the profile: {}",
            missing.join(", ")
        ));
    }
    Ok(selected.capture)
}

/// Parses a scenario. A scenario may extend built-in scenarios and scenarios in the same folder.
fn read(name: &str, text: &str, settings: &[Override]) -> Result<Scenario, Failure> {
    let folder = Path::new(name)
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let named = |base: &str| {
        let base = base.strip_suffix(".toml").unwrap_or(base);
        // The base must be a name, not a path, because a scenario from another person must not open files
        // elsewhere.
        let is_name = base
            .chars()
            .all(|c| c.is_alphanumeric() || "-_".contains(c));
        shipped::text(base)
            .map(str::to_owned)
            .or_else(|| is_name.then(|| read_text(&folder.join(format!("{base}.toml"))).ok())?)
    };
    Scenario::read(name, text, &named, settings).map_err(refused)
}

fn refused(error: ScenarioError) -> Failure {
    Failure::Input(error.to_string())
}

fn write(
    scenario: &Scenario,
    seed: Option<u64>,
    path: &Path,
    new: &NewFile,
) -> Result<Truth, Failure> {
    /// Number of steps of the progress bar. The number of bytes is not known before the simulation.
    const PARTS: u64 = 1_000_000;
    let out = BufWriter::with_capacity(1 << 20, new.file());
    let watch = Watch::new("simulating", PARTS).in_percent();
    let should_continue = |done: f64| watch.reach((done * PARTS as f64) as u64).is_ok();
    let simulated = sim::simulate(scenario, seed, out, should_continue);
    let (out, truth) = simulated.map_err(|error| match error {
        RunError::Stopped => Failure::Interrupted,
        RunError::Write(error) => Failure::writing(path, &error),
        error @ (RunError::Stuck(_) | RunError::Workload(_)) => Failure::input(path, error),
    })?;
    out.into_inner()
        .map_err(|error| Failure::writing(path, &error.into_error()))?;
    drop(watch);
    watch::check()?;
    Ok(truth)
}

fn write_truth(truth: &Truth, path: &Path, new: &NewFile) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::writing(path, &error);
    let mut out = BufWriter::new(new.file());
    serde_json::to_writer_pretty(&mut out, truth).map_err(|e| failed(e.into()))?;
    writeln!(out).and_then(|()| out.flush()).map_err(failed)
}

/// Writes a PDB for each module into the symbol store in the folder `store`.
fn write_symbols(modules: &[ModuleTruth], store: &Path) -> Result<(), Failure> {
    for module in modules {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Input(format!("cannot write a PDB of {}: {error}", module.path))
        };
        let guid = module.pdb_guid.parse().map_err(|error| failed(&error))?;
        let id = PdbId::new(&module.pdb, guid, module.pdb_age).map_err(|error| failed(&error))?;
        let functions = module.functions.iter().map(|function| Function {
            name: function.name.clone(),
            rva: function.rva,
            size: function.size,
        });
        let functions: Vec<Function> = functions.collect();
        let pdb = write_pdb(&id, "simulated by laglab", &functions);
        let pdb = pdb.map_err(|error| failed(&error))?;
        let path = store.join(in_store(&id));
        let folder = path.parent().unwrap_or(store);
        fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
        let new = NewFile::create(&path)?;
        let written = new.file().write_all(&pdb);
        written.map_err(|error| Failure::writing(&path, &error))?;
        new.finish()?;
    }
    Ok(())
}

fn say(report: &Report<'_>) -> io::Result<()> {
    let mut out = output::for_people();
    output::first_heading(&mut out, report.title)?;
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    let events = match report.events_lost {
        0 => grouped(report.events),
        lost => format!("{} ({} lost)", grouped(report.events), grouped(lost)),
    };
    for (what, value) in [
        (
            "simulated",
            format!("{}, seed {}", report.scenario, report.seed),
        ),
        ("Windows build", report.windows_build.to_string()),
        ("events", events),
        (
            "trace",
            format!("{} ({})", report.trace, output::size(report.bytes)),
        ),
        ("truth", report.truth.clone()),
    ]
    .into_iter()
    .chain(report.symbols.clone().map(|store| ("symbols", store)))
    {
        columns.row([what.to_owned(), value]);
    }
    columns.write(&mut out)?;
    out.flush()
}

/// Entry in the JSON output of --list. Programs rely on its fields.
#[derive(Serialize)]
struct ScenarioEntry {
    name: &'static str,
    title: String,
    about: String,
}

fn list(json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for name in shipped::names() {
        let scenario = read(name, &text(name)?, &[])?;
        all.push(ScenarioEntry {
            name,
            title: scenario.title().to_owned(),
            about: scenario.about().trim().to_owned(),
        });
    }
    if json {
        return Ok(output::json(&all)?);
    }
    let mut out = output::for_people();
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    for ScenarioEntry { name, title, .. } in &all {
        columns.row([(*name).to_owned(), title.clone()]);
    }
    columns.write(&mut out)?;
    Ok(out.flush()?)
}
