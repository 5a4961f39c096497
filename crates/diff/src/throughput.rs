//! Lost or gained throughput on saturated CPUs.

use explain::Subject;

use crate::finding::{subject, time_text};
use crate::{Change, Diff, Finding, Kind, Recording, Work, rate_text};

/// Minimum share of DPCs and ISRs in the time of a saturated CPU. On a saturated CPU, no time remains for
/// threads.
const SATURATED: f64 = 0.95;

/// Minimum change of the work rate, as a share.
const LEAST: f64 = 0.05;

/// Maximum number of components that the finding names.
const SHOWN: usize = 3;

/// Returns a finding if DPCs and ISRs saturate a CPU and so limit the network traffic. The finding states how
/// the rate of the traffic changed, and the share of each component in the change of the cost per KiB. On a
/// saturated CPU, the rate is the time of the CPU divided by the cost.
pub(crate) fn lost(diff: &Diff, sides: [&[Recording]; 2]) -> Option<Finding> {
    let work = diff
        .per_work
        .as_ref()
        .filter(|it| it.work == Work::NetworkKib)?;
    let ratio = work.after / work.before;
    // A saturated CPU limits the side with less traffic.
    let limited = match ratio {
        _ if (1.0 - LEAST..=1.0 + LEAST).contains(&ratio) => return None,
        ..1.0 => 1,
        _ => 0,
    };
    let busy = |cpu: u16, side: usize| {
        let seconds: f64 = sides[side].iter().map(|of| of.seconds).sum();
        let of_cpu = sides[side]
            .iter()
            .filter_map(|of| of.interrupts_ns.get(&cpu));
        of_cpu.sum::<f64>() / 1e9 / seconds
    };
    let cpus = sides[limited].first()?.interrupts_ns.keys();
    let cpu = cpus
        .copied()
        .max_by(|a, b| busy(*a, limited).total_cmp(&busy(*b, limited)))?;
    if busy(cpu, limited) < SATURATED {
        return None;
    }
    // The components of the cost are modules. With samples, they are the modules of the sampled code. Without
    // samples, they are the modules of the DPCs and ISRs.
    let is_of = |kinds: &[Kind]| {
        let of = work.changes.iter().filter(|it| kinds.contains(&it.kind));
        of.collect::<Vec<&Change>>()
    };
    let code = is_of(&[Kind::InterruptCode]);
    let mut parts = if code.is_empty() {
        is_of(&[Kind::Dpc, Kind::Isr])
    } else {
        code
    };
    let whole: f64 = parts.iter().map(|part| part.ns()).sum();
    // The amount of work must decrease if its cost increases, and increase if its cost decreases. Otherwise,
    // the change has another reason.
    if whole == 0.0 || (whole > 0.0) != (ratio < 1.0) {
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
                "{} has {share:.0} % of it ({old} before, {new} after)",
                part.name
            )
        })
        .collect();
    if names.is_empty() {
        return None;
    }
    let (less, when) = match limited {
        1 => ("fell", "after"),
        _ => ("rose", "before"),
    };
    let mut finding = Finding::new(
        format!(
            "The network traffic {less} from {} to {}. CPU {cpu} limited it {when} the change: {:.1} % of its \
             time before and {:.1} % after was in DPCs and ISRs.",
            rate_text(&work.work, work.before),
            rate_text(&work.work, work.after),
            busy(cpu, 0) * 100.0,
            busy(cpu, 1) * 100.0
        ),
        Some(Subject::Cpu { number: cpu }),
    );
    finding.because(
        format!(
            "A KiB costs {} {}: {}.",
            time_text(whole.abs()),
            if whole > 0.0 { "more" } else { "less" },
            names.join(", ")
        ),
        None,
    );
    for part in &parts {
        finding.subjects.extend(subject(part));
        finding.prove(sides, |of| Some(of.evidence(part)));
    }
    finding.prove(sides, |of| Some(of.work_evidence(&work.work)));
    finding.prove(sides, |of| Some(of.cpu_evidence(cpu)));
    finding.doubts.push(
        "A CPU that is always busy limits the traffic only if its packets cannot go to another CPU (RSS)"
            .to_owned(),
    );
    Some(finding)
}
