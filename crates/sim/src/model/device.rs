//! Devices that only interrupt: USB controllers, timer cards, storage that is not modelled.

use std::io::{Seek, Write};

use super::interrupt::{Kind, Then};
use super::{Due, Model, Source};
use crate::random::Random;
use crate::scenario::Amount;
use crate::scenario::Importance;
use crate::time::Time;

/// Times at which an action repeats, such as the interrupts of a device.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) every: Amount,
    /// Number of occurrences, if it is fixed. The time between `from` and `to` is divided into this
    /// number of slots. Each slot contains one occurrence at a random time.
    pub(crate) count: Option<u64>,
    pub(crate) done: u64,
}

impl Pace {
    /// Returns the time of the next occurrence, or `None` after the last one.
    pub(crate) fn next(
        &mut self,
        now: Time,
        ticks: impl Fn(u64) -> Time,
        random: &mut Random,
    ) -> Option<Time> {
        let first = self.done == 0;
        self.done += 1;
        match self.count {
            Some(count) => {
                let slot = self.done - 1;
                let length = u128::from(self.to - self.from);
                let start = |slot: u64| (length * u128::from(slot) / u128::from(count)) as Time;
                (slot < count).then(|| {
                    let width = start(slot + 1) - start(slot);
                    let at = self.from + start(slot) + random.below(width.max(1));
                    at.max(now)
                })
            }
            None => {
                let gap = ticks(self.every.sample(random).0).max(1);
                let next = if first {
                    self.from.max(now) + gap
                } else {
                    now + gap
                };
                (next < self.to).then_some(next)
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) pace: Pace,
    pub(crate) cpus: Vec<usize>,
    pub(crate) line: bool,
    pub(crate) vector: u16,
    pub(crate) isr: Option<Source>,
    pub(crate) dpc: Option<Source>,
    pub(crate) importance: Importance,
    pub(crate) target: Option<usize>,
    pub(crate) threaded: bool,
    pub(crate) timer: bool,
    pub(crate) sets: Option<usize>,
    pub(crate) when: Random,
    pub(crate) isr_random: Random,
    pub(crate) dpc_random: Random,
    pub(crate) turn: usize,
}

impl<W: Write + Seek> Model<W> {
    pub(crate) fn device_next(&mut self, device: usize) {
        let base = self.base;
        let state = &mut self.devices[device];
        let next = state
            .pace
            .next(self.now, |ns| base.ticks(ns), &mut state.when);
        if let Some(mut next) = next {
            if state.timer {
                next = self.clock.next_interrupt(next);
            }
            self.agenda.push(next, Due::Device(device as u16));
        }
    }

    /// Raises a device's interrupt.
    pub(crate) fn device_interrupts(&mut self, device: usize) {
        let state = &mut self.devices[device];
        let c = state.cpus[state.turn % state.cpus.len()];
        state.turn += 1;
        let then = Then::DeviceDpc(device);
        let vector = state.vector;
        let kind = if state.line {
            Kind::LineIsr(vector)
        } else {
            Kind::MessageIsr(vector, 0)
        };
        match &state.isr {
            Some(isr) => {
                let work = isr.work(kind, self.base, &mut state.isr_random, then);
                self.interrupt(c, work);
            }
            None => {
                self.advance(c);
                self.wake(c);
                self.queue_device_dpc(c, device);
                self.settle(c);
            }
        }
        self.device_next(device);
    }

    pub(crate) fn queue_device_dpc(&mut self, c: usize, device: usize) {
        let by = self.readier(c);
        let state = &mut self.devices[device];
        let Some(dpc) = &state.dpc else {
            if let Some(object) = state.sets {
                self.set_object(object, 1, by);
            }
            return;
        };
        let kind = if state.timer {
            Kind::TimerDpc
        } else {
            Kind::Dpc
        };
        let then = Then::DeviceDone(device);
        let work = dpc.work(kind, self.base, &mut state.dpc_random, then);
        let target = state.target.unwrap_or(c);
        if state.threaded {
            self.queue_threaded_dpc(target, work, by);
        } else {
            let importance = state.importance;
            self.queue_dpc(c, target, work, importance);
        }
    }
}
