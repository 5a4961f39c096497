//! Rows of events of a recording of Linux.

use std::num::NonZeroU64;

use events::Decoded;
use linux::{
    Chunk, Event, EventKind, Meaning, Recording, Request, SwitchedThread, ThreadState, Tracepoint,
    Woken,
};
use rayon::prelude::*;
use tables::import::{Progress, RawRows, ReaderSet, RowSource, SLACK_NS, ends_of_slices};
use tables::{
    BlockEvent, Cancelled, Change, EventPlace, Events, FutexCall, PriorityKind, ReadyEvent,
    ReclaimEvent, Shortage, Stage, Switch, Table, TimerEvent, TimerStart, kind_of_request,
};

use crate::proc_facts::ProcFacts;
use crate::recording::{cpu_of, origin_ns, time_since};
use crate::routines::Routines;
use crate::sampling::{SampleMeaning, Sampling};
use crate::whole::Presence;
use crate::{LinuxDecoder, states};

/// Maximum time from a call that waits to the moment when its thread leaves the CPU, in nanoseconds. Recorded calls take 2
/// to 40 µs. A call that returned at once can be followed by another wait.
const CALL_NS: i64 = 100_000;

/// Reader of a recording in slices of time, with all CPUs in parallel.
pub(crate) struct RowsOfChunks<'r> {
    recording: &'r Recording,
    origin_ns: u64,
    rules: Rules<'r>,
    cpus: Vec<Cpu<'r>>,
    /// Ends of the remaining slices. The latest end comes first.
    ends: Vec<i64>,
}

/// Rules that decide to which tables an event belongs.
struct Rules<'r> {
    facts: &'r ProcFacts,
    decoder: LinuxDecoder<'r>,
    sampling: Sampling,
    wanted: ReaderSet,
    presence: Presence,
}

/// Chunks of a CPU, with the rows that were read but are not yet part of a slice.
struct Cpu<'r> {
    /// Number of the CPU. `None` stands for the samples of a recording whose records have no CPU.
    number: Option<u16>,
    /// Chunks in time order. Each has the time of its first event, in nanoseconds since the start of the recording.
    chunks: Vec<(i64, &'r Chunk)>,
    /// Index of the next chunk.
    next: usize,
    routines: Routines,
    /// Number of the idle state that the CPU entered last, since the last switch to the idle thread.
    idle_state: Option<u8>,
    /// Thread that the last switch started.
    started: Option<u32>,
    /// A thread that runs on the CPU although the last switch started the idle thread. So the switch to this thread is
    /// missing. The values are the thread id and the time of the first event that shows the thread.
    seen: Option<(u32, i64)>,
    /// Last call of futex on the CPU, if it waits: its thread, its time in nanoseconds, and the call.
    call: Option<(u32, i64, FutexCall)>,
    raw: RawRows,
    last_ns: i64,
}

impl<'r> RowsOfChunks<'r> {
    pub(crate) fn new(
        recording: &'r Recording,
        facts: &'r ProcFacts,
        wanted: ReaderSet,
        presence: Presence,
    ) -> RowsOfChunks<'r> {
        let origin_ns = origin_ns(recording);
        let mut cpus: Vec<Cpu<'r>> = Vec::new();
        for chunk in recording.chunks() {
            let number = cpu_of(chunk);
            let Some(first_ns) = chunk.first_ns else {
                continue;
            };
            let first_ns = i64::try_from(first_ns - origin_ns).unwrap_or(i64::MAX);
            let at = cpus.binary_search_by_key(&number, |cpu| cpu.number);
            let at = at.unwrap_or_else(|at| {
                let new = Cpu {
                    number,
                    chunks: Vec::new(),
                    next: 0,
                    routines: Routines::default(),
                    idle_state: None,
                    started: None,
                    seen: None,
                    call: None,
                    raw: RawRows::default(),
                    last_ns: 0,
                };
                cpus.insert(at, new);
                at
            });
            cpus[at].chunks.push((first_ns, chunk));
        }
        for cpu in &mut cpus {
            cpu.chunks
                .sort_by_key(|(first_ns, chunk)| (*first_ns, chunk.offset));
        }
        let chunks = cpus.iter().flat_map(|cpu| &cpu.chunks);
        let mut ends = ends_of_slices(chunks.map(|(first, chunk)| (*first, chunk.bytes)).collect());
        ends.reverse();
        RowsOfChunks {
            recording,
            origin_ns,
            rules: Rules {
                facts,
                decoder: LinuxDecoder::new(recording),
                sampling: Sampling::new(recording),
                wanted,
                presence,
            },
            cpus,
            ends,
        }
    }
}

impl RowSource for RowsOfChunks<'_> {
    fn next(&mut self, progress: &Progress<'_>) -> Result<Option<(i64, RawRows)>, Cancelled> {
        let Some(end_ns) = self.ends.pop() else {
            return Ok(None);
        };
        let (recording, origin_ns, rules) = (self.recording, self.origin_ns, &self.rules);
        self.cpus.par_iter_mut().try_for_each(|cpu| {
            while let Some((first_ns, chunk)) = cpu.chunks.get(cpu.next).copied()
                && first_ns.saturating_sub(SLACK_NS) < end_ns
            {
                cpu.next += 1;
                // The first pass has already reported the faults of the chunk.
                let _ = recording.read(chunk, &mut |event| {
                    cpu.add(time_since(origin_ns, event), event, rules);
                });
                if !progress(chunk.bytes.into()) {
                    return Err(Cancelled);
                }
            }
            Ok(())
        })?;
        let raw = self.cpus.iter_mut().map(|cpu| &mut cpu.raw).collect();
        Ok(Some((end_ns, RawRows::take(raw, end_ns))))
    }

    fn last_ns(&self) -> i64 {
        self.cpus.iter().map(|cpu| cpu.last_ns).max().unwrap_or(0)
    }
}

impl Cpu<'_> {
    fn add(&mut self, time_ns: i64, event: &Event<'_>, rules: &Rules<'_>) {
        let wanted = rules.wanted;
        let tracepoint = match &event.kind {
            EventKind::Tracepoint { tracepoint, .. } => tracepoint,
            EventKind::Sample { .. } => return self.add_sample(time_ns, event, rules),
            _ => return,
        };
        // perf and trace-cmd write the CPU of every tracepoint.
        let Some(cpu) = self.number else {
            return;
        };
        self.last_ns = self.last_ns.max(time_ns);
        // The offset gives the order of events at the same time, because a CPU writes its records in order.
        let place = EventPlace {
            segment: 0,
            buffer_offset: event.offset,
            offset: 0,
        };
        if wanted.has_table(Table::Interrupts) {
            let rows = &mut self.raw.interrupts;
            self.routines.add(cpu, time_ns, tracepoint, rows);
        }
        let seen_for_ns = self.see(time_ns, event.thread_id, tracepoint, rules.presence);
        let is_wake = match tracepoint.meaning {
            Meaning::WakeupNew(_) => true,
            // The other events report the same wakes again.
            Meaning::Waking(_) => rules.presence.has_waking,
            Meaning::Wakeup(_) => !rules.presence.has_waking,
            _ => false,
        };
        let idle_state = self.see_idle_state(&tracepoint.meaning);
        match tracepoint.meaning {
            Meaning::Switch(switch) if wanted.has_table(Table::ContextSwitches) => {
                let switch = Switch {
                    futex: self.last_call(time_ns, &switch),
                    seen_for_ns,
                    previous_c_state: idle_state,
                    ..switch_of((cpu, place), &switch)
                };
                self.raw.context_switches.0.push((time_ns, switch));
            }
            Meaning::Waking(woken) | Meaning::Wakeup(woken) | Meaning::WakeupNew(woken)
                if is_wake && wanted.has_table(Table::ReadyThreads) =>
            {
                let readied = readied(cpu, place, tracepoint, &woken);
                self.raw.ready_threads.0.push((time_ns, readied));
            }
            Meaning::Futex {
                address,
                operation,
                value,
            } => {
                let thread_id = tracepoint.thread_id;
                let call = FutexCall::new(address, operation, value);
                self.call = call.map(|call| (thread_id, time_ns, call));
                if wanted.has_table(Table::FutexWaits) {
                    let rows = &mut self.raw.futex_waits;
                    rows.push((time_ns, cpu), thread_id, address, operation, value);
                }
            }
            Meaning::TimerExpires {
                function,
                timer,
                now_ns,
            } => {
                if wanted.has_table(Table::LimitPeriods)
                    && let Some(kind) = rules.facts.limits.get(&function)
                {
                    let rows = &mut self.raw.limit_periods;
                    rows.time_ns.push(time_ns);
                    rows.cpu.push(cpu);
                    rows.kind.0.push(*kind);
                }
                if wanted.has_table(Table::SlackTimers) {
                    let event = TimerEvent::Expires(timer, now_ns);
                    self.raw.slack_timers.0.push((time_ns, event));
                }
            }
            _ => add_tracepoint(&mut self.raw, (time_ns, cpu), event, tracepoint, wanted),
        }
        if wanted.has_table(Table::Events)
            && is_generic(&tracepoint.meaning)
            && !is_wake
            && let Some(decoded) = rules.decoder.decode(event)
        {
            let id = event.attribute().and_then(|it| rules.decoder.id(it));
            let by = (Some(tracepoint.thread_id), event.process_id);
            push_event(&mut self.raw.events, (time_ns, cpu), &decoded, id, by);
        }
    }

    /// Adds the row of an event that is not a tracepoint.
    fn add_sample(&mut self, time_ns: i64, event: &Event<'_>, rules: &Rules<'_>) {
        let EventKind::Sample {
            attribute,
            ip,
            address,
            period,
            ..
        } = event.kind
        else {
            return;
        };
        let Some(thread_id) = event.thread_id else {
            return;
        };
        self.last_ns = self.last_ns.max(time_ns);
        let (place, wanted) = ((time_ns, self.number), rules.wanted);
        match rules.sampling.sampled(attribute) {
            SampleMeaning::Code(weight) if wanted.has_table(Table::Samples) => {
                if let Some(ip) = ip {
                    let weight_ns = weight.weigh(period);
                    let rows = &mut self.raw.samples;
                    rows.push_of_linux(place, thread_id, ip, weight_ns);
                }
            }
            SampleMeaning::HardFault if wanted.has_table(Table::HardFaults) => {
                if let Some(address) = address {
                    let rows = &mut self.raw.hard_faults;
                    rows.end(time_ns, self.number, thread_id, address);
                }
            }
            _ => {}
        }
    }

    /// Returns the call with which the thread that leaves the CPU may wait. Forgets the call if the thread waits.
    fn last_call(&mut self, time_ns: i64, switch: &linux::Switch<'_>) -> Option<FutexCall> {
        let is_of_switch = |(thread_id, ..): &mut (u32, i64, FutexCall)| {
            *thread_id == switch.previous.thread_id && switch.previous_state != ThreadState::Ready
        };
        let (_, at_ns, call) = self.call.take_if(is_of_switch)?;
        (time_ns.saturating_sub(at_ns) <= CALL_NS).then_some(call)
    }

    /// Updates `idle_state`. If the event is a switch from the idle thread, returns the idle state of the CPU before it.
    fn see_idle_state(&mut self, meaning: &Meaning<'_>) -> Option<u8> {
        match meaning {
            Meaning::Idle(Some(state)) => {
                self.idle_state = u8::try_from(*state).ok();
                None
            }
            Meaning::Switch(switch) => {
                let state = self.idle_state.take();
                state.filter(|_| switch.previous.thread_id == 0)
            }
            _ => None,
        }
    }

    /// Updates `started` and `seen`. Returns a time only if the event is a switch and the switch to the stopping thread
    /// is missing. The time is the number of nanoseconds since the first event that shows this thread on the CPU.
    fn see(
        &mut self,
        time_ns: i64,
        thread_id: Option<u32>,
        tracepoint: &Tracepoint<'_>,
        presence: Presence,
    ) -> Option<NonZeroU64> {
        if let Meaning::Switch(switch) = tracepoint.meaning {
            let started = self.started.replace(switch.next.thread_id);
            let stopped = switch.previous.thread_id;
            let Some((_, since_ns)) = self.seen.take().filter(|(seen, _)| *seen == stopped) else {
                // If the thread had run for long, a tick of the timer would have shown it.
                let is_short = presence.has_ticks && started == Some(0) && stopped != 0;
                return NonZeroU64::new(1).filter(|_| is_short);
            };
            return NonZeroU64::new(time_ns.abs_diff(since_ns).max(1));
        }
        let thread_id = thread_id.filter(|thread| *thread != 0)?;
        if self.started == Some(0) && self.seen.is_none_or(|(seen, _)| seen != thread_id) {
            self.seen = Some((thread_id, time_ns));
        }
        None
    }
}

/// Returns true if a tracepoint belongs to the table `events`, because no other table has the tracepoint.
fn is_generic(meaning: &Meaning<'_>) -> bool {
    matches!(
        meaning,
        Meaning::Other
            | Meaning::Wakeup(_)
            | Meaning::Exec { .. }
            | Meaning::Idle(_)
            | Meaning::TimerStarts { .. }
            | Meaning::TimerExpires { .. }
            | Meaning::Futex { .. }
            | Meaning::CgroupFrozen { .. }
            | Meaning::CgroupAttached { .. }
    )
}

/// Adds the row of a tracepoint about disks, memory or priorities.
fn add_tracepoint(
    raw: &mut RawRows,
    place: (i64, u16),
    event: &Event<'_>,
    tracepoint: &Tracepoint<'_>,
    wanted: ReaderSet,
) {
    let by = Some(tracepoint.thread_id);
    match tracepoint.meaning {
        Meaning::DiskQueued(request) if wanted.has_table(Table::DiskIo) => {
            add_request(raw, place, by, Stage::Queued, &request);
        }
        Meaning::DiskIssued(request) if wanted.has_table(Table::DiskIo) => {
            add_request(raw, place, by, Stage::Issued, &request);
        }
        Meaning::DiskCompleted(request) if wanted.has_table(Table::DiskIo) => {
            add_request(raw, place, by, Stage::Completed, &request);
        }
        Meaning::PageFault { address } if wanted.has_table(Table::HardFaults) => {
            if let Some(thread_id) = event.thread_id {
                raw.hard_faults.begin(place.0, thread_id, address);
            }
        }
        Meaning::Reclaim {
            is_of_cgroup,
            pages,
        } if wanted.has_table(Table::MemoryReclaims) => {
            let event = ReclaimEvent {
                cpu: place.1,
                thread_id: tracepoint.thread_id,
                kind: if is_of_cgroup {
                    Shortage::Cgroup
                } else {
                    Shortage::Machine
                },
                pages,
            };
            raw.memory_reclaims.0.push((place.0, event));
        }
        Meaning::TimerStarts {
            timer,
            due_ns,
            latest_ns,
        } if wanted.has_table(Table::SlackTimers) => {
            let started = TimerStart {
                due_ns,
                slack_ns: latest_ns.saturating_sub(due_ns),
                cpu: place.1,
                thread_id: tracepoint.thread_id,
            };
            let event = TimerEvent::Starts(timer, started);
            raw.slack_timers.0.push((place.0, event));
        }
        Meaning::Migrate {
            thread_id,
            priority,
            from,
            to,
        } if wanted.has_table(Table::Priorities) => {
            let change = Change {
                thread_id,
                new_priority: Some(priority_of(priority)),
                old_cpu: u16::try_from(from).ok(),
                new_cpu: u16::try_from(to).ok(),
                ..Change::default()
            };
            (raw.priorities).push(PriorityKind::Migration, &change, place, by);
        }
        Meaning::Inherit {
            thread_id,
            from,
            to,
        } if wanted.has_table(Table::Priorities) => {
            let change = Change {
                thread_id,
                old_priority: Some(priority_of(from)),
                new_priority: Some(priority_of(to)),
                ..Change::default()
            };
            (raw.priorities).push(PriorityKind::Priority, &change, place, by);
        }
        _ => {}
    }
}

fn add_request(
    raw: &mut RawRows,
    (time_ns, cpu): (i64, u16),
    thread_id: Option<u32>,
    stage: Stage,
    request: &Request<'_>,
) {
    if let Some(kind) = kind_of_request(request.kind, request.sectors) {
        let event = BlockEvent {
            cpu,
            thread_id,
            stage,
            device: request.device,
            sector: request.sector,
            sectors: request.sectors,
            kind,
        };
        raw.disk_io.block.0.push((time_ns, event));
    }
}

fn readied(
    cpu: u16,
    place: EventPlace,
    tracepoint: &Tracepoint<'_>,
    woken: &Woken<'_>,
) -> ReadyEvent {
    ReadyEvent {
        cpu,
        place,
        thread_id: woken.thread_id,
        recorded_by: Some(tracepoint.thread_id),
        by_dpc: tracepoint.in_interrupt || tracepoint.in_softirq,
        of_windows: None,
    }
}

/// Adds an event, except for the columns that refer to other tables.
fn push_event(
    rows: &mut Events,
    (time_ns, cpu): (i64, u16),
    decoded: &Decoded<'_>,
    id: Option<u16>,
    (thread_id, process_id): (Option<u32>, Option<u32>),
) {
    rows.time_ns.push(time_ns);
    rows.cpu.push(cpu);
    rows.provider.push(decoded.identity.provider.as_deref());
    rows.event.push(decoded.identity.name.as_deref());
    rows.id.push(id);
    rows.thread_id.push(thread_id);
    rows.process_id.push(process_id);
    let has_fields = !decoded.fields.values.is_empty();
    let fields = has_fields.then(|| serde_json::to_string(&decoded.fields));
    rows.fields.push(fields.and_then(Result::ok).as_deref());
    // The cast is safe, because records are shorter than 64 KiB.
    rows.undescribed_bytes
        .push(decoded.fields.tail.len() as u32);
}

/// Converts a switch into the columns that Windows and Linux share.
fn switch_of((cpu, place): (u16, EventPlace), switch: &linux::Switch<'_>) -> Switch {
    let (previous, next) = (&switch.previous, &switch.next);
    let (old_state, reason) = states::codes(switch.previous_state);
    Switch {
        cpu,
        place,
        new_thread_id: next.thread_id,
        old_thread_id: previous.thread_id,
        new_priority: priority_of(next.priority),
        old_priority: priority_of(previous.priority),
        new_nice: nice_of(next),
        old_nice: nice_of(previous),
        old_state,
        old_wait_reason: reason,
        ..Switch::default()
    }
}

/// Returns the nice value of a thread; `None` if it is an idle thread or not a fair thread.
fn nice_of(thread: &SwitchedThread<'_>) -> Option<i8> {
    let is_fair = thread.thread_id != 0 && (100..140).contains(&thread.priority);
    is_fair.then(|| (thread.priority - 120) as i8)
}

/// Converts the priority in an event to a priority in the tables.
///
/// * In the tables, a thread with a higher number runs first: 0 is a fair thread, 1 to 99 is a real-time thread, and
///   100 is a deadline thread.
/// * In the event, a thread with a lower number runs first: 98 to 0 is a real-time thread, and −1 is a deadline thread.
fn priority_of(priority: i32) -> i8 {
    match priority {
        ..0 => 100,
        priority @ 0..99 => 99 - priority as i8,
        _ => 0,
    }
}
