//! Theory: a single CPU of Linux handled all received packets.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::chain::floods::floods;
use crate::chain::raisers::{NET_RX, Raisers};
use crate::thresholds::{NETWORK_ALONE_PERCENT, NETWORK_CPU_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration, percent,
};

/// Theory about the distribution of softirqs for received packets over the CPUs of Linux.
pub(crate) struct PacketSpread;

static ABOUT: About = About {
    id: "receive-spread",
    name: "spread of received packets",
    question: "Did one CPU handle the received packets alone?",
    tables: &[Table::Interrupts],
    sources: &[Source {
        title: "Linux kernel documentation: Scaling in the Linux Networking Stack",
        url: Some("https://docs.kernel.org/networking/scaling.html"),
    }],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 20;
/// Kinds of softirqs, in interrupts and in threads.
const SOFTIRQS: [&str; 2] = ["dpc", "threaded_dpc"];

impl Theory for PacketSpread {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let used = &case.survey.interrupts.routines;
        if !used.iter().any(|used| SOFTIRQS.contains(&used.kind)) {
            let missing = "the recording has no softirqs";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let cpus = by_cpu(case)?;
        let Some((first, _, first_ns)) = cpus.first().copied() else {
            let because = "no packets were received (softirq NET_RX)";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        };
        let all_ns: i64 = cpus.iter().map(|(.., ns)| ns).sum();
        let span_ns = case.survey.span_ns();
        let is_busy = span_ns > 0 && is_share(first_ns, span_ns, NETWORK_CPU_PERCENT);
        let is_alone = is_share(first_ns, all_ns, NETWORK_ALONE_PERCENT);
        if !is_busy || !is_alone || case.survey.cpus.len() < 2 {
            let because = format!(
                "CPU {first}, which handled most received packets, spent {} of its time on them, and had {} of all their \
                 time",
                percent(first_ns, span_ns),
                percent(first_ns, all_ns)
            );
            return Ok(Outcome::Against(because, vec![evidence(&cpus)]));
        }
        let raisers = Raisers::read(case, NET_RX, i64::MIN..i64::MAX, Some(&[first]))?;
        let severity = if raisers.are_local() {
            Severity::Information
        } else {
            Severity::Warning
        };
        let sentence = format!(
            "CPU {first} had {} of the time of all softirqs NET_RX, which handle received packets: {}, which is {} of its \
             time.",
            percent(first_ns, all_ns),
            duration(first_ns),
            percent(first_ns, span_ns)
        );
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects([Subject::Cpu { number: first }])
            .with(evidence(&cpus))
            .doubt(
                "The packets of one connection stay on one CPU, whatever the settings. The recording does not contain the \
                 settings",
            );
        let mut finding = raisers.add_to(finding);
        // If the CPU is locked, the finding about locked CPUs gives the remedy.
        let is_locked = floods(case).iter().any(|flood| flood.cpus.contains(&first));
        if severity == Severity::Warning && !is_locked {
            finding = finding.remedy(
                "Give the network device more queues (ethtool -L DEVICE combined N), let irqbalance distribute their \
                 interrupts, or let other CPUs handle its packets (RPS): echo MASK_OF_CPUS > \
                 /sys/class/net/DEVICE/queues/rx-0/rps_cpus.",
            );
        }
        Ok(match severity {
            Severity::Information => {
                let because = format!(
                    "CPU {first} handled {}, but they come from programs of this machine",
                    counted(
                        cpus[0].1.unsigned_abs(),
                        "softirq NET_RX",
                        "softirqs NET_RX"
                    )
                );
                Outcome::Noted(because, vec![finding])
            }
            _ => Outcome::For(vec![finding]),
        })
    }
}

/// Sums up the softirqs of received packets by CPU. Each entry has the CPU, the number of softirqs and their time in
/// nanoseconds. The CPU with most time comes first.
fn by_cpu(case: &Case<'_>) -> Result<Vec<(u16, i64, i64)>, StoreError> {
    let mut cpus: FxHashMap<u16, (i64, i64)> = FxHashMap::default();
    let table = case.table(Table::Interrupts)?;
    let columns = ["cpu", "kind", "routine", "exclusive_ns"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let is_softirq = view
                .kind
                .get(row)
                .is_some_and(|kind| SOFTIRQS.contains(&kind));
            if is_softirq && view.routine[row] == NET_RX {
                let (count, ns) = cpus.entry(view.cpu[row]).or_default();
                *count += 1;
                *ns = ns.saturating_add(view.exclusive_ns.get(row).unwrap_or(0));
            }
        }
    }
    let cpus = cpus.into_iter();
    let mut cpus: Vec<_> = cpus.map(|(cpu, (count, ns))| (cpu, count, ns)).collect();
    cpus.sort_unstable_by_key(|(cpu, _, ns)| (Reverse(*ns), *cpu));
    Ok(cpus)
}

fn evidence(cpus: &[(u16, i64, i64)]) -> Evidence {
    let selection = Selection::new(Table::Interrupts)
        .filter(Condition::is_text("kind", &SOFTIRQS))
        .filter(Condition::is("routine", NET_RX as i64))
        .group_by(&["cpu"])
        .order(&[Order::descending("exclusive_ns"), Order::ascending("cpu")])
        .limit(SHOWN);
    let time = Expression::Sum("exclusive_ns");
    let evidence = Evidence::from_selection("Softirqs of received packets by CPU", selection)
        .stored("cpu", "CPU", Unit::None)
        .column("softirqs", "softirqs", Unit::Count, Expression::Count)
        .column("exclusive_ns", "CPU time", Unit::Duration, time);
    let shown = cpus.iter().take(SHOWN);
    shown.fold(evidence, |evidence, (cpu, count, ns)| {
        evidence.row([(*cpu).into(), (*count).into(), (*ns).into()].map(Some))
    })
}
