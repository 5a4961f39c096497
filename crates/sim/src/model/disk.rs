//! Disks: transfers are queued, served by the disk, and completed with an interrupt.

use std::collections::VecDeque;
use std::io::{Seek, Write};

use super::interrupt::{Kind, Then};
use super::thread::State;
use super::{Due, Model, Readier, Source, ThreadId};
use crate::log::DiskAction;
use crate::random::Random;
use crate::scenario::Amount;
use crate::scenario::Importance;
use crate::time::Time;

/// Size in bytes of a kernel stack that is read from the page file.
const STACK_BYTES: u32 = 24 << 10;

/// Priority boost of a thread whose transfer completed (`IO_DISK_INCREMENT`).
const DISK_BOOST: u8 = 1;

/// Purpose of a transfer, and the thread that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Thread(ThreadId),
    /// Read of the kernel stack of a thread that is otherwise ready.
    Stack(ThreadId),
}

/// A transfer that is queued or in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) action: DiskAction,
    pub(crate) bytes: u32,
    /// Index of the file's name; 0 for none.
    pub(crate) file: u32,
    pub(crate) purpose: Purpose,
    /// True for paging I/O: the read of a page fault or a kernel stack.
    pub(crate) paging: bool,
    pub(crate) offset: u64,
    pub(crate) asked: Time,
    pub(crate) id: u64,
}

impl Transfer {
    pub(crate) fn new(
        action: DiskAction,
        bytes: u32,
        file: u32,
        purpose: Purpose,
        paging: bool,
    ) -> Transfer {
        Transfer {
            action,
            bytes,
            file,
            purpose,
            paging,
            offset: 0,
            asked: 0,
            id: 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) number: u32,
    pub(crate) queue_depth: usize,
    pub(crate) service: Amount,
    pub(crate) bytes_per_second: u64,
    pub(crate) isr: Source,
    pub(crate) dpc: Source,
    pub(crate) cpu: usize,
    pub(crate) random: Random,
    pub(crate) waiting: VecDeque<Transfer>,
    pub(crate) served: Vec<(Time, Transfer)>,
    /// Time at which the disk's link becomes free. All served requests share this link for their bytes.
    pub(crate) link_free: Time,
    /// Byte offset on the disk of the next transfer.
    pub(crate) position: u64,
    pub(crate) transfers: u64,
}

impl<W: Write + Seek> Model<W> {
    /// Adds a transfer to a disk's queue, at the request of processor `c`.
    pub(crate) fn transfer(&mut self, c: usize, disk: usize, mut transfer: Transfer) {
        let state = &mut self.disks[disk];
        state.transfers += 1;
        transfer.asked = self.now;
        transfer.offset = state.position;
        transfer.id = (disk as u64) << 30 | state.transfers;
        state.position += u64::from(transfer.bytes);
        state.waiting.push_back(transfer);
        self.log_disk_init(c, disk, &transfer);
        self.serve(disk);
    }

    /// Starts as many transfers as the disk can serve in parallel.
    fn serve(&mut self, disk: usize) {
        let state = &mut self.disks[disk];
        while state.served.len() < state.queue_depth
            && let Some(transfer) = state.waiting.pop_front()
        {
            let bytes = u128::from(transfer.bytes);
            let moving = bytes * 1_000_000_000 / u128::from(state.bytes_per_second.max(1));
            let service = self.base.ticks(state.service.sample(&mut state.random).0);
            let free = (self.now + service).max(state.link_free);
            let moved = free.saturating_add(self.base.ticks(moving as u64));
            state.link_free = moved;
            let done = moved.max(self.now + 1);
            state.served.push((done, transfer));
            self.agenda.push(done, Due::DiskDone(disk as u16));
        }
    }

    /// Completes a transfer: takes it from the disk and raises the controller's interrupt.
    pub(crate) fn disk_ready(&mut self, disk: usize) {
        let now = self.now;
        let state = &mut self.disks[disk];
        let Some(at) = state.served.iter().position(|(done, _)| *done <= now) else {
            return;
        };
        let (_, transfer) = state.served.remove(at);
        let kind = Kind::MessageIsr(0xA0 + disk as u16 % 16, 0);
        let then = Then::DiskDpc(disk, transfer);
        let work = state.isr.work(kind, self.base, &mut state.random, then);
        let cpu = state.cpu;
        self.interrupt(cpu, work);
        self.serve(disk);
    }

    pub(crate) fn queue_disk_dpc(&mut self, c: usize, disk: usize, transfer: Transfer) {
        let state = &mut self.disks[disk];
        let then = Then::DiskDone(disk, transfer);
        let dpc = state
            .dpc
            .work(Kind::Dpc, self.base, &mut state.random, then);
        self.queue_dpc(c, c, dpc, Importance::Medium);
    }

    pub(crate) fn disk_done(&mut self, c: usize, disk: usize, transfer: Transfer, by: Readier) {
        self.log_disk(c, disk, &transfer);
        self.truth_disk(disk, &transfer);
        match transfer.purpose {
            Purpose::Thread(t) => self.end_wait(t, DISK_BOOST, by),
            Purpose::Stack(t) => {
                if self.threads[t].state == State::Transition {
                    self.place(t, false, c);
                }
            }
        }
    }

    /// Starts to read the kernel stack of a ready thread. The stack must be in memory before the thread can
    /// run.
    pub(crate) fn read_stack(&mut self, c: usize, t: ThreadId) {
        if self.disks.is_empty() {
            return self.place(t, false, c);
        }
        let transfer = Transfer::new(
            DiskAction::Read,
            STACK_BYTES,
            self.page_file,
            Purpose::Stack(t),
            true,
        );
        self.transfer(c, 0, transfer);
    }
}
