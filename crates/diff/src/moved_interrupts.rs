//! DPCs and ISRs that moved from some CPUs to others.

use explain::Subject;
use wording::listed;

use crate::finding::{subject, time_text};
use crate::sums::Key;
use crate::traffic::is_of_network;
use crate::{Change, Conclusion, Finding, Kind, PerWork, Recording};

/// Net change of the time on all CPUs, as a share of the moved time. Below this share, the DPCs and ISRs moved.
const NET: f64 = 0.1;

/// CPUs with less time in DPCs and ISRs, and CPUs with more, whose sum is about the same.
pub(crate) struct MovedInterrupts<'d> {
    from: Vec<&'d Change>,
    to: Vec<&'d Change>,
    pub(crate) largest: &'d Change,
}

impl<'d> MovedInterrupts<'d> {
    /// Finds the moved DPCs and ISRs in changes that are sorted by descending importance. Returns `None` if none moved,
    /// or if their sum changed, too.
    pub(crate) fn find(changes: &'d [Change]) -> Option<MovedInterrupts<'d>> {
        let is_cpu = |it: &&Change| it.kind == Kind::Cpu && it.conclusion == Conclusion::Differs;
        let cpus = || changes.iter().filter(is_cpu);
        let (from, to): (Vec<_>, Vec<_>) = cpus().partition(|it| it.ns() < 0.0);
        let sum = |cpus: &[&Change]| cpus.iter().map(|it| it.ns().abs()).sum::<f64>();
        let (less, more) = (sum(&from), sum(&to));
        let is_same = !from.is_empty() && (less - more).abs() <= NET * less.max(more);
        let largest = cpus().next().filter(|_| is_same)?;
        Some(MovedInterrupts { from, to, largest })
    }

    /// Returns the finding about all CPUs together.
    pub(crate) fn finding(
        &self,
        changes: &[Change],
        work: Option<&PerWork>,
        sides: [&[Recording]; 2],
    ) -> Finding {
        let side = |cpus: &[&Change], more: &str| {
            let mut numbers: Vec<u16> = cpus.iter().filter_map(|it| number(it)).collect();
            numbers.sort_unstable();
            format!(
                "{} {} ({} {more})",
                if numbers.len() == 1 { "CPU" } else { "CPUs" },
                listed(numbers),
                time_text(cpus.iter().map(|it| it.ns().abs()).sum())
            )
        };
        let per = work.map_or("per second".to_owned(), |work| format!("per {}", work.work));
        let sentence = format!(
            "The DPCs and ISRs moved from {} to {}; their sum is about the same {per}.",
            side(&self.from, "less"),
            side(&self.to, "more")
        );
        let mut finding = Finding::new(sentence, None);
        for cpu in self.from.iter().chain(&self.to) {
            finding.subjects.extend(subject(cpu));
            finding.prove(sides, |recording| Some(recording.evidence(cpu)));
        }
        let dpcs = changes.iter().filter(|it| it.kind == Kind::Dpc);
        let most = dpcs.max_by(|a, b| a.after.ns.total_cmp(&b.after.ns));
        if let Some(most) = most.filter(|it| is_of_network(&it.name)) {
            finding.because(
                "Most of the time in DPCs is for the network: the RSS settings of an adapter choose the CPUs. Traces do \
                 not record these settings."
                    .to_owned(),
                subject(most).filter(|it| matches!(it, Subject::Module { .. })),
            );
        }
        finding
    }

    /// Returns true if the row is one of the CPUs.
    pub(crate) fn has(&self, row: &Change) -> bool {
        let mut all = self.from.iter().chain(&self.to);
        all.any(|cpu| std::ptr::eq(*cpu, row))
    }
}

fn number(cpu: &Change) -> Option<u16> {
    match cpu.key {
        Key::Cpu(number) => Some(number),
        _ => None,
    }
}
