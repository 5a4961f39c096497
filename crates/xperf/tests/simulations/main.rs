//! Checks reports of simulated traces. The expected results are in the truth files that the simulator writes.

mod lost_events;
mod reported;
mod scenarios;
mod stacks;
mod trimmed;
