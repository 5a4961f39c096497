//! A ring that uses NT system calls. Its queues are in memory that it shares with the kernel.
//! Unsafe code is allowed for access to that memory by pointers. The access is safe because the
//! sizes and addresses that `NtCreateIoRing` returns are checked before anything is written. In
//! addition, [`Ring`](crate::Ring) keeps the file and buffer of an entry until the completion of
//! the entry was fetched.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windows_sys::Win32::Foundation::HANDLE;

use super::functions::{Nt, check};
use crate::entry::{CompletionEntry, Entry};
use crate::sqe::{self, Sqe};
use crate::{Capabilities, Code, Error, Version};

/// First ring version whose kernel uses the entry layout of [`sqe`].
const KNOWN_LAYOUT: Version = Version::V3;

/// Capabilities of rings in the kernel (structure `NT_IORING_CAPABILITIES`).
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct NtCapabilities {
    version: u32,
    last_operation: u32,
    features: u32,
    submission_entries: u32,
    completion_entries: u32,
}

impl From<NtCapabilities> for Capabilities {
    fn from(found: NtCapabilities) -> Self {
        Self::new(
            found.version,
            found.submission_entries,
            found.completion_entries,
            found.features,
        )
    }
}

/// Requested properties of a new ring (`NT_IORING_STRUCTV1`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct NtParameters {
    version: u32,
    submission_entries: u32,
    completion_entries: u32,
    required: u32,
    advisory: u32,
}

/// Properties of a ring (`NT_IORING_INFO`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct NtInfo {
    version: u32,
    required: u32,
    advisory: u32,
    submission_entries: u32,
    submission_mask: u32,
    completion_entries: u32,
    completion_mask: u32,
    submission: *mut SubmissionHead,
    completion: *mut CompletionHead,
}

/// Header of the submission queue. The entries follow the header in memory.
#[repr(C)]
struct SubmissionHead {
    head: u32,
    tail: u32,
    flags: u32,
    unused: u32,
}

/// Header of the completion queue. The entries follow the header in memory.
#[repr(C)]
struct CompletionHead {
    head: u32,
    tail: u32,
}

/// Entry of the completion queue (`NT_IORING_CQE`).
#[derive(Clone, Copy)]
#[repr(C)]
struct Cqe {
    user_data: u64,
    code: i32,
    information: u64,
}

// The sizes come from the kernel's public symbols.
const _: () = assert!(size_of::<NtInfo>() == 0x30);
const _: () = assert!(size_of::<Sqe>() == 0x40);
const _: () = assert!(size_of::<Cqe>() == 0x18);
const _: () = assert!(size_of::<SubmissionHead>() == 0x10);
const _: () = assert!(size_of::<CompletionHead>() == 0x8);

#[derive(Debug)]
pub(crate) struct NtRing {
    functions: Nt,
    ring: HANDLE,
    version: Version,
    submission: NonNull<SubmissionHead>,
    submission_entries: u32,
    completion: NonNull<CompletionHead>,
    completion_entries: u32,
}

impl NtRing {
    pub(super) fn new(functions: &Nt, version: Version, entries: u32) -> Result<Self, Error> {
        let mut capabilities = NtCapabilities::default();
        // SAFETY: the call writes at most the passed size.
        let code =
            unsafe { (functions.capabilities)(size_of::<NtCapabilities>(), &raw mut capabilities) };
        check("NtQueryIoRingCapabilities", code)?;
        let newest = Version(capabilities.version);
        if newest < KNOWN_LAYOUT {
            // The layout of entries depends on the version of the kernel, not on the version of the ring.
            return Err(Error::LayoutUnknown {
                version: newest,
                why: "the layout of entries before version 3 is not supported",
            });
        }
        let parameters = NtParameters {
            version: version.0,
            submission_entries: entries,
            completion_entries: entries.saturating_mul(2),
            required: 0,
            advisory: 0,
        };
        let mut info = NtInfo {
            version: 0,
            required: 0,
            advisory: 0,
            submission_entries: 0,
            submission_mask: 0,
            completion_entries: 0,
            completion_mask: 0,
            submission: ptr::null_mut(),
            completion: ptr::null_mut(),
        };
        let mut ring: HANDLE = ptr::null_mut();
        // SAFETY: the call reads and writes structures of the passed sizes.
        let code = unsafe {
            (functions.create)(
                &raw mut ring,
                size_of::<NtParameters>() as u32,
                &raw const parameters,
                size_of::<NtInfo>() as u32,
                &raw mut info,
            )
        };
        check("NtCreateIoRing", code)?;
        let queues = queues(&info, &parameters);
        let Some((submission, completion)) = queues else {
            // SAFETY: the ring was just created and is empty.
            unsafe { (functions.close)(ring) };
            return Err(Error::LayoutUnknown {
                version: newest,
                why: "the queues do not have the requested size",
            });
        };
        Ok(Self {
            functions: *functions,
            ring,
            version: Version(info.version),
            submission,
            submission_entries: info.submission_entries,
            completion,
            completion_entries: info.completion_entries,
        })
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn completion_entries(&self) -> u32 {
        self.completion_entries
    }

    pub(super) fn push(&mut self, entry: &Entry, token: u64) -> Result<(), Error> {
        let (head, tail) = self.submission_ends();
        let tail_now = tail.load(Ordering::Relaxed);
        let waiting = tail_now.wrapping_sub(head.load(Ordering::Acquire));
        if waiting >= self.submission_entries {
            return Err(Error::Full);
        }
        let place = (tail_now & (self.submission_entries - 1)) as usize;
        let words = sqe::encode(entry, token);
        // SAFETY: the number of entries after the header is a power of two, so the masked index is
        // in range. The kernel does not read entries at or after the tail.
        unsafe {
            let entries = self.submission.as_ptr().add(1).cast::<Sqe>();
            entries.add(place).write(words);
        }
        tail.store(tail_now.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    pub(super) fn submit(&mut self, wait: u32, limit: Option<Duration>) -> Result<(), Error> {
        // The system call takes the time in units of 100 ns. Negative values are relative to the
        // present.
        let units = limit.map(|limit| {
            let units = limit.as_nanos() / 100;
            i64::try_from(units).map_or(i64::MIN, |units| -units)
        });
        let limit = units.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the ring is open, and the kernel reads the time only during the call.
        let code = unsafe { (self.functions.submit)(self.ring, 0, wait, limit) };
        if Code(code).is_timeout() {
            Ok(())
        } else {
            check("NtSubmitIoRing", code)
        }
    }

    pub(super) fn pop(&mut self) -> Result<Option<CompletionEntry>, Error> {
        // SAFETY: head and tail are aligned and in shared memory that lives as long as the ring.
        let (head, tail) = unsafe {
            let start = self.completion.as_ptr();
            (
                AtomicU32::from_ptr(&raw mut (*start).head),
                AtomicU32::from_ptr(&raw mut (*start).tail),
            )
        };
        let head_now = head.load(Ordering::Relaxed);
        let ready = tail.load(Ordering::Acquire).wrapping_sub(head_now);
        if ready == 0 {
            return Ok(None);
        }
        if ready > self.completion_entries {
            return Err(Error::Corrupt("more completions than entries"));
        }
        let place = (head_now & (self.completion_entries - 1)) as usize;
        // SAFETY: the number of entries after the header is a power of two, so the masked index is
        // in range. The kernel does not write entries between head and tail.
        let entry = unsafe {
            let entries = self.completion.as_ptr().add(1).cast::<Cqe>();
            entries.add(place).read()
        };
        head.store(head_now.wrapping_add(1), Ordering::Release);
        Ok(Some(CompletionEntry {
            token: entry.user_data,
            code: entry.code,
            information: entry.information,
        }))
    }

    fn submission_ends(&self) -> (&AtomicU32, &AtomicU32) {
        // SAFETY: head and tail are aligned and in shared memory that lives as long as the ring.
        unsafe {
            let start = self.submission.as_ptr();
            (
                AtomicU32::from_ptr(&raw mut (*start).head),
                AtomicU32::from_ptr(&raw mut (*start).tail),
            )
        }
    }
}

impl Drop for NtRing {
    fn drop(&mut self) {
        // SAFETY: the ring is open and not used afterwards.
        unsafe { (self.functions.close)(self.ring) };
    }
}

/// Returns the two queues. Returns `None` if a size, mask, address or version in `info` is not as
/// expected for the requested ring.
fn queues(
    info: &NtInfo,
    asked: &NtParameters,
) -> Option<(NonNull<SubmissionHead>, NonNull<CompletionHead>)> {
    let is_queue = |entries: u32, mask: u32, asked: u32, address: usize| {
        entries.is_power_of_two()
            && mask == entries - 1
            && entries >= asked
            && address.is_multiple_of(8)
    };
    let is_expected = is_queue(
        info.submission_entries,
        info.submission_mask,
        asked.submission_entries,
        info.submission.addr(),
    ) && is_queue(
        info.completion_entries,
        info.completion_mask,
        asked.completion_entries,
        info.completion.addr(),
    ) && info.version == asked.version;
    let queues = (
        NonNull::new(info.submission)?,
        NonNull::new(info.completion)?,
    );
    is_expected.then_some(queues)
}
