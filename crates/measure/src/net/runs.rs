//! Progress of a measurement.

use crate::Plan;

/// Progress of a measurement, counted in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Number of runs done.
    pub done: u32,
    /// Maximum number of runs.
    pub total: u32,
}

impl Runs {
    /// Returns the progress at the start of a plan.
    pub(super) fn new(plan: &Plan, methods: usize) -> Runs {
        let rounds = plan.warm_up.saturating_add(plan.at_most.max(1));
        Runs {
            done: 0,
            total: rounds.saturating_mul(methods as u32),
        }
    }

    /// Reports the progress before the next run, and then counts that run as done.
    pub(super) fn next(&mut self, tell: &dyn Fn(Runs)) {
        tell(*self);
        self.done += 1;
    }
}
