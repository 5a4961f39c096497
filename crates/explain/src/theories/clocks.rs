//! Theory: the processors' clocks disagree.

use selection::{Condition, Expression, Selection};
use tables::{StoreError, Table};

use crate::survey::ClockSkew;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Subject, Theory, Unit, duration,
    listed,
};

/// Theory about threads that seem to run before they were readied.
pub(crate) struct Clocks;

static ABOUT: About = About {
    id: "clocks",
    name: "clock errors",
    question: "Do the CPUs' clocks disagree?",
    tables: &[Table::CpuRuns, Table::ReadyThreads],
    sources: &[],
};

/// Maximum number of clocks reported.
const FINDINGS: usize = 4;

impl Theory for Clocks {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn needs_exact_times(&self) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() || !case.survey.has_ready_events {
            let what = "context switches or ready-thread events are missing";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let skews = &case.survey.clock_skews;
        if skews.is_empty() {
            let because = if case.survey.damage.is_any {
                "most runs and ready-thread events show no difference; events are lost or damaged, so short \
                     errors cannot be seen"
            } else {
                "they agree, according to runs and ready-thread events"
            };
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let clauses = skews.iter().take(FINDINGS).map(|skew| {
            format!(
                "CPU {}'s clock is {} by {} or more",
                skew.cpu,
                if skew.is_ahead { "ahead" } else { "behind" },
                duration(skew.by_ns)
            )
        });
        let more = match skews.len().saturating_sub(FINDINGS) {
            0 => String::new(),
            more => format!(", and the clocks of {more} more CPUs disagree"),
        };
        let pairs = skews.iter().flat_map(|skew| &skew.pairs);
        let first = pairs.clone().map(|pair| pair.readied_ns).min();
        let last = pairs.map(|pair| pair.readied_ns.max(pair.end_ns)).max();
        let sentence = format!(
            "The CPUs' clocks disagree: {}{more}. Threads seem to run before they are readied. \
             Waits and durations across CPUs have the same error.",
            listed(clauses)
        );
        let cpus = skews.iter().map(|skew| Subject::Cpu { number: skew.cpu });
        let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence)
            .subjects(cpus)
            .remedy(
                "Check for BIOS updates and the boot option tscsyncpolicy. If the session's clock was not \
                 QPC, record again with QPC",
            )
            .doubt("Only a lower bound of the difference is known");
        if let Some((first, last)) = first.zip(last) {
            finding = finding.during(first..last);
        }
        finding.evidence = skews.iter().take(FINDINGS).map(evidence).collect();
        Ok(Outcome::For(vec![finding]))
    }
}

/// Returns evidence with the threads that seem to be readied during or after their run.
fn evidence(skew: &ClockSkew) -> Evidence {
    let pairs: Vec<String> = skew
        .pairs
        .iter()
        .map(|pair| {
            format!(
                "({}, {}, {}, {}, {}, {})",
                pair.thread_id,
                pair.readying_cpu,
                pair.readied_ns,
                pair.cpu,
                pair.start_ns,
                pair.is_before
            )
        })
        .collect();
    let query = format!(
        "SELECT readied.cpu AS readying_cpu, readied.time_ns AS readied_ns, runs.cpu AS cpu, \
         runs.start_ns AS start_ns, runs.end_ns AS end_ns, readied.thread_id AS thread_id, CASE \
         WHEN is_before THEN runs.end_ns - readied.time_ns ELSE readied.time_ns - runs.start_ns END \
         AS ahead_ns FROM (VALUES {}) AS these (thread, from_cpu, at_ns, on_cpu, ran_ns, is_before) \
         JOIN ready_threads readied ON readied.thread_id = thread AND readied.cpu = from_cpu \
         AND readied.time_ns = at_ns JOIN cpu_runs runs ON runs.thread_id = thread AND runs.cpu = \
         on_cpu AND runs.start_ns = ran_ns ORDER BY ahead_ns DESC, readied_ns, thread_id, cpu, \
         start_ns",
        pairs.join(", ")
    );
    let columns = [
        Column::new("readying_cpu", "readied by CPU", Unit::None),
        Column::new("readied_ns", "at", Unit::Moment),
        Column::new("cpu", "ran on CPU", Unit::None),
        Column::new("start_ns", "from", Unit::Moment),
        Column::new("end_ns", "to", Unit::Moment),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("ahead_ns", "ahead by", Unit::Duration),
    ];
    let title = format!(
        "Threads readied during or after their run, compared with CPU {}",
        skew.cpu
    );
    let mut threads: Vec<u32> = skew.pairs.iter().map(|pair| pair.thread_id).collect();
    threads.sort_unstable();
    threads.dedup();
    let readied = Selection::new(Table::ReadyThreads)
        .column("thread_id", Expression::Column("thread_id"))
        .filter(Condition::is_one_of("thread_id", &threads));
    let mut evidence = Evidence::new(title, query, &columns).about(readied);
    for pair in &skew.pairs {
        evidence = evidence.row([
            Some(pair.readying_cpu.into()),
            Some(pair.readied_ns.into()),
            Some(pair.cpu.into()),
            Some(pair.start_ns.into()),
            Some(pair.end_ns.into()),
            Some(pair.thread_id.into()),
            Some(pair.ahead_ns().into()),
        ]);
    }
    evidence
}
