//! A ring by the NT calls, whose queues are memory shared with the kernel. `unsafe` because that
//! memory is reached by pointers: their safety rests on the geometry that `NtCreateIoRing` gives,
//! which is checked before anything is written, and on [`Ring`](crate::Ring), which keeps every file
//! and buffer of an entry until its completion was fetched.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windows_sys::Win32::Foundation::HANDLE;

use super::functions::{Nt, check};
use crate::entry::{CompletionEntry, Entry};
use crate::sqe::{self, Sqe};
use crate::{Capabilities, Code, Error, Version};

/// The first version whose kernel has entries of the form that [`sqe`] writes.
const KNOWN_LAYOUT: Version = Version::V3;

/// `NT_IORING_CAPABILITIES`.
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

/// `NT_IORING_STRUCTV1`: what a new ring is to be like.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NtParameters {
    version: u32,
    submission_entries: u32,
    completion_entries: u32,
    required: u32,
    advisory: u32,
}

/// `NT_IORING_INFO`: what it is like.
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

/// The start of the submission queue; its entries follow.
#[repr(C)]
struct SubmissionHead {
    head: u32,
    tail: u32,
    flags: u32,
    unused: u32,
}

/// The start of the completion queue; its entries follow.
#[repr(C)]
struct CompletionHead {
    head: u32,
    tail: u32,
}

/// `NT_IORING_CQE`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Cqe {
    user_data: u64,
    code: i32,
    information: u64,
}

// The sizes that the kernel's public symbols give.
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
        let mut found = NtCapabilities::default();
        // SAFETY: it is told how much it may write.
        let code = unsafe { (functions.capabilities)(size_of::<NtCapabilities>(), &raw mut found) };
        check("NtQueryIoRingCapabilities", code)?;
        let newest = Version(found.version);
        if newest < KNOWN_LAYOUT {
            // An entry's form is the kernel's, whatever version the ring asks for.
            return Err(Error::LayoutUnknown {
                version: newest,
                why: "entries had another form before version 3",
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
        // SAFETY: it is told the sizes of what it reads and writes.
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
            // SAFETY: the ring was just made and nothing is in it.
            unsafe { (functions.close)(ring) };
            return Err(Error::LayoutUnknown {
                version: newest,
                why: "its queues are not what was asked for",
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
        // SAFETY: the queue has a power of two of entries behind its head, and the kernel reads
        // none at or past the tail.
        unsafe {
            let entries = self.submission.as_ptr().add(1).cast::<Sqe>();
            entries.add(place).write(words);
        }
        tail.store(tail_now.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    pub(super) fn submit(&mut self, wait: u32, limit: Option<Duration>) -> Result<(), Error> {
        // Units of 100 ns; a negative time counts from now.
        let units = limit.map(|limit| {
            let units = limit.as_nanos() / 100;
            i64::try_from(units).map_or(i64::MIN, |units| -units)
        });
        let limit = units.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the ring is open, and the time is read during the call only.
        let code = unsafe { (self.functions.submit)(self.ring, 0, wait, limit) };
        match Code(code).is_time_out() {
            true => Ok(()),
            false => check("NtSubmitIoRing", code),
        }
    }

    pub(super) fn pop(&mut self) -> Result<Option<CompletionEntry>, Error> {
        // SAFETY: the two numbers are in the shared memory, aligned, for as long as the ring is.
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
            return Err(Error::Corrupt("more completions than it has room for"));
        }
        let place = (head_now & (self.completion_entries - 1)) as usize;
        // SAFETY: the queue has a power of two of entries behind its head, and the kernel writes
        // none between head and tail.
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
        // SAFETY: the two numbers are in the shared memory, aligned, for as long as the ring is.
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
        // SAFETY: the ring is open and not used after this.
        unsafe { (self.functions.close)(self.ring) };
    }
}

/// The two queues, if they are such as were asked for; none when the structure that tells of them
/// cannot be what it is taken for.
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
