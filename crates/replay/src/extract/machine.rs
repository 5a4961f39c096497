//! Facts about the recorded machine, its settings as far as they show in the recording, and changes of its state.

use std::collections::{BTreeMap, BTreeSet};

use explain::{QUANTUM_END, Reader, TIMERS_PER_PROCESS_FROM};
use rules::quantum::{TABLE_DOUBTED_FROM, Win32PrioritySeparation};
use sim::replay::{Change, Machine, Moment, Windows, Workload};
use tables::{
    CpusView, DamagesView, FocusView, ProcessFreezesView, SamplesView, SessionsView, StoreError,
    SystemConfig, SystemConfigView, Table, TimerRequestsView,
};

use super::rows::{After, Rows};
use super::sleeps::Sleeps;
use super::threads::Waits;
use crate::recorded_workload::{Note, Refusal};

/// Length of a unit of a quantum in nanoseconds: a third of the default clock tick.
const UNIT_NS: f64 = 15_625_000.0 / 3.0;
/// Minimum time without any event in which a machine with samples must have been suspended, in nanoseconds.
const SILENCE_NS: u64 = 500_000_000;
/// Maximum number of processors. Affinities of threads are masks of one processor group.
const MOST_CPUS: usize = 64;
/// Build number from which on Windows uses the registry value GlobalTimerResolutionRequests: Windows 11 and Server 2022.
const GLOBAL_TIMER_FROM: u32 = 20_348;
/// Build number of Windows 7, the oldest release whose rules are in the model.
const OLDEST_BUILD: u32 = 7_600;

/// Names of the kernel flags that a replay needs, each with the keyword that enables it.
const NEEDED: [(&str, &str); 5] = [
    ("thread", "PROC_THREAD"),
    ("context switch", "CSWITCH"),
    ("dispatcher", "DISPATCHER"),
    ("DPC", "DPC"),
    ("interrupt", "INTERRUPT"),
];

/// Facts about the recorded machine.
#[derive(Debug, Default)]
pub(super) struct Facts {
    build: Option<u32>,
    /// True for a server edition. `None` if the edition is unknown.
    is_server: Option<bool>,
    pub(super) cpus: u16,
    is_linux: bool,
    mhz: Option<u32>,
    found_cpus: usize,
    nodes: u16,
    lost: Option<String>,
    is_partial: bool,
    /// Names of the enabled kernel flags. Empty if they are unknown.
    flags: BTreeSet<String>,
}

impl Facts {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Facts, StoreError> {
        let mut facts = Facts {
            is_linux: reader.store().info().is_linux(),
            ..Facts::default()
        };
        let table = reader.table(Table::Sessions)?;
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &["start_ns", "os_build", "cpu_mhz"])?;
            let view = SessionsView::new(&batch)?;
            for row in 0..view.len() {
                facts.build = facts.build.max(view.os_build.get(row));
                facts.mhz = facts.mhz.or(view.cpu_mhz.get(row).filter(|mhz| *mhz > 0));
            }
        }
        let table = reader.table(Table::Cpus)?;
        let columns = ["cpu", "numa_node", "recorded_from_ns", "recorded_until_ns"];
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &columns)?;
            let view = CpusView::new(&batch)?;
            for row in 0..view.len() {
                let count = usize::from(view.cpu[row]) + 1;
                facts.found_cpus = facts.found_cpus.max(count);
                let node = view.numa_node.get(row).unwrap_or(0);
                facts.nodes = facts.nodes.max(node.saturating_add(1));
                facts.is_partial |= view.recorded_from_ns.get(row).is_some()
                    || view.recorded_until_ns.get(row).is_some();
            }
        }
        facts.cpus = facts.found_cpus.min(MOST_CPUS) as u16;
        let table = reader.table(Table::Damages)?;
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &["kind"])?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).map(str::to_owned);
                facts.lost = facts.lost.or(kind);
            }
        }
        let table = reader.table(Table::SystemConfig)?;
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &["item", "key", "value"])?;
            let view = SystemConfigView::new(&batch)?;
            for row in 0..view.len() {
                let Some(value) = view.value.get(row) else {
                    continue;
                };
                match (view.item.get(row), view.key.get(row)) {
                    (Some(SystemConfig::KERNEL_FLAGS), _) => {
                        facts.flags.extend(value.split(", ").map(str::to_owned));
                    }
                    (Some("BuildInfo"), Some("ProductName")) => {
                        facts.is_server = Some(value.contains("Server"));
                    }
                    _ => {}
                }
            }
        }
        Ok(facts)
    }

    /// Checks that a replay is possible.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.is_linux {
            return Err(Refusal::Linux);
        }
        if let Some((_, keyword)) =
            (NEEDED.iter()).find(|(flag, _)| !self.flags.is_empty() && !self.flags.contains(*flag))
        {
            return Err(Refusal::NotEnabled(keyword));
        }
        if let Some(kind) = &self.lost {
            return Err(Refusal::Lost(kind.clone()));
        }
        if self.is_partial {
            return Err(Refusal::Partial);
        }
        match self.found_cpus {
            0 => Err(Refusal::NoSwitches),
            many if many > MOST_CPUS => Err(Refusal::Cpus(many)),
            _ => match self.build {
                None => Err(Refusal::BuildUnknown),
                Some(build) if build < OLDEST_BUILD => Err(Refusal::Build(build)),
                Some(_) => Ok(()),
            },
        }
    }

    /// Returns the build number of Windows. [`Facts::check`] refuses traces without it.
    fn build(&self) -> u32 {
        self.build.unwrap_or(OLDEST_BUILD)
    }

    /// Returns the release of Windows whose rules the replay has.
    pub(super) fn windows(&self) -> Windows {
        Windows::of_build(self.build())
    }

    /// Returns the machine of the workload. `separation` is the value of [`Facts::separation`].
    pub(super) fn machine(&self, separation: Option<u32>, waits: &Waits) -> Machine {
        let (unlogged, all) = waits.clock;
        let nodes = match self.cpus.checked_rem(self.nodes) {
            Some(0) => self.nodes,
            _ => 1,
        };
        Machine {
            build: self.build(),
            cpus: self.cpus,
            threads_per_core: if (self.cpus / nodes).is_multiple_of(2) {
                2
            } else {
                1
            },
            nodes,
            server: self.is_server.unwrap_or(false),
            priority_separation: separation.unwrap_or(Win32PrioritySeparation::default().0),
            // If the kernel's own work is logged, its time is already in the interrupts.
            timer_expiry_ns: if unlogged * 2 >= all { 1_000 } else { 100 },
            ..Machine::default()
        }
    }

    /// Returns a value of Win32PrioritySeparation with the quanta and the boost that the recording shows. Returns `None`
    /// if it shows no quanta.
    pub(super) fn separation(&self, rows: &Rows, moments: &[Moment]) -> Option<u32> {
        let mhz = f64::from(self.mhz?);
        let mut focus: Vec<(u64, Option<u32>)> = Vec::new();
        for moment in moments {
            if let Change::Focus(process) = moment.change {
                focus.push((moment.at_ns, process));
            }
        }
        let has_focus = |process: u32, at_ns: u64| {
            let next = focus.partition_point(|(from_ns, _)| *from_ns <= at_ns);
            next.checked_sub(1)
                .is_some_and(|last| focus[last].1 == Some(process))
        };
        // Number of quanta by focus and units, and the largest boost of a process with the focus.
        let mut turns: BTreeMap<(bool, i64), u64> = BTreeMap::new();
        let mut boost = None;
        for (runs, (_, _, process)) in rows.runs.iter().zip(&rows.threads) {
            for run in runs {
                let with = has_focus(*process, run.start_ns);
                if with && run.base.is_some_and(|base| base < 14) {
                    boost = boost.max(Some(run.foreground_boost));
                }
                if run.after == After::Ready
                    && run.wait_reason == QUANTUM_END
                    && let Some(left) = run.remaining_quantum
                {
                    let ns = f64::from(left) * 1_024.0 * 1_000.0 / mhz;
                    *turns
                        .entry((with, (ns / UNIT_NS).round() as i64))
                        .or_default() += 1;
                }
            }
        }
        let usual = |with: bool| {
            let own_turns = turns
                .iter()
                .filter(|((had, units), _)| *had == with && *units > 0);
            // Builds with a short slice end turns before the quantum is used up.
            match self.build() {
                TABLE_DOUBTED_FROM.. => own_turns.map(|((_, units), _)| *units).max(),
                _ => own_turns
                    .max_by_key(|(_, count)| **count)
                    .map(|((_, units), _)| *units),
            }
        };
        let (with, without) = (usual(true), usual(false));
        if with.is_none() && without.is_none() {
            return None;
        }
        let fits = |setting: &Win32PrioritySeparation| {
            let quantum = setting.decode(self.is_server.unwrap_or(false));
            with.is_none_or(|units| units == i64::from(quantum.foreground_units))
                && without.is_none_or(|units| units == i64::from(quantum.background_units))
        };
        let boost = u32::from(boost.unwrap_or(2).min(2));
        let values = (0..0x40_u32).filter(|value| value & 3 < 3 && value >> 4 != 0);
        let fitting = values.map(Win32PrioritySeparation).filter(fits);
        // If several values have these quanta, the value with the observed boost is the first.
        let mut fitting: Vec<u32> = fitting.map(|setting| setting.0).collect();
        fitting.sort_by_key(|value| (value & 3 != boost, *value));
        fitting.first().copied()
    }

    /// Returns the facts about the recording that limit predictions.
    pub(super) fn notes(
        &self,
        separation: Option<u32>,
        waits: &Waits,
        sleeps: &Sleeps,
        workload: &Workload,
        unknown_routines: u64,
    ) -> Vec<Note> {
        let mut notes = Vec::new();
        let is_focus = |moment: &Moment| matches!(moment.change, Change::Focus(_));
        if !workload.moments.iter().any(is_focus) {
            notes.push(Note::NoFocus);
        }
        if separation.is_none() {
            notes.push(Note::QuantaUnknown);
        }
        if self.is_server.is_none() {
            notes.push(Note::EditionUnknown);
        }
        if self.build() >= TABLE_DOUBTED_FROM {
            notes.push(Note::SlicesDoubted);
        }
        let is_request = |moment: &Moment| matches!(moment.change, Change::Resolution(_, Some(_)));
        if workload.moments.iter().any(is_request) {
            match self.build() {
                GLOBAL_TIMER_FROM.. => notes.push(Note::GlobalTimer),
                build if build < TIMERS_PER_PROCESS_FROM && self.windows() == Windows::Ten => {
                    notes.push(Note::SharedTimer);
                }
                _ => {}
            }
        }
        // A program in the background has one rank above 0, and loses it when it gets the focus. A program whose use
        // of the processors changes its rank has several such ranks, or the same rank several times.
        let mut ranks: BTreeMap<u32, u64> = BTreeMap::new();
        for moment in &workload.moments {
            if let Change::Rank(process, 1..) = moment.change {
                *ranks.entry(process).or_default() += 1;
            }
        }
        match ranks.into_values().max() {
            None => {}
            Some(1) => notes.push(Note::Ranks),
            Some(_) => notes.push(Note::RanksMove),
        }
        if waits.open > 0 {
            notes.push(Note::OpenArrivals(waits.open));
        }
        if sleeps.varied > 0 {
            notes.push(Note::VariedSleeps(sleeps.varied));
        }
        if unknown_routines > 0 {
            notes.push(Note::DamagedRoutines(unknown_routines));
        }
        notes
    }
}

/// Returns the changes of the machine's state.
pub(super) fn moments(reader: &Reader<'_>, rows: &Rows) -> Result<Vec<Moment>, StoreError> {
    let mut moments = Vec::new();
    add_focus(reader, rows, &mut moments)?;
    add_freezes(reader, rows, &mut moments)?;
    add_resolutions(reader, rows, &mut moments)?;
    add_ranks(rows, &mut moments);
    for (from_ns, to_ns) in silences(reader, rows)? {
        moments.push(Moment {
            at_ns: from_ns,
            change: Change::Suspend(to_ns - from_ns),
        });
    }
    Ok(moments)
}

fn moment(at_ns: i64, change: Change) -> Moment {
    Moment {
        at_ns: at_ns.max(0) as u64,
        change,
    }
}

fn add_focus(
    reader: &Reader<'_>,
    rows: &Rows,
    moments: &mut Vec<Moment>,
) -> Result<(), StoreError> {
    let table = reader.table(Table::Focus)?;
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["start_ns", "end_ns", "process_id", "process_row"])?;
        let view = FocusView::new(&batch)?;
        for row in 0..view.len() {
            let process = rows.process(view.process_row.get(row), Some(view.process_id[row]));
            moments.push(moment(view.start_ns[row], Change::Focus(process)));
        }
    }
    if moments.is_empty()
        && let Some(process) = focus_of(rows)
    {
        moments.push(moment(0, Change::Focus(Some(process))));
    }
    Ok(())
}

fn add_freezes(
    reader: &Reader<'_>,
    rows: &Rows,
    moments: &mut Vec<Moment>,
) -> Result<(), StoreError> {
    let table = reader.table(Table::ProcessFreezes)?;
    let columns = [
        "start_ns",
        "end_ns",
        "ends_at_event",
        "process_id",
        "process_row",
    ];
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &columns)?;
        let view = ProcessFreezesView::new(&batch)?;
        for row in 0..view.len() {
            let process = rows.process(view.process_row.get(row), Some(view.process_id[row]));
            let Some(process) = process else { continue };
            moments.push(moment(view.start_ns[row], Change::Freeze(process)));
            if view.ends_at_event.get(row) == Some(true) {
                moments.push(moment(view.end_ns[row], Change::Thaw(process)));
            }
        }
    }
    Ok(())
}

fn add_resolutions(
    reader: &Reader<'_>,
    rows: &Rows,
    moments: &mut Vec<Moment>,
) -> Result<(), StoreError> {
    let table = reader.table(Table::TimerRequests)?;
    let columns = [
        "time_ns",
        "kind",
        "resolution_ns",
        "process_id",
        "process_row",
        "ignored",
    ];
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &columns)?;
        let view = TimerRequestsView::new(&batch)?;
        for row in 0..view.len() {
            if view.kind.get(row) != Some("request") {
                continue;
            }
            let process = rows.process(view.process_row.get(row), view.process_id.get(row));
            let Some(process) = process else { continue };
            let is_ignored = view.ignored.get(row) == Some(true);
            let period = (view.resolution_ns.get(row)).filter(|ns| *ns > 0 && !is_ignored);
            let period = period.and_then(|ns| u32::try_from(ns / 100).ok());
            moments.push(moment(
                view.time_ns[row],
                Change::Resolution(process, period),
            ));
        }
    }
    Ok(())
}

/// Adds the ranks of processes, at the switches that show them.
fn add_ranks(rows: &Rows, moments: &mut Vec<Moment>) {
    let mut ranks: BTreeMap<u32, Vec<(u64, u8)>> = BTreeMap::new();
    for (runs, (_, _, process)) in rows.runs.iter().zip(&rows.threads) {
        for run in runs {
            if let Some(rank) = run.rank.filter(|_| run.after != After::Running) {
                ranks.entry(*process).or_default().push((run.end_ns, rank));
            }
        }
    }
    for (process, mut seen) in ranks {
        if seen.iter().all(|(_, rank)| *rank == 0) {
            continue;
        }
        seen.sort_unstable();
        let mut now = None;
        for (at_ns, rank) in seen {
            if now != Some(rank) {
                // The first rank is assumed to hold since the start.
                let at_ns = now.map_or(0, |_| at_ns);
                moments.push(Moment {
                    at_ns,
                    change: Change::Rank(process, rank),
                });
                now = Some(rank);
            }
        }
    }
}

/// Returns the process that had the focus during the whole recording, if boosts or quanta show it. It is the only
/// process with the boost of the focus, or its quanta are much longer than those of all other processes.
fn focus_of(rows: &Rows) -> Option<u32> {
    let mut boosts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut quanta: BTreeMap<u32, i32> = BTreeMap::new();
    for (runs, (_, _, process)) in rows.runs.iter().zip(&rows.threads) {
        for run in runs {
            if run.foreground_boost > 0 {
                *boosts.entry(*process).or_default() += 1;
            }
            if run.after == After::Ready
                && run.wait_reason == QUANTUM_END
                && let Some(left) = run.remaining_quantum
            {
                let most = quanta.entry(*process).or_default();
                *most = left.max(*most);
            }
        }
    }
    match boosts.len() {
        0 => {}
        1 => return boosts.into_keys().next(),
        _ => return None,
    }
    let mut by_length: Vec<(i32, u32)> = quanta
        .iter()
        .map(|(length, left)| (*left, *length))
        .collect();
    by_length.sort_unstable();
    let [.., (second, _), (longest, process)] = by_length[..] else {
        return None;
    };
    // The ratio is 2 or 3.
    (longest > second.saturating_mul(3) / 2).then_some(process)
}

/// Returns the times in which the machine was suspended: no run ended, and no processor was sampled. Without samples
/// such times are not known.
fn silences(reader: &Reader<'_>, rows: &Rows) -> Result<Vec<(u64, u64)>, StoreError> {
    let table = reader.table(Table::Samples)?;
    let mut gaps: Vec<(u64, u64)> = (rows.ends.windows(2))
        .map(|pair| (pair[0], pair[1]))
        .filter(|(from, to)| to - from >= SILENCE_NS)
        .collect();
    if table.rows() == 0 || gaps.is_empty() {
        return Ok(Vec::new());
    }
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &["time_ns"]) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        let times = view.time_ns;
        gaps.retain(|(from, to)| {
            let after = times.partition_point(|at| *at <= *from as i64);
            times.get(after).is_none_or(|at| *at >= *to as i64)
        });
    }
    Ok(gaps)
}
