//! What happens in the model, logged as Windows would log it.
//!
//! [`Log`] takes what happens as plain values and writes the events of the release of Windows that
//! the [`Computer`] runs, if the [`Recording`] has them. Layouts are those of public descriptions
//! and real traces; reading them back is the `events` crate's. Events of each processor must come
//! in the order of time.

mod computer;
mod event_kind;
mod lives;
mod manifest;
mod modules;
mod payload;
mod providers;
mod recording;
mod scheduling;
mod storage;
mod system;
#[cfg(test)]
mod tests;
mod traffic;

pub(crate) use computer::{Computer, Cpu};
pub(crate) use event_kind::EventKind;
pub(crate) use lives::{Life, Process, Thread, User};
pub(crate) use modules::{FrameError, Modules, StackId};
pub(crate) use recording::Recording;
pub(crate) use scheduling::{
    ContextSwitch, Dpc, DpcKind, Isr, ReadyThread, Running, Sample, Switched,
};
pub(crate) use storage::{DiskAction, DiskRequest, HardFault};
pub(crate) use system::Service;
pub(crate) use traffic::{Direction, Traffic};

use std::io::{Seek, Write};
use std::ops::Range;

use etl::Guid;
use etl::write::{self, Injected, KernelEvent, ProviderEvent, Session, WriteError, Writer};

use crate::time::Time;
use event_kind::KindSet;
use manifest::ManifestEvent;
use payload::Payload;

/// A thread and its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Who {
    /// The process.
    pub(crate) process: u32,
    /// The thread.
    pub(crate) thread: u32,
}

impl Who {
    /// What rundown events say of who logged them.
    pub(crate) const NOBODY: Who = Who {
        process: u32::MAX,
        thread: u32::MAX,
    };
}

/// The stack of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Whose stack it is.
    pub(crate) who: Who,
    /// Its frames, kernel and user together; see [`Modules::stack`].
    pub(crate) frames: StackId,
}

/// A trace that is being written.
///
/// Methods that log return nothing: the first error is kept, what comes later is dropped, and
/// [`Log::finish`] returns the error.
#[derive(Debug)]
pub(crate) struct Log<W> {
    writer: Writer<W>,
    error: Option<WriteError>,
    computer: Computer,
    sampling_interval: u32,
    recorded: KindSet,
    walked: KindSet,
    versions: [u8; EventKind::ALL.len()],
    raw_start: i64,
    cpus: Vec<CpuLog>,
    losses: Vec<Loss>,
    modules: Modules,
    counts: [u64; EventKind::ALL.len()],
    /// Sum of the counts.
    events: u64,
    lost: u64,
    /// Masks of what the session records.
    group_masks: [u32; 8],
    /// Names of the files by key.
    files: Vec<String>,
    services: Vec<Service>,
    /// Payload of the stack being written, kept for its memory.
    stack: Vec<u8>,
    /// Payload of the packet being written, likewise.
    packet: Vec<u8>,
}

/// What the log knows of a processor.
#[derive(Clone, Copy, Debug, Default)]
struct CpuLog {
    /// How far the processor's clock is ahead.
    ahead: Time,
    /// The stack of the last event, not written yet: its time depends on the next event's.
    pending: Option<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Moment of the event that the stack belongs to, by the model's clock.
    time: Time,
    stack: Stack,
}

/// Events of these processors in this time are lost.
#[derive(Clone, Debug)]
struct Loss {
    time: Range<Time>,
    /// By processor.
    cpus: Vec<bool>,
}

/// A trace that has been written.
#[derive(Debug)]
pub(crate) struct Finished<W> {
    /// Where it was written to.
    pub(crate) out: W,
    /// Events written, of each kind that was.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// Events written in all.
    pub(crate) events: u64,
    /// Events lost.
    pub(crate) lost: u64,
}

impl<W: Write + Seek> Log<W> {
    /// Begins the trace at the output's present position, which must be its start.
    ///
    /// # Errors
    /// If the recording's buffer size or the number of processors is out of range, or the output
    /// fails.
    pub(crate) fn new(
        out: W,
        computer: Computer,
        recording: &Recording,
        modules: Modules,
    ) -> Result<Log<W>, WriteError> {
        let raw_start = computer.raw_start();
        let session = Session {
            buffer_size: recording.buffer_kib.saturating_mul(1 << 10),
            processors: u16::try_from(computer.cpus.len()).unwrap_or(u16::MAX),
            perf_frequency: computer.frequency,
            raw_start,
            start: computer.start as i64,
            boot: computer.boot as i64,
            os_version: computer.windows.version(),
            os_build: computer.windows.build(),
            cpu_mhz: computer.cpu_mhz,
            name: "NT Kernel Logger".into(),
            log_file: r"C:\Traces\simulated.etl".into(),
            compressed: recording.compressed,
            ..Session::default()
        };
        let mut log = Log {
            writer: Writer::new(out, session)?,
            error: None,
            sampling_interval: recording.sampling_interval,
            recorded: KindSet::recorded(recording),
            walked: KindSet::walked(recording),
            versions: EventKind::ALL.map(|kind| kind.version(computer.windows)),
            raw_start,
            cpus: vec![CpuLog::default(); computer.cpus.len()],
            losses: Vec::new(),
            modules,
            counts: [0; EventKind::ALL.len()],
            events: 0,
            lost: 0,
            group_masks: [0; 8],
            files: Vec::new(),
            services: Vec::new(),
            stack: Vec::new(),
            packet: Vec::new(),
            computer,
        };
        log.begin(recording);
        Ok(log)
    }

    /// Ends the trace: what describes the machine is logged.
    ///
    /// # Errors
    /// The first error of all that was logged.
    pub(crate) fn finish(mut self, end: Time) -> Result<Finished<W>, WriteError> {
        self.end(end);
        for cpu in 0..self.cpus.len() as u16 {
            self.write_pending(cpu, Time::MAX);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(Finished {
            counts: self.counts().map(|(kind, n)| (kind.name(), n)).collect(),
            events: self.events(),
            lost: self.lost,
            out: self.writer.finish()?,
        })
    }

    /// Whether something could not be written, so that there is no use in going on.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether events of the kind are recorded.
    #[inline]
    pub(crate) fn records(&self, kind: EventKind) -> bool {
        self.recorded.contains(kind)
    }

    /// The modules of the machine.
    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Events of these processors (all if `None`) from one moment until before the other are lost.
    pub(crate) fn lose(&mut self, time: Range<Time>, cpus: Option<&[u16]>) {
        let concerned =
            |cpu: usize| cpus.is_none_or(|cpus| cpus.iter().any(|c| *c as usize == cpu));
        self.losses.push(Loss {
            time,
            cpus: (0..self.cpus.len()).map(concerned).collect(),
        });
    }

    /// From now on the processor's clock is ahead of the others' by so many ticks. Its events'
    /// times must still not go back.
    pub(crate) fn skew(&mut self, cpu: u16, ahead: Time) {
        self.write_pending(cpu, Time::MAX);
        if let Some(state) = self.cpus.get_mut(usize::from(cpu)) {
            state.ahead = ahead;
        }
    }

    /// How many events of each kind were written, of all kinds that were.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (EventKind, u64)> {
        let counts = self.counts;
        EventKind::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    /// How many events were written.
    #[inline]
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// A moment as the processor's clock says it.
    #[inline]
    fn raw(&self, cpu: u16, time: Time) -> i64 {
        let ahead = self.cpus.get(usize::from(cpu)).map_or(0, |c| c.ahead);
        self.raw_start + (time + ahead) as i64
    }

    /// Logs a kernel event; `who` is in the header of those that have a SYSTEM header.
    #[inline]
    fn kernel(
        &mut self,
        kind: EventKind,
        cpu: u16,
        time: Time,
        who: Option<Who>,
        payload: &[u8],
        stack: Option<Stack>,
    ) {
        let id = (kind.hook(), self.versions[kind as usize]);
        self.kernel_hook(kind, id, cpu, time, who, payload, stack);
    }

    /// As [`Log::kernel`], for a kind of several hooks; with hook and version.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn kernel_hook(
        &mut self,
        kind: EventKind,
        (hook, version): (u16, u8),
        cpu: u16,
        time: Time,
        who: Option<Who>,
        payload: &[u8],
        stack: Option<Stack>,
    ) {
        if !self.admits(kind, cpu, time) {
            return;
        }
        let event = KernelEvent {
            hook,
            version,
            time: self.raw(cpu, time),
            thread: who.map(|who| (who.thread, who.process)),
        };
        let result = self.writer.kernel(cpu, event, payload);
        self.wrote(kind, result);
        if let Some(stack) = stack
            && self.walked.contains(kind)
            && let Some(state) = self.cpus.get_mut(usize::from(cpu))
        {
            state.pending = Some(Pending { time, stack });
        }
    }

    /// Logs an event that a merge puts into a trace.
    fn injected(&mut self, kind: EventKind, event: &Injected, cpu: u16, time: Time, who: Who) {
        if !self.admits(kind, cpu, time) {
            return;
        }
        let identity = event.at(self.raw(cpu, time), who.thread, who.process);
        let result = self.writer.classic(cpu, identity, &event.payload);
        self.wrote(kind, result);
    }

    /// Logs a manifest event.
    fn provider(&mut self, event: &ManifestEvent, cpu: u16, time: Time, who: Who, payload: &[u8]) {
        if !self.admits(event.kind, cpu, time) {
            return;
        }
        let identity = ProviderEvent {
            provider: event.provider(),
            descriptor: event.descriptor(),
            time: self.raw(cpu, time),
            thread_id: who.thread,
            process_id: who.process,
            activity: Guid::ZERO,
            extended: &[],
        };
        let result = self.writer.provider(cpu, identity, payload);
        self.wrote(event.kind, result);
    }

    /// Whether an event is to be written: it is recorded and not lost. The stack of the event
    /// before it is written first.
    #[inline]
    fn admits(&mut self, kind: EventKind, cpu: u16, time: Time) -> bool {
        if !self.recorded.contains(kind) || self.error.is_some() {
            return false;
        }
        self.write_pending(cpu, time);
        let is_lost = self.is_lost(cpu, time);
        if is_lost {
            self.lose_one(cpu);
        }
        !is_lost
    }

    /// Counts an event that is lost, in the trace's header too.
    #[cold]
    fn lose_one(&mut self, cpu: u16) {
        self.lost += 1;
        let one = write::Loss {
            events: 1,
            buffers: 0,
        };
        if let Err(error) = self.writer.lose(cpu, one) {
            self.error = Some(error);
        }
    }

    #[inline]
    fn is_lost(&self, cpu: u16, time: Time) -> bool {
        self.losses.iter().any(|loss| {
            loss.time.contains(&time) && loss.cpus.get(usize::from(cpu)).is_some_and(|lost| *lost)
        })
    }

    #[inline]
    fn wrote(&mut self, kind: EventKind, result: Result<(), WriteError>) {
        match result {
            Ok(()) => {
                self.counts[kind as usize] += 1;
                self.events += 1;
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Writes the stack of a processor's last event: a tick after the event, unless the
    /// processor's next event is at `next` before that.
    #[inline]
    fn write_pending(&mut self, cpu: u16, next: Time) {
        let Some(state) = self.cpus.get_mut(usize::from(cpu)) else {
            return;
        };
        let Some(pending) = state.pending.take() else {
            return;
        };
        self.write_stack(cpu, (pending.time + 1).min(next), pending);
    }

    fn write_stack(&mut self, cpu: u16, time: Time, pending: Pending) {
        if self.error.is_some() {
            return;
        }
        if self.is_lost(cpu, time) {
            self.lose_one(cpu);
            return;
        }
        let Stack { who, frames } = pending.stack;
        let mut payload = std::mem::take(&mut self.stack);
        payload.clear();
        payload
            .u64(self.raw(cpu, pending.time) as u64)
            .u32(who.process)
            .u32(who.thread)
            .bytes(self.modules.addresses(frames));
        let event = KernelEvent {
            hook: EventKind::Stack.hook(),
            version: self.versions[EventKind::Stack as usize],
            time: self.raw(cpu, time),
            thread: None,
        };
        let result = self.writer.kernel(cpu, event, &payload);
        self.wrote(EventKind::Stack, result);
        self.stack = payload;
    }
}
