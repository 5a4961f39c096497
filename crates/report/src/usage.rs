//! Tables of CPU use, waits and interrupts. They are independent of the findings.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use explain::{Column, Evidence, Unit, Value, Wait};
use maud::{Markup, html};
use session::missing_rows;
use tables::{Identities, Table};
use wording::Printable;

use super::findings::evidence;
use super::{missing, sentence};
use crate::ExplainedTrace;

/// Maximum number of rows of each table.
const ROWS: usize = 20;

/// Returns all tables.
pub(super) fn tables(explained: &ExplainedTrace) -> Markup {
    let has_runs = !explained.explanation.span.is_empty();
    let is_linux = explained.explanation.is_linux;
    html! {
        @if has_runs {
            (evidence(&processes(explained)))
            @let waits = longest_waits(explained);
            @if !waits.rows.is_empty() { (evidence(&waits)) }
        } @else {
            (missing("CPU time by process", &sentence(&missing_rows(Table::CpuRuns, is_linux))))
        }
        @match explained.explanation.survey.interrupts.routines.is_empty() {
            false if is_linux => {}
            false => (evidence(&modules(explained))),
            true => (missing(&format!("{} by module", explained.explanation.terms().routines), &sentence(&missing_rows(Table::Interrupts, is_linux)))),
        }
    }
}

/// Returns CPU time by process.
fn processes(explained: &ExplainedTrace) -> Evidence {
    let (survey, names) = (&explained.explanation.survey, &explained.explanation.names);
    // The last entry of `processes` counts runs whose process is unknown, so it is left out.
    let known = survey.processes.len().saturating_sub(1);
    let used = (0..).zip(&survey.processes[..known]);
    let mut used: Vec<(u32, explain::ProcessUse)> = used
        .map(|(row, used)| (row, *used))
        .filter(|(_, used)| used.runs > 0)
        .collect();
    used.sort_by_key(|(row, used)| (Reverse(used.cpu_ns), *row));
    let table = Evidence::new(
        "CPU time by process, including interrupts",
        format!(
            "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns, count(*) AS runs, \
             nullif(sum(ready_ns), 0) AS ready_ns, nullif(max(ready_ns), 0) AS longest_ready_ns \
             FROM cpu_runs WHERE {} AND process_row IS NOT NULL GROUP BY process_row ORDER BY cpu_ns \
             DESC, process_row LIMIT {ROWS}",
            survey.doubtful.believed().sql()
        ),
        &[
            Column::new("process", "process", Unit::None),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
            Column::new("runs", "runs", Unit::Count),
            Column::new("ready_ns", "ready, no CPU", Unit::Duration),
            Column::new("longest_ready_ns", "longest", Unit::Duration),
        ],
    );
    used.iter().take(ROWS).fold(table, |table, (row, used)| {
        table.row([
            Some(process(names, *row).into()),
            Some(used.cpu_ns.into()),
            Some(used.runs.into()),
            known_nonzero(used.ready_ns),
            known_nonzero(used.longest_ready_ns),
        ])
    })
}

/// Returns a time, or `None` if it is 0, because a sum of 0 may also mean that the time is unknown.
fn known_nonzero(ns: i64) -> Option<Value> {
    (ns != 0).then(|| ns.into())
}

/// Returns the longest waits of threads that were ready to run.
fn longest_waits(explained: &ExplainedTrace) -> Evidence {
    let (survey, names) = (&explained.explanation.survey, &explained.explanation.names);
    let named = |row: Option<u32>| row.map(|row| process(names, row).into());
    let a_routine = explained.explanation.terms().a_routine;
    let longest = &survey.longest_waits;
    // The survey keeps only some of the longest waits. Dropped waits may be as long as the last kept wait, so only
    // waits that are longer than the last kept wait are listed.
    let longer_than = match longest.last() {
        Some(last) if longest.len() > ROWS => last.ready_ns,
        _ => 0,
    };
    let table = Evidence::new(
        "The longest waits of threads that could run",
        format!(
            "SELECT ready_ns, start_ns - ready_ns AS ready_from_ns, process(process_row) AS \
             process, thread_id, cpu, priority, coalesce(rank_out, previous_rank) AS rank, CASE \
             WHEN readied_by_dpc THEN '{a_routine}' ELSE process(readying_process_row) END AS readied_by \
             FROM cpu_runs WHERE thread_id <> 0 AND ready_ns > {longer_than} ORDER BY ready_ns \
             DESC, start_ns DESC, end_ns DESC, cpu DESC LIMIT {ROWS}"
        ),
        &[
            Column::new("ready_ns", "waited", Unit::Duration),
            Column::new("ready_from_ns", "from", Unit::Moment),
            Column::new("process", "process", Unit::None),
            Column::new("thread_id", "thread", Unit::None),
            Column::new("cpu", "CPU", Unit::None),
            Column::new("priority", "priority", Unit::None),
            Column::new("rank", "rank", Unit::None),
            Column::new("readied_by", "readied by", Unit::None),
        ],
    );
    let longest = longest.iter().filter(|wait| wait.ready_ns > longer_than);
    longest.take(ROWS).fold(table, |table, wait: &Wait| {
        table.row([
            Some(wait.ready_ns.into()),
            Some(wait.range().start.into()),
            named(wait.process_row),
            Some(wait.thread_id.into()),
            Some(wait.cpu.into()),
            wait.priority.map(Value::from),
            wait.rank.map(Value::from),
            match wait.readied_by_dpc {
                Some(true) => Some(a_routine.into()),
                _ => named(wait.readying_process_row),
            },
        ])
    })
}

/// Returns the name and id of the process with a row.
fn process(names: &Identities, row: u32) -> String {
    let process = names.process(Some(row), None);
    match (process.name, process.id) {
        (Some(name), Some(id)) => format!("{} ({id})", Printable(name)),
        (Some(name), None) => Printable(name).to_string(),
        (None, Some(id)) => format!("process {id}"),
        (None, None) => "an unknown process".to_owned(),
    }
}

/// Number that replaces the row of an unknown module. It sorts after all rows.
const NO_IMAGE: u32 = u32::MAX;

/// CPU use of one kind of routine in one module.
#[derive(Default)]
struct ModuleUse {
    times: i64,
    exclusive_ns: Option<i64>,
    longest_ns: Option<i64>,
    over_limit: i64,
}

/// Returns CPU use of DPCs and service routines by module.
fn modules(explained: &ExplainedTrace) -> Evidence {
    let (survey, names) = (&explained.explanation.survey, &explained.explanation.names);
    let mut modules: BTreeMap<(&str, u32), ModuleUse> = BTreeMap::new();
    for routine in &survey.interrupts.routines {
        let row = routine.image_row.unwrap_or(NO_IMAGE);
        let sum = modules.entry((routine.kind, row)).or_default();
        sum.times += routine.times;
        if let Some(ns) = routine.exclusive_ns {
            sum.exclusive_ns = Some(sum.exclusive_ns.unwrap_or(0).saturating_add(ns));
        }
        sum.longest_ns = sum.longest_ns.max(routine.longest_ns);
        sum.over_limit += routine.over_limit;
    }
    let mut modules: Vec<((&str, u32), ModuleUse)> = modules.into_iter().collect();
    // The entries are already sorted by kind and row, and the stable sort keeps this order for equal times.
    modules.sort_by_key(|(_, sum)| Reverse(sum.exclusive_ns));
    let table = Evidence::new(
        "DPCs and ISRs by module",
        format!(
            "SELECT kind, module(image_row) AS module, count(*) AS times, sum(exclusive_ns) AS \
             exclusive_ns, max(duration_ns) AS longest_ns, count(CASE WHEN kind IN ('dpc', \
             'timer_dpc', 'io_timer') AND exclusive_ns > 100000 OR kind IN ('isr', 'msi') AND \
             exclusive_ns > 25000 THEN 1 END) AS over_limit FROM interrupts GROUP BY kind, \
             image_row ORDER BY exclusive_ns DESC NULLS LAST, kind, image_row NULLS LAST LIMIT \
             {ROWS}"
        ),
        &[
            Column::new("kind", "kind", Unit::None),
            Column::new("module", "module", Unit::None),
            Column::new("times", "count", Unit::Count),
            Column::new("exclusive_ns", "time", Unit::Duration),
            Column::new("longest_ns", "longest", Unit::Duration),
            Column::new("over_limit", "over 100 or 25 µs", Unit::Count),
        ],
    );
    let modules = modules.iter().take(ROWS);
    modules.fold(table, |table, ((kind, row), sum)| {
        table.row([
            Some((*kind).into()),
            names
                .module((*row != NO_IMAGE).then_some(*row))
                .map(Value::from),
            Some(sum.times.into()),
            sum.exclusive_ns.map(Value::from),
            sum.longest_ns.map(Value::from),
            Some(sum.over_limit.into()),
        ])
    })
}
