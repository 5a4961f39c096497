//! Statistics of measurements. They answer three questions: Did a change help? By how much? How certain is the answer?
//!
//! The unit of evidence is a run. The samples of a run depend on each other, so a run gives only one number for each
//! quantile, rate or count. [`compare`] compares the numbers of two variants, in neighbouring pairs ([`paired`]) or
//! without pairs ([`unpaired`]). It uses exact distributions of ranks, which assume no distribution of the values. If
//! ranks are not enough, it also uses means ([`Basis`]). [`Verdict`] expresses the result in words. If the result is
//! unknown, [`planning`] computes how many more pairs are needed.
//!
//! The crate depends on no other crate of this program. It uses no clock and no files.

pub mod batches;
mod binomial;
pub mod change_points;
pub mod classes;
pub mod clusters;
mod comparison;
pub mod counts;
pub mod dependence;
pub mod distance;
mod incomparable;
mod interval;
pub mod levels;
pub mod looks;
pub mod modes;
pub mod multiple;
mod normal;
mod order;
pub mod paired;
pub mod planning;
pub mod quantile;
pub mod random;
pub mod ratio_of_means;
pub mod shift_function;
pub mod unpaired;
mod verdict;
pub mod welch;

pub use comparison::{
    Basis, Comparison, Design, Estimate, Scale, compare, compare_with_looks, estimate,
};
pub use incomparable::Incomparable;
pub use interval::{CONFIDENCE, Interval, mean, variance};
pub use normal::student;
pub use order::{Order, order};
pub use verdict::{MARGIN, Margin, Verdict};
