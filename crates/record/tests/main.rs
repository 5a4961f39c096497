//! All tests of the public interface in one program: linking many programs would take minutes.

mod input;
mod kits;
mod profiles;
mod scripts;
