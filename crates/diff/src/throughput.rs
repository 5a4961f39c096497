//! Lost or gained throughput on saturated CPUs.

use explain::Subject;

use crate::finding::{name, subject, time_text};
use crate::traffic::Traffic;
use crate::{Change, Conclusion, Diff, Finding, Kind, PerWork, Recording, Work, rate_text};

/// Minimum share of busy time on a saturated CPU.
const SATURATED: f64 = 0.95;

/// Minimum change of the work rate for a finding, and minimum part of a component that is named, as shares.
const LEAST: f64 = 0.05;

/// Maximum number of components that the finding names.
const SHOWN: usize = 3;

/// Returns a finding if saturated CPUs limit the work on one side. The finding states the change of the work rate, and
/// the part of each component in the change of the cost per unit of work. On a saturated CPU, the work rate is the CPU
/// time divided by the cost.
pub(crate) fn lost(diff: &Diff, sides: [&[Recording]; 2]) -> Option<Finding> {
    let work = diff.per_work.as_ref()?;
    let ratio = work.after / work.before;
    // A saturated CPU limits the side with less work.
    let limited = match ratio {
        _ if (1.0 - LEAST..=1.0 + LEAST).contains(&ratio) => return None,
        ..1.0 => 1,
        _ => 0,
    };
    let limit = Limit {
        work,
        sides,
        limited,
    };
    limit.by_interrupts().or_else(|| limit.by_all_cpus())
}

/// Work whose rate differs, and the side whose CPUs may limit it.
struct Limit<'d> {
    work: &'d PerWork,
    sides: [&'d [Recording]; 2],
    limited: usize,
}

impl Limit<'_> {
    /// Returns a finding if DPCs and ISRs leave no time on a CPU for anything else.
    fn by_interrupts(&self) -> Option<Finding> {
        if self.work.work != Work::NetworkKib {
            return None;
        }
        let busy = |cpu: u16, side: usize| {
            let ns = self.sum(side, |recording| recording.interrupts_ns.get(&cpu).copied());
            ns / 1e9 / self.sum(side, |recording| Some(recording.seconds))
        };
        // A CPU that does not handle packets cannot limit the traffic.
        let traffic = Traffic::new(self.sides);
        let cpus = self.sides[self.limited].first()?.interrupts_ns.keys();
        let cpu = (cpus.copied())
            .filter(|cpu| traffic.is_most_of_cpu(*cpu, self.sides[self.limited]))
            .max_by(|a, b| busy(*a, self.limited).total_cmp(&busy(*b, self.limited)))?;
        if busy(cpu, self.limited) < SATURATED {
            return None;
        }
        // The components of the cost are the modules of the sampled code. Without samples, they are the modules of the
        // DPCs and ISRs.
        let changes = |kinds: &[Kind]| {
            let all = self.changes(kinds).into_iter();
            all.filter(|change| traffic.has(change.kind, &change.name.to_lowercase(), &change.key))
                .collect::<Vec<_>>()
        };
        let code = changes(&[Kind::InterruptCode]);
        let parts = if code.is_empty() {
            changes(&[Kind::Dpc, Kind::Isr])
        } else {
            code
        };
        let busy = [busy(cpu, 0), busy(cpu, 1)];
        let of_time = "its time was in DPCs and ISRs";
        let subject = Subject::Cpu { number: cpu };
        let mut finding =
            self.finding(parts, &format!("CPU {cpu}"), busy, of_time, Some(subject))?;
        finding.prove(self.sides, |recording| Some(recording.cpu_evidence(cpu)));
        finding.doubts.push(
            "A CPU that is always busy limits the traffic only if its packets cannot go to another CPU (RSS)"
                .to_owned(),
        );
        Some(finding)
    }

    /// Returns a finding if threads, DPCs and ISRs leave no time on any CPU.
    fn by_all_cpus(&self) -> Option<Finding> {
        let parts = self.changes(&[Kind::Program, Kind::Dpc, Kind::Isr]);
        if !parts.iter().any(|part| part.kind == Kind::Program) {
            return None;
        }
        let busy = |side: usize| {
            let ns = self.sum(side, |recording| {
                let interrupts: f64 = recording.interrupts_ns.values().sum();
                Some(recording.rows.of_kind(Kind::Program).0 + interrupts)
            });
            let seconds = self.sum(side, |recording| {
                Some(recording.seconds * f64::from(recording.cpus()?))
            });
            ns / 1e9 / seconds
        };
        let known = self.sides.into_iter().flatten();
        if !known
            .into_iter()
            .all(|recording| recording.cpus().is_some())
            || busy(self.limited) < SATURATED
        {
            return None;
        }
        let busy = [busy(0), busy(1)];
        let mut finding = self.finding(parts, "CPU time", busy, "all CPUs was in use", None)?;
        finding.prove(self.sides, |recording| Some(recording.threads_evidence()));
        finding.prove(self.sides, |recording| {
            Some(recording.interrupts_evidence())
        });
        finding.doubts.push(
            "Busy CPUs limit the work only if the threads that use them have at least the priority of the threads \
             that do the work"
                .to_owned(),
        );
        Some(finding)
    }

    fn sum(&self, side: usize, value: impl Fn(&Recording) -> Option<f64>) -> f64 {
        // The sum of no numbers is -0.0 in Rust. Adding 0.0 makes it 0.0.
        self.sides[side].iter().filter_map(value).sum::<f64>() + 0.0
    }

    fn changes(&self, kinds: &[Kind]) -> Vec<&Change> {
        let all = self.work.changes.iter();
        let is_part = |change: &&Change| {
            kinds.contains(&change.kind) && change.conclusion != Conclusion::Unrelated
        };
        all.filter(is_part).collect()
    }

    /// Returns the finding that `limit` limited the work. `parts` are the components of the cost of the work. `busy`
    /// contains the share of busy time on each side. `of_time` continues the sentence after this share, for example "of
    /// all CPUs was in use".
    fn finding(
        &self,
        mut parts: Vec<&Change>,
        limit: &str,
        busy: [f64; 2],
        of_time: &str,
        about: Option<Subject>,
    ) -> Option<Finding> {
        let work = self.work;
        let whole: f64 = parts.iter().map(|part| part.ns()).sum();
        // The amount of work must decrease if its cost increases, and increase if its cost decreases.
        // Otherwise, the change has another reason.
        if whole == 0.0 || (whole > 0.0) != (work.after < work.before) {
            return None;
        }
        parts.sort_by(|a, b| (b.ns() / whole).total_cmp(&(a.ns() / whole)));
        let parts: Vec<&Change> = parts
            .into_iter()
            .filter(|part| part.differs() && part.ns() / whole > LEAST)
            .take(SHOWN)
            .collect();
        let names: Vec<String> = parts
            .iter()
            .map(|part| {
                let (old, new) = (time_text(part.before.ns), time_text(part.after.ns));
                let share = part.ns() / whole * 100.0;
                format!(
                    "{share:.0} % of this is in {} ({old} before, {new} after)",
                    name(part)
                )
            })
            .collect();
        if names.is_empty() {
            return None;
        }
        let (change, when) = match self.limited {
            1 => ("fell", "after"),
            _ => ("rose", "before"),
        };
        let (subject_of_work, unit) = match work.work {
            Work::NetworkKib => ("network traffic", "KiB".to_owned()),
            _ => ("work", work.work.to_string()),
        };
        let mut finding = Finding::new(
            format!(
                "The {subject_of_work} {change} from {} to {}. {limit} limited it {when} the change: {:.1} % of \
                 {of_time} before and {:.1} % after.",
                rate_text(&work.work, work.before),
                rate_text(&work.work, work.after),
                busy[0] * 100.0,
                busy[1] * 100.0
            ),
            about,
        );
        finding.because(
            format!(
                "A {unit} costs {} {}: {}.",
                time_text(whole.abs()),
                if whole > 0.0 { "more" } else { "less" },
                names.join(", ")
            ),
            None,
        );
        for part in &parts {
            finding.subjects.extend(subject(part));
            finding.prove(self.sides, |recording| Some(recording.evidence(part)));
        }
        finding.prove(self.sides, |recording| {
            Some(recording.work_evidence(&work.work))
        });
        Some(finding)
    }
}
