//! How far a measurement is.

use crate::Plan;

/// How many runs have been made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// So many are done.
    pub done: u32,
    /// Of at most so many.
    pub of: u32,
}

impl Runs {
    /// None yet of those that a plan has for some methods.
    pub(super) fn of(plan: &Plan, methods: usize) -> Runs {
        let rounds = plan.warm_up.saturating_add(plan.at_most.max(1));
        Runs {
            done: 0,
            of: rounds.saturating_mul(methods as u32),
        }
    }

    /// Tells how many are done before the next begins.
    pub(super) fn next(&mut self, tell: &dyn Fn(Runs)) {
        tell(*self);
        self.done += 1;
    }
}
