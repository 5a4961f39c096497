//! All tests of the public interface in one program: linking many programs would take minutes.

mod perf;
mod text;
mod trace_dat;
