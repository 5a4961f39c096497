//! Who asks for fine timers, and who gets them?

mod requests;
mod sleeps;

use std::ops::Range;

use tables::{StoreError, Table};

use crate::{About, Case, Finding, Outcome, Severity, Source, Theory, duration, grouped, listed};
use requests::{Asker, DEFAULT_NS, Requests};
use sleeps::{MANY, Sleep, Sleeper};

/// Timer resolutions, and how long threads that sleep for a moment really sleep.
pub(crate) struct Timers;

static ABOUT: About = About {
    id: "timers",
    question: "Did threads sleep longer than they meant to, for want of a timer resolution?",
    tables: &[Table::TimerRequests, Table::CpuRuns, Table::Sessions],
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

/// Sleeps that end at clock interrupts of the default period are this long, less what the thread did
/// between two of them. Programs that ask for 0.5 or 1 ms and mean to sleep for 15 or 16 ms sleep for
/// less or more.
const DEFAULT_SLEEPS: Range<i64> = 15_550_000..15_700_000;

/// By how much sleeps are shorter than the period that they end at, and longer.
const BELOW_NS: i64 = 300_000;
const ABOVE_NS: i64 = 100_000;

/// A request for less is for a finer resolution than the default.
const FINE_NS: i64 = 15_000_000;

/// Where nine of ten sleeps are shorter, they can only be so for a finer resolution: those that begin
/// at any moment and end at clock interrupts of the default period are longer as often as not.
const SHORTEST_NS: i64 = DEFAULT_NS / 2;

/// The first build on which a request counts for its own process only (Windows 10 2004).
const PER_PROCESS: u32 = 19_041;

/// Builds on which the registry's GlobalTimerResolutionRequests makes requests count for all again:
/// Server 2022 and Windows 11.
fn has_global_switch(build: u32) -> bool {
    build == 20_348 || build >= 22_000
}

/// The first build that ignores requests of processes that cannot be seen or heard (Windows 11).
const IGNORES_HIDDEN: u32 = 22_000;

/// Processes told of whose requests do not count.
const REFUSED_TOLD: usize = 5;

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
        let requests = Requests::read(case)?;
        if requests.is_empty {
            let missing = "the trace tells of no request for a timer resolution".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let mut found = vec![resolutions(case, &requests)];
        let first = requests.askers.iter().map(|asker| asker.from_ns).min();
        if let Some(from_ns) = first {
            found.extend(causes(case, &requests, from_ns)?);
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

/// Who asked for what, and what the system's resolution became.
fn resolutions(case: &Case<'_>, requests: &Requests) -> Finding {
    let askers = &requests.askers;
    let finest = requests.effective.iter().map(|(_, ns)| *ns).min();
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
        let held_ns = requests.held_ns(case.survey.span.end, ns);
        if held_ns > 0 {
            sentence += &format!(", for {}", duration(held_ns));
        }
    }
    sentence.push('.');
    Finding::new(&ABOUT, Severity::Information, sentence)
        .with(requests::by_process(case, askers))
        .with(requests::effective(case, requests))
        .doubt(
            "What the clock interrupts cost in power is not in the trace; idle CPUs may skip them",
        )
}

/// What is to be said of processes that sleep for moments, by cause.
fn causes(case: &Case<'_>, requests: &Requests, from_ns: i64) -> Result<Vec<Finding>, StoreError> {
    let build = case.machine()?.os_build;
    let mut of_processes: Vec<_> = sleeps::read(case, from_ns)?.into_iter().collect();
    of_processes.sort_unstable_by_key(|(row, sleeps)| (std::cmp::Reverse(sleeps.len()), *row));
    let mut sleepers: Vec<(Cause, Sleeper)> = Vec::new();
    for (process_row, sleeps) in of_processes {
        let mut askers = requests.askers.iter();
        let own = askers.find(|asker| asker.process_row == Some(process_row));
        match own {
            Some(own) => sleepers.extend(of_asker(requests, own, process_row, &sleeps, build)),
            None => sleepers.extend(of_other(requests, process_row, &sleeps, build)),
        }
    }
    // Where a request counts for all, sleeps of 15 ms are meant.
    if sleepers.iter().any(|(cause, _)| *cause == Cause::Shared) {
        sleepers.retain(|(cause, _)| *cause != Cause::Foreign);
    }
    let mut found = Vec::new();
    for wanted in [Cause::Refused, Cause::Own, Cause::Shared, Cause::Foreign] {
        let of_it = sleepers.iter().filter(|(cause, _)| *cause == wanted);
        let of_it: Vec<&Sleeper> = of_it.map(|(_, sleeper)| sleeper).collect();
        // Who is refused is told one by one.
        let at_once = if wanted == Cause::Refused {
            1
        } else {
            usize::MAX
        };
        for of_it in of_it.chunks(at_once).take(REFUSED_TOLD) {
            let first = of_it[0];
            let mut askers = requests.askers.iter();
            let own = askers.find(|asker| asker.process_row == Some(first.process_row));
            if let Some(asker) = own.or(requests.askers.first()) {
                found.push(said(case, wanted, of_it, asker, (requests, from_ns), build));
            }
        }
    }
    Ok(found)
}

/// Whether a sleep ended at a clock interrupt that comes each so often, as one does of a thread that
/// sleeps again at once.
fn ends_at(period_ns: i64, sleep: &Sleep) -> bool {
    (period_ns - BELOW_NS..period_ns + ABOVE_NS).contains(&sleep.ns)
}

/// Why a process that asked sleeps as long as it does while its request stands: it may be refused
/// for a time only.
fn of_asker(
    requests: &Requests,
    own: &Asker,
    process_row: u32,
    sleeps: &[Sleep],
    build: Option<u32>,
) -> Vec<(Cause, Sleeper)> {
    let mut held = own.held.clone();
    let sleeps = sleeps::within(sleeps, &mut held);
    if sleeps.len() < MANY {
        return Vec::new();
    }
    let may_be_ignored = own.was_ignored || build.is_none_or(|build| build >= IGNORES_HIDDEN);
    let is_refused = |sleep: &Sleep| {
        if !may_be_ignored || own.finest_ns >= FINE_NS {
            return false;
        }
        let end_ns = sleep.end_ns();
        let period_ns = requests.period_ns(end_ns);
        // That the hardware's period is as asked for may be for another's request.
        let counts_for_another = requests.askers.iter().any(|other| {
            other.process_row != own.process_row
                && other.holds(end_ns)
                && other.finest_ns <= own.finest_ns
        });
        DEFAULT_SLEEPS.contains(&sleep.ns)
            || (period_ns > own.finest_ns || counts_for_another)
                && ends_at(requests.default_ns(end_ns), sleep)
    };
    let refused = sleeps.iter().filter(|sleep| is_refused(sleep)).count();
    let all = Sleeper::new(process_row, &sleeps, held);
    if refused * 2 >= sleeps.len() {
        return vec![(Cause::Refused, all)];
    }
    let mut found = Vec::new();
    let row = sleeps::longest_row(&sleeps, is_refused);
    if row.len() >= MANY {
        found.push((Cause::Refused, Sleeper::of_row(process_row, &row)));
    }
    if all.median_ns < FINE_NS as f64 {
        found.push((Cause::Own, all));
    }
    found
}

/// Why a process that did not ask sleeps as long as it does while others' requests stand.
fn of_other(
    requests: &Requests,
    process_row: u32,
    sleeps: &[Sleep],
    build: Option<u32>,
) -> Option<(Cause, Sleeper)> {
    let mut held = requests.held();
    let sleeps = sleeps::within(sleeps, &mut held);
    if sleeps.len() < MANY {
        return None;
    }
    let share = |is: &dyn Fn(&Sleep) -> bool| {
        let count = sleeps.iter().filter(|sleep| is(sleep)).count();
        count as f64 / sleeps.len() as f64
    };
    let is_default = |sleep: &Sleep| {
        let end_ns = sleep.end_ns();
        let default_ns = requests.default_ns(end_ns);
        default_ns > requests.period_ns(end_ns) && ends_at(default_ns, sleep)
    };
    let counts_for_its_own = build.is_none_or(|build| build >= PER_PROCESS);
    let cause = if share(&|sleep| sleep.ns < SHORTEST_NS) >= 0.9 {
        Cause::Shared
    } else if counts_for_its_own && share(&is_default) >= 0.5 {
        Cause::Foreign
    } else {
        return None;
    };
    Some((cause, Sleeper::new(process_row, &sleeps, held)))
}

fn said(
    case: &Case<'_>,
    cause: Cause,
    sleepers: &[&Sleeper],
    asker: &Asker,
    (requests, from_ns): (&Requests, i64),
    build: Option<u32>,
) -> Finding {
    let first = sleepers[0];
    let process = case.process(Some(first.process_row), None);
    let slept = format!(
        "{process} slept {} at a time (the median of {} short sleeps{})",
        milliseconds(first.median_ns),
        grouped(first.sleeps as u64),
        match first.is_row() {
            true => format!(
                " one after the other, from {} to {}",
                duration(first.from_ns),
                duration(first.to_ns)
            ),
            false => String::new(),
        }
    );
    let middle_ns = first.from_ns.midpoint(first.to_ns);
    let period_ns = requests.period_ns(middle_ns);
    let is_coarser = !requests.effective.is_empty() && period_ns > asker.finest_ns;
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
                 does not count{}{}.",
                match is_coarser {
                    true => format!(
                        " (the system's was {} meanwhile)",
                        milliseconds(period_ns as f64)
                    ),
                    false => String::new(),
                },
                match build {
                    Some(IGNORES_HIDDEN..) =>
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
        .with(sleeps::evidence(case, sleepers, from_ns))
        .with(requests::of(case, asker));
    match cause {
        Cause::Own => finding,
        Cause::Refused => finding
            .during(first.from_ns..first.to_ns)
            .with(requests::effective(case, requests))
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
