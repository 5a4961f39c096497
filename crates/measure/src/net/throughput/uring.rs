//! `io_uring`: many sends per submission, and one multishot receive. The kernel takes the receive
//! buffers from a ring.
//!
//! Unsafe code is allowed because the kernel gets the addresses of the packet to send, of the receive buffers
//! and of the ring that lists them. This use is sound because the memory neither moves nor is freed while an
//! operation may use it. A sender waits for the end of each burst. Dropping a receiver cancels its receive
//! and waits for the end. If such a wait fails, the memory is leaked.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::{BURST, Receive, ReceivedCount, Send, WAIT};

/// Number of receive buffers. The kernel requires a power of two.
const BUFFERS: u16 = 1024;

/// Number of the group to which the receive buffers belong.
const GROUP: u16 = 0;

/// Index of the socket among the registered files.
const SOCKET: Fixed = Fixed(0);

struct Sender {
    ring: IoUring,
    packet: Vec<u8>,
    _socket: UdpSocket,
}

struct Receiver {
    ring: IoUring,
    size: usize,
    /// True if the multishot receive is outstanding.
    is_armed: bool,
    memory: Memory,
    _socket: UdpSocket,
}

/// Receive memory, to which the kernel writes.
struct Memory {
    entries: Box<Entries>,
    /// Buffers of `room` bytes, one after the other.
    buffers: Vec<u8>,
    room: usize,
    tail: u16,
}

/// Ring that lists the receive buffers. It must be aligned to a page.
#[repr(C, align(4096))]
struct Entries([BufRingEntry; BUFFERS as usize]);

/// Creates a ring that one thread uses, with the socket registered.
fn ring_on(socket: &UdpSocket, entries: u32) -> io::Result<IoUring> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(u32::from(BUFFERS) * 2)
        .build(entries)?;
    ring.submitter().register_files(&[socket.as_raw_fd()])?;
    Ok(ring)
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    Ok(Box::new(Sender {
        ring: ring_on(&socket, BURST as u32)?,
        packet: vec![0; size],
        _socket: socket,
    }))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let send = opcode::Send::new(SOCKET, self.packet.as_ptr(), self.packet.len() as u32);
        push(&mut self.ring, &vec![send.build(); BURST])?;
        let (mut outstanding, mut sent, mut failed) = (BURST, 0, None);
        while outstanding > 0 {
            match self.ring.submit_and_wait(outstanding) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    mem::forget(mem::take(&mut self.packet));
                    return Err(error);
                }
            }
            for completion in self.ring.completion() {
                outstanding -= 1;
                match completion.result() {
                    0.. => sent += 1,
                    error => failed = Some(io::Error::from_raw_os_error(-error)),
                }
            }
        }
        match failed {
            Some(error) if sent == 0 => Err(error),
            _ => Ok(sent),
        }
    }
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    let ring = ring_on(&socket, 4)?;
    let memory = Memory::new(size);
    // SAFETY: the entries do not move until the receiver is dropped. The receiver is dropped only after the
    // last receive that uses the entries. The ring is dropped before the entries.
    unsafe {
        ring.submitter().register_buf_ring_with_flags(
            memory.entries.0.as_ptr() as u64,
            BUFFERS,
            GROUP,
            0,
        )?;
    }
    Ok(Box::new(Receiver {
        ring,
        size,
        is_armed: false,
        memory,
        _socket: socket,
    }))
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        if !self.is_armed {
            push(
                &mut self.ring,
                &[opcode::RecvMulti::new(SOCKET, GROUP).build()],
            )?;
            self.is_armed = true;
        }
        self.wait()?;
        let mut count = ReceivedCount::default();
        let mut failed = None;
        for completion in self.ring.completion() {
            self.is_armed &= cqueue::more(completion.flags());
            match completion.result() {
                bytes @ 0.. => count.add(bytes as usize, self.size),
                // All buffers are in use. This function returns the buffers, and the next call submits the
                // receive again.
                error if error == -nix::libc::ENOBUFS => {}
                error => failed = Some(io::Error::from_raw_os_error(-error)),
            }
            if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
                self.memory.give(buffer);
            }
        }
        self.memory.publish();
        match failed {
            Some(error) => Err(error),
            None => Ok(count),
        }
    }
}

impl Receiver {
    /// Submits queued entries and waits for a completion, at most for `WAIT`.
    fn wait(&mut self) -> io::Result<()> {
        let time = Timespec::from(WAIT);
        let args = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(nix::libc::ETIME | nix::libc::EINTR) => Ok(()),
                _ => Err(error),
            },
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let cancel = opcode::AsyncCancel::new(0).build().user_data(1);
        let mut is_asked = push(&mut self.ring, &[cancel]).is_ok();
        for _ in 0..10 {
            is_asked = is_asked && self.wait().is_ok();
            for completion in self.ring.completion() {
                if completion.user_data() == 0 && !cqueue::more(completion.flags()) {
                    self.is_armed = false;
                }
            }
            if !self.is_armed {
                return;
            }
        }
        mem::forget(mem::replace(&mut self.memory, Memory::empty()));
    }
}

impl Memory {
    fn empty() -> Memory {
        // SAFETY: an entry holds three integers, for which zero is valid.
        let entries = unsafe { Box::<Entries>::new_zeroed().assume_init() };
        Memory {
            entries,
            buffers: Vec::new(),
            room: 0,
            tail: 0,
        }
    }

    fn new(size: usize) -> Memory {
        let mut memory = Memory::empty();
        memory.room = size;
        memory.buffers = vec![0; size * usize::from(BUFFERS)];
        for buffer in 0..BUFFERS {
            memory.give(buffer);
        }
        memory.publish();
        memory
    }

    /// Returns a buffer to the kernel. `publish` makes the change visible to the kernel.
    fn give(&mut self, buffer: u16) {
        let start = usize::from(buffer) * self.room;
        let Some(room) = self.buffers.get_mut(start..start + self.room) else {
            return;
        };
        let address = room.as_mut_ptr() as u64;
        let entry = &mut self.entries.0[usize::from(self.tail % BUFFERS)];
        entry.set_addr(address);
        entry.set_len(self.room as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail is a field of the first entry. Setting an entry does not change this
        // field. It is an aligned u16 that the kernel only reads.
        let tail =
            unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.0.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Queues entries. The queue always has room for them.
fn push(ring: &mut IoUring, entries: &[squeue::Entry]) -> io::Result<()> {
    // SAFETY: the targets of the entries stay valid until completion, as described at the top of
    // the file.
    let pushed = unsafe { ring.submission().push_multiple(entries) };
    pushed.map_err(|_| io::Error::other("the submission queue of io_uring is full"))
}
