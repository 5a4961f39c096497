//! Instructions of the CPU itself. Its allowance of unsafe code is for two that every x86-64 CPU has
//! and that only fill registers: `rdtsc`, and `cpuid`, which gives nonsense, not a fault, for leaves
//! that are not there.
#![allow(unsafe_code)]

use std::arch::x86_64::{__cpuid, _rdtsc};

/// Reads the time-stamp counter.
#[inline]
#[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: user programs may read it unless the system forbids it (CR4.TSD), which none does that
    // laglab runs on; if one did, the program would end, not err.
    unsafe { _rdtsc() }
}

/// EAX, EBX, ECX and EDX of a leaf.
#[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
pub(crate) fn cpuid(leaf: u32) -> [u32; 4] {
    // SAFETY: every x86-64 CPU has the instruction.
    let found = unsafe { __cpuid(leaf) };
    [found.eax, found.ebx, found.ecx, found.edx]
}

/// Whether the time-stamp counter counts at one rate in all states of the CPU: leaf 8000_0007h, EDX
/// bit 8.
pub(crate) fn has_invariant_time_stamp() -> bool {
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    cpuid(HIGHEST)[0] >= POWER && cpuid(POWER)[3] & 1 << 8 != 0
}
