//! The theories, a file each.

mod long_waits;
mod outranked;

use crate::Theory;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[&long_waits::LongWaits, &outranked::Outranked];
