//! Queues of overlapped reads on Windows, with completion routines (`ReadFileEx`) or a completion port.
//! Unsafe code is allowed because the system gets addresses. The code is safe because the structure and
//! buffer of an operation do not move until the operation completes. Dropping a queue waits for its
//! operations.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr;

use ioring::Buffer;
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_HANDLE_EOF, ERROR_IO_PENDING, GetLastError, HANDLE, INVALID_HANDLE_VALUE,
    WAIT_TIMEOUT,
};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, ReadFileEx};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetOverlappedResult, GetQueuedCompletionStatusEx, OVERLAPPED,
    OVERLAPPED_ENTRY,
};
use windows_sys::Win32::System::Threading::{INFINITE, SleepEx};

use super::drive::{Completion, ReadQueue};
use super::{CHUNK, FilesError};

/// Time in milliseconds that a dropped queue waits for operations in flight.
const GRACE: u32 = 5_000;

/// A read. The system identifies the read by the address of its field `overlapped`, so this field is the
/// first.
#[repr(C)]
struct Operation {
    overlapped: OVERLAPPED,
    slot: usize,
    file: HANDLE,
    /// Error code of the system (0 for success) and number of bytes read. `None` while the read is in flight.
    end: Option<(u32, u32)>,
}

/// Operations and their buffers. Each slot has one operation and one buffer.
struct Operations {
    files: Vec<File>,
    buffers: Vec<Buffer>,
    /// Operations. `Box::into_raw` creates them, so that no reference aliases memory that the system writes.
    operations: Vec<*mut Operation>,
    under_way: usize,
    /// Reads that ended at once because their offset was past the end of the file.
    ended: Vec<Completion>,
}

impl Operations {
    fn new(files: Vec<File>, slots: usize) -> Self {
        let operation = |slot| {
            Box::into_raw(Box::new(Operation {
                overlapped: OVERLAPPED::default(),
                slot,
                file: ptr::null_mut(),
                end: None,
            }))
        };
        Self {
            files,
            buffers: (0..slots).map(|_| Buffer::new(CHUNK)).collect(),
            operations: (0..slots).map(operation).collect(),
            under_way: 0,
            ended: Vec::new(),
        }
    }

    /// Starts a read with `call`. `call` must return true if the system accepted the read.
    fn begin(
        &mut self,
        slot: usize,
        file: usize,
        offset: u64,
        call: impl FnOnce(HANDLE, *mut u8, *mut OVERLAPPED) -> bool,
    ) -> io::Result<()> {
        let handle = self.files[file].as_raw_handle();
        let operation = self.operations[slot];
        let mut overlapped = OVERLAPPED::default();
        overlapped.Anonymous.Anonymous.Offset = offset as u32;
        overlapped.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
        // SAFETY: no read of this slot is in flight, so there is no other access.
        unsafe {
            operation.write(Operation {
                overlapped,
                slot,
                file: handle,
                end: None,
            });
        }
        if call(handle, self.buffers[slot].as_mut_ptr(), operation.cast()) {
            self.under_way += 1;
            return Ok(());
        }
        // SAFETY: the call only reads the thread's last error.
        match unsafe { GetLastError() } {
            ERROR_HANDLE_EOF => {
                self.ended.push((slot, Ok(0)));
                Ok(())
            }
            error => Err(io::Error::from_raw_os_error(error.cast_signed())),
        }
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        if self.under_way > 0 {
            // The system may still write to the buffers and operations, so they are leaked.
            std::mem::forget(std::mem::take(&mut self.buffers));
            return;
        }
        for &operation in &self.operations {
            // SAFETY: the pointer was created by `Box::into_raw`, and no read uses it.
            drop(unsafe { Box::from_raw(operation) });
        }
    }
}

fn result(error: u32, bytes: u32) -> io::Result<usize> {
    match error {
        0 => Ok(bytes as usize),
        ERROR_HANDLE_EOF => Ok(0),
        error => Err(io::Error::from_raw_os_error(error.cast_signed())),
    }
}

/// Queue of reads with completion routines. The system runs the routines while this thread sleeps.
pub(super) struct RoutineQueue {
    operations: Operations,
}

impl RoutineQueue {
    pub(super) fn new(files: Vec<File>, slots: u32) -> Self {
        let operations = Operations::new(files, slots as usize);
        Self { operations }
    }

    /// Collects completions that the routine stored.
    fn collect(&mut self, done: &mut Vec<Completion>) {
        let all = &mut self.operations;
        done.append(&mut all.ended);
        for &operation in &all.operations {
            // SAFETY: the routine runs only in this thread, and only while this thread sleeps.
            if let Some((error, bytes)) = unsafe { (*operation).end.take() } {
                all.under_way -= 1;
                // SAFETY: the routine runs only in this thread, and only while this thread sleeps.
                done.push((unsafe { (*operation).slot }, result(error, bytes)));
            }
        }
    }
}

/// Stores the result of a read. The system calls this function as the completion routine of
/// `ReadFileEx`.
unsafe extern "system" fn routine(error: u32, bytes: u32, overlapped: *mut OVERLAPPED) {
    // SAFETY: the structure is the first field of an `Operation`, and the operation lives until this call.
    unsafe { (*overlapped.cast::<Operation>()).end = Some((error, bytes)) };
}

impl ReadQueue for RoutineQueue {
    fn slots(&self) -> usize {
        self.operations.operations.len()
    }

    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()> {
        self.operations
            .begin(slot, file, offset, |file, buffer, overlapped| {
                // SAFETY: the file is open. The buffer and the structure live until the read
                // completes.
                unsafe { ReadFileEx(file, buffer, CHUNK as u32, overlapped, Some(routine)) != 0 }
            })
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Completion>) -> io::Result<()> {
        self.collect(done);
        while done.len() < least {
            // SAFETY: during this call, the system runs only the function `routine`.
            unsafe { SleepEx(INFINITE, 1) };
            self.collect(done);
        }
        Ok(())
    }

    fn bytes(&mut self, slot: usize, length: usize) -> io::Result<&[u8]> {
        Ok(&self.operations.buffers[slot][..length])
    }
}

impl Drop for RoutineQueue {
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.collect(&mut done);
        // SAFETY: during this call, the system runs only the function `routine`.
        while self.operations.under_way > 0 && unsafe { SleepEx(GRACE, 1) } != 0 {
            self.collect(&mut done);
        }
    }
}

/// Queue of reads with a completion port.
pub(super) struct PortQueue {
    operations: Operations,
    port: Port,
    entries: Vec<OVERLAPPED_ENTRY>,
}

/// Handle of a completion port, closed on drop.
struct Port(HANDLE);

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the port is open and not used afterwards.
        unsafe { CloseHandle(self.0) };
    }
}

impl PortQueue {
    /// Creates a port and binds every file to it.
    pub(super) fn new(files: Vec<File>, slots: u32) -> Result<Self, FilesError> {
        let failed = || FilesError::Queue {
            doing: "binding files to a completion port",
            source: io::Error::last_os_error(),
        };
        // SAFETY: the call creates a new port.
        let port = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) };
        if port.is_null() {
            return Err(failed());
        }
        let port = Port(port);
        for file in &files {
            // SAFETY: file and port are open.
            let bound = unsafe { CreateIoCompletionPort(file.as_raw_handle(), port.0, 0, 0) };
            if bound.is_null() {
                return Err(failed());
            }
        }
        Ok(Self {
            operations: Operations::new(files, slots as usize),
            port,
            entries: vec![OVERLAPPED_ENTRY::default(); slots as usize],
        })
    }

    /// Waits for the first completion and collects all completions that are ready. Returns false on
    /// timeout.
    fn collect(&mut self, milliseconds: u32, done: &mut Vec<Completion>) -> io::Result<bool> {
        let all = &mut self.operations;
        let room = self.entries.len() as u32;
        let mut count = 0;
        // SAFETY: the port is open, and the call gets the number of entries that it may write.
        let worked = unsafe {
            let entries = self.entries.as_mut_ptr();
            GetQueuedCompletionStatusEx(self.port.0, entries, room, &raw mut count, milliseconds, 0)
        };
        if worked == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) {
                Ok(false)
            } else {
                Err(error)
            };
        }
        for entry in &self.entries[..count as usize] {
            let operation = entry.lpOverlapped.cast::<Operation>();
            let mut bytes = 0;
            // SAFETY: only files of this queue are bound to the port. The entry is therefore an
            // operation of this queue, and it is complete.
            let (slot, error) = unsafe {
                let (slot, file) = ((*operation).slot, (*operation).file);
                let worked = GetOverlappedResult(file, operation.cast(), &raw mut bytes, 0) != 0;
                (slot, if worked { 0 } else { GetLastError() })
            };
            all.under_way -= 1;
            done.push((slot, result(error, bytes)));
        }
        Ok(true)
    }
}

impl ReadQueue for PortQueue {
    fn slots(&self) -> usize {
        self.operations.operations.len()
    }

    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()> {
        self.operations
            .begin(slot, file, offset, |file, buffer, overlapped| {
                // SAFETY: the file is open. The buffer and the structure live until the read
                // completes.
                unsafe {
                    let length = CHUNK as u32;
                    // The port also reports reads that complete at once.
                    ReadFile(file, buffer, length, ptr::null_mut(), overlapped) != 0
                        || GetLastError() == ERROR_IO_PENDING
                }
            })
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Completion>) -> io::Result<()> {
        done.append(&mut self.operations.ended);
        while done.len() < least {
            self.collect(INFINITE, done)?;
        }
        Ok(())
    }

    fn bytes(&mut self, slot: usize, length: usize) -> io::Result<&[u8]> {
        Ok(&self.operations.buffers[slot][..length])
    }
}

impl Drop for PortQueue {
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.operations.under_way > 0 && matches!(self.collect(GRACE, &mut done), Ok(true)) {}
    }
}
