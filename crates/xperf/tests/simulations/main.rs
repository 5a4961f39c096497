//! Reports of simulated traces, compared with the truth about the simulations.

mod lost_events;
mod reported;
mod scenarios;
mod stacks;
