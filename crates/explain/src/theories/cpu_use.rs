//! Theory: the CPUs were used, by process and by module.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{SamplesView, StoreError, Table};

use crate::ranges::overlap;
use crate::survey::{interrupted_runs, is_inside_routine, selected_runs, totals};
use crate::thresholds::IDLE_SAMPLES;
use crate::{
    About, Case, Column, Evidence, Finding, Name, Outcome, ProcessUse, Severity, Subject, Theory,
    Unit, counted, duration, grouped, moment, percent, runs,
};

/// Theory about CPU time by process and module.
pub(crate) struct CpuUse;

static ABOUT: About = About {
    id: "cpu-use",
    name: "CPU use",
    question: "Which programs and modules used the CPUs?",
    tables: &[Table::CpuRuns, Table::Samples],
    sources: &[],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

impl Theory for CpuUse {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut findings: Vec<Finding> = Vec::new();
        let survey = &case.survey;
        if let Some(range) = asked_range(case) {
            let (used, idle_ns) = use_within(case, &range)?;
            findings.extend(by_process(case, &used, idle_ns, Some(&range)));
        }
        let idle_ns = survey.idle_interrupts_ns();
        findings.extend(by_process(case, &survey.processes, idle_ns, None));
        let findings = findings.into_iter();
        let mut findings: Vec<Finding> = findings
            .map(|finding| survey.doubtful.doubted(finding))
            .map(|finding| match survey.complete.missing() {
                Some(missing) => finding.doubt(format!("No events of {missing} are recorded")),
                None => finding,
            })
            .collect();
        findings.extend(by_module(case)?);
        Ok(if findings.is_empty() {
            Outcome::NotRecorded("the trace has neither context switches nor samples".into())
        } else {
            Outcome::For(findings)
        })
    }
}

/// Returns the intersection of the time range in scope with the time of the trace.
fn asked_range(case: &Case<'_>) -> Option<Range<i64>> {
    let range = case.scope.during.as_ref()?;
    // A moment (a range of 1 ns) has no CPU time.
    overlap(range, &case.survey.span).filter(|range| range.end - range.start > 1)
}

/// Returns the CPU use of each process within a range, by row in `processes`. The last entry is for
/// unknown processes. Also returns the time for which DPCs and service routines interrupted idle
/// threads, in nanoseconds.
fn use_within(case: &Case<'_>, range: &Range<i64>) -> Result<(Vec<ProcessUse>, i64), StoreError> {
    let mut used = vec![ProcessUse::default(); case.survey.processes.len()];
    let unknown = used.len().saturating_sub(1);
    const COLUMNS: [&str; 8] = [
        "start_ns",
        "end_ns",
        "cpu_ns",
        "planned_thread_id",
        "cpu",
        "thread_id",
        "process_row",
        "ready_ns",
    ];
    let idle_ns = runs::each_within(case, range, &COLUMNS, |view, row, within| {
        let process = view
            .process_row
            .get(row)
            .map_or(unknown, |row| row as usize);
        if let Some(used) = used.get_mut(process.min(unknown)) {
            let ran_ns = within.cpu_ns + within.inside_ns;
            used.add(ran_ns, within.inside_ns, view.ready_ns.get(row));
        }
    })?;
    Ok((used, idle_ns))
}

/// Describes the CPU time of processes, in the whole trace or in a range. `idle_ns` is the time for
/// which DPCs and service routines interrupted idle threads.
fn by_process(
    case: &Case<'_>,
    used: &[ProcessUse],
    idle_ns: i64,
    range: Option<&Range<i64>>,
) -> Option<Finding> {
    let survey = &case.survey;
    // The last entry is for unknown processes.
    let unknown = used.len().checked_sub(1)?;
    let mut processes: Vec<usize> = (0..used.len()).filter(|row| used[*row].runs > 0).collect();
    processes.sort_by_key(|row| (-used[*row].own_ns(), *row));
    let busy_ns: i64 = used.iter().map(|used| used.cpu_ns).sum::<i64>() + idle_ns;
    let inside_ns: i64 = used.iter().map(|used| used.interrupts_ns).sum::<i64>() + idle_ns;
    let row_of = |place: usize| (place != unknown).then_some(place as u32);
    let time = |place: usize| {
        let whose = case.processes(row_of(place), None);
        format!("{whose} ({})", duration(used[place].own_ns()))
    };
    if processes.is_empty() && survey.doubtful.runs == 0 && range.is_none() {
        return None;
    }
    let most = match processes.as_slice() {
        [] => String::new(),
        [first, next, ..] if *first == unknown => {
            format!(
                " The threads that used most CPU time: {}, then {}.",
                time(*first),
                time(*next)
            )
        }
        [first, ..] => format!(" The process that used most CPU time: {}.", time(*first)),
    };
    let all = totals(case, "Total CPU time", range, [busy_ns, inside_ns]);
    let sentence = busy_cpus(case, range, busy_ns, inside_ns) + &most;
    let named = processes
        .iter()
        .take(if processes.first() == Some(&unknown) {
            2
        } else {
            1
        });
    let named = named.filter_map(|place| case.process_subject(Some(row_of(*place)?), None));
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .subjects(named)
        .with(processes_evidence(case, used, &processes, range))
        .with(all);
    if let Some(range) = range {
        finding = finding.during(range.clone());
    }
    if let Some(skew) = survey.clock_skews.first() {
        finding = finding.doubt(format!(
            "The CPUs' clocks disagree by {} or more: waits for a CPU, and runs during which a \
             clock jumped, have the same error",
            duration(skew.by_ns)
        ));
    }
    Some(if survey.interrupts.routines.is_empty() {
        finding.doubt(format!(
            "{} are not recorded: their time counts as time of the interrupted threads",
            wording::capitalized(case.terms().routines)
        ))
    } else {
        finding
    })
}

/// Returns a sentence about the time for which the CPUs were busy.
fn busy_cpus(case: &Case<'_>, range: Option<&Range<i64>>, busy_ns: i64, inside_ns: i64) -> String {
    let when = range.map_or_else(String::new, |range| {
        format!("From {} to {}, ", moment(range.start), moment(range.end))
    });
    let whole = range.unwrap_or(&case.survey.span);
    let share = format!(
        "{} {}",
        percent(busy_ns, case.survey.awake_cpus_ns(whole)),
        case.survey.of_their_time(whole)
    );
    let together = match case.survey.cpus.len() {
        0 | 1 => "",
        _ => " in total",
    };
    let the = if range.is_some() { "the" } else { "The" };
    let least = match case.survey.doubtful.cpu_ns {
        0 => "",
        _ => "at least ",
    };
    let interrupted = match inside_ns {
        0 => String::new(),
        ns => format!(", {} of that with {}", duration(ns), case.terms().routines),
    };
    format!(
        "{when}{the} CPUs were busy for {least}{}{together} ({share}){interrupted}.",
        duration(busy_ns),
    )
}

/// Returns evidence with the CPU time of processes. `processes` has places in `used`, the process with most time first.
fn processes_evidence(
    case: &Case<'_>,
    used: &[ProcessUse],
    processes: &[usize],
    range: Option<&Range<i64>>,
) -> Evidence {
    // The last entry is for unknown processes.
    let row_of = |place: usize| (place + 1 < used.len()).then_some(place as u32);
    let runs = interrupted_runs(case, range);
    let mut evidence = Evidence::new(
        "CPU time by process",
        format!(
            "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns, sum(inside_ns) AS \
             interrupts_ns, count(*) AS runs, sum(ready_ns) AS ready_ns, max(ready_ns) AS \
             longest_ready_ns FROM {runs} GROUP BY process_row ORDER BY cpu_ns DESC, process_row \
             NULLS LAST LIMIT {SHOWN}"
        ),
        &[
            Column::new("process", "process", Unit::None),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
            Column::new("interrupts_ns", "interrupted for", Unit::Duration),
            Column::new("runs", "runs", Unit::Count),
            Column::new("ready_ns", "waited for a CPU", Unit::Duration),
            Column::new("longest_ready_ns", "longest wait", Unit::Duration),
        ],
    )
    .about(selected_runs(
        case,
        range,
        "process",
        Expression::Process("process_row"),
    ));
    for row in processes.iter().take(SHOWN) {
        let used = &used[*row];
        let waited = |ns: i64| (used.known_waits > 0).then(|| ns.into());
        evidence = evidence.row([
            case.process_label(row_of(*row)).map(Into::into),
            Some(used.own_ns().into()),
            Some(used.interrupts_ns.into()),
            Some(used.runs.into()),
            waited(used.ready_ns),
            waited(used.longest_ready_ns),
        ]);
    }
    evidence
}

#[derive(Clone, Copy, Default)]
struct SampleSum {
    samples: u64,
    weight_ns: Option<i64>,
}

/// Samples by module.
struct Modules<'c> {
    /// Modules with their samples on busy CPUs, the module with most samples first.
    modules: Vec<(&'c str, SampleSum)>,
    /// Samples on busy CPUs outside known modules.
    unknown: SampleSum,
    /// Number of samples on busy CPUs.
    busy: u64,
    /// Number of samples on idle CPUs.
    idle: u64,
}

impl<'c> Modules<'c> {
    fn read(case: &'c Case<'_>) -> Result<Modules<'c>, StoreError> {
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
        let mut images: FxHashMap<Option<u32>, SampleSum> = FxHashMap::default();
        let (mut busy, mut idle) = (0_u64, 0_u64);
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                let count = u64::from(view.count[row]);
                let interrupts = is_inside_routine(&view, row);
                if view.thread_id[row] == 0 && !interrupts {
                    idle += count;
                    continue;
                }
                busy += count;
                let sampled = images.entry(view.image_row.get(row)).or_default();
                sampled.samples += count;
                if let Some(ns) = view.weight_ns.get(row) {
                    sampled.weight_ns = Some(sampled.weight_ns.unwrap_or(0).saturating_add(ns));
                }
            }
        }
        let mut modules: FxHashMap<&str, SampleSum> = FxHashMap::default();
        let mut unknown = SampleSum::default();
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
        let mut modules: Vec<(&str, SampleSum)> = modules.into_iter().collect();
        modules.sort_by_key(|(module, sampled)| (std::cmp::Reverse(sampled.samples), *module));
        Ok(Modules {
            modules,
            unknown,
            busy,
            idle,
        })
    }

    fn evidence(&self) -> [Evidence; 2] {
        let busy = Condition::Any(vec![
            Condition::is_not("thread_id", 0),
            Condition::IsTrue("in_dpc"),
            Condition::IsTrue("in_isr"),
        ]);
        let selection = Selection::new(Table::Samples)
            .filter(busy.clone())
            .filter(Condition::IsNamed(Expression::Module("image_row")))
            .group_by(&["module"])
            .order(&[Order::descending("samples"), Order::ascending("module")])
            .limit(SHOWN);
        let module = Expression::Module("image_row");
        let mut evidence = Evidence::from_selection("Samples of busy CPUs by module", selection)
            .column("module", "module", Unit::None, module)
            .column("samples", "samples", Unit::Count, Expression::Sum("count"))
            .column(
                "weight_ns",
                "for",
                Unit::Duration,
                Expression::Sum("weight_ns"),
            );
        for (module, sampled) in self.modules.iter().take(SHOWN) {
            evidence = evidence.row([
                Some((*module).into()),
                Some(sampled.samples.into()),
                sampled.weight_ns.map(Into::into),
            ]);
        }
        let module_unknown = Condition::IsNamed(Expression::Module("image_row")).negated();
        let of_no_module = Condition::All(vec![busy.clone(), module_unknown]);
        let sum_if = |condition: Condition| Expression::sum_if("count", condition);
        let totals = Evidence::from_selection(
            "Samples of busy and idle CPUs",
            Selection::new(Table::Samples),
        )
        .column("busy", "busy", Unit::Count, sum_if(busy.clone()))
        .column("idle", "idle", Unit::Count, sum_if(busy.negated()))
        .column(
            "of_no_module",
            "outside known modules",
            Unit::Count,
            sum_if(of_no_module),
        )
        .row([self.busy, self.idle, self.unknown.samples].map(|count| Some(count.into())));
        [evidence, totals]
    }
}

fn by_module(case: &Case<'_>) -> Result<Option<Finding>, StoreError> {
    let samples = Modules::read(case)?;
    let Modules {
        modules,
        unknown,
        busy,
        idle,
    } = &samples;
    let (busy, idle) = (*busy, *idle);
    if busy == 0 {
        return Ok(None);
    }
    let share = |samples: u64| percent(samples as i64, busy as i64);
    let nowhere = format!(
        "{} of the busy samples were outside known modules",
        share(unknown.samples)
    );
    let most = match modules.first() {
        None => format!("{nowhere}."),
        Some((module, sampled)) => {
            let within = format!(
                "The module with most of the busy samples: {} ({}).",
                Name(module),
                share(sampled.samples)
            );
            if unknown.samples > sampled.samples {
                format!("{nowhere}. {within}")
            } else {
                within
            }
        }
    };
    let sentence = match idle {
        0 => format!(
            "CPUs were busy in all {}. {most}",
            counted(busy, "sample", "samples")
        ),
        _ => format!(
            "CPUs were busy in {} of {} samples. {most}",
            grouped(busy),
            grouped(busy + idle)
        ),
    };
    let named = modules.first().map(|(module, _)| Subject::Module {
        name: (*module).to_owned(),
    });
    let [evidence, totals] = samples.evidence();
    let finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .subjects(named)
        .with(evidence)
        .with(totals);
    let finding = match lacks_idle(case, idle, busy) {
        Some(true) => finding.doubt(
            "No sample is of an idle CPU: such samples were left out of the trace, so samples do \
             not show how busy the CPUs were",
        ),
        Some(false) => finding,
        None => finding.doubt(
            "No sample is of an idle CPU: either no CPU was idle, or such samples were left out of \
             the trace",
        ),
    };
    Ok(Some(match unknown.samples {
        0 => finding,
        samples => finding.doubt(format!(
            "{} of the busy samples are outside known modules: in generated code, or in modules that \
             the trace does not list",
            share(samples)
        )),
    }))
}

/// Returns true if samples of idle CPUs were left out of the trace. This is the case if there are no such
/// samples, although the idle time is long enough for ten samples or more. Returns `None` if there are no
/// context switches, because the idle time is then unknown.
fn lacks_idle(case: &Case<'_>, idle: u64, busy: u64) -> Option<bool> {
    if idle > 0 {
        return Some(false);
    }
    let cpus = &case.survey.cpus;
    let idle_ns: i64 = cpus.iter().map(|cpu| cpu.idle_ns).sum();
    let busy_ns: i64 = cpus.iter().map(|cpu| cpu.busy_ns).sum();
    (busy_ns > 0).then(|| busy as f64 * idle_ns as f64 / busy_ns as f64 >= IDLE_SAMPLES as f64)
}
