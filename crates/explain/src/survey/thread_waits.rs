//! Waits of each thread: waits for something other than a CPU, and the many short waits for a CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::CpuRunsView;

use super::Damage;
use super::longest_waits::Wait;
use super::responses::{MESSAGES, Response, Responses};
use crate::ranges::overlap;
use crate::thread_state::WAITING;
use crate::thresholds::{DISRUPTIVE_NS, LOST_PERCENT, NOTICED_NS};
use crate::{Reader, Scope};

/// Number of wait reasons with a separate counter. Windows has fewer wait reasons; the other counters are
/// reserved for new reasons.
const REASONS: usize = 48;
/// Maximum number of blocks (waits for something other than a CPU) that are kept for a thread.
const BLOCKS: usize = 64;
/// Maximum number of short waits for a CPU that are kept for a thread.
const SHORT: usize = 16;
/// Maximum numbers of different stacks and of different wakers of waits for messages that are kept for a thread.
const MESSAGE_STACKS: usize = 16;
const MESSAGE_WAKERS: usize = 8;
/// Shortest wait for a CPU that is kept, in nanoseconds.
const SHORTEST_NS: i64 = 500_000;
/// Shortest block that is kept if the user asks about threads, in nanoseconds.
const SHORTEST_ASKED_NS: i64 = 1_000_000;
/// Maximum number of wakes that are kept for all threads together.
const WAKES: usize = 1 << 20;
/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;
/// Code of the wait reason `WrCpuRateControl`.
pub(crate) const RATE_CONTROL: u8 = 24;

/// Waits of a thread.
#[derive(Clone, Debug)]
pub struct ThreadWaits {
    /// Id of the thread.
    pub thread_id: u32,
    /// Row of the thread in `threads`.
    pub thread_row: Option<u32>,
    /// Id of the thread's process.
    pub process_id: Option<u32>,
    /// Row of the thread's process in `processes`.
    pub process_row: Option<u32>,
    /// Number of blocks by wait reason. A block is a wait for something other than a CPU.
    counts: [u32; REASONS],
    /// Longest noticeable blocks, the longest first.
    pub blocks: Vec<Wait>,
    /// Number and total length in nanoseconds of the blocks by CPU rate control.
    pub rate_controlled: (u64, i64),
    /// Time of the thread's last switch-out, the wait reason and the CPU. `None` if the thread did not wait
    /// after its last recorded run.
    pub blocked_since: Option<(i64, u8, u16)>,
    /// First run of the thread, and the number of clock ticks that the kernel counted before this run. `None` if the
    /// number is not recorded, or if the run begins soon after the first run of the trace.
    pub first: Option<Box<(Wait, u32)>>,
    /// Seconds of the trace in which the thread lost much time, in order.
    pub lost: Vec<LostSecond>,
    /// Longest waits for a CPU that are shorter than `NOTICED_NS`, the longest first.
    pub short: Vec<Wait>,
    /// Longest noticeable responses of a thread that handles messages of windows, the longest first.
    pub responses: Vec<Response>,
    /// Longest time in which a thread that handles messages may have waited for them unseen, because events are missing,
    /// in nanoseconds.
    pub(crate) unseen_response_ns: i64,
    /// Different stacks of waits for messages: rows in `stacks`, each with the start of a run after such a wait.
    pub(crate) message_stacks: Vec<(u32, i64)>,
    /// Threads of other processes that ended short waits for messages: id and row of each, and the number and the total
    /// length in nanoseconds of these waits.
    pub(crate) message_wakers: Vec<((u32, Option<u32>), u64, i64)>,
    /// Wakes of a real-time thread, in order. Each entry has the time when the thread was readied, and the
    /// length of the wait for a CPU that followed, in nanoseconds.
    pub wakes: Vec<(i64, i64)>,
}

/// Time that a thread lost in a second of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostSecond {
    /// Number of the second, from the trace's start.
    pub second: i64,
    /// Time in waits for a CPU that are shorter than `NOTICED_NS`, in nanoseconds.
    pub ready_ns: i64,
    /// Time in DPCs and service routines that interrupted the thread, in nanoseconds.
    pub inside_ns: i64,
}

impl LostSecond {
    /// Returns the lost time in nanoseconds.
    pub fn ns(&self) -> i64 {
        self.ready_ns + self.inside_ns
    }

    /// Returns the time range of the second.
    pub fn range(&self) -> Range<i64> {
        let start = self.second.saturating_mul(SECOND_NS);
        start..start.saturating_add(SECOND_NS)
    }
}

impl ThreadWaits {
    /// Returns the number of blocks with this wait reason.
    pub(crate) fn count(&self, reason: u8) -> u32 {
        self.counts.get(usize::from(reason)).copied().unwrap_or(0)
    }

    /// Returns true if the thread waits for this reason more often than for all other reasons together.
    pub(crate) fn is_usual(&self, reason: u8) -> bool {
        let all: u32 = self.counts.iter().sum();
        self.count(reason).saturating_mul(2) > all
    }
}

/// Waits that are kept for a thread while runs are read.
struct ThreadState {
    waits: ThreadWaits,
    /// Longest blocks so far, each with its length. The shortest of them is on top of the heap.
    blocks: BinaryHeap<Reverse<(i64, Wait)>>,
    short: BinaryHeap<Reverse<Wait>>,
    responses: Responses,
    now: LostSecond,
}

impl ThreadState {
    fn lose(&mut self, range: Range<i64>, ns: i64, is_inside: bool) {
        let length = range.end.saturating_sub(range.start);
        let mut second = range.start.div_euclid(SECOND_NS);
        while length > 0 && second.saturating_mul(SECOND_NS) < range.end {
            let of_second = LostSecond { second, ..self.now }.range();
            if let Some(part) = overlap(&range, &of_second) {
                if second != self.now.second {
                    self.end_second();
                    self.now.second = second;
                }
                let part_ns = i128::from(part.end - part.start) * i128::from(ns);
                let part_ns = (part_ns / i128::from(length)) as i64;
                if is_inside {
                    self.now.inside_ns += part_ns
                } else {
                    self.now.ready_ns += part_ns
                }
            }
            second += 1;
        }
    }

    /// Adds the stack and the waker of a wait for messages.
    fn add_message(&mut self, runs: &CpuRunsView<'_>, row: usize, waits_ns: i64) {
        let stacks = &mut self.waits.message_stacks;
        if let Some(stack) = runs.stack_id.get(row)
            && stacks.len() < MESSAGE_STACKS
            && !stacks.iter().any(|(known, _)| *known == stack)
        {
            stacks.push((stack, runs.start_ns[row]));
        }
        let by_other = runs.readied_by_dpc.get(row) == Some(false)
            && runs.readying_process_row.get(row) != runs.process_row.get(row);
        let Some(id) = runs.readying_thread_id.get(row).filter(|_| by_other) else {
            return;
        };
        if waits_ns >= DISRUPTIVE_NS {
            return;
        }
        let by = (id, runs.readying_thread_row.get(row));
        let wakers = &mut self.waits.message_wakers;
        match wakers.iter().position(|(known, ..)| *known == by) {
            Some(place) => {
                let (_, times, ns) = &mut wakers[place];
                (*times, *ns) = (*times + 1, *ns + waits_ns);
            }
            None if wakers.len() < MESSAGE_WAKERS => wakers.push((by, 1, waits_ns)),
            None => {}
        }
    }

    fn end_second(&mut self) {
        let now = std::mem::take(&mut self.now);
        if now.ns() >= SECOND_NS / 100 * LOST_PERCENT {
            self.waits.lost.push(now);
        }
    }
}

/// Waits by id and row of the thread.
pub(super) struct WaitsByThread {
    threads: FxHashMap<(u32, Option<u32>), ThreadState>,
    real_time_priority: i8,
    shortest_ns: i64,
    during: Option<Range<i64>>,
    wakes: usize,
    /// Start of the trace's first run.
    begin_ns: Option<i64>,
}

impl WaitsByThread {
    pub(super) fn new(reader: &Reader<'_>, scope: &Scope) -> WaitsByThread {
        WaitsByThread {
            real_time_priority: reader.real_time_priority(),
            threads: FxHashMap::default(),
            shortest_ns: if scope.has_all_threads() {
                NOTICED_NS
            } else {
                SHORTEST_ASKED_NS
            },
            during: scope.during.clone(),
            wakes: 0,
            begin_ns: None,
        }
    }

    /// Adds runs. `is_doubtful` and `inside_ns` have for each run whether it is doubtful, and the time of the routines that
    /// interrupted it.
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, is_doubtful: &[bool], inside_ns: &[i64]) {
        for row in 0..inside_ns.len() {
            self.begin_ns.get_or_insert(runs.start_ns[row]);
            if runs.thread_id[row] != 0 {
                self.add_run(runs, row, inside_ns[row], is_doubtful[row]);
            }
        }
    }

    fn add_run(&mut self, runs: &CpuRunsView<'_>, row: usize, inside_ns: i64, is_doubtful: bool) {
        let (start, end) = (runs.start_ns[row], runs.end_ns[row]);
        let key = (runs.thread_id[row], runs.thread_row.get(row));
        let since_begin_ns = start.saturating_sub(self.begin_ns.unwrap_or(start));
        let is_late = since_begin_ns >= NOTICED_NS && runs.previous_out_ns.get(row).is_none();
        let ticks = runs.wait_ticks.get(row).filter(|_| is_late);
        let state = self.threads.entry(key).or_insert_with(|| ThreadState {
            waits: ThreadWaits {
                thread_id: key.0,
                thread_row: key.1,
                process_id: None,
                process_row: None,
                counts: [0; REASONS],
                blocks: Vec::new(),
                rate_controlled: (0, 0),
                blocked_since: None,
                first: ticks.map(|ticks| {
                    let ready_ns = runs.ready_ns.get(row).unwrap_or(0);
                    Box::new((Wait::read(runs, row, ready_ns), ticks))
                }),
                lost: Vec::new(),
                short: Vec::new(),
                responses: Vec::new(),
                unseen_response_ns: 0,
                message_stacks: Vec::new(),
                message_wakers: Vec::new(),
                wakes: Vec::new(),
            },
            blocks: BinaryHeap::new(),
            short: BinaryHeap::new(),
            responses: Responses::default(),
            now: LostSecond::default(),
        });
        state
            .responses
            .add(runs, row, is_doubtful, inside_ns, false);
        state.waits.process_id = runs.process_id.get(row);
        state.waits.process_row = runs.process_row.get(row);
        let waits_out = runs.state_out.get(row) == Some(WAITING);
        let reason_out = runs.wait_reason_out.get(row).filter(|_| waits_out);
        state.waits.blocked_since = reason_out.map(|reason| (end, reason, runs.cpu[row]));
        let ready_ns = runs.ready_ns.get(row).unwrap_or(0);
        let ran_unseen = runs.ran_unseen.get(row).unwrap_or(false);
        let waits_ns = runs.waits_ns.get(row).filter(|ns| *ns > 0);
        if let Some((waits_ns, reason)) = waits_ns.zip(runs.previous_wait_reason.get(row)) {
            if let Some(count) = state.waits.counts.get_mut(usize::from(reason)) {
                *count = count.saturating_add(1);
            }
            if reason == MESSAGES {
                state.add_message(runs, row, waits_ns);
            }
            if reason == RATE_CONTROL {
                state.waits.rate_controlled.0 += 1;
                state.waits.rate_controlled.1 += waits_ns;
            }
            let since = start.saturating_sub(ready_ns).saturating_sub(waits_ns);
            let is_then = (self.during.as_ref())
                .is_none_or(|during| since < during.end && during.start < start);
            if waits_ns >= self.shortest_ns && is_then && !ran_unseen {
                let wait = Wait::read(runs, row, ready_ns);
                state.blocks.push(Reverse((waits_ns, wait)));
                if state.blocks.len() > BLOCKS {
                    state.blocks.pop();
                }
            }
        }
        if (1..NOTICED_NS).contains(&ready_ns) && !ran_unseen {
            state.lose(start.saturating_sub(ready_ns)..start, ready_ns, false);
            let shortest = state.short.peek().map_or(0, |wait| wait.0.ready_ns);
            if ready_ns >= SHORTEST_NS && (state.short.len() < SHORT || ready_ns > shortest) {
                state.short.push(Reverse(Wait::read(runs, row, ready_ns)));
                if state.short.len() > SHORT {
                    state.short.pop();
                }
            }
        }
        if inside_ns > 0 {
            state.lose(start..end, inside_ns, true);
        }
        let is_real_time = runs.priority.get(row) >= Some(self.real_time_priority);
        if let Some(readied_ns) = runs.readied_ns.get(row).filter(|_| is_real_time)
            && self.wakes < WAKES
        {
            self.wakes += 1;
            state.waits.wakes.push((readied_ns, ready_ns));
        }
    }

    /// Returns the waits of each thread, sorted by id and row of the thread. `end_ns` is the end of the recording. If the
    /// file is broken and most threads are known, the others are left out: their ids are probably wrong.
    pub(super) fn finish(self, end_ns: i64, damage: Damage) -> Vec<ThreadWaits> {
        let threads = self.threads.into_values().map(|mut kept| {
            kept.end_second();
            let blocks = kept.blocks.into_sorted_vec().into_iter();
            let short = kept.short.into_sorted_vec().into_iter();
            let has_windows = kept.waits.count(MESSAGES) > 0;
            let unseen_ns = kept.responses.unseen_ns();
            let responses = has_windows.then(|| kept.responses.finish(end_ns));
            ThreadWaits {
                unseen_response_ns: if has_windows { unseen_ns } else { 0 },
                responses: responses.unwrap_or_default(),
                blocks: blocks.map(|one| one.0.1).collect(),
                short: short.map(|one| one.0).collect(),
                ..kept.waits
            }
        });
        let mut threads: Vec<ThreadWaits> = threads.collect();
        let known = threads.iter().filter(|waits| waits.thread_row.is_some());
        if damage.is_broken && known.count() * 2 > threads.len() {
            threads.retain(|waits| waits.thread_row.is_some());
        }
        threads.sort_unstable_by_key(|waits| (waits.thread_id, waits.thread_row));
        threads
    }
}
