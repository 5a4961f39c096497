//! Who asks for fine timers, and who gets them?

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, StoreError, Table, TimerRequestsView};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, duration,
    grouped, listed,
};

/// Timer resolutions, and how long threads that sleep for a moment really sleep.
pub(crate) struct Timers;

static ABOUT: About = About {
    id: "timers",
    question: "Did threads sleep longer than they meant to, for want of a timer resolution?",
    tables: &[Table::TimerRequests, Table::CpuRuns, Table::Sessions],
    record: "timer requests and context switches (xperf -on PROC_THREAD+CSWITCH+DISPATCHER -start \
             t -on Microsoft-Windows-Kernel-Power, WPR keywords ProcessThread, CSwitch and \
             ReadyThread and the provider Microsoft-Windows-Kernel-Power)",
    sources: &[
        Source {
            title: "Microsoft: timeBeginPeriod (a process's own since Windows 10 2004; not for those \
                    out of sight since Windows 11)",
            url: "https://learn.microsoft.com/windows/win32/api/timeapi/nf-timeapi-timebeginperiod",
        },
        Source {
            title: "Bruce Dawson: Windows Timer Resolution: The Great Rule Change",
            url: "https://randomascii.wordpress.com/2020/10/04/windows-timer-resolution-the-great-rule-change",
        },
        Source {
            title: "PC-Tuning: Fixing timing precision in Windows after the Great Rule Change (1.496, \
                    15.5 and 15.62 ms)",
            url: "",
        },
    ],
};

/// A sleep that is shorter than this may be one of a millisecond or a few.
const SHORT_NS: i64 = 20_000_000;

/// So many short sleeps are needed for a median that says something.
const MANY: i64 = 20;

/// Sleeps this long on the median end at clock interrupts of the default period, 15.625 ms, or at
/// each 31st of 0.5 ms. Programs that mean to sleep for 15 or 16 ms are below or above.
const DEFAULT_NS: Range<f64> = 15_300_000.0..15_700_000.0;

/// The median of sleeps for which a finer resolution holds.
const FINE_NS: f64 = 15_000_000.0;

/// The median of sleeps that can only be so short for a finer resolution.
const SHORTEST_NS: f64 = 7_800_000.0;

/// The first build on which a request counts for its own process only (Windows 10 2004).
const PER_PROCESS: u32 = 19_041;

/// Builds on which the registry's GlobalTimerResolutionRequests makes requests count for all again:
/// Server 2022 and Windows 11.
fn has_global_switch(build: u32) -> bool {
    build == 20_348 || build >= 22_000
}

/// What a row of `timer_requests` tells.
#[derive(Clone, Debug)]
struct Request {
    time_ns: i64,
    is_effective: bool,
    resolution_ns: Option<i64>,
    process_row: Option<u32>,
    process_id: Option<u32>,
    ignored: Option<bool>,
}

/// A process that asked for a resolution finer than it had.
#[derive(Clone, Copy, Debug)]
struct Asker {
    process_row: Option<u32>,
    process_id: Option<u32>,
    /// The finest that it asked for.
    finest_ns: i64,
    /// When it first asked.
    from_ns: i64,
    /// Windows said that it ignores it.
    was_ignored: bool,
}

/// Short sleeps of a process, of those that began while somebody's request held.
#[derive(Clone, Debug)]
struct Sleeper {
    process_row: u32,
    sleeps: i64,
    median_ns: f64,
    shortest_ns: i64,
}

/// Why a process sleeps as long as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It asked, and Windows gives it nothing finer than the default.
    Refused,
    /// It asked, and gets it.
    Own,
    /// It did not ask; another's request counts for it.
    Shared,
    /// It did not ask; another's request does not count for it.
    Foreign,
}

impl Theory for Timers {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let requests = requests(case)?;
        if requests.is_empty() {
            let missing = "the trace tells of no request for a timer resolution".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let askers = askers(&requests);
        let mut found = vec![resolutions(case, &requests, &askers)];
        let first = askers.iter().map(|asker| asker.from_ns).min();
        if let Some(from_ns) = first {
            let build = case.os_build()?;
            let sleepers = sleepers(case, from_ns)?;
            found.extend(causes(case, &askers, &sleepers, from_ns, build));
        }
        let is_quiet = |found: &Finding| found.severity == Severity::Information;
        Ok(match found.iter().all(is_quiet) {
            true => Outcome::Noted(
                "no sleep is known to have been longer than asked for".into(),
                found,
            ),
            false => Outcome::For(found),
        })
    }
}

fn requests(case: &Case<'_>) -> Result<Vec<Request>, StoreError> {
    let columns = [
        "time_ns",
        "kind",
        "resolution_ns",
        "process_id",
        "process_row",
        "ignored",
    ];
    let table = case.table(Table::TimerRequests)?;
    let mut requests = Vec::new();
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = TimerRequestsView::new(&batch)?;
        requests.extend((0..view.len()).map(|row| Request {
            time_ns: view.time_ns[row],
            is_effective: view.kind.get(row) == Some("effective"),
            resolution_ns: view.resolution_ns.get(row),
            process_row: view.process_row.get(row),
            process_id: view.process_id.get(row),
            ignored: view.ignored.get(row),
        }));
    }
    Ok(requests)
}

/// Who asked for a resolution, those of the finest first.
fn askers(requests: &[Request]) -> Vec<Asker> {
    let mut askers: Vec<Asker> = Vec::new();
    for request in requests.iter().filter(|request| !request.is_effective) {
        let Some(ns) = request.resolution_ns.filter(|ns| *ns > 0) else {
            continue;
        };
        let ignored = request.ignored == Some(true);
        let who = (request.process_row, request.process_id);
        match askers
            .iter_mut()
            .find(|asker| (asker.process_row, asker.process_id) == who)
        {
            Some(asker) => {
                asker.finest_ns = asker.finest_ns.min(ns);
                asker.was_ignored |= ignored;
            }
            None => askers.push(Asker {
                process_row: who.0,
                process_id: who.1,
                finest_ns: ns,
                from_ns: request.time_ns,
                was_ignored: ignored,
            }),
        }
    }
    askers.sort_by_key(|asker| (asker.finest_ns, asker.from_ns));
    askers
}

/// Who asked for what, and what the system's resolution became.
fn resolutions(case: &Case<'_>, requests: &[Request], askers: &[Asker]) -> Finding {
    let finest = requests.iter().filter(|request| request.is_effective);
    let finest = finest
        .filter_map(|request| request.resolution_ns.filter(|ns| *ns > 0))
        .min();
    let who = askers.iter().take(5).map(|asker| {
        format!(
            "{} ({}{})",
            case.process(asker.process_row, asker.process_id),
            duration(asker.finest_ns),
            if asker.was_ignored { ", ignored" } else { "" }
        )
    });
    let mut sentence = match askers.len() {
        0 => "No process asked for a finer timer resolution".to_owned(),
        1 => format!("A timer resolution was asked for by {}", listed(who)),
        count => format!(
            "{count} processes asked for a timer resolution: {}",
            listed(who)
        ),
    };
    if let Some(ns) = finest {
        let per_second = 1_000_000_000 / ns;
        sentence += &format!(
            "; the system's was {} at the finest, {} clock interrupts a second",
            duration(ns),
            grouped(per_second.unsigned_abs())
        );
    }
    sentence.push('.');
    Finding::new(&ABOUT, Severity::Information, sentence)
        .with(requests_by_process(case, askers))
        .with(effective(requests))
        .doubt(
            "What the clock interrupts cost in power is not in the trace; idle CPUs may skip them",
        )
}

fn requests_by_process(case: &Case<'_>, askers: &[Asker]) -> Evidence {
    const SHOWN: usize = 20;
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("finest_ns", "finest asked for", Unit::Duration),
        Column::new("from_ns", "since", Unit::Moment),
        Column::new("was_ignored", "ignored", Unit::None),
    ];
    let query = format!(
        "SELECT process(process_row) AS process, min(resolution_ns) AS finest_ns, min(time_ns) AS \
         from_ns, max(CASE WHEN ignored THEN 1 ELSE 0 END) AS was_ignored FROM timer_requests WHERE \
         kind = 'request' AND resolution_ns > 0 GROUP BY process_row, process_id ORDER BY \
         finest_ns, from_ns, process_id LIMIT {SHOWN}"
    );
    let mut askers: Vec<&Asker> = askers.iter().collect();
    askers.sort_by_key(|asker| (asker.finest_ns, asker.from_ns, asker.process_id));
    let mut evidence = Evidence::new("Who asked for a timer resolution", query, &columns);
    for asker in askers.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(asker.process_row).map(Into::into),
            Some(asker.finest_ns.into()),
            Some(asker.from_ns.into()),
            Some(i64::from(asker.was_ignored).into()),
        ]);
    }
    evidence
}

/// What one process asked for.
fn requests_of(case: &Case<'_>, asker: &Asker) -> Evidence {
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("finest_ns", "finest asked for", Unit::Duration),
        Column::new("from_ns", "since", Unit::Moment),
    ];
    let is_it = match asker.process_row {
        Some(row) => format!("process_row = {row}"),
        None => match asker.process_id {
            Some(id) => format!("process_row IS NULL AND process_id = {id}"),
            None => "process_row IS NULL AND process_id IS NULL".to_owned(),
        },
    };
    let query = format!(
        "SELECT process(min(process_row)) AS process, min(resolution_ns) AS finest_ns, min(time_ns) \
         AS from_ns FROM timer_requests WHERE kind = 'request' AND resolution_ns > 0 AND {is_it}"
    );
    Evidence::new("What was asked for", query, &columns).row([
        case.process_label(asker.process_row).map(Into::into),
        Some(asker.finest_ns.into()),
        Some(asker.from_ns.into()),
    ])
}

fn effective(requests: &[Request]) -> Evidence {
    const SHOWN: usize = 10;
    let columns = [
        Column::new("resolution_ns", "resolution", Unit::Duration),
        Column::new("times", "times", Unit::Count),
        Column::new("first_ns", "first", Unit::Moment),
        Column::new("interrupts_per_second", "interrupts a second", Unit::Count),
    ];
    let query = format!(
        "SELECT resolution_ns, count(*) AS times, min(time_ns) AS first_ns, 1000000000 / \
         resolution_ns AS interrupts_per_second FROM timer_requests WHERE kind = 'effective' AND \
         resolution_ns > 0 GROUP BY resolution_ns ORDER BY resolution_ns LIMIT {SHOWN}"
    );
    let mut sums: Vec<(i64, i64, i64)> = Vec::new();
    for request in requests.iter().filter(|request| request.is_effective) {
        let Some(ns) = request.resolution_ns.filter(|ns| *ns > 0) else {
            continue;
        };
        match sums.iter_mut().find(|(known, ..)| *known == ns) {
            Some((_, times, _)) => *times += 1,
            None => sums.push((ns, 1, request.time_ns)),
        }
    }
    sums.sort_unstable();
    let mut evidence = Evidence::new("The system's resolution", query, &columns);
    for (ns, times, first_ns) in sums.into_iter().take(SHOWN) {
        evidence = evidence.row([
            Some(ns.into()),
            Some(times.into()),
            Some(first_ns.into()),
            Some((1_000_000_000 / ns).into()),
        ]);
    }
    evidence
}

/// Short sleeps that began at that time or later, by process.
fn sleepers(case: &Case<'_>, from_ns: i64) -> Result<Vec<Sleeper>, StoreError> {
    let columns = [
        "end_ns",
        "process_row",
        "previous_out_ns",
        "since_last_ns",
        "previous_state",
        "previous_wait_reason",
    ];
    let table = case.table(Table::CpuRuns)?;
    let mut by_process: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    for batch in case.batches(&table, from_ns..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let is_sleep = matches!(view.previous_wait_reason.get(row), Some(4 | 11))
                && view.previous_state.get(row) == Some(5);
            let began_ns = view.previous_out_ns.get(row).unwrap_or(i64::MIN);
            if !is_sleep || began_ns < from_ns {
                continue;
            }
            let slept = view.since_last_ns.get(row).filter(|ns| *ns < SHORT_NS);
            if let Some((process, ns)) = view.process_row.get(row).zip(slept) {
                by_process.entry(process).or_default().push(ns);
            }
        }
    }
    let sleepers = by_process
        .into_iter()
        .filter(|(_, sleeps)| sleeps.len() as i64 >= MANY)
        .map(|(process_row, mut sleeps)| Sleeper {
            process_row,
            sleeps: sleeps.len() as i64,
            shortest_ns: sleeps.iter().copied().min().unwrap_or(0),
            median_ns: median(&mut sleeps),
        });
    let mut sleepers: Vec<Sleeper> = sleepers.collect();
    sleepers.sort_by_key(|sleeper| (Reverse(sleeper.sleeps), sleeper.process_row));
    Ok(sleepers)
}

/// The middle of some numbers, or the mean of the two in the middle.
fn median(numbers: &mut [i64]) -> f64 {
    let middle = numbers.len() / 2;
    let is_even = numbers.len().is_multiple_of(2);
    let (below, high, _) = numbers.select_nth_unstable(middle);
    match below.iter().max().filter(|_| is_even) {
        Some(low) => (*low as f64 + *high as f64) / 2.0,
        None => *high as f64,
    }
}

/// What is to be said of processes that sleep for moments, by cause.
fn causes(
    case: &Case<'_>,
    askers: &[Asker],
    sleepers: &[Sleeper],
    from_ns: i64,
    build: Option<u32>,
) -> Vec<Finding> {
    let asker_of = |sleeper: &Sleeper| {
        askers
            .iter()
            .find(|asker| asker.process_row == Some(sleeper.process_row))
    };
    let cause = |sleeper: &Sleeper| {
        let is_default = DEFAULT_NS.contains(&sleeper.median_ns);
        match asker_of(sleeper) {
            Some(_) if sleeper.median_ns < FINE_NS => Some(Cause::Own),
            Some(asker) if is_default && asker.finest_ns < 10_000_000 => Some(Cause::Refused),
            None if sleeper.median_ns < SHORTEST_NS => Some(Cause::Shared),
            None if is_default => Some(Cause::Foreign),
            _ => None,
        }
    };
    let mut found = Vec::new();
    for wanted in [Cause::Refused, Cause::Own, Cause::Shared, Cause::Foreign] {
        let of_it: Vec<&Sleeper> = sleepers
            .iter()
            .filter(|sleeper| cause(sleeper) == Some(wanted))
            .collect();
        let Some(first) = of_it.first() else {
            continue;
        };
        let own = asker_of(first);
        let Some(asker) = own.or(askers.first()) else {
            continue;
        };
        found.push(said(case, wanted, &of_it, asker, from_ns, build));
    }
    found
}

fn said(
    case: &Case<'_>,
    cause: Cause,
    sleepers: &[&Sleeper],
    asker: &Asker,
    from_ns: i64,
    build: Option<u32>,
) -> Finding {
    let first = sleepers[0];
    let process = case.process(Some(first.process_row), None);
    let slept = format!(
        "{process} slept {} at a time (the median of {} short sleeps)",
        milliseconds(first.median_ns),
        grouped(first.sleeps.unsigned_abs())
    );
    let wish = milliseconds(asker.finest_ns as f64);
    let who = case.process(asker.process_row, asker.process_id);
    let is_own_only = build.is_some_and(|build| build >= PER_PROCESS);
    let (sentence, severity) = match cause {
        Cause::Own => (
            format!("{slept}: it had asked for a timer resolution of {wish} itself, and has it."),
            Severity::Information,
        ),
        Cause::Refused if asker.was_ignored => (
            format!(
                "{slept} although it had asked for a timer resolution of {wish} itself: Windows \
                 ignores the request, because nothing of the process can be seen or heard."
            ),
            Severity::Warning,
        ),
        Cause::Refused => (
            format!(
                "{slept} although it had asked for a timer resolution of {wish} itself: its request \
                 does not count{}.",
                match build {
                    Some(22_000..) =>
                        ", as Windows 11 does with processes of which nothing can be seen or heard",
                    _ => "",
                }
            ),
            Severity::Warning,
        ),
        Cause::Shared => {
            let rule = match build {
                Some(build) if build < PER_PROCESS => {
                    "before Windows 10 2004 the finest request counts for all".to_owned()
                }
                Some(build) if has_global_switch(build) => {
                    "GlobalTimerResolutionRequests makes requests count for all here".to_owned()
                }
                _ => "another's request counts for it".to_owned(),
            };
            let sentence = format!(
                "{slept} without having asked for a resolution itself, as {who} had asked for \
                 {wish}: {rule}."
            );
            (sentence, Severity::Information)
        }
        Cause::Foreign => {
            let rule = match is_own_only {
                true => "since Windows 10 2004 a request counts for its own process only",
                false => "it does not count for it",
            };
            let sentence = format!(
                "{slept}, though {who} had asked for a timer resolution of {wish}: {rule}."
            );
            (sentence, Severity::Information)
        }
    };
    let finding = Finding::new(&ABOUT, severity, sentence)
        .with(slept_by_process(case, sleepers, from_ns))
        .with(requests_of(case, asker));
    match cause {
        Cause::Own => finding,
        Cause::Refused => finding
            .remedy(
                "If the program must be on time while it is hidden, it opts out: \
                 SetProcessInformation with PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION, or it \
                 uses a high-resolution waitable timer.",
            )
            .doubt(match asker.was_ignored {
                true => "How long it meant to sleep is not in the trace",
                false => {
                    "the trace does not say that the request is ignored: that the process was hidden \
                     is inferred from its sleeps, and how long it meant to sleep is not in the trace"
                }
            }),
        Cause::Shared => finding.doubt(
            "That the request counts for all is inferred from the sleeps: the registry is not in \
             the trace",
        ),
        Cause::Foreign => finding
            .remedy(
                "A program that needs short sleeps asks for a resolution itself (timeBeginPeriod); \
                 on Windows 11 and Server 2022 GlobalTimerResolutionRequests = 1 lets requests count \
                 for all again, which costs power.",
            )
            .doubt(
                "That it meant to sleep for a shorter time is not in the trace. The rule is \
                 documented; that sleeps then take 31 periods of 0.5 ms, 15.5 ms, is inferred from \
                 measurements",
            ),
    }
}

/// Milliseconds with the digits that tell 1.496 from 1.5.
fn milliseconds(ns: f64) -> String {
    let text = format!("{:.3}", ns / 1e6);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} ms")
}

fn slept_by_process(case: &Case<'_>, sleepers: &[&Sleeper], from_ns: i64) -> Evidence {
    const SHOWN: usize = 10;
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("sleeps", "short sleeps", Unit::Count),
        Column::new("median_ns", "median", Unit::Duration),
        Column::new("shortest_ns", "shortest", Unit::Duration),
    ];
    let shown = &sleepers[..sleepers.len().min(SHOWN)];
    let rows: Vec<String> = shown.iter().map(|s| s.process_row.to_string()).collect();
    let query = format!(
        "SELECT process(process_row) AS process, count(*) AS sleeps, median(since_last_ns) AS \
         median_ns, min(since_last_ns) AS shortest_ns FROM cpu_runs WHERE process_row IN ({}) AND \
         previous_state = 5 AND previous_wait_reason IN (4, 11) AND previous_out_ns >= {from_ns} \
         AND since_last_ns < {SHORT_NS} GROUP BY process_row ORDER BY sleeps DESC, process_row",
        rows.join(", ")
    );
    let mut evidence = Evidence::new("Sleeps shorter than 20 ms", query, &columns);
    for sleeper in shown {
        evidence = evidence.row([
            case.process_label(Some(sleeper.process_row))
                .map(Into::into),
            Some(sleeper.sleeps.into()),
            Some(sleeper.median_ns.into()),
            Some(sleeper.shortest_ns.into()),
        ]);
    }
    evidence
}
