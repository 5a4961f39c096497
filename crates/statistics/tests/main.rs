//! All tests of the public interface in one program: linking many programs would take minutes.

mod error_rates;
mod history;
mod reference;
mod study;
mod vectors;
