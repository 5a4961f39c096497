//! CPU time of DPCs and interrupt service routines.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{InterruptsView, SamplesView, StoreError, Table};

use crate::Reader;
use crate::ranges::{overlap, union};
use crate::thresholds::{
    CAUSE_PERCENT, DPC_LIMIT_NS, FAR_OVER_TIMES, ISR_LIMIT_NS, LOCKED_PERCENT, LOCKED_SAMPLES,
    is_share,
};

/// CPU time of DPCs and service routines in the whole trace.
#[derive(Clone, Debug, Default)]
pub struct InterruptUse {
    /// Sums by routine, the routine with most CPU time first.
    pub routines: Vec<RoutineUse>,
    /// Time ranges in which a CPU was locked: for a second or longer, the CPU ran almost only DPCs and
    /// service routines.
    pub locked: Vec<LockedRange>,
    /// Time ranges in which a CPU was probably locked, by samples. Empty if DPCs are recorded.
    pub sampled: Vec<SampledLock>,
}

/// Time range during which a CPU was probably locked: most of its samples are inside DPCs and service routines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledLock {
    /// Number of the CPU.
    pub cpu: u16,
    /// Time range, in whole seconds.
    pub during: Range<i64>,
    /// Number of samples inside DPCs and service routines.
    pub inside: i64,
    /// Number of all samples of the CPU in this time.
    pub samples: i64,
}

/// CPU time of a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutineUse {
    /// Kind of the routine, as in the table `interrupts`.
    pub kind: &'static str,
    /// Row of the routine's module in the table `images`.
    pub image_row: Option<u32>,
    /// Address of the routine.
    pub routine: u64,
    /// Number of runs of the routine.
    pub times: i64,
    /// Total time without nested interrupts, in nanoseconds; `None` if the time is unknown for all runs.
    pub exclusive_ns: Option<i64>,
    /// Number of runs whose time is known.
    pub timed: u64,
    /// Length of the longest run including nested interrupts, in nanoseconds.
    pub longest_ns: Option<i64>,
    /// Number of runs that took longer than [`limit_ns`], without nested interrupts.
    pub over_limit: i64,
    /// Number of runs that took at least ten times the limit, without nested interrupts.
    pub far_over: i64,
    /// End of the longest run, in nanoseconds since the trace's start.
    pub longest_end_ns: i64,
    /// CPU of the longest run.
    pub longest_cpu: u16,
}

/// Time range during which a CPU ran almost only DPCs and service routines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRange {
    /// Number of the CPU.
    pub cpu: u16,
    /// Time range, with a precision of a tenth of a second.
    pub during: Range<i64>,
}

/// Kinds of routines, as in the table `interrupts`.
const KINDS: [&str; 7] = [
    "dpc",
    "threaded_dpc",
    "timer_dpc",
    "io_timer",
    "isr",
    "msi",
    "passive_isr",
];

/// Returns the plural name of the routines of a kind: `DPCs` or `ISRs`.
pub(crate) fn kind_name(kind: &str) -> &'static str {
    match kind {
        "isr" | "msi" | "passive_isr" => "ISRs",
        _ => "DPCs",
    }
}

/// Returns the CPU time in nanoseconds that Microsoft's guidance allows for one run of a routine.
/// Returns `None` for routines that run in threads and block no other thread.
pub fn limit_ns(kind: &str) -> Option<i64> {
    match kind {
        "dpc" | "timer_dpc" | "io_timer" => Some(DPC_LIMIT_NS),
        "isr" | "msi" => Some(ISR_LIMIT_NS),
        _ => None,
    }
}

/// Returns true if a row of the table `interrupts` is a routine that blocks the thread that runs on its CPU. Other
/// routines run in threads, so their rows include times in which their threads were preempted.
pub(crate) fn blocks_thread(view: &InterruptsView<'_>, row: usize) -> bool {
    view.kind.get(row).is_some_and(is_blocking)
}

/// Returns true if a row of the table `samples` is inside a DPC or service routine. The columns must include `in_dpc` and
/// `in_isr`.
pub(crate) fn is_inside_routine(samples: &SamplesView<'_>, row: usize) -> bool {
    samples.in_dpc.get(row) == Some(true) || samples.in_isr.get(row) == Some(true)
}

/// Returns the kinds of routines for which [`blocks_thread`] returns true.
pub(crate) fn blocking_kinds() -> Vec<&'static str> {
    KINDS.into_iter().filter(|kind| is_blocking(kind)).collect()
}

fn is_blocking(kind: &str) -> bool {
    limit_ns(kind).is_some()
}

/// Columns that [`Routines`] needs.
pub(crate) const COLUMNS: [&str; 8] = [
    "start_ns",
    "end_ns",
    "cpu",
    "kind",
    "routine",
    "duration_ns",
    "exclusive_ns",
    "image_row",
];

/// Sums of CPU time by routine.
#[derive(Default)]
pub(crate) struct Routines(FxHashMap<(usize, Option<u32>, u64), RoutineUse>);

impl Routines {
    pub(crate) fn add(&mut self, view: &InterruptsView<'_>, row: usize) {
        let kind = view.kind.get(row);
        let Some(kind) = kind.and_then(|kind| KINDS.iter().position(|known| *known == kind)) else {
            return;
        };
        let (image_row, routine) = (view.image_row.get(row), view.routine[row]);
        let used = self
            .0
            .entry((kind, image_row, routine))
            .or_insert(RoutineUse {
                kind: KINDS[kind],
                image_row,
                routine,
                times: 0,
                exclusive_ns: None,
                timed: 0,
                longest_ns: None,
                over_limit: 0,
                far_over: 0,
                longest_end_ns: 0,
                longest_cpu: 0,
            });
        used.times += 1;
        if let Some(ns) = view.exclusive_ns.get(row) {
            let sum = used.exclusive_ns.get_or_insert(0);
            *sum = sum.saturating_add(ns);
            used.timed += 1;
            if let Some(limit_ns) = limit_ns(KINDS[kind]) {
                used.over_limit += i64::from(ns > limit_ns);
                used.far_over += i64::from(ns >= limit_ns.saturating_mul(FAR_OVER_TIMES));
            }
        }
        let duration_ns = view.duration_ns.get(row);
        if duration_ns > used.longest_ns {
            used.longest_ns = duration_ns;
            used.longest_end_ns = view.end_ns[row];
            used.longest_cpu = view.cpu[row];
        }
    }

    /// Returns the sums, most CPU time first.
    pub(crate) fn finish(self) -> Vec<RoutineUse> {
        let mut routines: Vec<RoutineUse> = self.0.into_values().collect();
        routines.sort_unstable_by_key(|used| {
            let rest = (used.times, used.routine, used.kind, used.image_row);
            std::cmp::Reverse((used.exclusive_ns, rest))
        });
        routines
    }
}

impl InterruptUse {
    pub(super) const TABLE: Table = Table::Interrupts;

    pub(super) fn read(reader: &Reader<'_>) -> Result<InterruptUse, StoreError> {
        let table = reader.table(InterruptUse::TABLE)?;
        let mut routines = Routines::default();
        let mut cpus: Vec<Tenths> = Vec::new();
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                routines.add(&view, row);
                let cpu = usize::from(view.cpu[row]);
                if cpu >= cpus.len() {
                    cpus.resize_with(cpu + 1, Tenths::default);
                }
                if blocks_thread(&view, row) {
                    let exclusive_ns = view.exclusive_ns.get(row).unwrap_or(0);
                    cpus[cpu].add(view.start_ns.get(row), view.end_ns[row], exclusive_ns);
                }
            }
        }
        let mut locked: Vec<LockedRange> = (0..)
            .zip(cpus)
            .flat_map(|(cpu, tenths)| {
                let stretches = tenths.locked().into_iter();
                stretches.map(move |during| LockedRange { cpu, during })
            })
            .collect();
        locked.sort_by_key(|locked| (locked.during.start, locked.cpu));
        let routines = routines.finish();
        let mut result = InterruptUse {
            routines,
            locked,
            sampled: Vec::new(),
        };
        if !result.has("DPCs") {
            result.sampled = sampled_locks(reader)?;
        }
        Ok(result)
    }

    /// Returns true if the trace records routines of this kind, a name from [`kind_name`].
    fn has(&self, kind: &str) -> bool {
        (self.routines.iter()).any(|used| kind_name(used.kind) == kind)
    }

    /// Returns the names of the routines that the trace does not record, such as `DPCs and ISRs`. Returns `None` if it
    /// records both kinds.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match (self.has("DPCs"), self.has("ISRs")) {
            (true, true) => None,
            (false, true) => Some("DPCs"),
            (true, false) => Some("ISRs"),
            (false, false) => Some("DPCs and ISRs"),
        }
    }

    /// Returns true if samples show that the CPU was probably locked for at least half of the range.
    pub(crate) fn is_locked_by_samples(&self, cpu: u16, range: &Range<i64>) -> bool {
        let of_cpu = self.sampled.iter().filter(|locked| locked.cpu == cpu);
        let both = of_cpu.filter_map(|locked| overlap(&locked.during, range));
        let locked_ns: i64 = both.map(|both| both.end - both.start).sum();
        locked_ns > 0 && is_share(locked_ns, range.end - range.start, CAUSE_PERCENT)
    }
}

/// Finds the seconds in which a CPU has at least `LOCKED_PERCENT` of its samples inside DPCs and service routines.
/// Consecutive seconds become one time range.
fn sampled_locks(reader: &Reader<'_>) -> Result<Vec<SampledLock>, StoreError> {
    const SECOND_NS: i64 = 1_000_000_000;
    let table = reader.table(Table::Samples)?;
    let columns = ["time_ns", "cpu", "in_dpc", "in_isr"];
    let mut seconds: FxHashMap<(u16, i64), (i64, i64)> = FxHashMap::default();
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let Some(cpu) = view.cpu.get(row) else {
                continue;
            };
            let is_inside = is_inside_routine(&view, row);
            let second = view.time_ns[row].div_euclid(SECOND_NS);
            let (inside, samples) = seconds.entry((cpu, second)).or_default();
            *inside += i64::from(is_inside);
            *samples += 1;
        }
    }
    let full = seconds.into_iter().filter(|(_, (inside, samples))| {
        *samples >= LOCKED_SAMPLES && is_share(*inside, *samples, LOCKED_PERCENT)
    });
    let mut full: Vec<_> = full.collect();
    full.sort_unstable();
    let mut locks: Vec<SampledLock> = Vec::new();
    for ((cpu, second), (inside, samples)) in full {
        let during = second.saturating_mul(SECOND_NS)..(second + 1).saturating_mul(SECOND_NS);
        match locks.last_mut() {
            Some(last) if last.cpu == cpu && last.during.end == during.start => {
                last.during.end = during.end;
                last.inside += inside;
                last.samples += samples;
            }
            _ => locks.push(SampledLock {
                cpu,
                during,
                inside,
                samples,
            }),
        }
    }
    Ok(locks)
}

/// Nanoseconds of a tenth of a second.
const TENTH_NS: i64 = 100_000_000;

/// Minimum time in routines within one second, in nanoseconds. A CPU with at least this time counts as locked.
const LOCKED_NS: i64 = 10 * TENTH_NS / 100 * LOCKED_PERCENT;

/// CPU time of routines on one CPU, divided into tenths of a second.
#[derive(Default)]
struct Tenths {
    /// For each tenth of a second in which routines ended: its number, and the CPU time of these routines in
    /// nanoseconds.
    used: Vec<(i64, i64)>,
    /// Time ranges of single routines that are long enough to lock the CPU.
    long: Vec<Range<i64>>,
}

impl Tenths {
    fn add(&mut self, start_ns: Option<i64>, end_ns: i64, exclusive_ns: i64) {
        let tenth = end_ns.div_euclid(TENTH_NS);
        match self.used.last_mut() {
            Some((last, ns)) if *last == tenth => *ns = ns.saturating_add(exclusive_ns),
            _ => self.used.push((tenth, exclusive_ns)),
        }
        if let Some(start_ns) = start_ns.filter(|_| exclusive_ns >= LOCKED_NS) {
            self.long.push(start_ns.max(0)..end_ns);
        }
    }

    /// Returns the time ranges in which the CPU was locked: in each second of a range, routines took at least
    /// `LOCKED_NS`. A tenth of a second at the start or end of a range is left out if routines took less than half of
    /// this tenth.
    fn locked(self) -> Vec<Range<i64>> {
        let used = self.used;
        let (mut first, mut sum) = (0, 0_i64);
        let mut places: Vec<Range<usize>> = Vec::new();
        for (place, (tenth, ns)) in used.iter().enumerate() {
            sum = sum.saturating_add(*ns);
            while used[first].0 <= tenth.saturating_sub(10) && first < place {
                sum = sum.saturating_sub(used[first].1);
                first += 1;
            }
            if sum < LOCKED_NS {
                continue;
            }
            match places.last_mut() {
                Some(last) if first < last.end => last.end = place + 1,
                _ => places.push(first..place + 1),
            }
        }
        let is_full = |place: &usize| used[*place].1 >= TENTH_NS / 2;
        let mut stretches: Vec<Range<i64>> = self.long;
        for mut places in places {
            let (Some(from), Some(to)) = (places.clone().find(is_full), places.rfind(is_full))
            else {
                continue;
            };
            let begin = used[from].0.saturating_mul(TENTH_NS);
            stretches.push(begin..used[to].0.saturating_add(1).saturating_mul(TENTH_NS));
        }
        union(stretches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Adds routines of 1 ms, one every `every_ms` milliseconds.
    fn flood(tenths: &mut Tenths, from_ms: i64, to_ms: i64, every_ms: usize) {
        for ms in (from_ms..to_ms).step_by(every_ms) {
            tenths.add(Some(ms * MS), (ms + 1) * MS - 1, MS);
        }
    }

    #[test]
    fn a_flood_in_a_long_trace_is_found_with_its_window() {
        let mut tenths = Tenths::default();
        flood(&mut tenths, 0, 20_000, 4);
        flood(&mut tenths, 20_000, 30_000, 1);
        flood(&mut tenths, 30_000, 60_000, 4);
        let locked = tenths.locked();
        assert_eq!(locked.len(), 1);
        assert_eq!(locked[0], 20_000 * MS..30_000 * MS);
    }

    #[test]
    fn busy_for_less_than_a_second_is_not_locked() {
        let mut tenths = Tenths::default();
        flood(&mut tenths, 5_000, 5_700, 1);
        flood(&mut tenths, 9_000, 9_700, 1);
        assert_eq!(tenths.locked(), []);
    }

    #[test]
    fn one_endless_routine_locks() {
        let mut tenths = Tenths::default();
        tenths.add(Some(2_000 * MS), 7_000 * MS, 5_000 * MS);
        let locked = tenths.locked();
        assert_eq!(locked.len(), 1);
        assert_eq!(locked[0].start, 2_000 * MS);
        assert!(locked[0].end >= 7_000 * MS, "{locked:?}");
    }

    #[test]
    fn senseless_times_are_survived() {
        let mut tenths = Tenths::default();
        for end_ns in [i64::MIN, -1, 0, i64::MAX] {
            tenths.add(Some(i64::MIN), end_ns, i64::MAX);
        }
        tenths.locked();
    }
}
