//! Do the processors' clocks agree?

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, duration, grouped,
};

/// Threads made ready while they run.
pub(crate) struct Clocks;

static ABOUT: About = About {
    id: "clocks",
    question: "Do the processors' clocks agree?",
    tables: &[Table::CpuRuns, Table::ReadyThreads],
    record: "context switches and threads made ready (xperf -on CSWITCH+DISPATCHER, WPR keywords \
             CSwitch and ReadyThread)",
    sources: &[],
};

/// A thread can be made ready while it is being switched out, which takes no longer than this.
const SWITCHING_NS: i64 = 50_000;

impl Theory for Clocks {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() || !case.survey.has_ready_events {
            let what = "there are not both context switches and events of threads made ready";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let found = impossible(case)?;
        if found.is_empty() {
            let because = "no thread was made ready by one processor while it ran on another, as it \
                           would seem if one's clock were ahead";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let mut evidence = Evidence::new(
            "Threads made ready while they already ran",
            format!(
                "SELECT readied.cpu AS readying_cpu, runs.cpu AS cpu, count(*) AS times, \
                 max(readied.time_ns - runs.start_ns) AS ahead_ns FROM ready_threads readied JOIN \
                 cpu_runs runs ON runs.thread_id = readied.thread_id AND runs.start_ns < \
                 readied.time_ns AND readied.time_ns < runs.end_ns - {SWITCHING_NS} GROUP BY 1, 2 \
                 ORDER BY 1, 2"
            ),
            &[
                Column::new("readying_cpu", "readied on CPU", Unit::None),
                Column::new("cpu", "ran on CPU", Unit::None),
                Column::new("times", "times", Unit::Count),
                Column::new("ahead_ns", "ahead by at least", Unit::Duration),
            ],
        );
        let (mut times, mut most, mut ahead) = (0, 0, 0);
        for ((readying, cpu), seen) in &found {
            evidence = evidence.row([
                Some((*readying).into()),
                Some((*cpu).into()),
                Some(seen.times.into()),
                Some(seen.ahead_ns.into()),
            ]);
            times += seen.times;
            if seen.ahead_ns > most {
                (most, ahead) = (seen.ahead_ns, *readying);
            }
        }
        let sentence = format!(
            "The processors' clocks disagree: {} times a thread seems to be made ready after it \
             began to run; CPU {ahead}'s clock is ahead by {} or more. Waits and durations between \
             processors are wrong by that much.",
            grouped(times),
            duration(most)
        );
        let finding = Finding::new(&ABOUT, Severity::Warning, sentence)
            .with(evidence)
            .remedy(
                "Record again with QPC as the session's clock; if it still happens, look at BIOS \
                 updates and at the boot option tscsyncpolicy",
            )
            .doubt("By how much the clocks differ is known from below only");
        Ok(Outcome::For(vec![finding]))
    }
}

/// A thread made ready.
struct Readied {
    time_ns: i64,
    cpu: u16,
    thread_id: u32,
}

impl Readied {
    /// All of a batch of `ready_threads`.
    fn all(batch: &RecordBatch) -> Result<Vec<Readied>, StoreError> {
        let view = ReadyThreadsView::new(batch)?;
        let read = |row| Readied {
            time_ns: view.time_ns[row],
            cpu: view.cpu[row],
            thread_id: view.thread_id[row],
        };
        Ok((0..view.len()).map(read).collect())
    }
}

/// How often something was seen that cannot be, and by how much a clock is ahead at least.
#[derive(Default)]
struct Seen {
    times: u64,
    ahead_ns: i64,
}

/// By the CPU that made threads ready and the one that they ran on already: how often, and how long
/// they had run at most.
fn impossible(case: &Case<'_>) -> Result<BTreeMap<(u16, u16), Seen>, StoreError> {
    let readied = case.table(Table::ReadyThreads)?;
    let runs = case.table(Table::CpuRuns)?;
    let mut found: BTreeMap<(u16, u16), Seen> = BTreeMap::new();
    // Of each thread the times it was made ready, by whom, since its last run ended.
    let mut pending: FxHashMap<u32, Vec<(i64, u16)>> = FxHashMap::default();
    let columns = ["time_ns", "cpu", "thread_id"];
    let batches = case.batches(&readied, i64::MIN..i64::MAX, &columns);
    let mut batches = batches.map(|batch| Readied::all(&batch?));
    let (mut events, mut next) = (Vec::new(), 0);
    for run in case.batches(
        &runs,
        i64::MIN..i64::MAX,
        &["start_ns", "end_ns", "cpu", "thread_id"],
    ) {
        let run = run?;
        let view = CpuRunsView::new(&run)?;
        for row in 0..view.len() {
            let (start, end) = (view.start_ns[row], view.end_ns[row]);
            loop {
                while let Some(event) = events
                    .get(next)
                    .filter(|event: &&Readied| event.time_ns < end)
                {
                    let waiting = pending.entry(event.thread_id).or_default();
                    waiting.push((event.time_ns, event.cpu));
                    next += 1;
                }
                if next < events.len() {
                    break;
                }
                let Some(more) = batches.next() else {
                    break;
                };
                (events, next) = (more?, 0);
            }
            let Some(readied) = pending.get_mut(&view.thread_id[row]) else {
                continue;
            };
            for (time, cpu) in readied.drain(..) {
                if start < time && time < end - SWITCHING_NS {
                    let found = found.entry((cpu, view.cpu[row])).or_default();
                    found.times += 1;
                    found.ahead_ns = found.ahead_ns.max(time - start);
                }
            }
        }
    }
    Ok(found)
}
