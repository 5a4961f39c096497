//! Reports of simulated traces, compared with the truth about the simulations.

mod reported;
mod scenarios;
mod stacks;
