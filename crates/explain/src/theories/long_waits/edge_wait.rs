//! Threads that were ready without a CPU when the trace ended, and threads that were already ready when the
//! trace began.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Selection};
use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

use crate::chain::TICK_NS;
use crate::chain::cpu_wait::weigh::Facts;
use crate::chain::waiter::Waiter;
use crate::thresholds::NOTICED_NS;
use crate::{Case, Evidence, ThreadWaits, Unit, Value, Wait, thread_state};

/// Thread that was ready without a CPU when the trace ended, or that was already ready when the trace began.
pub(super) struct EdgeWait {
    pub(super) waiter: Waiter,
    pub(super) evidence: Evidence,
}

/// Last run of a thread, and the last event that readied the thread.
#[derive(Clone, Copy, Default)]
pub(super) struct Last {
    /// End of the thread's last run; `None` if the thread never ran.
    pub(super) end_ns: Option<i64>,
    /// True if the thread lost its CPU although it was still ready.
    pub(super) is_ready: bool,
    /// Time of the last event that readied the thread.
    pub(super) readied_ns: Option<i64>,
}

/// Finds the threads that had been ready for at least `at_least_ns` when the trace ended. The
/// longest waits come first.
pub(super) fn read(
    case: &Case<'_>,
    at_least_ns: i64,
    at_most: usize,
) -> Result<Vec<EdgeWait>, StoreError> {
    // If context switches are missing everywhere, the trace probably lacks later runs of the threads.
    if case.survey.lacks_switches() {
        return Ok(Vec::new());
    }
    let mut threads = vec![Last::default(); case.names.thread_rows()];
    // Threads that a switch started although the next switch of the CPU stopped another thread. Such a thread probably ran.
    let mut chosen: FxHashMap<u32, i64> = FxHashMap::default();
    let runs = case.table(Table::CpuRuns)?;
    let columns = [
        "start_ns",
        "planned_thread_id",
        "end_ns",
        "thread_row",
        "thread_id",
        "state_out",
        "ends_at_switch",
    ];
    for batch in case.batches(&runs, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let thread = view
                .thread_row
                .get(row)
                .filter(|_| view.thread_id[row] != 0);
            if let Some(last) = thread.and_then(|row| threads.get_mut(row as usize)) {
                last.end_ns = Some(view.end_ns[row]);
                last.is_ready = view.state_out.get(row).is_some_and(thread_state::is_ready);
            }
            if let Some(thread_id) = view.planned_thread_id.get(row) {
                chosen.insert(thread_id, view.start_ns[row]);
            }
        }
    }
    let ready = case.table(Table::ReadyThreads)?;
    for batch in case.batches(&ready, i64::MIN..i64::MAX, &["time_ns", "thread_row"]) {
        let batch = batch?;
        let view = ReadyThreadsView::new(&batch)?;
        for row in 0..view.len() {
            let thread = view.thread_row.get(row);
            if let Some(last) = thread.and_then(|row| threads.get_mut(row as usize)) {
                last.readied_ns = Some(view.time_ns[row]);
            }
        }
    }
    let end = case.survey.complete.until(case.survey.span.end);
    // If clocks disagree, an event may seem to come after the run to which it led. So an event counts only if it is
    // later than the end of the run by more than the largest difference between clocks.
    let apart_ns = case.survey.clocks_apart_ns();
    let mut candidates: Vec<(i64, u32, Last)> = Vec::new();
    for (row, last) in (0..).zip(threads) {
        let after = last.readied_ns.filter(|ns| {
            last.end_ns
                .is_none_or(|end| *ns > end.saturating_add(apart_ns))
        });
        let since = after.or(last.end_ns.filter(|_| last.is_ready));
        let Some(since) = since.filter(|ns| end.saturating_sub(*ns) >= at_least_ns.max(1)) else {
            continue;
        };
        // If a CPU was not recorded all the time, the thread may have run there. So the thread is left out.
        if !case.survey.complete.holds(since, end) {
            continue;
        }
        let thread_id = case.names.thread_id(row);
        let chosen_ns = thread_id.and_then(|thread_id| chosen.get(&thread_id));
        if chosen_ns.is_some_and(|ns| ns.saturating_add(apart_ns) >= since) {
            continue;
        }
        let readied_ns = after;
        candidates.push((since, row, Last { readied_ns, ..last }));
    }
    candidates.sort_unstable_by_key(|(since, row, _)| (*since, *row));
    candidates.truncate(at_most);
    let mut waiting = Vec::new();
    for (since, row, last) in candidates {
        waiting.extend(still_waiting(case, since..end, row, last)?);
    }
    Ok(waiting)
}

/// Finds the threads that were already ready when the recording began and that ran later. Their readying events are
/// missing, although the trace records this kind of event. The kernel counted clock ticks since the thread began to
/// wait. These ticks cover at least the time from the start of the recording to the run. The longest waits come first.
pub(super) fn since_before(case: &Case<'_>, at_most: usize) -> Result<Vec<EdgeWait>, StoreError> {
    let survey = &case.survey;
    let is_certain = survey.has_ready_events
        && survey.contradictions == 0
        && survey.clock_skews.is_empty()
        && survey.complete.missing().is_none();
    if !is_certain || Facts::read(case)?.lacks_events() {
        return Ok(Vec::new());
    }
    let begin = survey.complete.from(survey.span.start);
    let lasts = |thread: &ThreadWaits| {
        let (wait, ticks) = **thread.first.as_ref()?;
        let range = begin..wait.start_ns;
        let awake_ns = range.end - range.start - survey.suspend_gaps.asleep_ns(&range);
        // The wait may have begun during a tick, so one tick is added.
        let counted_ns = (i64::from(ticks) + 1).saturating_mul(TICK_NS);
        let is_it = wait.readied_ns.is_none()
            && range.end.saturating_sub(range.start) >= NOTICED_NS
            && counted_ns >= awake_ns
            && survey.complete.holds(range.start, range.end);
        is_it.then_some((range.end - range.start, wait, ticks))
    };
    let mut candidates: Vec<(i64, Wait, u32)> = survey.threads.iter().filter_map(lasts).collect();
    candidates.sort_unstable_by_key(|(ns, wait, _)| (std::cmp::Reverse(*ns), wait.thread_id));
    candidates.truncate(at_most);
    let waiting = candidates.into_iter().map(|(ready_ns, wait, ticks)| {
        let wait = Wait { ready_ns, ..wait };
        let selection = Selection::new(Table::CpuRuns)
            .filter(Condition::is("start_ns", wait.start_ns))
            .filter(Condition::is("thread_id", wait.thread_id))
            .limit(1);
        let since = Expression::Formula(format!("start_ns - {ready_ns}"));
        let waited = Expression::Formula(format!("start_ns - {begin}"));
        let title = "First run of the thread, which was ready before the recording began";
        let evidence = Evidence::from_selection(title, selection)
            .stored("thread_id", "thread", Unit::None)
            .column("since_ns", "recorded from", Unit::Moment, since)
            .column("waited_ns", "ready since then", Unit::Duration, waited)
            .stored("start_ns", "ran at", Unit::Moment)
            .stored("wait_ticks", "clock ticks counted before", Unit::Count)
            .row([
                Some(Value::from(wait.thread_id)),
                Some(begin.into()),
                Some(ready_ns.into()),
                Some(wait.start_ns.into()),
                Some(ticks.into()),
            ]);
        let waiter = Waiter {
            ticks_before: Some(ticks),
            ..Waiter::new(&wait)
        };
        EdgeWait { waiter, evidence }
    });
    Ok(waiting.collect())
}

/// Joins the evidence of several threads in one table.
pub(super) fn together<'e>(
    title: &str,
    all: impl Iterator<Item = &'e Evidence>,
) -> Option<Evidence> {
    let all: Vec<&Evidence> = all.collect();
    let [first, others @ ..] = &all[..] else {
        return None;
    };
    if others.is_empty() {
        return Some((*first).clone());
    }
    let queries: Vec<String> = all.iter().map(|one| format!("({})", one.sql())).collect();
    let query = format!(
        "SELECT * FROM ({}) AS waiting ORDER BY since_ns, thread_id",
        queries.join(" UNION ALL ")
    );
    let mut rows: Vec<Vec<Option<Value>>> = all.iter().flat_map(|one| one.rows.clone()).collect();
    let number = |cell: &Option<Value>| match cell {
        Some(Value::Integer(number)) => *number,
        _ => i64::MAX,
    };
    rows.sort_by_key(|row| (number(&row[1]), number(&row[0])));
    let mut evidence = Evidence::new(title, query, &first.columns);
    let mut tables = all.iter().filter_map(|one| Some(one.selection()?.table));
    if let Some(table) = tables.next()
        && tables.all(|other| other == table)
    {
        let threads: Vec<i64> = rows.iter().map(|row| number(&row[0])).collect();
        let waiting = Selection::new(table)
            .column("thread_id", Expression::Column("thread_id"))
            .filter(Condition::is_one_of("thread_id", &threads));
        evidence = evidence.about(waiting);
    }
    evidence.rows = rows;
    Some(evidence)
}

const RUN_COLUMNS: [&str; 11] = [
    "end_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_id",
    "process_row",
    "priority_out",
    "rank_out",
    "previous_rank",
    "state_out",
    "ideal_processor",
];

const READY_COLUMNS: [&str; 7] = [
    "time_ns",
    "thread_row",
    "thread_id",
    "process_id",
    "process_row",
    "kernel_stack_not_resident",
    "process_out_of_memory",
];

/// Reads the details of a thread that was ready in `range`, up to the end of the trace.
pub(super) fn still_waiting(
    case: &Case<'_>,
    range: Range<i64>,
    thread_row: u32,
    last: Last,
) -> Result<Option<EdgeWait>, StoreError> {
    let since = range.start;
    let Some(thread_id) = case.names.thread_id(thread_row) else {
        return Ok(None);
    };
    let mut waiter = Waiter {
        range: range.clone(),
        thread_id,
        thread_row: Some(thread_row),
        process_id: None,
        process_row: None,
        rank: None,
        priorities: vec![(range.clone(), None)],
        is_starved: false,
        cpu: None,
        limited_to: None,
        queue: None,
        affinity_is_known: false,
        has_idle_policy: false,
        is_paged_out: None,
        ran_unseen: false,
        certain: None,
        ideal_processor: None,
        wait: None,
        ticks_before: None,
    };
    if let Some(end) = last.end_ns {
        let runs = case.table(Table::CpuRuns)?;
        for batch in case.batches(&runs, end..end.saturating_add(1), &RUN_COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            let mut rows = (0..view.len()).filter(|row| view.end_ns[*row] == end);
            if let Some(row) = rows.find(|row| view.thread_row.get(*row) == Some(thread_row)) {
                waiter.cpu = Some(view.cpu[row]);
                waiter.rank = view.rank_out.get(row).or(view.previous_rank.get(row));
                waiter.priorities = vec![(range.clone(), view.priority_out.get(row))];
                waiter.process_id = view.process_id.get(row);
                waiter.process_row = view.process_row.get(row);
                waiter.ideal_processor = view.ideal_processor.get(row);
            }
        }
    }
    if let Some(time) = last.readied_ns {
        let ready = case.table(Table::ReadyThreads)?;
        for batch in case.batches(&ready, time..time.saturating_add(1), &READY_COLUMNS) {
            let batch = batch?;
            let view = ReadyThreadsView::new(&batch)?;
            let mut rows = (0..view.len()).filter(|row| view.time_ns[*row] == time);
            if let Some(row) = rows.find(|row| view.thread_row.get(*row) == Some(thread_row)) {
                waiter.process_id = view.process_id.get(row).or(waiter.process_id);
                waiter.process_row = view.process_row.get(row).or(waiter.process_row);
                let stack = view.kernel_stack_not_resident.get(row);
                let swapped = view.process_out_of_memory.get(row);
                waiter.is_paged_out = stack.zip(swapped).map(|(a, b)| a || b);
            }
        }
    }
    // If no event readied the thread, it lost its CPU. On Linux, it then waits in the queue of this CPU.
    waiter.queue = waiter
        .cpu
        .filter(|_| case.is_linux() && last.readied_ns.is_none());
    let end = range.end;
    let (what, selection, since_ns) = match last.readied_ns {
        Some(time) => (
            "readied",
            Selection::new(Table::ReadyThreads).filter(Condition::is("time_ns", time)),
            "time_ns",
        ),
        None => (
            "taken off its CPU",
            Selection::new(Table::CpuRuns).filter(Condition::is("end_ns", since)),
            "end_ns",
        ),
    };
    let selection = selection
        .filter(Condition::is("thread_row", thread_row))
        .limit(1);
    let waited = Expression::Formula(format!("{end} - {since_ns}"));
    let since_ns = Expression::Column(since_ns);
    let title = format!("Time when the thread was {what}; it was still ready when the trace ended");
    let waited_ns = end - since;
    let evidence = Evidence::from_selection(title, selection)
        .stored("thread_id", "thread", Unit::None)
        .column("since_ns", "ready since", Unit::Moment, since_ns)
        .column("waited_ns", "ready until the end", Unit::Duration, waited);
    let evidence = evidence.row([
        Some(Value::from(thread_id)),
        Some(since.into()),
        Some(waited_ns.into()),
    ]);
    Ok(Some(EdgeWait { waiter, evidence }))
}
