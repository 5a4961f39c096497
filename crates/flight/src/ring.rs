//! Ring buffers of the kernel. Unsafe code is allowed for calling `perf_event_open` and `ioctl`, and for reading memory
//! that the kernel writes. This code reads only up to the position that the kernel reports as written.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::ioctl::opcode;

use crate::attribute::Attribute;

/// Operations on events (`PERF_EVENT_IOC_…`).
mod operation {
    use super::opcode;

    pub(super) const ENABLE: u32 = opcode::none(b'$', 0) as u32;
    pub(super) const DISABLE: u32 = opcode::none(b'$', 1) as u32;
    pub(super) const SET_OUTPUT: u32 = opcode::none(b'$', 5) as u32;
    pub(super) const SET_FILTER: u32 = opcode::write::<*const u8>(b'$', 6) as u32;
    pub(super) const ID: u32 = opcode::read::<*const u64>(b'$', 7) as u32;
}

/// Open event of one CPU. Its recording is off until it is enabled.
#[derive(Debug)]
pub(crate) struct OpenEvent(OwnedFd);

impl OpenEvent {
    /// Opens an event for all threads on a CPU. The event is disabled at first.
    pub(crate) fn open(attribute: &Attribute, cpu: u32) -> io::Result<OpenEvent> {
        const ALL_THREADS: libc::pid_t = -1;
        const NO_GROUP: libc::c_int = -1;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        let bytes = attribute.bytes();
        // SAFETY: the description contains its size, and the kernel reads at most this number of bytes.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                bytes.as_ptr(),
                ALL_THREADS,
                cpu as libc::c_int,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        match i32::try_from(descriptor) {
            // SAFETY: the kernel returned a new descriptor, which has no other owner.
            Ok(descriptor @ 0..) => Ok(OpenEvent(unsafe { OwnedFd::from_raw_fd(descriptor) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn control(&self, operation: u32, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the callers pass the arguments that the operations need, and pointers that live long enough.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), operation as _, argument) };
        match done {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the id that the samples of the event contain.
    pub(crate) fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        self.control(operation::ID, (&raw mut id) as libc::c_ulong)?;
        Ok(id)
    }

    /// Makes the event record only those passes through its tracepoint for which the condition is true.
    pub(crate) fn filter(&self, condition: &std::ffi::CStr) -> io::Result<()> {
        self.control(operation::SET_FILTER, condition.as_ptr() as libc::c_ulong)
    }

    /// Makes the event write into the buffer of another event on the same CPU.
    pub(crate) fn write_into(&self, owner: &OpenEvent) -> io::Result<()> {
        self.control(operation::SET_OUTPUT, owner.0.as_raw_fd() as libc::c_ulong)
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.control(operation::ENABLE, 0)
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.control(operation::DISABLE, 0)
    }
}

/// Ring buffer of one CPU.
#[derive(Debug)]
pub(crate) struct Ring {
    map: MmapRaw,
    page: usize,
    size: usize,
    /// Number of bytes that were read since the buffer was mapped.
    read: u64,
}

/// Offsets in bytes in the first page of a buffer (`perf_event_mmap_page`). The kernel stores at `HEAD` how much it has
/// written. The reader stores at `TAIL` how much it has read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

impl Ring {
    /// Maps a buffer for an event. `size` is the size of the buffer in bytes. It must be the page size times a power of
    /// two.
    pub(crate) fn map(event: &OpenEvent, size: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let file = File::from(event.0.try_clone()?);
        let map = MmapOptions::new().len(page + size).map_raw(&file)?;
        Ok(Ring {
            map,
            page,
            size,
            read: 0,
        })
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the offset is within the first page and aligned to 8 bytes, and the kernel accesses the number
        // atomically.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Appends the new records to `records`, and returns their space in the buffer to the kernel.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) {
        let head = self.number(HEAD).load(Ordering::Acquire);
        let new = head.wrapping_sub(self.read);
        let new = usize::try_from(new).map_or(self.size, |new| new.min(self.size));
        let from = (self.read % self.size as u64) as usize;
        let first = new.min(self.size - from);
        for (from, len) in [(from, first), (0, new - first)] {
            // SAFETY: the range is within the buffer, and the kernel writes there only after `TAIL` has moved.
            let part =
                unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.page + from), len) };
            records.extend_from_slice(part);
        }
        self.read = head;
        self.number(TAIL).store(head, Ordering::Release);
    }
}
