//! Number and order of the runs of a measurement.

use std::time::Duration;

use serde::Serialize;
use statistics::MARGIN;
use statistics::looks::is_look;

use crate::compare::{compare_so_far, positive_interval};
use crate::{Comparison, Now, Stop};

/// Number of rounds, and conditions under which the rounds end. Each round has one run of each method. The
/// method that runs first changes from round to round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Number of warm-up rounds. Their samples do not count.
    pub warm_up: u32,
    /// Minimum number of counted rounds, regardless of the time.
    pub at_least: u32,
    /// Maximum number of counted rounds.
    pub at_most: u32,
    /// Time after which no further round starts.
    pub time: Duration,
    /// Result that ends the measurement early. The plan checks it after 6, 8, 12, 16, 24, 32, 48, 64, …
    /// rounds.
    pub goal: Option<Goal>,
}

/// Result that ends a measurement early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Goal that the median of every method is known precisely: half the width of the median's 97 %
    /// confidence interval is at most this fraction of the median.
    Precision(f64),
    /// Goal that every comparison is sure. A comparison is sure if the method is higher or lower than the
    /// reference by more than this fraction, or if the two differ by at most this fraction.
    Sure(f64),
}

impl Goal {
    /// Maximum number of rounds in which comparisons may become sure.
    pub const MAX_ROUNDS: u32 = 64;

    /// Returns the share of the latency that a change must exceed to matter.
    pub fn margin(goal: Option<Goal>) -> f64 {
        match goal {
            Some(Goal::Sure(margin)) => margin,
            _ => MARGIN,
        }
    }
}

/// Method and number of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of the method.
    pub method: usize,
    /// Number of the run, from 0; `None` while warming up.
    pub run: Option<u32>,
}

/// Reason why measuring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All rounds were done.
    Rounds,
    /// The time was over.
    Time,
    /// The medians have the requested precision.
    Precision,
    /// Every comparison is sure.
    Sure,
    /// The user stopped the measurement. The samples so far are kept.
    Stopped,
}

impl Plan {
    /// Plan of a pilot: one round without a warm-up. The round may take any time.
    pub const ONE_ROUND: Plan = Plan {
        warm_up: 0,
        at_least: 1,
        at_most: 1,
        time: Duration::MAX,
        goal: None,
    };

    /// Calls `run` for every run until the plan is done. `run` returns the median latency of the run, if there is one.
    /// `references` has one entry per method: the index of the reference method, or `None` if there is no reference. A
    /// method without a median in the last `Comparison::MIN_PAIRS` rounds no longer delays the end.
    ///
    /// # Errors
    /// Returns the first error of `run`.
    pub fn carry_out<E>(
        &self,
        references: &[Option<usize>],
        clock: &impl Now,
        stop: Stop<'_>,
        mut run: impl FnMut(Turn) -> Result<Option<f64>, E>,
    ) -> Result<End, E> {
        let methods = references.len();
        let start_ns = clock.now_ns();
        let mut medians: Vec<Vec<Option<f64>>> = vec![Vec::new(); methods];
        for round in 0..self.warm_up.saturating_add(self.at_most.max(1)) {
            let number = round.checked_sub(self.warm_up);
            for turn in 0..methods {
                let method = (turn + number.unwrap_or(0) as usize) % methods;
                if stop() {
                    return Ok(End::Stopped);
                }
                let median = run(Turn {
                    method,
                    run: number,
                })?;
                if number.is_some() {
                    medians[method].push(median);
                }
            }
            let Some(done) = number.map(|number| number + 1) else {
                continue;
            };
            if stop() {
                return Ok(End::Stopped);
            }
            if done < self.at_least {
                continue;
            }
            match self.goal.filter(|_| is_look(done as usize)) {
                Some(Goal::Precision(share)) if all_known(&medians, share) => {
                    return Ok(End::Precision);
                }
                Some(Goal::Sure(margin)) if all_sure(&medians, references, margin) => {
                    return Ok(End::Sure);
                }
                _ => {}
            }
            let took_ns = clock.now_ns().saturating_sub(start_ns);
            if u128::try_from(took_ns).is_ok_and(|took| took >= self.time.as_nanos()) {
                return Ok(End::Time);
            }
        }
        Ok(End::Rounds)
    }
}

/// Confidence of the interval that may end a measurement. This confidence is greater than the reported 95 %.
/// A measurement that stops when its interval is narrow stops too often at intervals that are narrow by
/// chance. With 95 %, the interval would therefore contain the true value in only 92.0 to 93.2 % of cases.
const STOP_CONFIDENCE: f64 = 0.97;

/// Returns true if the median of each method has the precision `share`: half the width of its confidence interval is
/// at most this fraction of the median. Ignores methods without a recent median. Returns false if no method has a
/// recent median.
fn all_known(medians: &[Vec<Option<f64>>], share: f64) -> bool {
    let mut there = medians.iter().filter(|method| is_there(method)).peekable();
    there.peek().is_some()
        && there.all(|method| {
            positive_interval(method.iter().copied().flatten(), STOP_CONFIDENCE)
                .is_ok_and(|it| it.high - it.low <= 2.0 * share * it.centre)
        })
}

/// Returns true if the comparison of each method with its reference is sure. Ignores methods without a recent
/// median. Returns false if no comparison remains.
fn all_sure(medians: &[Vec<Option<f64>>], references: &[Option<usize>], margin: f64) -> bool {
    let compared = medians
        .iter()
        .zip(references)
        .filter_map(|(method, reference)| {
            let other = medians.get((*reference)?)?;
            (is_there(method) && is_there(other)).then_some((method, other))
        });
    let mut compared = compared.peekable();
    compared.peek().is_some()
        && compared.all(|(method, other)| {
            let pairs = method.iter().zip(other);
            let pairs: Vec<(f64, f64)> = pairs
                .filter_map(|(value, other)| Some(((*value)?, (*other)?)))
                .collect();
            compare_so_far(&pairs).is_ok_and(|it| it.verdict(margin).is_sure())
        })
}

/// Returns true if a method has a median in one of the last rounds.
fn is_there(medians: &[Option<f64>]) -> bool {
    let mut last = medians.iter().rev().take(Comparison::MIN_PAIRS);
    last.any(Option::is_some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Hand(Cell<i64>);

    impl Now for Hand {
        fn now_ns(&self) -> i64 {
            self.0.get()
        }
    }

    const PLAN: Plan = Plan {
        warm_up: 1,
        at_least: 2,
        at_most: 50,
        time: Duration::from_secs(10),
        goal: None,
    };

    /// Carries out a plan for three methods. Each run takes a second and returns `median`.
    fn turns(plan: Plan, stop: Stop<'_>, mut median: impl FnMut(Turn) -> f64) -> (Vec<Turn>, End) {
        let clock = Hand(Cell::new(0));
        let mut turns = Vec::new();
        let end = plan.carry_out(&[None, Some(0), Some(0)], &clock, stop, |turn| {
            turns.push(turn);
            clock.0.set(clock.0.get() + 1_000_000_000);
            Ok::<_, Infallible>(Some(median(turn)))
        });
        let Ok(end) = end;
        (turns, end)
    }

    #[test]
    fn methods_take_turns_in_rotating_order() {
        let (turns, end) = turns(PLAN, &|| false, |_| 1.0);
        // A round takes 3 s. After one warm-up round and three counted rounds, 12 s have passed,
        // which exceeds the limit of 10 s.
        assert_eq!(end, End::Time);
        let methods: Vec<usize> = turns.iter().map(|turn| turn.method).collect();
        assert_eq!(methods, [0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(turns[2].run, None);
        assert_eq!(turns[3].run, Some(0));
        assert_eq!(turns[11].run, Some(2));
    }

    #[test]
    fn the_plan_ends_when_all_medians_are_precise() {
        let plan = Plan {
            at_least: 1,
            time: Duration::MAX,
            goal: Some(Goal::Precision(0.01)),
            ..PLAN
        };
        let (steady, end) = turns(plan, &|| false, |_| 1_000.0);
        // The plan needs one warm-up round and 8 counted rounds. Six runs are too few for 97 % confidence,
        // and the next check is after eight rounds.
        assert_eq!((steady.len(), end), (3 * 9, End::Precision));
        // The medians of one method vary between 1,000 and 1,500, so the plan runs all rounds. After 50 runs, the
        // precision of this method's median is only 4 %.
        let (jumping, end) = turns(plan, &|| false, |turn| match (turn.method, turn.run) {
            (1, Some(run)) => 1_000.0 + f64::from(run * 37 % 50) * 10.0,
            _ => 1_000.0,
        });
        assert_eq!((jumping.len(), end), (3 * 51, End::Rounds));
    }

    #[test]
    fn unavailable_methods_are_not_waited_for() {
        let plan = Plan {
            at_least: 1,
            time: Duration::MAX,
            goal: Some(Goal::Precision(0.01)),
            ..PLAN
        };
        let rounds = |of_second: fn(u32) -> Option<f64>| {
            let clock = Hand(Cell::new(0));
            let mut rounds = 0;
            let end = plan.carry_out(&[None, Some(0)], &clock, &|| false, |turn| {
                rounds = turn.run.map_or(0, |run| run + 1);
                let of_second = of_second(turn.run.unwrap_or(0));
                Ok::<_, Infallible>(if turn.method == 0 {
                    Some(1.0)
                } else {
                    of_second
                })
            });
            let Ok(end) = end;
            (rounds, end)
        };
        // The second method is available only in the first two rounds. Six rounds later, this method no
        // longer delays the end.
        assert_eq!(rounds(|run| (run < 2).then_some(1.0)), (8, End::Precision));
        // A method that is unavailable in every other round must still reach the precision.
        let now_and_then = rounds(|run| (run % 2 == 0).then_some(1.0));
        // After 12 rounds, the method has 6 medians, which are too few for 97 % confidence. The next check is
        // after 16 rounds.
        assert_eq!(now_and_then, (16, End::Precision));
    }

    #[test]
    fn the_plan_ends_when_all_comparisons_are_sure() {
        let plan = Plan {
            at_least: 1,
            at_most: Goal::MAX_ROUNDS,
            time: Duration::MAX,
            goal: Some(Goal::Sure(0.02)),
            ..PLAN
        };
        // One method is 10 % slower than the reference, one is equal, and the runs scatter by 1 %.
        let scattered = |turn: Turn| 1_000.0 + f64::from(turn.run.unwrap_or(0) * 7 % 10);
        let (sure, end) = turns(plan, &|| false, |turn| match turn.method {
            1 => 1.1 * scattered(turn),
            _ => scattered(turn),
        });
        // Six pairs are too few: even if all six differences have the same sign, this may be chance. The next check is
        // after eight rounds. With the warm-up, each of the three methods has nine runs.
        assert_eq!((sure.len(), end), (3 * 9, End::Sure));
        // The runs of one method scatter by 20 % around the reference, so 64 rounds cannot exclude
        // a difference of 2 %.
        let (unsure, end) = turns(plan, &|| false, |turn| match (turn.method, turn.run) {
            (2, Some(run)) => 800.0 + f64::from(run * 37 % 50) * 8.0,
            _ => 1_000.0,
        });
        assert_eq!((unsure.len(), end), (3 * 65, End::Rounds));
    }

    #[test]
    fn without_methods_nothing_is_precise() {
        let plan = Plan {
            time: Duration::MAX,
            goal: Some(Goal::Precision(0.01)),
            ..PLAN
        };
        let clock = Hand(Cell::new(0));
        let Ok(end) = plan.carry_out(&[None, Some(0)], &clock, &|| false, |_| {
            Ok::<_, Infallible>(None)
        });
        assert_eq!(end, End::Rounds);
    }

    #[test]
    fn the_plan_stops_between_runs() {
        let calls = AtomicU32::new(0);
        let stop = || calls.fetch_add(1, Ordering::Relaxed) >= 5;
        let (turns, end) = turns(PLAN, &stop, |_| 1.0);
        assert_eq!(end, End::Stopped);
        // `stop` is called before every run and returns true the sixth time.
        assert_eq!(turns.len(), 5);
    }
}
