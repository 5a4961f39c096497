//! Theory: threads slept longer than intended because of the timer resolution.

mod requests;
mod sleeps;

use tables::{StoreError, Table};

use crate::thresholds::{
    CLOCK_PERIOD_NS, DEFAULT_SLEEP_MAX_NS, DEFAULT_SLEEP_MIN_NS, FINE_RESOLUTION_NS,
    SLEEP_ABOVE_NS, SLEEP_BELOW_NS, SLEEPS,
};
use crate::{About, Case, Finding, Outcome, Severity, Source, Theory, duration, grouped, listed};
use requests::{Asker, Requests};
use sleeps::{Sleep, Sleeper};

/// Theory about timer resolutions and the lengths of short sleeps.
pub(crate) struct Timers;

static ABOUT: About = About {
    id: "timers",
    name: "timer resolution",
    question: "Did threads sleep longer than intended because of the timer resolution?",
    tables: &[Table::TimerRequests, Table::CpuRuns, Table::Sessions],
    sources: &[
        Source {
            title: "Microsoft: timeBeginPeriod (per process since Windows 10 2004; ignored for \
                invisible processes since Windows 11)",
            url: Some(
                "https://learn.microsoft.com/windows/win32/api/timeapi/nf-timeapi-timebeginperiod",
            ),
        },
        Source {
            title: "Bruce Dawson: Windows Timer Resolution: The Great Rule Change",
            url: Some(
                "https://randomascii.wordpress.com/2020/10/04/windows-timer-resolution-the-great-rule-change",
            ),
        },
        Source {
            title: "PC-Tuning: Fixing timing precision in Windows after the Great Rule Change (1.496, \
                    15.5 and 15.62 ms)",
            url: None,
        },
    ],
};

/// Length of a sleep, in nanoseconds. If nine of ten sleeps of a process are shorter, a finer resolution than the
/// default must be in effect. With the default period, half of the sleeps that end at clock interrupts would be longer.
const SHORTEST_NS: i64 = CLOCK_PERIOD_NS / 2;

/// First build of Windows on which a request counts only for the process that made it (Windows 10
/// 2004).
pub const TIMERS_PER_PROCESS_FROM: u32 = 19_041;

/// Returns true if the registry value GlobalTimerResolutionRequests can make requests count for all
/// processes. This is possible on Server 2022 and Windows 11.
fn has_global_switch(build: u32) -> bool {
    build == 20_348 || build >= 22_000
}

/// First build of Windows that ignores requests of processes that are neither visible nor audible
/// (Windows 11).
const IGNORES_HIDDEN: u32 = 22_000;

/// Maximum number of processes reported because Windows refuses their requests.
const REFUSED_TOLD: usize = 5;

/// Reason for the length of a process's sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The process requested a resolution, but Windows gives it the default resolution.
    Refused,
    /// The process requested a resolution and got it.
    Own,
    /// The process requested no resolution, but another process's request counts for it.
    Shared,
    /// The process requested no resolution, and another process's request does not count for it.
    Foreign,
}

impl Theory for Timers {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let requests = Requests::read(case)?;
        if requests.is_empty {
            let missing = "the trace records no request for a timer resolution".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let mut findings = vec![resolutions(case, &requests)];
        let first = requests.askers.iter().map(|asker| asker.from_ns).min();
        if let Some(from_ns) = first {
            findings.extend(causes(case, &requests, from_ns)?);
        }
        let is_quiet = |findings: &Finding| findings.severity == Severity::Information;
        Ok(if findings.iter().all(is_quiet) {
            Outcome::Noted(
                "no sleep is known to be longer than requested".into(),
                findings,
            )
        } else {
            Outcome::For(findings)
        })
    }
}

/// Describes the requests and the system's timer resolution.
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
        0 => "No process requested a finer timer resolution".to_owned(),
        1 => format!("One process requested a timer resolution: {}", listed(who)),
        count => format!(
            "{count} processes requested a timer resolution: {}",
            listed(who)
        ),
    };
    if let Some(ns) = finest {
        let per_second = 1_000_000_000 / ns;
        sentence += &format!(
            "; the finest resolution of the system was {}, {} clock interrupts per second",
            duration(ns),
            grouped(per_second.unsigned_abs())
        );
        let held_ns = requests.held_ns(case.survey.span.end, ns);
        if held_ns > 0 {
            sentence += &format!(", for {}", duration(held_ns));
        }
    }
    sentence.push('.');
    let named = askers.iter().take(5);
    let named = named.filter_map(|asker| case.process_subject(asker.process_row, asker.process_id));
    Finding::new(&ABOUT, Severity::Information, sentence)
        .subjects(named)
        .with(requests::by_process(case, askers))
        .with(requests::effective(case, requests))
        .doubt(
            "The trace does not show the power that clock interrupts use; idle CPUs may skip them",
        )
}

/// Describes processes with short sleeps, by cause.
fn causes(case: &Case<'_>, requests: &Requests, from_ns: i64) -> Result<Vec<Finding>, StoreError> {
    let build = case.machine()?.os_build;
    let mut of_processes: Vec<_> = sleeps::read(case, from_ns)?.into_iter().collect();
    of_processes.sort_unstable_by_key(|(row, sleeps)| (std::cmp::Reverse(sleeps.len()), *row));
    let mut sleepers: Vec<(Cause, Sleeper)> = Vec::new();
    for (process_row, sleeps) in of_processes {
        let mut askers = requests.askers.iter();
        let own = askers.find(|asker| asker.process_row == Some(process_row));
        match own {
            Some(own) => {
                sleepers.extend(causes_for_asker(requests, own, process_row, &sleeps, build))
            }
            None => sleepers.extend(cause_for_other(requests, process_row, &sleeps, build)),
        }
    }
    // If a request counts for all processes, it also shortens their sleeps. A sleep that still takes 15 ms is intended.
    if sleepers.iter().any(|(cause, _)| *cause == Cause::Shared) {
        sleepers.retain(|(cause, _)| *cause != Cause::Foreign);
    }
    let mut findings = Vec::new();
    for wanted in [Cause::Refused, Cause::Own, Cause::Shared, Cause::Foreign] {
        let of_it = sleepers.iter().filter(|(cause, _)| *cause == wanted);
        let of_it: Vec<&Sleeper> = of_it.map(|(_, sleeper)| sleeper).collect();
        // Each process whose requests are refused has a separate finding.
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
                findings.push(finding(
                    case, wanted, of_it, asker, requests, from_ns, build,
                ));
            }
        }
    }
    Ok(findings)
}

/// Returns true if the length of a sleep shows that the sleep ended at a clock interrupt of this period. The thread
/// must begin its next sleep soon after a clock interrupt.
fn ends_at(period_ns: i64, sleep: &Sleep) -> bool {
    (period_ns - SLEEP_BELOW_NS..period_ns + SLEEP_ABOVE_NS).contains(&sleep.ns)
}

/// Returns the reason for the length of a process's sleeps while a request of the process is active. Windows
/// may refuse the request for only a part of the time.
fn causes_for_asker(
    requests: &Requests,
    own: &Asker,
    process_row: u32,
    sleeps: &[Sleep],
    build: Option<u32>,
) -> Vec<(Cause, Sleeper)> {
    let mut ranges = own.held.clone();
    let sleeps = sleeps::within(sleeps, &mut ranges);
    if sleeps.len() < SLEEPS {
        return Vec::new();
    }
    let may_be_ignored = own.was_ignored || build.is_none_or(|build| build >= IGNORES_HIDDEN);
    let is_refused = |sleep: &Sleep| {
        if !may_be_ignored || own.finest_ns >= FINE_RESOLUTION_NS {
            return false;
        }
        let end_ns = sleep.end_ns();
        let period_ns = requests.period_ns(end_ns);
        // The clock may have the requested period because of a request of another process.
        let counts_for_another = requests.askers.iter().any(|other| {
            other.process_row != own.process_row
                && other.holds(end_ns)
                && other.finest_ns <= own.finest_ns
        });
        (DEFAULT_SLEEP_MIN_NS..DEFAULT_SLEEP_MAX_NS).contains(&sleep.ns)
            || (period_ns > own.finest_ns || counts_for_another)
                && ends_at(requests.default_ns(end_ns), sleep)
    };
    let refused = sleeps.iter().filter(|sleep| is_refused(sleep)).count();
    let all = Sleeper::new(process_row, &sleeps, ranges);
    if refused * 2 >= sleeps.len() {
        return vec![(Cause::Refused, all)];
    }
    let mut findings = Vec::new();
    let row = sleeps::longest_row(&sleeps, is_refused);
    if row.len() >= SLEEPS {
        findings.push((Cause::Refused, Sleeper::of_row(process_row, &row)));
    }
    if all.median_ns < FINE_RESOLUTION_NS as f64 {
        findings.push((Cause::Own, all));
    }
    findings
}

/// Returns the reason for the length of a process's sleeps while requests of other processes are active. The
/// process itself has no request.
fn cause_for_other(
    requests: &Requests,
    process_row: u32,
    sleeps: &[Sleep],
    build: Option<u32>,
) -> Option<(Cause, Sleeper)> {
    let mut ranges = requests.active_ranges();
    let sleeps = sleeps::within(sleeps, &mut ranges);
    if sleeps.len() < SLEEPS {
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
    let counts_for_its_own = build.is_none_or(|build| build >= TIMERS_PER_PROCESS_FROM);
    let cause = if share(&|sleep| sleep.ns < SHORTEST_NS) >= 0.9 {
        Cause::Shared
    } else if counts_for_its_own && share(&is_default) >= 0.5 {
        Cause::Foreign
    } else {
        return None;
    };
    Some((cause, Sleeper::new(process_row, &sleeps, ranges)))
}

/// Returns the finding about processes whose sleeps have the same cause. `asker` is the process whose request matters.
fn finding(
    case: &Case<'_>,
    cause: Cause,
    sleepers: &[&Sleeper],
    asker: &Asker,
    requests: &Requests,
    from_ns: i64,
    build: Option<u32>,
) -> Finding {
    let first = sleepers[0];
    let severity = match cause {
        Cause::Refused => Severity::Warning,
        Cause::Own | Cause::Shared | Cause::Foreign => Severity::Information,
    };
    let sentence = sentence(case, cause, first, asker, requests, build);
    let own = case.process_subject(Some(first.process_row), None);
    let asking = case.process_subject(asker.process_row, asker.process_id);
    let finding = Finding::new(&ABOUT, severity, sentence)
        .subjects([own, asking].into_iter().flatten())
        .with(sleeps::evidence(case, sleepers, from_ns))
        .with(requests::evidence(case, asker));
    match cause {
        Cause::Own => finding,
        Cause::Refused => finding
            .during(first.from_ns..first.to_ns)
            .with(requests::effective(case, requests))
            .remedy(
                "If the program must be on time while it is hidden, it should opt out \
                 (SetProcessInformation with PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION) or \
                 use a high-resolution waitable timer.",
            )
            .doubt(if asker.was_ignored { "The trace does not contain the intended length of sleeps" } else {
                    "The trace does not record whether Windows ignores the request: this is \
                     inferred from the sleeps. The intended length of the sleeps is not recorded \
                     either"
                }),
        Cause::Shared => finding.doubt(
            "The trace does not contain the registry: the conclusion that the request counts for \
             all processes is inferred from the sleeps",
        ),
        Cause::Foreign => finding
            .remedy(
                "A program that needs short sleeps should request a resolution itself \
                 (timeBeginPeriod). On Windows 11 and Server 2022, GlobalTimerResolutionRequests = \
                 1 lets requests count for all processes, which uses more power.",
            )
            .doubt(
                "The trace does not contain the intended length of sleeps. Microsoft documents that \
                 since Windows 10 2004 a request counts only for its own process, but not how long \
                 other processes then sleep: 15.5 ms (31 periods of 0.5 ms) was measured",
            ),
    }
}

/// Returns a sentence that says how long a process slept, and why.
fn sentence(
    case: &Case<'_>,
    cause: Cause,
    sleeper: &Sleeper,
    asker: &Asker,
    requests: &Requests,
    build: Option<u32>,
) -> String {
    let process = case.process(Some(sleeper.process_row), None);
    let slept = format!(
        "{process} slept {} at a time (the median of {} short sleeps{})",
        milliseconds(sleeper.median_ns),
        grouped(sleeper.sleeps as u64),
        if sleeper.is_row() {
            format!(
                " in a row, from {} to {}",
                duration(sleeper.from_ns),
                duration(sleeper.to_ns)
            )
        } else {
            String::new()
        }
    );
    let middle_ns = sleeper.from_ns.midpoint(sleeper.to_ns);
    let period_ns = requests.period_ns(middle_ns);
    let is_coarser = !requests.effective.is_empty() && period_ns > asker.finest_ns;
    let wish = milliseconds(asker.finest_ns as f64);
    let who = case.process(asker.process_row, asker.process_id);
    let is_own_only = build.is_some_and(|build| build >= TIMERS_PER_PROCESS_FROM);
    match cause {
        Cause::Own => format!("{slept}. It had requested a timer resolution of {wish} and got it."),
        Cause::Refused if asker.was_ignored => format!(
            "{slept} although it requested a timer resolution of {wish}: Windows ignores the \
                 request, because the process is neither visible nor audible."
        ),
        Cause::Refused => format!(
            "{slept} although it requested a timer resolution of {wish}: its request has no \
                 effect{}{}.",
            if is_coarser {
                format!(
                    " (the system's resolution was {})",
                    milliseconds(period_ns as f64)
                )
            } else {
                String::new()
            },
            match build {
                Some(IGNORES_HIDDEN..) =>
                    ", as on Windows 11 for processes that are neither visible nor audible",
                _ => "",
            }
        ),
        Cause::Shared => {
            let rule = match build {
                Some(build) if build < TIMERS_PER_PROCESS_FROM => {
                    "before Windows 10 2004 the finest request counts for all processes".to_owned()
                }
                Some(build) if has_global_switch(build) => {
                    "GlobalTimerResolutionRequests lets requests count for all processes here"
                        .to_owned()
                }
                _ => "this request counts for it, too".to_owned(),
            };
            format!("{slept} without its own request: {who} requested {wish}, and {rule}.")
        }
        Cause::Foreign => {
            let rule = if is_own_only {
                "since Windows 10 2004 a request counts only for the process that made it"
            } else {
                "that request does not count for it"
            };
            format!("{slept}, although {who} requested a timer resolution of {wish}: {rule}.")
        }
    }
}

/// Returns the text for a time in milliseconds with up to three decimals, to distinguish 1.496 from
/// 1.5.
fn milliseconds(ns: f64) -> String {
    let text = format!("{:.3}", ns / 1e6);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} ms")
}
