//! State of a search, which is computed from its log, and the next step.

use serde::Serialize;

use super::hunt::{Cause, Hunt, Suspect, Trial, Verdict};
use super::log::{Log, Plan, Round};
use super::sequential_test::{Answer, References, SequentialTest};

/// Purpose of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Reference measurements without any setting.
    WithoutAny,
    /// Reference measurements with all settings.
    WithAll,
    /// Trial of some of the settings.
    Trial,
}

/// Next step that the user must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Activate exactly these settings and measure once.
    Measure {
        /// Number of the round, counted from 1.
        round: usize,
        /// Purpose of the round.
        purpose: Purpose,
        /// Indexes of the active settings, ascending.
        active: Vec<usize>,
        /// Number of measurements of this round so far.
        taken: usize,
    },
    /// The search has ended with this outcome.
    Done(Outcome),
}

/// Outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With all settings, the machine is not slower than without any setting, except by chance. Contains the
    /// reference measurements, if there are any.
    NoDifference(Option<References>),
    /// The search found the settings that make the machine slow.
    Found {
        /// Causes of the slowdown. A cause is one setting, or several settings that make the machine slow
        /// only together.
        causes: Vec<Cause>,
        /// Share of the total slowdown that remains if these causes are not active. `None` if it was not
        /// measured.
        remains: Option<f64>,
    },
    /// The search could not decide.
    Undecided {
        /// Causes found so far.
        causes: Vec<Cause>,
        /// Suspected settings, the most probable first.
        suspects: Vec<Suspect>,
        /// True if answers contradict each other. False if the maximum number of rounds was reached.
        contradiction: bool,
    },
}

/// Reason why a measurement or a log is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The search has ended.
    #[error("the search has ended: start a new one with another log file")]
    Ended,
    /// There are no reference measurements to compare with.
    #[error(
        "no measurements to compare with: the first rounds were answered with `good` or `bad`; \
         answer this round in the same way"
    )]
    NoReferences,
    /// The measurement is infinite or not a number.
    #[error("invalid measurement: give a finite number")]
    NotFinite,
    /// A round of the log differs from the round that the search requires at this point.
    #[error(
        "the log is inconsistent: round {round} is not the round that must follow the earlier rounds; another \
         version of laglab wrote the log, or the log was edited"
    )]
    Foreign {
        /// Number of the round, counted from 1.
        round: usize,
    },
}

#[derive(Clone, Debug)]
enum Stage {
    /// Reference measurements, first without any setting and then with all settings.
    References(Purpose),
    /// Trials of some settings.
    Hunting(Box<HuntState>),
    Done(Outcome),
}

/// Search by trials, with its current trial and the test of that trial.
#[derive(Clone, Debug)]
struct HuntState {
    hunt: Hunt,
    trial: Trial,
    /// Statistical test of the trial; `None` if there are no reference measurements.
    test: Option<SequentialTest>,
}

/// A search, derived from its log.
#[derive(Clone, Debug)]
pub struct Search {
    log: Log,
    references: Option<References>,
    stage: Stage,
    /// True if the last round of the log is incomplete and belongs to the current stage.
    open: bool,
}

impl Search {
    /// Resumes a search from its log.
    ///
    /// # Errors
    /// Returns an error if a round of the log does not follow from the rounds before it.
    pub fn resume(log: Log) -> Result<Self, SearchError> {
        let mut past = log;
        let rounds = std::mem::take(&mut past.rounds);
        let mut search = Search {
            log: past,
            references: None,
            stage: Stage::References(Purpose::WithoutAny),
            open: false,
        };
        for (number, round) in rounds.into_iter().enumerate() {
            let number = number + 1;
            let foreign = |_| SearchError::Foreign { round: number };
            match search.step() {
                Step::Measure {
                    active, round: now, ..
                } if active == round.active && now == number => {}
                _ => return Err(SearchError::Foreign { round: number }),
            }
            for value in round.values {
                search.measured(value).map_err(foreign)?;
            }
            if let Some(slow) = round.said_slow {
                search.judged(slow).map_err(foreign)?;
            }
        }
        Ok(search)
    }

    /// Returns the log so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the statistics of the reference measurements, or `None` until they are complete.
    pub fn references(&self) -> Option<&References> {
        self.references.as_ref()
    }

    /// Returns the next step.
    pub fn step(&self) -> Step {
        let (purpose, active) = match &self.stage {
            Stage::References(purpose @ Purpose::WithAll) => {
                (*purpose, (0..self.log.settings.len()).collect())
            }
            Stage::References(purpose) => (*purpose, Vec::new()),
            Stage::Hunting(hunting) => (Purpose::Trial, hunting.trial.active.clone()),
            Stage::Done(outcome) => return Step::Done(outcome.clone()),
        };
        let under_way = self.log.rounds.last().filter(|_| self.open);
        Step::Measure {
            round: self.log.rounds.len() + usize::from(under_way.is_none()),
            purpose,
            active,
            taken: under_way.map_or(0, |round| round.values.len()),
        }
    }

    /// Adds a measurement of the settings that [`Search::step`] returned.
    ///
    /// # Errors
    /// Returns an error if the search has ended, if `value` is not finite, or if there are no reference
    /// measurements to compare with.
    pub fn measured(&mut self, value: f64) -> Result<(), SearchError> {
        if !value.is_finite() {
            return Err(SearchError::NotFinite);
        }
        match &self.stage {
            Stage::Done(_) => return Err(SearchError::Ended),
            Stage::Hunting(hunting) if hunting.test.is_none() => {
                return Err(SearchError::NoReferences);
            }
            Stage::References(Purpose::WithAll) if self.log.rounds[0].said_slow.is_some() => {
                return Err(SearchError::NoReferences);
            }
            _ => {}
        }
        let round = self.open_round();
        round.values.push(value);
        let count = round.values.len();
        match &mut self.stage {
            Stage::References(purpose) if count >= self.log.plan.references as usize => {
                let purpose = *purpose;
                self.finish_reference(purpose);
            }
            Stage::Hunting(hunting) => {
                let answer = hunting.test.as_mut().and_then(|test| test.add(value));
                if let Some(answer) = answer {
                    self.learn(&answer);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the user's judgement whether the machine is slow with the settings that [`Search::step`]
    /// returned. The judgement replaces the measurements of this round.
    ///
    /// # Errors
    /// Returns an error if the search has ended.
    pub fn judged(&mut self, slow: bool) -> Result<(), SearchError> {
        if let Stage::Done(_) = self.stage {
            return Err(SearchError::Ended);
        }
        let round = self.open_round();
        round.values.clear();
        round.said_slow = Some(slow);
        match self.stage {
            Stage::References(purpose) if slow == (purpose == Purpose::WithAll) => {
                self.finish_reference(purpose);
            }
            Stage::References(_) => self.enter(Stage::Done(Outcome::NoDifference(None))),
            _ => {
                let rates = self.log.plan.rates;
                self.learn(&Answer { slow, rates });
            }
        }
        Ok(())
    }

    /// Returns the current round. Starts a new round if necessary.
    fn open_round(&mut self) -> &mut Round {
        if let Step::Measure { active, .. } = self.step()
            && !self.open
        {
            self.log.rounds.push(Round {
                active,
                ..Round::default()
            });
            self.open = true;
        }
        let last = self.log.rounds.len() - 1;
        &mut self.log.rounds[last]
    }

    fn new_test(&self) -> Option<SequentialTest> {
        let Plan {
            effect,
            rates,
            measurements,
            ..
        } = self.log.plan;
        let references = self.references.as_ref()?;
        Some(SequentialTest::new(references, effect, rates, measurements))
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.open = false;
    }

    /// Enters the next stage. Call it when the reference measurements with this purpose are complete.
    fn finish_reference(&mut self, purpose: Purpose) {
        if purpose == Purpose::WithoutAny {
            self.enter(Stage::References(Purpose::WithAll));
            return;
        }
        if let [fast, slow] = &self.log.rounds[..]
            && !slow.values.is_empty()
        {
            let references =
                References::new(&fast.values, &slow.values, self.log.plan.lower_is_better);
            self.references = Some(references);
            if !references.differ() {
                self.enter(Stage::Done(Outcome::NoDifference(Some(references))));
                return;
            }
        }
        self.try_next(Hunt::new(self.log.settings.len(), self.log.plan.confidence));
    }

    fn learn(&mut self, answer: &Answer) {
        if let Stage::Hunting(hunting) = &self.stage {
            let mut hunt = hunting.hunt.clone();
            hunt.learn(&hunting.trial, answer);
            self.try_next(hunt);
        }
    }

    fn try_next(&mut self, hunt: Hunt) {
        let undecided = |contradiction| Outcome::Undecided {
            causes: hunt.found().to_vec(),
            suspects: hunt.suspects(5),
            contradiction,
        };
        let next = match (hunt.verdict(), hunt.trial()) {
            (Some(Verdict::Culprits(causes)), _) => Stage::Done(Outcome::Found {
                causes: causes.clone(),
                remains: self.remains(causes),
            }),
            (Some(Verdict::Contradiction(_)), _) => Stage::Done(undecided(true)),
            (None, Some(trial)) if self.log.rounds.len() < self.log.plan.rounds as usize => {
                Stage::Hunting(Box::new(HuntState {
                    trial,
                    test: self.new_test(),
                    hunt,
                }))
            }
            (None, _) => Stage::Done(undecided(false)),
        };
        self.enter(next);
    }

    /// Returns the share of the slowdown that remains without the causes. The share is measured in a round
    /// that breaks each cause: at least one setting of each cause is inactive, and all settings outside the
    /// causes are active. Returns `None` if no round has such measurements.
    fn remains(&self, causes: &[Cause]) -> Option<f64> {
        let references = self.references?;
        let guilty = |setting: &usize| causes.iter().any(|cause| cause.contains(setting));
        let round = self.log.rounds.iter().rev().find(|round| {
            let is_active = |setting: &usize| round.active.binary_search(setting).is_ok();
            let broken = |cause: &Cause| !cause.iter().all(is_active);
            !round.values.is_empty()
                && causes.iter().all(broken)
                && (0..self.log.settings.len())
                    .all(|setting| is_active(&setting) || guilty(&setting))
        })?;
        Some(references.share(statistics::mean(&round.values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequential_test::tests::normal;
    use testdata::Rng;

    /// Number of settings. A real baseline has 234.
    const SETTINGS: usize = 234;

    /// A simulated machine that copies files at 400 Mb/s. If all settings of a cause are active, it copies at
    /// only 80 Mb/s. Measurements have a normal distribution around these speeds.
    struct Machine {
        causes: Vec<Cause>,
        deviation: f64,
        rng: Rng,
    }

    impl Machine {
        fn measure(&mut self, active: &[usize]) -> f64 {
            let is_active = |setting: &usize| active.contains(setting);
            let slow = self.causes.iter().any(|cause| cause.iter().all(is_active));
            normal(
                if slow { 80.0 } else { 400.0 },
                self.deviation,
                &mut self.rng,
            )
        }
    }

    fn new_search(plan: Plan) -> Search {
        let names = (0..SETTINGS).map(|n| format!("setting {n}")).collect();
        Search::resume(Log::new(names, plan).unwrap()).unwrap()
    }

    /// Runs a search to its end. Returns the outcome and the search.
    fn outcome(machine: &mut Machine, mut search: Search) -> (Outcome, Search) {
        loop {
            match search.step() {
                Step::Done(outcome) => return (outcome, search),
                Step::Measure { active, .. } => {
                    search.measured(machine.measure(&active)).unwrap();
                }
            }
        }
    }

    /// Checks searches with a standard deviation of 80 Mb/s. The deviation is a fifth of the speed without
    /// any setting. It is as large as the speed with the culprit.
    #[test]
    fn one_culprit_of_234_is_found_in_under_20_rounds_in_99_of_100_searches() {
        let mut machine = Machine {
            causes: Vec::new(),
            deviation: 80.0,
            rng: Rng(234),
        };
        let searches = 3_000;
        let mut right = 0;
        for _ in 0..searches {
            let culprit = machine.rng.below(SETTINGS);
            machine.causes = vec![vec![culprit]];
            let (outcome, search) = outcome(&mut machine, new_search(Plan::default()));
            let is_right =
                matches!(&outcome, Outcome::Found { causes, .. } if *causes == [[culprit]]);
            right += usize::from(is_right && search.log().rounds.len() < 20);
        }
        assert!(right * 100 >= searches * 99, "{right} of {searches}");
    }

    fn machine(causes: Vec<Cause>) -> Machine {
        Machine {
            causes,
            deviation: 40.0,
            rng: Rng(5),
        }
    }

    #[test]
    fn causes_are_found_with_the_remaining_slowdown() {
        for causes in [
            vec![vec![17]],
            vec![vec![3], vec![200]],
            vec![vec![40, 180]],
        ] {
            let (outcome, _) = outcome(&mut machine(causes.clone()), new_search(Plan::default()));
            let Outcome::Found {
                causes: mut found,
                remains,
            } = outcome
            else {
                panic!("{outcome:?}");
            };
            found.sort();
            assert_eq!(found, causes);
            assert!(remains.unwrap().abs() < 0.25, "{remains:?}");
        }
    }

    #[test]
    fn without_a_culprit_the_references_end_the_search() {
        let (outcome, search) = outcome(&mut machine(Vec::new()), new_search(Plan::default()));
        assert!(
            matches!(outcome, Outcome::NoDifference(Some(_))),
            "{outcome:?}"
        );
        assert_eq!(search.log().rounds.len(), 2);
    }

    #[test]
    fn a_search_resumes_from_any_log() {
        let mut whole = new_search(Plan::default());
        let mut parts = whole.clone();
        let mut machine = machine(vec![vec![9], vec![100, 101]]);
        while let Step::Measure { active, .. } = whole.step() {
            let value = machine.measure(&active);
            whole.measured(value).unwrap();
            parts = Search::resume(Log::parse(&parts.log().to_text()).unwrap()).unwrap();
            parts.measured(value).unwrap();
            assert_eq!(parts.step(), whole.step());
        }
        assert_eq!(parts.log(), whole.log());
        assert_eq!(parts.measured(1.0), Err(SearchError::Ended));
    }

    #[test]
    fn judgements_replace_measurements() {
        let mut search = new_search(Plan::default());
        while let Step::Measure { active, .. } = search.step() {
            search.judged(active.contains(&77)).unwrap();
            assert_eq!(
                search.measured(1.0).is_err(),
                !search.log().rounds.is_empty()
            );
        }
        let outcome = Outcome::Found {
            causes: vec![vec![77]],
            remains: None,
        };
        assert_eq!(search.step(), Step::Done(outcome));

        let mut slow_anyway = new_search(Plan::default());
        slow_anyway.judged(true).unwrap();
        assert_eq!(slow_anyway.step(), Step::Done(Outcome::NoDifference(None)));
    }

    #[test]
    fn invalid_logs_are_refused() {
        let mut search = new_search(Plan::default());
        search.judged(false).unwrap();
        search.judged(true).unwrap();
        search.judged(true).unwrap();
        let mut log = search.log().clone();
        log.rounds[2].active.pop();
        assert_eq!(
            Search::resume(log).err(),
            Some(SearchError::Foreign { round: 3 })
        );

        let text = search.log().to_text();
        for (from, to) in [
            ("version = 1", "version = 2"),
            ("effect = 0.5", "effect = 0.0"),
            ("rounds = 100", "rounds = 1000000000"),
            ("said_slow = true", "said = true"),
            ("[plan]", "{plan}"),
        ] {
            assert!(text.contains(from));
            assert!(Log::parse(&text.replace(from, to)).is_err(), "{to}");
        }
    }
}
