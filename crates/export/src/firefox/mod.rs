//! `.json`: profile for the [Firefox Profiler](https://profiler.firefox.com).
//!
//! Processes and threads of the trace become processes and threads of the profile. Windows' idle
//! threads become threads of a process `Idle`, one for each CPU. DPCs and service routines become
//! markers on these threads.

mod cpu_time;
mod libraries;
mod markers;
mod threads;

use std::io::{BufWriter, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerTiming, Profile,
    ReferenceTimestamp, SamplingInterval, Timestamp,
};
use tables::{DiskIoView, HardFaultsView, InterruptsView, SamplesView, StacksView, Table};
use wording::JsonText;

use super::modules::Modules;
use super::part::Part;
use super::roster::Roster;
use crate::Error;
use cpu_time::CpuTime;
use libraries::Libraries;
use markers::{Fault, Request, Routine};
use threads::{Threads, Who};

/// Tables that the export needs.
pub const TABLES: [Table; 9] = [
    Table::Processes,
    Table::Threads,
    Table::Images,
    Table::CpuRuns,
    Table::Samples,
    Table::Stacks,
    Table::Interrupts,
    Table::DiskIo,
    Table::HardFaults,
];

/// Default interval of the profile timer, for traces that do not record it.
const USUAL_INTERVAL_NS: u64 = 1_000_000;

/// Writes the part as a profile. The format needs all data before the first byte, so the profile is built in
/// memory.
///
/// # Errors
/// Returns an error if a table cannot be read or the file cannot be written.
pub fn write(part: &Part<'_>, out: impl Write) -> Result<(), Error> {
    let start = part.start_unix_ns().unwrap_or(0) as f64 / 1e6;
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(start);
    let interval = SamplingInterval::from_nanos(USUAL_INTERVAL_NS);
    let mut profile = Profile::new("laglab", start, interval);
    profile.set_os_name("Windows");
    let roster = Roster::read(part)?;
    let mut threads = Threads::new(&roster, &mut profile);
    add_samples(part, &roster, &mut threads, &mut profile)?;
    add_interrupts(part, &mut threads, &mut profile)?;
    add_disk_io(part, &mut threads, &mut profile)?;
    add_hard_faults(part, &mut threads, &mut profile)?;
    let mut out = JsonText::new(BufWriter::with_capacity(1 << 16, out));
    serde_json::to_writer(&mut out, &profile).map_err(std::io::Error::from)?;
    out.flush()?;
    Ok(())
}

/// Converts a time to the profile's time line, which starts with the trace.
fn moment(time_ns: i64) -> Timestamp {
    Timestamp::from_nanos_since_reference(time_ns.max(0).unsigned_abs())
}

/// Categories of the profile. A category is the kind of code that a sample shows.
struct Categories {
    user: CategoryHandle,
    kernel: CategoryHandle,
    dpc: CategoryHandle,
    isr: CategoryHandle,
    idle: CategoryHandle,
}

impl Categories {
    fn new(profile: &mut Profile) -> Categories {
        Categories {
            user: profile.add_category("User", CategoryColor::Yellow),
            kernel: profile.add_category("Kernel", CategoryColor::Orange),
            dpc: profile.add_category("DPC", CategoryColor::Red),
            isr: profile.add_category("Interrupt", CategoryColor::Magenta),
            // The profiler recognises this name and shows no activity for it.
            idle: profile.add_category("Idle", CategoryColor::Transparent),
        }
    }
}

fn add_samples(
    part: &Part<'_>,
    roster: &Roster,
    threads: &mut Threads<'_>,
    profile: &mut Profile,
) -> Result<(), Error> {
    let categories = Categories::new(profile);
    let stacks = Stacks::read(part)?;
    let mut libraries = Libraries::read(part, roster, profile)?;
    let mut cpu_time = CpuTime::new(part)?;
    let mut interval_is_known = false;
    let columns = [
        "time_ns",
        "cpu",
        "address",
        "thread_id",
        "thread_row",
        "weight_ns",
        "stack_id",
        "count",
        "in_dpc",
        "in_isr",
    ];
    for batch in part.rows(Table::Samples, &columns)? {
        let batch = batch?;
        let samples = SamplesView::new(&batch)?;
        for row in 0..batch.num_rows() {
            let (time_ns, cpu) = (samples.time_ns[row], samples.cpu.get(row));
            libraries.advance(time_ns, threads, profile);
            let who = Who::new(samples.thread_id[row], samples.thread_row.get(row), cpu);
            let weight_ns = samples.weight_ns.get(row).filter(|ns| *ns > 0);
            if let (false, Some(ns)) = (interval_is_known, weight_ns) {
                profile.set_interval(SamplingInterval::from_nanos(ns.unsigned_abs()));
                interval_is_known = true;
            }
            let in_isr = samples.in_isr.get(row) == Some(true);
            let in_dpc = samples.in_dpc.get(row) == Some(true);
            let is_idle = matches!(who, Who::Cpu(_)) && !in_isr && !in_dpc;
            let spent_ns = match (is_idle, who) {
                (true, _) => Some(0),
                // The CPU runs of idle threads exclude interrupts, so the weight of the sample is
                // used instead.
                (false, Who::Cpu(_)) => weight_ns,
                (false, _) => match cpu {
                    Some(cpu) => cpu_time.since_asked(who, cpu, time_ns)?.or(weight_ns),
                    None => weight_ns,
                },
            };
            let thread = threads.handle(who, profile);
            let category = |address: u64| match address >> 63 {
                _ if is_idle => categories.idle,
                0 => categories.user,
                _ if in_isr => categories.isr,
                _ if in_dpc => categories.dpc,
                _ => categories.kernel,
            };
            let frame = |frame: Frame, address: u64| FrameInfo {
                frame,
                category_pair: category(address).into(),
                flags: FrameFlags::empty(),
            };
            let address = samples.address[row];
            let stack = samples.stack_id.get(row);
            let callers = stack.map_or(&[][..], |id| stacks.callers(id, address));
            // The profiler expects the outermost call first.
            let frames = callers
                .iter()
                .rev()
                .map(|caller| frame(Frame::ReturnAddress(*caller), *caller))
                .chain([frame(Frame::InstructionPointer(address), address)]);
            let stack = profile.intern_stack_frames(thread, frames);
            let spent = CpuDelta::from_nanos(spent_ns.unwrap_or(0).max(0).unsigned_abs());
            let count = i32::from(samples.count[row]);
            profile.add_sample(thread, moment(time_ns), stack, spent, count);
        }
    }
    Ok(())
}

fn add_interrupts(
    part: &Part<'_>,
    threads: &mut Threads<'_>,
    profile: &mut Profile,
) -> Result<(), Error> {
    let modules = Modules::read(part)?;
    let columns = ["start_ns", "end_ns", "cpu", "kind", "routine", "image_row"];
    for batch in part.rows(Table::Interrupts, &columns)? {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..batch.num_rows() {
            let Some(start_ns) = view.start_ns.get(row) else {
                continue;
            };
            let thread = threads.handle(Who::Cpu(view.cpu[row]), profile);
            let place = modules.place(view.image_row.get(row), view.routine[row]);
            let routine = Routine {
                kind: profile.intern_string(view.kind.get(row).unwrap_or_default()),
                routine: profile.intern_string(&place),
            };
            profile.add_marker(thread, interval(start_ns, view.end_ns[row]), routine);
        }
    }
    Ok(())
}

fn add_disk_io(
    part: &Part<'_>,
    threads: &mut Threads<'_>,
    profile: &mut Profile,
) -> Result<(), Error> {
    let columns = [
        "init_ns",
        "cpu",
        "kind",
        "disk",
        "size_bytes",
        "thread_id",
        "thread_row",
        "path",
    ];
    for batch in part.rows(Table::DiskIo, &columns)? {
        let batch = batch?;
        let view = DiskIoView::new(&batch)?;
        for row in 0..batch.num_rows() {
            let (Some(init_ns), Some(thread_id)) = (view.init_ns.get(row), view.thread_id.get(row))
            else {
                continue;
            };
            let who = Who::new(thread_id, view.thread_row.get(row), view.cpu[row]);
            let thread = threads.handle(who, profile);
            let request = Request {
                kind: profile.intern_string(view.kind.get(row).unwrap_or_default()),
                path: profile.intern_string(view.path.get(row).unwrap_or_default()),
                disk: view.disk[row],
                bytes: view.size_bytes.get(row).unwrap_or(0),
            };
            profile.add_marker(thread, interval(init_ns, view.time_ns[row]), request);
        }
    }
    Ok(())
}

fn add_hard_faults(
    part: &Part<'_>,
    threads: &mut Threads<'_>,
    profile: &mut Profile,
) -> Result<(), Error> {
    let columns = ["start_ns", "cpu", "thread_id", "thread_row"];
    for batch in part.rows(Table::HardFaults, &columns)? {
        let batch = batch?;
        let view = HardFaultsView::new(&batch)?;
        for row in 0..batch.num_rows() {
            let Some(start_ns) = view.start_ns.get(row) else {
                continue;
            };
            let who = Who::new(
                view.thread_id[row],
                view.thread_row.get(row),
                view.cpu.get(row),
            );
            let thread = threads.handle(who, profile);
            profile.add_marker(thread, interval(start_ns, view.time_ns[row]), Fault);
        }
    }
    Ok(())
}

fn interval(start_ns: i64, end_ns: i64) -> MarkerTiming {
    MarkerTiming::Interval(moment(start_ns), moment(end_ns.max(start_ns)))
}

/// Stacks of a trace.
struct Stacks {
    addresses: Vec<u64>,
    /// End of each stack in `addresses`.
    ends: Vec<usize>,
}

impl Stacks {
    fn read(part: &Part<'_>) -> Result<Stacks, Error> {
        let mut stacks = Stacks {
            addresses: Vec::new(),
            ends: Vec::new(),
        };
        for batch in part.rows(Table::Stacks, &["addresses"])? {
            let batch = batch?;
            let view = StacksView::new(&batch)?;
            for row in 0..batch.num_rows() {
                stacks.addresses.extend_from_slice(view.addresses.get(row));
                stacks.ends.push(stacks.addresses.len());
            }
        }
        Ok(stacks)
    }

    /// Returns the callers of a sampled address in a stack, innermost first.
    fn callers(&self, stack_id: u32, address: u64) -> &[u64] {
        let id = stack_id as usize;
        let Some(end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        match &self.addresses[start..*end] {
            // A stack usually begins with the sampled address, which is not a caller.
            [first, callers @ ..] if *first == address => callers,
            callers => callers,
        }
    }
}
