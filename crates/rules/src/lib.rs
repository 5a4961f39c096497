//! Rules of Windows that the model, the theories and the settings share: quanta, the choice of CPUs by receive-side
//! scaling, the topology of processors, kinds of events and names of numbers.
//!
//! The documentation of each module names the sources of its rules. Comments mark rules that are not
//! documented at all, or not documented for some builds.

pub mod flow;
pub mod kinds;
pub mod names;
pub mod quantum;
pub mod rss;
pub mod rss_limits;
pub mod rss_plan;
pub mod topology;
