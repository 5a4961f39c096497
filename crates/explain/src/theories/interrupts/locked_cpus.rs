//! Theory: DPCs and service routines locked CPUs.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{CpusView, InterruptsView, SamplesView, StoreError, Table};

use super::victims::Victims;
use super::{LIMITS, by_routine, mean_ns, name, sampled_locks};
use crate::chain::floods::{Flood, floods};
use crate::chain::smb_cost;
use crate::drivers::is_of_windows;
use crate::survey::{
    INTERRUPT_COLUMNS, RoutineUse, Routines, blocking_kinds, blocks_thread, cpu_names,
    is_inside_routine, kind_name,
};
use crate::{
    About, Case, Evidence, Finding, Name, Outcome, Severity, Source, Subject, Theory, Unit,
    duration, grouped, listed, percent,
};

/// Theory about CPUs that run DPCs and service routines and hardly any thread.
pub(crate) struct LockedCpus;

pub(super) static ABOUT: About = About {
    id: "locked-cpus",
    name: "locked CPUs",
    question: "Were CPUs locked by DPCs and ISRs?",
    tables: &[
        Table::Interrupts,
        Table::Samples,
        Table::Cpus,
        Table::CpuRuns,
    ],
    sources: &[
        Source {
            title: "A backup server flooded by DPCs (four of 24 CPUs locked by DPCs of NDIS)",
            url: None,
        },
        LIMITS,
        Source {
            title: "Microsoft: Introduction to Receive Side Scaling",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/network/introduction-to-receive-side-scaling",
            ),
        },
    ],
};

/// Maximum number of findings.
const FINDINGS: usize = 5;

impl Theory for LockedCpus {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let used = &case.survey.interrupts.routines;
        let mut floods = floods(case);
        if let Some(missing) = case
            .survey
            .interrupts
            .missing()
            .filter(|_| floods.is_empty())
        {
            return sampled_locks::judge(case, missing);
        }
        if floods.is_empty() {
            let because = "no CPU spent 80 % of a second in DPCs and ISRs";
            let evidence = by_routine(case, "DPCs and ISRs", None, used);
            return Ok(Outcome::Against(because.to_owned(), vec![evidence]));
        }
        floods.sort_by_key(|flood| std::cmp::Reverse(flood.locked_ns));
        let findings = floods
            .iter()
            .take(FINDINGS)
            .map(|flood| finding(case, flood));
        Ok(Outcome::For(findings.collect::<Result<_, _>>()?))
    }
}

/// Sums over the rows of `interrupts` that ended within a range, without routines that run in threads.
struct RoutineSums {
    routines: Vec<RoutineUse>,
    /// For each CPU: its number, how often routines ran, and their total time in nanoseconds. The CPU with most
    /// time comes first.
    cpus: Vec<(u16, i64, i64)>,
}

impl RoutineSums {
    fn read(case: &Case<'_>, during: &Range<i64>) -> Result<RoutineSums, StoreError> {
        let table = case.table(Table::Interrupts)?;
        let mut routines = Routines::default();
        let mut cpus: FxHashMap<u16, (i64, i64)> = FxHashMap::default();
        for batch in case.batches(&table, during.clone(), &INTERRUPT_COLUMNS) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                if !during.contains(&view.end_ns[row]) || !blocks_thread(&view, row) {
                    continue;
                }
                routines.add(&view, row);
                let (count, ns) = cpus.entry(view.cpu[row]).or_default();
                *count += 1;
                *ns = ns.saturating_add(view.exclusive_ns.get(row).unwrap_or(0));
            }
        }
        let mut cpus: Vec<(u16, i64, i64)> = cpus
            .into_iter()
            .map(|(cpu, (count, ns))| (cpu, count, ns))
            .collect();
        cpus.sort_unstable_by_key(|(cpu, _, ns)| (std::cmp::Reverse(*ns), *cpu));
        Ok(RoutineSums {
            routines: routines.finish(),
            cpus,
        })
    }
}

fn finding(case: &Case<'_>, flood: &Flood) -> Result<Finding, StoreError> {
    let Range { start, end } = flood.during;
    let lasted_ns = end.saturating_sub(start);
    let within = RoutineSums::read(case, &flood.during)?;
    let inside = ModuleSamples::read(case, flood)?;
    let victims = Victims::read(case, flood)?;
    let cpus = cpu_names(&flood.cpus);
    let of_locked = within
        .cpus
        .iter()
        .filter(|(cpu, ..)| flood.cpus.contains(cpu));
    let locked_ns: i64 = of_locked.map(|(_, _, ns)| ns).sum();
    let all_ns = lasted_ns.saturating_mul(flood.cpus.len() as i64);
    let mut sentence = format!(
        "{cpus} ran almost only DPCs and ISRs from {} to {}: {} of {} time.",
        duration(start),
        duration(end),
        percent(locked_ns, all_ns),
        if flood.cpus.len() == 1 {
            "its"
        } else {
            "their"
        }
    );
    if let Some(first) = within.routines.first() {
        let (times, kind) = (first.times.unsigned_abs(), kind_name(first.kind));
        let cpu_time = duration(first.exclusive_ns.unwrap_or(0));
        let mean = mean_ns(first).map_or("an unknown time".to_owned(), |ns| duration(ns as i64));
        sentence += &match times {
            1 => format!(
                " A single run of {} took {cpu_time} of CPU time.",
                name(case, first)
            ),
            times => format!(
                " {} {kind} of {} took {cpu_time} of CPU time, {mean} each on average.",
                grouped(times),
                name(case, first)
            ),
        };
    }
    sentence += &inside.sentence();
    let is_of_smb = inside.is_cryptography() && smb_cost::floods_cpus(case, flood)?;
    if is_of_smb {
        sentence += " The cause is signing or encryption of file sharing (SMB), which has a \
            separate finding.";
    }
    sentence += &victims.sentence(case);
    let how = format!("during which threads could hardly use {cpus}");
    let title = "DPCs and ISRs that ended in this time";
    let routines = by_routine(case, title, Some(&flood.during), &within.routines);
    // If SMB is the cause, a separate finding reports it as a problem. This finding then only adds details.
    let severity = if is_of_smb {
        Severity::Warning
    } else {
        Severity::Problem
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .delay(flood.locked_ns, how)
        .during(flood.during.clone())
        .subjects(flood.cpus.iter().map(|cpu| Subject::Cpu { number: *cpu }))
        .subjects(within.routines.first().map(|first| Subject::Routine {
            name: name(case, first),
        }))
        .subjects(victims.subjects(case))
        .with(routines)
        .with(by_cpu(&within, &flood.during));
    if let Some(evidence) = inside.evidence(flood) {
        finding = finding.with(evidence);
    } else {
        finding = finding.doubt(
            "There are no samples inside these DPCs and ISRs, so it is unknown which driver takes \
             the time (record xperf -on PROFILE, WPR keyword SampledProfile)",
        );
    }
    finding.evidence.extend(victims.evidence(case, flood));
    let nodes = Nodes::read(case, flood)?;
    finding = finding.with(nodes.evidence(flood));
    if !is_of_smb {
        finding
            .remedies
            .extend(spread(case, flood, &within, &nodes).map(Into::into));
    }
    if let Some(remedy) = inside.remedy() {
        finding = finding.remedy(remedy);
    }
    Ok(finding.doubt(
        "The trace does not contain the settings of adapters and drivers that assign interrupts to \
         CPUs",
    ))
}

/// Returns a remedy that spreads the interrupts, if there are CPUs that were not locked.
fn spread(case: &Case<'_>, flood: &Flood, within: &RoutineSums, nodes: &Nodes) -> Option<String> {
    let others = nodes.cpus() - flood.cpus.len() as i64;
    if others <= 0 {
        return None;
    }
    let idle = within
        .cpus
        .iter()
        .filter(|(cpu, ..)| !flood.cpus.contains(cpu));
    let busiest_ns = idle.map(|(_, _, ns)| *ns).max();
    let first = within.routines.first();
    let is_ndis = first
        .and_then(|first| case.module_label(first.image_row))
        .is_some_and(|module| module.eq_ignore_ascii_case("ndis.sys"));
    let most = match busiest_ns {
        None | Some(0) => "no time".to_owned(),
        Some(ns) => format!("at most {}", duration(ns)),
    };
    let mut remedy = format!(
        "Spread the interrupts over more CPUs: each of the {others} other CPUs{} spent {most} in \
         DPCs and ISRs.",
        match nodes.near() {
            Some(near) => format!(" ({near} of them on the NUMA nodes of the locked CPUs)"),
            None => String::new(),
        }
    );
    if is_ndis {
        remedy += " For a network adapter, configure receive side scaling (*RSS, *NumRssQueues, \
                   *MaxRssProcessors, *RssBaseProcNumber); one connection always stays on one \
                   CPU.";
    }
    Some(remedy)
}

fn by_cpu(within: &RoutineSums, during: &Range<i64>) -> Evidence {
    const SHOWN: usize = 20;
    let lasted_ns = during.end - during.start;
    let selection = Selection::new(Table::Interrupts)
        .within("end_ns", during.clone())
        .filter(Condition::is_text("kind", &blocking_kinds()))
        .group_by(&["cpu"])
        .order(&[Order::descending("exclusive_ns"), Order::ascending("cpu")])
        .limit(SHOWN);
    let total = Expression::Sum("exclusive_ns");
    let share = Expression::Formula(format!("100.0 * sum(exclusive_ns) / {lasted_ns}"));
    let mut evidence = Evidence::from_selection("DPCs and ISRs by CPU", selection)
        .stored("cpu", "CPU", Unit::None)
        .column("routines", "routines", Unit::Count, Expression::Count)
        .column("exclusive_ns", "time in them", Unit::Duration, total)
        .column("share", "share of the CPU", Unit::Percent, share);
    for (cpu, count, ns) in within.cpus.iter().take(SHOWN) {
        evidence = evidence.row([
            Some((*cpu).into()),
            Some((*count).into()),
            Some((*ns).into()),
            Some((100.0 * *ns as f64 / lasted_ns as f64).into()),
        ]);
    }
    evidence
}

/// Modules in which DPCs and service routines spent time on the locked CPUs, by samples.
pub(super) struct ModuleSamples {
    /// For each module: its row in `images`, its name and the number of samples. The module with
    /// most samples comes first.
    modules: Vec<(Option<u32>, String, i64)>,
    all: i64,
}

impl ModuleSamples {
    pub(super) fn read(case: &Case<'_>, flood: &Flood) -> Result<ModuleSamples, StoreError> {
        let table = case.table(Table::Samples)?;
        let columns = ["time_ns", "cpu", "image_row", "in_dpc", "in_isr"];
        let mut samples: FxHashMap<Option<u32>, i64> = FxHashMap::default();
        for batch in case.batches(&table, flood.during.clone(), &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                let is_inside = is_inside_routine(&view, row);
                if is_inside
                    && view
                        .cpu
                        .get(row)
                        .is_some_and(|cpu| flood.cpus.contains(&cpu))
                    && flood.during.contains(&view.time_ns[row])
                {
                    *samples.entry(view.image_row.get(row)).or_default() += 1;
                }
            }
        }
        let mut modules: Vec<(Option<u32>, String, i64)> = samples
            .into_iter()
            .map(|(image_row, count)| {
                let name = case.module_label(image_row).unwrap_or("no known module");
                (image_row, name.to_owned(), count)
            })
            .collect();
        modules.sort_by_key(|(row, _, count)| {
            (std::cmp::Reverse(*count), row.map_or(i64::MAX, i64::from))
        });
        let all = modules.iter().map(|(_, _, count)| count).sum();
        Ok(ModuleSamples { modules, all })
    }

    /// Returns true if the module with most samples signs or encrypts.
    fn is_cryptography(&self) -> bool {
        let first = self.modules.first();
        first.is_some_and(|(_, module, _)| {
            let mut known = smb_cost::CRYPTOGRAPHY.iter();
            known.any(|known| known.eq_ignore_ascii_case(module))
        })
    }

    pub(super) fn sentence(&self) -> String {
        if self.all == 0 {
            return String::new();
        }
        let shares = self.modules.iter().take(3);
        let shares = shares.map(|(row, module, count)| {
            let module = match row {
                Some(_) => Name(module).to_string(),
                None => module.clone(),
            };
            format!("{module} {}", percent(*count, self.all))
        });
        format!(" By module: {}.", listed(shares))
    }

    pub(super) fn evidence(&self, flood: &Flood) -> Option<Evidence> {
        const SHOWN: usize = 12;
        if self.all == 0 {
            return None;
        }
        let selection = Selection::new(Table::Samples)
            .within("time_ns", flood.during.clone())
            .filter(Condition::Any(vec![
                Condition::IsTrue("in_dpc"),
                Condition::IsTrue("in_isr"),
            ]))
            .filter(Condition::is_one_of("cpu", &flood.cpus))
            .group_by(&["image_row"])
            .order(&[Order::descending("samples"), Order::ascending("image_row")])
            .limit(SHOWN);
        let share = "100.0 * count(*) / sum(count(*)) OVER ()".to_owned();
        let title = "Modules inside these routines, by samples";
        let module = Expression::Module("image_row");
        let mut evidence = Evidence::from_selection(title, selection)
            .column("module", "module", Unit::None, module)
            .column("samples", "samples", Unit::Count, Expression::Count)
            .column("share", "share", Unit::Percent, Expression::Formula(share));
        for (image_row, module, count) in self.modules.iter().take(SHOWN) {
            evidence = evidence.row([
                image_row.map(|_| module.as_str().into()),
                Some((*count).into()),
                Some((100.0 * *count as f64 / self.all as f64).into()),
            ]);
        }
        Some(evidence)
    }

    /// Returns a remedy for drivers that are not part of Windows and have a tenth of the samples or
    /// more.
    pub(super) fn remedy(&self) -> Option<String> {
        let foreign: Vec<String> = self
            .modules
            .iter()
            .filter(|(row, module, count)| {
                row.is_some() && !is_of_windows(module) && *count * 10 >= self.all
            })
            .map(|(_, module, count)| format!("{} ({})", Name(module), percent(*count, self.all)))
            .collect();
        let names = (!foreign.is_empty()).then(|| listed(foreign))?;
        Some(format!(
            "Update or reconfigure {names}, or uninstall what you do not use. Change one at a time, and \
             record again after each change. Filters for teaming, capture and inspection run \
             inside each DPC of the network."
        ))
    }
}

/// NUMA nodes, each with its number, the number of its CPUs and the number of its locked CPUs.
struct Nodes(Vec<(Option<u16>, i64, i64)>);

impl Nodes {
    fn read(case: &Case<'_>, flood: &Flood) -> Result<Nodes, StoreError> {
        let table = case.table(Table::Cpus)?;
        let mut nodes: Vec<(Option<u16>, i64, i64)> = Vec::new();
        for batch in case.batches(&table, i64::MIN..i64::MAX, &["cpu", "numa_node"]) {
            let batch = batch?;
            let view = CpusView::new(&batch)?;
            for row in 0..view.len() {
                let node = view.numa_node.get(row);
                let place = nodes.iter().position(|(known, ..)| *known == node);
                let place = place.unwrap_or_else(|| {
                    nodes.push((node, 0, 0));
                    nodes.len() - 1
                });
                nodes[place].1 += 1;
                nodes[place].2 += i64::from(flood.cpus.contains(&view.cpu[row]));
            }
        }
        nodes.sort_by_key(|(node, ..)| node.map_or(u32::MAX, u32::from));
        Ok(Nodes(nodes))
    }

    fn cpus(&self) -> i64 {
        self.0.iter().map(|(_, cpus, _)| cpus).sum()
    }

    /// Returns the number of unlocked CPUs on nodes with locked CPUs; `None` if there is only one
    /// node.
    fn near(&self) -> Option<i64> {
        let locked = self
            .0
            .iter()
            .filter(|(node, _, locked)| node.is_some() && *locked > 0);
        (self.0.len() > 1).then(|| locked.map(|(_, cpus, locked)| cpus - locked).sum())
    }

    fn evidence(&self, flood: &Flood) -> Evidence {
        const SHOWN: usize = 20;
        let selection = Selection::new(Table::Cpus)
            .group_by(&["numa_node"])
            .order(&[Order::ascending("numa_node")])
            .limit(SHOWN);
        let locked = Expression::count_if(Condition::is_one_of("cpu", &flood.cpus));
        let mut evidence = Evidence::from_selection("CPUs of the machine", selection)
            .stored("numa_node", "NUMA node", Unit::None)
            .column("cpus", "CPUs", Unit::Count, Expression::Count)
            .column("locked", "locked", Unit::Count, locked);
        for (node, cpus, locked) in self.0.iter().take(SHOWN) {
            let cells = [
                node.map(Into::into),
                Some((*cpus).into()),
                Some((*locked).into()),
            ];
            evidence = evidence.row(cells);
        }
        evidence
    }
}
