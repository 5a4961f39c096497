//! Context switches and wakes, in the form in which Perfetto reads events of Windows.

use std::collections::BTreeMap;
use std::io::Write;

use tables::{CpuRunsView, ReadyThreadsView, Table};

use super::packets::Packets;
use super::proto::{CSwitch, EtwTraceEvent, EtwTraceEventBundle, ReadyThread, TracePacket};
use super::{Drawing, moment};
use crate::Error;

// States of threads follow, coded as `KTHREAD_STATE`. Perfetto has names for the states up to
// `DEFERRED_READY`.

const WAITING: i32 = 5;
const DEFERRED_READY: i32 = 7;
const GATE_WAIT: i32 = 8;
const WAITING_FOR_PROCESS_IN_SWAP: i32 = 9;

/// Maximum number of events in a packet.
const BUNDLE: usize = 512;

/// Thread of a CPU's previous run, and its state at the end of the run.
struct Before {
    thread_id: u32,
    priority: Option<i8>,
    state: Option<u8>,
    wait_reason: Option<u8>,
    wait_mode: Option<u8>,
}

impl<W: Write> Drawing<'_, W> {
    /// Writes a context switch at the start of each CPU run. The switches are made from runs instead of the recorded
    /// events, for two reasons. First, runs name the thread that really ran, even if the scheduler changed its
    /// decision. Second, the first run of a CPU starts with the trace, before the first recorded switch of the CPU.
    pub(super) fn write_switches(&mut self) -> Result<(), Error> {
        let columns = [
            "start_ns",
            "cpu",
            "thread_id",
            "thread_row",
            "priority",
            "priority_out",
            "state_out",
            "wait_reason_out",
            "wait_mode_out",
        ];
        let mut before: BTreeMap<u16, Before> = BTreeMap::new();
        let mut bundles = Bundles::default();
        for batch in self.part.rows(Table::CpuRuns, &columns)? {
            let batch = batch?;
            let runs = CpuRunsView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let cpu = runs.cpu[row];
                let thread_id = self
                    .roster
                    .unique_thread_id(runs.thread_row.get(row), runs.thread_id[row]);
                let now = Before {
                    thread_id,
                    priority: runs.priority_out.get(row),
                    state: runs.state_out.get(row),
                    wait_reason: runs.wait_reason_out.get(row),
                    wait_mode: runs.wait_mode_out.get(row),
                };
                // The previous thread of a CPU's first switch in the file is unknown.
                let left = before.insert(cpu, now);
                let left = left.as_ref();
                let state = left.and_then(|left| left.state).map(i32::from);
                let (named, numbered) = match state {
                    Some(GATE_WAIT | WAITING_FOR_PROCESS_IN_SWAP) => (Some(WAITING), None),
                    Some(0..=DEFERRED_READY) => (state, None),
                    _ => (None, state),
                };
                let switch = CSwitch {
                    new_thread_id: Some(thread_id),
                    old_thread_id: Some(left.map_or(0, |left| left.thread_id)),
                    new_thread_priority: runs.priority.get(row).map(i32::from),
                    old_thread_priority: left.and_then(|left| left.priority).map(i32::from),
                    old_thread_state: named,
                    old_thread_state_int: numbered,
                    old_thread_wait_reason_int: left
                        .and_then(|left| left.wait_reason)
                        .map(i32::from),
                    old_thread_wait_mode_int: left.and_then(|left| left.wait_mode).map(i32::from),
                };
                let event = EtwTraceEvent {
                    timestamp: Some(moment(runs.start_ns[row])),
                    c_switch: Some(switch),
                    ..EtwTraceEvent::default()
                };
                bundles.add(cpu, event, &mut self.out)?;
            }
        }
        bundles.finish(&mut self.out)
    }

    /// Writes the events that wake a thread. If a DPC wakes a thread, no waking thread is written,
    /// because the DPC interrupted an unrelated thread.
    pub(super) fn write_wakers(&mut self) -> Result<(), Error> {
        let columns = [
            "cpu",
            "thread_id",
            "thread_row",
            "readying_thread_id",
            "readying_thread_row",
            "adjust_reason",
            "adjust_increment",
            "by_dpc",
            "kernel_stack_not_resident",
            "process_out_of_memory",
        ];
        let mut bundles = Bundles::default();
        for batch in self.part.rows(Table::ReadyThreads, &columns)? {
            let batch = batch?;
            let readied = ReadyThreadsView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let by_dpc = readied.by_dpc.get(row) == Some(true);
                let flags = [
                    by_dpc,
                    readied.kernel_stack_not_resident.get(row) == Some(true),
                    readied.process_out_of_memory.get(row) == Some(true),
                ];
                let flags = (0..).zip(flags).map(|(bit, flag)| i32::from(flag) << bit);
                let waker = readied.readying_thread_id.get(row).filter(|_| !by_dpc);
                let waker_row = readied.readying_thread_row.get(row);
                let thread_row = readied.thread_row.get(row);
                let thread_id = readied.thread_id[row];
                let event = EtwTraceEvent {
                    timestamp: Some(moment(readied.time_ns[row])),
                    ready_thread: Some(ReadyThread {
                        t_thread_id: Some(self.roster.unique_thread_id(thread_row, thread_id)),
                        adjust_increment: readied.adjust_increment.get(row).map(Into::into),
                        adjust_reason_int: readied.adjust_reason.get(row).map(Into::into),
                        flag_int: Some(flags.sum()),
                    }),
                    thread_id: waker.map(|id| self.roster.unique_thread_id(waker_row, id)),
                    ..EtwTraceEvent::default()
                };
                bundles.add(readied.cpu[row], event, &mut self.out)?;
            }
        }
        bundles.finish(&mut self.out)
    }
}

/// Events of each CPU that are collected for the next packet of this CPU.
#[derive(Default)]
struct Bundles(BTreeMap<u16, Vec<EtwTraceEvent>>);

impl Bundles {
    fn add<W: Write>(
        &mut self,
        cpu: u16,
        event: EtwTraceEvent,
        out: &mut Packets<W>,
    ) -> Result<(), Error> {
        let bundle = self.0.entry(cpu).or_default();
        bundle.push(event);
        if bundle.len() == BUNDLE {
            write_bundle(cpu, std::mem::take(bundle), out)?;
        }
        Ok(())
    }

    fn finish<W: Write>(self, out: &mut Packets<W>) -> Result<(), Error> {
        for (cpu, bundle) in self.0 {
            if !bundle.is_empty() {
                write_bundle(cpu, bundle, out)?;
            }
        }
        Ok(())
    }
}

fn write_bundle<W: Write>(
    cpu: u16,
    event: Vec<EtwTraceEvent>,
    out: &mut Packets<W>,
) -> Result<(), Error> {
    let packet = TracePacket {
        timestamp: event.first().and_then(|event| event.timestamp),
        etw_events: Some(EtwTraceEventBundle {
            cpu: Some(cpu.into()),
            event,
        }),
        ..TracePacket::default()
    };
    Ok(out.write(&packet)?)
}
