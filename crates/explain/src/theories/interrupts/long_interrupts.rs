//! Theory: single interrupts and softirqs of Linux ran too long.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::chain::raisers::Raisers;
use crate::chain::routine_times::COLUMNS;
use crate::thresholds::{
    FAR_OVER_RUNS, FAR_OVER_TIMES, INTERRUPT_LIMIT_NS, NOTICED_NS, SOFTIRQ_LIMIT_NS, STALL_NS,
    STALLS, USUALLY_LONG_RUNS,
};
use crate::{
    About, Case, Evidence, Finding, Name, Outcome, Severity, Source, Subject, Theory, Unit,
    counted, duration, grouped, moment, percent,
};

/// Theory about interrupts and softirqs of Linux that run long. While they run, no thread runs on their CPU.
pub(crate) struct LongInterrupts;

static ABOUT: About = About {
    id: "long-interrupts",
    name: "long interrupts and softirqs",
    question: "Did single interrupts and softirqs take long?",
    tables: &[Table::Interrupts],
    sources: &[
        Source {
            title: "Linux kernel documentation: /proc/sys/net (netdev_budget_usecs limits a poll for packets)",
            url: Some("https://docs.kernel.org/admin-guide/sysctl/net.html"),
        },
        Source {
            title: "Linux kernel documentation: Unreliable Guide To Hacking The Linux Kernel (a handler of interrupts has to be \
                    fast)",
            url: Some("https://docs.kernel.org/kernel-hacking/hacking.html"),
        },
    ],
};

/// Maximum number of findings.
const FINDINGS: usize = 5;
const SOFTIRQ: &str = "dpc";
const INTERRUPT: &str = "isr";

impl Theory for LongInterrupts {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut routines = routines(case)?;
        let runs: u64 = routines.iter().map(|routine| routine.runs as u64).sum();
        if runs == 0 {
            let missing = "the recording has no interrupts and softirqs";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let [interrupts, softirqs] = [INTERRUPT, SOFTIRQ].map(|kind| {
            let of_kind = routines.iter().filter(|routine| routine.kind == kind);
            of_kind.map(|routine| routine.over).sum::<i64>()
        });
        routines.retain(|routine| routine.longest_ns() >= routine.far_ns());
        if routines.is_empty() {
            let because = format!(
                "of {}, {} took longer than {}, and {} longer than {}; none took ten times as long, or {}",
                counted(runs, "interrupt or softirq", "interrupts and softirqs"),
                counted(interrupts.unsigned_abs(), "interrupt", "interrupts"),
                duration(INTERRUPT_LIMIT_NS),
                counted(softirqs.unsigned_abs(), "softirq", "softirqs"),
                duration(SOFTIRQ_LIMIT_NS),
                duration(STALL_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        routines
            .sort_by_key(|routine| (Reverse(routine.severity()), Reverse(routine.longest_ns())));
        let findings = routines.iter().take(FINDINGS);
        let findings = findings.map(|routine| routine.finding(case));
        Ok(Outcome::For(findings.collect::<Result<_, _>>()?))
    }
}

/// Runs of an interrupt or softirq. Times are without the interrupts that interrupted the runs.
struct Routine {
    kind: &'static str,
    /// Number of the interrupt or softirq.
    number: u64,
    name: String,
    runs: i64,
    over: i64,
    /// Number of runs that took at least [`Routine::far_ns`].
    far_over: i64,
    stalls: i64,
    total_ns: i64,
    /// Length and end of the longest run in nanoseconds, and its CPU.
    longest: (i64, i64, u16),
    /// Start of the longest run.
    longest_start_ns: i64,
}

/// Reads the interrupts and softirqs. Softirqs in threads are left out, because the scheduler limits threads.
fn routines(case: &Case<'_>) -> Result<Vec<Routine>, StoreError> {
    let mut routines: FxHashMap<(&str, String), Routine> = FxHashMap::default();
    let table = case.table(Table::Interrupts)?;
    for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let kind = match view.kind.get(row) {
                Some(SOFTIRQ) => SOFTIRQ,
                Some(INTERRUPT) => INTERRUPT,
                _ => continue,
            };
            let times = view.exclusive_ns.get(row).zip(view.start_ns.get(row));
            let Some((ns, start_ns)) = times else {
                continue;
            };
            let name = view.name.get(row).unwrap_or_default().to_owned();
            let routine = routines.entry((kind, name.clone()));
            let routine = routine.or_insert_with(|| Routine {
                kind,
                number: view.routine[row],
                name,
                runs: 0,
                over: 0,
                far_over: 0,
                stalls: 0,
                total_ns: 0,
                longest: (i64::MIN, 0, 0),
                longest_start_ns: 0,
            });
            routine.runs += 1;
            routine.over += i64::from(ns > routine.limit_ns());
            routine.far_over += i64::from(ns >= routine.far_ns());
            routine.stalls += i64::from(ns >= STALL_NS);
            routine.total_ns = routine.total_ns.saturating_add(ns);
            if ns > routine.longest.0 {
                routine.longest = (ns, view.end_ns[row], view.cpu[row]);
                routine.longest_start_ns = start_ns;
            }
        }
    }
    let mut routines: Vec<Routine> = routines.into_values().collect();
    routines.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(routines)
}

impl Routine {
    fn limit_ns(&self) -> i64 {
        match self.kind {
            SOFTIRQ => SOFTIRQ_LIMIT_NS,
            _ => INTERRUPT_LIMIT_NS,
        }
    }

    /// Returns the time from which on a run is far over the limit.
    fn far_ns(&self) -> i64 {
        (self.limit_ns() * FAR_OVER_TIMES).min(STALL_NS)
    }

    fn longest_ns(&self) -> i64 {
        self.longest.0
    }

    fn severity(&self) -> Severity {
        let is_rule = self.over >= USUALLY_LONG_RUNS && self.over * 2 >= self.runs;
        let is_often = self.far_over >= FAR_OVER_RUNS || self.stalls >= STALLS;
        if is_rule || is_often || self.longest_ns() >= NOTICED_NS {
            Severity::Warning
        } else {
            Severity::Information
        }
    }

    fn finding(&self, case: &Case<'_>) -> Result<Finding, StoreError> {
        let (longest_ns, end_ns, cpu) = self.longest;
        let name = Name(&self.name);
        let mut sentence = format!(
            "{} of {} of {name} ({}) took longer than {}; the longest, on CPU {cpu}, took {} and ended at {}.",
            grouped(self.over.unsigned_abs()),
            counted(self.runs.unsigned_abs(), "run", "runs"),
            percent(self.over, self.runs),
            duration(self.limit_ns()),
            duration(longest_ns),
            moment(end_ns)
        );
        if self.far_over > 1 {
            sentence += &format!(
                " {} of them took {} or longer.",
                grouped(self.far_over.unsigned_abs()),
                duration(self.far_ns())
            );
        }
        let during = self.longest_start_ns..end_ns;
        let mut finding = Finding::new(&ABOUT, self.severity(), sentence)
            .because("While it runs, no thread runs on its CPU.")
            .subjects([
                Subject::Routine {
                    name: self.name.clone(),
                },
                Subject::Cpu { number: cpu },
            ])
            .during(during)
            .with(self.evidence())
            .doubt(
                "If the machine is virtual, its host may have taken the CPU while this ran (steal in /proc/stat): then the \
                 run only seems long",
            );
        if self.kind == SOFTIRQ {
            let all = i64::MIN..i64::MAX;
            finding = Raisers::read(case, self.number, all, None)?.add_to(finding);
        }
        Ok(match self.kind {
            SOFTIRQ => finding.remedy(
                "Limit the work of one run (for packets: /proc/sys/net/core/netdev_budget and netdev_budget_usecs), and keep \
                 urgent threads away from its CPU (taskset -p). perf record -a -g shows the code.",
            ),
            _ => finding.remedy(format!(
                "Update the driver or the firmware of the device, or let an unimportant CPU handle the interrupt ({}). perf \
                 record -a -g shows the code.",
                self.move_words()
            )),
        })
    }

    /// Returns the command that moves the interrupt to another CPU.
    fn move_words(&self) -> String {
        if u32::try_from(self.number).is_ok() {
            format!("echo CPU > /proc/irq/{}/smp_affinity_list", self.number)
        } else {
            "nohz_full and isolcpus in /proc/cmdline for the timer".to_owned()
        }
    }

    fn evidence(&self) -> Evidence {
        let selection = Selection::new(Table::Interrupts)
            .filter(Condition::is_text("kind", &[self.kind]))
            .filter(Condition::is_text("name", &[self.name.as_str()]))
            .filter(Condition::IsKnown("exclusive_ns"))
            .filter(Condition::IsKnown("start_ns"))
            .group_by(&["name"]);
        let at_least = |ns| Expression::count_if(Condition::AtLeast("exclusive_ns", ns));
        let total = Expression::Sum("exclusive_ns");
        Evidence::from_selection("Runs of the interrupt or softirq", selection)
            .column("name", "name", Unit::None, Expression::TextOrEmpty("name"))
            .column("runs", "runs", Unit::Count, Expression::Count)
            .column(
                "over",
                "over the limit",
                Unit::Count,
                at_least(self.limit_ns() + 1),
            )
            .column(
                "far_over",
                "far over it",
                Unit::Count,
                at_least(self.far_ns()),
            )
            .column("cpu_ns", "CPU time", Unit::Duration, total)
            .column(
                "longest_ns",
                "longest",
                Unit::Duration,
                Expression::Max("exclusive_ns"),
            )
            .row([
                Some(self.name.as_str().into()),
                Some(self.runs.into()),
                Some(self.over.into()),
                Some(self.far_over.into()),
                Some(self.total_ns.into()),
                Some(self.longest_ns().into()),
            ])
    }
}
