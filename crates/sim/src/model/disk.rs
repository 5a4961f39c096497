//! Disks: transfers queue, are served, and end with an interrupt.

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

/// Bytes of a kernel stack that is read back.
const STACK_BYTES: u32 = 24 << 10;

/// Boost of a thread whose transfer is done (`IO_DISK_INCREMENT`).
const DISK_BOOST: u8 = 1;

/// Who waits for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Thread(ThreadId),
    /// A ready thread's kernel stack.
    Stack(ThreadId),
}

/// A transfer, queued or under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) action: DiskAction,
    pub(crate) bytes: u32,
    /// File, by the index of its name; 0 is none.
    pub(crate) file: u32,
    pub(crate) purpose: Purpose,
    /// It brings in memory.
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

/// A disk.
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
    /// When the bytes of all transfers served have moved: they share the disk's link.
    pub(crate) link_free: Time,
    /// Where on the disk the next transfer is.
    pub(crate) position: u64,
    pub(crate) transfers: u64,
}

impl<W: Write + Seek> Model<W> {
    /// Asks a disk for a transfer, from processor `c`.
    pub(crate) fn transfer(&mut self, c: usize, disk: usize, mut transfer: Transfer) {
        let state = &mut self.disks[disk];
        state.transfers += 1;
        transfer.asked = self.now;
        transfer.offset = state.position;
        transfer.id = (disk as u64) << 40 | state.transfers;
        state.position += u64::from(transfer.bytes);
        state.waiting.push_back(transfer);
        self.log_disk_init(c, disk, &transfer);
        self.serve(disk);
    }

    /// Serves as many transfers as the disk can at a time.
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

    /// A transfer is done: the controller interrupts.
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

    /// A ready thread's kernel stack must be read before it can run.
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
