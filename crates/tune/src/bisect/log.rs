//! What was asked for and measured so far, as a file keeps it.

use serde::{Deserialize, Serialize};

use super::sequential_test::ErrorRates;

/// How a search measures and when it is content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Whether a lower number is the better one, as of a time; else higher is, as of a throughput.
    pub lower_is_better: bool,
    /// How often an answer may be wrong.
    pub rates: ErrorRates,
    /// What counts as slow: at least this share of what all settings cost, above 0 and at most 1.
    pub effect: f64,
    /// How probable a conclusion must be, at least 0.5 and below 1.
    pub confidence: f64,
    /// Measurements without any setting, and as many with all, from 3 on.
    pub references: u32,
    /// Measurements of a round at most, from 2 on.
    pub measurements: u32,
    /// Rounds at most, with the two references.
    pub rounds: u32,
}

impl Default for Plan {
    /// One answer in 100 wrong, settings that cost half of what all cost, conclusions 99.5 % sure.
    fn default() -> Self {
        Plan {
            lower_is_better: false,
            rates: ErrorRates {
                false_alarm: 0.01,
                miss: 0.01,
            },
            effect: 0.5,
            confidence: 0.995,
            references: 10,
            measurements: 20,
            rounds: 100,
        }
    }
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {found}; it must be {expected}")]
pub struct PlanError {
    what: &'static str,
    found: f64,
    expected: &'static str,
}

impl Plan {
    /// # Errors
    /// If a number is out of its bounds.
    pub fn check(&self) -> Result<(), PlanError> {
        let rate = |rate: f64| (1e-6..0.5).contains(&rate);
        let checks = [
            (
                "the rate of false alarms",
                self.rates.false_alarm,
                rate(self.rates.false_alarm),
                "from 0.000001 to below 0.5",
            ),
            (
                "the rate of misses",
                self.rates.miss,
                rate(self.rates.miss),
                "from 0.000001 to below 0.5",
            ),
            (
                "the effect",
                self.effect,
                (0.01..=1.0).contains(&self.effect),
                "from 0.01 to 1",
            ),
            (
                "the confidence",
                self.confidence,
                (0.5..=0.999_999).contains(&self.confidence),
                "from 0.5 to 0.999999",
            ),
            (
                "the number of references",
                self.references.into(),
                (3..=1_000).contains(&self.references),
                "from 3 to 1000",
            ),
            (
                "the number of measurements",
                self.measurements.into(),
                (2..=1_000).contains(&self.measurements),
                "from 2 to 1000",
            ),
            (
                "the number of rounds",
                self.rounds.into(),
                (3..=1_000).contains(&self.rounds),
                "from 3 to 1000",
            ),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            Some((what, found, _, expected)) => Err(PlanError {
                what,
                found,
                expected,
            }),
            None => Ok(()),
        }
    }
}

/// One choice of active settings, and what was measured or said of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Which settings are active, by their places in the log's list.
    pub active: Vec<usize>,
    /// What was measured, in order.
    #[serde(default)]
    pub values: Vec<f64>,
    /// What a person said instead: whether it is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_slow: Option<bool>,
}

/// All that a search knows. The rest follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The format of the file: [`Log::VERSION`].
    pub version: u32,
    /// How it measures.
    pub plan: Plan,
    /// What is searched among.
    pub settings: Vec<String>,
    /// What was done so far; the last one may be under way.
    pub rounds: Vec<Round>,
}

/// A log cannot be read, or is none.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It is no TOML of this form.
    #[error("this is no log of a bisection: {0}")]
    Form(#[from] toml::de::Error),
    /// Another program's.
    #[error("the log has version {found}, and this program reads {}", Log::VERSION)]
    Version {
        /// The file's.
        found: u32,
    },
    /// Its plan is out of bounds.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is nothing to search, or too much.
    #[error("{found} settings; it takes 2 to {} of them", Log::MOST_SETTINGS)]
    Settings {
        /// How many there are.
        found: usize,
    },
}

impl Log {
    /// The format that is written.
    pub const VERSION: u32 = 1;

    /// Bounds what a hostile file can make the search do.
    pub const MOST_SETTINGS: usize = 10_000;

    /// A search of which nothing is done.
    ///
    /// # Errors
    /// If the plan or the number of settings is out of bounds.
    pub fn new(settings: Vec<String>, plan: Plan) -> Result<Self, LogError> {
        let log = Log {
            version: Self::VERSION,
            plan,
            settings,
            rounds: Vec::new(),
        };
        log.check()?;
        Ok(log)
    }

    /// The log that a file's text holds.
    ///
    /// # Errors
    /// If it is none, or out of bounds.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let log: Log = toml::from_str(text)?;
        log.check()?;
        Ok(log)
    }

    /// The text for a file.
    pub fn to_text(&self) -> String {
        // Only what TOML has no word for is refused, such as maps whose keys are no text.
        toml::to_string(self).expect("a log is plain data")
    }

    fn check(&self) -> Result<(), LogError> {
        if self.version != Self::VERSION {
            return Err(LogError::Version {
                found: self.version,
            });
        }
        if !(2..=Self::MOST_SETTINGS).contains(&self.settings.len()) {
            return Err(LogError::Settings {
                found: self.settings.len(),
            });
        }
        Ok(self.plan.check()?)
    }
}
