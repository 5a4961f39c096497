//! Migration of a DFS namespace to other servers and to full names, without interrupting clients.
//!
//! - [`Export`] is the output of `dfsutil root export`. [`Names`] has rules that replace server names by
//!   full names. [`rewrite`] applies the rules and changes nothing else.
//! - [`Referrals`] is the output of `dfsutil cache referral` (or `dfsutil /pktinfo`) on a client.
//! - [`Gate`] decides from a client's referrals whether the next step is safe. If the step is not safe, the
//!   gate states how long to wait.
//! - [`runbook`] returns the steps of a migration with their commands, their checks and instructions to
//!   undo them.

mod export;
mod gate;
mod name;
mod referrals;
mod rewrite;
mod runbook;

pub use export::{Export, ExportError, Target};
pub use gate::{Gate, Judgement, Reason};
pub use name::{NameError, ServerName};
pub use referrals::{Referral, ReferralTarget, Referrals, ReferralsError};
pub use rewrite::{
    Change, Names, RewriteError, RewrittenExport, UnchangedReason, UnchangedTarget, rewrite,
};
pub use runbook::{Migration, MigrationError, Step, runbook};
