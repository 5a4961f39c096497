//! Rows that know only what their own event says are joined with the rest of the trace.

use std::collections::HashMap;

use events::kernel::InterruptKind;
use rustc_hash::FxHashMap;

use crate::schema::Rows;
use crate::stack_index::StackCursor;
use crate::world::{ImageFinder, ThreadFinder, World};
use crate::{ContextSwitches, HardFaults, Interrupts, ReadyThreads, Samples};

/// A table of events whose rows are joined, slice by slice of time.
pub(crate) trait Join: Rows {
    /// What goes from one slice to the next.
    type State: Default + Send;

    /// Fills the columns that come from elsewhere. Rows are sorted.
    fn join(&mut self, state: &mut Self::State, world: &World<'_>);
}

/// Raw as they are; runs are made of them.
impl Join for ContextSwitches {
    type State = ();

    fn join(&mut self, (): &mut (), _: &World<'_>) {}
}

/// Joined along with context switches, by [`crate::scheduling::Scheduling`].
impl Join for ReadyThreads {
    type State = ();

    fn join(&mut self, (): &mut (), _: &World<'_>) {}
}

/// What samples need from the slice before.
#[derive(Debug, Default)]
pub(crate) struct SampleState {
    threads: ThreadFinder,
    images: ImageFinder,
    stacks: StackCursor,
    /// When each CPU was sampled last.
    last_ns: HashMap<u16, i64>,
}

impl Join for Samples {
    type State = SampleState;

    fn join(&mut self, state: &mut SampleState, world: &World<'_>) {
        (self.thread_row, self.process_id, self.process_row) =
            state.threads.whose(world, &self.thread_id, &self.time_ns);
        for row in 0..self.len() {
            let (time_ns, thread_id) = (self.time_ns[row], self.thread_id[row]);
            let process_id = self.process_id.get(row).unwrap_or(0);
            let address = self.address[row];
            let image = state.images.find(world, process_id, address, time_ns);
            self.image_row.push(image);
            let before = state.last_ns.insert(self.cpu[row], time_ns);
            let weight = before.map(|before| time_ns.saturating_sub(before));
            self.weight_ns.push(weight.or(world.sampling_interval_ns));
            let stack = world
                .stacks
                .at(&mut state.stacks, time_ns, thread_id, self.cpu[row]);
            self.stack_id.push(stack);
        }
    }
}

impl Join for HardFaults {
    type State = ThreadFinder;

    fn join(&mut self, threads: &mut ThreadFinder, world: &World<'_>) {
        let keys = self.file_object.iter().zip(&self.time_ns);
        let paths = keys.map(|(key, time)| world.files.path(*key, *time));
        self.path = paths.collect();
        (self.thread_row, self.process_id, self.process_row) =
            threads.whose(world, &self.thread_id, &self.time_ns);
    }
}

/// What interrupts need from the slice before.
#[derive(Debug, Default)]
pub(crate) struct InterruptState {
    images: ImageFinder,
    /// Per CPU, routines that ended and are inside none seen yet.
    ended: FxHashMap<u16, Vec<Ended>>,
}

/// A routine that ended. Begins rise from one to the next.
#[derive(Clone, Copy, Debug)]
struct Ended {
    start_ns: i64,
    end_ns: i64,
    kind: InterruptKind,
}

impl Ended {
    /// Whether a routine is inside this one that cannot be, so that this one cannot have begun then:
    /// neither a DPC nor a service routine is left for a DPC. (Timers' DPCs may run inside another's.)
    fn cannot_have_begun(&self, ended: &[Ended]) -> bool {
        use InterruptKind::{Dpc, Isr, MessageIsr, TimerDpc};
        let inside = |inner: &&Ended| inner.start_ns >= self.start_ns;
        let mut inside = ended.iter().rev().take_while(inside);
        matches!(self.kind, Dpc | TimerDpc | Isr | MessageIsr)
            && inside.any(|inner| inner.kind == Dpc && inner.end_ns > self.start_ns)
    }
}

/// Routines remembered per CPU: one can be inside a later one only if that lasts longer than all
/// that came after it.
const REMEMBERED: usize = 1 << 16;

impl Join for Interrupts {
    type State = InterruptState;

    fn join(&mut self, state: &mut InterruptState, world: &World<'_>) {
        let mut senseless = Vec::new();
        for row in 0..self.len() {
            let end_ns = self.end_ns[row];
            let routine = self.routine[row];
            let at = self.start_ns.get(row).unwrap_or(end_ns);
            self.image_row
                .push(state.images.find(world, 0, routine, at));
            let ended = state.ended.entry(self.cpu[row]).or_default();
            let kind = self.kind.0[row];
            let whole = self.start_ns.get(row).map(|start_ns| Ended {
                start_ns,
                end_ns,
                kind,
            });
            let is_senseless = whole.is_some_and(|whole| whole.cannot_have_begun(ended));
            senseless.extend(is_senseless.then_some(row));
            let pieces = whole
                .filter(|_| !is_senseless)
                .map(|whole| pieces(ended, whole));
            self.exclusive_ns.push(pieces.map(|p| p.sum_ns));
            self.fragments.push(pieces.map(|p| p.count));
            self.longest_fragment_ns.push(pieces.map(|p| p.longest_ns));
        }
        if !senseless.is_empty() {
            for column in [&mut self.start_ns, &mut self.duration_ns] {
                let rows = column.iter().enumerate();
                *column = rows
                    .map(|(row, ns)| ns.filter(|_| senseless.binary_search(&row).is_err()))
                    .collect();
            }
        }
    }
}

/// The pieces of a routine that no other interrupted.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    count: u32,
    sum_ns: i64,
    longest_ns: i64,
}

/// Rows come in the order in which routines ended, so those that ran inside a row are the latest
/// ones before it that began no earlier than it did.
fn pieces(ended: &mut Vec<Ended>, whole: Ended) -> Pieces {
    let mut found = Pieces {
        count: 0,
        sum_ns: 0,
        longest_ns: 0,
    };
    let mut until = whole.end_ns;
    let mut piece = |from: i64, until: i64| {
        let length = until.saturating_sub(from).max(0);
        found.count = found.count.saturating_add(u32::from(length > 0));
        found.sum_ns = found.sum_ns.saturating_add(length);
        found.longest_ns = found.longest_ns.max(length);
    };
    while let Some(inner) = ended.pop_if(|inner| inner.start_ns >= whole.start_ns) {
        piece(inner.end_ns, until);
        until = inner.start_ns.min(until);
    }
    piece(whole.start_ns, until);
    // A routine shorter than the clock can tell is one piece all the same.
    found.count = found.count.max(1);
    if ended.len() >= REMEMBERED {
        ended.drain(..REMEMBERED / 2);
    }
    ended.push(whole);
    found
}
