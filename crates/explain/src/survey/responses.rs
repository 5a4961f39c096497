//! Response times of threads that handle messages of windows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{CpuRunsView, StoreError, Table};

use super::{COLUMNS, InterruptReader, ThreadWaits};
use crate::Case;
use crate::thread_state::{TERMINATED, WAITING};
use crate::thresholds::{DISRUPTIVE_NS, NOTICED_NS};

/// Code of the wait reason `WrUserRequest`: a thread waits for messages to its windows.
pub(crate) const MESSAGES: u8 = 13;

/// Maximum number of responses that are kept for a thread.
const KEPT: usize = 64;

/// Time from when a thread got a message to when it waited for the next message, or ended. During this time, its windows
/// did not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Response {
    /// Length of the response, in nanoseconds.
    pub ns: i64,
    /// Time when the thread became ready because of a message, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// Time when the thread waited for the next message or ended, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// Number of runs of the thread.
    pub runs: u32,
    /// Number of waits for something other than a message or a CPU.
    pub waits: u32,
    /// Time in DPCs and service routines that interrupted the thread, in nanoseconds.
    pub inside_ns: i64,
    /// True if the response began before the first recorded run of the thread, so that it may have lasted longer.
    pub began_before: bool,
    /// True if the thread had not waited for messages again when the trace ended.
    pub is_open: bool,
    /// True if the thread ended at the end of the response.
    pub ends_thread: bool,
}

impl Response {
    /// Returns the time range of the response.
    pub fn range(&self) -> Range<i64> {
        self.start_ns..self.end_ns
    }
}

/// Thread by id and row.
type Key = (u32, Option<u32>);

/// Returns the responses of these threads, if waits with the stacks `sent` are not waits for messages.
pub(crate) fn without_sent(
    case: &Case<'_>,
    threads: &[&ThreadWaits],
    sent: &FxHashSet<u32>,
) -> Result<FxHashMap<Key, Vec<Response>>, StoreError> {
    let mut all: FxHashMap<Key, Responses> = threads
        .iter()
        .map(|thread| ((thread.thread_id, thread.thread_row), Responses::default()))
        .collect();
    let mut interrupted = InterruptReader::new(case, i64::MIN..i64::MAX)?;
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let (cpu, end_ns, cpu_ns) = (view.cpu[row], view.end_ns[row], view.cpu_ns[row]);
            let inside_ns = interrupted.of_run(cpu, end_ns, cpu_ns, |_, _| {})?;
            let key = (view.thread_id[row], view.thread_row.get(row));
            if let Some(responses) = all.get_mut(&key) {
                let is_doubtful = case.survey.doubtful.is(&view, row);
                let is_sent = (view.stack_id.get(row)).is_some_and(|stack| sent.contains(&stack));
                responses.add(&view, row, is_doubtful, inside_ns, is_sent);
            }
        }
    }
    let end_ns = case.survey.complete.until(case.survey.span.end);
    let finished = (all.into_iter()).map(|(key, responses)| (key, responses.finish(end_ns)));
    Ok(finished.collect())
}

/// Action of a thread after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    WaitedForMessages,
    /// The thread ended, so it had no more windows.
    Ended,
    Other,
}

/// Noticeable responses of a thread, computed from its runs in order.
#[derive(Default)]
pub(super) struct Responses {
    /// Start of the current response; `None` if the thread may have waited for messages unseen.
    since: Option<i64>,
    runs: u32,
    waits: u32,
    inside_ns: i64,
    began_before: bool,
    /// Longest time during which the thread may have waited for messages unseen.
    unseen_ns: i64,
    /// End of the latest run and what the thread did then; `None` before its first run.
    latest: Option<(i64, Next)>,
    /// Longest responses so far. The shortest of them is on top of the heap.
    longest: BinaryHeap<Reverse<Response>>,
}

impl Responses {
    /// Adds a run of the thread, in which DPCs and service routines took `inside_ns`. If the run is doubtful, the thread may
    /// have waited for messages during it. `is_sent` is true if the thread waited for the answer to a message that it had
    /// sent.
    pub(super) fn add(
        &mut self,
        runs: &CpuRunsView<'_>,
        row: usize,
        is_doubtful: bool,
        inside_ns: i64,
        is_sent: bool,
    ) {
        self.move_on(runs, row, is_doubtful, is_sent);
        let next = match (runs.state_out.get(row), runs.wait_reason_out.get(row)) {
            (Some(TERMINATED), _) => Next::Ended,
            (Some(WAITING), Some(MESSAGES)) => Next::WaitedForMessages,
            _ => Next::Other,
        };
        self.latest = Some((runs.end_ns[row], next));
        self.runs = self.runs.saturating_add(1);
        self.inside_ns = self.inside_ns.saturating_add(inside_ns);
    }

    /// Ends the current response and begins the next one, if the thread waited for messages before the run.
    fn move_on(&mut self, runs: &CpuRunsView<'_>, row: usize, is_doubtful: bool, is_sent: bool) {
        let ready_ns = runs.ready_ns.get(row).unwrap_or(0);
        let readied_ns = runs.start_ns[row].saturating_sub(ready_ns);
        if self.latest.is_none() {
            self.begin(readied_ns, true);
        }
        let is_contradicted = runs.planned_thread_id.get(row).is_some();
        if is_doubtful || is_contradicted || runs.ran_unseen.get(row) == Some(true) {
            let unseen_ns = (self.since.take()).map_or(0, |since| runs.end_ns[row] - since);
            self.unseen_ns = self.unseen_ns.max(unseen_ns);
            return;
        }
        // The length of a wait is unknown if no event shows its end. It is 0 if the thread did not wait.
        let is_wait = runs.waits_ns.get(row) != Some(0);
        let Some(out_ns) = runs.previous_out_ns.get(row).filter(|_| is_wait) else {
            return;
        };
        if runs.previous_wait_reason.get(row) != Some(MESSAGES) || is_sent {
            self.waits = self.waits.saturating_add(1);
            return;
        }
        self.end(out_ns, Next::WaitedForMessages);
        self.begin(readied_ns, false);
    }

    /// Returns the longest time during which the thread may have waited for messages unseen, in nanoseconds.
    pub(super) fn unseen_ns(&self) -> i64 {
        self.unseen_ns
    }

    /// Returns the longest responses, the longest first. `end_ns` is the end of the recording.
    pub(super) fn finish(mut self, end_ns: i64) -> Vec<Response> {
        match self.latest {
            Some((out_ns, next)) if next != Next::Other => self.end(out_ns, next),
            _ => self.end(end_ns, Next::Other),
        }
        let longest = self.longest.into_sorted_vec().into_iter();
        longest.map(|one| one.0).collect()
    }

    fn begin(&mut self, at_ns: i64, began_before: bool) {
        self.since = Some(at_ns);
        self.runs = 0;
        self.waits = 0;
        self.inside_ns = 0;
        self.began_before = began_before;
    }

    /// Ends the current response. `next` is what the thread did then.
    fn end(&mut self, end_ns: i64, next: Next) {
        let Some(start_ns) = self.since.take() else {
            return;
        };
        let ns = end_ns.saturating_sub(start_ns);
        // Before its first wait for messages, a thread may have had other work, such as the start of the program.
        let at_least_ns = if self.began_before {
            DISRUPTIVE_NS
        } else {
            NOTICED_NS
        };
        if ns < at_least_ns {
            return;
        }
        self.longest.push(Reverse(Response {
            ns,
            start_ns,
            end_ns,
            runs: self.runs,
            waits: self.waits,
            inside_ns: self.inside_ns,
            began_before: self.began_before,
            is_open: next == Next::Other,
            ends_thread: next == Next::Ended,
        }));
        if self.longest.len() > KEPT {
            self.longest.pop();
        }
    }
}
