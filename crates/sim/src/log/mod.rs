//! Writing of the trace: logs the model's events as Windows would.
//!
//! [`Log`] takes plain values and writes the events of the [`Computer`]'s release of Windows, if
//! the [`Recording`] enables them. The layouts follow public descriptions and real traces; the
//! crate `events` can read them. Callers must log the events of each processor in time order.

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
pub use recording::settings as recording_settings;
pub(crate) use scheduling::{
    ContextSwitch, Dpc, DpcKind, Isr, NewThread, OldThread, ReadyThread, Sample,
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

/// Ids of a thread and its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Who {
    /// Process id.
    pub(crate) process: u32,
    /// Thread id.
    pub(crate) thread: u32,
}

impl Who {
    /// Ids in the header of events that no thread logs, such as rundown events.
    pub(crate) const NO_THREAD: Who = Who {
        process: u32::MAX,
        thread: u32::MAX,
    };
}

/// The stack of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Thread to which the stack belongs.
    pub(crate) who: Who,
    /// Frames of kernel code and user code, as [`Modules::stack`] returns them.
    pub(crate) frames: StackId,
}

/// A trace that is being written.
///
/// Logging methods return nothing. The first error is kept, later events are dropped, and
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
    /// Number of all events written: the sum of `counts`.
    events: u64,
    lost: u64,
    /// Group masks of the session. They show readers which kernel keywords are enabled.
    group_masks: [u32; 8],
    /// Paths of files. The index of a path determines the key of the file in events.
    files: Vec<String>,
    services: Vec<Service>,
    /// Reused memory for the payload of the current stack.
    stack: Vec<u8>,
    /// Reused memory for the payload of the current packet.
    packet: Vec<u8>,
}

/// State of the log for one processor.
#[derive(Clone, Copy, Debug, Default)]
struct CpuLog {
    /// Number of ticks by which the processor's clock is ahead of the model's time.
    ahead: Time,
    /// Stack of the processor's last event. It is not written yet, because its time depends on the time of
    /// the processor's next event.
    pending: Option<PendingStack>,
}

#[derive(Clone, Copy, Debug)]
struct PendingStack {
    /// Time in the model of the event to which the stack belongs.
    time: Time,
    stack: Stack,
}

/// A time range in which the events of some processors are lost.
#[derive(Clone, Debug)]
struct Loss {
    time: Range<Time>,
    /// True for each processor whose events are lost.
    cpus: Vec<bool>,
}

/// A completely written trace.
#[derive(Debug)]
pub(crate) struct FinishedTrace<W> {
    /// Output that contains the trace.
    pub(crate) out: W,
    /// Number of events of each kind.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// Number of events in the trace, including its header.
    pub(crate) events: u64,
    /// Number of events that were lost on purpose.
    pub(crate) lost: u64,
}

impl<W: Write + Seek> Log<W> {
    /// Begins a trace at the current position of `out`, which must be the start of the output.
    ///
    /// # Errors
    /// Returns an error if the recording's buffer size or the number of processors is out of range,
    /// or the output fails.
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
            log_file: r"C:\Traces\kernel.etl".into(),
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

    /// Logs the description of the machine and ends the trace.
    ///
    /// # Errors
    /// Returns the first error that occurred while events were logged or the trace was ended.
    pub(crate) fn finish(mut self, end: Time) -> Result<FinishedTrace<W>, WriteError> {
        self.end(end);
        for cpu in 0..self.cpus.len() as u16 {
            self.write_pending(cpu, Time::MAX);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(FinishedTrace {
            counts: self.counts().map(|(kind, n)| (kind.name(), n)).collect(),
            // The log-file header is an event too; readers count it.
            events: self.events() + 1,
            lost: self.lost,
            out: self.writer.finish()?,
        })
    }

    /// Returns true after an error. The model can then stop early.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns true if events of the kind are recorded.
    #[inline]
    pub(crate) fn records(&self, kind: EventKind) -> bool {
        self.recorded.contains(kind)
    }

    /// Returns the modules of the machine.
    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Drops the events of the given processors in a time range and counts them as lost. `None`
    /// means all processors.
    pub(crate) fn lose(&mut self, time: Range<Time>, cpus: Option<&[u16]>) {
        let concerned =
            |cpu: usize| cpus.is_none_or(|cpus| cpus.iter().any(|c| *c as usize == cpu));
        self.losses.push(Loss {
            time,
            cpus: (0..self.cpus.len()).map(concerned).collect(),
        });
    }

    /// Sets the number of ticks by which, from now on, the processor's clock is ahead of the model's time.
    /// Even with this change, the times of the processor's events must not decrease.
    pub(crate) fn skew(&mut self, cpu: u16, ahead: Time) {
        self.write_pending(cpu, Time::MAX);
        if let Some(state) = self.cpus.get_mut(usize::from(cpu)) {
            state.ahead = ahead;
        }
    }

    /// Returns the number of events of each kind that occurred.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (EventKind, u64)> {
        let counts = self.counts;
        EventKind::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the number of events written.
    #[inline]
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Returns the raw counter value that the processor's clock shows at `time`.
    #[inline]
    fn raw(&self, cpu: u16, time: Time) -> i64 {
        let ahead = self.cpus.get(usize::from(cpu)).map_or(0, |c| c.ahead);
        self.raw_start + (time + ahead) as i64
    }

    /// Logs a kernel event. If `who` is given, the event has a SYSTEM header, which contains these
    /// ids.
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

    /// Logs a kernel event with an explicit hook and version, for kinds that have several hooks.
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
            state.pending = Some(PendingStack { time, stack });
        }
    }

    /// Logs an event that real traces get only when they are merged, such as the identity of an image.
    fn injected(&mut self, kind: EventKind, event: &Injected, cpu: u16, time: Time, who: Who) {
        if !self.admits(kind, cpu, time) {
            return;
        }
        let identity = event.at(self.raw(cpu, time), who.thread, who.process);
        let result = self.writer.classic(cpu, identity, &event.payload);
        self.wrote(kind, result);
    }

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

    /// Returns true if an event is recorded and not lost. If events of the kind are recorded, first writes
    /// the stack of the processor's previous event.
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

    /// Counts a lost event in `lost` and in the header of the trace.
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

    /// Writes the pending stack of a processor's last event. The stack event is one tick later than its
    /// event, but not later than `next`. `next` is the time of the processor's next event.
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

    fn write_stack(&mut self, cpu: u16, time: Time, pending: PendingStack) {
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
