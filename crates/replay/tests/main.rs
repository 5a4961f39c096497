//! All tests of the public interface in one program: linking many programs would take minutes.

mod pairs;
mod study;
mod what_if;
