//! Tables of Linux recordings that are made from the whole recording, such as `cpus`, `event_kinds` and `damage`.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use linux::{Chunk, Clock, Damage, Event, EventKind, Fault, Faults, GapKind, Recording};
use tables::import::{Activity, Plan, activity_by_cpu};
use tables::{
    Cpus, Damages, EventFormat, EventKinds, OperatingSystem, RecordingInfo, SessionHeader,
    Sessions, SystemConfig, Table, Tables,
};

use crate::LinuxDecoder;
use crate::proc_facts::ProcFacts;
use crate::recording::{MAX_CPUS, cpu_of, known_cpu, length_ns, origin_ns, start_unix_ns};

/// Counts of events by kind, activity of CPUs, and faults. They belong to a chunk or to several chunks.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Counts of each kind of event, by the index of the kind in [`Recording::attributes`].
    kinds: BTreeMap<usize, Kind>,
    cpus: BTreeMap<u16, Activity>,
    /// Activity in the chunk that is being read.
    activity: Activity,
    damage: Damage,
}

/// Number, size and times of the events of a kind.
#[derive(Clone, Copy, Debug)]
struct Kind {
    first_ns: i64,
    last_ns: i64,
    events: u64,
    bytes: u64,
    /// Sizes of the smallest and the largest payload, in bytes.
    payload: (u32, u32),
    /// Number of events with a call chain.
    chains: u64,
    /// Offset of the first event, in bytes.
    offset: u64,
}

impl Kind {
    fn merge(&mut self, other: Kind) {
        if other.first_ns < self.first_ns {
            (self.first_ns, self.offset) = (other.first_ns, other.offset);
        }
        self.last_ns = self.last_ns.max(other.last_ns);
        self.events += other.events;
        self.bytes += other.bytes;
        self.payload.0 = self.payload.0.min(other.payload.0);
        self.payload.1 = self.payload.1.max(other.payload.1);
        self.chains += other.chains;
    }
}

impl Counts {
    pub(crate) fn add(&mut self, time_ns: i64, event: &Event<'_>) {
        if event.time_ns.is_some() {
            self.activity.add(time_ns);
        }
        let (attribute, payload, chain) = match &event.kind {
            EventKind::Tracepoint {
                attribute,
                tracepoint,
                chain,
            } => (*attribute, tracepoint.data.len(), chain),
            EventKind::Sample {
                attribute, chain, ..
            } => (*attribute, 0, chain),
            _ => return,
        };
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        let one = Kind {
            first_ns: time_ns,
            last_ns: time_ns,
            events: 1,
            bytes: event.bytes.into(),
            payload: (payload, payload),
            chains: u64::from(chain.addresses().next().is_some()),
            offset: event.offset,
        };
        let kind = self.kinds.entry(attribute);
        kind.and_modify(|kind| kind.merge(one)).or_insert(one);
    }

    /// Adds the activity and the faults of a chunk that was read. `read` is the result of [`Recording::read`].
    pub(crate) fn end(&mut self, chunk: &Chunk, read: io::Result<Damage>) {
        let mut activity = std::mem::take(&mut self.activity);
        activity.end_buffer();
        if let Some(cpu) = cpu_of(chunk) {
            self.cpus.entry(cpu).or_default().merge(activity);
        }
        match read {
            Ok(damage) => self.damage.merge(&damage),
            Err(_) => {
                let (count, offset) = (chunk.records.into(), chunk.offset);
                (self.damage).merge_faults(Fault::CutOff, Faults { count, offset });
            }
        }
    }

    /// Adds the counts of another chunk.
    pub(crate) fn merge(&mut self, other: Counts) {
        for (attribute, found) in other.kinds {
            let kind = self.kinds.entry(attribute);
            kind.and_modify(|kind| kind.merge(found)).or_insert(found);
        }
        for (cpu, activity) in other.cpus {
            self.cpus.entry(cpu).or_default().merge(activity);
        }
        self.damage.merge(&other.damage);
    }

    /// Adds the faults that were found when the recording was opened.
    pub(crate) fn add_damage(&mut self, recording: &Recording) {
        self.damage.merge(recording.damage());
    }

    /// Returns which of the kernel's events the recording has.
    pub(crate) fn presence(&self, recording: &Recording) -> Presence {
        let count = |tracepoint: &str| -> u64 {
            let of_name = self.kinds.iter().filter(|(index, _)| {
                let format = recording.format_of(&recording.attributes()[**index]);
                format.is_some_and(|format| format.name == tracepoint)
            });
            of_name.map(|(_, kind)| kind.events).sum()
        };
        Presence {
            has_waking: 2 * count("sched_waking") >= count("sched_wakeup"),
            has_ticks: count("local_timer_entry") + count("hrtimer_expire_entry") > 0,
        }
    }
}

/// Events of the kernel that a recording has or lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// True if the wakes are `sched_waking` events, and not `sched_wakeup` events. The kernel logs `sched_waking` before
    /// each `sched_wakeup`, so a few of them mean that others are missing.
    pub(crate) has_waking: bool,
    /// True if the recording has the ticks of the timer, which expire every 1 to 10 ms on a CPU that is not idle.
    pub(crate) has_ticks: bool,
}

/// Fills the requested tables about the whole recording.
pub(crate) fn fill(
    tables: &mut Tables,
    info: &RecordingInfo,
    recording: &Recording,
    facts: &ProcFacts,
    counts: &Counts,
    plan: Plan,
) {
    let is_wanted = |table| plan.first.has_table(table);
    let file = info
        .files
        .first()
        .map_or("", |file| tables::file_name(file));
    if is_wanted(Table::Sessions) {
        tables.sessions = Sessions::from_info(info);
        let lost = u32::try_from(counts.damage.lost_events).ok();
        tables.sessions.events_lost = std::iter::once(lost).collect();
    }
    if is_wanted(Table::Cpus) {
        tables.cpus = cpus(recording, facts, counts);
    }
    if is_wanted(Table::SystemConfig) {
        tables.system_config = system_config(recording);
    }
    if is_wanted(Table::EventKinds) {
        tables.event_kinds = event_kinds(file, recording, counts);
    }
    if is_wanted(Table::Damages) {
        tables.damages = damages(file, recording, counts);
    }
}

/// Returns the facts about the session that recorded.
pub(crate) fn session(recording: &Recording) -> SessionHeader {
    let system = recording.system();
    let length_ns = length_ns(recording);
    let start_unix_ns = start_unix_ns(recording);
    let attributes = recording.attributes();
    SessionHeader {
        name: recording.recorder().name().to_owned(),
        end_ns: Some(length_ns),
        start_unix_ns,
        end_unix_ns: start_unix_ns.and_then(|start| start.checked_add(length_ns)),
        system: Some(OperatingSystem::Linux),
        os_version: system.os_release.clone(),
        processors: system.cpus_online,
        clock: attributes.first().and_then(|it| clock_name(it.clock)),
        clock_hz: Some(1_000_000_000),
        events_lost: u32::try_from(recording.damage().lost_events).ok(),
        ..SessionHeader::default()
    }
}

/// Returns the name of a clock. Returns `None` if the clock is unknown.
fn clock_name(clock: Clock) -> Option<&'static str> {
    match clock {
        Clock::Scheduler => Some("sched_clock"),
        Clock::Monotonic => Some("CLOCK_MONOTONIC"),
        Clock::MonotonicRaw => Some("CLOCK_MONOTONIC_RAW"),
        Clock::Boot => Some("CLOCK_BOOTTIME"),
        Clock::Other(_) => Some("other"),
        Clock::Unknown => None,
    }
}

fn cpus(recording: &Recording, facts: &ProcFacts, counts: &Counts) -> Cpus {
    let streams = counts.cpus.iter().map(|(cpu, activity)| (*cpu, activity));
    let activities = activity_by_cpu(streams);
    let online = recording.system().cpus_online.unwrap_or(0);
    let online = 0..online.min(MAX_CPUS) as u16;
    let mut numbers: Vec<u16> = online.chain(activities.keys().copied()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut rows = Cpus::default();
    for cpu in numbers {
        let activity = activities.get(&cpu);
        rows.first_seen_ns.push(0);
        rows.cpu.push(cpu);
        rows.model
            .push(recording.system().cpu_description.as_deref());
        rows.has_events.push(activity.is_some());
        rows.events.push(activity.map_or(0, |it| it.events));
        rows.first_event_ns.push(activity.map(|it| it.first_ns));
        rows.last_event_ns.push(activity.map(|it| it.last_ns));
        rows.longest_gap_ns
            .push(activity.map(|it| it.longest_gap_ns));
        rows.longest_gap_start_ns
            .push(activity.map(|it| it.longest_gap_start_ns));
        let stolen = facts.stolen(cpu);
        rows.stolen_ns.push(stolen.map(|it| it.ns));
        rows.stolen_within_ns.push(stolen.map(|it| it.within_ns));
    }
    rows
}

fn system_config(recording: &Recording) -> SystemConfig {
    let system = recording.system();
    let command_line = system.command_line.as_ref().map(|line| line.join(" "));
    let memory = system.memory_kib.map(|kib| kib.saturating_mul(1024));
    let number = |number: Option<u64>| (number.map(|number| number.to_string()), number);
    let text = |text: Option<&String>| (text.cloned(), None);
    let mut rows = SystemConfig::default();
    for (item, key, (value, value_number)) in [
        ("System", "KernelRelease", text(system.os_release.as_ref())),
        ("System", "HostName", text(system.host_name.as_ref())),
        ("System", "Architecture", text(system.architecture.as_ref())),
        ("CPU", "Model", text(system.cpu_description.as_ref())),
        ("CPU", "Online", number(system.cpus_online.map(u64::from))),
        (
            "CPU",
            "Available",
            number(system.cpus_available.map(u64::from)),
        ),
        ("Memory", "Bytes", number(memory)),
        (
            "Recorder",
            "Version",
            text(system.recorder_version.as_ref()),
        ),
        ("Recorder", "CommandLine", text(command_line.as_ref())),
    ] {
        let Some(value) = value else {
            continue;
        };
        rows.time_ns.push(0);
        rows.item.push(Some(item));
        rows.number.push(0);
        rows.key.push(Some(key));
        rows.value.push(Some(&value));
        rows.value_number.push(value_number);
    }
    rows
}

fn event_kinds(file: &str, recording: &Recording, counts: &Counts) -> EventKinds {
    let mut rows = EventKinds::default();
    let mut kinds: Vec<_> = counts.kinds.iter().collect();
    kinds.sort_by_key(|(_, kind)| kind.first_ns);
    let decoder = LinuxDecoder::new(recording);
    for (index, kind) in kinds {
        let attribute = &recording.attributes()[*index];
        let identity = decoder.identity(*index);
        rows.first_ns.push(kind.first_ns);
        rows.last_ns.push(kind.last_ns);
        rows.format.0.push(if attribute.is_tracepoint() {
            EventFormat::Tracepoint
        } else {
            EventFormat::PerfEvent
        });
        rows.header.push(Some(recording.recorder().event_form()));
        rows.provider.push(identity.provider.as_deref());
        rows.event.push(identity.name.as_deref());
        rows.id.push(decoder.id(*index));
        rows.count.push(kind.events);
        rows.size_bytes.push(kind.bytes);
        rows.least_payload_bytes.push(kind.payload.0);
        rows.greatest_payload_bytes.push(kind.payload.1);
        rows.stacks.push(kind.chains);
        rows.file.push(Some(file));
        rows.buffer_offset_bytes.push(kind.offset);
        rows.record_offset_bytes.push(0);
    }
    rows
}

/// Row of the table `damage`.
struct Loss {
    start_ns: i64,
    end_ns: i64,
    kind: &'static str,
    count: u64,
    cpu: Option<u16>,
    fault: Option<(Fault, u64)>,
}

impl Loss {
    /// Returns all losses and faults, in order of their start times.
    fn all(recording: &Recording, damage: &Damage) -> Vec<Loss> {
        let (origin_ns, end_ns) = (origin_ns(recording), length_ns(recording));
        let since = |ns: u64| i64::try_from(ns.saturating_sub(origin_ns)).unwrap_or(i64::MAX);
        let whole = |kind, count| Loss {
            start_ns: 0,
            end_ns,
            kind,
            count,
            cpu: None,
            fault: None,
        };
        // Losses without a place could be anywhere in the recording.
        let (mut lost, mut throttled) = (damage.lost_events, damage.throttled);
        let mut losses = Vec::new();
        for gap in &damage.gaps {
            let (kind, count, rest) = match gap.kind {
                GapKind::Lost(count) => (LOST, count, &mut lost),
                GapKind::Throttled => (Damages::THROTTLED, 1, &mut throttled),
            };
            *rest = rest.saturating_sub(count);
            losses.push(Loss {
                start_ns: gap.start_ns.map_or(0, since),
                end_ns: gap.end_ns.map_or(end_ns, since),
                cpu: gap.cpu.and_then(known_cpu),
                ..whole(kind, count)
            });
        }
        for (kind, count) in [(LOST, lost), (Damages::THROTTLED, throttled)] {
            losses.extend((count > 0).then(|| whole(kind, count)));
        }
        losses.extend(damage.faults.iter().map(|(fault, found)| Loss {
            fault: Some((*fault, found.offset)),
            ..whole(kind_of(*fault), found.count)
        }));
        losses.sort_by_key(|loss| loss.start_ns);
        losses
    }
}

fn damages(file: &str, recording: &Recording, counts: &Counts) -> Damages {
    let mut rows = Damages::default();
    for loss in Loss::all(recording, &counts.damage) {
        rows.start_ns.push(loss.start_ns);
        rows.end_ns.push(Some(loss.end_ns));
        rows.kind.push(Some(loss.kind));
        rows.count.push(Some(loss.count));
        rows.file.push(Some(file));
        rows.buffer_offset_bytes
            .push(loss.fault.map(|(_, offset)| offset));
        rows.cpu.push(loss.cpu);
        let text = loss.fault.map(|(fault, _)| fault.to_string());
        rows.text.push(text.as_deref());
    }
    rows
}

/// Returns the time ranges in which events of each CPU were lost. The key `None` stands for all CPUs.
pub(crate) fn losses(
    recording: &Recording,
    counts: &Counts,
) -> BTreeMap<Option<u16>, Vec<Range<i64>>> {
    let mut losses: BTreeMap<Option<u16>, Vec<Range<i64>>> = BTreeMap::new();
    for loss in Loss::all(recording, &counts.damage) {
        if loss.kind != LOST {
            continue;
        }
        let of_cpu = losses.entry(loss.cpu).or_default();
        match of_cpu.last_mut() {
            Some(last) if loss.start_ns <= last.end => last.end = last.end.max(loss.end_ns),
            _ => of_cpu.push(loss.start_ns..loss.end_ns),
        }
    }
    losses
}

/// Kind of the rows for events that the kernel lost.
const LOST: &str = "events_lost";

/// Returns the kind of the row for a fault.
fn kind_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Killed => Damages::KILLED,
        Fault::NoDescriptions => Damages::NO_DESCRIPTIONS,
        Fault::CutOff => "ends_early",
        Fault::Decompress => "decompress",
        _ => "unknown_record",
    }
}
