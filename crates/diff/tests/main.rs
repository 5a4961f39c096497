//! All tests of the public interface in one program: linking many programs would take minutes.

mod detail;
mod latency;
mod missing;
mod pictures;
mod power;
mod real;
mod recorded;
mod traffic;
mod twins;
