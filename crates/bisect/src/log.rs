//! Log file of a search: plan, settings and measurements.

use serde::{Deserialize, Serialize};

use super::sequential_test::{ErrorRates, References};

/// Parameters of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// True if lower measurements are better (a time). False if higher measurements are better (a
    /// throughput).
    pub lower_is_better: bool,
    /// Maximum error rates of the answers of trials. Each is from 0.000001 to below 0.5.
    pub rates: ErrorRates,
    /// Minimum slowdown that counts as slow, as a share of the total slowdown. It is from 0.01 to 1.
    pub effect: f64,
    /// Minimum probability that a conclusion must have. It is from 0.5 to 0.999999.
    pub confidence: f64,
    /// Number of reference measurements without any setting. The same number is taken with all settings. It
    /// is from [`References::MIN_COUNT`] to 1000.
    pub references: u32,
    /// Maximum number of measurements in one trial. It is from 2 to 1000.
    pub measurements: u32,
    /// Maximum number of rounds, including the two rounds of reference measurements. It is from 3 to 1000.
    pub rounds: u32,
}

impl Default for Plan {
    /// Returns a plan with error rates of 1 %, an effect of half of the total slowdown and a confidence of
    /// 99.5 %.
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

/// Error for a parameter that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid {what} {found}: give a value {expected}")]
pub struct PlanError {
    what: &'static str,
    found: f64,
    expected: &'static str,
}

impl Plan {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range.
    pub fn check(&self) -> Result<(), PlanError> {
        let rate = |rate: f64| (1e-6..0.5).contains(&rate);
        let checks = [
            (
                "rate of false alarms",
                self.rates.false_alarm,
                rate(self.rates.false_alarm),
                "from 0.000001 to below 0.5",
            ),
            (
                "rate of misses",
                self.rates.miss,
                rate(self.rates.miss),
                "from 0.000001 to below 0.5",
            ),
            (
                "effect",
                self.effect,
                (0.01..=1.0).contains(&self.effect),
                "from 0.01 to 1",
            ),
            (
                "confidence",
                self.confidence,
                (0.5..=0.999_999).contains(&self.confidence),
                "from 0.5 to 0.999999",
            ),
            (
                "number of references",
                self.references.into(),
                (References::MIN_COUNT..=1_000).contains(&self.references),
                "from 7 to 1000",
            ),
            (
                "number of measurements",
                self.measurements.into(),
                (2..=1_000).contains(&self.measurements),
                "from 2 to 1000",
            ),
            (
                "number of rounds",
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

/// A round of a search: a set of active settings, and its measurements or the user's judgement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Indexes of the active settings.
    pub active: Vec<usize>,
    /// Measurements of the round in order.
    #[serde(default)]
    pub values: Vec<f64>,
    /// Judgement of the user in place of measurements: true if the user said that the machine is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_slow: Option<bool>,
}

/// State of a search, as its log file contains it. All other data is derived from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Version of the file format: [`Log::VERSION`].
    pub version: u32,
    /// Parameters of the search.
    pub plan: Plan,
    /// Settings to search.
    pub settings: Vec<String>,
    /// Rounds so far. The last round may be incomplete.
    pub rounds: Vec<Round>,
}

/// Reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file is not TOML, or does not have the fields of a log.
    #[error("not a log of a bisection")]
    Form(#[from] toml::de::Error),
    /// The file has another version.
    #[error(
        "unsupported log version {found}: this program reads version {}",
        Log::VERSION
    )]
    Version {
        /// Version of the file.
        found: u32,
    },
    /// A parameter is out of range.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The number of settings is too small or too large.
    #[error("invalid number of settings {found}: give 2 to {}", Log::MAX_SETTINGS)]
    Settings {
        /// Number of settings.
        found: usize,
    },
}

impl Log {
    /// Current version of the format.
    pub const VERSION: u32 = 1;

    /// Maximum number of settings. It limits the work if a log file is hostile.
    pub const MAX_SETTINGS: usize = 10_000;

    /// Starts a log.
    ///
    /// # Errors
    /// Returns an error if a parameter or the number of settings is out of range.
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

    /// Parses a log file.
    ///
    /// # Errors
    /// Returns an error if the text is not a log, or if a number is out of range.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let log: Log = toml::from_str(text)?;
        log.check()?;
        Ok(log)
    }

    /// Returns the text of the log file.
    pub fn to_text(&self) -> String {
        // Conversion to TOML fails only for types that TOML cannot represent, such as maps whose keys are
        // not text.
        toml::to_string(self).expect("a log is plain data")
    }

    fn check(&self) -> Result<(), LogError> {
        if self.version != Self::VERSION {
            return Err(LogError::Version {
                found: self.version,
            });
        }
        if !(2..=Self::MAX_SETTINGS).contains(&self.settings.len()) {
            return Err(LogError::Settings {
                found: self.settings.len(),
            });
        }
        Ok(self.plan.check()?)
    }
}
