//! The first pass over a trace. It collects data that is later joined with rows of events, such as processes,
//! threads, images, files and stacks. It also makes the tables of the whole trace.

use etl::{BufferReader, BufferRef, CpuStream, Damage, Segment, Trace};
use rayon::prelude::*;
use tables::import::{
    Activity, FirstPass, Reader, ReaderSet, StackEvents, StackIndex, UnreadableEvents,
    activity_by_cpu,
};
use tables::{
    Cancelled, Cpus, Damages, DotnetPauses, DotnetPools, EventKinds, Focus, ProcessFreezes,
    ProcessTracker, Sessions, SystemConfig, Table, Tables,
};

use crate::event_buffer::EventBuffer;
use crate::file_names;
use crate::kind_survey::KindSurvey;
use crate::presence::Presence;
use crate::recording::span_of;
use crate::register::{IncomingEvent, TraceFacts, WholeTable, buffered};
use crate::table::{for_each_table, images, processes, samples, stacks, threads};
use crate::{place_of, recorded_times, volumes};

/// Events of one CPU stream that the first pass keeps.
pub(crate) struct CpuEvents {
    /// Buffered events of each reader, by [`Reader::index`].
    buffers: Vec<EventBuffer>,
    stacks: StackEvents,
    /// Buffers that contain descriptions of events.
    pub(crate) metadata: Vec<BufferRef>,
    kinds: KindSurvey,
    activity: Activity,
    presence: Presence,
    damage: Damage,
    unreadable: UnreadableEvents,
}

/// Result of the first pass, and what only the second pass of a trace needs.
pub(crate) struct WindowsPass {
    pub(crate) first: FirstPass,
    /// Buffers that contain descriptions of events.
    pub(crate) metadata: Vec<BufferRef>,
}

impl CpuEvents {
    fn new() -> CpuEvents {
        CpuEvents {
            buffers: (0..Reader::COUNT).map(|_| EventBuffer::default()).collect(),
            stacks: StackEvents::default(),
            metadata: Vec::new(),
            kinds: KindSurvey::default(),
            activity: Activity::default(),
            presence: Presence::default(),
            damage: Damage::default(),
            unreadable: UnreadableEvents::default(),
        }
    }

    pub(crate) fn buffer(&self, reader: Reader) -> &EventBuffer {
        &self.buffers[reader.index()]
    }

    /// Reads a CPU stream.
    fn read(
        stream: &CpuStream<'_>,
        segments: &[Segment],
        wanted: ReaderSet,
        progress: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<CpuEvents, Cancelled> {
        let mut cpu_events = CpuEvents::new();
        let mut reader = stream.reader();
        for buffer in stream.buffers() {
            cpu_events.read_buffer(&mut reader, buffer, segments, wanted);
            if !progress(buffer.stored_size.into()) {
                return Err(Cancelled);
            }
        }
        cpu_events.damage = reader.take_damage();
        Ok(cpu_events)
    }

    fn read_buffer(
        &mut self,
        reader: &mut BufferReader<'_>,
        buffer: &BufferRef,
        segments: &[Segment],
        wanted: ReaderSet,
    ) {
        let os_version = os_version(segments, buffer);
        let has_kinds = wanted.has_table(Table::EventKinds);
        let has_activity = wanted.has_table(Table::Cpus);
        let mut has_metadata = false;
        for event in reader.read(buffer) {
            if has_kinds {
                self.kinds.count(&event);
            }
            if has_activity {
                self.activity.add(event.time_ns());
            }
            has_metadata |= wanted.has(Reader::Metadata) && events::is_metadata(&event);
            let incoming = IncomingEvent::new(&event, os_version);
            self.presence.add(&incoming);
            self.take(&incoming, wanted);
        }
        self.kinds.end_buffer();
        self.activity.end_buffer();
        if has_metadata {
            self.metadata.push(*buffer);
        }
    }

    #[inline]
    fn take(&mut self, incoming: &IncomingEvent<'_, '_>, wanted: ReaderSet) {
        for reader in incoming.readers.intersection(wanted).iter() {
            match (reader, incoming.hook) {
                (Reader::Table(Table::Stacks), Some(hook)) => {
                    if stacks::push(&mut self.stacks, hook, incoming.event).is_none() {
                        self.unreadable.add(Table::Stacks, place_of(incoming.event));
                    }
                }
                _ => self.buffers[reader.index()].push(incoming),
            }
        }
    }
}

/// Returns the major and minor version of the Windows that logged a buffer. If the header is unreadable,
/// returns 10.0, because a recent version is more likely than an old version.
pub(crate) fn os_version(segments: &[Segment], buffer: &BufferRef) -> (u8, u8) {
    let header = segments[usize::from(buffer.segment)].header.as_ref();
    header.map_or((10, 0), |header| header.os_version)
}

/// Extends a time range so that it includes a kernel event. Header events (group 0) are ignored. In a ring
/// buffer, header events are much older than all other events.
#[inline]
pub(crate) fn extend_span(span_ns: &mut Option<(i64, i64)>, incoming: &IncomingEvent<'_, '_>) {
    if incoming.hook.is_some_and(|hook| hook >> 8 != 0) {
        let time_ns = incoming.event.time_ns();
        let (first, last) = span_ns.unwrap_or((time_ns, time_ns));
        *span_ns = Some((first.min(time_ns), last.max(time_ns)));
    }
}

/// Reads the trace for the requested readers. All CPUs are read in parallel.
pub(crate) fn read(
    trace: &Trace,
    wanted: ReaderSet,
    progress: &(dyn Fn(u64) -> bool + Sync),
    unreadable: &mut UnreadableEvents,
) -> Result<WindowsPass, Cancelled> {
    let streams = if wanted.iter().any(Reader::is_read) {
        trace.streams()
    } else {
        Vec::new()
    };
    let cpus = streams
        .into_par_iter()
        .map(|stream| CpuEvents::read(&stream, trace.segments(), wanted, progress))
        .collect::<Result<Vec<CpuEvents>, Cancelled>>()?;
    Ok(build(cpus, trace, wanted, unreadable))
}

/// Makes trackers and tables from the events that the first pass kept.
fn build(
    mut cpus: Vec<CpuEvents>,
    trace: &Trace,
    wanted: ReaderSet,
    unreadable: &mut UnreadableEvents,
) -> WindowsPass {
    let mut pass = FirstPass::default();
    let mut metadata = Vec::new();
    let mut damage = Damage::default();
    let mut kinds = KindSurvey::default();
    for cpu in &mut cpus {
        damage.merge(std::mem::take(&mut cpu.damage));
        unreadable.merge(std::mem::take(&mut cpu.unreadable));
        metadata.extend(&cpu.metadata);
        kinds.merge(std::mem::take(&mut cpu.kinds));
    }
    let presences = cpus.iter().map(|cpu| cpu.presence);
    let presences: Vec<_> = trace.streams().into_iter().zip(presences).collect();
    pass.recorded = recorded_times::read(trace, &presences);
    let stacks = cpus.iter_mut().map(|cpu| std::mem::take(&mut cpu.stacks));
    (pass.stacks, pass.tables.stacks) = StackIndex::build(stacks.collect());

    let events = |reader| buffered(&cpus, reader);
    let table = |table| buffered(&cpus, Reader::Table(table));
    let tables = &mut pass.tables;
    tables.processes = processes::build(&table(Table::Processes), trace.segments(), unreadable);
    tables.threads = threads::build(&table(Table::Threads), unreadable);
    let volumes = volumes::read(&events(Reader::Volumes), unreadable);
    tables.images = images::build(&table(Table::Images), &volumes, unreadable);
    let names = events(Reader::FileNames);
    pass.files = file_names::read(&names, volumes, unreadable);
    pass.sampling_interval_ns = samples::interval_ns(&events(Reader::SamplingInterval));

    let processes = std::mem::take(&mut tables.processes);
    damage.merge(trace.damage().clone());
    let span_ns = span_of(trace);
    pass.length_ns = Some(span_ns.1).filter(|end_ns| *end_ns > 0);
    let streams = trace.streams();
    let numbers = streams.iter().map(CpuStream::cpu);
    let activities = numbers.zip(cpus.iter().map(|cpu| &cpu.activity));
    let facts = TraceFacts {
        trace,
        cpus: &cpus,
        processes: &ProcessTracker::new(&processes),
        recorded: &pass.recorded,
        activity: activity_by_cpu(activities),
        kinds: &kinds,
        damage: &damage,
        span_ns,
    };
    build_whole(tables, &facts, wanted, unreadable);
    tables.processes = processes;
    WindowsPass {
        first: pass,
        metadata,
    }
}

macro_rules! declare {
    (
        events { $($event:tt)* }
        whole { $($module:ident: $table:ident,)+ }
    ) => {
        /// Makes the requested tables that are made from the whole trace.
        fn build_whole(
            tables: &mut Tables,
            facts: &TraceFacts<'_>,
            wanted: ReaderSet,
            unreadable: &mut UnreadableEvents,
        ) {
            $(if wanted.has_table(Table::$table) {
                tables.$module = <$table as WholeTable>::build(facts, unreadable);
            })+
        }
    };
}

for_each_table!(declare);
