//! Theory: single DPCs and service routines ran too long.

use selection::{Condition, Expression, Selection};
use tables::{StoreError, Table};

use super::{FUNCTION, LIMITS, by_routine, name};
use crate::survey::{RoutineUse, kind_name, limit_ns};
use crate::thresholds::{
    FAR_OVER_RUNS, FAR_OVER_TIMES, LONG_RUN_TIMES, USUALLY_LONG_RUNS, WATCHDOG_NS,
};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, duration,
    grouped, percent,
};

/// Theory about DPCs and service routines that run longer than Microsoft's guidance allows.
pub(crate) struct LongRoutines;

static ABOUT: About = About {
    id: "long-interrupts",
    name: "long DPCs and ISRs",
    question: "Did DPCs and ISRs take longer than Microsoft's guidance \
        allows?",
    tables: &[Table::Interrupts],
    sources: &[
        LIMITS,
        Source {
            title: "Microsoft: Bug Check 0x133: DPC_WATCHDOG_VIOLATION",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/debugger/bug-check-0x133-dpc-watchdog-violation",
            ),
        },
    ],
};

impl Theory for LongRoutines {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let used = &case.survey.interrupts.routines;
        // Threaded DPCs and passive ISRs run in threads, and no guidance limits them.
        let limited = || used.iter().filter(|used| limit_ns(used.kind).is_some());
        let runs: i64 = limited().map(|used| used.times).sum();
        let over: i64 = used.iter().map(|used| used.over_limit).sum();
        let all = by_routine(case, "DPCs and ISRs", None, used);
        if let Some(missing) = case.survey.interrupts.missing().filter(|_| over == 0) {
            return Ok(Outcome::NotRecorded(format!("the trace has no {missing}")));
        }
        if over == 0 {
            let because = format!(
                "none of {} runs exceeded its limit, 100 µs for a DPC and 25 µs for an ISR\
                 {}",
                grouped(runs.unsigned_abs()),
                longest(case, limited().next())
            );
            return Ok(Outcome::Against(because, vec![all]));
        }
        let worst = used.iter().filter(|used| used.over_limit > 0);
        let findings = worst.take(5).map(|used| finding(case, used));
        Ok(Outcome::For(findings.collect()))
    }
}

/// Describes the routine with most CPU time.
fn longest(case: &Case<'_>, first: Option<&RoutineUse>) -> String {
    let Some(first) = first else {
        return String::new();
    };
    let Some((total_ns, longest_ns)) = first.exclusive_ns.zip(first.longest_ns) else {
        return String::new();
    };
    if first.times == 1 {
        return format!(
            "; the largest part was a single run of {}: {}",
            name(case, first),
            duration(longest_ns)
        );
    }
    format!(
        "; the largest part was {} {} of {}: {} in total, {} on average, {} at most",
        grouped(first.times.unsigned_abs()),
        kind_name(first.kind),
        name(case, first),
        duration(total_ns),
        duration(total_ns / first.times.max(1)),
        duration(longest_ns)
    )
}

fn finding(case: &Case<'_>, used: &RoutineUse) -> Finding {
    let limit_ns = limit_ns(used.kind).unwrap_or(i64::MAX);
    let longest_ns = used.longest_ns.unwrap_or(0);
    let is_rule = used.over_limit >= USUALLY_LONG_RUNS && used.over_limit * 2 >= used.times;
    let is_felt = longest_ns >= limit_ns.saturating_mul(LONG_RUN_TIMES);
    let is_far_over = used.far_over >= FAR_OVER_RUNS;
    let severity = if is_rule || is_felt || is_far_over {
        Severity::Warning
    } else {
        Severity::Information
    };
    let mut sentence = format!(
        "{} of {} {} of {} ({}) ran longer than the {} that Microsoft's guidance allows; the \
         longest, on CPU {}, took {} and ended at {}.",
        grouped(used.over_limit.unsigned_abs()),
        grouped(used.times.unsigned_abs()),
        kind_name(used.kind),
        name(case, used),
        percent(used.over_limit, used.times),
        duration(limit_ns),
        used.longest_cpu,
        duration(longest_ns),
        duration(used.longest_end_ns)
    );
    if is_far_over {
        sentence += &format!(
            " {} of them took {} or longer.",
            grouped(used.far_over.unsigned_abs()),
            duration(limit_ns.saturating_mul(FAR_OVER_TIMES))
        );
    }
    if longest_ns >= WATCHDOG_NS {
        sentence += " Windows stops with bug check 0x133 when a single run exceeds the limit of \
            the DPC watchdog.";
    }
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .subjects([
            Subject::Routine {
                name: name(case, used),
            },
            Subject::Cpu {
                number: used.longest_cpu,
            },
        ])
        .during(used.longest_end_ns.saturating_sub(longest_ns)..used.longest_end_ns)
        .with(longest_runs(case, used));
    if severity == Severity::Warning {
        let module = case.module_label(used.image_row);
        let look = if module.is_some_and(crate::drivers::is_of_windows) {
            "The driver is part of Windows: look"
        } else {
            "Update the driver. If it is part of Windows, look"
        };
        finding = finding.remedy(format!(
            "{look} for the cause in what it calls (network filters, a device that responds slowly). \
             While the routine runs, no thread runs on its CPU, and sound and input wait."
        ));
    }
    if longest_ns >= WATCHDOG_NS {
        finding = finding.doubt(
            "The limit of the watchdog is a setting of the system (KeQueryDpcWatchdogInformation) \
             and not in the trace",
        );
    }
    finding.doubt("The limit is a guideline: Windows does not enforce it")
}

/// Returns evidence with the sums of a routine and its longest run.
fn longest_runs(case: &Case<'_>, used: &RoutineUse) -> Evidence {
    let limit = limit_ns(used.kind).unwrap_or(i64::MAX);
    let over_limit = Condition::AtLeast("exclusive_ns", limit.saturating_add(1));
    let selection = Selection::new(Table::Interrupts)
        .filter(Condition::is_text("kind", &[used.kind]))
        .filter(Condition::AddressIn(
            "routine",
            vec![used.routine..=used.routine],
        ))
        .filter(Condition::is_or_unknown("image_row", used.image_row))
        .group_by(&["image_row", "routine"]);
    let in_a_view = Selection::new(Table::Interrupts)
        .column("module", Expression::Module("image_row"))
        .column("function", FUNCTION)
        .column("exclusive_ns", Expression::Sum("exclusive_ns"))
        .filter(Condition::HasLabel(
            FUNCTION,
            vec![case.symbol(used.image_row, used.routine)],
        ));
    let of_longest = |column: &str| {
        let order = "ORDER BY duration_ns DESC NULLS LAST, end_ns";
        Expression::Formula(format!("first_value({column} {order})"))
    };
    let module = Expression::Module("image_row");
    let (total, longest) = (
        Expression::Sum("exclusive_ns"),
        Expression::Max("duration_ns"),
    );
    let over = Expression::count_if(over_limit);
    let evidence = Evidence::from_selection("Runs of the routine", selection)
        .column("module", "module", Unit::None, module)
        .column("function", "function", Unit::None, FUNCTION)
        .column("times", "times", Unit::Count, Expression::Count)
        .column("over_limit", "over the limit", Unit::Count, over)
        .column("exclusive_ns", "CPU time", Unit::Duration, total)
        .column("longest_ns", "longest", Unit::Duration, longest)
        .column("longest_cpu", "on CPU", Unit::None, of_longest("cpu"))
        .column(
            "longest_end_ns",
            "until",
            Unit::Moment,
            of_longest("end_ns"),
        );
    evidence.about(in_a_view).row([
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
