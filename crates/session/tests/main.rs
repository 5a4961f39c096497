//! All tests of the public interface in one program: linking many programs would take minutes.

mod linux_generated;
mod linux_names;
mod opened;
