//! Description of a moment after the last run of a thread: the thread waits until the trace ends.

use std::ops::Range;

use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

use super::edge_wait::{self, EdgeWait, Last};
use super::story::{self, Doing, Event, EventKind, Link, Ran, Story, explain_waiter, named};
use super::{STEPS, doubts};
use crate::chain::path::{self, Runs, Thread};
use crate::survey::Wait;
use crate::thread_state::{self, TERMINATED, WAITING};
use crate::{Case, duration, labels, moment};

/// Last run of a thread, and the wait after it, which lasts until the trace ends.
pub(super) struct UnfinishedWait {
    /// The wait after the last run. The end of the trace takes the place of the run that would end the wait.
    pub(super) wait: Wait,
    /// Start of the last run.
    start_ns: i64,
    /// Priority at the start of the last run.
    priority: Option<i8>,
    /// False if the thread still ran when the trace ended.
    ends_at_switch: bool,
    /// True if context switches within the last run are missing.
    is_doubtful: bool,
}

const RUN_COLUMNS: [&str; 17] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_id",
    "process_row",
    "planned_thread_id",
    "priority",
    "priority_out",
    "previous_rank",
    "rank_out",
    "state_out",
    "wait_reason_out",
    "ideal_processor",
    "ends_at_switch",
];

const READY_COLUMNS: [&str; 9] = [
    "time_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "readying_thread_id",
    "readying_thread_row",
    "readying_process_id",
    "readying_process_row",
    "by_dpc",
];

impl UnfinishedWait {
    /// Reads the last run of a thread, and the last event after it that readied the thread. Returns `None` if the
    /// trace has no run of the thread.
    pub(super) fn read(
        case: &Case<'_>,
        runs: &mut Runs<'_>,
        thread: Thread,
    ) -> Result<Option<UnfinishedWait>, StoreError> {
        let Some(end_ns) = runs.last_end_before(thread, i64::MAX)? else {
            return Ok(None);
        };
        let until = case.survey.complete.until(case.survey.span.end).max(end_ns);
        let table = case.table(Table::CpuRuns)?;
        let mut last = None;
        for batch in case.batches(&table, end_ns..end_ns.saturating_add(1), &RUN_COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            let mut rows = (0..view.len()).rev();
            let row = rows.find(|row| view.end_ns[*row] == end_ns && thread.is_of(&view, *row));
            if let Some(row) = row {
                last = Some(UnfinishedWait::of_run(case, &view, row, until));
            }
        }
        match last {
            Some(mut last) => {
                last.read_ready(case)?;
                Ok(Some(last))
            }
            None => Ok(None),
        }
    }

    fn of_run(case: &Case<'_>, view: &CpuRunsView<'_>, row: usize, until: i64) -> UnfinishedWait {
        let end_ns = view.end_ns[row];
        let state = view.state_out.get(row);
        let is_ready = state.is_some_and(thread_state::is_ready);
        UnfinishedWait {
            wait: Wait {
                ready_ns: if is_ready { until - end_ns } else { 0 },
                start_ns: until,
                end_ns: until,
                cpu: view.cpu[row],
                thread_id: view.thread_id[row],
                thread_row: view.thread_row.get(row),
                process_id: view.process_id.get(row),
                process_row: view.process_row.get(row),
                previous_cpu: Some(view.cpu[row]),
                previous_out_ns: Some(end_ns),
                waits_ns: is_ready.then_some(0),
                previous_priority: view.priority_out.get(row),
                rank: view.rank_out.get(row).or(view.previous_rank.get(row)),
                previous_state: state,
                previous_wait_reason: view.wait_reason_out.get(row),
                ideal_processor: view.ideal_processor.get(row),
                ..Wait::default()
            },
            start_ns: view.start_ns[row],
            priority: view.priority.get(row),
            ends_at_switch: view.ends_at_switch.get(row) != Some(false),
            is_doubtful: case.survey.doubtful.is(view, row),
        }
    }

    /// Reads the last event after the run that readied the thread.
    fn read_ready(&mut self, case: &Case<'_>) -> Result<(), StoreError> {
        let wait = &mut self.wait;
        let out_ns = wait.previous_out_ns.unwrap_or(wait.start_ns);
        // If clocks disagree, an event that seems to come soon after the run may have caused this run.
        let after_ns = out_ns.saturating_add(case.survey.clocks_apart_ns());
        let table = case.table(Table::ReadyThreads)?;
        for batch in case.batches(&table, after_ns..i64::MAX, &READY_COLUMNS) {
            let batch = batch?;
            let view = ReadyThreadsView::new(&batch)?;
            let is_it = |row: usize| match wait.thread_row {
                Some(_) => view.thread_row.get(row) == wait.thread_row,
                None => view.thread_id[row] == wait.thread_id,
            };
            let mut rows = (0..view.len()).rev();
            let row = rows.find(|row| view.time_ns[*row] > after_ns && is_it(*row));
            if let Some(row) = row {
                let readied_ns = view.time_ns[row];
                *wait = Wait {
                    ready_ns: wait.start_ns.saturating_sub(readied_ns).max(0),
                    readied_ns: Some(readied_ns),
                    waits_ns: Some(readied_ns.saturating_sub(out_ns)),
                    readying_thread_id: view.readying_thread_id.get(row),
                    readying_thread_row: view.readying_thread_row.get(row),
                    readying_process_id: view.readying_process_id.get(row),
                    readying_process_row: view.readying_process_row.get(row),
                    readying_cpu: view.cpu.get(row).copied(),
                    readied_by_dpc: view.by_dpc.get(row),
                    ..*wait
                };
            }
        }
        Ok(())
    }

    /// Returns the state of the thread at a moment after its last run.
    pub(super) fn doing(&self, at_ns: i64) -> Doing {
        let is_readied = self.wait.readied_ns.is_some_and(|ns| ns <= at_ns);
        match self.wait.previous_state {
            _ if !self.ends_at_switch => Doing::Running,
            Some(TERMINATED) => Doing::Ended,
            _ if is_readied => Doing::Ready,
            Some(state) if thread_state::is_ready(state) => Doing::Ready,
            Some(WAITING) => Doing::Waiting,
            _ => Doing::Unknown,
        }
    }

    /// Returns a time range: if `needs_cpu` is true, the time in which the thread was ready without a CPU; otherwise,
    /// the time in which it waited for something else.
    pub(super) fn range(&self, needs_cpu: bool) -> Range<i64> {
        let ready = self.wait.range();
        let out_ns = self.wait.previous_out_ns.unwrap_or(ready.start);
        match self.doing(ready.end) {
            Doing::Running | Doing::Ended => ready.end..ready.end,
            _ if needs_cpu => ready,
            _ => out_ns..ready.start,
        }
    }

    /// Describes a moment after the last run.
    pub(super) fn tell(
        &self,
        case: &Case<'_>,
        runs: &mut Runs<'_>,
        at_ns: i64,
    ) -> Result<Story, StoreError> {
        let wait = &self.wait;
        let kind = self.doing(at_ns);
        let is_over = matches!(kind, Doing::Running | Doing::Ended);
        let mut behind = None;
        let mut findings = Vec::new();
        if !is_over && let Some(still) = self.still_waiting(case)? {
            let (evidence, finding) =
                explain_waiter(case, runs, still.waiter, Some(still.evidence))?;
            behind = Some(evidence);
            findings.push(finding);
        }
        let theories = findings
            .iter_mut()
            .flat_map(|finding| std::mem::take(&mut finding.weighed))
            .collect();
        let (chain, is_chain_cut) = if is_over {
            (Vec::new(), false)
        } else {
            self.chain(case, runs)?
        };
        Ok(Story {
            thread: named(
                case,
                wait.thread_id,
                wait.thread_row,
                wait.process_row,
                wait.process_id,
            ),
            at_ns,
            kind,
            run: (kind == Doing::Running).then_some(Ran {
                cpu: wait.cpu,
                start_ns: self.start_ns,
                end_ns: wait.previous_out_ns.unwrap_or(wait.start_ns),
                priority: self.priority,
                rank: wait.rank,
            }),
            story: if is_over {
                vec![self.last_run(kind)]
            } else {
                story::before_run(case, wait, behind, false)?
            },
            theories,
            findings,
            chain,
            is_chain_cut,
            doubts: self.doubts(case)?.into_iter().map(Into::into).collect(),
        })
    }

    /// Returns the wait of the ready thread in the form that `explain` examines. Returns `None` if the thread is not
    /// ready. Also returns `None` if switches are missing, because the thread may then have run unseen.
    fn still_waiting(&self, case: &Case<'_>) -> Result<Option<EdgeWait>, StoreError> {
        let range = self.wait.range();
        let Some(row) = self.wait.thread_row else {
            return Ok(None);
        };
        let is_known = !range.is_empty()
            && !case.survey.lacks_switches()
            && case.survey.complete.holds(range.start, range.end);
        if !is_known {
            return Ok(None);
        }
        let last = Last {
            end_ns: self.wait.previous_out_ns,
            is_ready: self.wait.readied_ns.is_none(),
            readied_ns: self.wait.readied_ns,
        };
        edge_wait::still_waiting(case, range, row, last)
    }

    /// Returns the chain that led to the event that readied the thread. The flag is true if the chain goes further back
    /// in time.
    fn chain(&self, case: &Case<'_>, runs: &mut Runs<'_>) -> Result<(Vec<Link>, bool), StoreError> {
        let wait = &self.wait;
        let by = wait.readying_thread_id.filter(|id| *id != 0);
        let by = by.filter(|_| wait.readied_by_dpc == Some(false));
        let range = wait.previous_out_ns.zip(wait.readied_ns);
        let Some((id, (out_ns, readied_ns))) = by.zip(range) else {
            return Ok((Vec::new(), false));
        };
        let by = Thread {
            id,
            row: wait.readying_thread_row,
        };
        let legs = path::path(runs, by, &(out_ns..readied_ns), STEPS)?;
        Ok(story::links(case, &legs, out_ns))
    }

    /// Describes the last run of a thread that was still running when the trace ended, or that had ended.
    fn last_run(&self, kind: Doing) -> Event {
        let wait = &self.wait;
        let end_ns = wait.previous_out_ns.unwrap_or(wait.start_ns);
        let lasted = duration(end_ns.saturating_sub(self.start_ns));
        let ended = match kind {
            Doing::Ended => format!("; then it ended, at {}", moment(end_ns)),
            _ => ", and still when the trace ended".to_owned(),
        };
        Event {
            until_ns: Some(end_ns),
            cpu: Some(wait.cpu),
            state: wait.previous_state.map(story::state),
            wait_reason: wait.previous_wait_reason.map(labels::wait_reason),
            priority: self.priority,
            rank: wait.rank,
            ..Event::new(
                EventKind::Ran,
                self.start_ns,
                format!("It ran on CPU {} for {lasted}{ended}.", wait.cpu),
            )
        }
    }

    fn doubts(&self, case: &Case<'_>) -> Result<Vec<String>, StoreError> {
        let since_ns = self.wait.previous_out_ns.unwrap_or(self.start_ns);
        let mut doubts = Vec::new();
        if self.is_doubtful {
            doubts.push(doubts::MISSING_WITHIN.to_owned());
        }
        let survey = &case.survey;
        if survey.contradictions > 0 || !survey.complete.holds(since_ns, self.wait.start_ns) {
            let unseen = "context switches are missing, so it may have run later, unseen";
            doubts.push(unseen.to_owned());
        }
        doubts.extend(doubts::within(case, &(since_ns..self.wait.start_ns))?);
        Ok(doubts)
    }
}
