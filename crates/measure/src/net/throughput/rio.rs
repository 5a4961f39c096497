//! Registered I/O (RIO, Windows 8): sends and receives that are put into queues which program and
//! system share, of memory that was registered once, and executed many at a time.
//!
//! This file has unsafe code, because Windows is given addresses of memory, and functions come from it
//! as pointers. What makes it sound: every request is about a slot of one piece of memory, which lives
//! on the heap, is as long as it was registered, and is not freed while a request may use it. A slot has one
//! request at a time. Whoever drops a queue closes its socket, which ends what is outstanding, and waits
//! for these ends; should they not come, the memory is leaked. Nothing here is shared by threads.
//!
//! What is known of RIO is from Microsoft's documentation of `mswsock.h`.
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

use super::{BURST, Receive, Send, Taken, WAIT};
use functions::{Functions, Request};

/// The sockets that it takes.
pub(super) const SOCKET: Type = Type::DGRAM.registered_io();

// Of mswsockdef.h.
const INVALID_BUFFER: RIO_BUFFERID = 0xFFFF_FFFF_u32 as RIO_BUFFERID;
const INVALID_CQ: RIO_CQ = 0;
const INVALID_RQ: RIO_RQ = 0;

/// A socket with its two queues, and memory for [`BURST`] requests.
struct Queue {
    functions: Functions,
    /// None once it was closed.
    socket: Option<UdpSocket>,
    requests: RIO_RQ,
    completions: RIO_CQ,
    /// Tells that there are completions, once that was asked for.
    event: ManuallyDrop<OwnedHandle>,
    /// Whether it was asked for and not told yet.
    is_awaited: bool,
    /// [`BURST`] slots of `size` bytes each.
    memory: Vec<u8>,
    buffer: RIO_BUFFERID,
    size: usize,
    /// Which slots have a request outstanding.
    outstanding: [bool; BURST],
}

/// What ended: which slot, and how many bytes or why not.
type Ended = (usize, io::Result<u32>);

impl Queue {
    fn new(socket: UdpSocket, functions: Functions, size: usize) -> io::Result<Queue> {
        let handle = socket.as_raw_socket() as usize;
        // Dropping it while it is made closes and frees what there is: what is invalid is ignored.
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
        // SAFETY: the memory is as long, and stays where it is until it is deregistered.
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
        // Both directions use the one completion queue, so there is room for both.
        let burst = BURST as u32;
        // SAFETY: the structure outlives the call, and the event the queue.
        queue.completions =
            unsafe { (functions.create_completion_queue)(2 * burst, &notification) };
        if queue.completions == INVALID_CQ {
            return Err(io::Error::last_os_error());
        }
        let completions = queue.completions;
        // SAFETY: socket and completion queue are open. A request is about one buffer.
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

    /// Puts a request about a slot into the queue, where it waits for [`Queue::commit`].
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
        // SAFETY: the place is within the registered memory, whose length fits, no other request uses
        // it, and it stays until this one has ended.
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

    /// Has all requests of this kind executed that were put into the queue.
    fn commit(&mut self, request: Request) -> io::Result<()> {
        // SAFETY: this flag is given without any memory.
        match unsafe { request(self.requests, null(), 0, RIO_MSG_COMMIT_ONLY, null()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Waits for ends, but not for long.
    fn ended(&mut self) -> io::Result<Vec<Ended>> {
        let mut ended = self.dequeue()?;
        if ended.is_empty() && self.wait()? {
            ended = self.dequeue()?;
        }
        Ok(ended)
    }

    /// The ends that there are.
    fn dequeue(&mut self) -> io::Result<Vec<Ended>> {
        let mut results = [RIORESULT::default(); BURST];
        // SAFETY: there is room for as many results as the call is told.
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

    /// Waits until there are ends, but not for long. Gives whether there are.
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
        // This ends the requests; the request queue goes with it.
        drop(self.socket.take());
        for _ in 0..10 {
            if self.is_idle() || self.ended().is_err() {
                break;
            }
        }
        if !self.is_idle() {
            // Then the registration stays, too: to end it now "is considered a serious error"; and the event,
            // which the completion queue knows.
            mem::forget(mem::take(&mut self.memory));
            return;
        }
        // SAFETY: no request is outstanding, and nothing of this is used again. What is invalid is ignored.
        unsafe {
            (self.functions.close_completion_queue)(self.completions);
            (self.functions.deregister_buffer)(self.buffer);
            ManuallyDrop::drop(&mut self.event);
        }
    }
}

/// An event that stays set until it is reset, as the system does before it tells of completions.
fn event() -> io::Result<OwnedHandle> {
    // SAFETY: no attributes and no name.
    let handle = unsafe { CreateEventW(null(), 1, 0, null()) };
    match handle.is_null() {
        true => Err(io::Error::last_os_error()),
        // SAFETY: it was just made, and nobody else has it.
        false => Ok(unsafe { OwnedHandle::from_raw_handle(handle) }),
    }
}

struct Sender(Queue);

struct Receiver(Queue);

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    let functions = Functions::of(&socket)?;
    Ok(Box::new(Sender(Queue::new(socket, functions, size)?)))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    let functions = Functions::of(&socket)?;
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
        // What does not end in a second is left to whoever drops this.
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
    /// Asks for packets with every slot.
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
    fn take(&mut self) -> io::Result<Taken> {
        let Receiver(queue) = self;
        let receive = queue.functions.receive;
        let mut taken = Taken::default();
        let ended = queue.ended()?;
        for (slot, outcome) in &ended {
            // What failed tells of a packet, not of the socket: that it did not fit, or found nobody.
            if let Ok(bytes @ 1..) = outcome {
                taken.add(*bytes as usize, queue.size);
            }
            queue.put(*slot, receive)?;
        }
        if !ended.is_empty() {
            queue.commit(receive)?;
        }
        Ok(taken)
    }
}
