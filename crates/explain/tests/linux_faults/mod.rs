//! Faults that the tests cause on this machine while perf records it, and their explanations. The first finding about
//! the delayed thread must name the cause, and its delay must be the one that the delayed program measured.
#![cfg(target_os = "linux")]

mod answers;
mod bench;
mod interference;
mod kernel;
mod locks;
mod recorded;
mod scheduler;
