//! Critical path of a thread: the chain of runs and waits on which its progress depended. The path
//! is followed back in time, from thread to thread.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use rustc_hash::FxHashSet;
use tables::{CpuRunsView, StoreError, StoredTable, Table, WaitKind, linux_states};

use crate::ranges::{overlap, union};
use crate::suspend_gaps::asleep_sql;
use crate::{Case, Column, Evidence, Unit, Value, labels};

/// Step of a path: a time range with one run of a thread and the wait before the run.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) range: Range<i64>,
    pub(crate) run: Run,
    /// Suspend gaps within the step.
    slept: Vec<Range<i64>>,
}

/// Run of a thread, and the wait before it. Fields have the names of columns of `cpu_runs`.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) cpu: u16,
    pub(crate) thread_id: u32,
    pub(crate) thread_row: Option<u32>,
    pub(crate) process_id: Option<u32>,
    pub(crate) process_row: Option<u32>,
    pub(crate) previous_out_ns: Option<i64>,
    ready_ns: i64,
    pub(crate) waits_ns: Option<i64>,
    readying_thread_id: Option<u32>,
    readying_thread_row: Option<u32>,
    readying_process_row: Option<u32>,
    pub(crate) readied_by_dpc: Option<bool>,
    pub(crate) previous_wait_reason: Option<u8>,
    pub(crate) wait_kind: Option<WaitKind>,
    pub(crate) priority: Option<i8>,
    pub(crate) readying_cpu: Option<u16>,
    /// Row of the call stack in `stacks` that shows where the thread had waited.
    pub(crate) stack_id: Option<u32>,
}

/// Codes of the wait reasons `Suspended` and `WrSuspended` of Windows, and of the states of threads that a signal or a
/// debugger of Linux stopped.
const SUSPENDED: [u8; 4] = [5, 12, linux_states::STOPPED, linux_states::TRACED];

impl Run {
    /// Returns the time at which the thread became ready, in nanoseconds since the trace's start.
    pub(crate) fn since_ns(&self) -> i64 {
        self.start_ns.saturating_sub(self.ready_ns)
    }

    /// Returns the name of the process that readied the thread. If a DPC or an interrupt readied the thread, returns
    /// words for it.
    pub(crate) fn ended_by(&self, case: &Case<'_>) -> Option<String> {
        match self.readied_by_dpc {
            Some(true) => Some(case.terms().a_routine.to_owned()),
            _ => case.process_label(self.readying_process_row),
        }
    }

    /// Returns words for what the thread waited for before the run.
    pub(crate) fn waited_for(&self) -> Option<String> {
        labels::waited_for(self.wait_kind, self.previous_wait_reason)
    }

    /// Returns true if the wait before the run includes the moment `at`.
    fn waits_at(&self, at: i64) -> bool {
        self.previous_out_ns.is_some_and(|out| out <= at) && at < self.since_ns()
    }

    /// Returns the thread that ended the wait before the run, if a thread ended it. The thread that resumed a suspended
    /// thread or thawed its process is not the cause of the wait.
    pub(crate) fn readied_by(&self) -> Option<Thread> {
        self.waker(false)
    }

    /// Returns the thread that ended the wait before the run. If `in_softirq` is true, this can also be the thread in whose
    /// context a softirq ended the wait.
    fn waker(&self, in_softirq: bool) -> Option<Thread> {
        if (self.previous_wait_reason).is_some_and(|reason| SUSPENDED.contains(&reason)) {
            return None;
        }
        let id = self.readying_thread_id.filter(|id| *id != 0)?;
        let waited = self.waits_ns.is_some_and(|ns| ns > 0) || self.previous_out_ns.is_none();
        let by_thread = waited && (self.readied_by_dpc == Some(false) || in_softirq);
        by_thread.then_some(Thread {
            id,
            row: self.readying_thread_row,
        })
    }
}

impl Leg {
    /// Returns the times in nanoseconds for which the thread waited, was ready and ran within the
    /// step, without suspend gaps.
    pub(crate) fn parts(&self) -> [i64; 3] {
        let (since, start) = (self.run.since_ns(), self.run.start_ns);
        let length = |range: Range<i64>| range.end.saturating_sub(range.start);
        let within = |from: i64, to: i64| {
            let Some(within) = overlap(&(from..to), &self.range) else {
                return 0;
            };
            let slept = self
                .slept
                .iter()
                .filter_map(|slept| overlap(slept, &within));
            let slept_ns: i64 = slept.map(length).sum();
            length(within) - slept_ns
        };
        [
            within(i64::MIN, since),
            within(since, start),
            within(start, i64::MAX),
        ]
    }

    /// Moves the start of the step.
    pub(crate) fn begin_at(&mut self, case: &Case<'_>, start_ns: i64) {
        self.range.start = start_ns;
        self.slept = case.survey.suspend_gaps.parts_in(&self.range);
    }

    /// Returns the time of suspend gaps within the step, in nanoseconds.
    pub(crate) fn slept_ns(&self) -> i64 {
        self.slept.iter().map(|slept| slept.end - slept.start).sum()
    }
}

/// Thread, identified by its id and, if it is known, its row in the table `threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Id of the thread. Other threads may have had the same id before and after it.
    pub id: u32,
    /// Row of the thread in the table `threads`.
    pub row: Option<u32>,
}

impl Thread {
    pub(crate) fn is_of(self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        runs.thread_id[row] == self.id
            && (self.row.is_none() || runs.thread_row.get(row) == self.row)
    }
}

/// Follows a thread back in time from the end of the range. While the thread waited for another thread, the
/// path follows the other thread. There are no gaps between the steps. The latest step comes first. There are
/// at most `legs` steps, so the path may not reach the start of the range.
pub(crate) fn path(
    runs: &mut Runs<'_>,
    thread: Thread,
    range: &Range<i64>,
    legs: usize,
) -> Result<Vec<Leg>, StoreError> {
    let mut path: Vec<Leg> = Vec::new();
    let (mut thread, mut at) = (thread, range.end);
    // Number of consecutive steps that did not go back in time. The loop ends after too many of them; otherwise it
    // would never end if threads ready each other at the same moment.
    let mut stood_still = 0;
    while at > range.start && path.len() < legs && stood_still < 8 {
        let Some(run) = runs.until(thread, at)? else {
            // The thread does not run again, so the path starts at the end of its last run.
            let Some(end) = runs.last_end_before(thread, at)? else {
                break;
            };
            if !path.is_empty() || end <= range.start {
                break;
            }
            at = end;
            continue;
        };
        let since = run.since_ns();
        let next = match runs.waker(&run) {
            // If the wait continues at `at`, the path follows the thread that ends the wait after `at`.
            Some(by) if since <= at || run.waits_at(at) => (by, since),
            _ => (thread, run.previous_out_ns.unwrap_or(range.start)),
        };
        let from = next.1.clamp(range.start, at);
        if from < at {
            stood_still = 0;
            let range = from..at;
            let slept = runs.case.survey.suspend_gaps.parts_in(&range);
            path.push(Leg { range, run, slept });
        } else {
            stood_still += 1
        }
        (thread, at) = (next.0, from);
    }
    Ok(path)
}

const COLUMNS: [&str; 20] = [
    "start_ns",
    "end_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_id",
    "process_row",
    "previous_out_ns",
    "readied_ns",
    "ready_ns",
    "waits_ns",
    "readying_thread_id",
    "readying_thread_row",
    "readying_process_row",
    "readied_by_dpc",
    "previous_wait_reason",
    "wait_kind",
    "priority",
    "readying_cpu",
    "stack_id",
];

/// Number of chunks kept in memory, because the next steps are usually in the same chunks.
const KEPT: usize = 4;

/// Reader that looks up runs of threads one by one.
pub(crate) struct Runs<'c> {
    case: &'c Case<'c>,
    table: StoredTable,
    kept: VecDeque<(usize, RecordBatch)>,
    /// Pairs of programs, by rows in `processes`: threads of the first one wait for threads of the second one, also if a
    /// softirq in the context of such a thread ends the wait. Packets to the same machine are delivered in this way.
    local_pairs: FxHashSet<[u32; 2]>,
}

impl<'c> Runs<'c> {
    pub(crate) fn new(case: &'c Case<'c>) -> Result<Runs<'c>, StoreError> {
        Ok(Runs {
            case,
            table: case.table(Table::CpuRuns)?,
            kept: VecDeque::new(),
            local_pairs: FxHashSet::default(),
        })
    }

    /// Returns a reader that also follows packets between these pairs of programs.
    pub(crate) fn with_local_pairs(mut self, pairs: FxHashSet<[u32; 2]>) -> Runs<'c> {
        self.local_pairs = pairs;
        self
    }

    /// Returns the thread that ended the wait before a run.
    fn waker(&self, run: &Run) -> Option<Thread> {
        let both = run.process_row.zip(run.readying_process_row);
        let is_local = both.is_some_and(|(own, by)| self.local_pairs.contains(&[own, by]));
        run.waker(is_local)
    }

    fn chunk(&mut self, chunk: usize) -> Result<&RecordBatch, StoreError> {
        if let Some(place) = self.kept.iter().position(|(other, _)| *other == chunk) {
            return Ok(&self.kept[place].1);
        }
        self.case.check()?;
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        let batch = self.table.read(chunk, &COLUMNS)?;
        self.kept.push_back((chunk, batch));
        Ok(&self.kept[self.kept.len() - 1].1)
    }

    /// Finds the thread's first run that ends at `at` or later. If the thread runs at `at`, this is the
    /// current run. If the thread waits at `at`, this is its next run.
    pub(crate) fn until(&mut self, thread: Thread, at: i64) -> Result<Option<Run>, StoreError> {
        for chunk in self.table.chunks_within(at..i64::MAX) {
            let batch = self.chunk(chunk)?;
            let view = CpuRunsView::new(batch)?;
            let first = view.end_ns.partition_point(|end| *end < at);
            let row = (first..view.len()).find(|row| thread.is_of(&view, *row));
            if let Some(row) = row {
                return Ok(Some(read(&view, row)));
            }
        }
        Ok(None)
    }

    /// Finds the chunk and the row of the thread's first run that ends after `at`.
    pub(crate) fn next_after(
        &mut self,
        thread: Thread,
        at: i64,
    ) -> Result<Option<(usize, usize)>, StoreError> {
        for chunk in self.table.chunks_within(at..i64::MAX) {
            let batch = self.chunk(chunk)?;
            let view = CpuRunsView::new(batch)?;
            let first = view.end_ns.partition_point(|end| *end <= at);
            let row = (first..view.len()).find(|row| thread.is_of(&view, *row));
            if let Some(row) = row {
                return Ok(Some((chunk, row)));
            }
        }
        Ok(None)
    }

    /// Finds the end of the thread's last run that ended before `at`.
    pub(crate) fn last_end_before(
        &mut self,
        thread: Thread,
        at: i64,
    ) -> Result<Option<i64>, StoreError> {
        Ok(self.last_run_before(thread, at)?.map(|run| run.end_ns))
    }

    /// Finds the thread's last run that ended before `at`.
    pub(crate) fn last_run_before(
        &mut self,
        thread: Thread,
        at: i64,
    ) -> Result<Option<Run>, StoreError> {
        for chunk in self.table.chunks_within(i64::MIN..at).rev() {
            let batch = self.chunk(chunk)?;
            let view = CpuRunsView::new(batch)?;
            let rows = view.end_ns.partition_point(|end| *end < at);
            let row = (0..rows).rev().find(|row| thread.is_of(&view, *row));
            if let Some(row) = row {
                return Ok(Some(read(&view, row)));
            }
        }
        Ok(None)
    }

    /// Finds the thread that ran last before `at`. Only processes for which `is_asked` returns true count.
    pub(crate) fn last_before(
        &mut self,
        at: i64,
        is_asked: impl Fn(Option<u32>) -> bool,
    ) -> Result<Option<Thread>, StoreError> {
        // A run that is active at `at` ends later, so one more chunk is searched.
        let upto = self.table.chunks_within(i64::MIN..at.saturating_add(1)).end;
        let chunks = upto.saturating_add(1).min(self.table.chunks().len());
        for chunk in (0..chunks).rev() {
            let batch = self.chunk(chunk)?;
            let view = CpuRunsView::new(batch)?;
            let rows = (0..view.len())
                .filter(|row| view.start_ns[*row] <= at && view.thread_id[*row] != 0)
                .filter(|row| is_asked(view.process_row.get(*row)));
            if let Some(row) = rows.max_by_key(|row| view.start_ns[*row]) {
                return Ok(Some(Thread {
                    id: view.thread_id[row],
                    row: view.thread_row.get(row),
                }));
            }
        }
        Ok(None)
    }
}

fn read(runs: &CpuRunsView<'_>, row: usize) -> Run {
    Run {
        start_ns: runs.start_ns[row],
        end_ns: runs.end_ns[row],
        cpu: runs.cpu[row],
        thread_id: runs.thread_id[row],
        thread_row: runs.thread_row.get(row),
        process_id: runs.process_id.get(row),
        process_row: runs.process_row.get(row),
        previous_out_ns: runs.previous_out_ns.get(row),
        ready_ns: runs.ready_ns.get(row).unwrap_or(0),
        waits_ns: runs.waits_ns.get(row),
        readying_thread_id: runs.readying_thread_id.get(row),
        readying_thread_row: runs.readying_thread_row.get(row),
        readying_process_row: runs.readying_process_row.get(row),
        readied_by_dpc: runs.readied_by_dpc.get(row),
        previous_wait_reason: runs.previous_wait_reason.get(row),
        wait_kind: runs.wait_kind.get(row).and_then(WaitKind::from_name),
        priority: runs.priority.get(row),
        readying_cpu: runs.readying_cpu.get(row),
        stack_id: runs.stack_id.get(row),
    }
}

/// Returns evidence with the rows of the steps, the latest first. Its query lists the runs of the
/// steps.
pub(crate) fn evidence(case: &Case<'_>, title: &str, legs: &[Leg]) -> Evidence {
    let slept = has_slept(legs);
    let a_routine = case.terms().a_routine;
    let waited_for = case.waited_for_sql();
    let query = format!(
        "WITH {} SELECT leg, process(process_row) AS process, thread_id, from_ns, to_ns, waited_ns, \
         was_ready_ns, ran_ns, {}{waited_for} AS waited_for, CASE WHEN \
         readied_by_dpc THEN '{a_routine}' ELSE process(readying_process_row) END AS readied_by, \
         readying_thread_id FROM parts ORDER BY leg",
        parts(legs),
        if slept { "slept_ns, " } else { "" }
    );
    let mut columns = vec![
        Column::new("leg", "", Unit::None),
        Column::new("process", "process", Unit::None),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("from_ns", "from", Unit::Moment),
        Column::new("to_ns", "to", Unit::Moment),
        Column::new("waited_ns", "waited", Unit::Duration),
        Column::new("was_ready_ns", "ready", Unit::Duration),
        Column::new("ran_ns", "ran", Unit::Duration),
        Column::new("waited_for", "waited for", Unit::None),
        Column::new("readied_by", "readied by", Unit::None),
        Column::new("readying_thread_id", "thread", Unit::None),
    ];
    if slept {
        columns.insert(8, SLEPT);
    }
    let mut evidence = Evidence::new(title, query, &columns);
    for (number, leg) in (1i64..).zip(legs) {
        let run = &leg.run;
        let [waited, was_ready, ran] = leg.parts();
        let process = case.process_label(run.process_row);
        let mut cells = vec![
            Some(number.into()),
            process.map(Value::from),
            Some(run.thread_id.into()),
            Some(leg.range.start.into()),
            Some(leg.range.end.into()),
            Some(waited.into()),
            Some(was_ready.into()),
            Some(ran.into()),
            run.waited_for().map(Value::from),
            run.ended_by(case).map(Value::from),
            run.readying_thread_id.map(Value::from),
        ];
        if slept {
            cells.insert(8, Some(leg.slept_ns().into()));
        }
        evidence = evidence.row(cells);
    }
    evidence
}

/// Returns evidence with the sums of the steps by thread, the longest first.
pub(crate) fn totals(case: &Case<'_>, title: &str, legs: &[Leg]) -> Evidence {
    let slept = has_slept(legs);
    let query = format!(
        "WITH {} SELECT process(process_row) AS process, thread_id, sum(waited_ns) AS waited_ns, \
         sum(was_ready_ns) AS was_ready_ns, sum(ran_ns) AS ran_ns{} FROM parts GROUP BY process_row, \
         thread_row, thread_id ORDER BY sum(to_ns - from_ns) DESC, thread_id, thread_row LIMIT \
         {SHOWN}",
        parts(legs),
        if slept {
            ", sum(slept_ns) AS slept_ns"
        } else {
            ""
        }
    );
    let mut columns = vec![
        Column::new("process", "process", Unit::None),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("waited_ns", "waited", Unit::Duration),
        Column::new("was_ready_ns", "ready", Unit::Duration),
        Column::new("ran_ns", "ran", Unit::Duration),
    ];
    columns.extend(slept.then_some(SLEPT));
    let mut evidence = Evidence::new(title, query, &columns);
    for (run, parts) in by_thread(legs).into_iter().take(SHOWN) {
        let process = case.process_label(run.process_row);
        let mut cells = vec![process.map(Value::from), Some(run.thread_id.into())];
        let parts = parts.map(|ns| Some(ns.into())).into_iter();
        cells.extend(parts.take(columns.len() - 2));
        evidence = evidence.row(cells);
    }
    evidence
}

const SHOWN: usize = 20;

const SLEPT: Column = Column::new("slept_ns", "machine suspended", Unit::Duration);

fn has_slept(legs: &[Leg]) -> bool {
    legs.iter().any(|leg| !leg.slept.is_empty())
}

/// Returns for each thread of a path the times in nanoseconds for which it waited, was ready and
/// ran, and for which the machine was suspended. The thread with the longest total comes first.
pub(crate) fn by_thread(legs: &[Leg]) -> Vec<(&Run, [i64; 4])> {
    let mut sums: Vec<(&Run, [i64; 4])> = Vec::new();
    for leg in legs {
        let key = |run: &Run| (run.process_row, run.thread_row, run.thread_id);
        let place = sums.iter().position(|(run, _)| key(run) == key(&leg.run));
        let place = place.unwrap_or_else(|| {
            sums.push((&leg.run, [0; 4]));
            sums.len() - 1
        });
        let parts = leg.parts().into_iter().chain([leg.slept_ns()]);
        for (sum, part) in sums[place].1.iter_mut().zip(parts) {
            *sum += part;
        }
    }
    sums.sort_by_key(|(run, parts)| {
        let row = run.thread_row.map_or(u64::MAX, u64::from);
        (-parts.iter().sum::<i64>(), run.thread_id, row)
    });
    sums
}

/// Returns evidence with the sums of all steps.
pub(crate) fn sums(title: &str, legs: &[Leg]) -> Evidence {
    let query = format!(
        "WITH {} SELECT count(*) AS legs, sum(waited_ns) AS none_went_on_ns, sum(was_ready_ns) AS \
         no_cpu_ns, sum(ran_ns) AS worked_ns FROM parts",
        parts(legs)
    );
    let columns = [
        Column::new("legs", "steps", Unit::Count),
        Column::new("none_went_on_ns", "waited", Unit::Duration),
        Column::new("no_cpu_ns", "ready", Unit::Duration),
        Column::new("worked_ns", "ran", Unit::Duration),
    ];
    let mut sums = [legs.len() as i64, 0, 0, 0];
    for leg in legs {
        for (sum, part) in sums[1..].iter_mut().zip(leg.parts()) {
            *sum += part;
        }
    }
    Evidence::new(title, query, &columns).row(sums.map(|ns| Some(ns.into())))
}

/// Returns the SQL subqueries `path` and `parts`. `parts` joins the steps with their runs.
fn parts(legs: &[Leg]) -> String {
    let values: Vec<String> = (1..)
        .zip(legs)
        .map(|(number, leg): (usize, &Leg)| {
            let run = &leg.run;
            format!(
                "({number}, {}, {}, {}, {}, {}, {})",
                run.thread_id, run.cpu, run.start_ns, run.end_ns, leg.range.start, leg.range.end
            )
        })
        .collect();
    let mut slept: Vec<Range<i64>> = legs.iter().flat_map(|leg| leg.slept.clone()).collect();
    slept = union(slept);
    let since = "start_ns - coalesce(ready_ns, 0)";
    let [waited, was_ready, ran] = [
        ("from_ns".to_owned(), format!("least(to_ns, {since})")),
        (
            format!("greatest(from_ns, {since})"),
            "least(to_ns, start_ns)".to_owned(),
        ),
        ("greatest(from_ns, start_ns)".to_owned(), "to_ns".to_owned()),
    ]
    .map(|(from, to)| match slept.as_slice() {
        [] => format!("greatest(0, {to} - {from})"),
        slept => format!(
            "greatest(0, {to} - {from}) - ({})",
            asleep_sql(slept, &from, &to)
        ),
    });
    format!(
        "path AS (SELECT * FROM (VALUES {}) AS path (leg, thread, on_cpu, run_start_ns, run_end_ns, \
         from_ns, to_ns)), parts AS (SELECT *, {waited} AS waited_ns, {was_ready} AS was_ready_ns, \
         {ran} AS ran_ns, {} AS slept_ns FROM path JOIN cpu_runs ON thread_id = thread AND cpu = \
         on_cpu AND start_ns = run_start_ns AND end_ns = run_end_ns)",
        values.join(", "),
        asleep_sql(&slept, "from_ns", "to_ns")
    )
}
