//! Test driver with a DPC routine and an inlined function. Exports and volatile access need `unsafe`.
#![no_std]
#![no_main]
#![allow(non_snake_case)]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[inline(always)]
fn count_up(counter: *mut u64) -> u64 {
    unsafe {
        let before = counter.read_volatile(); // line 14: inlined function
        counter.write_volatile(before + 1);
        before
    }
}

#[unsafe(no_mangle)]
pub extern "system" fn TinyDpcRoutine(context: *mut u64) -> u64 {
    let before = count_up(context); // line 22: calls the inlined function
    before.rotate_left(7)
}

#[unsafe(no_mangle)]
pub extern "system" fn DriverEntry(driver: *mut u64) -> u64 {
    TinyDpcRoutine(driver) ^ 0x51
}
