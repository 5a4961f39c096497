//! `laglab prove what-if`.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use replay::{Change, ChangeError, Metric, PredictError, Prediction, RecordedWorkload, Row, Scope};
use serde::Serialize;
use session::NewFile;
use wording::{Sentence, listed};

use crate::cli::Failure;
use crate::cli::open::TabledTrace;
use crate::cli::prove::refuse_options_among;
use crate::cli::scope::TimeArgs;
use crate::output::{self, Columns, Side, counted, duration};
use crate::watch;

/// Maximum number of rows without --all.
const SHOWN: usize = 12;

/// Predicts from one recorded trace what a change would do, after a replay of the record itself.
#[derive(clap::Args)]
#[command(after_help = "Changes:\n  \
    affinity:game.exe=0-3              processors of a program\n  \
    priority:game.exe=high             priority class of a program, or its base priority (1 to 31)\n  \
    priority-separation=0x26           registry value Win32PrioritySeparation: quanta and boost of the focus\n  \
    remove:MODULE.sys                  no time for the DPCs and interrupts of a module (a bound)\n  \
    dpc:MODULE.sys*0.5                 half of their time (a bound)\n  \
    disk:0.5x                          time of disk requests (a bound)\n  \
    rank:off                           no ranks of scheduling groups\n\n\
    Examples:\n  \
    laglab prove what-if trace.etl --change remove:MODULE.sys\n  \
    laglab prove what-if trace.etl --change priority:game.exe=high --process game.exe\n  \
    laglab prove what-if trace.etl --change rank:off --json\n  \
    laglab prove what-if trace.etl --search --process game.exe\n  \
    laglab prove what-if trace.etl -o work.jsonl\n  \
    laglab prove what-if work.jsonl --change disk:0.5x")]
pub(super) struct Args {
    /// Trace, or a workload that -o wrote
    #[arg(value_name = "TRACE", required = true)]
    files: Vec<PathBuf>,
    /// Change to predict (repeatable: all changes together). Without a change, only the replay of the record is
    /// compared with the record
    #[arg(long, value_name = "CHANGE")]
    change: Vec<Change>,
    /// Try the changes that apply to the trace one after the other, and list those that shorten waits. Needs --process
    /// or --thread
    #[arg(long, conflicts_with = "change")]
    search: bool,
    /// Predict for this thread, by id (repeatable)
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    /// Predict for this process, by name or id (repeatable)
    #[arg(long, value_name = "PROCESS")]
    process: Vec<String>,
    /// Time that is measured. The whole trace is replayed
    #[command(flatten)]
    time: TimeArgs,
    /// Number of pairs of replays with other times of packets, input and devices, for the error bar
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=1000))]
    replays: u16,
    /// Show all processes and threads
    #[arg(long)]
    all: bool,
    /// Also write the workload of the trace, as lines of JSON (.jsonl)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
}

/// JSON output.
#[derive(Serialize)]
struct Answer<'p> {
    sentence: Sentence,
    #[serde(flatten)]
    prediction: &'p Prediction,
}

/// JSON output if only a workload was written.
#[derive(Serialize)]
struct WorkloadJson {
    output: String,
    bytes: u64,
    threads: usize,
}

/// JSON output of a search.
#[derive(Serialize)]
struct Searched<'p> {
    tried: usize,
    found: Vec<Answer<'p>>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    refuse_options_among(&args.files)?;
    let is_asked = !args.thread.is_empty() || !args.process.is_empty();
    if args.search && !is_asked {
        let message = "cannot search: no program or thread is given; add --process or --thread";
        return Err(Failure::Input(message.to_owned()));
    }
    let output = args.output.as_deref().map(|path| {
        if args
            .files
            .iter()
            .any(|file| files::is_same_file(file, path))
        {
            Err(Failure::input(
                path,
                "this is an input file; give another file to write",
            ))
        } else {
            Ok(NewFile::create(path)?)
        }
    });
    let output = output.transpose()?;
    let recorded = read(args)?;
    if let (Some(file), Some(path)) = (output, args.output.as_deref()) {
        replay::write(&recorded, BufWriter::new(file.file()))
            .map_err(|error| Failure::writing(path, &error))?;
        let bytes = file.finish()?;
        if args.change.is_empty() && !args.search && !is_asked {
            let threads = recorded.workload.threads.len();
            if json {
                let output = path.display().to_string();
                return Ok(output::json(&WorkloadJson {
                    output,
                    bytes,
                    threads,
                })?);
            }
            let threads = counted(threads as u64, "thread", "threads");
            let mut out = output::for_people();
            output::first_heading(&mut out, &format!("Wrote the workload of {threads}."))?;
            return Ok(out.flush()?);
        }
    }
    let scope = Scope {
        threads: args.thread.clone(),
        processes: args.process.clone(),
    };
    let go_on = || watch::check().is_ok();
    if args.search {
        return search(&recorded, &scope, json, &go_on);
    }
    let replays = usize::from(args.replays);
    let prediction = replay::predict(&recorded, &args.change, &scope, replays, &go_on);
    let prediction = prediction.map_err(failure)?;
    let sentence = if args.change.is_empty() {
        Sentence::from(replayed(&prediction, is_asked))
    } else {
        prediction.sentence(is_asked)
    };
    if json {
        return Ok(output::json(&Answer {
            sentence,
            prediction: &prediction,
        })?);
    }
    let mut out = output::for_people();
    write(&mut out, sentence.as_str(), &prediction, args)?;
    Ok(out.flush()?)
}

fn failure(error: PredictError) -> Failure {
    match &error {
        PredictError::Refused { .. } => Failure::NotRecorded(error.to_string()),
        PredictError::Run(replay::RunError::Stopped) => Failure::Interrupted,
        PredictError::Change {
            error:
                ChangeError::Disk | ChangeError::Edition | ChangeError::Focus | ChangeError::Quanta,
            ..
        } => Failure::NotRecorded(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

/// Reads a workload, or extracts it from a trace.
fn read(args: &Args) -> Result<RecordedWorkload, Failure> {
    if let [path] = &args.files[..]
        && starts_like_workload(path)
    {
        if args.time.is_given() {
            let message = "cannot use --from and --to: the measured time of a workload is fixed; give the trace";
            return Err(Failure::Input(message.to_owned()));
        }
        let file = files::open_file(path).map_err(|error| Failure::reading(path, &error))?;
        return replay::read(BufReader::new(file)).map_err(|error| Failure::input(path, error));
    }
    let tables = TabledTrace::new(&args.files, args.no_cache).open()?;
    let measured = args
        .time
        .range(&tables)?
        .map(|Range { start, end }| start.max(0) as u64..end.max(0) as u64);
    let recorded =
        tables.watched(|options| replay::extract(tables.store(), measured.clone(), options))?;
    recorded.map_err(|refusal| {
        let name = args.files[0].display();
        Failure::NotRecorded(format!("cannot replay {name}: {refusal}"))
    })
}

fn starts_like_workload(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = files::open_file(path).and_then(|file| file.take(64).read_to_end(&mut first));
    read.is_ok() && replay::is_workload(&first)
}

fn search(
    recorded: &RecordedWorkload,
    scope: &Scope,
    json: bool,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), Failure> {
    let (found, tried) = replay::search(recorded, scope, go_on).map_err(failure)?;
    if json {
        let answer = |found: &'_ replay::Candidate| found.prediction.sentence(true);
        return Ok(output::json(&Searched {
            tried,
            found: (found.iter())
                .map(|found| Answer {
                    sentence: answer(found),
                    prediction: &found.prediction,
                })
                .collect(),
        })?);
    }
    let mut out = output::for_people();
    let tried = counted(tried as u64, "change", "changes");
    let Some(best) = found.first() else {
        let text = format!("None of {tried} would shorten the waits by more than the error bar.");
        output::first_heading(&mut out, &text)?;
        return Ok(out.flush()?);
    };
    output::first_heading(&mut out, best.prediction.sentence(true).as_str())?;
    let mut table = Columns::new(&[Side::Left, Side::Right, Side::Left]);
    table.row(["change", "less waiting for a CPU", ""]);
    for found in &found {
        table.row([
            found.prediction.changes.join(", "),
            duration(found.gain_ns as i64),
            if found.prediction.is_bound {
                "at most"
            } else {
                ""
            }
            .to_owned(),
        ]);
    }
    table.write(&mut out)?;
    output::quiet(
        &mut out,
        &format!(
            "{tried} tried, without the part of the error bar because of chance; predict one with --change."
        ),
    )?;
    Ok(out.flush()?)
}

/// Returns the answer without a change: how well the replay reproduces the record.
fn replayed(prediction: &Prediction, is_asked: bool) -> String {
    let rows = prediction.rows.iter().filter(|row| row.thread_id.is_none());
    let (refused, good): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.refused.is_some());
    match prediction.rows.first().filter(|_| is_asked) {
        Some(row) => match &row.refused {
            Some(why) => format!("The replay does not reproduce {}: {why}.", row.name()),
            None => format!("The replay reproduces {}: {}.", row.name(), error_text(row)),
        },
        None => format!(
            "The replay reproduces {} of {}.",
            good.len(),
            counted((good.len() + refused.len()) as u64, "process", "processes")
        ),
    }
}

fn error_text(row: &Row) -> String {
    format!(
        "largest error of processor time and sum of waits {} ({})",
        output::percent(row.replay_error.share),
        row.replay_error.metric.text()
    )
}

fn write(
    out: &mut dyn Write,
    sentence: &str,
    prediction: &Prediction,
    args: &Args,
) -> io::Result<()> {
    output::first_heading(out, sentence)?;
    let count = if args.all { usize::MAX } else { SHOWN };
    let few = |row: &&Row| args.all || row.thread_id.is_none() || row.is_asked;
    let rows: Vec<&Row> = prediction.rows.iter().filter(few).take(count).collect();
    let more = prediction.rows.iter().filter(few).count() - rows.len();
    write_replay(out, &rows)?;
    if more > 0 {
        let more = counted(more as u64, "more process", "more processes");
        output::quiet(out, &format!("{more}; --all shows all."))?;
    }
    if !args.change.is_empty() {
        write_changes(out, prediction, &rows, args.all)?;
    }
    let of_interest = |row: &&&Row| args.all || row.is_asked || args.change.is_empty();
    for row in rows.iter().filter(of_interest) {
        let left_out = "because the replay of the record errs by more than 10 %";
        let too_few = "because too few waits remain in a replay";
        for (metrics, why) in [(&row.left_out, left_out), (&row.too_few, too_few)] {
            if !metrics.is_empty() {
                let names = metrics.iter().map(|metric| metric.text().to_owned());
                let text = format!("Left out for {}, {why}: {}.", row.name(), listed(names));
                output::quiet(out, &text)?;
            }
        }
    }
    output::heading(out, "Limits")?;
    for limit in &prediction.limits {
        output::quiet(out, limit)?;
    }
    Ok(())
}

/// Writes how well the replay reproduces the record.
fn write_replay(out: &mut dyn Write, rows: &[&Row]) -> io::Result<()> {
    output::heading(out, "Replay of the record, without a change")?;
    let mut table = Columns::new(&[Side::Left, Side::Right, Side::Left]);
    table.row(["", "largest error", ""]);
    for row in rows {
        table.row([
            row.name().to_string(),
            output::percent(row.replay_error.share),
            match &row.refused {
                Some(why) => format!("refused: {why}"),
                None => row.replay_error.metric.text().to_owned(),
            },
        ]);
    }
    table.write(out)
}

/// Writes the numbers of the rows before and after the change, with their error bars. Without `all`, only the main
/// numbers are written, and those of other programs only if they differ.
fn write_changes(
    out: &mut dyn Write,
    prediction: &Prediction,
    rows: &[&Row],
    all: bool,
) -> io::Result<()> {
    let what = if prediction.is_bound {
        "bound"
    } else {
        "predicted"
    };
    output::heading(out, "Before and after")?;
    let mut table = Columns::new(&[
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
    ]);
    table.row(["", "", "recorded", "replayed", "with change", what, "bar"]);
    let mut hidden = 0;
    for row in rows.iter().filter(|row| row.refused.is_none()) {
        for of in &row.metrics {
            let is_main = matches!(
                of.metric,
                Metric::Cpu | Metric::ReadyTotal | Metric::ReadyP99 | Metric::ResponseP99
            );
            if !all && !is_main {
                continue;
            }
            if !all && !row.is_asked && !of.differs() {
                hidden += 1;
                continue;
            }
            let text = |ns: f64| duration(ns.round() as i64);
            table.row([
                row.name().to_string(),
                of.metric.text().to_owned(),
                text(of.recorded_ns),
                text(of.replayed_ns),
                text(of.changed_ns),
                if prediction.is_bound {
                    of.bound_ns.map_or_else(|| "-".to_owned(), text)
                } else {
                    text(of.predicted_ns)
                },
                format!("{} to {}", text(of.bar.low_ns), text(of.bar.high_ns)),
            ]);
        }
    }
    table.write(out)?;
    if hidden > 0 {
        let numbers = counted(hidden, "number", "numbers");
        let text = format!(
            "{numbers} of programs that you did not name would change by less than the error bar; --all shows all."
        );
        output::quiet(out, &text)?;
    }
    if let Some(text) = rows.iter().find_map(|row| parts_text(row, prediction)) {
        output::quiet(out, &text)?;
    }
    Ok(())
}

/// Returns the parts of the error bar of a wait, or of another number if no wait is predicted.
fn parts_text(row: &Row, prediction: &Prediction) -> Option<String> {
    let mut metrics = row.metrics.iter();
    let of = (metrics.find(|of| of.metric != Metric::Cpu)).or(row.metrics.first())?;
    let pairs = counted(
        prediction.replays as u64,
        "pair of replays",
        "pairs of replays",
    );
    let chance = of.bar.chance.map(output::percent);
    let structure = of.bar.structure.map(output::percent);
    let parts = [
        chance.map(|part| format!("chance {part} ({pairs})")),
        Some(format!("model {}", output::percent(of.bar.model))),
        structure.map(|part| format!("structure {part}")),
        Some(format!("effect {}", output::percent(of.bar.effect))),
    ];
    Some(format!(
        "Parts of the error bar of the {} of {}: {}.",
        of.metric.text(),
        row.name(),
        listed(parts.into_iter().flatten())
    ))
}
