//! Replacement for the `bcryptprimitives.dll` of Windows under Wine. The code is unsafe because it exports C
//! functions, and `no_std` because `std` itself imports this DLL.
//!
//! Every program with Rust's `std` imports `ProcessPrng` from this DLL, and Wine 8.0 has no such DLL. This
//! replacement calls `advapi32!SystemFunction036` (`RtlGenRandom`). It is only used for tests and never
//! shipped.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[link(name = "advapi32", kind = "raw-dylib")]
unsafe extern "system" {
    fn SystemFunction036(buffer: *mut u8, length: u32) -> u8;
}

/// Fills `length` bytes at `buffer` with random numbers. Returns 1 on success and 0 on failure.
///
/// # Safety
///
/// `buffer` must be valid for writes of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn ProcessPrng(mut buffer: *mut u8, mut length: usize) -> i32 {
    while length > 0 {
        let piece = length.min(1 << 28);
        // SAFETY: the caller guarantees that `length` bytes at `buffer` are valid, and `piece` is not larger
        // than the remaining length.
        unsafe {
            if SystemFunction036(buffer, piece as u32) == 0 {
                return 0;
            }
            buffer = buffer.add(piece);
        }
        length -= piece;
    }
    1
}
