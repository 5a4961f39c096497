//! Random statements of a grammar. A session answers each of them with rows or a clear error, in limited time
//! and memory, and no part of the engine panics.
//!
//! `LAGLAB_STATEMENTS` sets the number of statements, and `LAGLAB_SEED` sets the first seed. A failure names
//! the seed of its statement. Statements can use tables and views that earlier statements created.

#[path = "../given/mod.rs"]
mod given;
mod grammar;

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, panic, thread};

use given::{TraceWithTruth, session, simulated};
use grammar::{Grammar, Kind, Source};
use sql::{Session, Settings, SqlError};
use tables::Options;

/// Number of statements without `LAGLAB_STATEMENTS`.
const STATEMENTS: u64 = 400;

/// Time after which a statement is cancelled.
const TIME: Duration = Duration::from_millis(500);

/// Maximum time until a statement ends, even if it is cancelled. The maximum is long, because planning cannot
/// be cancelled and other programs may use the processor.
const END: Duration = Duration::from_secs(100);

/// Number of rows after which the rest of a result is cancelled.
const ROWS: usize = 100_000;

/// Number of statements of a session.
const OF_SESSION: u64 = 50;

/// Memory limit of a query, in bytes.
const MEMORY_BYTES: usize = 128 << 20;

/// Maximum memory of the whole process, in KiB. A query's result, a few results of functions, and the plans
/// do not count as memory of the query.
const PROCESS_KIB: u64 = 3 << 20;

/// Number of characters of a statement that a failure shows.
const SHOWN: usize = 3_000;

/// Messages of panics since the last statement.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Debug, Default)]
struct Counts {
    answered: u64,
    refused: u64,
    cancelled: u64,
    /// Longest time of a statement, and its seed.
    longest: (Duration, u64),
}

#[test]
fn every_statement_is_answered_or_refused() {
    panic::set_hook(Box::new(|about| {
        let thread = thread::current();
        let name = thread.name().unwrap_or_default();
        PANICS.lock().unwrap().push(format!("{name}: {about}"));
    }));
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("LAGLAB_SEED").unwrap_or(1);
    let statements = number("LAGLAB_STATEMENTS").unwrap_or_else(|| testdata::rounds(STATEMENTS));
    let given = simulated("rank-stall", &["duration=1s"]);
    let mut ours = new_session(&given);
    let sources = sources(&ours);
    let functions = ours.function_names();
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    for seed in first..first + statements {
        if seed % OF_SESSION == 0 {
            ours = new_session(&given);
        }
        let text = Grammar::new(seed, &sources, &functions).statement();
        let shown: String = text.chars().take(SHOWN).collect();
        let mut fail = |what: &str| failures.push(format!("{seed}: {what}\n  {shown}"));
        let begun = Instant::now();
        match outcome_in_time(&ours, text) {
            None => fail("it does not end"),
            Some(Ok(())) => counts.answered += 1,
            Some(Err(SqlError::Cancelled)) => counts.cancelled += 1,
            Some(Err(error)) => {
                counts.refused += 1;
                if let Some(what) = unclear(&error) {
                    fail(&what);
                }
            }
        }
        for panic in PANICS.lock().unwrap().drain(..) {
            fail(&format!("panic in {panic}"));
        }
        counts.longest = counts.longest.max((begun.elapsed(), seed));
    }
    let _ = panic::take_hook();
    assert!(
        failures.is_empty(),
        "{} of {statements} statements fail, {counts:?}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    // If fewer statements were answered, most statements would test only the parser. About a fifth is answered; of a few
    // statements, it can be less. On a busy machine, more statements are cancelled.
    assert!(
        counts.answered * 10 > statements - counts.cancelled,
        "{counts:?}"
    );
    if cfg!(target_os = "linux") {
        let peak = peak_kib();
        assert!(peak < PROCESS_KIB, "{peak} KiB of memory");
    }
}

fn new_session(given: &TraceWithTruth) -> Arc<Session> {
    let settings = Settings {
        memory_bytes: MEMORY_BYTES,
        ..Settings::default()
    };
    Arc::new(session(&[given], settings))
}

/// Returns the tables that have rows, with their columns.
fn sources(session: &Session) -> Vec<Source> {
    let names = [
        "samples",
        "context_switches",
        "threads",
        "cpus",
        "cpu_by_process",
    ];
    let of = |name: &str| Source {
        name: name.to_owned(),
        columns: (session.columns(name).expect("a table").fields().iter())
            .map(|field| (field.name().clone(), Kind::from_type(field.data_type())))
            .collect(),
    };
    names.into_iter().map(of).collect()
}

/// Returns the outcome of a statement. Returns `None` if the statement does not end.
fn outcome_in_time(session: &Arc<Session>, text: String) -> Option<Result<(), SqlError>> {
    let (give, take) = mpsc::channel();
    let session = Arc::clone(session);
    thread::spawn(move || give.send(outcome(&session, &text)));
    take.recv_timeout(END).ok()
}

fn outcome(session: &Session, text: &str) -> Result<(), SqlError> {
    let begun = Instant::now();
    let is_in_time = || begun.elapsed() < TIME;
    for statement in sql::parse(text)? {
        let options = Options {
            progress: &|_| is_in_time(),
        };
        let query = session.prepare(&statement, options)?;
        let mut rows = 0;
        for batch in query.batches(&is_in_time)? {
            rows += batch?.num_rows();
            if rows > ROWS {
                break;
            }
        }
    }
    Ok(())
}

/// Returns a description of an error that has no clear cause in the statement.
fn unclear(error: &SqlError) -> Option<String> {
    let text = error.to_string();
    let is_ours = matches!(
        error,
        SqlError::Engine | SqlError::Store(_) | SqlError::Setup(_)
    );
    let signs = ["bug in DataFusion", "Internal error"];
    let is_unclear =
        is_ours || text.trim().is_empty() || signs.iter().any(|sign| text.contains(sign));
    is_unclear.then(|| format!("{error:?}"))
}

/// Returns the largest memory that the process had, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    number.and_then(|kib| kib.parse().ok()).expect("a number")
}
