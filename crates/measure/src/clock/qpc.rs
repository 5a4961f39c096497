//! The performance counter of Windows. Unsafe code is allowed for two functions that write a number
//! to a local variable.
#![allow(unsafe_code)]

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

/// Reads the counter.
#[inline]
pub(super) fn read() -> u64 {
    let mut ticks = 0;
    // SAFETY: the pointer refers to a local variable.
    unsafe { QueryPerformanceCounter(&mut ticks) };
    ticks.cast_unsigned()
}

/// Returns the number of ticks per second.
pub(super) fn frequency() -> u64 {
    let mut frequency = 0;
    // SAFETY: the pointer refers to a local variable.
    unsafe { QueryPerformanceFrequency(&mut frequency) };
    frequency.cast_unsigned()
}
