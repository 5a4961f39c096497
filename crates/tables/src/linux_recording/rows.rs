//! Rows of events of a recording of Linux.

use etl::Place;
use events::kernel::ContextSwitch;
use linux::{
    Chunk, Event, EventKind, Meaning, Recording, Switch, SwitchedThread, Tracepoint, Woken,
};
use rayon::prelude::*;

use super::{cpu_of, origin_ns, time_since};
use crate::Table;
use crate::build::Cancelled;
use crate::register::ReaderSet;
use crate::slice::RawRows;
use crate::slices::{Progress, RowSource, SLACK_NS, ends_of_slices};
use crate::table::context_switches;
use crate::table::ready_threads::Readied;

/// Reader of a recording in slices of time, with all CPUs in parallel.
pub(super) struct RowsOfChunks<'r> {
    recording: &'r Recording,
    origin_ns: u64,
    wanted: ReaderSet,
    cpus: Vec<Cpu<'r>>,
    /// Ends of the remaining slices, the latest first.
    ends: Vec<i64>,
}

/// Chunks of a CPU, with the rows that were read but are not yet part of a slice.
struct Cpu<'r> {
    number: u16,
    /// Time of the first event of each chunk since the start of the recording, and the chunk; in time order.
    chunks: Vec<(i64, &'r Chunk)>,
    /// Index of the next chunk.
    next: usize,
    raw: RawRows,
    last_ns: i64,
}

impl<'r> RowsOfChunks<'r> {
    pub(super) fn new(recording: &'r Recording, wanted: ReaderSet) -> RowsOfChunks<'r> {
        let origin_ns = origin_ns(recording);
        let mut cpus: Vec<Cpu<'r>> = Vec::new();
        for chunk in recording.chunks() {
            let Some((number, first_ns)) = cpu_of(chunk).zip(chunk.first_ns) else {
                continue;
            };
            let first_ns = i64::try_from(first_ns - origin_ns).unwrap_or(i64::MAX);
            let at = cpus.binary_search_by_key(&number, |cpu| cpu.number);
            let at = at.unwrap_or_else(|at| {
                let new = Cpu {
                    number,
                    chunks: Vec::new(),
                    next: 0,
                    raw: RawRows::default(),
                    last_ns: 0,
                };
                cpus.insert(at, new);
                at
            });
            cpus[at].chunks.push((first_ns, chunk));
        }
        for cpu in &mut cpus {
            cpu.chunks
                .sort_by_key(|(first_ns, chunk)| (*first_ns, chunk.offset));
        }
        let chunks = cpus.iter().flat_map(|cpu| &cpu.chunks);
        let mut ends = ends_of_slices(chunks.map(|(first, chunk)| (*first, chunk.bytes)).collect());
        ends.reverse();
        RowsOfChunks {
            recording,
            origin_ns,
            wanted,
            cpus,
            ends,
        }
    }
}

impl RowSource for RowsOfChunks<'_> {
    fn next(&mut self, progress: &Progress<'_>) -> Result<Option<(i64, RawRows)>, Cancelled> {
        let Some(end_ns) = self.ends.pop() else {
            return Ok(None);
        };
        let (recording, origin_ns, wanted) = (self.recording, self.origin_ns, self.wanted);
        self.cpus.par_iter_mut().try_for_each(|cpu| {
            while let Some((first_ns, chunk)) = cpu.chunks.get(cpu.next).copied()
                && first_ns.saturating_sub(SLACK_NS) < end_ns
            {
                cpu.next += 1;
                // The first pass reports faults.
                let _ = recording.read(chunk, &mut |event| {
                    cpu.add(time_since(origin_ns, event), event, wanted);
                });
                if !progress(chunk.bytes.into()) {
                    return Err(Cancelled);
                }
            }
            Ok(())
        })?;
        let raw = self.cpus.iter_mut().map(|cpu| &mut cpu.raw).collect();
        Ok(Some((end_ns, RawRows::take(raw, end_ns))))
    }

    fn last_ns(&self) -> i64 {
        self.cpus.iter().map(|cpu| cpu.last_ns).max().unwrap_or(0)
    }
}

impl Cpu<'_> {
    fn add(&mut self, time_ns: i64, event: &Event<'_>, wanted: ReaderSet) {
        let EventKind::Tracepoint { tracepoint, .. } = &event.kind else {
            return;
        };
        self.last_ns = self.last_ns.max(time_ns);
        // Records of a CPU are in the order in which it wrote them.
        let place = Place {
            segment: 0,
            buffer_offset: event.offset,
            offset: 0,
        };
        match tracepoint.meaning {
            Meaning::Switch(switch) if wanted.has_table(Table::ContextSwitches) => {
                let switch = context_switches::Switch {
                    cpu: self.number,
                    place,
                    version: None,
                    payload: switch_of(&switch),
                };
                self.raw.context_switches.0.push((time_ns, switch));
            }
            Meaning::Waking(woken) | Meaning::WakeupNew(woken)
                if wanted.has_table(Table::ReadyThreads) =>
            {
                let readied = readied(self.number, place, tracepoint, &woken);
                self.raw.ready_threads.0.push((time_ns, readied));
            }
            _ => {}
        }
    }
}

fn readied(cpu: u16, place: Place, tracepoint: &Tracepoint<'_>, woken: &Woken<'_>) -> Readied {
    Readied {
        cpu,
        place,
        thread_id: woken.thread_id,
        by_dpc: tracepoint.in_interrupt || tracepoint.in_softirq,
        payload: None,
    }
}

/// Bits of `prev_state` of `sched_switch` (`include/linux/sched.h`, since kernel 4.14).
mod state {
    /// `EXIT_DEAD` and `EXIT_ZOMBIE`.
    pub(super) const ENDED: i64 = 0x10 | 0x20;
    /// The thread was preempted, and is ready (`TASK_REPORT_MAX`).
    pub(super) const PREEMPTED: i64 = 0x100;
}

/// Converts a switch into the columns that Windows and Linux share.
fn switch_of(switch: &Switch<'_>) -> ContextSwitch {
    let (previous, next) = (&switch.previous, &switch.next);
    let mut shared = ContextSwitch::default();
    shared.new_thread_id = next.thread_id;
    shared.old_thread_id = previous.thread_id;
    shared.new_priority = priority(next);
    shared.old_priority = priority(previous);
    // States of Windows: 1 ready, 4 terminated, 5 waiting.
    shared.old_state = match switch.previous_state {
        0 => 1,
        state if state & state::PREEMPTED != 0 => 1,
        state if state & state::ENDED != 0 => 4,
        _ => 5,
    };
    shared
}

/// Returns the priority by the rule that a higher number runs first: 0 for a fair thread, 1 to 99 for real time, 100 for a
/// deadline. The kernel counts real time from 98 down to 0, and gives a deadline −1.
fn priority(thread: &SwitchedThread<'_>) -> i8 {
    match thread.priority {
        ..0 => 100,
        priority @ 0..99 => 99 - priority as i8,
        _ => 0,
    }
}
