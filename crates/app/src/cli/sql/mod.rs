//! `laglab sql`.

mod prompt;
mod symbols;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use sql::{NamedTrace, Session, Settings, SqlError, Statement};
use tables::{Options, Store};

use super::Failure;
use super::new_file::NewFile;
use super::open::{TabledTrace, names};
use super::say;
use crate::answer::{Format, Shown};
use crate::moment::Moment;
use crate::symbolication::SymbolOptions;
use crate::watch::{self, Watch};
use symbols::TraceSymbols;

/// Rows of a table that are shown unless all are asked for.
const ROWS_SHOWN: u64 = 200;

/// Characters of a value that are shown on a terminal.
const CHARACTERS_SHOWN: usize = 80;

/// Answers questions in SQL about the tables of traces.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab sql [OPTIONS] TRACE… [QUERY]",
    after_help = "Examples:\n  \
    laglab sql trace.etl \"SELECT * FROM cpu_by_process ORDER BY cpu_ns DESC LIMIT 10\"\n  \
    laglab sql trace.etl \"SELECT * FROM ready_waits ORDER BY ready_ns DESC\" -o waits.csv\n  \
    laglab sql trace.etl\n  \
    laglab sql --separate before.etl after.etl \\\n    \
    \"SELECT trace, count(*) FROM context_switches GROUP BY trace\"\n\n\
    Without a query it asks for one; docs/tables.md and docs/views.md list what there is."
)]
pub(super) struct Args {
    /// Files of one trace, and the query as the last argument
    #[arg(value_name = "TRACE… QUERY", required = true)]
    inputs: Vec<OsString>,
    /// Read statements from this file; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Each file is a trace of its own, and its name is in the column `trace`
    #[arg(long)]
    separate: bool,
    /// Rows of events from this time on: since the trace's start (1.5, 1.5s, 20ms, 7us) or UTC
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Rows of events up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,
    /// The format of answers; else what the name of the output asks for, or a table
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,
    /// Write the answer to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show all rows of a table
    #[arg(long)]
    all: bool,
    /// Memory in MiB that a query may have before it goes on on disk
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: usize,
    /// Make the tables anew, and keep none for the next question
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    symbols: SymbolOptions,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (paths, query) = split(&args.inputs, args.file.is_some());
    let script = match (&args.file, query) {
        (Some(file), _) => Some(read_script(file)?),
        (None, Some(query)) => Some(query),
        (None, None) if io::stdin().is_terminal() => None,
        (None, None) => Some(read_script(Path::new("-"))?),
    };
    let statements = script.as_deref().map(sql::parse).transpose()?;
    let format = match (json, args.format, &args.output) {
        (true, ..) => Format::Jsonl,
        (false, Some(format), _) => format,
        (false, None, Some(path)) => Format::of_file(path).ok_or_else(|| {
            let known = "its name must end in .csv, .jsonl, .arrow, .parquet or .txt";
            Failure::input(path, format!("{known}, or --format say what to write"))
        })?,
        (false, None, None) => Format::Table,
    };
    let traces = open(args, &paths)?;
    let stores = traces.iter().map(|trace| Arc::clone(&trace.store));
    let symbols = Arc::new(TraceSymbols::new(&args.symbols, stores)?);
    let answers = Answers {
        session: session(args, &traces, &symbols)?,
        symbols,
        stores: traces.into_iter().map(|trace| trace.store).collect(),
        warned: Once::new(),
        format,
        shown: Shown {
            rows: (!args.all).then_some(ROWS_SHOWN),
            characters: (args.output.is_none() && io::stdout().is_terminal())
                .then_some(CHARACTERS_SHOWN),
        },
    };
    match (statements, &args.output) {
        (None, Some(path)) => Err(Failure::input(
            path,
            "give the query whose answer it is for",
        )),
        (None, None) => prompt::run(&answers),
        (Some(statements), None) => answers.print(&statements),
        (Some(statements), Some(path)) => answers.save(&statements, path),
    }
}

/// The files, and the query if the last argument is one: it holds a space, as any query does, and
/// is no file.
fn split(inputs: &[OsString], query_is_elsewhere: bool) -> (Vec<PathBuf>, Option<String>) {
    let query = inputs
        .split_last()
        .filter(|_| !query_is_elsewhere)
        .and_then(|(last, files)| {
            let text = last.to_str()?;
            let is_query = !files.is_empty()
                && text.contains(char::is_whitespace)
                && !Path::new(text).exists();
            is_query.then(|| (files, text.to_owned()))
        });
    match query {
        Some((files, query)) => (files.iter().map(PathBuf::from).collect(), Some(query)),
        None => (inputs.iter().map(PathBuf::from).collect(), None),
    }
}

fn read_script(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        return match io::stdin().read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Failure::Input(format!("standard input: {error}"))),
        };
    }
    std::fs::read_to_string(path).map_err(|error| Failure::input(path, error))
}

/// Opens the traces.
fn open(args: &Args, paths: &[PathBuf]) -> Result<Vec<NamedTrace>, Failure> {
    let groups: Vec<&[PathBuf]> = match args.separate {
        true => paths.chunks(1).collect(),
        false => vec![paths],
    };
    let mut traces = Vec::new();
    for (group, name) in groups.iter().zip(names(&groups)) {
        let store = TabledTrace::new(group, args.no_cache).open()?.store;
        if !store.trace().is_one_system() {
            say(&format!(
                "{} With --separate each is a trace of its own.",
                super::SEVERAL_SYSTEMS
            ));
        }
        traces.push(NamedTrace { name, store });
    }
    Ok(traces)
}

/// A session about the traces, restricted to the times that are asked for.
fn session(
    args: &Args,
    traces: &[NamedTrace],
    symbols: &Arc<TraceSymbols>,
) -> Result<Session, Failure> {
    if args.separate && [args.from, args.to].iter().flatten().any(Moment::is_utc) {
        return Err(Failure::Input(
            "with --separate give times since the start, which all traces have".to_owned(),
        ));
    }
    let range = traces.first().and_then(|trace| {
        let clock = trace.store.trace().clock();
        let ns = |moment: Option<Moment>| moment.map(|moment| moment.since_start(clock));
        (args.from.is_some() || args.to.is_some())
            .then(|| ns(args.from).unwrap_or(i64::MIN)..=ns(args.to).unwrap_or(i64::MAX))
    });
    if let Some(range) = &range
        && range.is_empty()
    {
        return Err(Failure::Input(
            "--from is later than --to: no event can be between".to_owned(),
        ));
    }
    Ok(Session::new(
        traces.to_vec(),
        Settings {
            memory_bytes: args.memory.saturating_mul(1 << 20),
            range,
            symbols: Some(Arc::<TraceSymbols>::clone(symbols)),
        },
    )?)
}

/// Answers statements, one after the other.
struct Answers {
    session: Session,
    symbols: Arc<TraceSymbols>,
    stores: Vec<Arc<Store>>,
    warned: Once,
    format: Format,
    shown: Shown,
}

impl Answers {
    /// Prints the answers, with an empty line between tables.
    fn print(&self, statements: &[Statement]) -> Result<(), Failure> {
        if self.format.holds_one() && io::stdout().is_terminal() {
            return Err(Failure::Input(format!(
                "{:?} is not for a terminal; name a file with --output",
                self.format
            )));
        }
        self.check(statements)?;
        let mut printed = false;
        for statement in statements {
            let is_next_table = printed && self.format == Format::Table;
            printed |= self.answer(statement, &mut || {
                let mut out: Box<dyn Write + Send> = match self.format {
                    Format::Table => Box::new(anstream::stdout()),
                    _ => Box::new(io::stdout()),
                };
                if is_next_table {
                    writeln!(out)?;
                }
                Ok(Box::new(BufWriter::with_capacity(1 << 16, out)))
            })?;
        }
        Ok(())
    }

    /// Writes the answers to a file.
    fn save(&self, statements: &[Statement], path: &Path) -> Result<(), Failure> {
        self.check(statements)?;
        let new = NewFile::create(path)?;
        for statement in statements {
            self.answer(statement, &mut || Ok(Box::new(BufWriter::new(new.file()))))?;
        }
        new.finish()?;
        Ok(())
    }

    /// Refuses several answers where only one can be written.
    fn check(&self, statements: &[Statement]) -> Result<(), Failure> {
        let is_question = |statement: &&Statement| {
            let text = statement.to_string();
            // Views may be made before the question.
            !text.starts_with("CREATE") && !text.starts_with("DROP")
        };
        match statements.iter().filter(is_question).count() {
            several @ 2.. if self.format.holds_one() => Err(Failure::Input(format!(
                "a file of the format {:?} holds one answer; ask {several} times",
                self.format
            ))),
            _ => Ok(()),
        }
    }

    /// Answers one statement. Nothing is opened for writing before the first row is there; says
    /// whether there was an answer to write.
    fn answer<'o>(
        &self,
        statement: &Statement,
        open: &mut dyn FnMut() -> io::Result<Box<dyn Write + Send + 'o>>,
    ) -> Result<bool, Failure> {
        let query = {
            let watch = Watch::new("building tables", self.session.size_bytes());
            let progress = |done: u64| watch.reach(done).is_ok();
            let options = Options {
                progress: &progress,
            };
            self.session.prepare(statement, options)?
        };
        let warnings = self.stores.iter().filter_map(|store| store.warning());
        self.warned.call_once(|| warnings.for_each(say));
        let go_on = || watch::check().is_ok();
        let mut batches = query.batches(&go_on)?.peekable();
        if let Some(Err(_)) = batches.peek()
            && let Some(Err(error)) = batches.next()
        {
            return Err(error.into());
        }
        let schema = query.schema();
        if schema.fields().is_empty() {
            return Ok(false);
        }
        let mut writer = self.format.writer(open()?, &schema, self.shown)?;
        for batch in batches {
            writer.write(&batch?)?;
        }
        writer.finish()?;
        self.symbols.say_what_is_missing();
        Ok(true)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        match error {
            SqlError::Cancelled => Failure::Interrupted,
            SqlError::Memory { limit_mib, .. } => Failure::Input(format!(
                "the query needs more memory than the {limit_mib} MiB it may have, and cannot go \
                 on on disk; give it more with --memory"
            )),
            other => Failure::Input(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(of: &[&str]) -> Vec<OsString> {
        of.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_query_is_the_last_argument() {
        let (files, query) = split(&inputs(&["a.etl", "b.etl", "SELECT 1"]), false);
        assert_eq!(files, [Path::new("a.etl"), Path::new("b.etl")]);
        assert_eq!(query.as_deref(), Some("SELECT 1"));
        let (files, query) = split(&inputs(&["a.etl", "b.etl"]), false);
        assert_eq!((files.len(), query), (2, None));
        let (files, query) = split(&inputs(&["a.etl", "my trace.etl"]), true);
        assert_eq!((files.len(), query), (2, None));
        let (files, query) = split(&inputs(&["my trace.etl"]), false);
        assert_eq!((files.len(), query), (1, None));
    }
}
