//! Do drivers wait busily?

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{ImageTracker, SamplesView, StoreError, Table};

use crate::ranges::union;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, duration,
    grouped,
};

/// Drivers that keep a CPU while they wait for their devices.
pub(crate) struct BusyWaiting;

static ABOUT: About = About {
    id: "busy-waiting",
    question: "Did drivers keep CPUs while they waited for their devices?",
    tables: &[Table::Samples, Table::Stacks],
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com; i8042prt.sys, 700 ms)",
            url: "",
        },
        Source {
            title: "Microsoft: KeStallExecutionProcessor (stalls typically of less than 50 µs)",
            url: "https://learn.microsoft.com/en-us/windows-hardware/drivers/ddi/wdm/nf-wdm-kestallexecutionprocessor",
        },
    ],
};

/// Whoever waits busily for as long as a frame or a buffer of sound holds others up.
const NOTED_NS: i64 = 10_000_000;

/// What people notice.
const FELT_NS: i64 = 100_000_000;

/// Without symbols: so many samples one after the other in one small place look like a loop.
const LOOP_SAMPLES: i64 = 20;

/// How far apart addresses of such a loop are at most, in bytes.
const LOOP_BYTES: u64 = 128;

/// How many frames the driver is above that loop at most.
const LOOP_FRAMES: usize = 3;

/// Stacks of one driver that are looked at, those of most samples.
const STACKS: usize = 500;

/// Drivers that are told of.
const TOLD: usize = 8;

impl Theory for BusyWaiting {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.has(Table::Samples)? {
            let missing = "the trace has no samples of what CPUs executed".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let kernel = Kernel::read(case)?;
        if !kernel.has_stacks {
            let missing = "samples have no stacks: who called what is not known".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let (mut spins, has_symbols) = kernel.spins(case)?;
        measure(case, &mut spins, kernel.interval_ns)?;
        spins.retain(|spin| spin.longest_ns() >= NOTED_NS);
        spins.sort_by_key(|spin| (Reverse(spin.ns), spin.driver));
        if spins.is_empty() {
            let because = match has_symbols {
                true => "no driver stalled a CPU for 10 ms or longer",
                false => {
                    "no thread of the system stayed in one small loop of the kernel for long \
                     (without symbols of the kernel, stalls are not known by name)"
                }
            };
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let found = spins.iter().take(TOLD);
        let found = found.map(|spin| found_spin(case, spin, kernel.interval_ns));
        Ok(Outcome::For(found.collect()))
    }
}

/// A driver that spins, and how that is known.
struct Spin {
    /// Row of its module in `images`.
    driver: u32,
    /// Named after the function that stalls, or else only likely.
    is_named: bool,
    /// The addresses that it spins at.
    places: Vec<(u64, u64)>,
    /// The stacks from which it is called.
    stacks: Vec<u32>,
    samples: i64,
    ns: i64,
    threads: FxHashMap<(Option<u32>, u32), Spun>,
    /// Unbroken stretches, the longest first.
    bursts: Vec<Burst>,
}

/// Samples of a thread on a CPU without a break.
#[derive(Clone, Debug)]
struct Burst {
    cpu: u16,
    thread_id: u32,
    samples: i64,
    /// The time that they stand for.
    ns: i64,
    /// From the first to the last of them.
    at: Range<i64>,
}

/// What a thread did of it.
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

    /// Which rows of `samples` are of it.
    fn condition(&self) -> String {
        let places = self.places.iter().map(|(from, to)| match from == to {
            true => format!("address = {from}"),
            false => format!("address BETWEEN {from} AND {to}"),
        });
        let stacks = self.stacks.iter().map(u32::to_string);
        format!(
            "({}) AND stack_id IN ({})",
            places.collect::<Vec<_>>().join(" OR "),
            stacks.collect::<Vec<_>>().join(", ")
        )
    }

    fn is_at(&self, address: u64) -> bool {
        self.places
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&address))
    }
}

/// Samples within the kernel itself.
struct Kernel {
    /// How often samples are taken.
    interval_ns: i64,
    has_stacks: bool,
    /// By row in `images`: whether it is the kernel or the HAL.
    is_kernel: Vec<bool>,
    /// Samples by address and stack.
    samples: FxHashMap<(u32, u64, u32), i64>,
    loops: Vec<Loop>,
}

/// Samples one after the other of one thread in one small place.
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
        let is_kernel = images.map(|row| {
            let module = case.module_label(Some(row)).unwrap_or("");
            ["ntoskrnl.exe", "ntkrnlmp.exe", "ntkrnlpa.exe", "hal.dll"]
                .iter()
                .any(|kernel| kernel.eq_ignore_ascii_case(module))
        });
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
                let cpu = usize::from(view.cpu[row]);
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

    /// The drivers that spin, by the function's name or, where functions have none, by loops; and
    /// whether the kernel's functions have names.
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

    /// The images whose functions have names, and samples within those that stall: address, stack,
    /// how many.
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

/// The longest gap between samples of one stretch.
fn gap_ns(interval_ns: i64) -> i64 {
    interval_ns.saturating_mul(5) / 2
}

/// The most that a sample counts: one that comes after a gap (the machine slept, samples were lost)
/// stands for no more than two.
fn cap_ns(interval_ns: i64) -> i64 {
    interval_ns.saturating_mul(2)
}

/// Adds up the samples of each.
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
                let (time_ns, cpu) = (view.time_ns[row], view.cpu[row]);
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
    let driver = case.module_label(Some(spin.driver)).unwrap_or("a driver");
    let longest = spin.bursts[0].clone();
    let (cpu, thread_id, longest_ns) = (longest.cpu, longest.thread_id, longest.ns);
    let severity = match spin.is_named && longest_ns >= FELT_NS {
        true => Severity::Problem,
        false => Severity::Warning,
    };
    let what = match spin.is_named {
        true => format!("{driver} waited busily for {} in all", duration(spin.ns)),
        false => format!(
            "{driver} likely waited busily, in one small loop of the kernel, for {} in all",
            duration(spin.ns)
        ),
    };
    let sentence = format!(
        "{what} ({} samples); at the longest, thread {thread_id} kept CPU {cpu} for {} from {} on.{}",
        grouped(spin.samples.unsigned_abs()),
        duration(longest_ns),
        duration(longest.at.start),
        match spin.is_named {
            true =>
                " Microsoft's guidance for KeStallExecutionProcessor is less than 50 µs at a time.",
            false => "",
        }
    );
    // The time that samples stand for ends with each.
    let long = spin.bursts.iter().filter(|burst| burst.ns >= NOTED_NS);
    let long = union(
        long.map(|burst| burst.at.end - burst.ns..burst.at.end)
            .collect(),
    );
    let lasted_ns: i64 = long.iter().map(|at| at.end - at.start).sum();
    let lost_ns = lasted_ns.min(spin.ns);
    let during = match (long.first(), long.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => longest.at,
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .costing(
            lost_ns,
            format!("during which a CPU did nothing but wait for a device, in {driver}"),
        )
        .during(during)
        .with(by_thread(case, spin, interval_ns))
        .with(by_burst(spin, interval_ns))
        .remedy(format!(
            "Update {driver} or its device's firmware: a driver that has to wait for so long should \
             use a timer or a wait, which leave the CPU to others. If the device is not needed, \
             disable it."
        ))
        .doubt("Times are counted from samples, and so are only as fine as these are apart");
    if !spin.is_named {
        finding = finding.doubt(
            "The kernel's symbols are missing: a long copy or a contended spin lock looks the same; \
             give --symbols to know the function",
        );
    }
    finding
}

fn by_thread(case: &Case<'_>, spin: &Spin, interval_ns: i64) -> Evidence {
    const SHOWN: usize = 8;
    let cap_ns = cap_ns(interval_ns);
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("samples", "samples", Unit::Count),
        Column::new("waited_ns", "busy", Unit::Duration),
        Column::new("first_ns", "first", Unit::Moment),
        Column::new("last_ns", "last", Unit::Moment),
        Column::new("all_samples", "samples of all", Unit::Count),
        Column::new("all_ns", "busy of all", Unit::Duration),
    ];
    let waited = format!("sum(CASE WHEN weight_ns > {cap_ns} THEN {cap_ns} ELSE weight_ns END)");
    let query = format!(
        "SELECT process(process_row) AS process, thread_id, count(*) AS samples, {waited} AS \
         waited_ns, min(time_ns) AS first_ns, max(time_ns) AS last_ns, sum(count(*)) OVER () AS \
         all_samples, sum({waited}) OVER () AS all_ns FROM samples WHERE {} GROUP BY process_row, \
         thread_id ORDER BY waited_ns DESC, thread_id, process_row LIMIT {SHOWN}",
        spin.condition()
    );
    let driver = case.module_label(Some(spin.driver)).unwrap_or("the driver");
    let title = format!("Samples in which {driver} waited, by thread");
    let mut threads: Vec<_> = spin.threads.iter().collect();
    threads.sort_unstable_by_key(|((row, id), spun)| (Reverse(spun.ns), *id, *row));
    let mut evidence = Evidence::new(title, query, &columns);
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
        Column::new("lasted_ns", "without a break", Unit::Duration),
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
        spin.condition()
    );
    let mut evidence = Evidence::new("The longest stretches", query, &columns);
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
