//! The theories, a file each.

mod outranked;

use crate::Theory;

/// All theories.
pub(crate) static THEORIES: &[&dyn Theory] = &[&outranked::Outranked];
