//! Theory: a single CPU served all network adapters.

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::chain::floods::floods;
use crate::survey::{cpu_names, kind_name};
use crate::thresholds::{NETWORK_CPU_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration, percent,
};

/// Theory about the distribution of the network adapters' DPCs over CPUs.
pub(crate) struct ReceiveSpread;

static ABOUT: About = About {
    id: "receive-spread",
    name: "receive side scaling",
    question: "Did one CPU serve the network adapters alone?",
    tables: &[Table::Interrupts],
    sources: &[
        Source {
            title: "Microsoft: Introduction to Receive Side Scaling",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/network/introduction-to-receive-side-scaling",
            ),
        },
        Source {
            title: "PC-Tuning: How many RSS Queues do you need? (300 kb/s: one CPU, 1 Gb/s: two)",
            url: None,
        },
    ],
};

impl Theory for ReceiveSpread {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let used = &case.survey.interrupts.routines;
        if used.iter().all(|used| kind_name(used.kind) != "DPCs") {
            let missing = "the trace has no DPCs".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        if case.names.images.base_address.is_empty() {
            let missing = "the trace does not record images, so the drivers of the DPCs are \
                unknown";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let is_ndis = |row: &u32| {
            let module = case.module_label(Some(*row));
            module.is_some_and(|module| module.eq_ignore_ascii_case("ndis.sys"))
        };
        let mut images: Vec<u32> = used.iter().filter_map(|used| used.image_row).collect();
        images.retain(is_ndis);
        images.sort_unstable();
        images.dedup();
        let cpus = by_cpu(case, &images)?;
        if cpus.is_empty() {
            let because = "no DPC belongs to ndis.sys".to_owned();
            return Ok(Outcome::Against(because, Vec::new()));
        }
        let finding = finding(case, &images, &cpus);
        Ok(match finding.severity {
            Severity::Information => {
                let because = format!(
                    "CPU {}, which ran most DPCs of the network, spent {} of its time on them",
                    cpus[0].0,
                    percent(cpus[0].2, case.survey.span_ns())
                );
                Outcome::Noted(because, vec![finding])
            }
            _ => Outcome::For(vec![finding]),
        })
    }
}

/// Sums up the DPCs of these images by CPU. Each entry has the CPU, the number of DPCs and their
/// time in nanoseconds. The CPU with most time comes first.
fn by_cpu(case: &Case<'_>, images: &[u32]) -> Result<Vec<(u16, i64, i64)>, StoreError> {
    let mut cpus: FxHashMap<u16, (i64, i64)> = FxHashMap::default();
    if images.is_empty() {
        return Ok(Vec::new());
    }
    let table = case.table(Table::Interrupts)?;
    let columns = ["cpu", "kind", "exclusive_ns", "image_row"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let is_of_them = view
                .image_row
                .get(row)
                .is_some_and(|row| images.contains(&row));
            if is_of_them && matches!(view.kind.get(row), Some("dpc" | "threaded_dpc")) {
                let (count, ns) = cpus.entry(view.cpu[row]).or_default();
                *count += 1;
                *ns = ns.saturating_add(view.exclusive_ns.get(row).unwrap_or(0));
            }
        }
    }
    let mut cpus: Vec<(u16, i64, i64)> = cpus
        .into_iter()
        .map(|(cpu, (count, ns))| (cpu, count, ns))
        .collect();
    cpus.sort_unstable_by_key(|(cpu, _, ns)| (std::cmp::Reverse(*ns), *cpu));
    Ok(cpus)
}

fn finding(case: &Case<'_>, images: &[u32], cpus: &[(u16, i64, i64)]) -> Finding {
    const SHOWN: usize = 20;
    let dpcs: i64 = cpus.iter().map(|(_, dpcs, _)| dpcs).sum();
    let all_ns: i64 = cpus.iter().map(|(.., ns)| ns).sum();
    let selection = Selection::new(Table::Interrupts)
        .filter(Condition::is_text("kind", &["dpc", "threaded_dpc"]))
        .filter(Condition::is_one_of("image_row", images))
        .group_by(&["cpu"])
        .order(&[Order::descending("exclusive_ns"), Order::ascending("cpu")])
        .limit(SHOWN);
    let total = Expression::Sum("exclusive_ns");
    let groups = Expression::Formula("count(*) OVER ()".to_owned());
    let all = Expression::Count.over_all();
    let mut evidence = Evidence::from_selection("DPCs of the network by CPU", selection)
        .stored("cpu", "CPU", Unit::None)
        .column("dpcs", "DPCs", Unit::Count, Expression::Count)
        .column("exclusive_ns", "CPU time", Unit::Duration, total.clone())
        .column("all_dpcs", "DPCs in total", Unit::Count, all)
        .column(
            "all_ns",
            "CPU time in total",
            Unit::Duration,
            total.over_all(),
        )
        .column("cpus", "CPUs", Unit::Count, groups);
    for (cpu, count, ns) in cpus.iter().take(SHOWN) {
        evidence = evidence.row([
            Some((*cpu).into()),
            Some((*count).into()),
            Some((*ns).into()),
            Some(dpcs.into()),
            Some(all_ns.into()),
            Some((cpus.len() as u64).into()),
        ]);
    }
    let span_ns = case.survey.span_ns();
    let mut numbers: Vec<u16> = cpus.iter().map(|(cpu, ..)| *cpu).collect();
    numbers.sort_unstable();
    let is_alone = cpus.len() == 1;
    let (first, _, first_ns) = cpus[0];
    let mut sentence = format!(
        "{} of ndis.sys ran on {}: {} of CPU time",
        counted(dpcs.unsigned_abs(), "DPC", "DPCs"),
        cpu_names(&numbers),
        duration(all_ns),
    );
    sentence += &if is_alone {
        ". None ran on other CPUs.".to_owned()
    } else {
        format!(
            "; CPU {first} used {} of this time.",
            percent(first_ns, all_ns)
        )
    };
    let is_busy = span_ns > 0 && is_share(first_ns, span_ns, NETWORK_CPU_PERCENT);
    let severity = if is_alone && is_busy && case.survey.cpus.len() > 1 {
        Severity::Warning
    } else {
        Severity::Information
    };
    let named = cpus.iter().take(8);
    let named = named.map(|(cpu, ..)| Subject::Cpu { number: *cpu });
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .subjects([Subject::Module {
            name: "ndis.sys".to_owned(),
        }])
        .subjects(named)
        .with(evidence);
    // If the CPU is locked, the finding about locked CPUs gives the remedy.
    let is_locked = floods(case).iter().any(|flood| flood.cpus.contains(&first));
    if severity == Severity::Warning && !is_locked {
        finding = finding.remedy(
            "Switch on receive side scaling, or give it more queues and CPUs (*RSS, *NumRssQueues, \
             *MaxRssProcessors). It distributes conversations: a single one stays on one CPU.",
        );
    }
    if is_alone {
        finding = finding.doubt(
            "Receive side scaling uses one CPU for a single conversation, however many queues \
             there are. The trace does not contain its settings",
        );
    }
    finding
}
