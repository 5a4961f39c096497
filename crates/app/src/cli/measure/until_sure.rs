//! Option `--until-sure`.

use measure::Goal;

use crate::cli::Failure;
use crate::cli::percent::parse_percent;

/// Option to measure until the results of all comparisons are certain.
#[derive(clap::Args)]
pub(super) struct UntilSure {
    /// End as soon as the result of every comparison is certain, at most after 64 rounds. A result is certain
    /// if it is higher by more than this percentage, lower by more than it, or the same within it [default: 2]
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = parse_percent
    )]
    until_sure: Option<f64>,
}

impl UntilSure {
    /// Returns the goal of the measurement, if the option is given. `compared` is the number of methods times
    /// the number of settings.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if there is nothing to compare.
    pub(super) fn goal(&self, compared: usize) -> Result<Option<Goal>, Failure> {
        match self.until_sure {
            Some(_) if compared < 2 => Err(Failure::Input(
                "--until-sure has nothing to compare; give a second setting with --vs, or a second --method"
                    .to_owned(),
            )),
            margin => Ok(margin.map(Goal::Sure)),
        }
    }
}
