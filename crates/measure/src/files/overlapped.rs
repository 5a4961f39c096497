//! Queues of Windows: overlapped reads, whose end is told by a completion routine (`ReadFileEx`) or a
//! completion port. `unsafe` because the system is told addresses: its safety rests on each
//! operation's structure and buffer staying where they are until it is complete, which dropping a
//! queue waits for.

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

use super::drive::{Done, ReadQueue};
use super::{CHUNK, FilesError};

/// How long a queue that is dropped waits for what is under way, in milliseconds.
const GRACE: u32 = 5_000;

/// One read. The system knows it by the address of `overlapped`, which is that of all of it.
#[repr(C)]
struct Operation {
    overlapped: OVERLAPPED,
    slot: usize,
    file: HANDLE,
    /// The system's error, 0 for none, and the bytes that came; none while it is under way.
    end: Option<(u32, u32)>,
}

/// The operations and their memory, a slot each.
struct Operations {
    files: Vec<File>,
    buffers: Vec<Buffer>,
    /// Made by `Box::into_raw`, so that no reference claims what the system writes to.
    operations: Vec<*mut Operation>,
    under_way: usize,
    /// Those that ended while they were begun.
    ended: Vec<Done>,
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

    /// Begins a read by `call`, which says whether the system took it.
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
        // SAFETY: it is nobody else's, since no read of this slot is under way.
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
        // SAFETY: it only reads the thread's last error.
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
            // The system may still write to them.
            std::mem::forget(std::mem::take(&mut self.buffers));
            return;
        }
        for &operation in &self.operations {
            // SAFETY: made by `Box::into_raw`, and no read uses it.
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

/// Reads whose end a routine is told, while this thread sleeps.
pub(super) struct RoutineQueue {
    operations: Operations,
}

impl RoutineQueue {
    pub(super) fn new(files: Vec<File>, slots: u32) -> Self {
        let operations = Operations::new(files, slots as usize);
        Self { operations }
    }

    /// Adds what the routine was told of.
    fn collect(&mut self, done: &mut Vec<Done>) {
        let all = &mut self.operations;
        done.append(&mut all.ended);
        for &operation in &all.operations {
            // SAFETY: the routine runs in this thread only, and only while it sleeps.
            if let Some((error, bytes)) = unsafe { (*operation).end.take() } {
                all.under_way -= 1;
                // SAFETY: as above.
                done.push((unsafe { (*operation).slot }, result(error, bytes)));
            }
        }
    }
}

/// The system calls it with what it was given to `ReadFileEx`.
unsafe extern "system" fn routine(error: u32, bytes: u32, overlapped: *mut OVERLAPPED) {
    // SAFETY: an operation begins with this structure, and stays until this was called.
    unsafe { (*overlapped.cast::<Operation>()).end = Some((error, bytes)) };
}

impl ReadQueue for RoutineQueue {
    fn slots(&self) -> usize {
        self.operations.operations.len()
    }

    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()> {
        self.operations
            .begin(slot, file, offset, |file, buffer, overlapped| {
                // SAFETY: the file is open, and buffer and structure stay until it is complete.
                unsafe { ReadFileEx(file, buffer, CHUNK as u32, overlapped, Some(routine)) != 0 }
            })
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> io::Result<()> {
        self.collect(done);
        while done.len() < least {
            // SAFETY: it runs nothing but the routine above.
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
        // SAFETY: it runs nothing but the routine above.
        while self.operations.under_way > 0 && unsafe { SleepEx(GRACE, 1) } != 0 {
            self.collect(&mut done);
        }
    }
}

/// Reads whose end is fetched from a completion port.
pub(super) struct PortQueue {
    operations: Operations,
    port: Port,
    entries: Vec<OVERLAPPED_ENTRY>,
}

/// A port, closed when it is dropped.
struct Port(HANDLE);

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: it is open, and not used after this.
        unsafe { CloseHandle(self.0) };
    }
}

impl PortQueue {
    /// Binds every file to a port of its own making.
    pub(super) fn new(files: Vec<File>, slots: u32) -> Result<Self, FilesError> {
        let failed = || FilesError::Queue {
            doing: "binding files to a completion port",
            source: io::Error::last_os_error(),
        };
        // SAFETY: it makes a new port.
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

    /// Adds what the port was told of, waiting for the first; false when the time was over.
    fn collect(&mut self, milliseconds: u32, done: &mut Vec<Done>) -> io::Result<bool> {
        let all = &mut self.operations;
        let room = self.entries.len() as u32;
        let mut count = 0;
        // SAFETY: the port is open, and it is told how many entries it may write.
        let worked = unsafe {
            let entries = self.entries.as_mut_ptr();
            GetQueuedCompletionStatusEx(self.port.0, entries, room, &raw mut count, milliseconds, 0)
        };
        if worked == 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) {
                true => Ok(false),
                false => Err(error),
            };
        }
        for entry in &self.entries[..count as usize] {
            let operation = entry.lpOverlapped.cast::<Operation>();
            let mut bytes = 0;
            // SAFETY: only this queue's files are bound to the port, so this is one of its
            // operations, and it is complete.
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
                // SAFETY: the file is open, and buffer and structure stay until it is complete.
                unsafe {
                    let length = CHUNK as u32;
                    // Also what is done at once is told to the port.
                    ReadFile(file, buffer, length, ptr::null_mut(), overlapped) != 0
                        || GetLastError() == ERROR_IO_PENDING
                }
            })
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> io::Result<()> {
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
