//! Explanations of simulated traces, compared with the truth about the simulations.

mod answers;
mod begun_before;
mod causes;
mod damaged;
mod explained;
mod hangs;
mod machine;
mod scenarios;
mod troubled;
mod variants;
mod waits;
