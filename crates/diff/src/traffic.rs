//! Rows of DPCs and ISRs that depend on the network traffic. Only their times are divided by the traffic.

use std::collections::BTreeSet;

use statistics::mean;

use crate::sums::Key;
use crate::{Kind, Recording, Work};

/// Modules of Windows that run only for the network, in lower case.
const NETWORK: [&str; 11] = [
    "ndis.sys",
    "netio.sys",
    "tcpip.sys",
    "fwpkclnt.sys",
    "wfplwfs.sys",
    "afd.sys",
    "http.sys",
    "srv2.sys",
    "srvnet.sys",
    "mrxsmb.sys",
    "mrxsmb20.sys",
];

/// Minimum share of network time in the time of a module's DPCs, of code or of a CPU. Below this share, the time does
/// not count as dependent on the traffic.
const MOST: f64 = 0.5;

/// Maximum product of two numbers: the share of a row's time that does not depend on the traffic, and the relative
/// difference of the traffic. The product is the error of the row's time per KiB. Above this limit, the row is not
/// divided by the traffic.
const UNRELATED: f64 = 0.1;

/// Range of the elasticity of a count that depends on the traffic. The elasticity is the relative change of the count
/// divided by the relative change of the traffic. It is 0 if the count is constant, and 1 if the count per KiB is
/// constant.
const PROPORTIONAL: std::ops::Range<f64> = 0.5..1.5;

/// Number of standard errors by which an elasticity must exceed the lower end of `PROPORTIONAL`.
const SURE: f64 = 2.0;

/// Minimum ratio of the traffic of both sides. From this ratio on, the counts of the two sides must also be
/// proportional to their traffic.
const DIFFERS: f64 = 1.05;

/// Minimum number of blocks of both sides together for computing an elasticity.
const LEAST_BLOCKS: usize = 10;

/// Time of DPCs and ISRs, and the part of it that depends on the traffic.
#[derive(Default)]
struct Part {
    own_ns: f64,
    whole_ns: f64,
}

impl Part {
    fn is_mostly_own(&self) -> bool {
        self.own_ns > 0.0 && self.own_ns >= MOST * self.whole_ns
    }
}

/// Returns true if the module belongs to the network.
pub(crate) fn is_of_network(module: &str) -> bool {
    let module = module.to_lowercase();
    NETWORK.contains(&&*module)
}

/// DPCs and ISRs of all recordings that depend on the network traffic.
pub(crate) struct Traffic<'r> {
    sides: [&'r [Recording]; 2],
    /// Kinds (`Kind::Dpc` or `Kind::Isr`) and modules, in lower case, of the DPCs and ISRs that depend on the traffic.
    routines: BTreeSet<(Kind, String)>,
    /// Difference of the traffic per second of both sides, as a share of the larger traffic.
    difference: f64,
}

impl<'r> Traffic<'r> {
    /// Finds the modules whose DPCs or ISRs depend on the traffic. There are three kinds: modules of the network,
    /// modules whose DPCs run mostly code of network modules, and modules whose numbers of DPCs or ISRs follow the
    /// traffic.
    pub(crate) fn new(sides: [&'r [Recording]; 2]) -> Traffic<'r> {
        let rate = |side: &[Recording]| {
            let kib = side
                .iter()
                .filter_map(|recording| recording.work.get(&Work::NetworkKib));
            let kib: f64 = kib.flatten().sum();
            kib / side.iter().map(|recording| recording.seconds).sum::<f64>()
        };
        let [before, after] = sides.map(rate);
        let mut traffic = Traffic {
            sides,
            routines: BTreeSet::new(),
            difference: 1.0 - before.min(after) / before.max(after),
        };
        let all = || sides.into_iter().flatten();
        let of_kind = |kind| {
            all().flat_map(move |recording| recording.rows.named_of_kind(kind).map(|(key, _)| key))
        };
        let keys: BTreeSet<_> = [Kind::Dpc, Kind::Isr]
            .into_iter()
            .flat_map(of_kind)
            .collect();
        for key in keys {
            let is_of_network = is_of_network(&key.1)
                || key.0 == Kind::Dpc && traffic.runs_network(&key.1)
                || traffic.follows(key);
            if is_of_network {
                traffic.routines.insert(key.clone());
            }
        }
        traffic
    }

    /// Returns true if the time of a row depends on the traffic. `name` is in lower case.
    pub(crate) fn has(&self, kind: Kind, name: &str, source: &Key) -> bool {
        match (kind, source) {
            (Kind::Dpc | Kind::Isr, _) => self.has_routines(kind, name),
            (Kind::DpcFunction, Key::Function(module)) => self.has_routines(Kind::Dpc, module),
            (Kind::IsrFunction, Key::Function(module)) => self.has_routines(Kind::Isr, module),
            (Kind::InterruptCode, _) => self.has_code(name),
            (Kind::InterruptFunction, Key::Function(module)) => self.has_code(module),
            (Kind::Cpu, Key::Cpu(cpu)) => self.divides(|side| self.of_cpu(*cpu, side)),
            _ => false,
        }
    }

    /// Returns true if most of the time of DPCs and ISRs on a CPU depends on the traffic.
    pub(crate) fn is_most_of_cpu(&self, cpu: u16, recordings: &[Recording]) -> bool {
        self.of_cpu(cpu, recordings).is_mostly_own()
    }

    fn all(&self) -> impl Iterator<Item = &'r Recording> {
        self.sides.into_iter().flatten()
    }

    fn has_routines(&self, kind: Kind, module: &str) -> bool {
        self.routines.contains(&(kind, module.to_owned()))
    }

    /// Returns true if a row can be divided by the traffic. Most of its time must depend on the traffic. The other part
    /// must be small, or the traffic must be about the same on both sides, so that this part does not change the
    /// result.
    fn divides(&self, part: impl Fn(&[Recording]) -> Part) -> bool {
        let sides = self.sides.map(part);
        let is_wrong = |side: &Part| {
            let other = 1.0 - side.own_ns / side.whole_ns;
            side.whole_ns > 0.0 && other * self.difference > UNRELATED
        };
        let [before, after] = &sides;
        let both = Part {
            own_ns: before.own_ns + after.own_ns,
            whole_ns: before.whole_ns + after.whole_ns,
        };
        both.is_mostly_own() && !sides.iter().any(is_wrong)
    }

    /// Returns the time of DPCs and ISRs on a CPU.
    fn of_cpu(&self, cpu: u16, recordings: &[Recording]) -> Part {
        let mut part = Part::default();
        for of in recordings {
            part.whole_ns += of.interrupts_ns.get(&cpu).copied().unwrap_or(0.0);
            for ((on, kind, module), ns) in &of.routines_ns {
                if *on == cpu && self.has_routines(*kind, module) {
                    part.own_ns += ns;
                }
            }
        }
        part
    }

    /// Returns true if a module's code in DPCs depends on the traffic. If the code ran only in ISRs, returns true if
    /// the module's ISRs depend on the traffic.
    fn has_code(&self, code: &str) -> bool {
        let has_dpcs =
            |recording: &Recording| recording.dpc_code.keys().any(|(_, it)| **it == *code);
        if self.all().any(has_dpcs) {
            self.divides(|side| self.of_code(code, side))
        } else {
            self.has_routines(Kind::Isr, code)
        }
    }

    /// Returns the sampled time of a module's code in DPCs.
    fn of_code(&self, code: &str, recordings: &[Recording]) -> Part {
        let mut part = Part::default();
        for of in recordings {
            for ((dpcs, _), ns) in of.dpc_code.iter().filter(|((_, it), _)| **it == *code) {
                part.whole_ns += ns;
                if self.has_routines(Kind::Dpc, dpcs) {
                    part.own_ns += ns;
                }
            }
        }
        part
    }

    /// Returns true if most of the sampled time in a module's DPCs is in code of the modules `NETWORK`.
    fn runs_network(&self, module: &str) -> bool {
        let mut part = Part::default();
        for of in self.all() {
            for ((_, code), ns) in of.dpc_code.iter().filter(|((it, _), _)| **it == *module) {
                part.whole_ns += ns;
                if NETWORK.contains(&&**code) {
                    part.own_ns += ns;
                }
            }
        }
        part.is_mostly_own()
    }

    /// Returns true if the number of a module's DPCs or ISRs is proportional to the traffic. This must hold over the
    /// blocks of all recordings and, if the traffic of the sides differs, between the sides. Recordings without the
    /// module are left out, because a new or removed module does not show a dependence on the traffic.
    fn follows(&self, key: &(Kind, String)) -> bool {
        let mut sides: [(Vec<f64>, Vec<f64>); 2] = Default::default();
        for ((traffic, counts), recordings) in sides.iter_mut().zip(self.sides) {
            for of in recordings {
                let Some(row) = of.rows.named.get(key) else {
                    continue;
                };
                let Some(kib) = of.work.get(&Work::NetworkKib) else {
                    return false;
                };
                let seconds = of.seconds / of.blocks.count as f64;
                traffic.extend(kib.iter().map(|kib| kib / seconds));
                counts.extend(row.blocks.iter().map(|sum| sum.count / seconds));
            }
        }
        let [before, after] = &sides;
        let growth = |before: &[f64], after: &[f64]| (mean(after) / mean(before)).ln();
        let (grown, more) = (growth(&before.0, &after.0), growth(&before.1, &after.1));
        // If one side lacks the module, `more` is not a number, and the comparison is skipped.
        if grown.abs() > DIFFERS.ln() && !PROPORTIONAL.contains(&(more / grown)) {
            return false;
        }
        let traffic = [&before.0[..], &after.0[..]].concat();
        let counts = [&before.1[..], &after.1[..]].concat();
        elasticity(&traffic, &counts).is_some_and(|(elasticity, error)| {
            elasticity - SURE * error > PROPORTIONAL.start && elasticity < PROPORTIONAL.end
        })
    }
}

/// Returns the elasticity of `counts` against `traffic` and its standard error, by least squares. Returns `None` if
/// there are too few values, if the traffic is constant, or if all counts are 0.
fn elasticity(traffic: &[f64], counts: &[f64]) -> Option<(f64, f64)> {
    let relative = |values: &[f64]| -> Vec<f64> {
        let mean = mean(values);
        values.iter().map(|value| value / mean - 1.0).collect()
    };
    let (x, y) = (relative(traffic), relative(counts));
    let square: f64 = x.iter().map(|x| x * x).sum();
    if x.len() < LEAST_BLOCKS || !square.is_normal() {
        return None;
    }
    let pairs = || x.iter().zip(&y);
    let slope = pairs().map(|(x, y)| x * y).sum::<f64>() / square;
    let rest: f64 = pairs().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let error = (rest / (x.len() - 2) as f64 / square).sqrt();
    error.is_finite().then_some((slope, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_follows_the_traffic_has_an_elasticity_of_one() {
        let traffic: Vec<f64> = (1..=20).map(f64::from).collect();
        let elasticity_of = |count: &dyn Fn(f64) -> f64| {
            let counts: Vec<f64> = traffic.iter().map(|kib| count(*kib)).collect();
            elasticity(&traffic, &counts).unwrap().0
        };
        assert!((elasticity_of(&|kib| 3.0 * kib) - 1.0).abs() < 1e-9);
        assert!(elasticity_of(&|_| 7.0).abs() < 1e-9);
        // The mean traffic is 10.5, so half of this count follows the traffic.
        assert!((elasticity_of(&|kib| 10.5 + kib) - 0.5).abs() < 1e-9);
        assert_eq!(elasticity(&[2.0; 20], &traffic), None);
        assert_eq!(elasticity(&traffic, &[0.0; 20]), None);
        assert_eq!(elasticity(&traffic[..9], &traffic[..9]), None);
    }
}
