//! A ring: operations go in, completions come out.

use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::entry::{BufferInfo, Entry, FileRef, FlushMode, MemoryRef, Table, Transfer};
use crate::in_flight::{Held, InFlight};
use crate::system::{Queue, handle};
use crate::{
    Buffer, Code, Error, Interface, Library, Memory, Operation, Refused, Target, Ticket, Version,
};

/// How long a registration may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a wait takes that may have to be repeated.
const POLL: Duration = Duration::from_millis(100);

/// How long a ring that is dropped waits for what is under way.
const GRACE: Duration = Duration::from_secs(1);

/// An I/O ring.
///
/// Dropping it abandons what is queued, waits up to a second for what was submitted, and leaks the
/// files and memory of what is then still not complete: the kernel does not cancel it, and may use
/// them after the ring is closed (remarks of `CloseIoRing`). [`cancel`](Self::cancel) first where
/// that matters, as with a pipe that nobody writes to.
#[derive(Debug)]
pub struct Ring {
    // First, so that it is closed before anything that the kernel might use is freed.
    queue: Queue,
    in_flight: InFlight,
    /// Those of `in_flight` that were certainly never submitted.
    queued: Vec<u64>,
    files: Vec<Arc<File>>,
    buffers: Vec<Registered>,
    /// The most operations that may be under way: each needs room for its completion.
    limit: usize,
}

#[derive(Debug)]
struct Registered {
    buffer: Buffer,
    is_used: bool,
}

/// An operation's end.
#[derive(Debug)]
pub struct Completion {
    /// What was given when it was queued.
    pub user_data: u64,
    /// The bytes transferred, 0 past the end of a file; or why it failed.
    pub result: Result<usize, Code>,
    /// The memory that was handed over; none for a flush or a cancellation.
    pub memory: Option<Memory>,
}

impl Ring {
    /// A ring of the newest version here, with room for `entries` submissions and twice as many
    /// completions (the system may round up).
    ///
    /// # Errors
    ///
    /// [`Error::NotAvailable`], what the system says, or [`Error::LayoutUnknown`] of the NT calls.
    pub fn new(library: &Library, interface: Interface, entries: u32) -> Result<Self, Error> {
        let newest = library.capabilities(interface)?.newest;
        // A version from the future would be one whose promises nobody has read.
        Self::with_version(library, interface, newest.min(Version::V4), entries)
    }

    /// A ring of a given version, no newer than [`Capabilities::newest`](crate::Capabilities).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
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
            ring.prove_layout()?;
        }
        Ok(ring)
    }

    /// The ring's version.
    pub fn version(&self) -> Version {
        self.queue.version()
    }

    /// Whether it can do `operation`.
    pub fn supports(&self, operation: Operation) -> bool {
        operation.since() <= self.version() && self.queue.supports(operation)
    }

    /// How many operations are queued or submitted and not yet fetched by [`pop`](Self::pop).
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Replaces the registered files and waits for it. [`Target::Registered`] is a place in them.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] while anything is under way, or what the system says; the files before stay.
    pub fn register_files(&mut self, files: Vec<Arc<File>>) -> Result<(), Error> {
        let handles: Vec<usize> = files.iter().map(|file| handle(file)).collect();
        let entry = Entry::RegisterFiles(table(&handles)?);
        match self.register(
            entry,
            Held::Files {
                files,
                _handles: handles,
            },
        )? {
            Held::Files { files, .. } => self.files = files,
            _ => return Err(Error::Corrupt("a completion of something else")),
        }
        Ok(())
    }

    /// Replaces the registered buffers and waits for it. [`Memory::Registered`] is a place in them.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] while anything is under way, or what the system says; the buffers before
    /// stay.
    pub fn register_buffers(&mut self, mut buffers: Vec<Buffer>) -> Result<(), Error> {
        let infos: Result<Vec<_>, Error> = buffers.iter_mut().map(info).collect();
        let infos = infos?;
        let entry = Entry::RegisterBuffers(table(&infos)?);
        match self.register(
            entry,
            Held::Buffers {
                buffers,
                _infos: infos,
            },
        )? {
            Held::Buffers { buffers, .. } => {
                let registered = |buffer| Registered {
                    buffer,
                    is_used: false,
                };
                self.buffers = buffers.into_iter().map(registered).collect();
            }
            _ => return Err(Error::Corrupt("a completion of something else")),
        }
        Ok(())
    }

    /// A registered buffer that no operation uses.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] until the completion of the operation that uses it was fetched, and
    /// [`Error::NotRegistered`].
    pub fn buffer(&mut self, index: u32) -> Result<&mut Buffer, Error> {
        let registered = self.registered_buffer(index)?;
        if registered.is_used {
            return Err(Error::InUse { index });
        }
        Ok(&mut registered.buffer)
    }

    /// Queues a read of `length` bytes at `offset` to the start of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::TooLong`], [`Error::NotRegistered`], [`Error::InUse`], or what the
    /// system says; with the memory.
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

    /// Queues a write of the first `length` bytes of `memory` at `offset`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`Error::Unsupported`] before version 3.
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

    /// Queues a flush of what was written before it and is complete.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::NotRegistered`], [`Error::Unsupported`] before version 3, or what
    /// the system says.
    pub fn flush(
        &mut self,
        target: &Target,
        mode: FlushMode,
        user_data: u64,
    ) -> Result<Ticket, Error> {
        let file = self.file(target)?;
        let target = target.clone();
        let held = Held::Control { target, user_data };
        self.push(Entry::Flush(file, mode), held)
            .map_err(|(error, _)| error)
    }

    /// Queues the cancellation of an operation, which then completes as cancelled, or as if nothing
    /// had been asked if it was too late.
    ///
    /// # Errors
    ///
    /// [`Error::NotInFlight`], [`Error::Full`], or what the system says.
    pub fn cancel(&mut self, ticket: Ticket, user_data: u64) -> Result<Ticket, Error> {
        let target = match self.in_flight.get(ticket.0) {
            Some(Held::Transfer { target, .. } | Held::Control { target, .. }) => target.clone(),
            _ => return Err(Error::NotInFlight),
        };
        let file = self.file(&target)?;
        let held = Held::Control { target, user_data };
        self.push(Entry::Cancel(file, ticket.0), held)
            .map_err(|(error, _)| error)
    }

    /// Hands what is queued to the kernel.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn submit(&mut self) -> Result<(), Error> {
        self.submit_and_wait(0, None)
    }

    /// Hands what is queued to the kernel and waits until `count` operations are complete, or all
    /// if fewer are under way, or the time is over: [`pop`](Self::pop) says what came of it. Fetch
    /// what is complete already before waiting for more. A ring of version 1 may miss that something
    /// completed, and so never waits longer than a tenth of a second at a time.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn submit_and_wait(&mut self, count: u32, limit: Option<Duration>) -> Result<(), Error> {
        let most = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        let limit = match self.version() < Version::V2 {
            true => Some(limit.map_or(POLL, |limit| limit.min(POLL))),
            false => limit,
        };
        // Even if it fails, the kernel may have seen some of them.
        self.queued.clear();
        self.queue.submit(count.min(most), limit)
    }

    /// The next completion; none when there is none yet.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], or what the system says.
    pub fn pop(&mut self) -> Result<Option<Completion>, Error> {
        let Some((held, code, bytes)) = self.pop_held()? else {
            return Ok(None);
        };
        let (user_data, memory) = match held {
            Held::Transfer {
                memory, user_data, ..
            } => (user_data, Some(memory)),
            Held::Control { user_data, .. } => (user_data, None),
            // Registrations are waited for; one that took too long may complete later, and then the
            // kernel has tables of which this ring knows nothing.
            given_up => {
                std::mem::forget(given_up);
                return Err(Error::Corrupt("a registration that had been given up"));
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
        let held = Held::Transfer {
            target,
            memory,
            user_data,
        };
        match self.push(entry, held) {
            Ok(ticket) => {
                self.set_used(reference, true);
                Ok(ticket)
            }
            Err((error, Held::Transfer { memory, .. })) => Err(Refused { error, memory }),
            Err((error, _)) => Err(Refused {
                error,
                memory: Memory::Owned(Buffer::new(0)),
            }),
        }
    }

    /// Queues `entry`, keeping what it holds; gives that back if it is refused.
    fn push(&mut self, entry: Entry, held: Held) -> Result<Ticket, (Error, Held)> {
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
                let held = self.in_flight.remove(token).unwrap_or(Held::Nothing);
                Err((error, held))
            }
        }
    }

    /// Does one of the ring's own operations and waits for it.
    fn register(&mut self, entry: Entry, held: Held) -> Result<Held, Error> {
        if self.in_flight.len() > 0 {
            let in_flight = self.in_flight.len();
            return Err(Error::Busy { in_flight });
        }
        let operation = entry.operation();
        self.push(entry, held).map_err(|(error, _)| error)?;
        let start = Instant::now();
        loop {
            self.submit_and_wait(1, Some(POLL))?;
            if let Some((held, code, _)) = self.pop_held()? {
                let call = "the registration";
                return match code.is_failure() {
                    true => Err(Error::System { call, code }),
                    false => Ok(held),
                };
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::TimedOut(operation, PATIENCE.as_secs()));
            }
        }
    }

    /// The next completion, with what its operation held, which the kernel uses no more.
    fn pop_held(&mut self) -> Result<Option<(Held, Code, usize)>, Error> {
        let Some(entry) = self.queue.pop()? else {
            return Ok(None);
        };
        let Some(held) = self.in_flight.remove(entry.token) else {
            return Err(Error::Corrupt("an operation that is not under way"));
        };
        let mut bytes = usize::try_from(entry.information).unwrap_or(usize::MAX);
        if let Held::Transfer { memory, .. } = &held {
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

    /// Proves that the NT calls' structures are where they are thought to be: an entry that does
    /// nothing must come back with its token, and only then is a read tried, which must give what
    /// an ordinary one gives.
    fn prove_layout(&mut self) -> Result<(), Error> {
        const LENGTH: u32 = 512;
        let version = self.version();
        let unknown = |why| Error::LayoutUnknown { version, why };
        self.register(Entry::Nop, Held::Nothing)
            .map_err(|_| unknown("an entry that does nothing did not come back"))?;

        let file = Arc::new(
            std::env::current_exe()
                .and_then(File::open)
                .map_err(Error::Proof)?,
        );
        let mut expected = vec![0; LENGTH as usize];
        std::io::Read::read_exact(&mut &*file, &mut expected).map_err(Error::Proof)?;
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
                return match is_equal {
                    true => Ok(()),
                    false => Err(unknown("a read did not give what an ordinary one gives")),
                };
            }
            if start.elapsed() > PATIENCE {
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
        while self.in_flight.len() > self.queued.len() && start.elapsed() < GRACE {
            // Fetching submits nothing, as waiting in the kernel would.
            match self.pop_held() {
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
        // The kernel has not seen these, and will not: the queue is closed before they are freed.
        self.queue.close();
        drop(abandoned);
    }
}

/// An array as the system is told of it.
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
