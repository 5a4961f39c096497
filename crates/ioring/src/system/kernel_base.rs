//! A ring that uses the documented functions of KernelBase. Unsafe code is allowed because these
//! functions are called by pointer and take addresses. [`Ring`](crate::Ring) makes the calls safe,
//! because it keeps the file and buffer of an entry until the completion of the entry was fetched.

#![allow(unsafe_code)]

use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Storage::FileSystem::{
    HIORING, IORING_BUFFER_REF, IORING_BUFFER_REF_0, IORING_CQE, IORING_CREATE_FLAGS,
    IORING_HANDLE_REF, IORING_HANDLE_REF_0, IORING_INFO, IORING_REF_RAW, IORING_REF_REGISTERED,
    IORING_REGISTERED_BUFFER, IOSQE_FLAGS_NONE,
};

use super::functions::{KernelBase, check};
use crate::entry::{BufferInfo, CompletionEntry, Entry, FileRef, MemoryRef};
use crate::{Code, Error, Operation, Version};

// The buffer table is passed to the system without conversion, so its rows must have the system's
// size.
const _: () = assert!(
    size_of::<BufferInfo>()
        == size_of::<windows_sys::Win32::Storage::FileSystem::IORING_BUFFER_INFO>()
);

#[derive(Debug)]
pub(crate) struct KernelBaseRing {
    functions: KernelBase,
    ring: HIORING,
    version: Version,
    completion_entries: u32,
    /// Bit mask of the supported operations, with the operation code as the bit number. It is
    /// queried only once, because it does not change.
    supported: u32,
}

impl KernelBaseRing {
    pub(super) fn new(
        functions: &KernelBase,
        version: Version,
        entries: u32,
    ) -> Result<Self, Error> {
        let mut handle: HIORING = ptr::null_mut();
        // SAFETY: the call writes one handle.
        let code = unsafe {
            (functions.create)(
                version.0.cast_signed(),
                IORING_CREATE_FLAGS::default(),
                entries,
                entries.saturating_mul(2),
                &raw mut handle,
            )
        };
        check("CreateIoRing", code)?;
        let mut ring = Self {
            functions: *functions,
            ring: handle,
            version,
            completion_entries: 0,
            supported: 0,
        };
        let mut info = IORING_INFO::default();
        // SAFETY: the ring is open, and the call writes one structure.
        let code = unsafe { (functions.info)(ring.ring, &raw mut info) };
        check("GetIoRingInfo", code)?;
        ring.version = Version(info.IoRingVersion.cast_unsigned());
        ring.completion_entries = info.CompletionQueueSize;
        for operation in 0..=Operation::WriteGather as i32 {
            // SAFETY: the ring is open.
            let is_supported = unsafe { (functions.is_supported)(ring.ring, operation) != 0 };
            ring.supported |= u32::from(is_supported) << operation;
        }
        Ok(ring)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn completion_entries(&self) -> u32 {
        self.completion_entries
    }

    pub(super) fn supports(&self, operation: Operation) -> bool {
        self.supported & 1 << operation as u32 != 0
    }

    pub(super) fn push(&mut self, entry: &Entry, token: u64) -> Result<(), Error> {
        let functions = &self.functions;
        let token = token as usize;
        let unsupported = Error::Unsupported {
            operation: entry.operation(),
            version: self.version,
        };
        // SAFETY: the ring is open. The targets of the entry's pointers stay valid until the entry
        // completes.
        let (call, code) = unsafe {
            match *entry {
                Entry::Read(transfer) => (
                    "BuildIoRingReadFile",
                    (functions.read)(
                        self.ring,
                        file(transfer.file),
                        memory(transfer.memory),
                        transfer.length,
                        transfer.offset,
                        token,
                        IOSQE_FLAGS_NONE,
                    ),
                ),
                Entry::Write(transfer) => (
                    "BuildIoRingWriteFile",
                    (functions.write.ok_or(unsupported)?)(
                        self.ring,
                        file(transfer.file),
                        memory(transfer.memory),
                        transfer.length,
                        transfer.offset,
                        0,
                        token,
                        IOSQE_FLAGS_NONE,
                    ),
                ),
                Entry::Flush(target, mode) => (
                    "BuildIoRingFlushFile",
                    (functions.flush.ok_or(unsupported)?)(
                        self.ring,
                        file(target),
                        mode as i32,
                        token,
                        IOSQE_FLAGS_NONE,
                    ),
                ),
                Entry::Cancel(target, other) => (
                    "BuildIoRingCancelRequest",
                    (functions.cancel)(self.ring, file(target), other as usize, token),
                ),
                Entry::RegisterFiles(table) => (
                    "BuildIoRingRegisterFileHandles",
                    (functions.register_files)(
                        self.ring,
                        table.count,
                        ptr::with_exposed_provenance(table.address),
                        token,
                    ),
                ),
                Entry::RegisterBuffers(table) => (
                    "BuildIoRingRegisterBuffers",
                    (functions.register_buffers)(
                        self.ring,
                        table.count,
                        ptr::with_exposed_provenance(table.address),
                        token,
                    ),
                ),
                // KernelBase has no function for this operation.
                Entry::Nop => return Err(unsupported),
            }
        };
        check(call, code)
    }

    pub(super) fn submit(&mut self, wait: u32, limit: Option<Duration>) -> Result<(), Error> {
        const INFINITE: u32 = u32::MAX;
        let milliseconds = limit.map_or(INFINITE, |limit| {
            u32::try_from(limit.as_millis()).map_or(INFINITE - 1, |ms| ms.min(INFINITE - 1))
        });
        let mut submitted = 0;
        // SAFETY: the ring is open, and the call writes one number.
        let code =
            unsafe { (self.functions.submit)(self.ring, wait, milliseconds, &raw mut submitted) };
        if Code(code).is_timeout() {
            Ok(())
        } else {
            check("SubmitIoRing", code)
        }
    }

    pub(super) fn pop(&mut self) -> Result<Option<CompletionEntry>, Error> {
        const EMPTY: i32 = 1; // S_FALSE
        let mut entry = IORING_CQE::default();
        // SAFETY: the ring is open, and the call writes one structure.
        let code = unsafe { (self.functions.pop)(self.ring, &raw mut entry) };
        check("PopIoRingCompletion", code)?;
        Ok((code != EMPTY).then_some(CompletionEntry {
            token: entry.UserData as u64,
            code: entry.ResultCode,
            information: entry.Information as u64,
        }))
    }
}

impl Drop for KernelBaseRing {
    fn drop(&mut self) {
        // SAFETY: the ring is open and not used afterwards.
        unsafe { (self.functions.close)(self.ring) };
    }
}

fn file(file: FileRef) -> IORING_HANDLE_REF {
    match file {
        FileRef::Raw(handle) => IORING_HANDLE_REF {
            Kind: IORING_REF_RAW,
            Handle: IORING_HANDLE_REF_0 {
                Handle: ptr::with_exposed_provenance_mut(handle),
            },
        },
        FileRef::Registered(index) => IORING_HANDLE_REF {
            Kind: IORING_REF_REGISTERED,
            Handle: IORING_HANDLE_REF_0 { Index: index },
        },
    }
}

fn memory(memory: MemoryRef) -> IORING_BUFFER_REF {
    match memory {
        MemoryRef::Raw(address) => IORING_BUFFER_REF {
            Kind: IORING_REF_RAW,
            Buffer: IORING_BUFFER_REF_0 {
                Address: ptr::with_exposed_provenance_mut(address),
            },
        },
        MemoryRef::Registered(index) => IORING_BUFFER_REF {
            Kind: IORING_REF_REGISTERED,
            Buffer: IORING_BUFFER_REF_0 {
                IndexAndOffset: IORING_REGISTERED_BUFFER {
                    BufferIndex: index,
                    Offset: 0,
                },
            },
        },
    }
}
