//! Runs from traces: each trace is one run.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use explain::{Reader, SLEEP_REASONS, WAITING, is_called};
use tables::{
    CpuRunsView, DiskIoView, DoubtfulRuns, FocusView, Identities, InputView, InterruptsView,
    Options, Store, StoreError, Table,
};

use crate::columns::{RANGE, is_comparable, unit_of};
use crate::trace_metric::{Routine, Threads, TraceMetric};
use crate::{Group, Run, Unit};

/// Samples of a metric in one trace. If the trace lacks the needed rows, the error is the table without rows.
pub type InTrace = Result<Run, Table>;

/// Maximum time from an input to the change of the focus that the input causes, in nanoseconds.
const MAX_FOCUS_NS: i64 = 10_000_000_000;

const ALL: std::ops::Range<i64> = i64::MIN..i64::MAX;

/// Returns one group with the runs of several traces.
pub fn group(metric: &TraceMetric, runs: Vec<Run>) -> Group {
    Group {
        name: metric.to_string(),
        column: None,
        unit: Unit::Nanoseconds,
        runs,
    }
}

/// Result of a query that must return one row with one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SingleValue {
    /// Number in the result. `None` if it is unknown.
    value: Option<f64>,
    unit: Option<Unit>,
    /// Name of the column of the number.
    column: Option<String>,
}

impl SingleValue {
    /// Adds rows of the result. If the name of the column ends with `_ns`, `_us`, `_ms` or `_s`, the number
    /// is a time.
    ///
    /// # Errors
    /// Returns a description of the result if it is not one row with one number.
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), String> {
        let [column] = rows.columns() else {
            return Err(format!("the result has {} columns", rows.num_columns()));
        };
        match (rows.num_rows(), self.is_complete()) {
            (0, _) => return Ok(()),
            (1, false) => {}
            _ => return Err("the result has several rows".to_owned()),
        }
        let schema = rows.schema();
        let (unit, factor) = unit_of(schema.field(0).name());
        let kind = column.data_type();
        if !kind.is_numeric() && *kind != DataType::Null {
            return Err(format!("the result has the type {kind}"));
        }
        let numbers = cast(column, &DataType::Float64).map_err(|error| error.to_string())?;
        let value = numbers
            .as_primitive::<Float64Type>()
            .iter()
            .next()
            .flatten();
        if value.is_some_and(|value| !value.is_finite()) {
            return Err("the result is infinite or not a number".to_owned());
        }
        let value = value.map(|value| value * factor);
        if value.is_some_and(|value| !is_comparable(value)) {
            return Err(format!("the result is too large or too small; {RANGE}"));
        }
        self.value = value;
        self.unit = Some(unit);
        self.column = Some(schema.field(0).name().clone());
        Ok(())
    }

    /// Returns true if a row was added.
    pub fn is_complete(&self) -> bool {
        self.unit.is_some()
    }
}

/// Returns a group of runs. Each run has one value.
pub fn group_of_values(name: &str, values: Vec<(String, SingleValue)>) -> Group {
    let unit = values.iter().find_map(|(_, single)| single.unit);
    let column = values.iter().find_map(|(_, single)| single.column.clone());
    let runs = values.into_iter().map(|(name, single)| {
        let known: Vec<f64> = single.value.into_iter().collect();
        let unknown = u64::from(known.is_empty());
        Run::new(name, known, unknown)
    });
    Group {
        name: name.to_owned(),
        column,
        unit: unit.unwrap_or(Unit::Other),
        runs: runs.collect(),
    }
}

/// Reads a metric of a trace. `name` becomes the name of the run.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or if the progress callback requests a stop.
pub fn read(
    store: &Store,
    name: String,
    metric: &TraceMetric,
    options: Options<'_>,
) -> Result<InTrace, StoreError> {
    store.make(&metric.tables(), options)?;
    let names = Arc::new(Identities::read(store, options)?);
    let is_cancelled = || !(options.progress)(0);
    let reader = Reader::new(store, names, None, &is_cancelled);
    for table in metric.recorded_in() {
        if !reader.has(*table)? {
            return Ok(Err(*table));
        }
    }
    let mut run = Run::new(name, Vec::new(), 0);
    run.began = store.info().start_unix_ns;
    let is_recorded = match metric {
        TraceMetric::Ready(threads) => {
            let doubtful = DoubtfulRuns::read(store, options)?;
            add_runs(&reader, threads, &doubtful, &mut run, |runs, row| {
                // Skip the first run of a thread, because the time before this run is unknown.
                runs.previous_out_ns.get(row)?;
                Some(runs.ready_ns.get(row))
            })?;
            true
        }
        TraceMetric::Sleep(threads) => {
            let doubtful = DoubtfulRuns::read(store, options)?;
            add_runs(&reader, threads, &doubtful, &mut run, |runs, row| {
                let reason = runs.previous_wait_reason.get(row)?;
                let is_sleep = runs.previous_state.get(row) == Some(WAITING)
                    && SLEEP_REASONS.contains(&reason);
                is_sleep.then(|| runs.since_last_ns.get(row))
            })?;
            true
        }
        TraceMetric::Dpc(routine) => add_routines(&reader, routine.as_ref(), false, &mut run)?,
        TraceMetric::Isr(routine) => add_routines(&reader, routine.as_ref(), true, &mut run)?,
        TraceMetric::Disk { kind, disk } => {
            add_requests(&reader, *kind, *disk, &mut run)?;
            true
        }
        TraceMetric::InputToFocus(process) => add_focus(&reader, process.as_deref(), &mut run)?,
    };
    Ok(if is_recorded {
        Ok(run)
    } else {
        Err(metric.recorded_in()[0])
    })
}

/// Returns a name in the trace that is similar to the name in a metric. Returns `None` if the trace has the exact name.
/// Use this function to give advice if the metric has no samples.
///
/// # Errors
/// Returns an error if a table cannot be read.
pub fn similar_name(
    store: &Store,
    metric: &TraceMetric,
    options: Options<'_>,
) -> Result<Option<String>, StoreError> {
    let names = Identities::read(store, options)?;
    let processes = || names.processes().filter_map(|process| process.name);
    let modules = (0..).map_while(|row| {
        let is_row = (row as usize) < names.images.base_address.len();
        is_row.then(|| names.module(Some(row)))
    });
    let similar = match metric {
        TraceMetric::Ready(Threads { process, .. })
        | TraceMetric::Sleep(Threads { process, .. })
        | TraceMetric::InputToFocus(process) => (process.as_deref())
            .and_then(|wrong| Some((wrong, wording::closest_one(wrong, processes())?))),
        TraceMetric::Dpc(routine) | TraceMetric::Isr(routine) => {
            routine.as_ref().and_then(|routine| {
                let wrong = routine.module.as_str();
                Some((wrong, wording::closest_one(wrong, modules.flatten())?))
            })
        }
        TraceMetric::Disk { .. } => None,
    };
    // If the trace has the exact name, the name is not the reason for the missing samples.
    let other = similar.filter(|(wrong, name)| !name.eq_ignore_ascii_case(wrong));
    Ok(other.map(|(_, name)| name.to_owned()))
}

/// Adds a sample for each selected run of the threads. `value` returns `None` if a run is not selected, and
/// `Some(None)` if the value of its sample is unknown.
fn add_runs(
    reader: &Reader<'_>,
    threads: &Threads,
    doubtful: &DoubtfulRuns,
    run: &mut Run,
    value: impl Fn(&CpuRunsView<'_>, usize) -> Option<Option<i64>>,
) -> Result<(), StoreError> {
    const COLUMNS: [&str; 13] = [
        "start_ns",
        "cpu_ns",
        "thread_id",
        "thread_row",
        "process_id",
        "process_row",
        "planned_thread_id",
        "previous_out_ns",
        "ready_ns",
        "since_last_ns",
        "previous_state",
        "previous_wait_reason",
        "cpu",
    ];
    let table = reader.table(Table::CpuRuns)?;
    let mut known: HashMap<(Option<u32>, Option<u32>), bool> = HashMap::new();
    for batch in reader.batches(&table, ALL, &COLUMNS) {
        let batch = batch?;
        let runs = CpuRunsView::new(&batch)?;
        for row in 0..runs.len() {
            if runs.thread_id[row] == 0 || doubtful.is(&runs, row) {
                continue;
            }
            let key = (runs.process_row.get(row), runs.process_id.get(row));
            let is_process = *known.entry(key).or_insert_with(|| {
                let process = reader.names.process(key.0, key.1);
                (threads.process.as_ref()).is_none_or(|name| is_called(process, name))
            });
            if !is_process || !is_thread(reader, threads, &runs, row) {
                continue;
            }
            if let Some(ns) = value(&runs, row) {
                run.push(ns.map(|ns| ns as f64));
            }
        }
    }
    Ok(())
}

fn is_thread(reader: &Reader<'_>, threads: &Threads, runs: &CpuRunsView<'_>, row: usize) -> bool {
    threads.thread.as_ref().is_none_or(|name| {
        let own = runs.thread_row.get(row);
        let own = own.and_then(|row| reader.names.thread_name(row));
        own.is_some_and(|own| own.to_lowercase() == name.to_lowercase())
            || *name == runs.thread_id[row].to_string()
    })
}

/// Adds the durations of routines. Returns true if the trace has routines of this kind.
fn add_routines(
    reader: &Reader<'_>,
    wanted: Option<&Routine>,
    wants_isr: bool,
    run: &mut Run,
) -> Result<bool, StoreError> {
    const COLUMNS: [&str; 4] = ["kind", "exclusive_ns", "image_row", "routine"];
    let table = reader.table(Table::Interrupts)?;
    let is_wanted = |image: Option<u32>, address: u64| {
        wanted.is_none_or(|wanted| {
            let module = reader.names.module(image);
            let base = || reader.names.images.base_address.get(image? as usize);
            module.is_some_and(|module| module.eq_ignore_ascii_case(&wanted.module))
                && wanted.offset.is_none_or(|offset| {
                    base().is_some_and(|base| address.checked_sub(*base) == Some(offset))
                })
        })
    };
    let mut is_recorded = false;
    for batch in reader.batches(&table, ALL, &COLUMNS) {
        let batch = batch?;
        let routines = InterruptsView::new(&batch)?;
        for row in 0..routines.len() {
            let is_isr = match routines.kind.get(row) {
                Some("isr" | "msi" | "passive_isr") => true,
                Some(_) => false,
                None => continue,
            };
            if is_isr != wants_isr {
                continue;
            }
            is_recorded = true;
            if is_wanted(routines.image_row.get(row), routines.routine[row]) {
                run.push(routines.exclusive_ns.get(row).map(|ns| ns as f64));
            }
        }
    }
    Ok(is_recorded)
}

/// Adds the service times of disk requests.
fn add_requests(
    reader: &Reader<'_>,
    kind: Option<&str>,
    disk: Option<u32>,
    run: &mut Run,
) -> Result<(), StoreError> {
    let table = reader.table(Table::DiskIo)?;
    for batch in reader.batches(&table, ALL, &["service_ns", "kind", "disk"]) {
        let batch = batch?;
        let requests = DiskIoView::new(&batch)?;
        for row in 0..requests.len() {
            let is_kind = kind.is_none_or(|kind| requests.kind.get(row) == Some(kind));
            if is_kind && disk.is_none_or(|disk| requests.disk[row] == disk) {
                run.push(requests.service_ns.get(row).map(|ns| ns as f64));
            }
        }
    }
    Ok(())
}

/// Adds a sample for each change of the focus: the time from the last input before the change to the change.
/// If there was no input since the previous change, or if the time exceeds `MAX_FOCUS_NS`, the change has no sample.
/// Returns true if the trace has presses of keys or mouse buttons.
fn add_focus(
    reader: &Reader<'_>,
    process: Option<&str>,
    run: &mut Run,
) -> Result<bool, StoreError> {
    let mut inputs = Vec::new();
    let table = reader.table(Table::Input)?;
    for batch in reader.batches(&table, ALL, &["time_ns", "kind"]) {
        let batch = batch?;
        let input = InputView::new(&batch)?;
        let is_press =
            |row: &usize| matches!(input.kind.get(*row), Some("key_down" | "mouse_down"));
        inputs.extend(
            (0..input.len())
                .filter(is_press)
                .map(|row| input.time_ns[row]),
        );
    }
    let columns = ["start_ns", "starts_at_event", "process_id", "process_row"];
    let table = reader.table(Table::Focus)?;
    let mut before = i64::MIN;
    for batch in reader.batches(&table, ALL, &columns) {
        let batch = batch?;
        let focus = FocusView::new(&batch)?;
        for row in 0..focus.len() {
            let at = focus.start_ns[row];
            let since = std::mem::replace(&mut before, at);
            let owner = reader
                .names
                .process(focus.process_row.get(row), Some(focus.process_id[row]));
            let is_wanted = process.is_none_or(|name| is_called(owner, name));
            let input = inputs[..inputs.partition_point(|input| *input <= at)].last();
            let took = input
                .filter(|input| **input > since)
                .map(|input| at - input);
            if focus.starts_at_event.get(row) == Some(true) && is_wanted {
                took.filter(|ns| *ns <= MAX_FOCUS_NS)
                    .into_iter()
                    .for_each(|ns| run.push(Some(ns as f64)));
            }
        }
    }
    Ok(!inputs.is_empty())
}
