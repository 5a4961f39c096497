//! All tests of the public interface in one program: linking many programs would take minutes.

#[cfg(not(windows))]
mod driver;
mod elf;
mod real_pdbs;
mod servers;
mod stores;
mod written_pdbs;
