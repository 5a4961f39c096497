//! CPU use from samples, for traces without context switches.

use session::TraceTables;
use tables::{Identities, SamplesView, Table};
use views::{Lanes, NULL, NULL_ID, Rows, Timeline};

use super::cpu_runs::stack_of_processes;
use super::{CpuPlaces, PROCESSES, Stack, Time, left_over};
use crate::Error;

/// Charts of CPU use, computed from samples.
pub(super) struct Samples {
    pub(super) processes: Stack,
    /// Share of time in threads other than the idle thread, by CPU and bucket.
    pub(super) busy: Vec<Vec<u32>>,
    /// Share of time without samples, by CPU and bucket.
    pub(super) untold: Vec<Option<Vec<u32>>>,
}

const COLUMNS: [&str; 5] = ["time_ns", "cpu", "thread_id", "process_row", "weight_ns"];

/// Sums the samples. Returns `None` if no sample has a known weight.
pub(super) fn read(
    tables: &TraceTables,
    names: &Identities,
    time: &Time,
    places: &CpuPlaces,
) -> Result<Option<Samples>, Error> {
    let table = tables.table(Table::Samples)?;
    let idle = names.process_rows();
    let mut sums = vec![0i64; idle + 1];
    for batch in tables.batches(&table, time.range(), &COLUMNS) {
        let batch = batch?;
        let samples = SamplesView::new(&batch)?;
        for row in 0..samples.len() {
            let place = samples
                .process_row
                .get(row)
                .map_or(idle, |row| row as usize);
            if let Some(weight_ns) = samples.weight_ns.get(row)
                && let Some(sum) = sums.get_mut(place)
                && samples.thread_id[row] != 0
            {
                *sum = sum.saturating_add(weight_ns);
            }
        }
    }
    let mut shown: Vec<u32> = (0..idle as u32).collect();
    shown.sort_by_key(|row| std::cmp::Reverse(sums[*row as usize]));
    shown.truncate(PROCESSES);
    shown.push(idle as u32);
    let mut processes = Timeline::new(time.buckets, Lanes::of(&shown, idle as u32 + 1))?;
    let mut cpus = Timeline::new(time.buckets, Lanes::every(places.shown as u32))?;
    let mut covered = cpus.clone();
    let mut is_known = false;
    for batch in tables.batches(&table, time.range(), &COLUMNS) {
        let batch = batch?;
        let samples = SamplesView::new(&batch)?;
        let rows = 0..samples.len();
        let weight = |row| samples.weight_ns.get(row).unwrap_or(NULL);
        let weights: Vec<i64> = rows.clone().map(weight).collect();
        let process = |row: usize| match samples.thread_id[row] {
            0 => idle as u32,
            _ => samples.process_row.get(row).unwrap_or(NULL_ID),
        };
        let of_process: Vec<u32> = rows.clone().map(process).collect();
        let of_cpu = rows.clone().map(|row| places.of(samples.cpu[row]));
        let of_cpu: Vec<u32> = of_cpu.collect();
        let all = Rows::of(rows);
        processes.add_values(samples.time_ns, &of_process, &weights, &all)?;
        covered.add_values(samples.time_ns, &of_cpu, &weights, &all)?;
        let busy = all.keep_if(|row| samples.thread_id[row] != 0);
        cpus.add_values(samples.time_ns, &of_cpu, &weights, &busy)?;
        is_known |= weights.iter().any(|weight| *weight != NULL);
    }
    let busy = time.by_cpu(&cpus.finish(), places.shown);
    let nothing = || vec![0; time.buckets.len()];
    let covered = time.by_cpu(&covered.finish(), places.shown);
    Ok(is_known.then(|| Samples {
        processes: stack_of_processes(processes, names, time, places.all, true),
        busy: busy
            .into_iter()
            .map(|s| s.unwrap_or_else(nothing))
            .collect(),
        untold: left_over(covered, time.buckets.len()),
    }))
}
