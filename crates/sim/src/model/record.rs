//! Reports of the model's changes to the log and to the truth.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use rules::flow::Flow as Tuple;

use super::build::SYSTEM;
use super::disk::{Purpose, Transfer};
use super::interrupt::{Kind, Work};
use super::lives::SYSTEM_THREAD;
use super::network::Delivery;
use super::thread::State;
use super::{BodyId, Due, IDLE, Model, ProcessId, Readier, ThreadId};
use crate::frame::{Frame, Transport};
use crate::log::{
    ContextSwitch, Direction, DiskAction, DiskRequest, Dpc, DpcKind, EventKind, HardFault, Isr,
    NewThread, OldThread, ReadyThread, Sample, Stack, Traffic, Who,
};
use crate::scenario::WaitReason;
use crate::time::Time;
use crate::truth::{ReadyWait, RoutineKey, Wait, WaitCause};

/// Nominal clock tick in nanoseconds. A thread's wait time is logged in this unit.
const TICK_NS: u64 = 15_625_000;

/// Maximum number of bytes that the log keeps of a captured packet.
const SNAP: usize = 128;

const OUR_MAC: [u8; 6] = [0x02, 0x1A, 0x61, 0x00, 0x00, 0x01];
const ROUTER_MAC: [u8; 6] = [0x02, 0x1A, 0x61, 0x00, 0x00, 0xFE];

/// Power state S3 (sleeping), coded as `SYSTEM_POWER_STATE`.
const SLEEPING: u32 = 4;

impl<W: Write + Seek> Model<W> {
    // Threads.

    pub(crate) fn who(&self, t: ThreadId) -> Who {
        let thread = &self.threads[t];
        Who {
            process: self.processes[thread.process].id,
            thread: thread.id,
        }
    }

    /// Returns the stack of one part of a processor's current work.
    fn stack(&self, c: usize, body: BodyId, part: usize) -> Option<Stack> {
        Some(Stack {
            who: self.who(self.cpus[c].thread),
            frames: self.bodies[body].parts.get(part)?.stack,
        })
    }

    pub(crate) fn log_switch(
        &mut self,
        c: usize,
        new: ThreadId,
        old: ThreadId,
        reason: WaitReason,
    ) {
        let c_state = self.cpus[c].c_state;
        let old_rank = self.rank(old);
        let (to, from) = (&self.threads[new], &self.threads[old]);
        let waited = match to.waiting_since {
            0 => 0,
            since => self.base.ns_between(since, self.now) / TICK_NS,
        };
        let switch = ContextSwitch {
            new: NewThread {
                thread: to.id,
                priority: to.priority,
                decrement: to.foreground_boost | to.unusual_boost << 4,
                qos: 0,
            },
            old: OldThread {
                thread: from.id,
                priority: from.priority,
                rank: old_rank,
                wait_reason: if old == IDLE { 0 } else { reason as u8 },
                user_wait: old != IDLE && from.process != SYSTEM && reason.is_wait(),
                state: if old == IDLE {
                    State::Running as u8
                } else {
                    from.state as u8
                },
                ideal_processor: from.ideal as u16,
                qos: 0,
            },
            old_remaining_quantum: (self.base.cycles(from.quantum) / 1024)
                .clamp(i64::from(i32::MIN), i64::from(i32::MAX))
                as i32,
            new_wait_ticks: waited as u32,
            c_state,
        };
        let stack = match new {
            IDLE => None,
            _ => Some(Stack {
                who: self.who(new),
                frames: self.bodies[to.body].parts[0].stack,
            }),
        };
        self.log.context_switch(c as u16, self.now, &switch, stack);
        if old != IDLE && from.watched {
            let (priority, process) = (from.priority, from.process);
            let gap = self.truth.gaps.entry(process).or_default();
            gap.running = gap.running.saturating_sub(1);
            gap.since = self.now;
            let watched = self.truth.watched.entry(old).or_default();
            *watched.ranks.entry(old_rank).or_default() += 1;
            *watched.priorities.entry(priority).or_default() += 1;
        }
    }

    pub(crate) fn log_ready(&mut self, t: ThreadId, boost: u8, paged_out: bool, by: Readier) {
        let ready = ReadyThread {
            thread: self.threads[t].id,
            adjust_reason: 1,
            adjust_increment: boost as i8,
            in_dpc: by.in_dpc,
            stack_not_resident: paged_out,
            process_not_resident: false,
            direct_switch: false,
        };
        let stack = self.stack(by.cpu, by.body, 0);
        self.log
            .ready_thread(by.cpu as u16, self.now, &ready, stack);
    }

    pub(crate) fn log_priority(&mut self, c: usize, t: ThreadId, old: u8, new: u8) {
        let id = self.threads[t].id;
        let stack = self.stack(c, self.readier(c).body, 0);
        self.log
            .set_priority(c as u16, self.now, id, old, new, stack);
    }

    pub(crate) fn log_starvation_boost(&mut self, c: usize, t: ThreadId) {
        let thread = &self.threads[t];
        let (id, priority) = (thread.id, thread.priority);
        let on = thread.last_cpu as u16;
        self.log
            .anti_starvation(c as u16, self.now, id, on, priority);
    }

    pub(crate) fn log_hard_fault(&mut self, c: usize, began: Time, bytes: u32, file: u32) {
        let t = self.cpus[c].thread;
        let fault = HardFault {
            began,
            thread: self.threads[t].id,
            address: 0x1F_0000_0000 + u64::from(file) * 0x100_0000,
            file: self.file_key(file),
            offset: 0,
            bytes,
        };
        let stack = self.stack(c, self.threads[t].body, 0);
        self.log.hard_fault(c as u16, self.now, &fault, stack);
        self.truth.hard_faults += 1;
    }

    /// Logs a sample of the processor's current work.
    pub(crate) fn sample(&mut self, c: usize) {
        if let Some(interval) = self.sampling {
            self.agenda
                .push(self.now + interval + drift(interval), Due::Sample(c as u16));
        }
        self.advance(c);
        let cpu = &self.cpus[c];
        let t = cpu.thread;
        let thread = &self.threads[t];
        let (body, part, kind) = match cpu.running.last() {
            Some(work) => (work.body, work.part(), Some(work.kind)),
            None => (thread.body, 0, None),
        };
        let sample = Sample {
            address: (self.bodies[body].parts)
                .get(part)
                .map_or(0, |site| site.address),
            thread: thread.id,
            in_dpc: matches!(kind, Some(Kind::Dpc | Kind::TimerDpc)),
            in_isr: kind.is_some_and(Kind::is_isr),
            priority: thread.priority,
            rank: self.rank(t),
        };
        let process = thread.process;
        let is_idle = t == IDLE && kind.is_none();
        let stack = if is_idle {
            None
        } else {
            self.stack(c, body, part)
        };
        self.log.sample(c as u16, self.now, &sample, stack);
        match t {
            IDLE => self.truth.idle_samples += 1,
            _ => self.truth.samples[process] += 1,
        }
    }

    // Interrupts.

    pub(crate) fn log_routine(&mut self, c: usize, work: &Work) {
        let routine = self.routines[work.routine];
        let cpu = c as u16;
        let began = work.began;
        let isr = |vector, message| Isr {
            began,
            routine,
            vector,
            message,
            claimed: true,
        };
        let dpc = |kind| Dpc {
            kind,
            began,
            routine,
        };
        match work.kind {
            Kind::Clock => {}
            Kind::LineIsr(vector) => self.log.isr(cpu, self.now, &isr(vector, None)),
            Kind::MessageIsr(vector, message) => {
                self.log.isr(cpu, self.now, &isr(vector, Some(message)));
            }
            Kind::Dpc => self.log.dpc(cpu, self.now, &dpc(DpcKind::Regular)),
            Kind::TimerDpc => self.log.dpc(cpu, self.now, &dpc(DpcKind::Timer)),
            Kind::ThreadedDpc => self.log.dpc(cpu, self.now, &dpc(DpcKind::Threaded)),
        }
    }

    pub(crate) fn truth_routine(&mut self, c: usize, work: &Work) {
        let kind = match work.kind {
            Kind::Clock => return,
            Kind::LineIsr(_) | Kind::MessageIsr(..) => "isr",
            Kind::Dpc => "dpc",
            Kind::TimerDpc => "timer_dpc",
            Kind::ThreadedDpc => "threaded_dpc",
        };
        let inclusive = self.base.ns_between(work.began, self.now);
        let exclusive = work.exclusive_ns(self.now, self.base);
        let parts = self.bodies[work.body].parts.len();
        for window in &mut self.truth.windows {
            if (window.from..window.to).contains(&self.now) {
                let takes = window.parts.entry((kind, work.body)).or_default();
                takes.resize(parts, 0);
                for (sum, part) in takes.iter_mut().zip(work.parts(parts)) {
                    *sum += part;
                }
                let key = RoutineKey {
                    kind,
                    routine: work.routine,
                    cpu: c,
                };
                let sums = window.routines.entry(key).or_default();
                sums.add(inclusive, exclusive, work.fragments);
            }
        }
    }

    // Disks.

    fn file_key(&self, file: u32) -> u64 {
        match file.checked_sub(1) {
            Some(at) => self.file_keys[at as usize],
            None => 0,
        }
    }

    fn request(&self, disk: usize, transfer: &Transfer) -> DiskRequest {
        let by = match transfer.purpose {
            Purpose::Thread(t) => self.who(t),
            // A thread of the System process reads the stack from the page file.
            Purpose::Stack(_) => Who {
                process: self.processes[SYSTEM].id,
                thread: SYSTEM_THREAD,
            },
        };
        DiskRequest {
            action: transfer.action,
            disk: self.disks[disk].number,
            irp: 0xFFFF_B000_0000_0000 + transfer.id * 0x200,
            by,
            bytes: transfer.bytes,
            offset: transfer.offset,
            file: self.file_key(transfer.file),
            is_paging: transfer.paging,
            priority: 3,
        }
    }

    pub(crate) fn log_disk_init(&mut self, c: usize, disk: usize, transfer: &Transfer) {
        let request = self.request(disk, transfer);
        let stack = match transfer.purpose {
            Purpose::Thread(t) => self.stack(c, self.threads[t].body, 0),
            Purpose::Stack(_) => None,
        };
        self.log.disk_start(c as u16, self.now, &request, stack);
    }

    pub(crate) fn log_disk(&mut self, c: usize, disk: usize, transfer: &Transfer) {
        let request = self.request(disk, transfer);
        self.log
            .disk_end(c as u16, self.now, &request, transfer.asked);
    }

    pub(crate) fn truth_disk(&mut self, disk: usize, transfer: &Transfer) {
        let sums = &mut self.truth.disks[disk];
        let bytes = u64::from(transfer.bytes);
        let (count, moved) = match transfer.action {
            DiskAction::Write => (&mut sums.writes, &mut sums.written_bytes),
            DiskAction::Read => (&mut sums.reads, &mut sums.read_bytes),
            DiskAction::Flush => return,
        };
        *count += 1;
        *moved += bytes;
        sums.response_ns += self.base.ns_between(transfer.asked, self.now);
    }

    // The network.

    pub(crate) fn log_received(&mut self, c: usize, delivery: &Delivery) {
        let each = delivery.bytes / delivery.packets.max(1);
        let flow = &mut self.flows[delivery.flow];
        let first = flow.sequence;
        flow.sequence = first.wrapping_add(delivery.bytes);
        if self.log.records(EventKind::Packet) {
            for packet in 0..delivery.packets {
                let sequence = first.wrapping_add(packet * each);
                self.log_packet(
                    c,
                    delivery.flow,
                    delivery.peer,
                    Direction::Receive,
                    each,
                    sequence,
                );
            }
        }
        self.log_traffic(
            c,
            delivery.flow,
            delivery.peer,
            Direction::Receive,
            delivery.bytes,
        );
    }

    pub(crate) fn truth_received(&mut self, c: usize, delivery: &Delivery) {
        let sums = &mut self.truth.flows[delivery.flow];
        sums.received += u64::from(delivery.packets);
        sums.received_bytes += u64::from(delivery.bytes);
        *sums.by_cpu.entry(c).or_default() += u64::from(delivery.packets);
    }

    pub(crate) fn log_sent(&mut self, c: usize, flow: usize, bytes: u32) {
        let state = &mut self.flows[flow];
        let sequence = state.sequence;
        state.sequence = sequence.wrapping_add(bytes);
        if self.log.records(EventKind::Packet) {
            self.log_packet(c, flow, 0, Direction::Send, bytes, sequence);
        }
        self.log_traffic(c, flow, 0, Direction::Send, bytes);
    }

    pub(crate) fn truth_sent(&mut self, flow: usize, bytes: u32) {
        let dscp = self.flows[flow].dscp_on_wire();
        let sums = &mut self.truth.flows[flow];
        sums.sent += 1;
        sums.sent_bytes += u64::from(bytes);
        *sums.sent_dscp.entry(dscp).or_default() += 1;
    }

    pub(crate) fn truth_lost(&mut self, flow: usize, packets: u32) {
        self.truth.flows[flow].lost += u64::from(packets);
    }

    fn log_traffic(&mut self, c: usize, flow: usize, peer: u32, direction: Direction, bytes: u32) {
        let state = &self.flows[flow];
        let traffic = Traffic {
            tcp: state.tcp,
            direction,
            process: self.processes[state.process].id,
            bytes,
            local: state.local,
            remote: state.peer(peer),
            sequence: state.sequence,
            connection: if state.tcp {
                0xFFFF_C000_0000_0000 + flow as u64 * 0x1000
            } else {
                0
            },
        };
        self.log.traffic(c as u16, self.now, &traffic);
    }

    fn log_packet(
        &mut self,
        c: usize,
        flow: usize,
        peer: u32,
        direction: Direction,
        bytes: u32,
        sequence: u32,
    ) {
        let state = &self.flows[flow];
        let (us, them) = (state.local, state.peer(peer));
        let (from, to, source_mac, destination_mac, dscp) = match direction {
            Direction::Send => (us, them, OUR_MAC, ROUTER_MAC, state.dscp_on_wire()),
            // Received packets have no DSCP mark, because most networks remove it.
            Direction::Receive => (them, us, ROUTER_MAC, OUR_MAC, 0),
        };
        // Both addresses are of one family, because the scenario was checked. So this cannot fail.
        let Ok(tuple) = Tuple::new(from, to) else {
            return;
        };
        let frame = Frame {
            source_mac,
            destination_mac,
            flow: tuple,
            transport: if state.tcp {
                Transport::Tcp {
                    sequence,
                    acknowledgment: 1,
                }
            } else {
                Transport::Udp
            },
            dscp,
            ecn: 0,
            payload: bytes as usize,
        };
        let nic = state.nic;
        let by = match direction {
            Direction::Send => self.who(self.cpus[c].thread),
            Direction::Receive => Who {
                process: 0,
                thread: 0,
            },
        };
        let mut bytes = std::mem::take(&mut self.frame);
        if frame.write(SNAP, &mut bytes).is_ok() {
            self.log
                .packet(c as u16, self.now, by, nic as u32 + 1, direction, &bytes);
        }
        self.frame = bytes;
    }

    // Users and the system.

    pub(crate) fn log_mark(&mut self, c: usize, text: &str) {
        self.log.mark(c as u16, self.now, text);
    }

    pub(crate) fn log_key(&mut self, c: usize, code: u32) {
        let by = self.who(self.cpus[c].thread);
        self.log
            .key_down(c as u16, self.now, by, code, &format!("{code}"));
    }

    pub(crate) fn log_focus(&mut self, c: usize, old: ProcessId, new: ProcessId) {
        let by = self.who(self.cpus[c].thread);
        // The idle process has no session. If it gets the focus, the event has the session of the
        // process that loses the focus.
        let session_of = |process: ProcessId| self.labels.processes[process].session;
        let session = match session_of(new) {
            u32::MAX => session_of(old),
            session => session,
        };
        let (old, new) = (self.processes[old].id, self.processes[new].id);
        self.log.focus(c as u16, self.now, by, session, old, new);
    }

    pub(crate) fn log_freeze(&mut self, c: usize, process: ProcessId, frozen: bool) {
        let by = self.who(self.cpus[c].thread);
        let id = self.processes[process].id;
        self.log.freeze(c as u16, self.now, by, id, frozen);
    }

    pub(crate) fn log_resolution(
        &mut self,
        c: usize,
        process: ProcessId,
        resolution: Option<u32>,
        ignored: bool,
    ) {
        let by = self.who(self.cpus[c].thread);
        let path = nt_path(&self.processes[process].name);
        let cpu = c as u16;
        let units = resolution.unwrap_or(0);
        self.log
            .timer_request(cpu, self.now, by, &path, units, ignored);
        self.log_period(c);
    }

    /// Logs the new period of clock interrupts.
    pub(crate) fn log_period(&mut self, c: usize) {
        let by = self.who(self.cpus[c].thread);
        let period = self.clock.hardware_period();
        self.log.timer_resolution(c as u16, self.now, by, period);
    }

    pub(crate) fn log_power(&mut self, c: usize, sleeps: bool) {
        let by = self.who(self.cpus[c].thread);
        if sleeps {
            self.log.sleep(c as u16, self.now, by, SLEEPING)
        } else {
            self.log.resume(c as u16, self.now, by, SLEEPING)
        }
    }

    // Waits of watched threads.

    /// Records the end of a watched thread's wait in the truth.
    pub(crate) fn truth_waited(&mut self, t: ThreadId, by: Readier) {
        let thread = &self.threads[t];
        if thread.switches == 0 {
            return;
        }
        let readied_by = match (by.in_dpc, self.cpus[by.cpu].thread) {
            (true, _) | (_, IDLE) => None,
            (false, t) => Some(self.threads[t].id),
        };
        let wait = Wait {
            reason: thread.wait_reason,
            from: thread.waiting_since,
            to: self.now,
            readied_by,
        };
        self.truth.watched.entry(t).or_default().waited(wait);
    }

    pub(crate) fn truth_ready(&mut self, t: ThreadId) {
        self.truth.waiting.push(ReadyWait {
            thread: t,
            readied: self.now,
            ran: self.now,
            rank: 0,
            priority: 0,
            held: BTreeMap::new(),
        });
        self.accounted = self.now;
    }

    pub(crate) fn truth_ran(&mut self, t: ThreadId) {
        let process = self.threads[t].process;
        let gap = self.truth.gaps.entry(process).or_default();
        gap.end_at(self.now);
        gap.running += 1;
        let Some(at) = self.truth.waiting.iter().position(|wait| wait.thread == t) else {
            return;
        };
        let mut wait = self.truth.waiting.swap_remove(at);
        wait.ran = self.now;
        wait.rank = self.rank(t);
        wait.priority = self.threads[t].priority;
        self.truth.watched.entry(t).or_default().add(wait);
    }

    /// Attributes the time since the last call, up to `time`, to causes. For each watched ready thread and each
    /// processor of its affinity, the time belongs to the cause that keeps the thread from running on this processor.
    pub(crate) fn account(&mut self, time: Time) {
        let from = std::mem::replace(&mut self.accounted, time);
        if self.truth.waiting.is_empty() {
            return;
        }
        let passed = time - from;
        let mut waiting = std::mem::take(&mut self.truth.waiting);
        for wait in &mut waiting {
            for c in self.threads[wait.thread].affinity.iter() {
                let by = self.held_by(wait.thread, c);
                *wait.held.entry(by).or_default() += passed;
            }
        }
        self.truth.waiting = waiting;
    }

    /// Returns the cause that now keeps a ready thread from running on a processor.
    fn held_by(&self, t: ThreadId, c: usize) -> WaitCause {
        let cpu = &self.cpus[c];
        if self.suspended_until.is_some() {
            return WaitCause::Suspended;
        }
        if self.threads[t].state == State::Transition {
            return WaitCause::StackPagedOut;
        }
        if let Some(work) = cpu.running.last() {
            return if work.kind.is_isr() {
                WaitCause::Isr
            } else {
                WaitCause::Dpc
            };
        }
        if cpu.thread == IDLE {
            return WaitCause::Idle;
        }
        let (ours, theirs) = (self.rank(t), self.rank(cpu.thread));
        let (mine, other) = (self.threads[t].priority, self.threads[cpu.thread].priority);
        if theirs < ours && other <= mine {
            WaitCause::Rank
        } else if theirs > ours {
            WaitCause::Dispatcher
        } else if other > mine {
            WaitCause::Priority
        } else if other == mine {
            WaitCause::EqualPriority
        } else {
            WaitCause::Dispatcher
        }
    }
}

/// Returns the amount by which the time between two samples exceeds the nominal interval: 0.13 %.
/// The profiling interrupt has its own clock. Samples therefore do not stay in step with work that
/// repeats at round intervals.
fn drift(interval: Time) -> Time {
    interval * 13 / 10_000 + 1
}

/// Returns the NT path of a file, as the kernel logs it.
pub(crate) fn nt_path(path: &str) -> String {
    match path.strip_prefix("C:") {
        Some(rest) => format!(r"\Device\HarddiskVolume3{rest}"),
        None => path.to_owned(),
    }
}
