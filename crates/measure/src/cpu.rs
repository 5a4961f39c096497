//! CPU instructions. Unsafe code is allowed for `rdtsc` and `cpuid`. Every x86-64 CPU has these
//! instructions, and they only write registers. For unknown leaves, `cpuid` returns arbitrary
//! values and does not fault.
#![allow(unsafe_code)]

use std::arch::x86_64::{__cpuid, _rdtsc};

/// Reads the time-stamp counter.
#[inline]
#[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: user programs may read the counter unless the system forbids it (CR4.TSD). The supported
    // systems do not forbid it. On a system that forbids it, the program would end with a fault.
    unsafe { _rdtsc() }
}

/// Returns the registers EAX, EBX, ECX and EDX that `cpuid` writes for a leaf.
#[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
pub(crate) fn cpuid(leaf: u32) -> [u32; 4] {
    // SAFETY: every x86-64 CPU has the instruction.
    let registers = unsafe { __cpuid(leaf) };
    [registers.eax, registers.ebx, registers.ecx, registers.edx]
}

/// Returns true if the time-stamp counter has a constant rate in all CPU states. The CPU reports this
/// property in leaf 8000_0007h, EDX bit 8.
pub(crate) fn has_invariant_time_stamp() -> bool {
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    cpuid(HIGHEST)[0] >= POWER && cpuid(POWER)[3] & 1 << 8 != 0
}
