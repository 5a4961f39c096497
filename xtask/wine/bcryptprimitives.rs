//! A stand-in for Windows' `bcryptprimitives.dll`; unsafe because a DLL's export is, and `no_std`
//! because `std` itself imports this DLL.
//!
//! Every program with Rust's `std` imports `ProcessPrng` from it, and Wine 8.0 has no such DLL, so
//! none would start. This one asks `advapi32!SystemFunction036` (`RtlGenRandom`) instead. A test
//! aid for Wine only; it is never shipped.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[link(name = "advapi32", kind = "raw-dylib")]
unsafe extern "system" {
    fn SystemFunction036(buffer: *mut u8, length: u32) -> u8;
}

/// Fills `length` bytes at `buffer` with random numbers; 1 when it could, else 0.
///
/// # Safety
///
/// `buffer` must be valid for writes of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn ProcessPrng(mut buffer: *mut u8, mut length: usize) -> i32 {
    while length > 0 {
        let piece = length.min(1 << 28);
        // SAFETY: `piece` of the `length` bytes that the caller vouches for remain at `buffer`.
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
