//! A deterministic model of Windows, of the parts that decide how late things are: the dispatcher,
//! interrupts and DPCs, timers, disks and network adapters. It runs a [scenario](crate::scenario)
//! and writes what Windows would have logged as an `.etl` trace, and what really happened as truth.
//!
//! Time is whole ticks of the trace's clock since the trace began: what is logged is what happened,
//! with no rounding between the two. The same scenario and seed give the same bytes everywhere.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the model logs, and is not there yet")
)]
#[cfg_attr(not(test), expect(unused_imports, reason = "likewise"))]
mod log;
mod time;
pub mod windows;
