//! Selection of the waits that are hangs.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{ReadyThreadsView, StoreError, Table};

use super::sent_messages::SentMessages;
use crate::chain::parts::Kind;
use crate::chain::user_attention::{UserAttention, is_asked};
use crate::ranges::overlap;
use crate::survey::{MESSAGES, Response};
use crate::thresholds::{
    CAUSE_PERCENT, DISRUPTIVE_NS, LOOP_WAITS, NOTICED_NS, SAME_DELAY_PERCENT, is_share,
};
use crate::{Case, ThreadWaits, Wait};

/// Recorded ends of a wait: its start, its end, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Both,
    /// The end of the wait is recorded. The wait began before the recording, and only the time since the
    /// start of the recording counts. The number is the number of clock ticks that the kernel counted before
    /// the wait ended.
    End(u32),
    /// The start of the wait is recorded. The wait lasts until the trace ends.
    Start,
}

/// Wait that may be a hang.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'c> {
    pub(super) thread: &'c ThreadWaits,
    pub(super) wait: Wait,
    pub(super) kind: Kind,
    pub(super) edge: Edge,
    /// True if the thread handles window messages.
    pub(super) is_window: bool,
    /// True if the user asked about this thread, and the wait lasts until the trace ends. Such a wait is always
    /// reported, because nothing shows whether it is intended.
    pub(super) is_asked_open: bool,
    /// True if the thread usually waits for this reason. Such a thread may just have nothing to do, so only
    /// the chain that led to the end of the wait can show a hang.
    pub(super) is_usual: bool,
    /// Response of the thread, if the candidate is no single wait.
    pub(super) response: Option<Response>,
    /// Longer response that contains the wait.
    pub(super) whole: Option<Response>,
    /// True if the thread has no window, but the windows of its program responded during the wait.
    pub(super) windows_responded: bool,
}

impl Candidate<'_> {
    /// Returns true if the thread may be a loop that looks for messages without waiting for them.
    pub(super) fn may_loop(&self) -> bool {
        self.response.is_some_and(|response| {
            i64::from(response.waits).saturating_mul(1_000_000_000 / LOOP_WAITS) > response.ns
        })
    }

    /// Returns the time range from when the thread was switched out to when it ran again.
    pub(super) fn range(&self) -> Range<i64> {
        let ready_from = self.wait.start_ns.saturating_sub(self.wait.ready_ns);
        let waits_ns = self.wait.waits_ns.unwrap_or(0);
        let out = ready_from.saturating_sub(waits_ns);
        self.wait.previous_out_ns.unwrap_or(out)..self.wait.start_ns
    }
}

impl UserAttention {
    /// Returns the waits that may be hangs.
    pub(super) fn candidates<'c>(
        &self,
        case: &'c Case<'_>,
        sent: &SentMessages,
    ) -> Vec<Candidate<'c>> {
        let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
        let threads = case.survey.threads.iter();
        let threads = threads.filter(|thread| is_asked(&case.scope, &scope_rows, thread));
        let mut all: Vec<Candidate<'c>> = threads
            .flat_map(|thread| self.of_thread(case, thread, sent))
            .collect();
        for one in &mut all {
            let row = one.thread.process_row;
            one.windows_responded = !one.is_window
                && row.is_some_and(|row| self.with_windows.contains(&row))
                && !has_late_window(case, sent, row, &one.range());
        }
        all
    }

    /// Returns the first wait of a thread if the wait began before the recording. Such a wait is returned
    /// only if the user asked about threads, because its wait reason is not recorded.
    fn since_before<'c>(
        &self,
        case: &'c Case<'_>,
        thread: &'c ThreadWaits,
        is_window: bool,
    ) -> Option<(i64, Candidate<'c>)> {
        let (wait, ticks) = **thread.first.as_ref().filter(|_| self.is_asked)?;
        let begin = case.survey.complete.from(case.survey.span.start);
        let readied_ns = wait.readied_ns?;
        let waits_ns = readied_ns.saturating_sub(begin);
        let wait = Wait {
            previous_out_ns: Some(begin),
            waits_ns: Some(waits_ns),
            ..wait
        };
        let is_handed = wait.readied_by_dpc == Some(false);
        let during = case.scope.during.as_ref();
        let is_then = during.is_none_or(|during| begin < during.end && during.start < readied_ns);
        let candidate = Candidate {
            thread,
            wait,
            kind: Kind::Unknown,
            edge: Edge::End(ticks),
            is_window,
            is_asked_open: false,
            is_usual: true,
            response: None,
            whole: None,
            windows_responded: false,
        };
        (is_then && waits_ns >= NOTICED_NS && (is_window || is_handed))
            .then_some((waits_ns, candidate))
    }

    /// Adds the responses of a thread that handles messages of windows. A response replaces the waits within it, unless
    /// one of them is most of it. Then this wait replaces the others.
    fn add_responses<'c>(
        &self,
        case: &'c Case<'_>,
        thread: &'c ThreadWaits,
        sent: &SentMessages,
        found: &mut Vec<(i64, Candidate<'c>)>,
    ) {
        let during = case.scope.during.as_ref();
        for response in sent.responses(thread) {
            let range = response.range();
            let is_then = during.is_none_or(|during| overlap(during, &range).is_some());
            let is_complete = case.survey.complete.holds(range.start, range.end);
            if !is_then || !(is_complete || self.is_asked) {
                continue;
            }
            let within = |one: &Candidate<'_>| {
                overlap(&one.range(), &range).map_or(0, |both| both.end - both.start)
            };
            // A wait that is most of the response says more than the response.
            let longest =
                (found.iter().map(|(_, one)| within(one)).enumerate()).max_by_key(|one| one.1);
            if let Some((place, ns)) = longest
                && is_share(ns, response.ns, CAUSE_PERCENT)
            {
                if !is_share(ns, response.ns, SAME_DELAY_PERCENT) {
                    found[place].1.whole = Some(*response);
                    let mut places = 0..found.len();
                    found.retain(|(_, one)| places.next() == Some(place) || within(one) == 0);
                }
                continue;
            }
            // Other theories report interrupts that kept the thread from running.
            if is_share(response.inside_ns, response.ns, CAUSE_PERCENT) {
                continue;
            }
            let asleep_ns = case.survey.suspend_gaps.asleep_ns(&range);
            // If the clocks of CPUs disagree, a response that moves from CPU to CPU seems longer.
            let ns = response.ns - asleep_ns;
            if ns - case.survey.clocks_apart_ns() < NOTICED_NS {
                continue;
            }
            found.retain(|(_, one)| within(one) == 0);
            found.push((ns, Candidate::of_response(thread, *response)));
        }
    }

    /// Returns the waits of a thread that may be hangs.
    fn of_thread<'c>(
        &self,
        case: &'c Case<'_>,
        thread: &'c ThreadWaits,
        sent: &SentMessages,
    ) -> Vec<Candidate<'c>> {
        let is_window = UserAttention::has_window(thread);
        let is_of_user = thread
            .process_row
            .is_some_and(|row| self.of_users.contains(&row));
        if !is_window && !self.knows_focus() && !self.is_asked && !is_of_user {
            return Vec::new();
        }
        let mut candidates: Vec<(i64, Candidate<'c>)> = Vec::new();
        candidates.extend(self.since_before(case, thread, is_window));
        let whole = thread.blocks.iter().map(|wait| (*wait, Edge::Both));
        for (wait, edge) in whole.chain(until_end(case, thread)) {
            let Some(reason) = wait.previous_wait_reason else {
                continue;
            };
            let has_sent = sent.has(wait.stack_id);
            let kind = if reason == MESSAGES && has_sent {
                Some(Kind::SentMessage)
            } else {
                Kind::from_reason(reason)
            };
            let Some(kind) = kind else {
                continue;
            };
            let candidate = Candidate {
                thread,
                wait,
                kind,
                edge,
                is_window,
                is_asked_open: edge == Edge::Start
                    && case.scope.threads.contains(&thread.thread_id),
                is_usual: kind != Kind::SentMessage && thread.is_usual(reason),
                response: None,
                whole: None,
                windows_responded: false,
            };
            let range = candidate.range();
            let is_complete = case.survey.complete.holds(range.start, range.end);
            if !(is_complete || self.is_asked) || !candidate.may_hang() {
                continue;
            }
            let asleep_ns = case.survey.suspend_gaps.asleep_ns(&range);
            // A window that does not respond is a hang even if another program has the focus.
            let noticed_ns = if is_window {
                range.end - range.start
            } else {
                self.noticed_ns(thread.process_row, &range)
            };
            let ns = noticed_ns - asleep_ns;
            if ns >= NOTICED_NS {
                candidates.push((ns, candidate));
            }
        }
        self.add_responses(case, thread, sent, &mut candidates);
        // Threads without windows are noticed only if they wait long. One long wait or many
        // shorter ones make a program late.
        let total_ns: i64 = candidates.iter().map(|(ns, _)| ns).sum();
        if !is_window && !self.is_asked && total_ns < DISRUPTIVE_NS {
            return Vec::new();
        }
        candidates
            .into_iter()
            .map(|(_, candidate)| candidate)
            .collect()
    }
}

/// Returns true if a window of a process did not respond for a noticeable time that overlaps the range.
fn has_late_window(
    case: &Case<'_>,
    sent: &SentMessages,
    process_row: Option<u32>,
    range: &Range<i64>,
) -> bool {
    let mut of_process =
        (case.survey.threads.iter()).filter(|thread| thread.process_row == process_row);
    of_process.any(|thread| {
        let mut responses = sent.responses(thread).iter();
        responses.any(|response| overlap(&response.range(), range).is_some())
    })
}

/// Returns the wait of a thread that lasts until the trace ends. Returns `None` if the wait is outside the time range
/// in scope, or if context switches are missing, because the thread may then have run unseen.
fn until_end(case: &Case<'_>, thread: &ThreadWaits) -> Option<(Wait, Edge)> {
    let (since_ns, reason, cpu) = thread.blocked_since?;
    let end = case.survey.complete.until(case.survey.span.end);
    let waits_ns = end.saturating_sub(since_ns);
    let wait = Wait {
        start_ns: end,
        end_ns: end,
        cpu,
        thread_id: thread.thread_id,
        thread_row: thread.thread_row,
        process_id: thread.process_id,
        process_row: thread.process_row,
        previous_out_ns: Some(since_ns),
        waits_ns: Some(waits_ns),
        previous_wait_reason: Some(reason),
        ..Wait::default()
    };
    let during = case.scope.during.as_ref();
    let is_then = during.is_none_or(|during| since_ns < during.end && during.start < end);
    (is_then && waits_ns >= NOTICED_NS && case.survey.contradictions == 0)
        .then_some((wait, Edge::Start))
}

impl<'c> Candidate<'c> {
    /// Returns a candidate for a response. Its wait has the range of the response.
    fn of_response(thread: &'c ThreadWaits, response: Response) -> Candidate<'c> {
        let wait = Wait {
            start_ns: response.end_ns,
            end_ns: response.end_ns,
            thread_id: thread.thread_id,
            thread_row: thread.thread_row,
            process_id: thread.process_id,
            process_row: thread.process_row,
            previous_out_ns: Some(response.start_ns),
            waits_ns: Some(response.ns),
            ..Wait::default()
        };
        Candidate {
            thread,
            wait,
            kind: Kind::Response,
            edge: Edge::Both,
            is_window: true,
            is_asked_open: false,
            is_usual: false,
            response: Some(response),
            whole: None,
            windows_responded: false,
        }
    }
}

impl Candidate<'_> {
    /// Returns false if the wait is certainly intended by the program.
    fn may_hang(&self) -> bool {
        let by_thread = self.wait.readied_by_dpc == Some(false);
        match self.kind {
            _ if self.is_asked_open => true,
            Kind::RateControl
            | Kind::Memory
            | Kind::Device
            | Kind::Unknown
            | Kind::SentMessage
            | Kind::Response => true,
            Kind::Lock | Kind::Object => by_thread || self.is_window && !self.is_usual,
            Kind::Call => self.is_window || !self.is_usual,
            // Programs usually intend a sleep. Only a long sleep of a window's thread may be a hang, if this thread
            // rarely sleeps.
            Kind::Sleep => {
                let waits_ns = self.wait.waits_ns.unwrap_or(0);
                self.is_window && !self.is_usual && waits_ns >= DISRUPTIVE_NS
            }
            Kind::Suspended => self.is_window,
        }
    }
}

/// Removes the waits that last until the trace ends if an event has already readied their threads.
pub(super) fn without_readied(
    case: &Case<'_>,
    candidates: &mut Vec<Candidate<'_>>,
) -> Result<(), StoreError> {
    let is_open = |candidate: &&Candidate<'_>| candidate.edge == Edge::Start;
    let open: FxHashMap<u32, i64> = (candidates.iter().filter(is_open))
        .map(|candidate| (candidate.wait.thread_id, candidate.range().start))
        .collect();
    let Some(first) = open.values().min() else {
        return Ok(());
    };
    let mut readied: FxHashSet<u32> = FxHashSet::default();
    let table = case.table(Table::ReadyThreads)?;
    for batch in case.batches(&table, *first..i64::MAX, &["time_ns", "thread_id"]) {
        let batch = batch?;
        let view = ReadyThreadsView::new(&batch)?;
        let rows = (0..view.len()).filter(|row| {
            let since = open.get(&view.thread_id[*row]);
            since.is_some_and(|since| *since <= view.time_ns[*row])
        });
        readied.extend(rows.map(|row| view.thread_id[row]));
    }
    candidates.retain(|candidate| {
        candidate.edge != Edge::Start || !readied.contains(&candidate.wait.thread_id)
    });
    Ok(())
}
