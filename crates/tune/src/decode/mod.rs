//! Effects that depend on more than one value: sleeps, SMB sessions, packet marks.
//!
//! The documentation of each module names the sources of its rules. Comments mark rules that are not
//! documented at all, or not documented for some builds.

pub mod dscp;
pub mod sleep;
pub mod smb;
