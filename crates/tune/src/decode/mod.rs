//! Effects that depend on more than one value: quanta, sleeps, RSS, SMB sessions, packet marks.
//!
//! The documentation of each module names the sources of its rules. Comments mark rules that are not
//! documented at all, or not documented for some builds.

pub mod dscp;
pub mod flow;
pub mod quantum;
pub mod rss;
pub mod rss_limits;
pub mod rss_plan;
pub mod sleep;
pub mod smb;
pub mod topology;
