//! Do single DPCs and service routines take longer than they may?

use tables::{StoreError, Table};

use super::{LIMITS, by_routine, called, name};
use crate::survey::{RoutineUse, limit_ns};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, duration,
    grouped, percent,
};

/// DPCs beyond 100 µs, service routines beyond 25 µs.
pub(crate) struct LongRoutines;

static ABOUT: About = About {
    id: "long-interrupts",
    question: "Did DPCs and interrupt service routines take longer than they may?",
    tables: &[Table::Interrupts],
    sources: &[
        LIMITS,
        Source {
            title: "Microsoft: Bug Check 0x133: DPC_WATCHDOG_VIOLATION",
            url: "https://learn.microsoft.com/windows-hardware/drivers/debugger/bug-check-0x133-dpc-watchdog-violation",
        },
    ],
};

/// Of so many runs beyond the limit on, a routine that is beyond it more often than not is no
/// accident.
const MANY: i64 = 100;

/// A single routine of so many times its limit (10 ms of a DPC) is felt: it is as long as a
/// buffer of sound.
const FELT: i64 = 100;

/// From there on the watchdog is worth a word; what it allows is documented to be much more than
/// the limit and to be a system's own.
const WATCHED_NS: i64 = 1_000_000_000;

impl Theory for LongRoutines {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let routines = &case.survey.interrupts.routines;
        if routines.is_empty() {
            let missing = "the trace holds no DPC and no service routine";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let runs: i64 = routines.iter().map(|used| used.times).sum();
        let over: i64 = routines.iter().map(|used| used.over_limit).sum();
        let all = by_routine(case, "DPCs and service routines", "", routines);
        if over == 0 {
            let because = format!(
                "none of {} ran longer than its limit, 100 µs of a DPC and 25 µs of a service \
                 routine{}",
                grouped(runs.unsigned_abs()),
                longest(case, routines)
            );
            return Ok(Outcome::Against(because, vec![all]));
        }
        let worst = routines.iter().filter(|used| used.over_limit > 0);
        let found = worst.take(5).map(|used| found(case, used));
        Ok(Outcome::For(found.collect()))
    }
}

/// The routine of most time, in words.
fn longest(case: &Case<'_>, routines: &[RoutineUse]) -> String {
    let Some(first) = routines.first() else {
        return String::new();
    };
    let Some((total_ns, longest_ns)) = first.exclusive_ns.zip(first.longest_ns) else {
        return String::new();
    };
    format!(
        "; most time went to {} {} of {}: {} in all, {} on average, {} at most",
        grouped(first.times.unsigned_abs()),
        called(first.kind),
        name(case, first),
        duration(total_ns),
        duration(total_ns / first.times.max(1)),
        duration(longest_ns)
    )
}

fn found(case: &Case<'_>, used: &RoutineUse) -> Finding {
    let limit_ns = limit_ns(used.kind).unwrap_or(i64::MAX);
    let longest_ns = used.longest_ns.unwrap_or(0);
    let is_rule = used.over_limit >= MANY && used.over_limit * 2 >= used.times;
    let is_felt = longest_ns >= limit_ns.saturating_mul(FELT);
    let severity = match is_rule || is_felt {
        true => Severity::Warning,
        false => Severity::Information,
    };
    let mut sentence = format!(
        "{} of {} {} of {} ({}) ran longer than the {} that Microsoft's guidance allows them; the \
         longest, on CPU {}, took {} and ended at {}.",
        grouped(used.over_limit.unsigned_abs()),
        grouped(used.times.unsigned_abs()),
        called(used.kind),
        name(case, used),
        percent(used.over_limit, used.times),
        duration(limit_ns),
        used.longest_cpu,
        duration(longest_ns),
        duration(used.longest_end_ns)
    );
    if longest_ns >= WATCHED_NS {
        sentence += " Windows' watchdog ends the system (bug check 0x133) when a single one takes \
                     longer than it allows.";
    }
    let mut finding = Finding::new(&ABOUT, severity, sentence).with(longest_runs(case, used));
    if severity == Severity::Warning {
        finding = finding.remedy(
            "Update the driver; if it is a driver of Windows, look at what works inside it (filters \
             of the network, a device that answers slowly). Its CPU runs no thread meanwhile, and \
             sound and input wait.",
        );
    }
    if longest_ns >= WATCHED_NS {
        finding = finding.doubt(
            "What the watchdog allows is a setting of the system (KeQueryDpcWatchdogInformation) \
             and not in the trace",
        );
    }
    finding.doubt("The limit is a guideline: Windows does not enforce it")
}

/// The longest runs of a routine.
fn longest_runs(case: &Case<'_>, used: &RoutineUse) -> Evidence {
    let columns = [
        Column::new("module", "module", Unit::None),
        Column::new("function", "function", Unit::None),
        Column::new("times", "times", Unit::Count),
        Column::new("over_limit", "over the limit", Unit::Count),
        Column::new("exclusive_ns", "CPU time", Unit::Duration),
        Column::new("longest_ns", "longest", Unit::Duration),
        Column::new("longest_cpu", "on CPU", Unit::None),
        Column::new("longest_end_ns", "until", Unit::Moment),
    ];
    let image = match used.image_row {
        Some(row) => format!("image_row = {row}"),
        None => "image_row IS NULL".to_owned(),
    };
    let query = format!(
        "SELECT module(min(image_row)) AS module, symbol(min(image_row), min(routine)) AS function, \
         count(*) AS times, sum(CASE WHEN exclusive_ns > {limit} THEN 1 ELSE 0 END) AS over_limit, \
         sum(exclusive_ns) AS exclusive_ns, max(duration_ns) AS longest_ns, first_value(cpu ORDER \
         BY duration_ns DESC NULLS LAST, end_ns) AS longest_cpu, first_value(end_ns ORDER BY \
         duration_ns DESC NULLS LAST, end_ns) AS longest_end_ns FROM interrupts WHERE kind = \
         '{kind}' AND routine = {routine} AND {image}",
        limit = limit_ns(used.kind).unwrap_or(i64::MAX),
        kind = used.kind,
        routine = used.routine,
    );
    Evidence::new("How long it ran", query, &columns).row([
        case.module_label(used.image_row).map(Into::into),
        Some(case.symbol(used.image_row, used.routine).into()),
        Some(used.times.into()),
        Some(used.over_limit.into()),
        used.exclusive_ns.map(Into::into),
        used.longest_ns.map(Into::into),
        Some(used.longest_cpu.into()),
        Some(used.longest_end_ns.into()),
    ])
}
