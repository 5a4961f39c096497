//! A whole search, step by step: what to measure next, and what it came to.

use serde::Serialize;

use super::hunt::{Found, Hunt, Suspect, Trial, Verdict};
use super::log::{Log, Plan, Round};
use super::sequential_test::{Answer, References, SequentialTest};

/// What a round is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To know how it is without any setting.
    WithoutAny,
    /// To know how it is with all.
    WithAll,
    /// To find what is guilty.
    Trial,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Make just these settings active and measure once.
    Measure {
        /// The round, from 1 on.
        round: usize,
        /// What for.
        purpose: Purpose,
        /// The places of the active settings, ascending.
        active: Vec<usize>,
        /// How often this round was measured already.
        taken: usize,
    },
    /// Nothing: this is what it came to.
    Done(Outcome),
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All settings together make no difference that can be told from chance; if numbers say so, these.
    NoDifference(Option<References>),
    /// These are guilty.
    Found {
        /// Each by itself, or several only together.
        causes: Vec<Found>,
        /// What share of the cost remains without them, as far as it was measured.
        remains: Option<f64>,
    },
    /// It cannot be said.
    Undecided {
        /// What is guilty beside what is open.
        causes: Vec<Found>,
        /// What may be, the most probable first.
        suspects: Vec<Suspect>,
        /// Whether answers contradict each other; else it took too many rounds.
        contradiction: bool,
    },
}

/// What was given does not fit what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to be measured any more.
    #[error("the search is at its end; a new one needs a new file")]
    AtItsEnd,
    /// Without references, numbers mean nothing.
    #[error(
        "the first rounds were answered by `good` or `bad`, so no number can be judged; answer this one so too"
    )]
    NoReferences,
    /// A number that is none.
    #[error("a measurement must be a finite number")]
    NotFinite,
    /// The log is not of this search.
    #[error(
        "round {round} of the log is not the one that follows from what is before it; another version of the program wrote it, or somebody changed it"
    )]
    Foreign {
        /// From 1 on.
        round: usize,
    },
}

/// Where a search is.
#[derive(Clone, Debug)]
enum Stage {
    /// Measures without any setting, and then with all.
    References(Purpose),
    /// Tries.
    Hunting(Box<Hunting>),
    Done(Outcome),
}

/// A hunt, what it tries now, and what was measured of that.
#[derive(Clone, Debug)]
struct Hunting {
    hunt: Hunt,
    trial: Trial,
    /// None where there are no numbers to compare with.
    test: Option<SequentialTest>,
}

/// A search that follows from its log.
#[derive(Clone, Debug)]
pub struct Search {
    log: Log,
    references: Option<References>,
    stage: Stage,
    /// Whether the log's last round is the one that the stage asks for.
    open: bool,
}

impl Search {
    /// Goes on where a log ends.
    ///
    /// # Errors
    /// If the log's rounds do not follow from each other.
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
                search.said(slow).map_err(foreign)?;
            }
        }
        Ok(search)
    }

    /// What was done so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// What was measured without any and with all settings, once it is.
    pub fn references(&self) -> Option<&References> {
        self.references.as_ref()
    }

    /// What to do next.
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

    /// Takes note of a measurement of what [`Search::step`] asks for.
    ///
    /// # Errors
    /// If none is asked for, or it means nothing.
    pub fn measured(&mut self, value: f64) -> Result<(), SearchError> {
        if !value.is_finite() {
            return Err(SearchError::NotFinite);
        }
        match &self.stage {
            Stage::Done(_) => return Err(SearchError::AtItsEnd),
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
        let taken = round.values.len();
        match &mut self.stage {
            Stage::References(purpose) if taken >= self.log.plan.references as usize => {
                let purpose = *purpose;
                self.refer(purpose);
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

    /// Takes note of what a person says of the settings that [`Search::step`] asks for: whether it is
    /// slow. Numbers that were given for them before count no more.
    ///
    /// # Errors
    /// If nothing is asked for.
    pub fn said(&mut self, slow: bool) -> Result<(), SearchError> {
        if let Stage::Done(_) = self.stage {
            return Err(SearchError::AtItsEnd);
        }
        let round = self.open_round();
        round.values.clear();
        round.said_slow = Some(slow);
        match self.stage {
            Stage::References(purpose) if slow == (purpose == Purpose::WithAll) => {
                self.refer(purpose);
            }
            Stage::References(_) => self.go_on(Stage::Done(Outcome::NoDifference(None))),
            _ => {
                let rates = self.log.plan.rates;
                self.learn(&Answer { slow, rates });
            }
        }
        Ok(())
    }

    /// The round that the stage asks for, which begins if it did not.
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

    fn go_on(&mut self, stage: Stage) {
        self.stage = stage;
        self.open = false;
    }

    /// Goes on after a reference.
    fn refer(&mut self, purpose: Purpose) {
        if purpose == Purpose::WithoutAny {
            self.go_on(Stage::References(Purpose::WithAll));
            return;
        }
        if let [fast, slow] = &self.log.rounds[..]
            && !slow.values.is_empty()
        {
            let references =
                References::new(&fast.values, &slow.values, self.log.plan.lower_is_better);
            self.references = Some(references);
            if !references.differ() {
                self.go_on(Stage::Done(Outcome::NoDifference(Some(references))));
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
                Stage::Hunting(Box::new(Hunting {
                    trial,
                    test: self.new_test(),
                    hunt,
                }))
            }
            (None, _) => Stage::Done(undecided(false)),
        };
        self.go_on(next);
    }

    /// The share of the cost that was measured with all active but one or more settings of each cause.
    fn remains(&self, causes: &[Found]) -> Option<f64> {
        let references = self.references?;
        let guilty = |setting: &usize| causes.iter().any(|cause| cause.contains(setting));
        let round = self.log.rounds.iter().rev().find(|round| {
            let is_active = |setting: &usize| round.active.binary_search(setting).is_ok();
            let broken = |cause: &Found| !cause.iter().all(is_active);
            !round.values.is_empty()
                && causes.iter().all(broken)
                && (0..self.log.settings.len())
                    .all(|setting| is_active(&setting) || guilty(&setting))
        })?;
        let mean = round.values.iter().sum::<f64>() / round.values.len() as f64;
        Some(references.share(mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::sequential_test::tests::normal;
    use testdata::Rng;

    /// The settings of a baseline of 234.
    const SETTINGS: usize = 234;

    /// Copies files at 400 Mb/s, and at 80 once all settings of a cause are active; measurements of
    /// one state are spread normally.
    struct Machine {
        causes: Vec<Found>,
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

    /// What a search comes to.
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

    /// Measurements vary by 80 Mb/s around their mean: a fifth of the speed without settings, and as
    /// much as the whole speed with them.
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
            let found = matches!(&outcome, Outcome::Found { causes, .. } if *causes == [[culprit]]);
            right += usize::from(found && search.log().rounds.len() < 20);
        }
        assert!(right * 100 >= searches * 99, "{right} of {searches}");
    }

    fn machine(causes: Vec<Found>) -> Machine {
        Machine {
            causes,
            deviation: 40.0,
            rng: Rng(5),
        }
    }

    #[test]
    fn what_is_found_is_what_is_guilty_and_what_remains_is_said() {
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
    fn without_a_culprit_it_says_so_after_the_references() {
        let (outcome, search) = outcome(&mut machine(Vec::new()), new_search(Plan::default()));
        assert!(
            matches!(outcome, Outcome::NoDifference(Some(_))),
            "{outcome:?}"
        );
        assert_eq!(search.log().rounds.len(), 2);
    }

    #[test]
    fn a_search_goes_on_wherever_its_log_ends() {
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
        assert_eq!(parts.measured(1.0), Err(SearchError::AtItsEnd));
    }

    #[test]
    fn a_person_can_answer_instead() {
        let mut search = new_search(Plan::default());
        while let Step::Measure { active, .. } = search.step() {
            search.said(active.contains(&77)).unwrap();
            assert_eq!(
                search.measured(1.0).is_err(),
                !search.log().rounds.is_empty()
            );
        }
        let found = Outcome::Found {
            causes: vec![vec![77]],
            remains: None,
        };
        assert_eq!(search.step(), Step::Done(found));

        let mut slow_anyway = new_search(Plan::default());
        slow_anyway.said(true).unwrap();
        assert_eq!(slow_anyway.step(), Step::Done(Outcome::NoDifference(None)));
    }

    #[test]
    fn logs_that_are_none_are_refused() {
        let mut search = new_search(Plan::default());
        search.said(false).unwrap();
        search.said(true).unwrap();
        search.said(true).unwrap();
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
