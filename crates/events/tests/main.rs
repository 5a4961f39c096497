//! All tests of the public interface in one program: linking many programs would take minutes.

mod classic;
mod golden;
mod hostile;
mod kernel_traces;
mod kernel_vectors;
mod kernel_views;
mod real_traces;
mod spans;
mod vectors;
mod wpp;
mod written;
