//! The recorder, which opens events on all CPUs and keeps their records in memory.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::CString;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::attribute::{Attribute, flag, kind, sample, software};
use crate::capture::{Round, Setup};
use crate::perf_data::{Machine, RecordedEvent};
use crate::proc_facts::{self, KernelSymbols};
use crate::ring::{OpenEvent, Ring};
use crate::threads::{self, Thread};
use crate::tracefs::{DescribedTracepoint, Tracefs};
use crate::{Capture, Cost, Event, MissingEvent, StartError, build_ids, records};

/// Time between two moves of records from the kernel's buffers to memory.
const PERIOD: Duration = Duration::from_millis(100);

/// Number of samples per second on each CPU. The number differs from the frequency of the kernel's timer ticks.
/// Otherwise, all samples could hit the same periodic work.
const SAMPLES: u64 = 999;

/// Minimum size of the buffer of a CPU, in bytes.
const LEAST_BUFFER: usize = 128 << 10;

/// Order for a recording: its events and limits.
#[derive(Clone, Debug)]
pub struct Order {
    /// Events to record.
    pub events: Vec<Event>,
    /// Time for which records are kept in memory.
    pub last: Duration,
    /// Maximum size of the records in memory, in bytes. If the records exceed this size, the oldest records are
    /// dropped.
    pub memory_bytes: usize,
    /// Requested size of the kernel's buffer of each CPU, in bytes. If the system refuses this size, a smaller buffer
    /// is used.
    pub buffer_bytes: usize,
    /// Command line that the recording names as its origin.
    pub command_line: Vec<String>,
}

impl Order {
    /// Returns an order for these events with the usual limits.
    pub fn new(events: Vec<Event>) -> Order {
        Order {
            events,
            last: Duration::MAX,
            memory_bytes: 512 << 20,
            buffer_bytes: 4 << 20,
            command_line: Vec::new(),
        }
    }

    /// Returns true if the recording has samples of the running code. Readers of samples need the symbols of the kernel
    /// and the mapped files.
    fn has_samples(&self) -> bool {
        self.events.contains(&Event::CpuClock)
    }
}

/// Returns the time of the recording's clock (`CLOCK_MONOTONIC_RAW`) in nanoseconds.
pub fn now_ns() -> u64 {
    clock_ns(ClockId::MonotonicRaw)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Request to the recorder's thread.
enum Request {
    /// Request to keep the records of a time range for longer than [`Order::last`].
    Keep(Range<u64>),
    /// Request to send the records and the cost up to now.
    Capture(Sender<(Vec<Arc<Round>>, Cost)>),
    /// Request to send the records and the cost up to now, and to end the recording.
    Stop(Sender<(Vec<Arc<Round>>, Cost)>),
}

/// Running recording of this machine. Dropping this value ends the recording.
#[derive(Debug)]
pub struct Recorder {
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
    setup: Arc<Setup>,
    symbols: KernelSymbols,
    has_samples: bool,
    /// Threads that existed when the recording began, and the facts about them at that time.
    first: (Vec<Thread>, String),
    thread_id: u32,
}

impl Recorder {
    /// Starts to record on all CPUs. Events that this machine lacks are left out; [`Capture::left_out`] lists them.
    ///
    /// # Errors
    /// Returns an error if the caller lacks the rights, or if the kernel lacks the events of the scheduler. Also
    /// returns an error if the system refuses memory, file descriptors or the thread.
    pub fn start(order: &Order) -> Result<Recorder, StartError> {
        let tracefs = Tracefs::find()?;
        let symbols = KernelSymbols::read(order.has_samples());
        let threads = threads::all();
        let first = proc_facts::at_start(&threads);
        let mut open = OpenEvents::new(order, &tracefs, &symbols)?;
        let setup = Arc::new(Setup {
            events: std::mem::take(&mut open.recorded),
            tracepoints: std::mem::take(&mut open.tracepoints),
            pages: tracefs.pages(),
            machine: machine(order),
            left: std::mem::take(&mut open.left),
        });
        let (requests, received) = channel();
        let (tell, told) = channel();
        let memory = Memory::new(order);
        let thread = std::thread::Builder::new()
            .name("flight-recorder".to_owned())
            .spawn(move || {
                let id = rustix::thread::gettid()
                    .as_raw_nonzero()
                    .get()
                    .unsigned_abs();
                let started = open.enable();
                let is_started = started.is_ok();
                // The receiver waits for this message, so sending cannot fail.
                let _ = tell.send(started.map(|()| id));
                if is_started {
                    run(open, memory, &received);
                }
            });
        let system = |what| move |why| StartError::System { what, why };
        let thread = thread.map_err(system("starting a thread"))?;
        let started = told.recv().map_err(io::Error::other).flatten();
        let thread_id = started.map_err(system("enabling the events"))?;
        Ok(Recorder {
            requests,
            thread: Some(thread),
            setup,
            symbols,
            has_samples: order.has_samples(),
            first: (threads, first),
            thread_id,
        })
    }

    /// Keeps the records of a range of the recording's clock (in nanoseconds) in memory for longer than
    /// [`Order::last`]. If the memory becomes full before a record reaches this age, the record is still dropped.
    pub fn keep(&self, range: Range<u64>) {
        // Sending fails only if the thread has panicked. The capture is then empty.
        let _ = self.requests.send(Request::Keep(range));
    }

    /// Returns the records so far. The recording continues.
    pub fn capture(&self) -> Capture {
        self.captured(Request::Capture)
    }

    /// Ends the recording and returns its records.
    pub fn stop(self) -> Capture {
        self.captured(Request::Stop)
    }

    /// Returns the id of the thread that moves records to memory.
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    fn captured(
        &self,
        request: impl FnOnce(Sender<(Vec<Arc<Round>>, Cost)>) -> Request,
    ) -> Capture {
        let (send, receive) = channel();
        let _ = self.requests.send(request(send));
        let (rounds, cost) = receive.recv().unwrap_or_default();
        let now = threads::all();
        // A thread that still exists is described with its present name, not with its name at the start.
        let ids: std::collections::HashSet<(u32, u32)> =
            now.iter().map(|it| (it.process_id, it.thread_id)).collect();
        let (first, first_facts) = &self.first;
        let ended = first
            .iter()
            .filter(|it| !ids.contains(&(it.process_id, it.thread_id)));
        let mut records = threads::records(ended.chain(&now));
        let (mut build_ids, mut code_maps) = (Vec::new(), String::new());
        if self.has_samples {
            code_maps = proc_facts::code_maps(&now);
            records.extend(threads::mapped_files(&now, self.symbols.code));
            let of_rounds = rounds.iter().flat_map(|round| &round.of_cpus);
            let parts = of_rounds.map(Vec::as_slice).chain([&*records]);
            build_ids = build_ids::find(parts);
        }
        // Readers use the last line about a thread, so the present facts follow the first facts.
        let facts = [
            first_facts,
            &*proc_facts::of_threads(&now),
            &proc_facts::of_machine(&now),
            &self.symbols.lines,
            &code_maps,
        ]
        .concat();
        Capture {
            setup: Arc::clone(&self.setup),
            rounds,
            threads: Arc::new(records),
            build_ids: Arc::new(build_ids),
            facts: Arc::new(facts),
            cost,
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Stop(channel().0));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Open events of all CPUs, with their buffers.
struct OpenEvents {
    events: Vec<OpenEvent>,
    rings: Vec<Ring>,
    recorded: Vec<RecordedEvent>,
    tracepoints: Vec<DescribedTracepoint>,
    left: Vec<MissingEvent>,
}

struct EventRequest {
    attribute: Attribute,
    name: String,
    filter: Option<CString>,
}

impl OpenEvents {
    fn new(
        order: &Order,
        tracefs: &Tracefs,
        symbols: &KernelSymbols,
    ) -> Result<OpenEvents, StartError> {
        let mut open = OpenEvents {
            events: Vec::new(),
            rings: Vec::new(),
            recorded: Vec::new(),
            tracepoints: Vec::new(),
            left: Vec::new(),
        };
        let mut wanted = open.wanted(order, tracefs, symbols)?;
        // The first event of each CPU owns the buffer. It also records the starts, names and ends of threads.
        let mut flags = flag::COMM | flag::COMM_EXEC | flag::TASK;
        if order.has_samples() {
            flags |= flag::MMAP | flag::MMAP2;
        }
        let owner = EventRequest {
            attribute: Attribute {
                kind: kind::SOFTWARE,
                config: software::DUMMY,
                period: 1,
                flags,
                ..Attribute::default()
            },
            name: "dummy:HG".to_owned(),
            filter: None,
        };
        wanted.insert(0, owner);
        let cpus = online_cpus();
        allow_descriptors((cpus.len() * wanted.len() + 64) as u64);
        // An event can write into the buffer of another event only after this buffer is mapped.
        open.open_all(&wanted[..1], &cpus)?;
        for owner in &open.events {
            open.rings.push(map(owner, order.buffer_bytes)?);
        }
        open.open_all(&wanted[1..], &cpus)?;
        let is_needed = |left: &&MissingEvent| {
            ["sched:sched_switch", "sched:sched_waking"].contains(&&*left.event)
        };
        match open.left.iter().find(is_needed) {
            Some(left) => Err(StartError::Kernel(format!("{}: {}", left.event, left.why))),
            None => Ok(open),
        }
    }

    /// Returns the events of an order in the form in which they are opened. Events that the machine lacks are added to
    /// `left` instead.
    fn wanted(
        &mut self,
        order: &Order,
        tracefs: &Tracefs,
        symbols: &KernelSymbols,
    ) -> Result<Vec<EventRequest>, StartError> {
        let mut wanted = Vec::new();
        for event in &order.events {
            let name = event.name();
            let mut attribute = Attribute {
                kind: kind::SOFTWARE,
                period: 1,
                ..Attribute::default()
            };
            let mut filter = None;
            match event {
                Event::MajorFaults => {
                    attribute.config = software::MAJOR_FAULTS;
                    attribute.fields = sample::IP | sample::ADDRESS;
                }
                Event::CpuClock => {
                    attribute.config = software::CPU_CLOCK;
                    attribute.period = SAMPLES;
                    attribute.flags = flag::FREQUENCY;
                    attribute.fields = sample::IP | sample::CALL_CHAIN | sample::PERIOD;
                }
                Event::Tracepoint(..) | Event::LimitTimers => {
                    let (system, tracepoint) = event.tracepoint();
                    match tracefs.tracepoint(system, tracepoint) {
                        Ok(described) => {
                            attribute.kind = kind::TRACEPOINT;
                            attribute.config = described.id;
                            attribute.fields = sample::RAW;
                            self.tracepoints.push(described);
                        }
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                            return Err(StartError::Rights(format!("description of {name}")));
                        }
                        Err(error) => {
                            let why = match error.kind() {
                                io::ErrorKind::NotFound => {
                                    "this kernel has no such tracepoint".to_owned()
                                }
                                _ => error.to_string(),
                            };
                            self.leave(name, why);
                            continue;
                        }
                    }
                    if *event == Event::LimitTimers {
                        // Without a filter, the kernel would record all timers. Readers need only the timers of limits
                        // on CPU time.
                        let terms = symbols.limits.iter().map(|at| format!("function=={at:#x}"));
                        let terms: Vec<String> = terms.collect();
                        if terms.is_empty() {
                            self.leave(name, "/proc/kallsyms shows no addresses to this user");
                            continue;
                        }
                        filter = CString::new(terms.join("||")).ok();
                    }
                }
            }
            wanted.push(EventRequest {
                attribute,
                name,
                filter,
            });
        }
        Ok(wanted)
    }

    fn leave(&mut self, event: String, why: impl ToString) {
        let why = why.to_string();
        self.left.push(MissingEvent { event, why });
    }

    /// Opens each event on each CPU. If the buffers are already mapped, each event writes into the buffer of its CPU.
    /// An event that the system refuses is added to `left`.
    fn open_all(&mut self, wanted: &[EventRequest], cpus: &[u32]) -> Result<(), StartError> {
        for it in wanted {
            let mut ids = Vec::new();
            let opened = self.events.len();
            let done = cpus.iter().enumerate().try_for_each(|(place, cpu)| {
                let event = OpenEvent::open(&it.attribute, *cpu)?;
                if let Some(filter) = &it.filter {
                    event.filter(filter)?;
                }
                if !self.rings.is_empty() {
                    event.write_into(&self.events[place])?;
                }
                ids.push(event.id()?);
                self.events.push(event);
                Ok::<(), io::Error>(())
            });
            match done {
                Ok(()) => self.recorded.push(RecordedEvent {
                    attribute: it.attribute,
                    name: it.name.clone(),
                    ids,
                }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(StartError::Rights(format!(
                        "perf_event_open of {}",
                        it.name
                    )));
                }
                Err(error) if self.recorded.is_empty() => {
                    return Err(StartError::Kernel(format!("perf_event_open: {error}")));
                }
                Err(error) => {
                    self.events.truncate(opened);
                    self.leave(it.name.clone(), error);
                }
            }
        }
        Ok(())
    }

    fn enable(&self) -> io::Result<()> {
        self.events.iter().try_for_each(OpenEvent::enable)
    }

    fn disable(&self) {
        for event in &self.events {
            // An error is ignored, because dropping the event also ends it.
            let _ = event.disable();
        }
    }
}

/// Maps a buffer for an event. If the system refuses the size, tries smaller sizes.
fn map(event: &OpenEvent, bytes: usize) -> Result<Ring, StartError> {
    let mut size = bytes.max(LEAST_BUFFER).next_power_of_two();
    loop {
        match Ring::map(event, size) {
            Ok(ring) => return Ok(ring),
            Err(_) if size > LEAST_BUFFER => size /= 2,
            Err(why) => {
                let what = "mapping a buffer (see /proc/sys/kernel/perf_event_mlock_kb)";
                return Err(StartError::System { what, why });
            }
        }
    }
}

/// Raises the limit on open files if it is too low.
fn allow_descriptors(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        let current = limit.maximum.map_or(count, |maximum| maximum.min(count));
        // An error is ignored here. Opening an event then fails, and that error names the cause.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(current),
                maximum: limit.maximum,
            },
        );
    }
}

/// Returns the numbers of the CPUs that are online.
fn online_cpus() -> Vec<u32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    let ranges: Option<Vec<_>> = list.trim().split(',').map(range).collect();
    ranges.map_or_else(|| vec![0], |ranges| ranges.into_iter().flatten().collect())
}

fn machine(order: &Order) -> Machine {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let value = |path: &str, name: &str| {
        let lines = fs::read_to_string(path).unwrap_or_default();
        let mut lines = lines.lines().filter_map(|line| line.split_once(':'));
        let line = lines.find(|(key, _)| key.trim() == name);
        line.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let configured = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = configured.trim().rsplit([',', '-']).next();
    let last = last.and_then(|last| last.parse::<u32>().ok());
    let online = online_cpus().len() as u32;
    let memory = value("/proc/meminfo", "MemTotal");
    let memory = memory.split(' ').next().and_then(|kib| kib.parse().ok());
    Machine {
        host_name: text(system.nodename()),
        os_release: text(system.release()),
        architecture: text(system.machine()),
        cpus_configured: last.map_or(online, |last| last.saturating_add(1)),
        cpus_online: online,
        cpu_description: value("/proc/cpuinfo", "model name"),
        memory_kib: memory.unwrap_or(0),
        command_line: order.command_line.clone(),
        clock: (clock_ns(ClockId::Realtime), now_ns()),
    }
}

/// Records in memory, and their limits.
struct Memory {
    last_ns: u64,
    most_bytes: usize,
    rounds: VecDeque<Arc<Round>>,
    /// Rounds that are kept for longer than `last_ns` on request, by their start time in nanoseconds.
    kept: BTreeMap<u64, Arc<Round>>,
    wanted: Vec<Range<u64>>,
    bytes: usize,
    cost: Cost,
}

impl Memory {
    fn new(order: &Order) -> Memory {
        Memory {
            last_ns: u64::try_from(order.last.as_nanos()).unwrap_or(u64::MAX),
            most_bytes: order.memory_bytes,
            rounds: VecDeque::new(),
            kept: BTreeMap::new(),
            wanted: Vec::new(),
            bytes: 0,
            cost: Cost::default(),
        }
    }

    /// Adds a round. Drops rounds that are too old, and drops the oldest rounds if the memory is full.
    fn add(&mut self, round: Round) {
        for part in &round.of_cpus {
            count(part, &mut self.cost);
        }
        let now = round.range.end;
        self.bytes += round.bytes();
        if !round.of_cpus.is_empty() {
            self.rounds.push_back(Arc::new(round));
        }
        while let Some(oldest) = self.rounds.front() {
            let is_over = oldest.range.end.saturating_add(self.last_ns) < now;
            let is_full = self.bytes > self.most_bytes;
            if !is_over && !is_full {
                break;
            }
            let Some(oldest) = self.rounds.pop_front() else {
                break;
            };
            if is_over && self.wanted.iter().any(|range| oldest.overlaps(range)) {
                self.kept.insert(oldest.range.start, oldest);
            } else {
                self.bytes -= oldest.bytes();
                if !is_over {
                    self.cost.dropped_bytes += oldest.bytes() as u64;
                }
            }
        }
    }

    /// Requests that the records of a range are kept. A range that overlaps the previous requested range extends the
    /// previous range.
    fn want(&mut self, range: Range<u64>) {
        match self.wanted.last_mut() {
            Some(last) if range.start <= last.end && last.start <= range.end => {
                *last = last.start.min(range.start)..last.end.max(range.end);
            }
            _ => self.wanted.push(range),
        }
    }

    fn rounds(&self) -> Vec<Arc<Round>> {
        self.kept.values().chain(&self.rounds).cloned().collect()
    }
}

/// Counts the records of a part and adds them to the cost.
fn count(part: &[u8], cost: &mut Cost) {
    const LOST: u32 = 2;
    cost.bytes += part.len() as u64;
    records::each(part, |kind, record| {
        cost.records += 1;
        if kind == LOST
            && let Some(lost) = record.get(16..24).and_then(|lost| lost.first_chunk())
        {
            cost.lost += u64::from_ne_bytes(*lost);
        }
    });
}

/// Moves records to memory until the recording ends.
fn run(mut open: OpenEvents, mut memory: Memory, requests: &Receiver<Request>) {
    let began = now_ns();
    let mut since = began;
    let mut buffer = Vec::new();
    let mut next = Instant::now() + PERIOD;
    loop {
        let request = requests.recv_timeout(next.saturating_duration_since(Instant::now()));
        if let Ok(Request::Keep(range)) = request {
            memory.want(range);
            continue;
        }
        next = Instant::now() + PERIOD;
        let is_end = matches!(
            request,
            Ok(Request::Stop(_)) | Err(RecvTimeoutError::Disconnected)
        );
        if is_end {
            open.disable();
        }
        let mut of_cpus = Vec::new();
        for ring in &mut open.rings {
            ring.drain(&mut buffer);
            if !buffer.is_empty() {
                of_cpus.push(buffer.clone());
                buffer.clear();
            }
        }
        let now = now_ns();
        memory.add(Round {
            range: since..now,
            of_cpus,
        });
        since = now;
        memory.cost.recorded_ns = now - began;
        memory.cost.cpu_ns = clock_ns(ClockId::ThreadCPUTime);
        if let Ok(Request::Capture(reply) | Request::Stop(reply)) = request {
            // If the caller no longer waits, it does not need the records, so the error is ignored.
            let _ = reply.send((memory.rounds(), memory.cost));
        }
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(last: Duration, bytes: usize) -> Memory {
        Memory::new(&Order {
            last,
            memory_bytes: bytes,
            ..Order::new(Vec::new())
        })
    }

    /// Returns a round of 100 ns with a record of 16 bytes.
    fn round(number: u64) -> Round {
        let mut record = vec![0; 16];
        record[6..8].copy_from_slice(&16_u16.to_ne_bytes());
        Round {
            range: number * 100..(number + 1) * 100,
            of_cpus: vec![record],
        }
    }

    fn starts(memory: &Memory) -> Vec<u64> {
        memory
            .rounds()
            .iter()
            .map(|round| round.range.start)
            .collect()
    }

    #[test]
    fn rounds_whose_time_is_over_are_dropped_unless_they_are_wanted() {
        let mut memory = memory(Duration::from_nanos(200), 1 << 20);
        memory.want(150..155);
        memory.want(152..160);
        (0..6).for_each(|number| memory.add(round(number)));
        // The last round ends at 600 ns, and rounds are kept for 200 ns. Rounds that end before 400 ns are therefore
        // too old. The round that starts at 100 ns is kept on request.
        assert_eq!(starts(&memory), [100, 300, 400, 500]);
        assert_eq!((memory.cost.records, memory.cost.bytes), (6, 96));
        assert_eq!(memory.cost.dropped_bytes, 0);
    }

    #[test]
    fn the_oldest_rounds_are_dropped_if_the_memory_is_full() {
        let mut memory = memory(Duration::MAX, 40);
        (0..4).for_each(|number| memory.add(round(number)));
        assert_eq!(starts(&memory), [200, 300]);
        assert_eq!(memory.cost.dropped_bytes, 32);
    }

    #[test]
    fn lost_events_are_counted() {
        let mut record = 2_u32.to_ne_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(24_u16.to_ne_bytes());
        record.extend(7_u64.to_ne_bytes());
        record.extend(41_u64.to_ne_bytes());
        let mut cost = Cost::default();
        count(&record, &mut cost);
        // A record that is cut off at the end must not cause an endless loop.
        count(&record[..20], &mut cost);
        assert_eq!((cost.records, cost.lost), (1, 41));
    }
}
