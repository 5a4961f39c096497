//! CPU time by process: estimated from samples, and exactly from context switches.

use serde::Serialize;
use tables::Tables;

use super::names::{Names, PerProcess, Process};
use super::{distinct, follows, largest};

/// Gaps between samples looked at on each CPU to find the sampling interval.
const GAPS: usize = 100_000;

/// Who used the CPUs.
#[derive(Debug, Serialize)]
pub(crate) struct CpuTime {
    /// Median time between a CPU's samples; `None` without samples.
    pub(crate) sample_interval_ns: Option<i64>,
    /// Samples of all threads but the idle ones.
    pub(crate) busy_samples: u64,
    /// Samples of idle threads.
    pub(crate) idle_samples: u64,
    /// Time that context switches show to be spent in threads other than the idle ones.
    pub(crate) busy_ns: Option<i64>,
    /// Time in idle threads.
    pub(crate) idle_ns: Option<i64>,
    /// The rest: before a CPU's first switch and after its last one, and between switches that
    /// contradict each other. Nobody knows who ran.
    pub(crate) unknown_ns: Option<i64>,
    /// Pairs of switches that contradict each other: between them, others are missing.
    pub(crate) missing_switches: u64,
    /// The processes that used most, the idle process left out.
    pub(crate) processes: Vec<ProcessTime>,
}

/// What one process used.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessTime {
    #[serde(flatten)]
    pub(crate) process: Process,
    /// Its samples.
    pub(crate) samples: u64,
    /// Its time by samples: their number times the interval.
    pub(crate) sampled_ns: Option<i64>,
    /// Its time by context switches, exact.
    pub(crate) switched_ns: Option<i64>,
    /// Times that a thread of it ran.
    pub(crate) runs: u64,
}

#[derive(Default)]
struct Used {
    samples: u64,
    switched_ns: i64,
    runs: u64,
}

/// `begin` and `end` are the first and the last moment that the tables know of.
pub(super) fn read(
    tables: &Tables,
    names: &Names<'_>,
    (begin, end): (i64, i64),
) -> Option<CpuTime> {
    let has_switches = !tables.context_switches.is_empty();
    if tables.samples.is_empty() && !has_switches {
        return None;
    }
    let mut used: PerProcess<'_, '_, Used> = PerProcess::new(names);
    let (mut busy_samples, mut idle_samples) = (0, 0);
    for samples in &tables.samples {
        for (row, thread) in samples.thread_id.iter().enumerate() {
            let count = u64::from(samples.count[row].max(1));
            if *thread == 0 {
                idle_samples += count;
            } else {
                busy_samples += count;
                used.of_thread(*thread, samples.time_ns[row]).samples += count;
            }
        }
    }
    let (mut busy, mut idle, mut missing_switches) = (0i64, 0i64, 0);
    for switches in &tables.context_switches {
        for row in 1..switches.len() {
            let (from, to) = (switches.time_ns[row - 1], switches.time_ns[row]);
            let ran = to.saturating_sub(from);
            let thread = switches.old_thread_id[row];
            if !follows(switches, row) {
                missing_switches += 1;
            } else if thread == 0 {
                idle = idle.saturating_add(ran);
            } else {
                busy = busy.saturating_add(ran);
                let process = used.of_thread(thread, from);
                process.switched_ns = process.switched_ns.saturating_add(ran);
                process.runs += 1;
            }
        }
    }
    let cpus = distinct(tables.context_switches.iter().map(|s| s.cpu[0]));
    let all = end.saturating_sub(begin).saturating_mul(cpus as i64);
    let unknown = all.saturating_sub(busy).saturating_sub(idle).max(0);
    let interval = sample_interval(tables);
    let processes = used
        .into_sums()
        .into_iter()
        .map(|(process, used)| ProcessTime {
            process,
            samples: used.samples,
            sampled_ns: interval.map(|ns| ns.saturating_mul(used.samples as i64)),
            switched_ns: has_switches.then_some(used.switched_ns),
            runs: used.runs,
        })
        .collect();
    let by_time = |p: &ProcessTime| {
        (
            p.switched_ns.unwrap_or(0),
            p.samples,
            std::cmp::Reverse(p.process.clone()),
        )
    };
    Some(CpuTime {
        sample_interval_ns: interval,
        busy_samples,
        idle_samples,
        busy_ns: has_switches.then_some(busy),
        idle_ns: has_switches.then_some(idle),
        unknown_ns: has_switches.then_some(unknown),
        missing_switches,
        processes: largest(processes, by_time),
    })
}

/// The median gap between the samples of a CPU. The interval set for the session is in few
/// traces, and not always the one used.
fn sample_interval(tables: &Tables) -> Option<i64> {
    let mut gaps: Vec<i64> = tables
        .samples
        .iter()
        .flat_map(|samples| {
            samples
                .time_ns
                .windows(2)
                .take(GAPS)
                .map(|pair| pair[1].saturating_sub(pair[0]))
        })
        .collect();
    let middle = gaps.len() / 2;
    (!gaps.is_empty()).then(|| *gaps.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use tables::ContextSwitches;

    use super::*;

    /// Switches of CPU 0: when, from which thread, to which.
    fn switches(rows: &[(i64, u32, u32)]) -> ContextSwitches {
        ContextSwitches {
            time_ns: rows.iter().map(|row| row.0).collect(),
            cpu: rows.iter().map(|_| 0).collect(),
            old_thread_id: rows.iter().map(|row| row.1).collect(),
            new_thread_id: rows.iter().map(|row| row.2).collect(),
            ..ContextSwitches::default()
        }
    }

    #[test]
    fn between_two_sessions_nobody_knows_who_ran() {
        let tables = Tables {
            context_switches: vec![
                switches(&[(100, 7, 0), (110, 0, 7)]),
                switches(&[(0, 0, 5), (10, 5, 0)]),
            ],
            ..Tables::default()
        };
        let cpu = read(&tables, &Names::new(&tables), (0, 120)).unwrap();
        assert_eq!((cpu.busy_ns, cpu.idle_ns), (Some(10), Some(10)));
        assert_eq!(cpu.unknown_ns, Some(100));
    }

    #[test]
    fn absurd_times_are_no_overflow() {
        let far = &[(i64::MIN, 0, 5), (i64::MAX, 5, 0)];
        let tables = Tables {
            context_switches: vec![switches(far), switches(far), switches(far)],
            ..Tables::default()
        };
        let cpu = read(&tables, &Names::new(&tables), (i64::MIN, i64::MAX)).unwrap();
        assert_eq!(cpu.busy_ns, Some(i64::MAX));
    }
}
