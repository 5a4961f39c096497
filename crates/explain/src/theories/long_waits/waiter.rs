//! Threads that could run and got no CPU, and what they were meanwhile.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpusView, PrioritiesView, StoreError, Table, ThreadsView};

use crate::{Case, Evidence, Wait};

/// A thread that could run and got no CPU.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    /// From when to when.
    pub(super) range: Range<i64>,
    pub(super) thread_id: u32,
    pub(super) thread_row: Option<u32>,
    pub(super) process_id: Option<u32>,
    pub(super) process_row: Option<u32>,
    pub(super) rank: Option<u8>,
    /// Its priority over the wait, stretch by stretch.
    pub(super) priorities: Vec<(Range<i64>, Option<i8>)>,
    /// A CPU that it ran on.
    pub(super) cpu: Option<u16>,
    /// CPUs that it may use, if those are not all.
    pub(super) limited_to: Option<Vec<u16>>,
    /// Whether the trace tells which CPUs it may use.
    pub(super) affinity_is_known: bool,
    /// Its kernel stack was paged out, or its process swapped out, when it was made ready.
    pub(super) is_paged_out: Option<bool>,
    pub(super) ran_unseen: bool,
    /// If it may have run unseen before `range`, but not since, what tells so.
    pub(super) certain: Option<Evidence>,
    /// The row of `cpu_runs` that ended it; none if it waits still when the trace ends.
    pub(super) wait: Option<Wait>,
}

impl Waiter {
    pub(super) fn of(wait: &Wait) -> Waiter {
        let paged_out = [wait.kernel_stack_not_resident, wait.process_out_of_memory];
        Waiter {
            range: wait.range(),
            thread_id: wait.thread_id,
            thread_row: wait.thread_row,
            process_id: wait.process_id,
            process_row: wait.process_row,
            rank: wait.rank,
            priorities: vec![(wait.range(), wait.priority)],
            cpu: Some(wait.cpu),
            limited_to: None,
            affinity_is_known: false,
            is_paged_out: paged_out.into_iter().flatten().reduce(|a, b| a || b),
            ran_unseen: wait.ran_unseen,
            certain: None,
            wait: Some(*wait),
        }
    }

    pub(super) fn ready_ns(&self) -> i64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Its priority when the wait began.
    pub(super) fn priority(&self) -> Option<i8> {
        self.priorities.first().and_then(|(_, priority)| *priority)
    }

    pub(super) fn may_use(&self, cpu: u16) -> bool {
        let limited = self.limited_to.as_ref();
        limited.is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// The CPUs that it may use, as a condition that follows another in a query.
    pub(super) fn and_on_its_cpus(&self) -> String {
        let list = |cpus: &Vec<u16>| {
            let cpus: Vec<String> = cpus.iter().map(u16::to_string).collect();
            format!(" AND cpu IN ({})", cpus.join(", "))
        };
        self.limited_to.as_ref().map_or_else(String::new, list)
    }
}

/// Looks up what priorities the waiting threads had, and which CPUs they may use.
pub(super) fn look_up(case: &Case<'_>, waiters: &mut [Waiter]) -> Result<(), StoreError> {
    let changes = Changes::read(case, waiters)?;
    let known = known(case, waiters)?;
    let cpus = Numbers::read(case)?;
    for waiter in waiters {
        let Some(row) = waiter.thread_row else {
            continue;
        };
        let Some(of_thread) = changes.threads.get(&row) else {
            continue;
        };
        let range = waiter.range.clone();
        let mut rest = range.clone();
        let mut now = waiter.priority();
        let mut priorities = Vec::new();
        let within = of_thread.priorities.iter();
        for (time, old, new) in
            within.filter(|change| range.start < change.0 && change.0 < range.end)
        {
            priorities.push((rest.start..*time, Some(*old)));
            (rest.start, now) = (*time, Some(*new));
        }
        priorities.push((rest, now));
        priorities.retain(|(range, _)| !range.is_empty());
        // The priority that ended the wait, raised at its very end, is not that of the wait.
        let at_end = range.end..=range.end.saturating_add(case.survey.clocks_apart_ns());
        let last = of_thread
            .priorities
            .iter()
            .find(|change| at_end.contains(&change.0));
        if let (Some((_, old, _)), Some(part)) = (last, priorities.last_mut()) {
            part.1 = Some(*old);
        }
        waiter.priorities = priorities;
        let known = known.get(&row).copied().unwrap_or_default();
        // No event tells when it was raised for starving: that was at the wait's end.
        if !changes.are_recorded
            && waiter.priority() == Some(STARVED)
            && waiter.ready_ns() >= STARVES_NS
            && let Some(base) = known.base_priority.and_then(|base| i8::try_from(base).ok())
        {
            waiter.priorities = vec![(range.clone(), Some(base))];
        }
        let mut affinity = known.affinity;
        for (time, mask) in &of_thread.affinities {
            if *time <= range.start {
                affinity = Some(*mask);
            }
        }
        waiter.affinity_is_known = affinity.is_some();
        waiter.limited_to = affinity.and_then(|mask| cpus.within(mask, waiter.cpu));
    }
    Ok(())
}

/// Changes of a thread's priority (when, from, to) and affinity (when, to), in order of time.
#[derive(Clone, Default)]
struct OfThread {
    priorities: Vec<(i64, i8, i8)>,
    affinities: Vec<(i64, u64)>,
}

/// The priority that a thread is raised to which is ready for long and gets no CPU, and how long that
/// takes at least: Windows looks for such threads once a second and, as documented, raises those that
/// waited for some four.
const STARVED: i8 = 15;
const STARVES_NS: i64 = 1_000_000_000;

/// By the rows of threads.
struct Changes {
    threads: FxHashMap<u32, OfThread>,
    /// Whether the trace tells of any change of a priority.
    are_recorded: bool,
}

impl Changes {
    fn read(case: &Case<'_>, waiters: &[Waiter]) -> Result<Changes, StoreError> {
        let rows = waiters.iter().filter_map(|waiter| waiter.thread_row);
        let mut changes = Changes {
            threads: rows.map(|row| (row, OfThread::default())).collect(),
            are_recorded: false,
        };
        let table = case.table(Table::Priorities)?;
        let columns = [
            "time_ns",
            "kind",
            "thread_row",
            "old_priority",
            "new_priority",
            "affinity",
        ];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = PrioritiesView::new(&batch)?;
            for row in 0..view.len() {
                changes.are_recorded |= view.kind.get(row) == Some("priority");
                let thread = view.thread_row.get(row);
                let threads = &mut changes.threads;
                let Some(of_thread) = thread.and_then(|row| threads.get_mut(&row)) else {
                    continue;
                };
                let time = view.time_ns[row];
                match view.kind.get(row) {
                    Some("priority") => {
                        let change = view.old_priority.get(row).zip(view.new_priority.get(row));
                        let change = change.map(|(old, new)| (time, old, new));
                        of_thread.priorities.extend(change);
                    }
                    Some("affinity") => {
                        let change = view.affinity.get(row).map(|mask| (time, mask));
                        of_thread.affinities.extend(change);
                    }
                    _ => {}
                }
            }
        }
        Ok(changes)
    }
}

/// What `threads` tells of a thread.
#[derive(Clone, Copy, Default)]
struct Known {
    affinity: Option<u64>,
    base_priority: Option<u8>,
}

/// What `threads` tells of those that wait, by its rows.
fn known(case: &Case<'_>, waiters: &[Waiter]) -> Result<FxHashMap<u32, Known>, StoreError> {
    let table = case.table(Table::Threads)?;
    let mut known = FxHashMap::default();
    let mut first = 0;
    let columns = ["first_seen_ns", "affinity", "base_priority"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = ThreadsView::new(&batch)?;
        for row in waiters.iter().filter_map(|waiter| waiter.thread_row) {
            let place = (row as usize).checked_sub(first);
            if let Some(place) = place.filter(|place| *place < view.len()) {
                let of_thread = Known {
                    affinity: view.affinity.get(place),
                    base_priority: view.base_priority.get(place),
                };
                known.insert(row, of_thread);
            }
        }
        first += view.len();
    }
    Ok(known)
}

/// Groups and numbers of CPUs.
struct Numbers(Vec<(u16, u16, u8)>);

impl Numbers {
    fn read(case: &Case<'_>) -> Result<Numbers, StoreError> {
        let table = case.table(Table::Cpus)?;
        let mut numbers = Vec::new();
        let columns = ["first_seen_ns", "cpu", "processor_group", "number"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = CpusView::new(&batch)?;
            for row in 0..view.len() {
                let cpu = view.cpu[row];
                let group = view.processor_group.get(row).unwrap_or(0);
                let number = view.number.get(row).or(u8::try_from(cpu).ok());
                numbers.extend(number.map(|number| (cpu, group, number)));
            }
        }
        Ok(Numbers(numbers))
    }

    /// The CPUs of an affinity, of the processor group of the CPU that its thread ran on; none if
    /// these are all of the group.
    fn within(&self, mask: u64, cpu: Option<u16>) -> Option<Vec<u16>> {
        let ran_on = self.0.iter().find(|(other, ..)| Some(*other) == cpu);
        let group = ran_on.or(self.0.first())?.1;
        let of_group = self.0.iter().filter(|(_, other, _)| *other == group);
        let (within, beyond): (Vec<&(u16, u16, u8)>, Vec<_>) =
            of_group.partition(|(_, _, number)| *number < 64 && mask >> *number & 1 == 1);
        let cpus: Vec<u16> = within.iter().map(|(cpu, ..)| *cpu).collect();
        (!beyond.is_empty() && !cpus.is_empty()).then_some(cpus)
    }
}
