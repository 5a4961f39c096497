//! An I/O ring: a queue of submissions and a queue of completions.

use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::entry::{BufferInfo, Entry, FileRef, FlushMode, MemoryRef, Table, Transfer};
use crate::in_flight::{InFlight, Resources};
use crate::system::{Queue, handle};
use crate::{
    Buffer, Code, Error, Interface, Library, Memory, Operation, Refused, Target, Ticket, Version,
};

/// Maximum time that a registration may take.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time of one wait in the kernel. It applies to waits for operations of the ring itself, such as
/// registrations, and to all waits of a ring of version 1.
const POLL: Duration = Duration::from_millis(100);

/// Maximum time that a dropped ring waits for operations in flight.
const DROP_TIMEOUT: Duration = Duration::from_secs(1);

/// An I/O ring.
///
/// Dropping the ring discards queued operations and waits up to 1 s for submitted operations. If operations
/// are still in flight after this time, the ring leaks their files and memory. The kernel does not cancel
/// these operations. It may use their files and memory even after the ring is closed (remarks of
/// `CloseIoRing`). To avoid the leak, for example with a pipe that may never be written to, call
/// [`cancel`](Self::cancel) first.
#[derive(Debug)]
pub struct Ring {
    // This field must be the first field, so that a drop closes the queue before it frees the resources.
    queue: Queue,
    in_flight: InFlight,
    /// Tokens of operations that were queued after the last submission. The kernel has certainly
    /// not seen them.
    queued: Vec<u64>,
    files: Vec<Arc<File>>,
    buffers: Vec<Registered>,
    /// Maximum number of operations in flight. The limit is the size of the completion queue, because each
    /// operation needs room for its completion.
    limit: usize,
}

#[derive(Debug)]
struct Registered {
    buffer: Buffer,
    is_used: bool,
}

/// Result of an operation.
#[derive(Debug)]
pub struct Completion {
    /// User data passed with the operation.
    pub user_data: u64,
    /// Number of transferred bytes, or the error. If an operation starts past the end of its file, the result
    /// is 0 bytes, not an error.
    pub result: Result<usize, Code>,
    /// Memory that was passed with the operation; `None` for flushes and cancellations.
    pub memory: Option<Memory>,
}

impl Ring {
    /// Creates a ring with room for `entries` submissions and twice as many completions. The system may round
    /// these two numbers up. The ring has the newest version that the system supports, but at most version 4.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAvailable`] or the error of the system. With the NT interface, it can also return
    /// [`Error::LayoutUnknown`].
    pub fn new(library: &Library, interface: Interface, entries: u32) -> Result<Self, Error> {
        let newest = library.capabilities(interface)?.newest;
        // Versions newer than 4 may behave differently.
        Self::with_version(library, interface, newest.min(Version::V4), entries)
    }

    /// Creates a ring of the given version. The version must not exceed
    /// [`Capabilities::newest`](crate::Capabilities).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new).
    pub fn with_version(
        library: &Library,
        interface: Interface,
        version: Version,
        entries: u32,
    ) -> Result<Self, Error> {
        let queue = Queue::new(&library.functions, interface, version, entries)?;
        let limit = queue.completion_entries() as usize;
        let mut ring = Self {
            queue,
            in_flight: InFlight::default(),
            queued: Vec::new(),
            files: Vec::new(),
            buffers: Vec::new(),
            limit,
        };
        if interface == Interface::Nt {
            ring.verify_layout()?;
        }
        Ok(ring)
    }

    /// Returns the version of the ring.
    pub fn version(&self) -> Version {
        self.queue.version()
    }

    /// Returns true if the ring supports an operation.
    pub fn supports(&self, operation: Operation) -> bool {
        operation.since() <= self.version() && self.queue.supports(operation)
    }

    /// Returns the number of operations that are queued or submitted, and not yet returned by
    /// [`pop`](Self::pop).
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Replaces the registered files and waits for completion. The value in [`Target::Registered`] is an
    /// index into `files`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if operations are in flight, or the error of the system. After an
    /// error, the earlier files stay registered.
    pub fn register_files(&mut self, files: Vec<Arc<File>>) -> Result<(), Error> {
        let handles: Vec<usize> = files.iter().map(|file| handle(file)).collect();
        let entry = Entry::RegisterFiles(table(&handles)?);
        match self.register(
            entry,
            Resources::Files {
                files,
                _handles: handles,
            },
        )? {
            Resources::Files { files, .. } => self.files = files,
            _ => return Err(Error::Corrupt("a completion of another operation")),
        }
        Ok(())
    }

    /// Replaces the registered buffers and waits for completion. The value in [`Memory::Registered`] is an
    /// index into `buffers`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if operations are in flight, or the error of the system. After an
    /// error, the earlier buffers stay registered.
    pub fn register_buffers(&mut self, mut buffers: Vec<Buffer>) -> Result<(), Error> {
        let infos: Result<Vec<_>, Error> = buffers.iter_mut().map(info).collect();
        let infos = infos?;
        let entry = Entry::RegisterBuffers(table(&infos)?);
        match self.register(
            entry,
            Resources::Buffers {
                buffers,
                _infos: infos,
            },
        )? {
            Resources::Buffers { buffers, .. } => {
                let registered = |buffer| Registered {
                    buffer,
                    is_used: false,
                };
                self.buffers = buffers.into_iter().map(registered).collect();
            }
            _ => return Err(Error::Corrupt("a completion of another operation")),
        }
        Ok(())
    }

    /// Returns a registered buffer that no operation uses.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InUse`] if an operation uses the buffer and the completion of the operation was not
    /// yet fetched. Returns [`Error::NotRegistered`] if the ring has no buffer with this index.
    pub fn buffer(&mut self, index: u32) -> Result<&mut Buffer, Error> {
        let registered = self.registered_buffer(index)?;
        if registered.is_used {
            return Err(Error::InUse { index });
        }
        Ok(&mut registered.buffer)
    }

    /// Queues a read of `length` bytes from the file offset `offset` into the start of `memory`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Full`], [`Error::TooLong`], [`Error::NotRegistered`], [`Error::InUse`] or
    /// the error of the system. The error also returns the memory to the caller.
    pub fn read(
        &mut self,
        target: &Target,
        memory: Memory,
        length: u32,
        offset: u64,
        user_data: u64,
    ) -> Result<Ticket, Refused> {
        self.transfer(Entry::Read, target, memory, (length, offset), user_data)
    }

    /// Queues a write of the first `length` bytes of `memory` to the file offset `offset`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read), and [`Error::Unsupported`] if the ring's version
    /// is below 3.
    pub fn write(
        &mut self,
        target: &Target,
        memory: Memory,
        length: u32,
        offset: u64,
        user_data: u64,
    ) -> Result<Ticket, Refused> {
        self.transfer(Entry::Write, target, memory, (length, offset), user_data)
    }

    /// Queues a flush of all writes that completed before the flush starts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Full`], [`Error::NotRegistered`], [`Error::Unsupported`] if the ring's
    /// version is below 3, or the error of the system.
    pub fn flush(
        &mut self,
        target: &Target,
        mode: FlushMode,
        user_data: u64,
    ) -> Result<Ticket, Error> {
        let file = self.file(target)?;
        let target = target.clone();
        let resources = Resources::Control { target, user_data };
        self.push(Entry::Flush(file, mode), resources)
            .map_err(|(error, _)| error)
    }

    /// Queues the cancellation of an operation. If the cancellation comes too late, the operation completes
    /// normally. Otherwise, the cancelled operation completes with a code that means "cancelled".
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotInFlight`], [`Error::Full`] or the error of the system.
    pub fn cancel(&mut self, ticket: Ticket, user_data: u64) -> Result<Ticket, Error> {
        let target = match self.in_flight.get(ticket.0) {
            Some(Resources::Transfer { target, .. } | Resources::Control { target, .. }) => {
                target.clone()
            }
            _ => return Err(Error::NotInFlight),
        };
        let file = self.file(&target)?;
        let resources = Resources::Control { target, user_data };
        self.push(Entry::Cancel(file, ticket.0), resources)
            .map_err(|(error, _)| error)
    }

    /// Submits queued operations to the kernel.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn submit(&mut self) -> Result<(), Error> {
        self.submit_and_wait(0, None)
    }

    /// Submits queued operations and waits. The wait ends when `count` operations have completed, when all
    /// operations in flight have completed, or when the time `limit` is over. Before this call, fetch earlier
    /// completions with [`pop`](Self::pop). If the ring has version 1, the wait is at most 100 ms, because
    /// such a ring can miss a completion.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn submit_and_wait(&mut self, count: u32, limit: Option<Duration>) -> Result<(), Error> {
        let most = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        let limit = if self.version() < Version::V2 {
            Some(limit.map_or(POLL, |limit| limit.min(POLL)))
        } else {
            limit
        };
        // The kernel may have seen some of the queued operations even if the call fails.
        self.queued.clear();
        self.queue.submit(count.min(most), limit)
    }

    /// Returns the next completion, if there is one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] or the error of the system.
    pub fn pop(&mut self) -> Result<Option<Completion>, Error> {
        let Some((held, code, bytes)) = self.pop_resources()? else {
            return Ok(None);
        };
        let (user_data, memory) = match held {
            Resources::Transfer {
                memory, user_data, ..
            } => (user_data, Some(memory)),
            Resources::Control { user_data, .. } => (user_data, None),
            // A registration that timed out has completed now. The kernel therefore uses the files or buffers
            // of that registration, but this ring still refers to the previously registered files or buffers.
            given_up => {
                std::mem::forget(given_up);
                return Err(Error::Corrupt(
                    "a completion of a registration that timed out",
                ));
            }
        };
        let result = if code.is_end_of_file() {
            Ok(0)
        } else if code.is_failure() {
            Err(code)
        } else {
            Ok(bytes)
        };
        Ok(Some(Completion {
            user_data,
            result,
            memory,
        }))
    }

    fn transfer(
        &mut self,
        make: fn(Transfer) -> Entry,
        target: &Target,
        mut memory: Memory,
        (length, offset): (u32, u64),
        user_data: u64,
    ) -> Result<Ticket, Refused> {
        let references = self
            .file(target)
            .and_then(|file| Ok((file, self.memory(&mut memory, length)?)));
        let (file, reference) = match references {
            Ok(references) => references,
            Err(error) => return Err(Refused { error, memory }),
        };
        let entry = make(Transfer {
            file,
            memory: reference,
            length,
            offset,
        });
        let target = target.clone();
        let resources = Resources::Transfer {
            target,
            memory,
            user_data,
        };
        match self.push(entry, resources) {
            Ok(ticket) => {
                self.set_used(reference, true);
                Ok(ticket)
            }
            Err((error, Resources::Transfer { memory, .. })) => Err(Refused { error, memory }),
            Err((error, _)) => Err(Refused {
                error,
                memory: Memory::Owned(Buffer::new(0)),
            }),
        }
    }

    /// Queues an entry and stores its resources. If the entry is refused, the error contains the
    /// resources.
    fn push(&mut self, entry: Entry, held: Resources) -> Result<Ticket, (Error, Resources)> {
        let operation = entry.operation();
        if !self.supports(operation) {
            let version = self.version();
            return Err((Error::Unsupported { operation, version }, held));
        }
        if self.in_flight.len() >= self.limit {
            return Err((Error::Full, held));
        }
        let token = self.in_flight.insert(held);
        match self.queue.push(&entry, token) {
            Ok(()) => {
                self.queued.push(token);
                Ok(Ticket(token))
            }
            Err(error) => {
                let error = match error {
                    Error::System { code, .. } if code.is_queue_full() => Error::Full,
                    other => other,
                };
                let resources = self.in_flight.remove(token).unwrap_or(Resources::Nothing);
                Err((error, resources))
            }
        }
    }

    /// Queues an operation that the ring itself needs, and waits for its completion.
    fn register(&mut self, entry: Entry, held: Resources) -> Result<Resources, Error> {
        if self.in_flight.len() > 0 {
            let in_flight = self.in_flight.len();
            return Err(Error::Busy { in_flight });
        }
        let operation = entry.operation();
        self.push(entry, held).map_err(|(error, _)| error)?;
        let start = Instant::now();
        loop {
            self.submit_and_wait(1, Some(POLL))?;
            if let Some((held, code, _)) = self.pop_resources()? {
                let call = "the registration";
                return if code.is_failure() {
                    Err(Error::System { call, code })
                } else {
                    Ok(held)
                };
            }
            if start.elapsed() > REGISTRATION_TIMEOUT {
                return Err(Error::TimedOut(operation, REGISTRATION_TIMEOUT.as_secs()));
            }
        }
    }

    /// Returns the next completion, together with the resources of its operation. The kernel no
    /// longer uses these resources.
    fn pop_resources(&mut self) -> Result<Option<(Resources, Code, usize)>, Error> {
        let Some(entry) = self.queue.pop()? else {
            return Ok(None);
        };
        let Some(held) = self.in_flight.remove(entry.token) else {
            return Err(Error::Corrupt("a completion without an operation"));
        };
        let mut bytes = usize::try_from(entry.information).unwrap_or(usize::MAX);
        if let Resources::Transfer { memory, .. } = &held {
            let capacity = match memory {
                Memory::Owned(buffer) => buffer.len(),
                &Memory::Registered(index) => {
                    self.set_used(MemoryRef::Registered(index), false);
                    self.registered_buffer(index)?.buffer.len()
                }
            };
            bytes = bytes.min(capacity);
        }
        Ok(Some((held, Code(entry.code), bytes)))
    }

    /// Verifies the layout of the NT structures with two operations. First, an entry without effect
    /// must complete with its token. Then, a read through the ring must return the same bytes as an
    /// ordinary read.
    fn verify_layout(&mut self) -> Result<(), Error> {
        const LENGTH: u32 = 512;
        let version = self.version();
        let unknown = |why| Error::LayoutUnknown { version, why };
        self.register(Entry::Nop, Resources::Nothing)
            .map_err(|_| unknown("an entry without effect did not complete"))?;

        let file = Arc::new(
            std::env::current_exe()
                .and_then(File::open)
                .map_err(Error::VerifyLayout)?,
        );
        let mut expected = vec![0; LENGTH as usize];
        std::io::Read::read_exact(&mut &*file, &mut expected).map_err(Error::VerifyLayout)?;
        let target = Target::File(file);
        self.read(
            &target,
            Memory::Owned(Buffer::new(LENGTH as usize)),
            LENGTH,
            0,
            0,
        )?;
        let start = Instant::now();
        loop {
            self.submit_and_wait(1, Some(POLL))?;
            if let Some(done) = self.pop()? {
                let is_equal = matches!(&done.memory, Some(Memory::Owned(buffer))
                    if done.result == Ok(expected.len()) && **buffer == *expected);
                return if is_equal {
                    Ok(())
                } else {
                    Err(unknown("a read returned other bytes than an ordinary read"))
                };
            }
            if start.elapsed() > REGISTRATION_TIMEOUT {
                return Err(unknown("a read did not complete"));
            }
        }
    }

    fn file(&self, target: &Target) -> Result<FileRef, Error> {
        match target {
            Target::File(file) => Ok(FileRef::Raw(handle(file))),
            &Target::Registered(index) if (index as usize) < self.files.len() => {
                Ok(FileRef::Registered(index))
            }
            &Target::Registered(index) => Err(Error::NotRegistered {
                what: "file",
                index,
                count: self.files.len(),
            }),
        }
    }

    fn memory(&mut self, memory: &mut Memory, length: u32) -> Result<MemoryRef, Error> {
        let (reference, capacity) = match memory {
            Memory::Owned(buffer) => (MemoryRef::Raw(buffer.address()), buffer.len()),
            &mut Memory::Registered(index) => {
                (MemoryRef::Registered(index), self.buffer(index)?.len())
            }
        };
        if length as usize > capacity {
            return Err(Error::TooLong { length, capacity });
        }
        Ok(reference)
    }

    fn registered_buffer(&mut self, index: u32) -> Result<&mut Registered, Error> {
        let count = self.buffers.len();
        self.buffers
            .get_mut(index as usize)
            .ok_or(Error::NotRegistered {
                what: "buffer",
                index,
                count,
            })
    }

    fn set_used(&mut self, memory: MemoryRef, is_used: bool) {
        if let MemoryRef::Registered(index) = memory
            && let Ok(registered) = self.registered_buffer(index)
        {
            registered.is_used = is_used;
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let start = Instant::now();
        while self.in_flight.len() > self.queued.len() && start.elapsed() < DROP_TIMEOUT {
            // Waiting in the kernel would also submit the queued operations, but fetching completions does
            // not submit them.
            match self.pop_resources() {
                Ok(Some(_)) => {}
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Err(_) => break,
            }
        }
        let queued = self.queued.drain(..);
        let abandoned: Vec<_> = queued
            .filter_map(|token| self.in_flight.remove(token))
            .collect();
        if self.in_flight.len() > 0 {
            self.in_flight.leak();
            std::mem::forget(std::mem::take(&mut self.buffers));
            std::mem::forget(std::mem::take(&mut self.files));
        }
        // The kernel has not seen the abandoned operations. The queue is closed before their
        // resources are freed.
        self.queue.close();
        drop(abandoned);
    }
}

/// Returns the address and the length of an array, for the system.
fn table<T>(rows: &[T]) -> Result<Table, Error> {
    let count = u32::try_from(rows.len()).map_err(|_| Error::Full)?;
    Ok(Table {
        address: rows.as_ptr().expose_provenance(),
        count,
    })
}

fn info(buffer: &mut Buffer) -> Result<BufferInfo, Error> {
    let capacity = buffer.len();
    let length = u32::try_from(capacity).map_err(|_| Error::TooLong {
        length: u32::MAX,
        capacity,
    })?;
    Ok(BufferInfo {
        address: buffer.address(),
        length,
    })
}
