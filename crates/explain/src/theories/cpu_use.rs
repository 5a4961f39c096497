//! Who used the CPUs, and which modules were they in?

use rustc_hash::FxHashMap;
use tables::{SamplesView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, counted, duration,
    grouped, percent,
};

/// CPU time by process and module.
pub(crate) struct CpuUse;

static ABOUT: About = About {
    id: "cpu-use",
    question: "Were the CPUs used: by which programs, and in which of their modules?",
    tables: &[Table::CpuRuns, Table::Samples],
    record: "context switches or samples (xperf -on CSWITCH+PROFILE, WPR keywords CSwitch and \
             SampledProfile)",
    sources: &[],
};

/// Rows shown.
const SHOWN: usize = 10;

impl Theory for CpuUse {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut findings = Vec::new();
        findings.extend(by_process(case).map(|finding| case.survey.doubtful.doubted(finding)));
        findings.extend(by_module(case)?);
        Ok(match findings.is_empty() {
            true => Outcome::NotRecorded("there are neither context switches nor samples".into()),
            false => Outcome::For(findings),
        })
    }
}

fn by_process(case: &Case<'_>) -> Option<Finding> {
    let survey = &case.survey;
    let busy_ns: i64 = survey.cpus.iter().map(|cpu| cpu.busy_ns).sum();
    let used = &survey.processes;
    // The last are those of no known process.
    let unknown = used.len().checked_sub(1)?;
    let mut processes: Vec<usize> = (0..used.len()).filter(|row| used[*row].runs > 0).collect();
    processes.sort_by_key(|row| (-used[*row].cpu_ns, *row));
    let row_of = |place: usize| (place != unknown).then_some(place as u32);
    let told = |place: usize| {
        let whose = case.processes(row_of(place), None);
        format!("{whose} ({})", duration(used[place].cpu_ns))
    };
    let most = match processes.as_slice() {
        [] if survey.doubtful.runs == 0 => return None,
        [] => String::new(),
        [first, next, ..] if *first == unknown => {
            format!(", most with {}, then with {}", told(*first), told(*next))
        }
        [first, ..] => format!(", most with {}", told(*first)),
    };
    let mut evidence = Evidence::new(
        "CPU time by process",
        format!(
            "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns, count(*) AS runs, \
             sum(ready_ns) AS ready_ns, max(ready_ns) AS longest_ready_ns FROM cpu_runs WHERE {} \
             GROUP BY process_row ORDER BY cpu_ns DESC, process_row NULLS LAST LIMIT {SHOWN}",
            survey.doubtful.is_believed()
        ),
        &[
            Column::new("process", "process", Unit::None),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
            Column::new("runs", "runs", Unit::Count),
            Column::new("ready_ns", "waited for a CPU", Unit::Duration),
            Column::new("longest_ready_ns", "at most", Unit::Duration),
        ],
    );
    for row in processes.iter().take(SHOWN) {
        let used = &used[*row];
        let waited = |ns: i64| (used.known_waits > 0).then(|| ns.into());
        evidence = evidence.row([
            case.process_label(row_of(*row)).map(Into::into),
            Some(used.cpu_ns.into()),
            Some(used.runs.into()),
            waited(used.ready_ns),
            waited(used.longest_ready_ns),
        ]);
    }
    let sentence = format!(
        "CPUs were busy for {} ({} of their time){most}.",
        duration(busy_ns),
        percent(busy_ns, survey.all_cpus_ns()),
    );
    Some(Finding::new(&ABOUT, Severity::Information, sentence).with(evidence))
}

#[derive(Clone, Copy, Default)]
struct Sampled {
    samples: u64,
    weight_ns: Option<i64>,
}

fn by_module(case: &Case<'_>) -> Result<Option<Finding>, StoreError> {
    let table = case.table(Table::Samples)?;
    let columns = [
        "time_ns",
        "thread_id",
        "image_row",
        "weight_ns",
        "count",
        "in_dpc",
        "in_isr",
    ];
    let mut images: FxHashMap<Option<u32>, Sampled> = FxHashMap::default();
    let (mut all, mut idle) = (0_u64, 0_u64);
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let count = u64::from(view.count[row]);
            let interrupts =
                view.in_dpc.get(row) == Some(true) || view.in_isr.get(row) == Some(true);
            if view.thread_id[row] == 0 && !interrupts {
                idle += count;
                continue;
            }
            all += count;
            let sampled = images.entry(view.image_row.get(row)).or_default();
            sampled.samples += count;
            if let Some(ns) = view.weight_ns.get(row) {
                sampled.weight_ns = Some(sampled.weight_ns.unwrap_or(0).saturating_add(ns));
            }
        }
    }
    let mut modules: FxHashMap<&str, Sampled> = FxHashMap::default();
    let mut unknown = Sampled::default();
    for (image, sampled) in images {
        let sum = match case.module_label(image) {
            Some(module) => modules.entry(module).or_default(),
            None => &mut unknown,
        };
        sum.samples += sampled.samples;
        if let Some(ns) = sampled.weight_ns {
            sum.weight_ns = Some(sum.weight_ns.unwrap_or(0).saturating_add(ns));
        }
    }
    if all == 0 {
        return Ok(None);
    }
    let mut modules: Vec<(&str, Sampled)> = modules.into_iter().collect();
    modules.sort_by_key(|(module, sampled)| (std::cmp::Reverse(sampled.samples), *module));
    let busy =
        "NOT (thread_id = 0 AND NOT coalesce(in_dpc, false) AND NOT coalesce(in_isr, false))";
    let mut evidence = Evidence::new(
        "Samples of busy CPUs by module",
        format!(
            "SELECT module(image_row) AS module, sum(count) AS samples, sum(weight_ns) AS weight_ns \
             FROM samples WHERE {busy} AND module(image_row) IS NOT NULL GROUP BY 1 ORDER BY samples \
             DESC, module LIMIT {SHOWN}"
        ),
        &[
            Column::new("module", "module", Unit::None),
            Column::new("samples", "samples", Unit::Count),
            Column::new("weight_ns", "for", Unit::Duration),
        ],
    );
    for (module, sampled) in modules.iter().take(SHOWN) {
        evidence = evidence.row([
            Some((*module).into()),
            Some(sampled.samples.into()),
            sampled.weight_ns.map(Into::into),
        ]);
    }
    let total = Evidence::new(
        "Samples of busy and idle CPUs",
        format!(
            "SELECT coalesce(sum(count) FILTER (WHERE {busy}), 0) AS busy, coalesce(sum(count) FILTER \
             (WHERE NOT ({busy})), 0) AS idle, coalesce(sum(count) FILTER (WHERE {busy} AND \
             module(image_row) IS NULL), 0) AS of_no_module FROM samples"
        ),
        &[
            Column::new("busy", "busy", Unit::Count),
            Column::new("idle", "idle", Unit::Count),
            Column::new("of_no_module", "at addresses of no known module", Unit::Count),
        ],
    )
    .row([all, idle, unknown.samples].map(|count| Some(count.into())));
    let share = |samples: u64| percent(samples as i64, all as i64);
    let nowhere = format!(
        "at addresses of no known module ({})",
        share(unknown.samples)
    );
    let most = match modules.first() {
        None => format!("all {nowhere}"),
        Some((module, sampled)) => {
            let within = format!("in {module} ({})", share(sampled.samples));
            match unknown.samples > sampled.samples {
                true => format!("most {nowhere}, then {within}"),
                false => format!("most {within}"),
            }
        }
    };
    let sentence = match idle {
        0 => format!(
            "{} of busy CPUs: {most}.",
            counted(all, "sample", "samples")
        ),
        _ => format!(
            "{} of {} samples found a busy CPU, {most}.",
            grouped(all),
            grouped(all + idle)
        ),
    };
    let finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .with(evidence)
        .with(total);
    let finding = match idle {
        0 => finding.doubt(
            "No sample found an idle CPU: those of idle CPUs were left out of the trace, and how \
             much of their time CPUs were busy cannot be told by samples",
        ),
        _ => finding,
    };
    Ok(Some(match unknown.samples {
        0 => finding,
        samples => finding.doubt(format!(
            "{} are at addresses of no known module: made at run time, or of modules that the trace \
             does not list",
            share(samples)
        )),
    }))
}
