//! Moving a DFS namespace to other servers and to full names, without losing a client on the way.
//!
//! - [`Export`] is what `dfsutil root export` wrote; [`Names`] says how its servers' names become full
//!   ones, and [`rewrite`] does it, leaving all else as it is.
//! - [`Referrals`] is what `dfsutil cache referral` (or `dfsutil /pktinfo`) showed on a client.
//! - [`Gate`] judges by them whether the next step may be taken, and until when to wait else.
//! - [`runbook`] gives the steps, with what must be seen before each goes on.

mod export;
mod gate;
mod name;
mod referrals;
mod rewrite;
mod runbook;

pub use export::{Export, ExportError, Target};
pub use gate::{Gate, Judgement, Reason};
pub use name::{NameError, ServerName};
pub use referrals::{Listed, Referral, Referrals, ReferralsError};
pub use rewrite::{Change, Left, Names, RewriteError, Rewritten, WhyLeft, rewrite};
pub use runbook::{Migration, MigrationError, Step, runbook};
