//! Statistics of measurements: did a change help, by how much, and how sure is this?
//!
//! The unit of evidence is a run. The samples of a run depend on each other, so a run counts as one
//! number for each quantile, rate or count. [`compare`] compares the numbers of two variants, in
//! neighbouring pairs ([`paired`]) or without pairs ([`unpaired`]), with exact laws that assume no
//! distribution of the values. [`Verdict`] says the result in words, and [`planning`] how many more
//! pairs would settle what is unknown.
//!
//! The crate knows no other crate of this program, no clock and no file.

mod binomial;
pub mod change_points;
pub mod clusters;
mod comparison;
pub mod counts;
pub mod dependence;
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
mod random;
pub mod ratio_of_means;
pub mod shift_function;
pub mod unpaired;
mod verdict;
pub mod welch;

pub use comparison::{Comparison, Design, Scale, compare};
pub use incomparable::Incomparable;
pub use interval::{CONFIDENCE, Interval, mean, variance};
pub use normal::student;
pub use order::{Order, order};
pub use verdict::{MARGIN, Margin, Verdict};
