//! Comparison of the runs of Linux recordings with `perf sched timehist`. Each difference needs a reason, and each reason
//! is a condition that the test checks.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;

use tables::{
    Cache, ContextSwitchesView, CpuRunsView, Options, ReadyThreadsView, Store, Table, ThreadsView,
};
use testdata::perf;

use crate::linux::{EVENTS, origin};

/// Script that switches threads often: three pairs of shells send each other lines through pipes, while short processes
/// run and sleep.
const LOAD: &str = "for n in 1 2 3; do mkfifo f$n g$n; \
    (while read x; do echo $x; done < f$n > g$n) & \
    (exec 5>f$n 6<g$n; for i in $(seq 3500); do echo $i >&5; read y <&6; done) & done; \
    for i in $(seq 60); do (sleep 0.02; seq 20000 > /dev/null) & sleep 0.02; done; wait";

/// Thread id that perf prints as -1, because the thread had ended when it left its CPU for the last time.
const ENDED: u32 = u32::MAX;

/// State of a thread that ended (`state_out`).
const TERMINATED: u8 = 4;

/// Difference that is accepted between two durations in nanoseconds. perf cuts its numbers to microseconds.
const PRECISION_NS: i64 = 1500;

/// Line of `perf sched timehist`: a run that a switch ended. Durations are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Line {
    end_us: i64,
    thread_id: u32,
    /// Time since the thread's previous run.
    waited: i64,
    /// Time from the thread's first wake since its previous run.
    delay: i64,
    /// Time since the CPU's previous switch.
    ran: i64,
}

/// Lines by CPU, in the order of time. perf leaves out most runs of idle threads, so none of them is in here.
fn timehist(folder: &Path, file: &str) -> BTreeMap<u16, Vec<Line>> {
    let text = perf::run(&["sched", "timehist", "-i", file], folder);
    let mut lines: BTreeMap<u16, Vec<Line>> = BTreeMap::new();
    for line in text.lines() {
        let Some((cpu, line)) = parse(line) else {
            continue;
        };
        if line.thread_id != 0 {
            lines.entry(cpu).or_default().push(line);
        }
    }
    lines
}

/// Parses lines such as `72706.697839 [0000]  bash[29204/29200]  0.312  0.024  0.166`. The text is
/// `name[thread/process]`, `name[thread]` or `<idle>`.
fn parse(line: &str) -> Option<(u16, Line)> {
    let (time, rest) = line.trim().split_once(" [")?;
    let (seconds, fraction) = time.trim().split_once('.')?;
    let (cpu, rest) = rest.split_once(']')?;
    let mut words = rest.split_whitespace().rev();
    let mut nanoseconds = || Some((words.next()?.parse::<f64>().ok()? * 1e6).round() as i64);
    let (ran, delay, waited) = (nanoseconds()?, nanoseconds()?, nanoseconds()?);
    let name = words.next()?;
    let thread = match name.rsplit_once('[') {
        Some((_, ids)) => ids.split(['/', ']']).next()?,
        None => "0",
    };
    let line = Line {
        end_us: format!("{seconds}{fraction}").parse().ok()?,
        thread_id: thread.parse().unwrap_or(ENDED),
        waited,
        delay,
        ran,
    };
    Some((cpu.parse().ok()?, line))
}

/// Run of `cpu_runs` that a switch ended. Durations are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Row {
    end_ns: i64,
    thread_id: u32,
    starts_at_switch: bool,
    cpu_ns: i64,
    /// Time of the CPU's previous switch; `None` for the CPU's first switch.
    last_switch_ns: Option<i64>,
    previous_out_ns: Option<i64>,
    readied_ns: Option<i64>,
    ready_ns: Option<i64>,
    since_last_ns: Option<i64>,
    state_out: Option<u8>,
}

/// Runs of threads that are not idle, by CPU, in the order of their ends.
fn rows(store: &Store) -> BTreeMap<u16, Vec<Row>> {
    let table = store.table(Table::CpuRuns, Options::default()).unwrap();
    let mut rows: BTreeMap<u16, Vec<Row>> = BTreeMap::new();
    for group in 0..table.chunks().len() {
        let batch = table.read_all(group).unwrap();
        let view = CpuRunsView::new(&batch).unwrap();
        let ended = (0..batch.num_rows()).filter(|row| view.ends_at_switch.get(*row) == Some(true));
        for row in ended {
            rows.entry(view.cpu[row]).or_default().push(Row {
                end_ns: view.end_ns[row],
                thread_id: view.thread_id[row],
                starts_at_switch: view.starts_at_switch.get(row) == Some(true),
                cpu_ns: view.cpu_ns[row],
                last_switch_ns: None,
                previous_out_ns: view.previous_out_ns.get(row),
                readied_ns: view.readied_ns.get(row),
                ready_ns: view.ready_ns.get(row),
                since_last_ns: view.since_last_ns.get(row),
                state_out: view.state_out.get(row),
            });
        }
    }
    for rows in rows.values_mut() {
        rows.sort_by_key(|row| row.end_ns);
        let ends: Vec<i64> = rows.iter().map(|row| row.end_ns).collect();
        for (row, end) in rows.iter_mut().skip(1).zip(ends) {
            row.last_switch_ns = Some(end);
        }
        rows.retain(|row| row.thread_id != 0);
    }
    rows
}

/// Event of a thread: it began to run, or it left its CPU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    In,
    Out,
}

/// Facts about threads that the runs do not contain.
#[derive(Default)]
struct Facts {
    /// Switches of each thread in the order of time.
    changes: BTreeMap<u32, Vec<(i64, Change)>>,
    /// Wakes of each thread in the order of time.
    wakes: BTreeMap<u32, Vec<i64>>,
    /// Ends of the threads with each id.
    ends: BTreeMap<u32, Vec<i64>>,
}

impl Facts {
    fn read(store: &Store) -> Facts {
        let mut facts = Facts::default();
        let switches = (store.table(Table::ContextSwitches, Options::default())).unwrap();
        for group in 0..switches.chunks().len() {
            let batch = switches.read_all(group).unwrap();
            let view = ContextSwitchesView::new(&batch).unwrap();
            for row in 0..batch.num_rows() {
                for (thread_id, change) in [
                    (view.old_thread_id[row], Change::Out),
                    (view.new_thread_id[row], Change::In),
                ] {
                    let changes = facts.changes.entry(thread_id).or_default();
                    changes.push((view.time_ns[row], change));
                }
            }
        }
        let wakes = (store.table(Table::ReadyThreads, Options::default())).unwrap();
        for group in 0..wakes.chunks().len() {
            let batch = wakes.read_all(group).unwrap();
            let view = ReadyThreadsView::new(&batch).unwrap();
            for row in 0..batch.num_rows() {
                let of_thread = facts.wakes.entry(view.thread_id[row]).or_default();
                of_thread.push(view.time_ns[row]);
            }
        }
        let threads = store.table(Table::Threads, Options::default()).unwrap();
        for group in 0..threads.chunks().len() {
            let batch = threads.read_all(group).unwrap();
            let view = ThreadsView::new(&batch).unwrap();
            for row in 0..batch.num_rows() {
                let ends = facts.ends.entry(view.thread_id[row]).or_default();
                ends.extend(view.end_ns.get(row));
            }
        }
        facts
    }

    /// Returns true if a thread with this id had ended at the end of the run. A thread still runs for a short time after
    /// the event of its end, and can lose its CPU in this time.
    fn had_ended(&self, row: &Row) -> bool {
        let mut ends = self.ends[&row.thread_id].iter();
        row.state_out == Some(TERMINATED) || ends.any(|end| *end <= row.end_ns)
    }

    /// Returns the first wake of a thread after it left its CPU.
    fn first_wake(&self, thread_id: u32, out: Option<i64>) -> Option<i64> {
        let mut wakes = self.wakes.get(&thread_id)?.iter().copied();
        wakes.find(|wake| out.is_none_or(|out| *wake >= out))
    }

    /// Returns the last time before a run at which the thread left a CPU, if it ran again after this time.
    fn out_before_missing_out(&self, row: &Row) -> Option<i64> {
        let start = row.end_ns - row.cpu_ns;
        let changes = self.changes[&row.thread_id].iter().rev();
        let mut changes = changes.skip_while(|(time, _)| *time >= start);
        let (_, last) = changes.next()?;
        let out = changes.find(|(_, change)| *change == Change::Out)?;
        (*last == Change::In).then_some(out.0)
    }
}

/// Reason why perf prints other numbers than laglab.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Reason {
    /// perf counts nothing before the first switch of a CPU.
    FirstSwitch,
    /// The thread had ended and has no id any more. perf takes all such threads for one, so only the run is equal.
    EndedThread,
    /// The thread was woken in the nanosecond in which it left its CPU. perf takes the wake for the earlier event.
    SameTime,
    /// The kernel skipped the switch to the thread. perf counts the run from the switch before it.
    SkippedSwitch,
    /// The kernel skipped the switch that ended the thread's previous run. perf counts the wait from the run before it.
    SkippedOut,
}

fn is_near(left: i64, right: i64) -> bool {
    (left - right).abs() <= PRECISION_NS
}

/// Compares a run. Returns the reason of a difference, `Ok(None)` if all numbers are equal, and an error if the
/// difference has no reason.
fn compare(row: &Row, line: &Line, facts: &Facts) -> Result<Option<Reason>, ()> {
    let is_line = |ran, waited, delay| {
        is_near(line.ran, ran) && is_near(line.waited, waited) && is_near(line.delay, delay)
    };
    // perf has no delay of a thread that lost its CPU although it was ready. If a thread was woken just before it
    // left its CPU, perf ignores the wake.
    let is_later = |readied: &i64| row.previous_out_ns.is_none_or(|out| *readied >= out);
    let readied = row.readied_ns.filter(is_later);
    let delay = readied.and(row.ready_ns).unwrap_or(0);
    let is_known = line.thread_id == row.thread_id;
    if is_known && is_line(row.cpu_ns, row.since_last_ns.unwrap_or(0), delay) {
        return Ok(None);
    }
    let Some(last_switch) = row.last_switch_ns else {
        let is_empty = is_known && is_line(0, 0, 0);
        return is_empty.then_some(Some(Reason::FirstSwitch)).ok_or(());
    };
    let since = |from: Option<i64>| from.map_or(0, |from| (last_switch - from).max(0));
    let (out, since_switch) = (row.previous_out_ns, row.end_ns - last_switch);
    let ran = if row.starts_at_switch {
        row.cpu_ns
    } else {
        since_switch
    };
    // Of several wakes, perf keeps the first.
    let woken = |out| since(facts.first_wake(row.thread_id, out));
    let missing = facts.out_before_missing_out(row);
    let reason = if line.thread_id == ENDED {
        (is_near(line.ran, ran) && facts.had_ended(row)).then_some(Reason::EndedThread)
    } else if !is_known {
        None
    } else if readied.is_some() && readied == out && is_line(row.cpu_ns, since(out), 0) {
        Some(Reason::SameTime)
    } else if !row.starts_at_switch && is_line(ran, since(out), woken(out)) {
        Some(Reason::SkippedSwitch)
    } else if missing.is_some() && is_line(ran, since(missing), woken(missing)) {
        Some(Reason::SkippedOut)
    } else {
        None
    };
    reason.map(Some).ok_or(())
}

/// Compares all runs of a recording. Returns the number of runs, and the number of differences by reason.
///
/// # Panics
/// Panics if only perf or only laglab has a run, or if a difference has no reason.
fn compare_all(folder: &Path, file: &str) -> (usize, BTreeMap<Reason, usize>) {
    let path = folder.join(file);
    let origin = origin(&path);
    let store = imports::open_store(&[path], Cache::Off).unwrap();
    let (lines, rows, facts) = (timehist(folder, file), rows(&store), Facts::read(&store));
    for cpu in lines.keys().chain(rows.keys()) {
        let of_perf = lines.get(cpu).map_or(0, Vec::len);
        let of_laglab = rows.get(cpu).map_or(0, Vec::len);
        assert_eq!(of_laglab, of_perf, "{file}: runs of CPU {cpu}");
    }
    let pairs: Vec<_> = (rows.values().flatten())
        .zip(lines.values().flatten())
        .collect();
    let (mut reasons, mut unexplained) = (BTreeMap::new(), Vec::new());
    for (row, line) in &pairs {
        let end_us = (row.end_ns + origin) / 1000;
        match compare(row, line, &facts)
            .ok()
            .filter(|_| end_us == line.end_us)
        {
            Some(None) => {}
            Some(Some(reason)) => *reasons.entry(reason).or_default() += 1,
            None => unexplained.push((row, line)),
        }
    }
    assert!(
        unexplained.is_empty(),
        "{file}: {} of {}: {:#?}",
        unexplained.len(),
        pairs.len(),
        &unexplained[..unexplained.len().min(5)]
    );
    (pairs.len(), reasons)
}

#[test]
fn runs_are_those_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    if perf::record(folder.path(), EVENTS, &[], LOAD).is_none() {
        return;
    }
    let (count, reasons) = compare_all(folder.path(), "perf.data");
    assert!(count > 15_000, "{count} runs");
    let of_perf: usize = reasons.values().sum();
    assert!(count - of_perf > 5_000, "{count} runs, {reasons:?}");
}

#[test]
fn runs_of_recordings_made_by_hand_are_those_of_perf() {
    let folder = testdata::path("linux");
    let files = std::fs::read_dir(&folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    for name in names.filter(|name| name.ends_with(".data") && !name.starts_with("mut_")) {
        let (count, reasons) = compare_all(&folder, &name);
        assert!(
            count > 1 && reasons.is_empty(),
            "{name}: {count}, {reasons:?}"
        );
    }
}
