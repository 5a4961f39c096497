//! Interrupts and DPCs of each processor, from the table `interrupts`.

use std::collections::BTreeSet;
use std::sync::Arc;

use explain::Reader;
use rustc_hash::FxHashMap;
use sim::replay::{Interrupt, Part, PartKind, Wake};
use tables::{Identities, InterruptKind, InterruptsView, Named, StoreError, Table};

use super::threads::Waits;

/// Maximum time between the end of a service routine and the DPC that it queued, in nanoseconds.
const ISR_TO_DPC_NS: u64 = 2_000;

/// Routine that ran once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Routine {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) cpu: u16,
    own_ns: u64,
    pub(super) kind: PartKind,
    image_row: Option<u32>,
    /// True for the DPC of a timer.
    pub(super) is_timer: bool,
    /// True if a disk request causes the routine, so that it has no fixed start.
    is_closed: bool,
}

/// Routines of all processors.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    /// Routines, sorted by end.
    pub(super) routines: Vec<Routine>,
    /// For each processor: the routines in the order of their ends.
    by_cpu: Vec<Vec<u32>>,
    /// For each processor: start and end of each interval with routines, and the sum of the intervals before it.
    busy: Vec<Vec<(u64, u64, u64)>>,
    /// Number of routines whose start is unknown.
    pub(super) unknown: u64,
    /// For each interrupt that a disk request causes: its routines.
    closed: Vec<Vec<u32>>,
}

impl Interrupts {
    pub(super) fn read(reader: &Reader<'_>, cpus: u16) -> Result<Interrupts, StoreError> {
        let mut all = Interrupts {
            by_cpu: vec![Vec::new(); cpus.into()],
            busy: vec![Vec::new(); cpus.into()],
            ..Interrupts::default()
        };
        let table = reader.table(Table::Interrupts)?;
        let columns = [
            "start_ns",
            "end_ns",
            "cpu",
            "kind",
            "exclusive_ns",
            "image_row",
            "vector",
        ];
        let name = |kind: InterruptKind| InterruptKind::NAMES[kind.code() as usize];
        let in_threads = [InterruptKind::ThreadedDpc, InterruptKind::PassiveIsr].map(name);
        let dpcs = [
            InterruptKind::Dpc,
            InterruptKind::TimerDpc,
            InterruptKind::IoTimer,
        ]
        .map(name);
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).unwrap_or_default();
                // Routines in threads are part of the work of these threads.
                if in_threads.contains(&kind) || view.cpu[row] >= cpus {
                    continue;
                }
                let own = view.exclusive_ns.get(row);
                let (Some(start), Some(own)) = (view.start_ns.get(row), own) else {
                    all.unknown += 1;
                    continue;
                };
                let is_dpc = dpcs.contains(&kind);
                let start_ns = start.max(0) as u64;
                all.routines.push(Routine {
                    start_ns,
                    end_ns: (view.end_ns[row].max(0) as u64).max(start_ns),
                    cpu: view.cpu[row],
                    own_ns: own.max(0) as u64,
                    kind: if is_dpc {
                        PartKind::Dpc
                    } else {
                        PartKind::Isr(view.vector.get(row).unwrap_or(0x80))
                    },
                    image_row: view.image_row.get(row),
                    is_timer: is_dpc && kind != name(InterruptKind::Dpc),
                    is_closed: false,
                });
            }
        }
        all.routines.sort_by_key(|routine| routine.end_ns);
        for (n, routine) in all.routines.iter().enumerate() {
            all.by_cpu[usize::from(routine.cpu)].push(n as u32);
        }
        for (cpu, busy) in all.busy.iter_mut().enumerate() {
            let mut spans: Vec<(u64, u64)> = (all.by_cpu[cpu].iter())
                .map(|n| &all.routines[*n as usize])
                .map(|routine| (routine.start_ns, routine.end_ns))
                .collect();
            spans.sort_unstable();
            let mut before = 0;
            for (start, end) in spans {
                match busy.last_mut() {
                    Some((_, last, _)) if start < *last => {
                        let more = end.saturating_sub(*last);
                        *last += more;
                        before += more;
                    }
                    _ => {
                        busy.push((start, end, before));
                        before += end - start;
                    }
                }
            }
        }
        Ok(all)
    }

    /// Returns the time of routines on a processor before `at_ns`.
    fn busy_until(&self, cpu: u16, at_ns: u64) -> u64 {
        let Some(busy) = self.busy.get(usize::from(cpu)) else {
            return 0;
        };
        let next = busy.partition_point(|(start, ..)| *start < at_ns);
        match next.checked_sub(1) {
            None => 0,
            Some(last) => {
                let (start, end, before) = busy[last];
                before + at_ns.min(end) - start
            }
        }
    }

    /// Returns the time from `from_ns` to `to_ns` that a processor did not spend on routines.
    pub(super) fn net_ns(&self, cpu: u16, from_ns: u64, to_ns: u64) -> u64 {
        let before = self.busy_until(cpu, from_ns);
        let busy = self.busy_until(cpu, to_ns).saturating_sub(before);
        to_ns.saturating_sub(from_ns).saturating_sub(busy)
    }

    /// Returns the index of the routine that a processor executed at `at_ns`.
    pub(super) fn at(&self, cpu: u16, at_ns: u64) -> Option<u32> {
        let list = self.by_cpu.get(usize::from(cpu))?;
        let end = |n: &u32| self.routines[*n as usize].end_ns;
        let first = list.partition_point(|n| end(n) < at_ns);
        // A routine that interrupted another one ends first.
        let mut near = list[first..].iter().take(16);
        near.find(|n| self.routines[**n as usize].start_ns <= at_ns)
            .copied()
    }

    /// Returns true if a routine can be the kernel's routine that ends sleeps and waits with a time-out.
    pub(super) fn is_timer(&self, routine: u32, kernel: &BTreeSet<u32>) -> bool {
        let routine = &self.routines[routine as usize];
        let is_kernel = routine.image_row.is_some_and(|row| kernel.contains(&row));
        routine.is_timer || is_kernel
    }

    /// Makes a DPC, and the service routine that queued it, depend on a disk request. Returns the index of the
    /// interrupt in the workload and its start.
    pub(super) fn close(&mut self, dpc: u32) -> Option<(u32, u64)> {
        let routine = self.routines[dpc as usize];
        if routine.is_closed {
            return None;
        }
        let list = &self.by_cpu[usize::from(routine.cpu)];
        let at = list.partition_point(|n| self.routines[*n as usize].end_ns <= routine.start_ns);
        let isr = at.checked_sub(1).map(|last| list[last]).filter(|isr| {
            let isr = &self.routines[*isr as usize];
            matches!(isr.kind, PartKind::Isr(_))
                && !isr.is_closed
                && routine.start_ns - isr.end_ns <= ISR_TO_DPC_NS
        });
        let chain: Vec<u32> = isr.into_iter().chain([dpc]).collect();
        for n in &chain {
            self.routines[*n as usize].is_closed = true;
        }
        let start = self.routines[chain[0] as usize].start_ns;
        self.closed.push(chain);
        Some((self.closed.len() as u32 - 1, start))
    }

    /// Returns the interrupts of the workload: first those of disk requests, then the others by start.
    pub(super) fn into_workload(self, waits: &Waits, names: &Identities) -> Vec<Interrupt> {
        let mut modules: FxHashMap<u32, Arc<str>> = FxHashMap::default();
        let mut parts = |n: u32| {
            let routine = &self.routines[n as usize];
            let module = routine.image_row.and_then(|row| {
                let name = names.module(Some(row))?;
                Some(Arc::clone(
                    modules.entry(row).or_insert_with(|| Arc::from(name)),
                ))
            });
            parts_of(routine, waits.in_routines.get(&n), module)
        };
        let mut interrupts: Vec<Interrupt> = Vec::new();
        for chain in &self.closed {
            interrupts.push(Interrupt {
                at_ns: None,
                cpu: self.routines[chain[0] as usize].cpu,
                parts: chain.iter().flat_map(|n| parts(*n)).collect(),
            });
        }
        let closed = interrupts.len();
        for (n, routine) in self.routines.iter().enumerate() {
            if !routine.is_closed {
                interrupts.push(Interrupt {
                    at_ns: Some(routine.start_ns),
                    cpu: routine.cpu,
                    parts: parts(n as u32),
                });
            }
        }
        for (at_ns, cpu, wake) in &waits.outside {
            interrupts.push(Interrupt {
                at_ns: Some(*at_ns),
                cpu: *cpu,
                parts: vec![Part {
                    wakes: vec![*wake],
                    ..Part::default()
                }],
            });
        }
        interrupts[closed..].sort_by_key(|interrupt| interrupt.at_ns);
        interrupts
    }
}

/// Returns the parts of a routine, which wakes threads at the given times.
fn parts_of(
    routine: &Routine,
    wakes: Option<&Vec<(u64, Wake)>>,
    module: Option<Arc<str>>,
) -> Vec<Part> {
    let part = |ns, wakes| Part {
        kind: routine.kind,
        module: module.clone(),
        ns,
        wakes,
    };
    let own_ns = routine.own_ns.max(1);
    let length = (routine.end_ns - routine.start_ns).max(1);
    // The time of a wake within the routine, in proportion to the routine's own time.
    let place = |at_ns: u64| {
        let passed = u128::from(at_ns.saturating_sub(routine.start_ns).min(length));
        (passed * u128::from(own_ns) / u128::from(length)) as u64
    };
    let mut parts: Vec<Part> = Vec::new();
    let mut done = 0;
    for (at_ns, wake) in wakes.into_iter().flatten() {
        let at = place(*at_ns).max(1);
        match parts.last_mut() {
            Some(last) if at <= done => last.wakes.push(*wake),
            _ => {
                parts.push(part(at - done, vec![*wake]));
                done = at;
            }
        }
    }
    if done < own_ns {
        parts.push(part(own_ns - done, Vec::new()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_routines_is_subtracted() {
        let interrupts = Interrupts {
            busy: vec![vec![(10, 50, 0), (60, 70, 40)]],
            ..Interrupts::default()
        };
        for (from_ns, to_ns, expected) in [
            (0, 100, 50),
            (20, 30, 0),
            (30, 65, 10),
            (50, 60, 10),
            (65, 12, 0),
        ] {
            assert_eq!(interrupts.net_ns(0, from_ns, to_ns), expected);
        }
        assert_eq!(interrupts.net_ns(1, 20, 30), 10);
    }
}
