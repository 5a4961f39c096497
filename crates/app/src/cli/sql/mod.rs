//! `laglab sql`.

mod prompt;
mod trace_symbols;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use answer::{Format, Shown};
use facts::Moment;
use session::{NewFile, NotRecorded, SEVERAL_SYSTEMS};
use sql::{NamedTrace, Session, Settings, SqlError, Statement};
use tables::{Options, Store, Table};

use super::Failure;
use super::open::{TabledTrace, names};
use super::scope::{FROM_AFTER_TO, check_time, since_start};
use super::symbols::SymbolArgs;
use crate::output::say;
use crate::watch::{self, Watch};
use trace_symbols::TraceSymbols;

/// Maximum number of rows of a table that are shown without --all.
const ROWS_SHOWN: u64 = 200;

/// Maximum number of characters of a value that are shown on a terminal.
const CHARACTERS_SHOWN: usize = 80;

/// Runs SQL queries on the tables of traces.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab sql [OPTIONS] TRACE… [QUERY]",
    after_help = "Examples:\n  \
    laglab sql trace.etl \"SELECT * FROM cpu_by_process ORDER BY cpu_ns DESC LIMIT 10\"\n  \
    laglab sql trace.etl \"SELECT * FROM ready_waits ORDER BY ready_ns DESC\" -o waits.csv\n  \
    laglab sql trace.etl\n  \
    laglab sql --separate before.etl after.etl \\\n    \
    \"SELECT trace, count(*) FROM context_switches GROUP BY trace\"\n\n\
    Without a query, the command opens a prompt. docs/tables.md and docs/views.md list tables and views."
)]
pub(super) struct Args {
    /// Files of one trace, and the query as the last argument
    #[arg(value_name = "TRACE… QUERY", required = true)]
    inputs: Vec<OsString>,
    /// Run the statements in this file; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read each file as a separate trace; the column `trace` names the trace of a row
    #[arg(long)]
    separate: bool,
    /// Start at this time: a time since the trace's start (for example 1.5, 1.5s, 20ms or 7us), or UTC
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// End at this time, inclusive
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,
    /// Format of the results [default: by the extension of --output, else table]
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<AnswerFormat>,
    /// Write the result to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show all rows of a table
    #[arg(long)]
    all: bool,
    /// Memory limit of a query in MiB; beyond it, the query uses temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: usize,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// Format of query results.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerFormat {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header line; lists as JSON
    Csv,
    /// One JSON object per line
    Jsonl,
    /// Arrow IPC file
    Arrow,
    /// Parquet
    Parquet,
}

impl From<AnswerFormat> for Format {
    fn from(format: AnswerFormat) -> Format {
        match format {
            AnswerFormat::Table => Format::Table,
            AnswerFormat::Csv => Format::Csv,
            AnswerFormat::Jsonl => Format::Jsonl,
            AnswerFormat::Arrow => Format::Arrow,
            AnswerFormat::Parquet => Format::Parquet,
        }
    }
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
        (false, Some(format), _) => format.into(),
        (false, None, Some(path)) => Format::of_file(path).ok_or_else(|| {
            let known = "unknown format; use .csv, .jsonl, .arrow, .parquet or .txt";
            Failure::input(path, format!("{known}, or give --format"))
        })?,
        (false, None, None) => Format::Table,
    };
    let traces = open(args, &paths)?;
    let stores = traces.iter().map(|trace| Arc::clone(&trace.store));
    let symbols = Arc::new(TraceSymbols::new(args.symbols.options(), stores)?);
    let answers = Answers {
        session: session(args, &traces, &symbols)?,
        symbols,
        stores: traces.into_iter().map(|trace| trace.store).collect(),
        warned: Once::new(),
        warned_of_damage: Once::new(),
        noted: Mutex::default(),
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
            "cannot write a result: there is no query; give one",
        )),
        (None, None) => prompt::run(&answers),
        (Some(statements), None) => answers.print(&statements),
        (Some(statements), Some(path)) => answers.save(&statements, path),
    }
}

/// Separates the files from the query. The last argument is a query if it contains whitespace and no file has
/// this name. Queries in a file or on standard input need no argument.
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

/// Maximum number of bytes of a script.
const MOST_SCRIPT: u64 = 16 << 20;

fn read_script(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        return match io::stdin().read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Failure::Input(format!(
                "cannot read standard input: {error}"
            ))),
        };
    }
    let text = String::from_utf8(Failure::read(path, MOST_SCRIPT)?);
    text.map_err(|_| Failure::reading(path, &io::ErrorKind::InvalidData.into()))
}

/// Returns an error if an argument in the place of a file is a query.
fn refuse_queries_among(paths: &[PathBuf]) -> Result<(), Failure> {
    let is_query = |path: &&PathBuf| {
        let text = path.to_string_lossy();
        (text.is_empty() || text.contains(char::is_whitespace)) && !path.exists()
    };
    paths.iter().find(is_query).map_or(Ok(()), |misplaced| {
        let text = format!("{misplaced:?}");
        Err(Failure::Input(format!(
            "cannot open {text}: no such file; if this is the query, give the traces first, and then the whole query as \
             the last argument"
        )))
    })
}

/// Opens the traces.
fn open(args: &Args, paths: &[PathBuf]) -> Result<Vec<NamedTrace>, Failure> {
    refuse_queries_among(paths)?;
    let groups: Vec<&[PathBuf]> = if args.separate {
        paths.chunks(1).collect()
    } else {
        vec![paths]
    };
    let mut traces = Vec::new();
    for (group, name) in groups.iter().zip(names(&groups)) {
        let store = TabledTrace::new(group, args.no_cache).open_any()?;
        let store = Arc::clone(store.store());
        if !store.info().is_one_system {
            say(&format!(
                "{} Use --separate to read each file as a separate trace.",
                SEVERAL_SYSTEMS
            ));
        }
        traces.push(NamedTrace { name, store });
    }
    Ok(traces)
}

/// Creates a session for the traces, limited to the time range of the options.
fn session(
    args: &Args,
    traces: &[NamedTrace],
    symbols: &Arc<TraceSymbols>,
) -> Result<Session, Failure> {
    if args.separate && [args.from, args.to].iter().flatten().any(Moment::is_utc) {
        return Err(Failure::Input(
            "--separate needs times since the start: UTC times differ between traces".to_owned(),
        ));
    }
    let first = traces
        .first()
        .filter(|_| args.from.is_some() || args.to.is_some());
    let range = first.map(|trace| {
        let ns = |moment| since_start("--from and --to", moment, trace.store.info());
        Ok::<_, Failure>(ns(args.from)?.unwrap_or(i64::MIN)..=ns(args.to)?.unwrap_or(i64::MAX))
    });
    let range = range.transpose()?;
    if let Some(range) = &range
        && range.is_empty()
    {
        return Err(Failure::Input(FROM_AFTER_TO.to_owned()));
    }
    let outside = range.as_ref().map(|range| {
        let span = *range.start()..range.end().saturating_add(1);
        let each = traces.iter();
        each.map(|trace| check_time("--from and --to", &span, trace.store.info()))
            .collect::<Vec<_>>()
    });
    if let Some(outside) = outside
        && outside.iter().all(Result::is_err)
    {
        outside.into_iter().next().unwrap_or(Ok(()))?;
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

/// Runner of SQL statements, which writes their results.
struct Answers {
    session: Session,
    symbols: Arc<TraceSymbols>,
    stores: Vec<Arc<Store>>,
    warned: Once,
    warned_of_damage: Once,
    /// Tables without rows that were noted.
    noted: Mutex<HashSet<Table>>,
    format: Format,
    shown: Shown,
}

impl Answers {
    /// Prints the results of all statements, with an empty line between tables.
    fn print(&self, statements: &[Statement]) -> Result<(), Failure> {
        if self.format.is_binary() && io::stdout().is_terminal() {
            return Err(Failure::Input(format!(
                "cannot print {:?} on a terminal; name a file with --output",
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

    /// Writes the results of all statements to a file.
    fn save(&self, statements: &[Statement], path: &Path) -> Result<(), Failure> {
        self.check(statements)?;
        let new = NewFile::create(path)?;
        for statement in statements {
            self.answer(statement, &mut || Ok(Box::new(BufWriter::new(new.file()))))?;
        }
        new.finish()?;
        Ok(())
    }

    /// Returns an error if there are several results and the format can hold only one.
    fn check(&self, statements: &[Statement]) -> Result<(), Failure> {
        let is_question = |statement: &&Statement| {
            let text = statement.to_string();
            // Statements that create or delete views have no result.
            !text.starts_with("CREATE") && !text.starts_with("DROP")
        };
        match statements.iter().filter(is_question).count() {
            several @ 2.. if self.format.holds_one() => Err(Failure::Input(format!(
                "cannot write {several} results: this format stores one; run the queries separately"
            ))),
            _ => Ok(()),
        }
    }

    /// Runs one statement. The output is opened after the first row, so that a failed statement leaves no
    /// file. Returns true if the statement has a result.
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
        let warnings: Vec<&str> = warnings.collect();
        if !warnings.is_empty() {
            self.warned.call_once(|| warnings.into_iter().for_each(say));
        }
        let should_continue = || watch::check().is_ok();
        let mut batches = query.batches(&should_continue)?.peekable();
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
        self.symbols.warn_of_missing();
        self.warn_of_damage()?;
        self.note_missing(statement)?;
        Ok(true)
    }

    /// Notes once for each table that its events may not be recorded: otherwise, a count of 0 looks like an answer.
    fn note_missing(&self, statement: &Statement) -> Result<(), Failure> {
        for table in self.session.tables_of(statement)? {
            let is_empty = |store: &Arc<Store>| matches!(store.made(table), Ok(Some(stored)) if stored.rows() == 0);
            let missing = if self.stores.iter().all(|store| store.info().is_linux()) {
                NotRecorded::of_linux_table(table)
            } else {
                NotRecorded::of_table(table)
            };
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(missing) = missing
                && self.stores.iter().all(is_empty)
                && noted.insert(table)
            {
                say(&missing.to_string());
            }
        }
        Ok(())
    }

    /// Warns once of the damage of recordings of Linux. It is known after the first tables were made.
    fn warn_of_damage(&self) -> Result<(), Failure> {
        let mut stores = self.stores.iter().filter(|store| store.info().is_linux());
        if stores.any(|store| matches!(store.made(Table::Damages), Ok(Some(_)))) {
            let warn = || (self.stores.iter()).try_for_each(|it| super::warn_of_linux_damage(it));
            let mut warned = Ok(());
            self.warned_of_damage.call_once(|| warned = warn());
            return warned;
        }
        Ok(())
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        match error {
            SqlError::Cancelled => Failure::Interrupted,
            SqlError::Memory { .. } => {
                Failure::Input(format!("{error}; raise the limit with --memory"))
            }
            other => Failure::Input(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(names: &[&str]) -> Vec<OsString> {
        names.iter().map(OsString::from).collect()
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
