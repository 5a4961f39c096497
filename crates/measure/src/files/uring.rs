//! Queue of reads through `io_uring`. Unsafe code is allowed because the kernel gets addresses. The code is
//! safe because the buffers live until every read into them completes. Dropping the queue waits for its
//! reads.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use ioring::Buffer;

use super::drive::{Completion, ReadQueue};
use super::{CHUNK, FilesError, UringMode};

/// Time in milliseconds that the kernel thread polls for submissions before it sleeps.
const POLL_IDLE: u32 = 100;

pub(super) struct UringQueue {
    ring: IoUring,
    mode: UringMode,
    /// Open files. If files are registered, the index in this list is also the registered index.
    files: Vec<File>,
    buffers: Vec<Buffer>,
    under_way: usize,
}

impl UringQueue {
    /// Creates a ring with `slots` slots.
    pub(super) fn new(files: Vec<File>, slots: u32, mode: UringMode) -> Result<Self, FilesError> {
        let mut builder = IoUring::builder();
        match mode {
            UringMode::Plain | UringMode::Files | UringMode::Buffers => {}
            UringMode::Deferred => {
                builder.setup_single_issuer().setup_defer_taskrun();
            }
            UringMode::Polled => {
                builder.setup_sqpoll(POLL_IDLE);
            }
        }
        let ring = builder.build(slots).map_err(|error| not_here(&error))?;
        let mut queue = Self {
            ring,
            mode,
            files,
            buffers: (0..slots).map(|_| Buffer::new(CHUNK)).collect(),
            under_way: 0,
        };
        if queue.mode.registers_files() {
            let descriptors: Vec<_> = queue.files.iter().map(AsRawFd::as_raw_fd).collect();
            let registered = queue.ring.submitter().register_files(&descriptors);
            registered.map_err(|error| refused("registering files", &error))?;
        }
        if queue.mode.registers_buffers() {
            let vectors: Vec<_> = queue.buffers.iter_mut().map(vector).collect();
            // SAFETY: the ring is closed before the buffers are freed, because the field `buffers`
            // is dropped after the field `ring`.
            let registered = unsafe { queue.ring.submitter().register_buffers(&vectors) };
            registered.map_err(|error| refused("registering buffers", &error))?;
        }
        Ok(queue)
    }

    fn entry(&mut self, slot: usize, file: usize, offset: u64) -> squeue::Entry {
        let buffer = &mut self.buffers[slot];
        let (address, length) = (buffer.as_mut_ptr(), CHUNK as u32);
        let fixed_buffer = self.mode.registers_buffers();
        let fixed_file = types::Fixed(file as u32);
        let descriptor = types::Fd(self.files[file].as_raw_fd());
        let entry = match (self.mode.registers_files(), fixed_buffer) {
            (false, _) => opcode::Read::new(descriptor, address, length)
                .offset(offset)
                .build(),
            (true, false) => opcode::Read::new(fixed_file, address, length)
                .offset(offset)
                .build(),
            (true, true) => opcode::ReadFixed::new(fixed_file, address, length, slot as u16)
                .offset(offset)
                .build(),
        };
        entry.user_data(slot as u64)
    }

    /// Submits the queued reads and waits for at least `least` completions.
    fn submit(&mut self, least: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(least) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl ReadQueue for UringQueue {
    fn slots(&self) -> usize {
        self.buffers.len()
    }

    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()> {
        let entry = self.entry(slot, file, offset);
        loop {
            // SAFETY: the file and the buffer live until the read completes.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                self.under_way += 1;
                return Ok(());
            }
            // The queue is full, because a polling kernel thread takes entries with a delay.
            self.ring.submit()?;
            self.ring.submitter().squeue_wait()?;
        }
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Completion>) -> io::Result<()> {
        while done.len() < least {
            self.submit(least - done.len())?;
            for completion in self.ring.completion() {
                let result = match completion.result() {
                    length @ 0.. => Ok(length as usize),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
                self.under_way -= 1;
                done.push((completion.user_data() as usize, result));
            }
        }
        Ok(())
    }

    fn bytes(&mut self, slot: usize, length: usize) -> io::Result<&[u8]> {
        Ok(&self.buffers[slot][..length])
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.submit(1).is_err() {
                // The kernel may still write to the buffers, so they are leaked.
                mem::forget(mem::take(&mut self.buffers));
                return;
            }
            self.under_way -= self.ring.completion().count();
        }
    }
}

fn vector(buffer: &mut Buffer) -> libc::iovec {
    libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    }
}

/// Returns an error that explains why the system cannot create the ring, with advice.
fn not_here(error: &io::Error) -> FilesError {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => "; the sysctl kernel.io_uring_disabled or a container forbids it",
        Some(libc::ENOSYS) => "; the kernel has no io_uring",
        Some(libc::EINVAL) => "; the kernel is too old for this mode",
        Some(libc::ENOMEM) => "; raise the limit of locked memory (`ulimit -l`)",
        _ => "",
    };
    FilesError::Unavailable(format!("io_uring: {error}{hint}"))
}

fn refused(doing: &str, error: &io::Error) -> FilesError {
    let hint = match error.raw_os_error() {
        Some(libc::ENOMEM) => "; raise the limit of locked memory (`ulimit -l`)",
        Some(libc::EMFILE) => "; raise the limit of open files (`ulimit -n`)",
        _ => "",
    };
    FilesError::Unavailable(format!("{doing}: {error}{hint}"))
}
