//! Text of events, as the kernel (`/sys/kernel/tracing/trace`), `trace-cmd report` and `perf script` print it.
//!
//! The lines are converted to records of perf in a temporary file, so that only this module reads a text. A text has less
//! than a recording: times have microseconds, mapped files are missing, and of most events only known fields have a
//! meaning. Events with the same printed time get the order of their lines, one nanosecond apart.

mod frames;
mod layouts;
mod line;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use files::{FileSource, Source};

use crate::attribute::{Attribute, Clock};
use crate::bytes::Order;
use crate::chunk::{Chunk, Part};
use crate::damage::{Damage, Fault};
use crate::error::OpenError;
use crate::event_name;
use crate::facts::{Facts, NO_PROCESS};
use crate::features::System;
use crate::format::Format;
use crate::gaps::Gaps;
use crate::inflater::Inflater;
use crate::record::{self, kind};
use crate::recording::{Recorder, Recording, Symbols};
use crate::sample::SampleLayout;
use crate::tracepoints::Readers;
use frames::Frames;
use layouts::Layout;
use line::{Context, EventLine, Time};

/// Number of bytes that are read to find the format of a file.
const HEAD: usize = 4096;
/// Number of bytes that are read at once.
const WINDOW: usize = 1 << 20;
/// Maximum length of a line in bytes. The kernel limits a line to 8 KiB.
const LONGEST_LINE: usize = 1 << 15;
/// Maximum number of kinds of events.
const MOST_KINDS: usize = 8192;
/// Maximum number of addresses in a call chain. perf limits a chain to 127, or to a number that the user sets.
const LONGEST_CHAIN: usize = 1024;
/// Size in bytes at which the records of a CPU are written as a chunk.
const CHUNK: usize = 1 << 19;
/// Maximum size in bytes of the records in memory.
const MOST_BUFFERED: usize = 16 << 20;
/// Byte order of the converted records.
const ORDER: Order = Order::Little;
/// CPU or thread that the text does not contain.
const UNKNOWN: u32 = u32::MAX;

/// Returns true if a source is a text of events.
///
/// # Errors
/// Returns an error if the source cannot be read.
pub(crate) fn is_text(source: &dyn Source) -> io::Result<bool> {
    let mut head = vec![0; HEAD];
    let read = source.read_at(0, &mut head)?;
    let head = String::from_utf8_lossy(&head[..read]);
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let mut lines = head.lines();
    Ok(head.chars().all(is_text)
        && (head.starts_with("# tracer:")
            || head.starts_with("# ========\n# captured on")
            || lines.any(|line| EventLine::read(line).is_some())))
}

/// Kind of event: its subsystem, its name, and whether its lines have a period.
type Kind = (Option<String>, String, bool);

/// Event that still lacks the lines of its call chain.
struct Event {
    attribute: usize,
    ids: (u32, u32),
    time_ns: u64,
    period: Option<u64>,
    chain: Vec<u64>,
    /// Data of a tracepoint; `None` for a sample.
    data: Option<Vec<u8>>,
}

/// Records of a CPU that are not written yet.
#[derive(Default)]
struct Buffer {
    event: Option<Event>,
    records: Vec<u8>,
    count: u32,
    times_ns: Option<(u64, u64)>,
    /// Number of events that were lost before the next event.
    lost: u64,
    /// Numbers of interrupts and softirqs in which the CPU is, according to the events of their starts and ends.
    nesting: (i32, i32),
}

impl Buffer {
    /// Returns the context of an event without flags. It is known from the events of interrupts, if the text has them.
    fn context(&mut self, layout: Layout, name: &str) -> Context {
        let (interrupts, softirqs) = layout.nesting(name);
        let (before, after) = (self.nesting, &mut self.nesting);
        after.0 = (after.0 + interrupts).max(0);
        after.1 = (after.1 + softirqs).max(0);
        if name == "sched_switch" {
            // All interrupts end before a switch, so if one is open, its end was lost.
            *after = (0, 0);
        }
        Context {
            in_interrupt: before.0 > 0,
            in_softirq: before.1 > 0,
        }
    }
}

/// State of a text while it is being read.
struct Opening {
    inflated: Inflater,
    buffers: BTreeMap<u32, Buffer>,
    buffered: usize,
    chunks: Vec<Chunk>,
    kinds: HashMap<Kind, usize>,
    layouts: Vec<Option<Layout>>,
    attributes: Vec<Attribute>,
    formats: Vec<Format>,
    facts: Facts,
    /// Threads whose names are in `facts`.
    threads: HashSet<u32>,
    frames: Frames,
    system: System,
    damage: Damage,
    gaps: Gaps,
    /// CPU of the event to which the next lines of a call chain belong.
    chain_cpu: Option<u32>,
    /// Printed time of the last event, and the number of events before it with the same time.
    last: (u64, u64),
}

/// Opens a text.
pub(crate) fn open(source: Box<dyn Source>) -> Result<Recording, OpenError> {
    let mut opening = Opening {
        inflated: Inflater::new(source.len())?,
        buffers: BTreeMap::new(),
        buffered: 0,
        chunks: Vec::new(),
        kinds: HashMap::new(),
        layouts: Vec::new(),
        attributes: Vec::new(),
        formats: Vec::new(),
        facts: Facts::default(),
        threads: HashSet::new(),
        frames: Frames::default(),
        system: System::default(),
        damage: Damage::default(),
        gaps: Gaps::default(),
        chain_cpu: None,
        last: (u64::MAX, 0),
    };
    opening.read(&*source)?;
    opening.finish(source)
}

impl Opening {
    fn read(&mut self, source: &dyn Source) -> io::Result<()> {
        let mut window = vec![0; WINDOW];
        let mut at = 0;
        loop {
            let read = source.read_at(at, &mut window)?;
            let bytes = &window[..read];
            let is_last = read < WINDOW;
            // The last line of the window may continue after it.
            let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(end) if !is_last => end + 1,
                _ => read,
            };
            let mut offset = at;
            for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
                let text = String::from_utf8_lossy(line);
                if line.len() > LONGEST_LINE || !self.add_line(text.trim_end())? {
                    self.damage.add(Fault::Line, offset);
                }
                offset += line.len() as u64;
            }
            at = offset;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Adds a line. Returns false if it cannot be read.
    fn add_line(&mut self, line: &str) -> io::Result<bool> {
        if line.trim().is_empty() {
            self.chain_cpu = None;
            return Ok(true);
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.add_comment(comment.trim());
            return Ok(true);
        }
        if let Some(cpus) = line.strip_prefix("cpus=") {
            self.system.cpus_online = cpus.parse().ok();
            return Ok(true);
        }
        if let Some((cpu, count)) = line::lost(line) {
            let buffer = self.buffers.entry(cpu).or_default();
            buffer.lost = buffer.lost.saturating_add(count);
            self.add_losses(count);
            return Ok(true);
        }
        if !line.starts_with('\t')
            && let Some(event) = EventLine::read(line)
        {
            return self.add_event(&event);
        }
        Ok(self.add_frame(line))
    }

    /// Adds a number of lost events. The text states it, so it can be any number.
    fn add_losses(&mut self, count: u64) {
        self.damage.lost_events = self.damage.lost_events.saturating_add(count);
    }

    /// Adds the facts in a comment of the kernel (`entries-in-buffer/entries-written: 5/7   #P:2`) or of
    /// `perf script --header` (`os release : 6.18.44`).
    fn add_comment(&mut self, comment: &str) {
        if let Some(entries) = comment.strip_prefix("entries-in-buffer/entries-written: ")
            && let Some((entries, cpus)) = entries.split_once("#P:")
        {
            self.system.cpus_online = cpus.trim().parse().ok();
            let entries = entries.trim().split_once('/');
            let number = |text: &str| text.parse::<u64>().ok();
            if let Some((stored, written)) =
                entries.and_then(|(stored, written)| number(stored).zip(number(written)))
            {
                self.add_losses(written.saturating_sub(stored));
            }
        }
        let Some((name, value)) = comment.split_once(" : ") else {
            return;
        };
        let text = || Some(value.to_owned());
        match name.trim() {
            "hostname" => self.system.host_name = text(),
            "os release" => self.system.os_release = text(),
            "perf version" => self.system.recorder_version = text(),
            "arch" => self.system.architecture = text(),
            "cpudesc" => self.system.cpu_description = text(),
            "nrcpus online" => self.system.cpus_online = value.parse().ok(),
            "nrcpus avail" => self.system.cpus_available = value.parse().ok(),
            "total memory" => {
                self.system.memory_kib = value
                    .strip_suffix(" kB")
                    .and_then(|value| value.parse().ok());
            }
            _ => {}
        }
    }

    /// Adds an event. Returns false if its fields cannot be read.
    fn add_event(&mut self, line: &EventLine<'_>) -> io::Result<bool> {
        let cpu = line.cpu.unwrap_or(UNKNOWN);
        let thread_id = line.thread_id.unwrap_or(UNKNOWN);
        let is_stack = line.contents.trim_end().ends_with("<stack trace>")
            || line.name == "kernel_stack" && line.contents.starts_with("<stack trace");
        if is_stack {
            // The lines after this one are the call chain of the event before it.
            let event = self
                .buffers
                .get(&cpu)
                .and_then(|buffer| buffer.event.as_ref());
            let is_its = event.is_some_and(|event| event.ids.1 == thread_id);
            self.chain_cpu = is_its.then_some(cpu);
            return Ok(true);
        }
        self.chain_cpu = None;
        if let (Some(thread_id), Some(name)) = (line.thread_id, line.thread_name)
            && thread_id != 0
            && self.threads.insert(thread_id)
        {
            self.facts.add_name(ORDER, thread_id, name);
        }
        let (system, name) = match (line.system, line.name.strip_prefix("sys_")) {
            // The kernel prints `sys_enter_futex` as a call.
            (None, Some("futex")) if line.contents.starts_with("uaddr") => {
                (Some("syscalls"), "sys_enter_futex")
            }
            _ => (line.system, line.name),
        };
        let is_sample = line.is_of_perf && line.system.is_none();
        let Some(attribute) = self.attribute(line, (system, name), is_sample) else {
            return Ok(false);
        };
        let process_id = line.process_id.unwrap_or(NO_PROCESS);
        let mut event = Event {
            attribute,
            ids: (process_id, thread_id),
            time_ns: self.time_ns(line.time),
            period: line.period,
            chain: Vec::new(),
            data: None,
        };
        if let Some(layout) = self.layouts[attribute] {
            let buffer = self.buffers.entry(cpu).or_default();
            let context = line.context.unwrap_or_else(|| buffer.context(layout, name));
            let id = self.attributes[attribute].config as u16;
            let address_of = &mut |function: &str| self.frames.address_of(function);
            let Some(data) = layout.data(id, (thread_id, context), line.contents, address_of)
            else {
                return Ok(false);
            };
            event.data = Some(data);
        } else {
            // A sample without a call chain has its address in the same line.
            let address = self.frames.address(process_of(&event), line.contents);
            event.chain.extend(address);
        }
        self.put(cpu, Some(event))?;
        self.chain_cpu = Some(cpu);
        Ok(true)
    }

    /// Returns the index in `attributes` of the kind of an event. Returns `None` if there are too many kinds.
    fn attribute(
        &mut self,
        line: &EventLine<'_>,
        (system, name): (Option<&str>, &str),
        is_sample: bool,
    ) -> Option<usize> {
        let kind = (
            system.map(str::to_owned),
            name.to_owned(),
            is_sample && line.period.is_some(),
        );
        if let Some(index) = self.kinds.get(&kind) {
            return Some(*index);
        }
        let index = self.attributes.len();
        if index >= MOST_KINDS {
            return None;
        }
        let id = index as u16 + 1;
        let mut attribute = Attribute {
            kind: 2,
            config: id.into(),
            period_or_frequency: 0,
            is_frequency: false,
            name: Some(name.to_owned()),
            clock: Clock::Unknown,
            marks_exec: false,
            layout: SampleLayout::OF_PAGES,
        };
        if is_sample {
            let name = name.split(':').next().unwrap_or(name);
            let number = event_name::number(name);
            (attribute.kind, attribute.config) = number.unwrap_or((u32::MAX, id.into()));
            attribute.layout = SampleLayout::of_text(line.period.is_some());
            self.layouts.push(None);
        } else {
            let layout = Layout::select(system, name, line.contents);
            let format = layout.format(id, system, name);
            attribute.name = Some(match &*format.system {
                "" => name.to_owned(),
                system => format!("{system}:{name}"),
            });
            self.formats.push(format);
            self.layouts.push(Some(layout));
        }
        self.attributes.push(attribute);
        self.kinds.insert(kind, index);
        Some(index)
    }

    /// Returns the time of an event. If several events have the same printed time, their times are one nanosecond apart.
    fn time_ns(&mut self, time: Time) -> u64 {
        let (last_ns, count) = self.last;
        let count = if last_ns == time.ns {
            (count + 1).min(time.step_ns - 1)
        } else {
            0
        };
        self.last = (time.ns, count);
        time.ns.saturating_add(count)
    }

    /// Adds a line to the call chain of the last event. Returns false if the line is none of a call chain.
    fn add_frame(&mut self, line: &str) -> bool {
        let is_frame = line.starts_with([' ', '\t']) || line.starts_with("=>");
        let buffer = self.chain_cpu.and_then(|cpu| self.buffers.get_mut(&cpu));
        let Some(event) = buffer.and_then(|buffer| buffer.event.as_mut()) else {
            return is_frame;
        };
        if is_frame && event.chain.len() < LONGEST_CHAIN {
            let address = self.frames.address(process_of(event), line);
            event.chain.extend(address);
        }
        is_frame
    }

    /// Makes the record of the last event of a CPU. `event` is the next one.
    fn put(&mut self, cpu: u32, event: Option<Event>) -> io::Result<()> {
        let buffer = self.buffers.entry(cpu).or_default();
        let of_cpu = (cpu != UNKNOWN).then_some(cpu);
        if let Some(next) = &event {
            self.gaps
                .add_lost(of_cpu, next.time_ns, std::mem::take(&mut buffer.lost));
            self.gaps.see(of_cpu, next.time_ns);
        }
        let before = buffer.records.len();
        if let Some(last) = std::mem::replace(&mut buffer.event, event) {
            last.write(cpu, &mut buffer.records);
            buffer.count += 1;
            let (first_ns, last_ns) = buffer.times_ns.get_or_insert((last.time_ns, last.time_ns));
            *first_ns = (*first_ns).min(last.time_ns);
            *last_ns = (*last_ns).max(last.time_ns);
        }
        self.buffered += buffer.records.len() - before;
        if buffer.records.len() >= CHUNK {
            self.write_chunk(cpu)?;
        } else if self.buffered >= MOST_BUFFERED {
            let cpus: Vec<u32> = self.buffers.keys().copied().collect();
            cpus.into_iter().try_for_each(|cpu| self.write_chunk(cpu))?;
        }
        Ok(())
    }

    /// Writes the records of a CPU as a chunk.
    fn write_chunk(&mut self, cpu: u32) -> io::Result<()> {
        let buffer = self.buffers.entry(cpu).or_default();
        let records = std::mem::take(&mut buffer.records);
        self.buffered -= records.len();
        let (count, times_ns) = (buffer.count, buffer.times_ns.take());
        buffer.count = 0;
        let offset = self.inflated.len();
        if records.is_empty() {
            return Ok(());
        }
        if !self.inflated.add_expanded(&records)? {
            self.damage.add(Fault::Decompress, offset);
            return Ok(());
        }
        self.chunks.push(Chunk {
            cpu: (cpu != UNKNOWN).then_some(cpu),
            offset,
            bytes: records.len() as u32,
            records: count,
            first_ns: times_ns.map(|(first, _)| first),
            last_ns: times_ns.map(|(_, last)| last),
            part: Part::Inflated,
        });
        Ok(())
    }

    fn finish(mut self, source: Box<dyn Source>) -> Result<Recording, OpenError> {
        let cpus: Vec<u32> = self.buffers.keys().copied().collect();
        for cpu in cpus {
            self.put(cpu, None)?;
            self.write_chunk(cpu)?;
        }
        if self.attributes.is_empty() {
            return Err(OpenError::NoLines);
        }
        self.gaps.finish(&mut self.damage);
        let symbols = self.frames.finish(&mut self.facts);
        let by_id = (0..self.attributes.len()).map(|index| (index as u64 + 1, index));
        self.chunks.extend(self.facts.chunk());
        Ok(Recording {
            source,
            inflated: Some(FileSource::new(self.inflated.finish()?)?),
            order: ORDER,
            readers: Readers::new(&self.attributes, &self.formats, ORDER),
            attributes: self.attributes,
            formats: self.formats,
            by_id: by_id.collect(),
            system: self.system,
            build_ids: HashMap::new(),
            chunks: self.chunks,
            damage: self.damage,
            pages: None,
            facts: self.facts.bytes,
            symbols: Symbols::OfText(symbols),
            recorder: Recorder::Text,
        })
    }
}

/// Returns the process of an event. If the text does not contain it, it is the thread.
fn process_of(event: &Event) -> u32 {
    match event.ids {
        (NO_PROCESS, thread_id) => thread_id,
        (process_id, _) => process_id,
    }
}

impl Event {
    /// Appends the event as a record of perf. Its fields are those of [`SampleLayout::OF_PAGES`] or
    /// [`SampleLayout::of_text`].
    fn write(&self, cpu: u32, records: &mut Vec<u8>) {
        record::write(records, kind::SAMPLE, ORDER, |body| {
            let mut put = |number: u64| body.extend(ORDER.of_u64(number));
            put(self.attribute as u64 + 1);
            if self.data.is_none() {
                put(self.chain.first().copied().unwrap_or(0));
            }
            put(u64::from(self.ids.1) << 32 | u64::from(self.ids.0));
            put(self.time_ns);
            put(cpu.into());
            if self.data.is_none() {
                self.period.into_iter().for_each(&mut put);
            }
            put(self.chain.len() as u64);
            self.chain.iter().copied().for_each(&mut put);
            if let Some(data) = &self.data {
                body.extend(ORDER.of_u32(data.len() as u32));
                body.extend(data);
            }
        });
    }
}
