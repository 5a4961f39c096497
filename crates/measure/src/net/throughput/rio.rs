//! Registered I/O (RIO, since Windows 8). The program puts sends and receives into queues that it shares with
//! the system. The system executes them in batches. The memory of the packets is registered once.
//!
//! Unsafe code is allowed because Windows gets addresses, and because its functions are called through
//! pointers. This use is sound for these reasons. Every request uses a slot of one heap allocation, which has
//! the registered length and is not freed while a request may use it. A slot has one request at a time.
//! Dropping a queue closes its socket, which ends outstanding requests, and waits for them. If the requests
//! do not end, the memory is leaked. Threads do not share any of this memory.
//!
//! Source: Microsoft's documentation of `mswsock.h`.
#![allow(unsafe_code)]

mod functions;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use std::io;
use std::mem::{self, ManuallyDrop};
use std::net::UdpSocket;
use std::os::windows::io::{AsRawHandle, AsRawSocket, FromRawHandle, OwnedHandle};
use std::ptr::{null, without_provenance};

use socket2::Type;
use windows_sys::Win32::Foundation::{WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::Networking::WinSock::{
    RIO_BUF, RIO_BUFFERID, RIO_CORRUPT_CQ, RIO_CQ, RIO_EVENT_COMPLETION, RIO_MSG_COMMIT_ONLY,
    RIO_MSG_DEFER, RIO_NOTIFICATION_COMPLETION, RIO_NOTIFICATION_COMPLETION_0,
    RIO_NOTIFICATION_COMPLETION_0_0, RIO_RQ, RIORESULT,
};
use windows_sys::Win32::System::Threading::{CreateEventW, WaitForSingleObject};

use super::{BURST, Receive, ReceivedCount, Send, WAIT};
use functions::{Functions, Request};

/// Type of the sockets of this method.
pub(super) const SOCKET: Type = Type::DGRAM.registered_io();

// The values come from mswsockdef.h.
const INVALID_BUFFER: RIO_BUFFERID = 0xFFFF_FFFF_u32 as RIO_BUFFERID;
const INVALID_CQ: RIO_CQ = 0;
const INVALID_RQ: RIO_RQ = 0;

/// A socket with its two queues, and memory for [`BURST`] requests.
struct Queue {
    functions: Functions,
    /// Socket; `None` after it was closed.
    socket: Option<UdpSocket>,
    requests: RIO_RQ,
    completions: RIO_CQ,
    /// Event that signals completions after a notification was requested.
    event: ManuallyDrop<OwnedHandle>,
    /// True if a notification was requested and has not arrived.
    is_awaited: bool,
    /// Memory of [`BURST`] slots with `size` bytes each.
    memory: Vec<u8>,
    buffer: RIO_BUFFERID,
    size: usize,
    /// True for each slot that has an outstanding request.
    outstanding: [bool; BURST],
}

/// Completed slot, with the number of bytes or the error of its request.
type Completion = (usize, io::Result<u32>);

impl Queue {
    fn new(socket: UdpSocket, functions: Functions, size: usize) -> io::Result<Queue> {
        let handle = socket.as_raw_socket() as usize;
        // If an error occurs below, the incomplete queue is dropped. The drop releases all resources that
        // were already created. The system ignores invalid handles.
        let mut queue = Queue {
            functions,
            socket: Some(socket),
            requests: INVALID_RQ,
            completions: INVALID_CQ,
            event: ManuallyDrop::new(event()?),
            is_awaited: false,
            memory: vec![0; size * BURST],
            buffer: INVALID_BUFFER,
            size,
            outstanding: [false; BURST],
        };
        let length = u32::try_from(queue.memory.len()).map_err(io::Error::other)?;
        // SAFETY: the memory has this length and does not move until it is deregistered.
        queue.buffer = unsafe { (functions.register_buffer)(queue.memory.as_mut_ptr(), length) };
        if queue.buffer == INVALID_BUFFER {
            return Err(io::Error::last_os_error());
        }
        let notification = RIO_NOTIFICATION_COMPLETION {
            Type: RIO_EVENT_COMPLETION,
            Anonymous: RIO_NOTIFICATION_COMPLETION_0 {
                Event: RIO_NOTIFICATION_COMPLETION_0_0 {
                    EventHandle: queue.event.as_raw_handle(),
                    NotifyReset: 1,
                },
            },
        };
        // Sends and receives share the completion queue, so it needs room for both.
        let burst = BURST as u32;
        // SAFETY: the structure outlives the call, and the event outlives the queue.
        queue.completions =
            unsafe { (functions.create_completion_queue)(2 * burst, &notification) };
        if queue.completions == INVALID_CQ {
            return Err(io::Error::last_os_error());
        }
        let completions = queue.completions;
        // SAFETY: the socket and the completion queue are open. A request uses one buffer.
        queue.requests = unsafe {
            (functions.create_request_queue)(
                handle,
                burst,
                1,
                burst,
                1,
                completions,
                completions,
                null(),
            )
        };
        match queue.requests {
            INVALID_RQ => Err(io::Error::last_os_error()),
            _ => Ok(queue),
        }
    }

    /// Queues a request for a slot. [`Queue::commit`] submits it.
    fn put(&mut self, slot: usize, request: Request) -> io::Result<()> {
        match self.outstanding.get_mut(slot) {
            Some(is_outstanding) if !*is_outstanding => *is_outstanding = true,
            _ => return Err(io::Error::other(format!("slot {slot} cannot be used"))),
        }
        let place = RIO_BUF {
            BufferId: self.buffer,
            Offset: (slot * self.size) as u32,
            Length: self.size as u32,
        };
        // SAFETY: the range is in the registered memory and no other request uses the range. The range stays
        // valid until this request ends.
        let is_taken = unsafe {
            request(
                self.requests,
                &place,
                1,
                RIO_MSG_DEFER,
                without_provenance(slot),
            ) != 0
        };
        if !is_taken {
            let error = io::Error::last_os_error();
            self.outstanding[slot] = false;
            return Err(error);
        }
        Ok(())
    }

    /// Submits all queued requests of the kind of `request` (sends or receives).
    fn commit(&mut self, request: Request) -> io::Result<()> {
        // SAFETY: with this flag the call uses no memory.
        match unsafe { request(self.requests, null(), 0, RIO_MSG_COMMIT_ONLY, null()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Waits for completions, at most for `WAIT`, and returns them.
    fn ended(&mut self) -> io::Result<Vec<Completion>> {
        let mut ended = self.dequeue()?;
        if ended.is_empty() && self.wait()? {
            ended = self.dequeue()?;
        }
        Ok(ended)
    }

    /// Returns available completions.
    fn dequeue(&mut self) -> io::Result<Vec<Completion>> {
        let mut results = [RIORESULT::default(); BURST];
        // SAFETY: there is room for the passed number of results.
        let count = unsafe {
            (self.functions.dequeue)(self.completions, results.as_mut_ptr(), BURST as u32)
        };
        if count == RIO_CORRUPT_CQ {
            return Err(io::Error::other("the completion queue is corrupt"));
        }
        let mut ended = Vec::with_capacity(count as usize);
        for result in results.iter().take(count as usize) {
            let slot = usize::try_from(result.RequestContext).unwrap_or(usize::MAX);
            match self.outstanding.get_mut(slot) {
                Some(is_outstanding) if *is_outstanding => *is_outstanding = false,
                _ => return Err(io::Error::other("a request ended that was not outstanding")),
            }
            let outcome = match result.Status {
                0 => Ok(result.BytesTransferred),
                status => Err(io::Error::from_raw_os_error(status)),
            };
            ended.push((slot, outcome));
        }
        Ok(ended)
    }

    /// Waits for completions, at most for `WAIT`. Returns true if there are completions.
    fn wait(&mut self) -> io::Result<bool> {
        if !self.is_awaited {
            // SAFETY: the completion queue is open.
            match unsafe { (self.functions.notify)(self.completions) } {
                0 => self.is_awaited = true,
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        let event = self.event.as_raw_handle();
        // SAFETY: the event is open.
        match unsafe { WaitForSingleObject(event, WAIT.as_millis() as u32) } {
            WAIT_OBJECT_0 => {
                self.is_awaited = false;
                Ok(true)
            }
            WAIT_TIMEOUT => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn is_idle(&self) -> bool {
        !self.outstanding.contains(&true)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Closing the socket ends its requests and its request queue.
        drop(self.socket.take());
        for _ in 0..10 {
            if self.is_idle() || self.ended().is_err() {
                break;
            }
        }
        if !self.is_idle() {
            // The registration of the memory also stays, because ending the registration now "is considered a
            // serious error". The event stays, because the completion queue refers to it.
            mem::forget(mem::take(&mut self.memory));
            return;
        }
        // SAFETY: no request is outstanding. The queue, the buffer and the event are not used
        // afterwards. The system ignores invalid handles.
        unsafe {
            (self.functions.close_completion_queue)(self.completions);
            (self.functions.deregister_buffer)(self.buffer);
            ManuallyDrop::drop(&mut self.event);
        }
    }
}

/// Creates a manual-reset event. The system resets the event when a notification is requested.
fn event() -> io::Result<OwnedHandle> {
    // SAFETY: the call gets neither attributes nor a name.
    let handle = unsafe { CreateEventW(null(), 1, 0, null()) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just created and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

struct Sender(Queue);

struct Receiver(Queue);

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    let functions = Functions::query(&socket)?;
    Ok(Box::new(Sender(Queue::new(socket, functions, size)?)))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    let functions = Functions::query(&socket)?;
    Ok(Box::new(Receiver::new(Queue::new(
        socket, functions, size,
    )?)?))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let Sender(queue) = self;
        let send = queue.functions.send;
        for slot in 0..BURST {
            queue.put(slot, send)?;
        }
        queue.commit(send)?;
        let (mut sent, mut failed) = (0, None);
        // If requests do not end within a second, `drop` handles them.
        for _ in 0..BURST + 10 {
            for (_, outcome) in queue.ended()? {
                match outcome {
                    Ok(_) => sent += 1,
                    Err(error) => failed = Some(error),
                }
            }
            if queue.is_idle() {
                return match failed {
                    Some(error) if sent == 0 => Err(error),
                    _ => Ok(sent),
                };
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Receiver {
    /// Queues a receive for every slot.
    fn new(mut queue: Queue) -> io::Result<Receiver> {
        let receive = queue.functions.receive;
        for slot in 0..BURST {
            queue.put(slot, receive)?;
        }
        queue.commit(receive)?;
        Ok(Receiver(queue))
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let Receiver(queue) = self;
        let receive = queue.functions.receive;
        let mut count = ReceivedCount::default();
        let ended = queue.ended()?;
        for (slot, outcome) in &ended {
            // A failed receive concerns one packet, not the socket. Either the packet did not fit, or an
            // earlier send found no receiver.
            if let Ok(bytes @ 1..) = outcome {
                count.add(*bytes as usize, queue.size);
            }
            queue.put(*slot, receive)?;
        }
        if !ended.is_empty() {
            queue.commit(receive)?;
        }
        Ok(count)
    }
}
