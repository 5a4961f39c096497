//! Use of the processors by threads, in numbers that can be added and compared.

use serde::{Deserialize, Serialize};

/// Number of bins for each doubling of a duration. So a bin is 1.1 % wide.
const BINS: f64 = 64.0;

/// Distribution of durations in bins that are 1.1 % wide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of durations.
    pub count: u64,
    /// Sum in nanoseconds.
    pub sum_ns: u64,
    /// Longest duration in nanoseconds.
    pub max_ns: u64,
    /// Sorted bins, and the number of durations in each.
    bins: Vec<(u16, u64)>,
}

impl Spread {
    fn from_durations(durations: Vec<u64>) -> Spread {
        let mut spread = Spread {
            count: durations.len() as u64,
            sum_ns: durations.iter().fold(0, |sum, ns| ns.saturating_add(sum)),
            max_ns: durations.iter().copied().max().unwrap_or(0),
            bins: Vec::new(),
        };
        let mut bins: Vec<u16> = durations.into_iter().map(bin).collect();
        bins.sort_unstable();
        for bin in bins {
            match spread.bins.last_mut() {
                Some((last, count)) if *last == bin => *count += 1,
                _ => spread.bins.push((bin, 1)),
            }
        }
        spread
    }

    /// Returns the duration in nanoseconds that a share of all durations does not exceed, to within 0.6 %. Returns
    /// `None` if there are none.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        if rank >= self.count {
            return (self.count > 0).then_some(self.max_ns as f64);
        }
        let mut seen = 0_u64;
        let bin = self.bins.iter().find(|(_, count)| {
            seen = count.saturating_add(seen);
            seen >= rank
        });
        bin.map(|(bin, _)| middle(*bin).min(self.max_ns as f64))
    }

    /// Adds the durations of another spread.
    pub(crate) fn add(&mut self, other: &Spread) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (bin, count) in &other.bins {
            match self.bins.binary_search_by_key(bin, |(bin, _)| *bin) {
                Ok(at) => self.bins[at].1 = self.bins[at].1.saturating_add(*count),
                Err(at) => self.bins.insert(at, (*bin, *count)),
            }
        }
    }
}

fn bin(ns: u64) -> u16 {
    match ns {
        0 => 0,
        ns => 1 + ((ns as f64).log2() * BINS) as u16,
    }
}

fn middle(bin: u16) -> f64 {
    match bin {
        0 => 0.0,
        bin => ((f64::from(bin) - 0.5) / BINS).exp2(),
    }
}

/// Use of the processors by a thread or a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Processor time in nanoseconds, without interrupts and DPCs.
    pub cpu_ns: u64,
    /// Times from the moment when a thread became ready until it ran, or until the end of the measured time. The first
    /// run of a thread whose earlier state is unknown does not count.
    pub ready: Spread,
    /// Times from the end of a wait to the thread's next wait or to its end, or until the end of the measured time.
    pub response: Spread,
}

impl Summary {
    pub(crate) fn new(cpu_ns: u64, ready_ns: Vec<u64>, response_ns: Vec<u64>) -> Summary {
        Summary {
            cpu_ns,
            ready: Spread::from_durations(ready_ns),
            response: Spread::from_durations(response_ns),
        }
    }

    /// Adds the use of another thread.
    pub(crate) fn add(&mut self, other: &Summary) {
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.ready.add(&other.ready);
        self.response.add(&other.response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares quantiles with those of the sorted list, and sums with their definition.
    #[test]
    fn quantiles_are_those_of_the_list() {
        let durations: Vec<u64> = (0..1_000).map(|n: u64| n * n * 100).collect();
        let mut spread = Spread::from_durations(durations[..500].to_vec());
        spread.add(&Spread::from_durations(durations[500..].to_vec()));
        assert_eq!(spread, Spread::from_durations(durations.clone()));
        for share in [0.0, 0.1, 0.5, 0.9, 0.99] {
            let exact = durations[((share * 1_000.0) as usize).max(1) - 1] as f64;
            let estimate = spread.quantile_ns(share).unwrap();
            assert!(
                (estimate - exact).abs() <= exact * 0.006,
                "{share}: {estimate}"
            );
        }
        assert_eq!(spread.quantile_ns(1.0), Some(99_800_100.0));
        assert_eq!(Spread::default().quantile_ns(0.5), None);
    }
}
