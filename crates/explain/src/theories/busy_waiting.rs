//! Theory: drivers kept CPUs busy while they waited for their devices.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Expression, Order, Selection};
use tables::{ImageTracker, SamplesView, StoreError, Table};

use crate::ranges::union;
use crate::thresholds::{LOOP_BYTES, LOOP_FRAMES, LOOP_SAMPLES, NOTICED_NS, STALL_NS};
use crate::{
    About, Case, Column, Evidence, Finding, Name, Outcome, Severity, Source, Subject, Theory, Unit,
    counted, duration,
};

/// Theory about drivers that wait for their devices in a loop.
pub(crate) struct BusyWaiting;

static ABOUT: About = About {
    id: "busy-waiting",
    name: "drivers that spin",
    question: "Did drivers keep CPUs busy while they waited for their devices?",
    tables: &[Table::Samples, Table::Stacks],
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com; i8042prt.sys, 700 ms)",
            url: None,
        },
        Source {
            title: "Microsoft: KeStallExecutionProcessor (stalls typically of less than 50 µs)",
            url: Some(
                "https://learn.microsoft.com/en-us/windows-hardware/drivers/ddi/wdm/nf-wdm-kestallexecutionprocessor",
            ),
        },
    ],
};

/// Maximum number of call stacks examined for a driver. The stacks with most samples are examined.
const STACKS: usize = 500;

/// Maximum number of drivers reported.
const FINDINGS: usize = 8;

impl Theory for BusyWaiting {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.has(Table::Samples)? {
            let missing = "the trace has no CPU samples".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let kernel = Kernel::read(case)?;
        if !kernel.has_stacks {
            let missing = "samples have no stacks, so callers are unknown".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let (mut spins, has_symbols) = kernel.spins(case)?;
        measure(case, &mut spins, kernel.interval_ns)?;
        spins.retain(|spin| spin.longest_ns() >= STALL_NS);
        spins.sort_by_key(|spin| (Reverse(spin.ns), spin.driver));
        if spins.is_empty() {
            let because = if has_symbols {
                "no driver stalled a CPU for 10 ms or longer"
            } else {
                "no system thread stayed in one short loop of the kernel for 10 ms or longer; \
                     the names of wait functions were not checked, because kernel symbols are \
                     missing"
            };
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let findings = spins.iter().take(FINDINGS);
        let findings = findings.map(|spin| found_spin(case, spin, kernel.interval_ns));
        Ok(Outcome::For(findings.collect()))
    }
}

/// Driver that waits in a loop, and the samples taken in the loop.
struct Spin {
    /// Row of the driver's module in the table `images`.
    driver: u32,
    /// True if the name of the kernel function shows that it stalls the CPU. False if the function
    /// has no name, so that a wait is only likely.
    is_named: bool,
    /// Address ranges of the code of the loop.
    places: Vec<(u64, u64)>,
    /// Ids of the call stacks from which the driver calls the loop.
    stacks: Vec<u32>,
    samples: i64,
    ns: i64,
    threads: FxHashMap<(Option<u32>, u32), Spun>,
    /// Uninterrupted waits, the longest first.
    bursts: Vec<Burst>,
}

/// Uninterrupted wait: consecutive samples of a thread on a CPU.
#[derive(Clone, Debug)]
struct Burst {
    cpu: u16,
    thread_id: u32,
    samples: i64,
    /// Time that the samples represent, in nanoseconds.
    ns: i64,
    /// Time range from the first to the last sample.
    at: Range<i64>,
}

/// Samples of one thread in the loop.
#[derive(Clone, Copy, Debug, Default)]
struct Spun {
    samples: i64,
    ns: i64,
    first_ns: i64,
    last_ns: i64,
}

impl Spin {
    fn new(driver: u32, is_named: bool) -> Spin {
        Spin {
            driver,
            is_named,
            places: Vec::new(),
            stacks: Vec::new(),
            samples: 0,
            ns: 0,
            threads: FxHashMap::default(),
            bursts: Vec::new(),
        }
    }

    fn longest_ns(&self) -> i64 {
        let lasted = self.bursts.iter().map(|burst| burst.ns);
        lasted.max().unwrap_or(0)
    }

    /// Returns a selection of the samples taken while the driver waited.
    fn samples(&self) -> Selection {
        let places = self.places.iter().map(|(from, to)| *from..=*to);
        Selection::new(Table::Samples)
            .filter(Condition::AddressIn("address", places.collect()))
            .filter(Condition::is_one_of("stack_id", &self.stacks))
    }

    fn is_at(&self, address: u64) -> bool {
        self.places
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&address))
    }
}

/// Samples in code of the kernel, and the loops that these samples show.
struct Kernel {
    /// Usual time between samples, in nanoseconds.
    interval_ns: i64,
    has_stacks: bool,
    /// Flag for each row in `images`: true for the kernel and the hardware abstraction layer (HAL).
    is_kernel: Vec<bool>,
    /// Number of samples by image row, address and stack id.
    samples: FxHashMap<(u32, u64, u32), i64>,
    loops: Vec<Loop>,
}

/// Consecutive samples of one thread within a small range of addresses.
#[derive(Clone, Debug)]
struct Loop {
    thread_id: u32,
    image_row: u32,
    base: u64,
    from: u64,
    to: u64,
    samples: i64,
    stacks: Vec<u32>,
}

const COLUMNS: [&str; 10] = [
    "time_ns",
    "cpu",
    "address",
    "thread_id",
    "process_id",
    "process_row",
    "image_row",
    "weight_ns",
    "stack_id",
    "in_dpc",
];

impl Kernel {
    fn read(case: &Case<'_>) -> Result<Kernel, StoreError> {
        let images = 0..case.names.images.base_address.len() as u32;
        let is_kernel = images.map(|row| case.is_kernel_or_hal(row));
        let mut kernel = Kernel {
            interval_ns: 0,
            has_stacks: false,
            is_kernel: is_kernel.collect(),
            samples: FxHashMap::default(),
            loops: Vec::new(),
        };
        let mut weights: Vec<i64> = Vec::new();
        let mut open: Vec<Option<Loop>> = Vec::new();
        let table = case.table(Table::Samples)?;
        for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                if weights.len() < 10_000 {
                    weights.extend(view.weight_ns.get(row));
                }
                let Some(cpu) = view.cpu.get(row).map(usize::from) else {
                    continue;
                };
                if cpu >= open.len() {
                    open.resize(cpu + 1, None);
                }
                kernel.add(&view, row, &mut open[cpu]);
            }
        }
        open.into_iter()
            .flatten()
            .for_each(|done| kernel.close(done));
        if !weights.is_empty() {
            let middle = weights.len() / 2;
            kernel.interval_ns = *weights.select_nth_unstable(middle).1;
        }
        Ok(kernel)
    }

    fn add(&mut self, view: &SamplesView<'_>, row: usize, open: &mut Option<Loop>) {
        let (address, thread_id) = (view.address[row], view.thread_id[row]);
        let image_row = view.image_row.get(row);
        let image_row = image_row
            .filter(|row| self.is_kernel.get(*row as usize).copied().unwrap_or(false))
            .filter(|_| thread_id != 0 || view.in_dpc.get(row) == Some(true));
        let Some((image_row, stack_id)) = image_row.zip(view.stack_id.get(row)) else {
            open.take().into_iter().for_each(|done| self.close(done));
            return;
        };
        self.has_stacks = true;
        *self
            .samples
            .entry((image_row, address, stack_id))
            .or_default() += 1;
        if view.process_id.get(row) != Some(4) {
            open.take().into_iter().for_each(|done| self.close(done));
            return;
        }
        if let Some(open) = open.as_mut()
            && open.thread_id == thread_id
            && open.base.abs_diff(address) < LOOP_BYTES
        {
            open.from = open.from.min(address);
            open.to = open.to.max(address);
            open.samples += 1;
            if !open.stacks.contains(&stack_id) && open.stacks.len() < 16 {
                open.stacks.push(stack_id);
            }
            return;
        }
        let next = Loop {
            thread_id,
            image_row,
            base: address,
            from: address,
            to: address,
            samples: 1,
            stacks: vec![stack_id],
        };
        open.replace(next)
            .into_iter()
            .for_each(|done| self.close(done));
    }

    fn close(&mut self, done: Loop) {
        if done.samples >= LOOP_SAMPLES {
            self.loops.push(done);
        }
    }

    /// Returns the drivers that wait in a loop, and a flag that is true if functions of the kernel have names. If
    /// these functions have names, a driver is found by the name of the stalling function. Otherwise, a driver is
    /// found by its loop.
    fn spins(&self, case: &Case<'_>) -> Result<(Vec<Spin>, bool), StoreError> {
        let tracker = ImageTracker::new(&case.names.images);
        let (named, stalls) = self.stalls(case);
        let of_loops = self
            .loops
            .iter()
            .filter(|at| !named.contains(&at.image_row));
        let loops: Vec<&Loop> = of_loops.collect();
        let mut wanted: FxHashSet<u32> = FxHashSet::default();
        wanted.extend(stalls.iter().map(|(_, stack_id, _)| *stack_id));
        wanted.extend(loops.iter().flat_map(|at| &at.stacks));
        let stacks = case.stacks(&wanted)?;
        let driver = |stack_id: u32, frames: usize| {
            let addresses = stacks.get(&stack_id)?.iter().take(frames);
            let mut images = addresses.map_while(|address| tracker.lookup(0, *address, 0));
            let is_driver = |row: &usize| !self.is_kernel.get(*row).copied().unwrap_or(false);
            images
                .find(is_driver)
                .and_then(|row| u32::try_from(row).ok())
        };
        let mut spins: FxHashMap<(u32, bool), (Spin, FxHashMap<u32, i64>)> = FxHashMap::default();
        let mut add = |driver: u32, is_named: bool, place: (u64, u64), stack: u32, samples: i64| {
            let spin = spins.entry((driver, is_named));
            let (spin, stacks) =
                spin.or_insert_with(|| (Spin::new(driver, is_named), FxHashMap::default()));
            if !spin.places.contains(&place) {
                spin.places.push(place);
            }
            *stacks.entry(stack).or_default() += samples;
        };
        for (address, stack_id, samples) in stalls {
            if let Some(driver) = driver(stack_id, usize::MAX) {
                add(driver, true, (address, address), stack_id, samples);
            }
        }
        for at in loops {
            for stack_id in &at.stacks {
                if let Some(driver) = driver(*stack_id, LOOP_FRAMES) {
                    add(driver, false, (at.from, at.to), *stack_id, at.samples);
                }
            }
        }
        let spins = spins.into_values().map(|(mut spin, stacks)| {
            let mut stacks: Vec<(u32, i64)> = stacks.into_iter().collect();
            stacks.sort_unstable_by_key(|(id, samples)| (Reverse(*samples), *id));
            stacks.truncate(STACKS);
            spin.stacks = stacks.into_iter().map(|(id, _)| id).collect();
            spin.stacks.sort_unstable();
            spin.places.sort_unstable();
            spin
        });
        Ok((spins.collect(), !named.is_empty()))
    }

    /// Returns the images whose functions have names, and the samples in stalling functions. Each
    /// entry has the address, the stack id and the number of samples.
    fn stalls(&self, case: &Case<'_>) -> (FxHashSet<u32>, Vec<(u64, u32, i64)>) {
        let mut named: FxHashSet<u32> = FxHashSet::default();
        let mut nameless: FxHashSet<u32> = FxHashSet::default();
        let mut known: FxHashMap<(u32, u64), bool> = FxHashMap::default();
        let mut stalls = Vec::new();
        for ((image_row, address, stack_id), samples) in &self.samples {
            if nameless.contains(image_row) {
                continue;
            }
            let is_stall = *known.entry((*image_row, *address)).or_insert_with(|| {
                let name = case.symbol(Some(*image_row), *address);
                match name.split_once('!') {
                    Some((_, function)) => {
                        named.insert(*image_row);
                        function.contains("StallExecution")
                    }
                    None => {
                        nameless.insert(*image_row);
                        false
                    }
                }
            });
            if is_stall {
                stalls.push((*address, *stack_id, *samples));
            }
        }
        (named, stalls)
    }
}

/// Returns the longest time between two samples of the same wait, in nanoseconds.
fn gap_ns(interval_ns: i64) -> i64 {
    interval_ns.saturating_mul(5) / 2
}

/// Returns the maximum time that one sample represents, in nanoseconds: two sampling intervals. The time
/// since the previous sample can be longer, because the machine was suspended or samples were lost.
fn cap_ns(interval_ns: i64) -> i64 {
    interval_ns.saturating_mul(2)
}

/// Sums up the samples of each driver.
fn measure(case: &Case<'_>, spins: &mut [Spin], interval_ns: i64) -> Result<(), StoreError> {
    if spins.is_empty() {
        return Ok(());
    }
    let mut by_stack: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (place, spin) in spins.iter().enumerate() {
        for stack_id in &spin.stacks {
            by_stack.entry(*stack_id).or_default().push(place);
        }
    }
    let mut open: FxHashMap<(usize, u16, u32), Burst> = FxHashMap::default();
    let table = case.table(Table::Samples)?;
    for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let stack_id = view.stack_id.get(row);
            let Some(places) = stack_id.and_then(|stack_id| by_stack.get(&stack_id)) else {
                continue;
            };
            for place in places {
                let spin = &mut spins[*place];
                if !spin.is_at(view.address[row]) {
                    continue;
                }
                let Some(cpu) = view.cpu.get(row) else {
                    continue;
                };
                let time_ns = view.time_ns[row];
                let thread_id = view.thread_id[row];
                let ns = view
                    .weight_ns
                    .get(row)
                    .unwrap_or(0)
                    .min(cap_ns(interval_ns));
                spin.samples += 1;
                spin.ns = spin.ns.saturating_add(ns);
                let thread = spin
                    .threads
                    .entry((view.process_row.get(row), thread_id))
                    .or_insert(Spun {
                        first_ns: time_ns,
                        ..Spun::default()
                    });
                thread.samples += 1;
                thread.ns = thread.ns.saturating_add(ns);
                thread.last_ns = time_ns;
                let new = Burst {
                    cpu,
                    thread_id,
                    samples: 0,
                    ns: 0,
                    at: time_ns..time_ns,
                };
                let key = (*place, cpu, thread_id);
                let burst = open.entry(key).or_insert_with(|| new.clone());
                if time_ns.saturating_sub(burst.at.end) > gap_ns(interval_ns) {
                    spin.bursts.push(std::mem::replace(burst, new));
                }
                burst.samples += 1;
                burst.ns = burst.ns.saturating_add(ns);
                burst.at.end = time_ns;
            }
        }
    }
    for ((place, ..), burst) in open {
        spins[place].bursts.push(burst);
    }
    for spin in spins {
        spin.bursts
            .sort_unstable_by_key(|b| (Reverse(b.ns), b.at.start, b.cpu, b.thread_id));
    }
    Ok(())
}

fn found_spin(case: &Case<'_>, spin: &Spin, interval_ns: i64) -> Finding {
    let driver = driver(case, spin);
    let longest = spin.bursts[0].clone();
    let (cpu, thread_id, longest_ns) = (longest.cpu, longest.thread_id, longest.ns);
    let severity = if spin.is_named && longest_ns >= NOTICED_NS {
        Severity::Problem
    } else {
        Severity::Warning
    };
    let what = if spin.is_named {
        format!(
            "{driver} kept CPUs in a wait loop for {}",
            duration(spin.ns)
        )
    } else {
        format!(
            "{driver} probably kept CPUs in a wait loop of the kernel for {}",
            duration(spin.ns)
        )
    };
    let sentence = format!(
        "{what} ({}). The longest wait was on CPU {cpu} in thread {thread_id}: {} from \
         {}.{}",
        counted(spin.samples.unsigned_abs(), "sample", "samples"),
        duration(longest_ns),
        duration(longest.at.start),
        if spin.is_named {
            " Microsoft's guidance for KeStallExecutionProcessor is less than 50 µs at a time."
        } else {
            ""
        }
    );
    // A sample represents the time before it. The time range of a wait therefore ends at the last sample.
    let long = spin.bursts.iter().filter(|burst| burst.ns >= STALL_NS);
    let long = union(
        long.map(|burst| burst.at.end - burst.ns..burst.at.end)
            .collect(),
    );
    let lasted_ns: i64 = long.iter().map(|at| at.end - at.start).sum();
    let delay_ns = lasted_ns.min(spin.ns);
    let during = match (long.first(), long.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => longest.at,
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .delay(
            delay_ns,
            format!("of CPU time in which {driver} only waited for a device"),
        )
        .during(during)
        .subjects(subjects(case, spin, cpu))
        .with(by_thread(case, spin, interval_ns))
        .with(by_burst(spin, interval_ns))
        .remedy(format!(
            "Update {driver} or the firmware of its device: for such a long wait, a driver \
             should use a timer, so that others can use the CPU. If the device is not needed, disable it."
        ))
        .doubt("Times come from samples and are as precise as the sampling interval");
    if !spin.is_named {
        finding = finding.doubt(
            "Kernel symbols are missing: a long copy or a contended spin lock looks the same. Use \
             --symbols to see the function",
        );
    }
    finding
}

/// Returns the name of the driver, for a sentence.
fn driver(case: &Case<'_>, spin: &Spin) -> String {
    let name = case.module_label(Some(spin.driver));
    name.map_or("a driver".to_owned(), |name| Name(name).to_string())
}

/// Returns the subjects: the driver, its threads, and the CPU of the longest wait.
fn subjects(case: &Case<'_>, spin: &Spin, cpu: u16) -> Vec<Subject> {
    let name = case
        .module_label(Some(spin.driver))
        .unwrap_or("a driver")
        .to_owned();
    let mut threads: Vec<_> = spin.threads.keys().collect();
    threads.sort_unstable();
    let threads = threads
        .into_iter()
        .map(|(process_row, id)| Subject::Thread {
            id: *id,
            row: None,
            process_row: *process_row,
        });
    [Subject::Module { name }, Subject::Cpu { number: cpu }]
        .into_iter()
        .chain(threads)
        .collect()
}

fn by_thread(case: &Case<'_>, spin: &Spin, interval_ns: i64) -> Evidence {
    const SHOWN: usize = 8;
    let cap_ns = cap_ns(interval_ns);
    let driver = driver(case, spin);
    let title = format!("Samples in which {driver} waited, by thread");
    let mut threads: Vec<_> = spin.threads.iter().collect();
    threads.sort_unstable_by_key(|((row, id), spun)| (Reverse(spun.ns), *id, *row));
    let waited = Expression::SumCapped("weight_ns", cap_ns);
    let selection = spin
        .samples()
        .group_by(&["process_row", "thread_id"])
        .order(&[
            Order::descending("waited_ns"),
            Order::ascending("thread_id"),
            Order::ascending("process_row").unknown_first(),
        ])
        .limit(SHOWN);
    let process = Expression::Process("process_row");
    let all_samples = Expression::Count.over_all();
    let mut evidence = Evidence::from_selection(title, selection)
        .column("process", "process", Unit::None, process)
        .stored("thread_id", "thread", Unit::None)
        .column("samples", "samples", Unit::Count, Expression::Count)
        .column("waited_ns", "waited", Unit::Duration, waited.clone())
        .column(
            "first_ns",
            "first",
            Unit::Moment,
            Expression::Min("time_ns"),
        )
        .column("last_ns", "last", Unit::Moment, Expression::Max("time_ns"))
        .column("all_samples", "samples in total", Unit::Count, all_samples)
        .column(
            "all_ns",
            "waited in total",
            Unit::Duration,
            waited.over_all(),
        );
    for ((process_row, thread_id), spun) in threads.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(*process_row).map(Into::into),
            Some((*thread_id).into()),
            Some(spun.samples.into()),
            Some(spun.ns.into()),
            Some(spun.first_ns.into()),
            Some(spun.last_ns.into()),
            Some(spin.samples.into()),
            Some(spin.ns.into()),
        ]);
    }
    evidence
}

fn by_burst(spin: &Spin, interval_ns: i64) -> Evidence {
    const SHOWN: usize = 5;
    let columns = [
        Column::new("cpu", "CPU", Unit::None),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("samples", "samples", Unit::Count),
        Column::new("first_ns", "from", Unit::Moment),
        Column::new("last_ns", "to", Unit::Moment),
        Column::new("lasted_ns", "uninterrupted", Unit::Duration),
    ];
    let cap_ns = cap_ns(interval_ns);
    let query = format!(
        "SELECT cpu, thread_id, count(*) AS samples, min(time_ns) AS first_ns, max(time_ns) AS \
         last_ns, coalesce(sum(CASE WHEN weight_ns > {cap_ns} THEN {cap_ns} ELSE weight_ns END), 0) \
         AS lasted_ns FROM (SELECT cpu, thread_id, time_ns, weight_ns, sum(begins) OVER (PARTITION BY cpu, thread_id ORDER BY time_ns) AS stretch FROM (SELECT \
         cpu, thread_id, time_ns, weight_ns, CASE WHEN time_ns - lag(time_ns) OVER (PARTITION BY cpu, \
         thread_id ORDER BY time_ns) > {} THEN 1 ELSE 0 END AS begins FROM samples WHERE {})) GROUP \
         BY cpu, thread_id, stretch ORDER BY lasted_ns DESC, first_ns, cpu, thread_id LIMIT {SHOWN}",
        gap_ns(interval_ns),
        spin.samples().conditions().join(" AND ")
    );
    let mut evidence = Evidence::new("Longest waits", query, &columns);
    for burst in spin.bursts.iter().take(SHOWN) {
        evidence = evidence.row([
            Some(burst.cpu.into()),
            Some(burst.thread_id.into()),
            Some(burst.samples.into()),
            Some(burst.at.start.into()),
            Some(burst.at.end.into()),
            Some(burst.ns.into()),
        ]);
    }
    evidence
}
