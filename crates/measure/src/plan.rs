//! How often and in which order methods are measured.

use std::time::Duration;

use serde::Serialize;

use crate::compare::positive_interval;
use crate::{Comparison, Now, Stop};

/// Rounds of runs: in each, every method has one, and who begins rotates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Rounds before the first that counts.
    pub warm_up: u32,
    /// Rounds that are made, whatever time they take.
    pub at_least: u32,
    /// The most rounds.
    pub at_most: u32,
    /// No round begins after this.
    pub time: Duration,
    /// Enough is known when the median of every method is to within this share of it: half the
    /// width of its confidence interval.
    pub precision: Option<f64>,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of the method.
    pub method: usize,
    /// Number of the run, from 0; none while warming up, when results do not count.
    pub run: Option<u32>,
}

/// Why measuring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All rounds were made.
    Rounds,
    /// The time was over.
    Time,
    /// The medians are known as precisely as asked for.
    Precision,
    /// The user stopped it; what was measured so far is kept.
    Stopped,
}

impl Plan {
    /// Has every run made until it is enough. A run gives its median, if it has one; a method that
    /// had none in as many rounds as a comparison takes is no longer waited for.
    ///
    /// # Errors
    /// The first that a run gives.
    pub fn carry_out<E>(
        &self,
        methods: usize,
        clock: &impl Now,
        stop: Stop<'_>,
        mut run: impl FnMut(Turn) -> Result<Option<f64>, E>,
    ) -> Result<End, E> {
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
            if self
                .precision
                .is_some_and(|share| all_known(&medians, share))
            {
                return Ok(End::Precision);
            }
            let took_ns = clock.now_ns().saturating_sub(start_ns);
            if u128::try_from(took_ns).is_ok_and(|took| took >= self.time.as_nanos()) {
                return Ok(End::Time);
            }
        }
        Ok(End::Rounds)
    }
}

/// Whether the centre of each method's medians is known to within a share of it.
fn all_known(medians: &[Vec<Option<f64>>], share: f64) -> bool {
    let is_there = |of: &&Vec<Option<f64>>| {
        let mut last = of.iter().rev().take(Comparison::LEAST_PAIRS);
        last.any(Option::is_some)
    };
    let mut there = medians.iter().filter(is_there).peekable();
    there.peek().is_some()
        && there.all(|of| {
            positive_interval(of.iter().copied().flatten())
                .is_ok_and(|it| it.high - it.low <= 2.0 * share * it.centre)
        })
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
        precision: None,
    };

    /// Carries out a plan of which each run takes a second and gives what `median` says.
    fn turns(plan: Plan, stop: Stop<'_>, mut median: impl FnMut(Turn) -> f64) -> (Vec<Turn>, End) {
        let clock = Hand(Cell::new(0));
        let mut turns = Vec::new();
        let end = plan.carry_out(3, &clock, stop, |turn| {
            turns.push(turn);
            clock.0.set(clock.0.get() + 1_000_000_000);
            Ok::<_, Infallible>(Some(median(turn)))
        });
        let Ok(end) = end;
        (turns, end)
    }

    #[test]
    fn methods_take_turns_and_who_begins_rotates() {
        let (turns, end) = turns(PLAN, &|| false, |_| 1.0);
        // A round takes 3 s: after 12 s, that is one for warming up and three, the time is over.
        assert_eq!(end, End::Time);
        let methods: Vec<usize> = turns.iter().map(|turn| turn.method).collect();
        assert_eq!(methods, [0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(turns[2].run, None);
        assert_eq!(turns[3].run, Some(0));
        assert_eq!(turns[11].run, Some(2));
    }

    #[test]
    fn precision_ends_it_as_soon_as_all_medians_are_known() {
        let plan = Plan {
            at_least: 1,
            time: Duration::MAX,
            precision: Some(0.01),
            ..PLAN
        };
        let (steady, end) = turns(plan, &|| false, |_| 1_000.0);
        assert_eq!((steady.len(), end), (3 * 7, End::Precision));
        // One method whose medians are anywhere between 1,000 and 1,500 keeps all going: after 50
        // runs its centre is known to 4 %.
        let (jumping, end) = turns(plan, &|| false, |turn| match (turn.method, turn.run) {
            (1, Some(run)) => 1_000.0 + f64::from(run * 37 % 50) * 10.0,
            _ => 1_000.0,
        });
        assert_eq!((jumping.len(), end), (3 * 51, End::Rounds));
    }

    #[test]
    fn precision_does_not_wait_for_a_method_that_is_gone() {
        let plan = Plan {
            at_least: 1,
            time: Duration::MAX,
            precision: Some(0.01),
            ..PLAN
        };
        let rounds = |of_second: fn(u32) -> Option<f64>| {
            let clock = Hand(Cell::new(0));
            let mut rounds = 0;
            let end = plan.carry_out(2, &clock, &|| false, |turn| {
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
        // It was there twice, and six rounds later nobody waits for it.
        assert_eq!(rounds(|run| (run < 2).then_some(1.0)), (8, End::Precision));
        // One that has none now and then must be known nevertheless.
        let now_and_then = rounds(|run| (run % 2 == 0).then_some(1.0));
        assert_eq!(now_and_then, (11, End::Precision));
    }

    #[test]
    fn nothing_is_known_if_no_method_is_there() {
        let plan = Plan {
            time: Duration::MAX,
            precision: Some(0.01),
            ..PLAN
        };
        let clock = Hand(Cell::new(0));
        let Ok(end) = plan.carry_out(2, &clock, &|| false, |_| Ok::<_, Infallible>(None));
        assert_eq!(end, End::Rounds);
    }

    #[test]
    fn it_stops_between_two_runs() {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 5;
        let (turns, end) = turns(PLAN, &stop, |_| 1.0);
        assert_eq!(end, End::Stopped);
        // It asks before every run, and is told to stop the sixth time.
        assert_eq!(turns.len(), 5);
    }
}
