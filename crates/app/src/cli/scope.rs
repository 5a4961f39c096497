//! Options that limit `laglab explain` to threads, processes or a time range, and checks of such options against
//! the trace.

use std::ops::Range;

use explain::{Scope, is_called};
use facts::Moment;
use session::TraceTables;
use tables::{FocusView, Identities, RecordingInfo, Table, utc};
use xperf::Recording;

use super::Failure;
use crate::output::{counted, duration, grouped};

/// Options that limit `laglab explain` to threads, processes or a time range.
#[derive(Default, clap::Args)]
pub(super) struct ScopeArgs {
    /// Explain the waits of this thread, by id (repeatable)
    #[arg(
        long,
        value_name = "TID",
        value_parser = thread_id,
        allow_negative_numbers = true,
        help_heading = "Scope"
    )]
    thread: Vec<u32>,
    /// Explain the waits of this process's threads, by name or id (repeatable)
    #[arg(long, value_name = "PROCESS", help_heading = "Scope")]
    process: Vec<String>,
    /// Explain waits at this time: a time since the trace's start (for example 1.5 or 20ms), or UTC
    #[arg(
        long,
        value_name = "TIME",
        allow_negative_numbers = true,
        conflicts_with_all = ["from", "to"],
        help_heading = "Scope"
    )]
    at: Option<Moment>,
    #[command(flatten, next_help_heading = "Scope")]
    time: TimeArgs,
    /// Explain waits from the time when process A got the focus until B got it
    #[arg(
        long,
        num_args = 2,
        value_names = ["A", "B"],
        conflicts_with_all = ["at", "from", "to"],
        help_heading = "Scope"
    )]
    between_focus: Option<Vec<String>>,
}

fn thread_id(text: &str) -> Result<u32, String> {
    let expected = "expected a thread id: an integer such as 4711";
    text.parse().map_err(|_| expected.to_owned())
}

impl ScopeArgs {
    /// Returns the scope that the options select.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if the trace does not contain the thread, process or time. The message
    /// lists alternatives.
    pub(super) fn scope(&self, tables: &TraceTables) -> Result<Scope, Failure> {
        let names = tables.identities()?;
        for id in &self.thread {
            check_thread("--thread", &names, *id)?;
        }
        for process in &self.process {
            check_process(&names, process)?;
        }
        Ok(Scope {
            threads: self.thread.clone(),
            processes: self.process.clone(),
            during: self.during(tables, &names)?,
        })
    }

    /// Returns the selected time range in nanoseconds since the trace's start, if there is one.
    fn during(
        &self,
        tables: &TraceTables,
        names: &Identities,
    ) -> Result<Option<Range<i64>>, Failure> {
        if let Some([from, to]) = self.between_focus.as_deref() {
            let between = tables
                .watched(|options| explain::between_focus(tables.store(), from, to, options))?;
            return match between {
                Some(between) => Ok(Some(between)),
                None => Err(Failure::Input(format!(
                    "--between-focus: the trace contains no change of focus from {from} to {to}; {}",
                    focus_order(tables, names)?
                ))),
            };
        }
        let info = tables.store().info();
        if let Some(at) = since_start("--at", self.at, info)? {
            let at = at..at.saturating_add(1);
            return check_time("--at", &at, info).map(|()| Some(at));
        }
        self.time.range(tables)
    }
}

/// Time range. Without a start or an end, it lasts from the trace's start, or until its end.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct TimeArgs {
    /// Start at this time: a time since the trace's start (for example 1.5, 1.5s, 20ms or 7us), or UTC (ISO
    /// 8601)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// End before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,
}

impl TimeArgs {
    /// Returns true if the range is not the whole trace.
    pub(super) fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Returns the range in nanoseconds since the trace's start, cut to the trace. Returns `None` if the range is the
    /// whole trace.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if the range is empty or outside the trace.
    pub(super) fn range(&self, tables: &TraceTables) -> Result<Option<Range<i64>>, Failure> {
        let option = match (self.from, self.to) {
            (None, None) => return Ok(None),
            (Some(_), None) => "--from",
            (None, Some(_)) => "--to",
            (Some(_), Some(_)) => "--from and --to",
        };
        time_range(option, [self.from, self.to], tables).map(Some)
    }
}

/// Returns the time range that an option selects, in nanoseconds since the trace's start. The range is cut to the
/// trace.
///
/// # Errors
/// Returns [`Failure::Input`] if the range is empty or outside the trace.
pub(super) fn time_range(
    option: &str,
    range: [Option<Moment>; 2],
    tables: &TraceTables,
) -> Result<Range<i64>, Failure> {
    if range[0].is_some_and(|from| from.is_negative()) {
        return Err(Failure::Input(format!(
            "{option}: the time is before the start of the trace; times count from its start, so give 0 or more"
        )));
    }
    let info = tables.store().info();
    let end = info.end_ns.saturating_add(1);
    let [from, to] = range.map(|moment| since_start(option, moment, info));
    let (from, to) = (from?, to?);
    let range = from.unwrap_or(0)..to.unwrap_or(end.max(from.unwrap_or(0).saturating_add(1)));
    if range.is_empty() {
        return Err(Failure::Input(format!(
            "{option}: the start ({}) is not before the end ({}); give the earlier time first",
            duration(range.start),
            duration(range.end)
        )));
    }
    check_time(option, &range, info)?;
    Ok(range.start.max(0)..range.end.min(end))
}

/// Returns an error if the trace contains no thread with this id. `option` is the option with the id.
pub(super) fn check_thread(option: &str, names: &Identities, id: u32) -> Result<(), Failure> {
    let ids = (0..names.thread_rows() as u32).filter_map(|row| names.thread_id(row));
    let list = "the table `threads` of laglab sql lists them";
    check_id(option, ids.collect(), id, ["thread", "threads"], list)
}

/// Returns an error if the trace contains no process with this id. `option` is the option with the id.
pub(super) fn check_process_id(option: &str, names: &Identities, id: u32) -> Result<(), Failure> {
    let ids = names.processes().filter_map(|process| process.id);
    let list = "laglab process lists them";
    check_id(option, ids.collect(), id, ["process", "processes"], list)
}

/// Returns an error with the nearest ids if `ids` does not contain `id`. `one` and `many` are the words for what has the
/// ids, and `list` says where they are listed.
fn check_id(
    option: &str,
    mut ids: Vec<u32>,
    id: u32,
    [one, many]: [&str; 2],
    list: &str,
) -> Result<(), Failure> {
    ids.sort_unstable();
    ids.dedup();
    let Err(place) = ids.binary_search(&id) else {
        return Ok(());
    };
    let near = &ids[place.saturating_sub(1)..ids.len().min(place + 1)];
    let near: Vec<String> = near.iter().map(u32::to_string).collect();
    let there_is = if near.is_empty() {
        format!("it contains no {many}")
    } else {
        format!(
            "it has {}; the nearest ids: {}",
            counted(ids.len() as u64, one, many),
            near.join(" and ")
        )
    };
    Err(Failure::Input(format!(
        "{option}: the trace contains no {one} {id}; {there_is} ({list})"
    )))
}

/// Returns an error if the trace has no CPU with one of these numbers.
pub(super) fn check_cpus(asked: &[u16], trace: &Recording) -> Result<(), Failure> {
    if asked.is_empty() {
        return Ok(());
    }
    let cpus = trace.cpus()?;
    match asked.iter().find(|cpu| !cpus.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Failure::Input(match (cpus.first(), cpus.last()) {
            (Some(first), Some(last)) => {
                format!("--cpu: the trace has no CPU {cpu}; it has CPUs {first} to {last}")
            }
            _ => format!("--cpu: the trace has no CPU {cpu}, because it has no events of CPUs"),
        })),
    }
}

fn check_process(names: &Identities, asked: &str) -> Result<(), Failure> {
    if asked.trim().is_empty() {
        let message = "--process: the value is empty; give the name or id of a process";
        return Err(Failure::Input(message.to_owned()));
    }
    if names.processes().any(|process| is_called(process, asked)) {
        Ok(())
    } else {
        Err(unknown_process(names, asked))
    }
}

/// Returns the error for a process that the trace does not contain, with similar names.
pub(super) fn unknown_process(names: &Identities, asked: &str) -> Failure {
    /// Maximum number of names in the message.
    const MAX_SHOWN: usize = 5;
    let mut known: Vec<&str> = names
        .processes()
        .filter_map(|process| process.name)
        .collect();
    known.sort_unstable();
    known.dedup();
    let there_is = match known.as_slice() {
        [] => "it contains no process names".to_owned(),
        few if few.len() <= MAX_SHOWN => format!(
            "it has {}",
            wording::closest(asked, few.iter().copied(), MAX_SHOWN).join(", ")
        ),
        many => format!(
            "the closest of its {} names are {}",
            grouped(many.len() as u64),
            wording::closest(asked, many.iter().copied(), MAX_SHOWN).join(", ")
        ),
    };
    Failure::Input(format!(
        "--process: the trace contains no process {asked}; {there_is} (laglab process lists them)"
    ))
}

/// Error for a time range that ends before it starts.
pub(super) const FROM_AFTER_TO: &str =
    "--from and --to: the start is not before the end; give the earlier time first";

/// Returns a moment in nanoseconds since the start of a recording.
///
/// # Errors
/// Returns [`Failure::Input`] if the moment is in UTC and the recording has no time of day.
pub(super) fn since_start(
    option: &str,
    moment: Option<Moment>,
    info: &RecordingInfo,
) -> Result<Option<i64>, Failure> {
    let ns = moment.map(|moment| moment.since_start(info.start_unix_ns));
    ns.transpose()
        .map_err(|error| Failure::Input(format!("{option}: {error}")))
}

/// Returns an error if a time range is outside the recording.
pub(super) fn check_time(
    option: &str,
    asked: &Range<i64>,
    info: &RecordingInfo,
) -> Result<(), Failure> {
    let end = info.end_ns;
    if asked.start <= end && asked.end > 0 {
        return Ok(());
    }
    let in_utc = info.start_unix_ns.map(|start| {
        let end = start.saturating_add(end);
        format!(" ({} to {})", utc(start), utc(end))
    });
    Err(Failure::Input(format!(
        "{option}: the time is outside the trace, which lasts from 0 s to {}{}",
        duration(end),
        in_utc.unwrap_or_default()
    )))
}

/// Returns a clause for an error message. It lists processes in the order in which they had the focus.
fn focus_order(tables: &TraceTables, names: &Identities) -> Result<String, Failure> {
    /// Maximum number of processes in the message.
    const MAX_SHOWN: usize = 12;
    let table = tables.table(Table::Focus)?;
    let mut order: Vec<String> = Vec::new();
    for batch in tables.batches(&table, i64::MIN..i64::MAX, &["process_id", "process_row"]) {
        let batch = batch?;
        let view = FocusView::new(&batch)?;
        for row in 0..view.len() {
            let process = names.process(view.process_row.get(row), Some(view.process_id[row]));
            let name = match process.name {
                Some(name) => name.to_owned(),
                None => view.process_id[row].to_string(),
            };
            // Process 0 means that no process had the focus.
            if view.process_id[row] != 0 && order.last() != Some(&name) {
                order.push(name);
            }
        }
    }
    let more = if order.len() > MAX_SHOWN { ", …" } else { "" };
    order.truncate(MAX_SHOWN);
    Ok(if order.is_empty() {
        "the trace contains no changes of focus (laglab focuschange prints how to record them)"
            .to_owned()
    } else {
        format!("the order of focus was {}{more}", order.join(", "))
    })
}
