//! Tables of recordings of Linux. Rows of events are joined with processes, threads and other data by the same code
//! as the rows of traces of Windows.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use files::FileSource;
use linux::{Attribute, Chunk, Event, EventKind, Meaning};
use rayon::prelude::*;
use symbols::KernelSymbols;
use tables::import::{
    FirstPass, Plan, Progress, Slice, StackEvents, StackIndex, counted_progress, memory,
    read_events,
};
use tables::{
    Cancelled, CodeMaker, GiveRows, Images, OperatingSystem, Options, Packets, RecordedSession,
    Recording, RecordingInfo, Store, StoreError, Table, Unreadable,
};

use crate::code_maps::{self, Origin};
use crate::freezes::Cgroups;
use crate::images::Mappings;
use crate::lives::Lives;
use crate::proc_facts::{ProcFacts, path_of, read_next_to};
use crate::rows::RowsOfChunks;
use crate::wait_stacks;
use crate::whole::{self, Counts, Presence};

/// Recording of Linux, and the facts from the file `FILE.proc` next to it.
#[derive(Debug)]
pub struct LinuxRecording {
    events: linux::Recording,
    facts: ProcFacts,
    file: PathBuf,
    info: RecordingInfo,
}

/// Maximum number of CPUs that Linux supports. A CPU with this number or a higher number is treated as unknown.
pub(crate) const MAX_CPUS: u32 = 8192;

/// Time of the first event on the clock of a recording, in nanoseconds. It is the start of the trace.
pub(crate) fn origin_ns(recording: &linux::Recording) -> u64 {
    let first = recording.chunks().iter().filter_map(|chunk| chunk.first_ns);
    first.min().unwrap_or(0)
}

/// Returns the time from the first to the last event of a recording, in nanoseconds.
pub(crate) fn length_ns(recording: &linux::Recording) -> i64 {
    let last = recording.chunks().iter().filter_map(|chunk| chunk.last_ns);
    let length = last.max().map_or(0, |last| last - origin_ns(recording));
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Returns the time of day of the first event, in nanoseconds since 1970; `None` if the recording does not have it.
pub(crate) fn start_unix_ns(recording: &linux::Recording) -> Option<i64> {
    let clock = recording.system().wall_clock?;
    let since = origin_ns(recording)
        .wrapping_sub(clock.clock_ns)
        .cast_signed();
    i64::try_from(clock.unix_ns).ok()?.checked_add(since)
}

/// Returns true if a file is a recording of Linux (`perf.data`, `trace.dat`) or the text of one. Returns false if the file
/// cannot be read.
pub fn is_recording(file: &Path) -> bool {
    let source = files::open_file(file).and_then(FileSource::new);
    source.is_ok_and(|source| linux::is_recording(&source).unwrap_or(false))
}

/// Returns the existing files next to a file that also contribute to its tables.
pub fn companions(file: &Path) -> Option<PathBuf> {
    let facts = is_recording(file).then(|| path_of(file));
    facts.filter(|path| path.exists())
}

/// A failure to open a recording of Linux.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A recording of Linux cannot be opened.
    #[error("cannot open {}: {source}", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Reason why the recording cannot be opened.
        source: linux::OpenError,
    },
    /// A recording of Linux was given together with other files.
    #[error("{}: a recording of Linux cannot be opened together with other files; give only this file", file.display())]
    NotAlone {
        /// Path of the file.
        file: PathBuf,
    },
}

impl LinuxRecording {
    /// Opens a recording. It must be opened alone.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or describes no event, or if `files` has more than one file.
    pub fn open(files: &[PathBuf]) -> Result<LinuxRecording, StoreError> {
        let [file] = files else {
            let recording = files.iter().find(|file| is_recording(file));
            return Err(StoreError::of_format(OpenError::NotAlone {
                file: recording.cloned().unwrap_or_default(),
            }));
        };
        LinuxRecording::open_file(file).map_err(StoreError::of_format)
    }

    fn open_file(file: &Path) -> Result<LinuxRecording, OpenError> {
        let error = |source| OpenError::File {
            file: file.to_owned(),
            source,
        };
        let source = File::open(file).and_then(FileSource::new);
        let source = source.map_err(|read| error(read.into()))?;
        let events = linux::Recording::open(Box::new(source)).map_err(error)?;
        let facts = ProcFacts::read(file).map_err(|read| OpenError::File {
            file: path_of(file),
            source: read.into(),
        })?;
        let mut info = RecordingInfo::new(vec![file.display().to_string()], events.size_bytes());
        info.system = Some(OperatingSystem::Linux);
        info.start_unix_ns = start_unix_ns(&events);
        info.end_ns = length_ns(&events);
        info.stated_length_ns = Some(info.end_ns);
        info.processors = events.system().cpus_online;
        info.has_cpu_numbers = (events.chunks().iter()).any(|chunk| cpu_of(chunk).is_some());
        info.losses.events_lost = events.damage().lost_events;
        info.sessions = vec![RecordedSession {
            file: 0,
            header: Some(whole::session(&events)),
        }];
        Ok(LinuxRecording {
            events,
            facts,
            file: file.to_owned(),
            info,
        })
    }

    /// Returns the symbols of the recorded kernel. Returns `None` if there are none, if they cannot be read, or if they belong
    /// to a kernel that was loaded at another address.
    fn recorded_kernel(&self, images: &Images) -> Option<KernelSymbols> {
        let symbols = KernelSymbols::parse(&self.kernel_symbols().ok()??);
        let is_kernel = |row: &usize| images.process_id.get(*row) == Some(0);
        let mut starts = (0..images.len())
            .filter(is_kernel)
            .map(|row| images.base_address[row])
            .peekable();
        let is_its = starts.peek().is_none() || starts.any(|start| symbols.are_of(start));
        is_its.then_some(symbols)
    }

    /// Returns the recording of a store. Returns `None` if the store has tables of another format.
    pub fn from_store(store: &Store) -> Option<&LinuxRecording> {
        (store.recording() as &dyn Any).downcast_ref()
    }

    /// Returns the events of the recording.
    pub fn events(&self) -> &linux::Recording {
        &self.events
    }
}

impl Recording for LinuxRecording {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn memory(&self, wanted: &[Table]) -> u64 {
        let chunks = self.events.chunks().iter();
        memory(wanted, 0, chunks.map(|chunk| u64::from(chunk.bytes)).sum())
    }

    fn rows(
        &self,
        wanted: &[Table],
        options: Options<'_>,
        give: &mut GiveRows<'_>,
    ) -> Result<Vec<Unreadable>, StoreError> {
        let plan = Plan::new(wanted);
        let (done, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let progress = counted_progress(plan, options, &done, &is_stopped);
        let (mut first, presence) = read_whole(self, plan, &progress)?;
        if plan.rows.has_table(Table::CpuRuns) && !first.tables.stacks.is_empty() {
            let symbols = self.recorded_kernel(&first.tables.images);
            let stacks = &first.tables.stacks;
            let waits = symbols.map(|symbols| wait_stacks::waits_of_stacks(stacks, &symbols));
            first.stack_waits = waits.unwrap_or_default();
        }
        if !plan.rows.is_empty() {
            let mut rows = RowsOfChunks::new(&self.events, &self.facts, plan.events, presence);
            let take = &mut |slice: Slice| slice.give(give);
            let captured = Packets::default();
            read_events(&mut rows, captured, plan, &first, &progress, take)?;
        }
        first.tables.give(wanted, give)?;
        Ok(Vec::new())
    }

    fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        match self.events.kernel_symbols()? {
            Some(symbols) => Ok(Some(symbols)),
            None => read_next_to(&self.file),
        }
    }

    fn code_maps(&self, makers: &BTreeMap<u32, CodeMaker>) -> io::Result<BTreeMap<u32, Vec<u8>>> {
        let origin = Origin {
            host_name: self.events.system().host_name.as_deref(),
            start_unix_ns: self.info.start_unix_ns,
            length_ns: self.info.end_ns,
        };
        let mut maps = origin.on_this_machine(makers);
        let facts = read_next_to(&self.file)?.unwrap_or_default();
        maps.extend(code_maps::in_facts(&facts, makers));
        Ok(maps)
    }
}

/// Makes the tables of the whole recording. Also returns which of the kernel's events it has.
fn read_whole(
    recording: &LinuxRecording,
    plan: Plan,
    progress: &Progress<'_>,
) -> Result<(FirstPass, Presence), Cancelled> {
    let LinuxRecording {
        events: recording,
        facts,
        info,
        ..
    } = recording;
    let origin_ns = origin_ns(recording);
    // Events with stacks, by the index of their kind. It is empty if no stacks are wanted.
    let attributes = recording.attributes().iter();
    let attributes = attributes.filter(|_| plan.first.has_table(Table::Stacks));
    let with_stacks: Vec<bool> = attributes.map(Attribute::has_chains).collect();
    let new = || Part {
        lives: Lives::new(recording),
        ..Part::default()
    };
    // A recording can have millions of chunks, so a part has the facts of many neighbouring chunks.
    let parts = recording
        .chunks()
        .par_iter()
        .try_fold(new, |mut part, chunk| {
            // If a chunk cannot be read, its events are missing. `Counts::end` adds this fault to the damage.
            let read = recording.read(chunk, &mut |event| {
                let time_ns = time_since(origin_ns, event);
                part.add(time_ns, event, cpu_of(chunk), &with_stacks);
            });
            part.counts.end(chunk, read);
            if progress(chunk.bytes.into()) {
                Ok(part)
            } else {
                Err(Cancelled)
            }
        });
    let parts: Vec<Part> = parts.collect::<Result<_, Cancelled>>()?;
    let mut lives = Lives::default();
    let mut mappings = Mappings::default();
    let mut cgroups = Cgroups::default();
    let mut counts = Counts::default();
    let mut stacks = Vec::new();
    for part in parts {
        lives.merge(part.lives);
        mappings.merge(part.mappings);
        cgroups.merge(part.cgroups);
        counts.merge(part.counts);
        stacks.push(part.stacks);
    }
    let mut first = FirstPass {
        length_ns: Some(length_ns(recording)),
        ..FirstPass::default()
    };
    let tables = &mut first.tables;
    (tables.processes, tables.threads) = lives.into_tables(facts);
    tables.images = mappings.into_table(recording.build_ids());
    (first.stacks, tables.stacks) = StackIndex::build(stacks);
    if plan.first.has_table(Table::ProcessFreezes) {
        tables.process_freezes = cgroups.into_table(&tables.processes, facts, length_ns(recording));
    }
    counts.add_damage(recording);
    first.recorded.skips_switches = true;
    first.recorded.losses = whole::losses(recording, &counts);
    whole::fill(&mut first.tables, info, recording, facts, &counts, plan);
    let presence = counts.presence(recording);
    Ok((first, presence))
}

/// Facts of a chunk for the tables of the whole recording.
#[derive(Default)]
struct Part {
    lives: Lives,
    mappings: Mappings,
    cgroups: Cgroups,
    counts: Counts,
    stacks: StackEvents,
}

impl Part {
    /// Adds an event. `with_stacks` states which kinds of events have stacks, by their index.
    fn add(&mut self, time_ns: i64, event: &Event<'_>, cpu: Option<u16>, with_stacks: &[bool]) {
        self.lives.add(time_ns, event);
        self.mappings.add(time_ns, event);
        self.cgroups.add(time_ns, event);
        self.counts.add(time_ns, event);
        let (attribute, chain) = match &event.kind {
            EventKind::Tracepoint {
                attribute, chain, ..
            }
            | EventKind::Sample {
                attribute, chain, ..
            } => (*attribute, chain),
            _ => return,
        };
        // A switch without a stack is needed, too, but only if the other switches have stacks.
        if with_stacks.get(attribute) != Some(&true) {
            return;
        }
        let thread_id = match &event.kind {
            EventKind::Tracepoint { tracepoint, .. } => match (tracepoint.meaning, cpu) {
                (Meaning::Switch(switch), Some(cpu)) => {
                    let threads = (switch.previous.thread_id, switch.next.thread_id);
                    let place = (time_ns, cpu);
                    return self.stacks.push_switch(place, threads, chain.addresses());
                }
                _ => Some(tracepoint.thread_id),
            },
            _ => event.thread_id,
        };
        if let Some(thread_id) = thread_id {
            let place = (time_ns, cpu);
            self.stacks.push_chain(place, thread_id, chain.addresses());
        }
    }
}

/// Returns the time of an event in nanoseconds since the start of the recording. Returns 0 if the event has no time,
/// because perf itself made it.
pub(crate) fn time_since(origin_ns: u64, event: &Event<'_>) -> i64 {
    let since = event
        .time_ns
        .map_or(0, |time_ns| time_ns.saturating_sub(origin_ns));
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Returns the number of a chunk's CPU. Returns `None` if the number is unknown or too high.
pub(crate) fn cpu_of(chunk: &Chunk) -> Option<u16> {
    chunk.cpu.and_then(known_cpu)
}

/// Returns the number of a CPU. Returns `None` if it is too high.
pub(crate) fn known_cpu(cpu: u32) -> Option<u16> {
    u16::try_from(cpu).ok().filter(|_| cpu < MAX_CPUS)
}
