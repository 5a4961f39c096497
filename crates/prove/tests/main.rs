//! All tests of the public interface in one program: linking many programs would take minutes.

mod change_plan;
mod cheapest;
mod compare;
mod pairs;
mod parquet;
mod traces;
mod written;
