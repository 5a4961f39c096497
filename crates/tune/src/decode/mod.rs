//! What values of settings stand for, and what settings make of a machine together: a file each.
//!
//! These are the documented rules, worked out. Where a rule is not documented for a build, the file
//! says so.

pub mod dscp;
pub mod flow;
pub mod quantum;
pub mod rss;
pub mod rss_limits;
pub mod rss_plan;
pub mod sleep;
pub mod smb;
pub mod topology;
