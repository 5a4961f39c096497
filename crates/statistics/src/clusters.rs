//! Clusters of late samples. One stall delays all samples that it hits, so late samples depend on each other. Stalls
//! are independent events.
//!
//! Late samples belong to one stall if they are much closer to each other than late samples usually are. The usual
//! distance is that of all runs of a side: the late samples of one run are too few, and if all of them are from one
//! stall, they do not show that their distances are short.

use std::collections::BTreeMap;

/// Late samples of a run: samples above a threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Late {
    /// Number of late samples.
    pub count: usize,
    /// Distances of consecutive late samples, and the number of pairs with this distance. There are few different
    /// distances, because their sum is at most the length of the run.
    distances: BTreeMap<usize, usize>,
}

impl Late {
    /// Finds the samples above a threshold.
    pub fn beyond(values: &[f64], threshold: f64) -> Late {
        let places = values.iter().enumerate();
        let places = places.filter(|(_, value)| **value > threshold);
        Late::of_places(places.map(|(place, _)| place))
    }

    /// Creates the late samples from their indexes in the run, in ascending order.
    pub fn of_places(places: impl Iterator<Item = usize>) -> Late {
        let mut late = Late::default();
        let mut last = None;
        for place in places {
            if let Some(last) = last.replace(place) {
                *late.distances.entry(place - last).or_default() += 1;
            }
            late.count += 1;
        }
        late
    }

    /// Returns the number of stalls. Late samples that are further apart than `apart` belong to different stalls.
    pub fn stalls(&self, apart: usize) -> usize {
        let gaps = self.distances.range(apart + 1..);
        gaps.map(|(_, pairs)| pairs).sum::<usize>() + self.count.min(1)
    }
}

/// Returns the greatest distance of late samples in one stall, for runs with `samples` samples in total, of which
/// `late` are late. It is a tenth of the mean distance, and at least 1. So if the late samples are independent of each
/// other, only one in ten seems to belong to the stall of another one.
pub fn apart(late: usize, samples: usize) -> usize {
    (samples / (10 * late.max(1))).max(1)
}
