//! Which settings to make active next, and what the answers mean.
//!
//! Settings have an order, and what is slow with the first `n` of them active is slow with more of
//! them too. So there is one setting that completes what makes it slow: all shorter prefixes are fast,
//! all longer ones slow. It is found by probabilistic bisection (Horstein 1963; Waeber, Frazier and
//! Henderson 2013): a probability for each setting, Bayes' rule for each answer, whose known rates of
//! error go into it, and the trial that tells most about what is still open.
//!
//! The same setting alone, and everything without it, tell whether it is guilty by itself and whether
//! others are too. These are hypotheses beside the place, so that one posterior decides all of it. If a
//! setting does not do it alone, it is held active and the search goes on among those before it, for
//! what it needs (as QuickXplain does; Junker 2004). If others are guilty too, it is left out and the
//! search goes on among those after it.
//!
//! Assumed is that settings do not undo each other: where one hides what another does, answers
//! contradict each other and the search says that it cannot decide.

use super::sequential_test::Answer;

/// Settings of which those of an index in it are active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Which settings to make active, ascending.
    pub active: Vec<usize>,
    split: Split,
}

/// Settings that make it slow: one by itself, or several only together.
pub type Found = Vec<usize>;

/// A setting and how probable it is that it is what completes the cause.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Suspect {
    /// The setting.
    pub setting: usize,
    /// From 0 to 1.
    pub probability: f64,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// These are guilty, and nothing else is.
    Culprits(Vec<Found>),
    /// These are guilty; answers about the rest contradict each other.
    Contradiction(Vec<Found>),
}

/// Which candidates are active; others are as the hunt has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    /// So many from the first on.
    Prefix(usize),
    /// Only this one.
    Alone(usize),
    /// All there are but this one.
    Without(usize),
}

/// What a candidate may be, if it completes the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Guilty by itself, and nothing else is.
    Only,
    /// Guilty by itself, as others are by themselves.
    AmongOthers,
    /// Guilty together with candidates before it.
    Together,
}

const KINDS: [Kind; 3] = [Kind::Only, Kind::AmongOthers, Kind::Together];

/// How probable each kind is before anything is known: one culprit is what is usual.
const PRIOR: [f64; 3] = [0.8, 0.1, 0.1];

/// How probable it is at first that nothing is guilty, although everything together was found slow.
const NOTHING: f64 = 0.01;

/// The same where it is an answer or two that said there are others.
const NOTHING_ELSE: f64 = 0.1;

/// A search for what makes it slow.
#[derive(Clone, Debug)]
pub struct Hunt {
    confidence: f64,
    /// What there is, but for what was found: all of it active is slow.
    pool: Vec<usize>,
    /// What completes a cause, but not alone.
    held: Found,
    /// What may complete the cause, in order.
    candidates: Vec<usize>,
    /// How probable each kind of each candidate is.
    belief: Vec<[f64; 3]>,
    /// How probable it is that none is.
    nothing: f64,
    found: Vec<Found>,
    verdict: Option<Verdict>,
}

impl Hunt {
    /// A search among settings 0 to `count`, which are known to be slow all together and fast without
    /// any. A conclusion is drawn when its probability is at least `confidence`, below 1.
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

    /// What to try next; nothing once there is a verdict.
    pub fn trial(&self) -> Option<Trial> {
        if self.verdict.is_some() {
            return None;
        }
        let split = self.most_telling();
        Some(Trial {
            active: self.active(split),
            split,
        })
    }

    /// Learns what a trial's answer is.
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

    /// What the search came to, if it is at its end.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// What is known to be guilty so far.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// What may complete the cause that is looked for, the most probable first; at most `most`.
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
        // Nothing is before the first that it could need.
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

    /// The settings that a split makes active.
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

    /// The split whose answer is least certain. Both answers may be wrong equally often or nearly so;
    /// then this is the one that tells most.
    fn most_telling(&self) -> Split {
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

    /// Draws the conclusion that is probable enough, if one is.
    fn conclude(&mut self) {
        if self.nothing >= self.confidence {
            self.verdict = Some(match self.held.is_empty() && !self.found.is_empty() {
                true => Verdict::Culprits(self.found.clone()),
                false => Verdict::Contradiction(self.found.clone()),
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
                // What is before a cause of one setting is fast.
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

/// Whether a split is slow if the candidate at `place` completes the cause and is of that kind.
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
    use crate::bisect::ErrorRates;
    use testdata::Rng;

    const SETTINGS: usize = 234;

    /// One answer in so many is wrong.
    fn rates(one_in: usize) -> ErrorRates {
        let rate = 1.0 / one_in as f64;
        ErrorRates {
            false_alarm: rate,
            miss: rate,
        }
    }

    /// What is found, and in how many rounds, of a machine that is slow if all settings of a cause are
    /// active, where one answer in so many is wrong.
    fn hunt(causes: &[Found], one_in: usize, rng: &mut Rng) -> (Option<Verdict>, u32) {
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
        /// The share that found just the causes.
        right: f64,
        rounds_of_50_in_100: u32,
        rounds_of_99_in_100: u32,
    }

    /// 3,000 searches.
    fn runs(one_in: usize, seed: u64, causes: impl Fn(&mut Rng) -> Vec<Found>) -> Runs {
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

    /// As many settings, all different.
    fn different(count: usize, rng: &mut Rng) -> Found {
        let mut settings = Found::new();
        while settings.len() < count {
            let setting = rng.below(SETTINGS);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        settings.sort_unstable();
        settings
    }

    /// With one answer in 100 wrong. Rounds are without the two references.
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

    /// No way to ask does better: of 19 answers, 4 or more are wrong in 1.3 % of cases, and it takes
    /// all 19 to make up for 3 (19 bits hold 234 settings with up to 3 errors, 18 do not).
    #[test]
    fn with_one_answer_in_20_wrong_it_takes_longer_and_is_as_right() {
        let runs = runs(20, 6, |rng| vec![different(1, rng)]);
        assert!(runs.right >= 0.99, "{runs:?}");
        assert!(runs.rounds_of_50_in_100 < 17, "{runs:?}");
        assert!(runs.rounds_of_99_in_100 <= 32, "{runs:?}");
    }

    #[test]
    fn the_last_of_few_settings_is_a_place_like_any_other() {
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

    /// A machine that is slow when some number of settings is odd undoes with one setting what another
    /// does. Whatever is answered, the search ends or goes on without harm.
    #[test]
    fn answers_that_contradict_each_other_do_no_harm() {
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
