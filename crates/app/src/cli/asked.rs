//! What `laglab explain` is asked about, as far as the trace holds it.

use std::ops::Range;

use explain::{Asked, is_called};
use tables::{FocusView, Identities, Table};

use super::Failure;
use super::open::TraceTables;
use crate::moment::Moment;
use crate::output::{duration, grouped, utc};
use crate::report::recorded::batches;

/// Threads, processes or a time to be looked at above all.
#[derive(clap::Args)]
pub(super) struct Question {
    /// Why did this thread wait? (its id; may be repeated)
    #[arg(
        long,
        value_name = "TID",
        value_parser = thread_id,
        allow_negative_numbers = true,
        help_heading = "What to look at"
    )]
    thread: Vec<u32>,
    /// Why did threads of this process wait? (its name or id; may be repeated)
    #[arg(long, value_name = "PROCESS", help_heading = "What to look at")]
    process: Vec<String>,
    /// Waits at this moment: since the trace's start (1.5, 20ms) or UTC
    #[arg(
        long,
        value_name = "TIME",
        allow_negative_numbers = true,
        help_heading = "What to look at"
    )]
    at: Option<Moment>,
    /// Waits between these moments
    #[arg(
        long,
        num_args = 2,
        value_names = ["T1", "T2"],
        allow_negative_numbers = true,
        conflicts_with = "at",
        help_heading = "What to look at"
    )]
    between: Option<Vec<Moment>>,
    /// Waits from the moment that process A got the focus until B did
    #[arg(
        long,
        num_args = 2,
        value_names = ["A", "B"],
        conflicts_with_all = ["at", "between"],
        help_heading = "What to look at"
    )]
    between_focus: Option<Vec<String>>,
}

fn thread_id(text: &str) -> Result<u32, String> {
    let expected = "expected a thread's id, a whole number such as 4711";
    text.parse().map_err(|_| expected.to_owned())
}

impl Question {
    /// What is asked for.
    ///
    /// # Errors
    /// [`Failure::Input`] if the trace does not hold it; says what there is.
    pub(super) fn of(&self, tables: &TraceTables) -> Result<Asked, Failure> {
        let names = tables.identities()?;
        for id in &self.thread {
            check_thread(&names, *id)?;
        }
        for process in &self.process {
            check_process(&names, process)?;
        }
        Ok(Asked {
            threads: self.thread.clone(),
            processes: self.process.clone(),
            during: self.during(tables, &names)?,
        })
    }

    /// The time asked for, in nanoseconds since the trace's start.
    fn during(
        &self,
        tables: &TraceTables,
        names: &Identities,
    ) -> Result<Option<Range<i64>>, Failure> {
        if let Some([from, to]) = self.between_focus.as_deref() {
            let between = tables
                .watched(|options| explain::between_focus(&tables.store, from, to, options))?;
            return match between {
                Some(between) => Ok(Some(between)),
                None => Err(Failure::Input(format!(
                    "--between-focus: nothing tells that {to} got the focus after {from} did; {}",
                    who_had_the_focus(tables, names)?
                ))),
            };
        }
        let clock = tables.store.trace().clock();
        let since_start = |moment: &Moment| moment.since_start(clock);
        if let Some(at) = &self.at {
            let at = since_start(at);
            let at = at..at.saturating_add(1);
            return check_time("--at", &at, tables).map(|()| Some(at));
        }
        match self.between.as_deref() {
            Some([from, to]) => match (since_start(from), since_start(to)) {
                (from, to) if from < to => {
                    check_time("--between", &(from..to), tables).map(|()| Some(from..to))
                }
                _ => Err(Failure::Input(
                    "--between: T1 is not before T2, so no time is between them".to_owned(),
                )),
            },
            _ => Ok(None),
        }
    }
}

fn check_thread(names: &Identities, id: u32) -> Result<(), Failure> {
    let mut ids: Vec<u32> = (0..names.thread_rows() as u32)
        .filter_map(|row| names.thread_id(row))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let Err(place) = ids.binary_search(&id) else {
        return Ok(());
    };
    let near = &ids[place.saturating_sub(1)..ids.len().min(place + 1)];
    let near: Vec<String> = near.iter().map(u32::to_string).collect();
    let there_is = match near.is_empty() {
        true => "nor any other".to_owned(),
        false => format!(
            "it has {}, the nearest {}",
            grouped(ids.len() as u64),
            near.join(" and ")
        ),
    };
    Err(Failure::Input(format!(
        "--thread: the trace holds no thread {id}; {there_is} (the table `threads` of laglab sql lists them)"
    )))
}

fn check_process(names: &Identities, asked: &str) -> Result<(), Failure> {
    /// Names that are told.
    const TOLD: usize = 5;
    if asked.trim().is_empty() {
        let message = "--process: is empty; give a process's name or id";
        return Err(Failure::Input(message.to_owned()));
    }
    if names.processes().any(|process| is_called(process, asked)) {
        return Ok(());
    }
    let mut known: Vec<&str> = names
        .processes()
        .filter_map(|process| process.name)
        .collect();
    known.sort_unstable();
    known.dedup();
    let plain = asked.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &plain);
    known.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let there_is = match known.as_slice() {
        [] => "nor the name of any other".to_owned(),
        few if few.len() <= TOLD => format!("it has {}", few.join(", ")),
        many => format!(
            "the closest of its {} names are {}",
            grouped(many.len() as u64),
            many[..TOLD].join(", ")
        ),
    };
    Err(Failure::Input(format!(
        "--process: the trace holds no process {asked}; {there_is} (laglab process lists them)"
    )))
}

/// Whether a time is within the trace.
fn check_time(option: &str, asked: &Range<i64>, tables: &TraceTables) -> Result<(), Failure> {
    let trace = tables.store.trace();
    let clock = trace.clock();
    let (_, end) = tables::span_of(trace);
    if asked.start <= end && asked.end > 0 {
        return Ok(());
    }
    let utc = |ns: i64| utc(clock.origin_filetime().saturating_add(ns / 100));
    Err(Failure::Input(format!(
        "{option}: the trace holds nothing of that time; it is from 0 s to {} ({} to {})",
        duration(end),
        utc(0),
        utc(end)
    )))
}

/// Who had the focus, in a clause.
fn who_had_the_focus(tables: &TraceTables, names: &Identities) -> Result<String, Failure> {
    /// Processes that are told.
    const TOLD: usize = 12;
    let table = tables.table(Table::Focus)?;
    let mut order: Vec<String> = Vec::new();
    for batch in batches(&table, i64::MIN..i64::MAX, &["process_id", "process_row"]) {
        let batch = batch?;
        let view = FocusView::new(&batch)?;
        for row in 0..view.len() {
            let process = names.process(view.process_row.get(row), Some(view.process_id[row]));
            let name = match process.name {
                Some(name) => name.to_owned(),
                None => view.process_id[row].to_string(),
            };
            // Process 0 stands for nobody.
            if view.process_id[row] != 0 && order.last() != Some(&name) {
                order.push(name);
            }
        }
    }
    let more = if order.len() > TOLD { ", …" } else { "" };
    order.truncate(TOLD);
    Ok(match order.is_empty() {
        true => "the trace holds no changes of focus (laglab focuschange says how to record them)"
            .to_owned(),
        false => format!(
            "the focus had, one after the other, {}{more}",
            order.join(", ")
        ),
    })
}
