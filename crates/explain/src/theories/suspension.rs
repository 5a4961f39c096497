//! Theory: the machine was suspended, or stood still.

use std::ops::Range;

use tables::{StoreError, Table};

use crate::ranges::period_ns;
use crate::thresholds::{PROMPT_NS, SUSPEND_MAX_NS};
use crate::{
    About, Case, Finding, Outcome, Severity, Theory, counted, duration, grouped, listed, runs,
};

/// Theory about suspend gaps, during which no CPU logged an event.
pub(crate) struct Suspension;

static ABOUT: About = About {
    id: "suspended",
    name: "suspension",
    question: "Was the machine suspended during the trace, or did it stand still?",
    tables: &[
        Table::CpuRuns,
        Table::Interrupts,
        Table::Samples,
        Table::ReadyThreads,
    ],
    sources: &[],
};

/// Maximum number of gaps that a sentence names, and of gaps that are examined.
const NAMED: usize = 4;
const EXAMINED: usize = 64;

impl Theory for Suspension {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "the trace has no context switches".to_owned(),
            ));
        }
        let silences = &case.survey.suspend_gaps;
        let stops = stops(case)?;
        let others = silences.ranges.iter();
        let others = others.filter(|gap| !stops.gaps.contains(gap));
        let mut findings: Vec<Finding> = Vec::new();
        if !stops.gaps.is_empty() {
            findings.push(stood_still(case, &stops));
        }
        let all_ns: i64 = others.clone().map(|gap| gap.end - gap.start).sum();
        if let Some(longest) = others.max_by_key(|gap| gap.end - gap.start) {
            let sentence = format!(
                "No CPU logged an event for {} in total; the longest gap is from {} to {}. The machine was suspended, \
                 or this time was not recorded.",
                duration(all_ns),
                duration(longest.start),
                duration(longest.end)
            );
            findings.push(
                Finding::new(&ABOUT, Severity::Information, sentence)
                    .during(longest.clone())
                    .with(silences.evidence(&case.survey.span)),
            );
        }
        let has_samples = case.table(Table::Samples)?.rows() > 0;
        if findings.is_empty() && !has_samples && !case.is_linux() {
            let why = "the trace has no samples, so short stops look like times without work";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() {
            let because = format!(
                "at no time were all CPUs silent for {} or longer",
                duration(silences.at_least_ns)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        Ok(Outcome::For(findings))
    }
}

/// Gaps in which the machine stood still. They are shorter than a suspension.
#[derive(Default)]
struct Stops {
    gaps: Vec<Range<i64>>,
    /// Number of the gaps in which the machine had work: a thread ran or was ready from before the start of the gap until
    /// after its end. If the machine stands still several times, it has no work in some of the gaps.
    busy: usize,
}

/// Returns the gaps in which the machine stood still. Returns none if it had work in none of them: then it was probably
/// suspended.
fn stops(case: &Case<'_>) -> Result<Stops, StoreError> {
    const COLUMNS: [&str; 7] = [
        "start_ns",
        "end_ns",
        "cpu_ns",
        "cpu",
        "thread_id",
        "planned_thread_id",
        "ready_ns",
    ];
    let survey = &case.survey;
    let mut stops = Stops::default();
    // Lost events leave gaps, too.
    if survey.contradictions > 0 || survey.lacks_switches() {
        return Ok(stops);
    }
    let short = survey.suspend_gaps.ranges.iter().filter(|gap| {
        gap.end - gap.start < SUSPEND_MAX_NS && survey.complete.holds(gap.start, gap.end)
    });
    for gap in short.take(EXAMINED) {
        let mut is_busy = false;
        let around = gap.start..gap.end.saturating_add(PROMPT_NS);
        runs::each_within(case, &around, &COLUMNS, |view, row, _| {
            let ready_ns = view.ready_ns.get(row).unwrap_or(0);
            let since = view.start_ns[row].saturating_sub(ready_ns);
            is_busy |= since <= gap.start && gap.end < view.end_ns[row];
        })?;
        stops.gaps.push(gap.clone());
        stops.busy += usize::from(is_busy);
    }
    Ok(match stops.busy {
        0 => Stops::default(),
        _ => stops,
    })
}

fn stood_still(case: &Case<'_>, stops: &Stops) -> Finding {
    let Stops { gaps: stops, busy } = stops;
    let all_ns: i64 = stops.iter().map(|gap| gap.end - gap.start).sum();
    let one = |gap: &Range<i64>| {
        format!(
            "{} at {}",
            duration(gap.end - gap.start),
            duration(gap.start)
        )
    };
    let mut times: Vec<String> = stops.iter().take(NAMED).map(one).collect();
    if stops.len() > NAMED {
        let more = (stops.len() - NAMED) as u64;
        times.push(counted(more, "more time", "more times"));
    }
    let every = period_ns(stops).map_or(String::new(), |ns| {
        format!(", about every {}", duration(ns))
    });
    let still = match &times[..] {
        [once] if stops.len() == 1 => format!("once, for {once}"),
        _ => format!(
            "{} times, for {} in total{every}: {}",
            grouped(stops.len() as u64),
            duration(all_ns),
            listed(times)
        ),
    };
    let had_work = if *busy == stops.len() {
        "although threads ran before and after".to_owned()
    } else {
        format!("although threads ran before and after {busy} of these times")
    };
    let sentence =
        format!("The whole machine stood still {still}. No CPU logged an event, {had_work}.");
    let first = &stops[0];
    Finding::new(&ABOUT, Severity::Warning, sentence)
        .because(
            "Nothing inside the machine can do that: a hypervisor gave the CPUs to others or took a snapshot, firmware \
             (SMI) stopped all CPUs, or a debugger held the machine.",
        )
        .during(first.start..stops[stops.len() - 1].end)
        .moments(stops.to_vec())
        .delay(all_ns, "of all programs, without the time between the stops")
        .with(case.survey.suspend_gaps.evidence(&case.survey.span))
        .remedy(
            "In a virtual machine, look at the host at these times: CPU overcommitment (ready time), snapshots, \
             backups, live migration. On real hardware, update the firmware, and remove tools that read sensors \
             through it",
        )
        .doubt("If events of all CPUs were lost at the same time, the trace looks the same")
}
