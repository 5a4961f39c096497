//! `.pftrace`: a trace for [Perfetto](https://perfetto.dev).
//!
//! Its time is the boot-time clock, which here counts from the trace's start.

mod instants;
mod packets;
mod proto;
mod scheduling;
mod states;
mod tracks;

use std::io::{BufWriter, Write};

use tables::{DiskIoView, HardFaultsView, InterruptsView, Table};

use super::modules::Modules;
use super::part::Part;
use super::roster::{Process, Roster};
use crate::cli::Failure;
use packets::Packets;
use proto::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, Clock, ClockSnapshot, DebugAnnotation, ProcessTree,
    TracePacket, TreeProcess, TreeThread,
};
use tracks::{Category, Place, Slice, Tracks};

/// The tables that it takes.
pub(crate) const TABLES: [Table; 12] = [
    Table::Processes,
    Table::Threads,
    Table::Images,
    Table::CpuRuns,
    Table::ReadyThreads,
    Table::Interrupts,
    Table::DiskIo,
    Table::HardFaults,
    Table::Focus,
    Table::ProcessFreezes,
    Table::Input,
    Table::Marks,
];

/// Writes the part, and says how many slices had no place on a track.
///
/// # Errors
/// If a table cannot be read or the file not be written.
pub(crate) fn write(part: &Part<'_>, out: impl Write) -> Result<u64, Failure> {
    let mut drawing = Drawing {
        part,
        roster: Roster::read(part)?,
        tracks: Tracks::default(),
        out: Packets::new(BufWriter::with_capacity(1 << 16, out), &Category::NAMES)?,
    };
    drawing.write_clock()?;
    drawing.write_roster()?;
    drawing.write_switches()?;
    drawing.write_wakers()?;
    drawing.write_interrupts()?;
    drawing.write_disks()?;
    drawing.write_hard_faults()?;
    drawing.write_focus()?;
    drawing.write_freezes()?;
    drawing.write_input()?;
    drawing.write_marks()?;
    drawing.out.finish()?;
    Ok(drawing.tracks.left_out)
}

/// A file under way. Its methods write a kind of thing each, and fail if its table cannot be read
/// or the file not be written.
struct Drawing<'a, W> {
    part: &'a Part<'a>,
    roster: Roster,
    tracks: Tracks,
    out: Packets<W>,
}

/// A moment on Perfetto's time line, which has none before the trace's start.
fn moment(time_ns: i64) -> u64 {
    time_ns.max(0).unsigned_abs()
}

impl<W: Write> Drawing<'_, W> {
    /// Says which time of day the trace's start was.
    fn write_clock(&mut self) -> Result<(), Failure> {
        let clock = self.part.trace().clock();
        let Ok(start) = u64::try_from(clock.to_unix_ns(clock.from_ns(0))) else {
            return Ok(());
        };
        let clocks = [(CLOCK_BOOTTIME, 0), (CLOCK_REALTIME, start)];
        let clocks = clocks.map(|(clock, timestamp)| Clock {
            clock_id: Some(clock),
            timestamp: Some(timestamp),
        });
        self.out.write(&TracePacket {
            timestamp: Some(0),
            clock_snapshot: Some(ClockSnapshot {
                clocks: clocks.into(),
                primary_trace_clock: Some(CLOCK_BOOTTIME),
            }),
            ..TracePacket::default()
        })?;
        Ok(())
    }

    /// Names processes and threads. Those whose id another had before get one of their own, for
    /// Perfetto takes all that have one id for the same.
    fn write_roster(&mut self) -> Result<(), Failure> {
        let processes = self.roster.processes.iter().filter(|p| p.process_id != 0);
        let processes = processes.map(|process| TreeProcess {
            pid: Some(process.unique_id as i32),
            ppid: Some(process.parent_id as i32),
            // Perfetto takes the first of several words for the name, whatever is in it.
            cmdline: vec![
                renamed(&process.name, process.process_id, process.unique_id),
                arguments(process).to_owned(),
            ],
            process_start_from_boot: process.start_ns.map(moment),
        });
        let threads = self.roster.threads.iter().filter(|t| t.thread_id != 0);
        let threads = threads.map(|thread| {
            let process = thread.process_row.map(|row| &self.roster.processes[row]);
            let name = thread.name.as_deref().unwrap_or_default();
            let name = renamed(name, thread.thread_id, thread.unique_id);
            TreeThread {
                tid: Some(thread.unique_id as i32),
                name: Some(name).filter(|name| !name.is_empty()),
                tgid: Some(process.map_or(thread.process_id, |process| process.unique_id) as i32),
            }
        });
        self.out.write(&TracePacket {
            timestamp: Some(0),
            process_tree: Some(ProcessTree {
                processes: processes.collect(),
                threads: threads.collect(),
            }),
            ..TracePacket::default()
        })?;
        Ok(())
    }

    fn write_interrupts(&mut self) -> Result<(), Failure> {
        let modules = Modules::read(self.part)?;
        let columns = ["start_ns", "end_ns", "cpu", "kind", "routine", "image_row"];
        for batch in self.part.rows(Table::Interrupts, &columns)? {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            let mut slices = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                // One that began nobody knows when has no place on a time line.
                let Some(start_ns) = view.start_ns.get(row) else {
                    continue;
                };
                let kind = view.kind.get(row).unwrap_or_default();
                let routine = modules.place(view.image_row.get(row), view.routine[row]);
                slices.push(Slice {
                    place: match kind {
                        "threaded_dpc" | "passive_isr" => Place::InterruptThreads(view.cpu[row]),
                        _ => Place::Interrupts(view.cpu[row]),
                    },
                    category: Category::Interrupt,
                    name: self.out.name(&format!("{kind} {routine}"))?,
                    start_ns: moment(start_ns),
                    end_ns: moment(view.end_ns[row]),
                    details: Vec::new(),
                });
            }
            self.tracks.write(slices, &mut self.out)?;
        }
        Ok(())
    }

    fn write_disks(&mut self) -> Result<(), Failure> {
        let columns = [
            "init_ns",
            "kind",
            "disk",
            "offset_bytes",
            "size_bytes",
            "thread_row",
            "path",
        ];
        for batch in self.part.rows(Table::DiskIo, &columns)? {
            let batch = batch?;
            let view = DiskIoView::new(&batch)?;
            let mut slices = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                let Some(init_ns) = view.init_ns.get(row) else {
                    continue;
                };
                let kind = view.kind.get(row).unwrap_or_default();
                let process = view.thread_row.get(row);
                let process = process.and_then(|row| self.roster.process_of(row));
                let details = [
                    process.map(|process| text("process", &process.name)),
                    view.path.get(row).map(|path| text("path", path)),
                    view.offset_bytes.get(row).map(|n| number("offset", n)),
                    view.size_bytes.get(row).map(|n| number("bytes", n.into())),
                ];
                slices.push(Slice {
                    place: Place::Disk(view.disk[row]),
                    category: Category::Disk,
                    name: self.out.name(kind)?,
                    start_ns: moment(init_ns),
                    end_ns: moment(view.time_ns[row]),
                    details: details.into_iter().flatten().collect(),
                });
            }
            self.tracks.write(slices, &mut self.out)?;
        }
        Ok(())
    }

    fn write_hard_faults(&mut self) -> Result<(), Failure> {
        for batch in self
            .part
            .rows(Table::HardFaults, &["start_ns", "thread_row"])?
        {
            let batch = batch?;
            let view = HardFaultsView::new(&batch)?;
            let mut slices = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                let thread_row = view.thread_row.get(row);
                let thread = thread_row.and_then(|row| self.roster.threads.get(row as usize));
                let process = thread_row.and_then(|row| self.roster.process_of(row));
                let (Some(start_ns), Some(thread), Some(process)) =
                    (view.start_ns.get(row), thread, process)
                else {
                    continue;
                };
                slices.push(Slice {
                    place: Place::Thread(process.unique_id, thread.unique_id),
                    category: Category::Memory,
                    name: self.out.name("hard fault")?,
                    start_ns: moment(start_ns),
                    end_ns: moment(view.time_ns[row]),
                    details: Vec::new(),
                });
            }
            self.tracks.write(slices, &mut self.out)?;
        }
        Ok(())
    }
}

/// A name with the id that Windows gave, where the file has another.
fn renamed(name: &str, id: u32, unique_id: u32) -> String {
    match (id == unique_id, name) {
        (true, name) => name.to_owned(),
        (false, "") => format!("[id {id}]"),
        (false, name) => format!("{name} [id {id}]"),
    }
}

/// What follows the program in a command line.
fn arguments(process: &Process) -> &str {
    let line = process.command_line.as_deref().unwrap_or_default().trim();
    let rest = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"'),
        None => line.split_once(char::is_whitespace),
    };
    rest.map_or("", |(_, rest)| rest.trim_start())
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value.to_owned()),
        ..DebugAnnotation::default()
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    }
}
