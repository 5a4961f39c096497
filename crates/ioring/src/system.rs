//! Access to the system's rings, through functions of DLLs on 64-bit Windows. Other systems have no rings, so
//! every access fails on them.

#[cfg(not(all(windows, target_pointer_width = "64")))]
mod absent;
#[cfg(all(windows, target_pointer_width = "64"))]
mod functions;
#[cfg(all(windows, target_pointer_width = "64"))]
mod kernel_base;
#[cfg(all(windows, target_pointer_width = "64"))]
mod nt;
#[cfg(all(windows, target_pointer_width = "64"))]
mod queue;

#[cfg(not(all(windows, target_pointer_width = "64")))]
pub(crate) use absent::{Functions, Queue, handle};
#[cfg(all(windows, target_pointer_width = "64"))]
pub(crate) use {
    functions::Functions,
    queue::{Queue, handle},
};
