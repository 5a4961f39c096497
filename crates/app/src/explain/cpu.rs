//! CPU time by process: estimated from samples, and exactly from context switches.

use serde::Serialize;
use tables::{ContextSwitches, Tables};

use super::largest;
use super::names::{Names, PerProcess, Process};

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
    /// Time between switches that contradict each other: switches are missing there, and nobody
    /// knows who ran.
    pub(crate) unknown_ns: Option<i64>,
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
    let (mut busy, mut idle, mut unknown) = (0i64, 0i64, 0i64);
    for (switches, session) in sessions(&tables.context_switches) {
        let last = switches.len() - 1;
        // The first switch tells who ran before it, the last one who ran after it: unless another
        // session of the CPU lies there, between which nobody knows.
        let before = match session.after_ns {
            None => (begin, switches.time_ns[0], Some(switches.old_thread_id[0])),
            Some(ended) => (ended.min(switches.time_ns[0]), switches.time_ns[0], None),
        };
        let after = (
            switches.time_ns[last],
            if session.is_last {
                end
            } else {
                switches.time_ns[last]
            },
            Some(switches.new_thread_id[last]).filter(|_| session.is_last),
        );
        let between = (1..switches.len()).map(|row| {
            let (chosen, ran) = (switches.new_thread_id[row - 1], switches.old_thread_id[row]);
            let thread = (chosen == ran).then_some(ran);
            (switches.time_ns[row - 1], switches.time_ns[row], thread)
        });
        for (from, to, thread) in std::iter::once(before).chain(between).chain([after]) {
            let ran = to.saturating_sub(from);
            let add = |sum: &mut i64| *sum = sum.saturating_add(ran);
            match thread {
                None => add(&mut unknown),
                Some(0) => add(&mut idle),
                Some(thread) => {
                    add(&mut busy);
                    let process = used.of_thread(thread, from);
                    add(&mut process.switched_ns);
                    process.runs += 1;
                }
            }
        }
    }
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
        processes: largest(processes, by_time),
    })
}

/// Where a CPU's stretch of switches stands among those of its other sessions: a file that sessions
/// were appended to, or several files, have several of one CPU.
struct Session {
    /// When the one before it ended.
    after_ns: Option<i64>,
    /// None follows it.
    is_last: bool,
}

/// The stretches of switches of each CPU in the order of time.
fn sessions(tables: &[ContextSwitches]) -> impl Iterator<Item = (&ContextSwitches, Session)> {
    let mut order: Vec<&ContextSwitches> = tables.iter().collect();
    order.sort_by_key(|switches| (switches.cpu[0], switches.time_ns[0]));
    (0..order.len()).map(move |i| {
        let same_cpu = |other: &&&ContextSwitches| other.cpu[0] == order[i].cpu[0];
        let before = i.checked_sub(1).and_then(|i| order.get(i)).filter(same_cpu);
        let session = Session {
            after_ns: before.and_then(|before| before.time_ns.last()).copied(),
            is_last: order.get(i + 1).filter(same_cpu).is_none(),
        };
        (order[i], session)
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
        assert_eq!((cpu.busy_ns, cpu.idle_ns), (Some(20), Some(10)));
        assert_eq!(cpu.unknown_ns, Some(90));
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
