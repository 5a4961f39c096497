//! What a trace is: the facts that `laglab info` prints.

use std::collections::BTreeSet;

use etl::compress::Compression;
use etl::{Damage, Event, Events, LogFileHeader, Trace, buffer_flag, le, mode};
use events::{Decoder, kernel};
use serde::Serialize;

use crate::contents::{self, Content, Missing};
use crate::damage::DamageReport;
use crate::kernel_flags;
use crate::key::Key;
use crate::metadata;
use crate::output::utc;
use crate::pass::{self, Collect};
use crate::silence::{Activity, CpuActivity};
use crate::survey::{Position, Survey};
use crate::watch::{Interrupted, Watch};
use crate::windows_release::windows_release;

const EXTENSION: u16 = 0x0005;
const END_EXTENSION: u16 = 0x0020;
const LAST_DROPPED_TIMES: u16 = 0x0052;
const BUILD_LAB: u16 = 0x0042;
const CONFIG_CPU: u16 = 0x0B0A;
const CONFIG_PLATFORM: u16 = 0x0B19;
const CONFIG_PROCESSORS: u16 = 0x0B23;
const CONFIG_VIRTUALIZATION: u16 = 0x0B24;
/// What tells that laglab's own model made a trace: the file that it says it was logged to.
const SIMULATED: &str = r"C:\Traces\simulated.etl";
/// Opcode of `SysConfigEx/BuildInfo`.
const BUILD_INFO: u8 = 32;

/// Everything said about a trace. What is not known is left out of the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Info {
    /// All files were recorded by one running system.
    pub(crate) one_system: bool,
    /// The machine.
    pub(crate) system: System,
    /// The sessions that wrote the files.
    pub(crate) sessions: Vec<Session>,
    /// The files as a whole.
    pub(crate) trace: Extent,
    /// The CPUs.
    pub(crate) cpus: Cpus,
    /// Kinds of kernel events that were enabled; empty if the trace does not say.
    pub(crate) kernel_flags: Vec<String>,
    /// Kinds of data inside.
    pub(crate) contents: Vec<Content>,
    /// Questions that cannot be answered.
    pub(crate) missing: Vec<Missing>,
    /// What is lost or broken.
    pub(crate) damage: DamageReport,
    /// When events were last dropped, per CPU that dropped any (Windows 11).
    pub(crate) last_dropped: Vec<Dropped>,
}

/// The machine that was recorded.
#[derive(Debug, Default, Serialize)]
pub(crate) struct System {
    /// Major and minor version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) os_version: Option<String>,
    /// Build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<u32>,
    /// What the public calls that build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release: Option<&'static str>,
    /// The edition, as Windows calls itself. Windows 11 still says `Windows 10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) product: Option<String>,
    /// Where and when it was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) build_lab: Option<String>,
    /// The computer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) computer: Option<String>,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) manufacturer: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Its firmware's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bios: Option<String>,
    /// The CPU's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<String>,
    /// Its nominal speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_mhz: Option<u32>,
    /// Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_mib: Option<u64>,
    /// Whether Windows itself runs on its hypervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hypervisor: Option<bool>,
    /// Whether virtualisation-based security was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) virtualization_based_security: Option<bool>,
    /// When it booted, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
}

impl System {
    /// Which Windows it ran.
    pub(crate) fn windows(&self) -> String {
        match (self.release, self.build) {
            (Some(release), Some(build)) => format!("{release} (build {build})"),
            (None, Some(build)) => format!("Windows build {build}"),
            _ => "an unknown system".to_owned(),
        }
    }
}

/// A session that wrote a stretch of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Session {
    /// The file.
    pub(crate) file: String,
    /// The session's name.
    pub(crate) name: String,
    /// The file's name as the session knew it.
    pub(crate) log_file: String,
    /// Its modes.
    pub(crate) modes: Vec<&'static str>,
    /// Bytes of its buffers.
    pub(crate) buffer_size: u32,
    /// Format of its compressed buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compression: Option<&'static str>,
    /// Which clock its times are of.
    pub(crate) clock: &'static str,
    /// Ticks of it per second.
    pub(crate) clock_frequency: u64,
    /// When it started, UTC.
    pub(crate) start: String,
    /// When it ended, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
    /// How long it lasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ns: Option<i64>,
}

/// The files as one trace.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Extent {
    /// Names of the files.
    pub(crate) files: Vec<String>,
    /// Their bytes.
    pub(crate) size_bytes: u64,
    /// Buffers that hold anything.
    pub(crate) buffers: u64,
    /// How many of them are compressed.
    pub(crate) compressed_buffers: u64,
    /// Bytes of all buffers after decompression.
    pub(crate) uncompressed_bytes: u64,
    /// Events.
    pub(crate) events: u64,
    /// Nanosecond 0, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<String>,
    /// Time of the first event, in nanoseconds since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_event_ns: Option<i64>,
    /// Time of the last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_event_ns: Option<i64>,
}

impl Extent {
    /// From the first to the last event, in nanoseconds.
    pub(crate) fn recorded_ns(&self) -> Option<i64> {
        let (first, last) = self.first_event_ns.zip(self.last_event_ns)?;
        Some(last.saturating_sub(first))
    }
}

/// The CPUs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Cpus {
    /// How many the log-file header states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stated: Option<u32>,
    /// Whether events say on which CPU they were logged: sessions without per-processor buffers
    /// do not.
    pub(crate) known: bool,
    /// Those that logged events.
    pub(crate) seen: Vec<CpuActivity>,
    /// Those that logged none.
    pub(crate) without_events: Vec<u32>,
}

impl Cpus {
    /// How many there are, in words.
    pub(crate) fn counted(&self) -> String {
        match self.stated {
            Some(1) => "1 CPU".to_owned(),
            Some(n) => format!("{n} CPUs"),
            None => "an unknown number of CPUs".to_owned(),
        }
    }
}

/// A CPU that dropped events.
#[derive(Debug, Serialize)]
pub(crate) struct Dropped {
    /// The CPU.
    pub(crate) cpu: u32,
    /// When it last did, in nanoseconds since the trace's start.
    pub(crate) last_ns: i64,
}

/// What one pass over the trace collects.
#[derive(Debug, Default)]
struct Facts {
    survey: Survey,
    activity: Activity,
    masks: [u32; 8],
    /// Last drop per CPU, in nanoseconds since the trace's start.
    dropped: Vec<Option<i64>>,
    times: Vec<i64>,
}

impl Collect for Facts {
    fn buffer(&mut self, buffer: u32, events: Events<'_>) {
        self.times.clear();
        let mut cpu = 0;
        for (event, index) in events.zip(0..) {
            let at = Position {
                buffer,
                event: index,
            };
            self.survey.count(at, &event);
            self.times.push(event.time_ns());
            cpu = event.cpu();
            match event.hook() {
                Some(EXTENSION | END_EXTENSION) => self.add_masks(&event),
                Some(LAST_DROPPED_TIMES) => self.add_drops(&event),
                _ => {}
            }
        }
        self.survey.end_buffer();
        self.activity.buffer(cpu, self.times.iter().copied());
    }

    fn merge(&mut self, other: Facts) {
        self.survey.merge(other.survey);
        self.activity.merge(other.activity);
        for (mask, more) in self.masks.iter_mut().zip(other.masks) {
            *mask |= more;
        }
        self.note_drops(other.dropped.into_iter());
    }
}

impl Facts {
    fn add_masks(&mut self, event: &Event<'_>) {
        for (mask, bytes) in self.masks.iter_mut().zip(event.payload().chunks_exact(4)) {
            *mask |= le::u32(bytes, 0).unwrap_or(0);
        }
    }

    fn add_drops(&mut self, event: &Event<'_>) {
        let payload = event.payload();
        let count = le::u32(payload, 0).unwrap_or(0) as usize;
        let times = payload.get(8..).unwrap_or(&[]).chunks_exact(8);
        let clock = event.clock();
        self.note_drops(times.take(count).map(|bytes| {
            le::i64(bytes, 0)
                .filter(|raw| *raw != 0)
                .map(|raw| clock.to_ns(raw))
        }));
    }

    fn note_drops(&mut self, drops: impl Iterator<Item = Option<i64>>) {
        for (cpu, drop) in drops.enumerate() {
            if self.dropped.len() <= cpu {
                self.dropped.resize(cpu + 1, None);
            }
            self.dropped[cpu] = self.dropped[cpu].max(drop);
        }
    }
}

impl Info {
    /// Reads a trace once.
    ///
    /// # Errors
    /// If the user stopped it.
    pub(crate) fn read(trace: &Trace, watch: &Watch) -> Result<Info, Interrupted> {
        let (facts, damage) = pass::collect::<Facts>(trace, watch)?;
        Ok(Info::new(trace, &Decoder::new(), facts, damage))
    }

    /// What the headers of its files say, before any event is read: what events tell is not in it.
    pub(crate) fn of_headers(trace: &Trace) -> Info {
        Info::new(trace, &Decoder::new(), Facts::default(), Damage::default())
    }

    /// Whether laglab's own model made the trace.
    pub(crate) fn is_simulated(&self) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.any(|session| session.log_file == SIMULATED)
    }

    /// Puts together what the headers say and what the pass collected.
    fn new(trace: &Trace, decoder: &Decoder, facts: Facts, walk: Damage) -> Info {
        let contents = contents::contents(&facts.survey);
        let cpus = cpus(trace, facts.activity);
        let first = cpus.seen.iter().map(|c| c.first_ns).min();
        let last = cpus.seen.iter().map(|c| c.last_ns).max();
        Info {
            one_system: trace.is_one_system(),
            system: system(trace, decoder, &facts.survey),
            sessions: sessions(trace),
            trace: Extent {
                files: trace.files().map(str::to_owned).collect(),
                size_bytes: trace.size_bytes(),
                buffers: trace.buffers().len() as u64,
                compressed_buffers: trace
                    .buffers()
                    .iter()
                    .filter(|b| b.flags & buffer_flag::COMPRESSED != 0)
                    .count() as u64,
                uncompressed_bytes: trace
                    .buffers()
                    .iter()
                    .map(|b| u64::from(b.valid_size))
                    .sum(),
                events: facts.survey.total_events(),
                // A FILETIME of 0 is no time.
                start: (trace.header())
                    .map(|_| trace.clock().origin_filetime())
                    .filter(|origin| *origin != 0)
                    .map(utc),
                first_event_ns: first,
                last_event_ns: last,
            },
            cpus,
            kernel_flags: kernel_flags::enabled(&facts.masks),
            missing: contents::missing(&facts.survey, &contents),
            contents,
            damage: DamageReport::new(trace, walk),
            last_dropped: (0..)
                .zip(&facts.dropped)
                .filter_map(|(cpu, drop)| {
                    Some(Dropped {
                        cpu,
                        last_ns: (*drop)?,
                    })
                })
                .collect(),
        }
    }
}

fn cpus(trace: &Trace, activity: Activity) -> Cpus {
    let shares_buffers =
        |h: &LogFileHeader| h.log_file_mode & mode::NO_PER_PROCESSOR_BUFFERING != 0;
    let headers = || trace.segments().iter().filter_map(|s| s.header.as_ref());
    let known = !headers().any(shares_buffers);
    let stated = headers().map(|h| h.processors).max();
    let seen = activity.cpus();
    let logged: BTreeSet<u32> = seen.iter().map(|c| u32::from(c.cpu)).collect();
    // A CPU's index has 11 bits, whatever number a header states.
    const MOST_CPUS: u32 = 2048;
    let without_events = (0..stated.unwrap_or(0).min(MOST_CPUS))
        .filter(|cpu| known && !logged.contains(cpu))
        .collect();
    Cpus {
        stated: stated.filter(|_| known),
        known,
        seen,
        without_events,
    }
}

fn sessions(trace: &Trace) -> Vec<Session> {
    let compressed: BTreeSet<u16> = trace
        .buffers()
        .iter()
        .filter(|b| b.is_compressed())
        .map(|b| b.segment)
        .collect();
    (0..)
        .zip(trace.segments())
        .filter_map(|(index, segment)| {
            let header = segment.header.as_ref()?;
            let compression = match segment.compression {
                Compression::Lznt1 => "LZNT1",
                Compression::Xpress => "XPRESS",
                Compression::XpressHuffman => "XPRESS Huffman",
            };
            Some(Session {
                file: trace
                    .files()
                    .nth(segment.file.into())
                    .unwrap_or_default()
                    .to_owned(),
                name: header.session.clone(),
                log_file: header.log_file.clone(),
                modes: header.modes(),
                buffer_size: header.buffer_size,
                compression: compressed.contains(&index).then_some(compression),
                clock: segment.clock.kind().name(),
                clock_frequency: segment.clock.frequency(),
                start: utc(header.start),
                end: header.end.map(utc),
                duration_ns: header
                    .end
                    .map(|end| end.saturating_sub(header.start).saturating_mul(100)),
            })
        })
        .collect()
}

fn system(trace: &Trace, decoder: &Decoder, survey: &Survey) -> System {
    let mut system = System::default();
    if let Some(header) = trace.header() {
        let (major, minor) = header.os_version;
        system.os_version = Some(format!("{major}.{minor}"));
        system.build = Some(header.os_build).filter(|build| *build != 0);
        system.release = windows_release(header.os_build);
        system.cpu_mhz = Some(header.cpu_mhz).filter(|mhz| *mhz != 0);
        system.boot = Some(header.boot).filter(|boot| *boot != 0).map(utc);
    }
    let telling = |key: &Key| match *key {
        Key::Kernel { hook, .. } => matches!(
            hook,
            BUILD_LAB | CONFIG_CPU | CONFIG_PLATFORM | CONFIG_PROCESSORS | CONFIG_VIRTUALIZATION
        ),
        Key::Classic { guid, opcode, .. } => is_build_info(guid, opcode),
        _ => false,
    };
    let kinds = survey.kinds.iter().filter(|(key, _)| telling(key));
    metadata::visit_examples(trace, kinds, |key, event| {
        let fields = decoder.decode(event).fields;
        let text = |name: &str| {
            let text = fields.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let number = |name: &str| fields.get(name)?.as_u64();
        match key {
            Key::Kernel { hook, .. } => match hook {
                BUILD_LAB => system.build_lab = system.build_lab.take().or(text("BuildString")),
                CONFIG_CPU => {
                    system.computer = text("ComputerName");
                    system.memory_mib = number("MemSize");
                }
                CONFIG_PLATFORM => {
                    system.manufacturer = text("SystemManufacturer");
                    system.model = text("SystemProductName");
                    system.bios = text("BiosVersion");
                }
                CONFIG_PROCESSORS => system.cpu = text("ProcessorName"),
                CONFIG_VIRTUALIZATION => {
                    system.hypervisor = number("HyperVisorEnabled").map(|n| n != 0);
                    system.virtualization_based_security = number("VbsEnabled").map(|n| n != 0);
                }
                _ => {}
            },
            _ => {
                system.product = text("ProductName");
                system.build_lab = text("BuildLab").or(system.build_lab.take());
            }
        }
    });
    system
}

fn is_build_info(guid: etl::Guid, opcode: u8) -> bool {
    opcode == BUILD_INFO
        && kernel::Class::of_guid(guid).is_some_and(|class| class.name == "SysConfigEx")
}
