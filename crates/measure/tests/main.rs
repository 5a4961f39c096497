//! All tests of the public interface in one program: linking many programs would take minutes.

mod files;
mod net;
mod net_libraries;
mod net_throughput;
mod scheduling;
