//! `.pftrace`: trace for [Perfetto](https://perfetto.dev).
//!
//! Times are on Perfetto's clock BOOTTIME, the default clock of the format. In these files, this clock is 0 at the start
//! of the trace, not at boot.

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
use crate::Error;
use packets::Packets;
use proto::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, Clock, ClockSnapshot, DebugAnnotation, ProcessTree,
    TracePacket, TreeProcess, TreeThread,
};
use tracks::{Category, Place, Slice, Tracks};

/// Tables that the export needs.
pub const TABLES: [Table; 12] = [
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

/// Writes the part as a Perfetto trace. Returns the number of slices that are left out because no track has
/// room for them.
///
/// # Errors
/// Returns an error if a table cannot be read or the file cannot be written.
pub fn write(part: &Part<'_>, out: impl Write) -> Result<u64, Error> {
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

/// An export in progress. Each method writes one kind of content, and fails if its table cannot be
/// read or the file cannot be written.
struct Drawing<'a, W> {
    part: &'a Part<'a>,
    roster: Roster,
    tracks: Tracks,
    out: Packets<W>,
}

/// Converts a time to Perfetto's time line, which starts with the trace.
fn moment(time_ns: i64) -> u64 {
    time_ns.max(0).unsigned_abs()
}

impl<W: Write> Drawing<'_, W> {
    /// Writes the time of day of the trace's start.
    fn write_clock(&mut self) -> Result<(), Error> {
        let start = self.part.start_unix_ns();
        let Some(start) = start.and_then(|start| u64::try_from(start).ok()) else {
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

    /// Writes the ids and names of processes and threads. Perfetto identifies processes and threads by id. So
    /// an id that occurs again is replaced by a unique id.
    fn write_roster(&mut self) -> Result<(), Error> {
        let processes = self.roster.processes.iter().filter(|p| p.process_id != 0);
        let processes = processes.map(|process| TreeProcess {
            pid: Some(process.unique_id as i32),
            ppid: Some(process.parent_id as i32),
            // Perfetto uses the first argument as the name.
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

    fn write_interrupts(&mut self) -> Result<(), Error> {
        let modules = Modules::read(self.part)?;
        let columns = ["start_ns", "end_ns", "cpu", "kind", "routine", "image_row"];
        for batch in self.part.rows(Table::Interrupts, &columns)? {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            let mut slices = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                // A routine without a known start cannot be placed on the time line.
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

    fn write_disks(&mut self) -> Result<(), Error> {
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

    fn write_hard_faults(&mut self) -> Result<(), Error> {
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

/// Returns the name. If the file uses a different id than Windows, the id in Windows is appended to the name.
fn renamed(name: &str, id: u32, unique_id: u32) -> String {
    match (id == unique_id, name) {
        (true, name) => name.to_owned(),
        (false, "") => format!("[id {id}]"),
        (false, name) => format!("{name} [id {id}]"),
    }
}

/// Returns the arguments of a process's command line, without the program.
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
