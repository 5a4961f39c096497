//! Windows' performance counter. Its allowance of unsafe code is for two functions that write one
//! number to the address they are given, which is a local variable's.
#![allow(unsafe_code)]

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

/// Reads the counter.
#[inline]
pub(super) fn read() -> u64 {
    let mut ticks = 0;
    // SAFETY: the address is of a local variable. It never fails since Windows XP.
    unsafe { QueryPerformanceCounter(&mut ticks) };
    ticks.cast_unsigned()
}

/// Ticks in a second.
pub(super) fn frequency() -> u64 {
    let mut frequency = 0;
    // SAFETY: as above.
    unsafe { QueryPerformanceFrequency(&mut frequency) };
    frequency.cast_unsigned()
}
