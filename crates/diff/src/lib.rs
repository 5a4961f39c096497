//! Differences between two recordings.
//!
//! [`Recording`] sums a trace by process, module and disk, in blocks of time. [`diff`] matches the rows of both
//! recordings by what survives a boot (names, not ids or addresses), and tells apart what changed and what
//! chance explains. [`Besides`] lists what differs besides: the build, drivers, recorded events, losses.
//!
//! A recording on each side shows that the recordings differ. Whether a change of the machine is the reason
//! needs more recordings.

mod besides;
mod change;
mod decomposition;
mod recording;
mod rows;

pub use besides::{Besides, Difference, Driver};
pub use change::{Change, Conclusion, Diff, Side, Unit, diff};
pub use decomposition::{Parts, decompose};
pub use recording::{Recording, TABLES};
pub use rows::{Kind, Sum};
pub use statistics::Interval;
