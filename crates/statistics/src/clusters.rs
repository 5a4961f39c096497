//! Clusters of late samples. One stall makes every sample late that it hits, so late samples are no
//! independent events; stalls are.

use serde::Serialize;

/// Late samples of a run, and the stalls that they form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clusters {
    /// Number of samples beyond the threshold.
    pub late: usize,
    /// Extremal index: stalls per late sample, at most 1 (Ferro and Segers).
    pub index: f64,
    /// Number of stalls.
    pub stalls: usize,
}

/// Finds the samples beyond a threshold and groups them.
pub fn beyond(values: &[f64], threshold: f64) -> Clusters {
    let places = values.iter().enumerate();
    let places = places.filter(|(_, value)| **value > threshold);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let gaps: Vec<usize> = places.windows(2).map(|two| two[1] - two[0]).collect();
    let index = extremal_index(&gaps);
    // The longest gaps separate stalls; their number follows from the index.
    let apart = (index * gaps.len() as f64 + 1e-9).floor() as usize;
    // Late samples next to each other are one stall.
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

/// Returns the extremal index of the gaps between late samples; 1 without gaps.
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
