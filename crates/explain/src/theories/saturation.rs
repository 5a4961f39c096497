//! Were all CPUs busy?

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{StoreError, Table};

use crate::ranges::overlap;
use crate::survey::interrupted_runs;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, counted, duration,
    percent, runs,
};

/// CPU saturation, by process and by priority.
pub(crate) struct Saturation;

static ABOUT: About = About {
    id: "saturation",
    question: "Were all CPUs busy, so that ready threads had to wait for one?",
    tables: &[Table::CpuRuns],
    sources: &[],
};

/// Of 1,000: what of their time CPUs are busy when they are called saturated.
const BUSY_PER_MILLE: i64 = 950;
/// How long that lasts at least: less is an ordinary burst.
const AT_LEAST_NS: i64 = 500_000_000;
/// Rows shown.
const SHOWN: usize = 10;

impl Theory for Saturation {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "there are no context switches".to_owned(),
            ));
        }
        let stretches = survey
            .load
            .busier_than(BUSY_PER_MILLE, survey.cpus.len(), AT_LEAST_NS);
        // Of a time that is asked for, what holds then.
        let matters = |range: &&Range<i64>| {
            let asked = case.asked.during.as_ref();
            let then = asked.and_then(|asked| overlap(range, asked));
            (
                then.map_or(0, |then| then.end - then.start),
                range.end - range.start,
            )
        };
        let Some(longest) = stretches.iter().max_by_key(matters) else {
            let because = format!(
                "no stretch of {} had CPUs busy for 95 % of its time; over the whole trace they \
                 were for {} {}",
                duration(AT_LEAST_NS),
                percent(busy_ns(case), survey.awake_cpus_ns(&survey.span)),
                survey.of_their_time(&survey.span)
            );
            return Ok(Outcome::Against(because, vec![by_cpu(case)]));
        };
        let all_ns: i64 = stretches.iter().map(|range| range.end - range.start).sum();
        let mut by_process: FxHashMap<(Option<u32>, Option<u32>), i64> = FxHashMap::default();
        let mut by_priority: FxHashMap<Option<i8>, i64> = FxHashMap::default();
        let (mut busy_ns, mut inside_ns) = (0_i64, 0_i64);
        const COLUMNS: [&str; 9] = [
            "start_ns",
            "end_ns",
            "cpu_ns",
            "planned_thread_id",
            "cpu",
            "thread_id",
            "process_id",
            "process_row",
            "priority",
        ];
        runs::each_within(case, longest, &COLUMNS, |view, row, within| {
            busy_ns = busy_ns.saturating_add(within.cpu_ns + within.inside_ns);
            inside_ns = inside_ns.saturating_add(within.inside_ns);
            let process = (view.process_row.get(row), view.process_id.get(row));
            *by_process.entry(process).or_default() += within.cpu_ns;
            *by_priority.entry(view.priority.get(row)).or_default() += within.cpu_ns;
        })?;
        let mut processes: Vec<_> = by_process.into_iter().collect();
        processes.sort_by_key(|((row, id), ns)| (-ns, *row, *id));
        let mut priorities: Vec<_> = by_priority.into_iter().collect();
        priorities.sort_by_key(|(priority, ns)| (-ns, *priority));
        let long_ns = longest.end - longest.start;
        let cpus_ns = long_ns.saturating_mul(survey.cpus.len() as i64);
        let mut most: Vec<String> = processes
            .iter()
            .take(3)
            .map(|((row, id), ns)| {
                format!("{} {}", case.processes(*row, *id), percent(*ns, cpus_ns))
            })
            .collect();
        if inside_ns.saturating_mul(100) >= cpus_ns {
            let share = percent(inside_ns, cpus_ns);
            most.push(format!("DPCs and service routines {share}"));
        }
        let mut sentence = format!(
            "All {} CPUs were busy for {}, from {} to {} ({} of their time): {}.",
            survey.cpus.len(),
            duration(long_ns),
            duration(longest.start),
            duration(longest.end),
            percent(busy_ns, cpus_ns),
            most.join(", ")
        );
        if let others @ 1.. = stretches.len() as u64 - 1 {
            sentence += &format!(
                " So they were in {}: {} in all.",
                counted(others, "other stretch too", "other stretches too"),
                duration(all_ns)
            );
        }
        let within = interrupted_runs(case, Some(longest));
        let of_all = Evidence::new(
            "CPU time of all in the longest stretch",
            format!(
                "SELECT coalesce(sum(cpu_ns + inside_ns), 0) AS busy_ns, coalesce(sum(inside_ns), \
                 0) AS interrupts_ns FROM {within}"
            ),
            &[
                Column::new("busy_ns", "busy", Unit::Duration),
                Column::new(
                    "interrupts_ns",
                    "of that DPCs and service routines",
                    Unit::Duration,
                ),
            ],
        )
        .row([busy_ns, inside_ns].map(|ns| Some(ns.into())));
        let mut of_processes = Evidence::new(
            "CPU time by process in the longest stretch",
            format!(
                "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns FROM {within} \
                 GROUP BY process_row, process_id ORDER BY cpu_ns DESC, process_row NULLS FIRST, \
                 process_id NULLS FIRST LIMIT {SHOWN}"
            ),
            &[
                Column::new("process", "process", Unit::None),
                Column::new("cpu_ns", "CPU time", Unit::Duration),
            ],
        );
        for ((row, _), ns) in processes.iter().take(SHOWN) {
            let name = case.process_label(*row).map(Into::into);
            of_processes = of_processes.row([name, Some((*ns).into())]);
        }
        let mut of_priorities = Evidence::new(
            "CPU time by priority in the longest stretch",
            format!(
                "SELECT priority, sum(cpu_ns) AS cpu_ns FROM {within} GROUP BY priority ORDER BY \
                 cpu_ns DESC, priority NULLS FIRST LIMIT {SHOWN}"
            ),
            &[
                Column::new("priority", "priority", Unit::None),
                Column::new("cpu_ns", "CPU time", Unit::Duration),
            ],
        );
        for (priority, ns) in priorities.iter().take(SHOWN) {
            of_priorities = of_priorities.row([priority.map(Into::into), Some((*ns).into())]);
        }
        let finding = Finding::new(&ABOUT, Severity::Warning, sentence)
            .during(longest.clone())
            .with(of_processes)
            .with(of_priorities)
            .with(of_all)
            .remedy(
                "See which of these programs need to run at all, or at once; give those that may \
                 wait a lower priority",
            );
        Ok(Outcome::For(vec![survey.doubtful.doubted(finding)]))
    }
}

fn busy_ns(case: &Case<'_>) -> i64 {
    case.survey.cpus.iter().map(|cpu| cpu.busy_ns).sum()
}

fn by_cpu(case: &Case<'_>) -> Evidence {
    let doubtful = &case.survey.doubtful;
    let query = match doubtful.runs {
        0 => {
            format!("SELECT cpu, busy_ns, idle_ns FROM cpu_by_processor ORDER BY cpu LIMIT {SHOWN}")
        }
        _ => format!(
            "SELECT cpu, coalesce(sum(cpu_ns) FILTER (WHERE {}), 0) AS busy_ns, \
             coalesce(sum(cpu_ns) FILTER (WHERE thread_id = 0), 0) AS idle_ns FROM cpu_runs GROUP BY \
             cpu ORDER BY cpu LIMIT {SHOWN}",
            doubtful.is_believed()
        ),
    };
    let mut evidence = Evidence::new(
        "How busy each CPU was",
        query,
        &[
            Column::new("cpu", "CPU", Unit::None),
            Column::new("busy_ns", "busy", Unit::Duration),
            Column::new("idle_ns", "idle", Unit::Duration),
        ],
    );
    for used in case.survey.cpus.iter().take(SHOWN) {
        let cells = [used.cpu.into(), used.busy_ns.into(), used.idle_ns.into()];
        evidence = evidence.row(cells.map(Some));
    }
    evidence
}
