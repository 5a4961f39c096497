//! All tests of the public interface in one program: linking many programs would take minutes.

mod foreign;
mod hostile;
mod open;
mod round_trip;
mod shapes;
mod truth;
mod writer;
