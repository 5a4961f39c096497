//! Clusters of late samples. One stall delays all samples that it hits, so late samples depend on each other. Stalls
//! are independent events.

use serde::Serialize;

/// Late samples of a run, and the stalls that caused them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clusters {
    /// Number of late samples: samples above the threshold.
    pub late: usize,
    /// Extremal index: estimated number of stalls per late sample, at most 1 (Ferro and Segers).
    pub index: f64,
    /// Number of stalls. Each stall is a group of late samples.
    pub stalls: usize,
}

/// Finds the samples above a threshold and groups them into stalls.
pub fn beyond(values: &[f64], threshold: f64) -> Clusters {
    let places = values.iter().enumerate();
    let places = places.filter(|(_, value)| **value > threshold);
    of_places(places.map(|(place, _)| place))
}

/// Groups late samples. `places` are their indexes in the run, in ascending order.
pub fn of_places(places: impl Iterator<Item = usize>) -> Clusters {
    let places: Vec<usize> = places.collect();
    let gaps: Vec<usize> = places.windows(2).map(|two| two[1] - two[0]).collect();
    let index = extremal_index(&gaps);
    // The longest gaps separate the stalls. The extremal index gives the number of these gaps.
    let apart = (index * gaps.len() as f64 + 1e-9).floor() as usize;
    // Consecutive late samples belong to one stall, so only gaps above 1 can separate stalls.
    let could_part = gaps.iter().filter(|gap| **gap > 1).count();
    Clusters {
        late: places.len(),
        index,
        stalls: match places.len() {
            0 => 0,
            _ => 1 + apart.min(could_part),
        },
    }
}

/// Returns the extremal index of a run. `gaps` are the differences between the indexes of consecutive late
/// samples. Returns 1 if there are no gaps.
pub fn extremal_index(gaps: &[usize]) -> f64 {
    let count = gaps.len() as f64;
    let sum = |of: &dyn Fn(f64) -> f64| gaps.iter().map(|gap| of(*gap as f64)).sum::<f64>();
    let (above, below) = match gaps.iter().max() {
        None => return 1.0,
        Some(0..=2) => (sum(&|gap| gap), sum(&|gap| gap * gap)),
        Some(_) => (sum(&|gap| gap - 1.0), sum(&|gap| (gap - 1.0) * (gap - 2.0))),
    };
    (2.0 * above * above / (count * below)).min(1.0)
}
