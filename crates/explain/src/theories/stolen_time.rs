//! Theory: the host of a virtual machine with Linux ran something else while the machine's CPUs had work.

use std::cmp::Reverse;

use selection::{Condition, Order, Selection};
use tables::{CpusView, StoreError, Table};

use crate::survey::cpu_names;
use crate::thresholds::{MUCH_STOLEN_PERCENT, NOTICED_NS, STOLEN_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, duration,
    percent,
};

/// Theory about time that the host took from CPUs.
pub(crate) struct StolenTime;

static ABOUT: About = About {
    id: "stolen-time",
    name: "time that the host took",
    question: "Did the host of this virtual machine run something else while its CPUs had work?",
    tables: &[Table::Cpus],
    sources: &[Source {
        title: "proc_stat(5) of the Linux manual: steal",
        url: Some("https://man7.org/linux/man-pages/man5/proc_stat.5.html"),
    }],
};

/// Maximum number of CPUs in the evidence.
const SHOWN: usize = 20;

impl Theory for StolenTime {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let cpus = read(case)?;
        let Some(most_ns) = cpus.iter().map(|cpu| cpu.stolen_ns).max() else {
            let missing = "the times of the CPUs before and after the recording are missing";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        };
        let short: Vec<Cpu> = cpus.into_iter().filter(Cpu::is_short).collect();
        let Some(severity) = short.iter().map(Cpu::severity).max() else {
            let because = format!(
                "the host took at most {} from a CPU; {STOLEN_PERCENT} % of its time, and {}, count as noticeable",
                duration(most_ns),
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        };
        Ok(Outcome::For(vec![finding(case, severity, &short)]))
    }
}

/// CPU of the virtual machine.
struct Cpu {
    cpu: u16,
    stolen_ns: i64,
    within_ns: i64,
}

impl Cpu {
    /// Returns true if the CPU had noticeably less time than it needed.
    fn is_short(&self) -> bool {
        self.stolen_ns >= NOTICED_NS && is_share(self.stolen_ns, self.within_ns, STOLEN_PERCENT)
    }

    fn severity(&self) -> Severity {
        if is_share(self.stolen_ns, self.within_ns, MUCH_STOLEN_PERCENT) {
            Severity::Problem
        } else {
            Severity::Warning
        }
    }
}

/// Reads the CPUs whose stolen time is known, those with most of it first.
fn read(case: &Case<'_>) -> Result<Vec<Cpu>, StoreError> {
    let table = case.table(Table::Cpus)?;
    let mut cpus = Vec::new();
    let columns = ["first_seen_ns", "cpu", "stolen_ns", "stolen_within_ns"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpusView::new(&batch)?;
        for row in 0..view.len() {
            let times = view.stolen_ns.get(row).zip(view.stolen_within_ns.get(row));
            cpus.extend(times.map(|(stolen_ns, within_ns)| Cpu {
                cpu: view.cpu[row],
                stolen_ns,
                within_ns,
            }));
        }
    }
    cpus.sort_by_key(|cpu| (Reverse(cpu.stolen_ns), cpu.cpu));
    Ok(cpus)
}

/// Returns the finding about CPUs from which the host took time, those with most of it first.
fn finding(case: &Case<'_>, severity: Severity, cpus: &[Cpu]) -> Finding {
    let stolen_ns = cpus.iter().map(|cpu| cpu.stolen_ns);
    let stolen_ns = stolen_ns.fold(0, i64::saturating_add);
    let within_ns = cpus.iter().map(|cpu| cpu.within_ns);
    let within_ns = within_ns.fold(0, i64::saturating_add);
    let mut numbers: Vec<u16> = cpus.iter().map(|cpu| cpu.cpu).collect();
    numbers.sort_unstable();
    let names = cpu_names(&numbers);
    let (their, they) = match cpus.len() {
        1 => ("its", "it"),
        _ => ("their", "they"),
    };
    let sentence = format!(
        "The host of this virtual machine took {} from {names}, {} of {their} time, although {they} had work.",
        duration(stolen_ns),
        percent(stolen_ns, within_ns)
    );
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .subjects(cpus.iter().map(|cpu| Subject::Cpu { number: cpu.cpu }))
        .delay(stolen_ns, format!("in which {names} stood still"))
        .remedy(
            "Give the virtual machine more CPU time: fewer virtual CPUs on its host, a higher limit or share for it, or \
             an instance with its own CPUs. An instance whose CPU credits are used up is slowed in the \
             same way",
        )
        .doubt(format!(
            "No event shows when the host took the time: each run and each wait on {names} may contain some of it"
        ))
        .with(evidence(cpus));
    let longest_ns = cpus.iter().map(|cpu| cpu.within_ns).max().unwrap_or(0);
    if longest_ns > case.survey.span_ns().saturating_mul(2) {
        finding = finding.doubt(format!(
            "The time was counted over {}, which is much longer than the recording",
            duration(longest_ns)
        ));
    }
    finding
}

fn evidence(cpus: &[Cpu]) -> Evidence {
    let shown: Vec<u16> = cpus.iter().take(SHOWN).map(|cpu| cpu.cpu).collect();
    let selection = Selection::new(Table::Cpus)
        .filter(Condition::is_one_of("cpu", &shown))
        .order(&[Order::descending("stolen_ns"), Order::ascending("cpu")]);
    let evidence = Evidence::from_selection("Time that the host took", selection)
        .stored("cpu", "CPU", Unit::None)
        .stored("stolen_ns", "taken", Unit::Duration)
        .stored("stolen_within_ns", "in", Unit::Duration);
    cpus.iter().take(SHOWN).fold(evidence, |evidence, cpu| {
        evidence.row([
            Some(cpu.cpu.into()),
            Some(cpu.stolen_ns.into()),
            Some(cpu.within_ns.into()),
        ])
    })
}
