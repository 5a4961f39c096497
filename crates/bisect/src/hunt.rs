//! Group testing: selection of the settings for the next trial, and evaluation of the answers.
//!
//! Settings have an order. If the machine is slow with the first `n` settings, it is also slow with the first
//! `n + 1`. So one setting completes the cause: the machine is fast with all settings before it, and slow as
//! soon as this setting is active too. Probabilistic bisection finds this setting (Horstein 1963; Waeber,
//! Frazier and Henderson 2013). The search keeps a probability for each setting. After each answer, Bayes'
//! rule updates these probabilities with the error rates of the answer. The search always selects the trial
//! with the most information.
//!
//! Two further trials are possible. A trial of this setting alone shows whether it is guilty (makes the
//! machine slow) by itself. A trial of all settings except this one shows whether other settings are guilty
//! too. The search keeps a probability for each of these cases. If the setting is not guilty by itself, the
//! setting stays active, and the search continues among the settings before it (as in QuickXplain; Junker
//! 2004). If other settings are guilty too, the found setting stays inactive, and the search continues among
//! the settings after it.
//!
//! The search assumes that no setting cancels the effect of another. If a setting does so, the answers
//! contradict each other, and the search reports the contradiction.

use super::sequential_test::Answer;

/// One trial: the settings to activate for one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Indexes of the active settings, ascending.
    pub active: Vec<usize>,
    split: Split,
}

/// Indexes of the settings of one cause. A cause is one setting that makes the machine slow by itself, or
/// several settings that make the machine slow only together.
pub type Cause = Vec<usize>;

/// Setting, with the probability that it completes the cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suspect {
    /// Index of the setting.
    pub setting: usize,
    /// Probability from 0 to 1.
    pub probability: f64,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// These causes make the machine slow, and there are no other causes.
    Culprits(Vec<Cause>),
    /// These causes make the machine slow. The answers about the other settings contradict each other.
    Contradiction(Vec<Cause>),
}

/// Candidates that a trial activates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    /// The first candidates. Contains their number.
    Prefix(usize),
    /// The candidate with this index alone.
    Alone(usize),
    /// All settings of the pool, except the candidate with this index.
    Without(usize),
}

/// Role of the candidate that completes the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The candidate is guilty by itself, and no other setting is guilty.
    Only,
    /// The candidate is guilty by itself, and other settings are guilty too.
    AmongOthers,
    /// The candidate is guilty only together with candidates before it.
    Together,
}

const KINDS: [Kind; 3] = [Kind::Only, Kind::AmongOthers, Kind::Together];

/// Prior probability of each kind. A single guilty setting is the usual case.
const PRIOR: [f64; 3] = [0.8, 0.1, 0.1];

/// Prior probability that no candidate is guilty, although the machine was slow with all candidates.
const NOTHING: f64 = 0.01;

/// Prior probability that no other candidate is guilty after one cause was found. It is higher than
/// `NOTHING`, because the evidence for other guilty settings can be only one or two answers.
const NOTHING_ELSE: f64 = 0.1;

/// State of the search for the causes.
#[derive(Clone, Debug)]
pub struct Hunt {
    confidence: f64,
    /// Remaining settings: all settings except the settings of the causes found. All settings of `pool`
    /// together make the machine slow.
    pool: Vec<usize>,
    /// Settings that are known to be part of the current cause. They stay active.
    held: Cause,
    /// Settings that may complete the current cause, in order.
    candidates: Vec<usize>,
    /// Probability that a candidate completes the cause, for each candidate and each kind of role (`Kind`).
    belief: Vec<[f64; 3]>,
    /// Probability that no candidate is guilty.
    nothing: f64,
    found: Vec<Cause>,
    verdict: Option<Verdict>,
}

impl Hunt {
    /// Starts a search among the settings `0..count`. The machine must be slow with all of them and fast
    /// without any. A conclusion needs a probability of at least `confidence`, which is below 1.
    pub fn new(count: usize, confidence: f64) -> Self {
        let all: Vec<usize> = (0..count).collect();
        let mut hunt = Hunt {
            confidence,
            pool: all.clone(),
            held: Vec::new(),
            candidates: Vec::new(),
            belief: Vec::new(),
            nothing: 0.0,
            found: Vec::new(),
            verdict: None,
        };
        hunt.look_among(all, NOTHING);
        hunt
    }

    /// Returns the next trial, or `None` if the search has ended.
    pub fn trial(&self) -> Option<Trial> {
        if self.verdict.is_some() {
            return None;
        }
        let split = self.best_split();
        Some(Trial {
            active: self.active(split),
            split,
        })
    }

    /// Updates the probabilities with the answer of a trial.
    pub fn learn(&mut self, trial: &Trial, answer: &Answer) {
        let rates = answer.rates;
        let likelihood = |slow: bool| match (slow, answer.slow) {
            (true, true) => 1.0 - rates.miss,
            (true, false) => rates.miss,
            (false, true) => rates.false_alarm,
            (false, false) => 1.0 - rates.false_alarm,
        };
        for (place, kinds) in self.belief.iter_mut().enumerate() {
            for (kind, belief) in KINDS.into_iter().zip(kinds) {
                *belief *= likelihood(is_slow(trial.split, place, kind));
            }
        }
        self.nothing *= likelihood(false);
        self.normalise();
        self.conclude();
    }

    /// Returns the result, or `None` until the search has ended.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Returns the causes found so far.
    pub fn found(&self) -> &[Cause] {
        &self.found
    }

    /// Returns up to `most` candidates for the current cause, the most probable first.
    pub fn suspects(&self, most: usize) -> Vec<Suspect> {
        let mut suspects: Vec<Suspect> = (self.candidates.iter().zip(&self.belief))
            .map(|(&setting, kinds)| Suspect {
                setting,
                probability: kinds.iter().sum(),
            })
            .collect();
        suspects.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        suspects.truncate(most);
        suspects
    }

    fn look_among(&mut self, candidates: Vec<usize>, nothing: f64) {
        let each = (1.0 - nothing) / candidates.len().max(1) as f64;
        self.belief = vec![PRIOR.map(|kind| kind * each); candidates.len()];
        // The first candidate cannot need candidates before it, because there are none.
        if let Some([_, _, together]) = self.belief.first_mut() {
            *together = 0.0;
        }
        self.candidates = candidates;
        self.nothing = nothing;
        self.normalise();
    }

    fn normalise(&mut self) {
        let sum = self.nothing + self.belief.iter().flatten().sum::<f64>();
        self.nothing /= sum;
        for belief in self.belief.iter_mut().flatten() {
            *belief /= sum;
        }
    }

    /// Returns the indexes of the settings that a split activates.
    fn active(&self, split: Split) -> Vec<usize> {
        let mut active: Vec<usize> = match split {
            Split::Prefix(length) => [&self.held, &self.candidates[..length]].concat(),
            Split::Alone(place) => [&self.held[..], &[self.candidates[place]]].concat(),
            Split::Without(place) => {
                let left_out = self.candidates[place];
                (self.pool.iter().copied())
                    .filter(|&setting| setting != left_out)
                    .collect()
            }
        };
        active.sort_unstable();
        active
    }

    /// Returns the split whose answer is the least certain. Such an answer has the most information if the
    /// error rates of both answers are similar.
    fn best_split(&self) -> Split {
        let mut below = 0.0;
        let mut best = (f64::INFINITY, Split::Prefix(self.candidates.len()));
        let mut consider = |slow: f64, split| {
            let distance = (slow - 0.5).abs();
            if distance < best.0 {
                best = (distance, split);
            }
        };
        let mut likeliest = (0, 0.0);
        for (place, kinds) in self.belief.iter().enumerate() {
            let here: f64 = kinds.iter().sum();
            below += here;
            consider(below, Split::Prefix(place + 1));
            if here > likeliest.1 {
                likeliest = (place, here);
            }
        }
        let place = likeliest.0;
        if let Some([only, among_others, together]) = self.belief.get(place) {
            consider(only + among_others, Split::Alone(place));
            consider(1.0 - self.nothing - only - together, Split::Without(place));
        }
        best.1
    }

    /// Draws a conclusion if a hypothesis is probable enough.
    fn conclude(&mut self) {
        if self.nothing >= self.confidence {
            self.verdict = Some(if self.held.is_empty() && !self.found.is_empty() {
                Verdict::Culprits(self.found.clone())
            } else {
                Verdict::Contradiction(self.found.clone())
            });
            return;
        }
        let sure = self.belief.iter().enumerate().find_map(|(place, kinds)| {
            let kind = kinds.iter().position(|&p| p >= self.confidence)?;
            Some((place, KINDS[kind]))
        });
        let Some((place, kind)) = sure else {
            return;
        };
        let mut cause = self.held.clone();
        cause.push(self.candidates[place]);
        cause.sort_unstable();
        match kind {
            Kind::Together => {
                self.held = cause;
                let before = self.candidates[..place].to_vec();
                self.look_among(before, NOTHING);
            }
            Kind::Only => {
                self.found.push(cause);
                self.verdict = Some(Verdict::Culprits(self.found.clone()));
            }
            Kind::AmongOthers => {
                self.pool.retain(|setting| !cause.contains(setting));
                // If the cause has only one setting, the machine is fast with the settings before it. So only
                // the settings after it are searched.
                let others = match cause.len() {
                    1 => self.candidates[place + 1..].to_vec(),
                    _ => self.pool.clone(),
                };
                self.found.push(cause);
                self.held.clear();
                if others.is_empty() {
                    self.verdict = Some(Verdict::Contradiction(self.found.clone()));
                    return;
                }
                self.look_among(others, NOTHING_ELSE);
            }
        }
    }
}

/// Returns true if a trial with this split must find the machine slow. Assumes that the candidate with index
/// `place` completes the cause and has this kind.
fn is_slow(split: Split, place: usize, kind: Kind) -> bool {
    match split {
        Split::Prefix(length) => place < length,
        Split::Alone(one) => one == place && kind != Kind::Together,
        Split::Without(one) => one != place || kind == Kind::AmongOthers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorRates;
    use testdata::Rng;

    const SETTINGS: usize = 234;

    /// Returns the error rates if one answer in `one_in` is wrong.
    fn rates(one_in: usize) -> ErrorRates {
        let rate = 1.0 / one_in as f64;
        ErrorRates {
            false_alarm: rate,
            miss: rate,
        }
    }

    /// Runs a search. Returns its result and the number of rounds. The simulated machine is slow if all
    /// settings of a cause are active. On average, one answer in `one_in` is wrong.
    fn hunt(causes: &[Cause], one_in: usize, rng: &mut Rng) -> (Option<Verdict>, u32) {
        let mut hunt = Hunt::new(SETTINGS, 0.995);
        for rounds in 0..200 {
            let Some(trial) = hunt.trial() else {
                return (hunt.verdict().cloned(), rounds);
            };
            let is_active = |setting: &usize| trial.active.binary_search(setting).is_ok();
            let slow = causes.iter().any(|cause| cause.iter().all(is_active));
            let wrong = rng.below(one_in) == 0;
            let answer = Answer {
                slow: slow != wrong,
                rates: rates(one_in),
            };
            hunt.learn(&trial, &answer);
        }
        (None, 200)
    }

    #[derive(Debug)]
    struct Runs {
        /// Share of searches that found exactly the right causes.
        right: f64,
        rounds_of_50_in_100: u32,
        rounds_of_99_in_100: u32,
    }

    /// Runs 3,000 searches with random causes and returns statistics.
    fn runs(one_in: usize, seed: u64, causes: impl Fn(&mut Rng) -> Vec<Cause>) -> Runs {
        const COUNT: usize = 3_000;
        let mut rng = Rng(seed);
        let mut rounds = Vec::new();
        let mut right = 0;
        for _ in 0..COUNT {
            let mut causes = causes(&mut rng);
            let (verdict, took) = hunt(&causes, one_in, &mut rng);
            rounds.push(took);
            causes.sort();
            if let Some(Verdict::Culprits(mut found)) = verdict {
                found.sort();
                right += usize::from(found == causes);
            }
        }
        rounds.sort_unstable();
        Runs {
            right: right as f64 / COUNT as f64,
            rounds_of_50_in_100: rounds[COUNT / 2],
            rounds_of_99_in_100: rounds[COUNT * 99 / 100],
        }
    }

    /// Returns `count` different settings.
    fn different(count: usize, rng: &mut Rng) -> Cause {
        let mut settings = Cause::new();
        while settings.len() < count {
            let setting = rng.below(SETTINGS);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        settings.sort_unstable();
        settings
    }

    /// Checks that at least 97.5 % of the searches find exactly the right causes if one answer in 100 is
    /// wrong. The numbers of rounds do not include the two rounds of reference measurements.
    #[test]
    fn culprits_are_found_whether_one_or_several_alone_or_together() {
        let alone = |count| {
            move |rng: &mut Rng| {
                let settings = different(count, rng);
                settings.into_iter().map(|setting| vec![setting]).collect()
            }
        };
        let together = |count| move |rng: &mut Rng| vec![different(count, rng)];
        let all: [(&str, Runs, u32); 5] = [
            ("one", runs(100, 1, alone(1)), 17),
            ("two", runs(100, 2, alone(2)), 32),
            ("three", runs(100, 3, alone(3)), 44),
            ("two together", runs(100, 4, together(2)), 32),
            ("three together", runs(100, 5, together(3)), 44),
        ];
        for (what, runs, rounds) in all {
            assert!(runs.right >= 0.975, "{what}: {runs:?}");
            assert!(runs.rounds_of_99_in_100 <= rounds, "{what}: {runs:?}");
        }
    }

    /// Checks that at least 99 % of the searches find the cause if one answer in 20 is wrong. No strategy can
    /// find 99 % of the causes with 19 answers per search: at most 3 wrong answers can be corrected, but in
    /// 1.3 % of the searches 4 or more answers are wrong. Correcting 3 errors needs all 19 answers: 19 bits
    /// can encode 234 settings with up to 3 errors, but 18 bits cannot.
    #[test]
    fn with_one_answer_in_20_wrong_it_takes_longer_and_is_as_right() {
        let runs = runs(20, 6, |rng| vec![different(1, rng)]);
        assert!(runs.right >= 0.99, "{runs:?}");
        assert!(runs.rounds_of_50_in_100 < 17, "{runs:?}");
        assert!(runs.rounds_of_99_in_100 <= 32, "{runs:?}");
    }

    #[test]
    fn any_of_few_settings_is_found() {
        for count in 2..6 {
            for culprit in 0..count {
                let mut hunt = Hunt::new(count, 0.995);
                while let Some(trial) = hunt.trial() {
                    let slow = trial.active.contains(&culprit);
                    hunt.learn(
                        &trial,
                        &Answer {
                            slow,
                            rates: rates(100),
                        },
                    );
                }
                let expected = Verdict::Culprits(vec![vec![culprit]]);
                assert_eq!(hunt.verdict(), Some(&expected), "{culprit} of {count}");
            }
        }
    }

    /// Checks that the search does not panic for any answers. Answers can contradict each other if settings
    /// cancel each other's effect.
    #[test]
    fn contradicting_answers_do_not_panic() {
        let mut rng = Rng(7);
        for _ in 0..200 {
            let mut hunt = Hunt::new(2 + rng.below(40), 0.995);
            for _ in 0..100 {
                let Some(trial) = hunt.trial() else { break };
                assert!(trial.active.is_sorted());
                let slow = rng.below(2) == 0;
                hunt.learn(
                    &trial,
                    &Answer {
                        slow,
                        rates: rates(100),
                    },
                );
                let sum: f64 = hunt
                    .suspects(usize::MAX)
                    .iter()
                    .map(|s| s.probability)
                    .sum();
                assert!(sum <= 1.0 + 1e-9);
            }
        }
    }
}
