//! Event records: the kinds of headers and their fields.
//!
//! An [`Event`] borrows the bytes of one record and reads header fields on demand. This module does
//! not decode payloads. The layouts of the sixteen header kinds are from Geoff Chappell's study of
//! NTWMI, the phnt header `ntwmi.h` and the public `evntrace.h`/`evntcons.h`.

use crate::clock::Clock;
use crate::guid::Guid;
use crate::le;

/// Kind of a record header. The upper half of an event's first 32 bits identifies the kind. The sizes below
/// are the sizes of the header. A 32-bit payload has 4-byte pointers. A 64-bit payload has 8-byte pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum HeaderKind {
    /// Kernel event with thread, process and CPU-time ticks; 32-bit payload. 32 bytes.
    System32 = 1,
    /// Like [`HeaderKind::System32`] with a 64-bit payload.
    System64 = 2,
    /// Kernel event without CPU-time ticks; 32-bit payload. 24 bytes.
    Compact32 = 3,
    /// Like [`HeaderKind::Compact32`] with a 64-bit payload.
    Compact64 = 4,
    /// Classic event (`EVENT_TRACE_HEADER`); 32-bit payload. 48 bytes.
    Full32 = 10,
    /// Classic instance event; 32-bit payload. 72 bytes (56 in old logs).
    Instance32 = 11,
    /// Timed event of old versions of Windows.
    Timed = 12,
    /// A record that replaces an event that could not be logged. 8 bytes.
    Error = 13,
    /// WNODE record of old versions of Windows.
    Wnode = 14,
    /// Kernel event without thread or process; 32-bit payload. 16 bytes, then hardware counters.
    PerfInfo32 = 16,
    /// Like [`HeaderKind::PerfInfo32`] with a 64-bit payload.
    PerfInfo64 = 17,
    /// Manifest, TraceLogging or EventSource event; 32-bit payload. 80 bytes, then extended items.
    EventHeader32 = 18,
    /// Like [`HeaderKind::EventHeader32`] with a 64-bit payload.
    EventHeader64 = 19,
    /// Classic event (`EVENT_TRACE_HEADER`); 64-bit payload. 48 bytes.
    Full64 = 20,
    /// Classic instance event; 64-bit payload. 72 bytes (56 in old logs).
    Instance64 = 21,
    /// WPP message. The header has 8 bytes, then optional parts that the header's flags select.
    Message = 30,
    /// Record of old versions of Windows with a number and a time. 16 bytes.
    UlongTime = 31,
}

impl HeaderKind {
    /// Returns the name that reports use, such as `SYSTEM64` or `EVENT_HEADER32`.
    pub const fn name(self) -> &'static str {
        match self {
            HeaderKind::System32 => "SYSTEM32",
            HeaderKind::System64 => "SYSTEM64",
            HeaderKind::Compact32 => "COMPACT32",
            HeaderKind::Compact64 => "COMPACT64",
            HeaderKind::Full32 => "FULL_HEADER32",
            HeaderKind::Full64 => "FULL_HEADER64",
            HeaderKind::Instance32 => "INSTANCE32",
            HeaderKind::Instance64 => "INSTANCE64",
            HeaderKind::Timed => "TIMED",
            HeaderKind::Error => "ERROR",
            HeaderKind::Wnode => "WNODE",
            HeaderKind::PerfInfo32 => "PERFINFO32",
            HeaderKind::PerfInfo64 => "PERFINFO64",
            HeaderKind::EventHeader32 => "EVENT_HEADER32",
            HeaderKind::EventHeader64 => "EVENT_HEADER64",
            HeaderKind::Message => "MESSAGE(WPP)",
            HeaderKind::UlongTime => "ULONG_TIME",
        }
    }

    /// Returns the kind for `header_type`. The header type is the third byte of a record. It exists only if
    /// the fourth byte of the record is `0xC0`.
    const fn from_type(header_type: u8) -> Option<HeaderKind> {
        Some(match header_type {
            1 => HeaderKind::System32,
            2 => HeaderKind::System64,
            3 => HeaderKind::Compact32,
            4 => HeaderKind::Compact64,
            10 => HeaderKind::Full32,
            11 => HeaderKind::Instance32,
            12 => HeaderKind::Timed,
            13 => HeaderKind::Error,
            14 => HeaderKind::Wnode,
            16 => HeaderKind::PerfInfo32,
            17 => HeaderKind::PerfInfo64,
            18 => HeaderKind::EventHeader32,
            19 => HeaderKind::EventHeader64,
            20 => HeaderKind::Full64,
            21 => HeaderKind::Instance64,
            _ => return None,
        })
    }

    /// Returns the minimum size of a record of this kind in bytes.
    pub(crate) const fn min_size(self) -> usize {
        match self {
            HeaderKind::System32 | HeaderKind::System64 => 32,
            HeaderKind::Compact32 | HeaderKind::Compact64 => 24,
            HeaderKind::Full32 | HeaderKind::Full64 => 48,
            HeaderKind::Instance32 | HeaderKind::Instance64 => 56,
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => 80,
            HeaderKind::PerfInfo32 | HeaderKind::PerfInfo64 | HeaderKind::UlongTime => 16,
            HeaderKind::Timed | HeaderKind::Error | HeaderKind::Wnode | HeaderKind::Message => 8,
        }
    }

    /// Returns the offset of the raw 64-bit time in the header, for kinds with a fixed offset.
    const fn time_offset(self) -> Option<usize> {
        match self {
            HeaderKind::PerfInfo32 | HeaderKind::PerfInfo64 | HeaderKind::UlongTime => Some(8),
            HeaderKind::Timed | HeaderKind::Error | HeaderKind::Wnode | HeaderKind::Message => None,
            _ => Some(16),
        }
    }
}

/// Error in the bytes of a record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadRecord {
    /// The first 32 bits are not the start of a known kind of header. Contains these bits.
    UnknownMarker(u32),
    /// The record is smaller than its header. Contains the record's size in bytes.
    TooSmall(u32),
    /// The record ends after the valid bytes of its buffer. Contains the record's size in bytes.
    TooLarge(u32),
}

/// A record in a buffer: its offset, size, kind and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Raw time of the record. If the record has no time, this is the raw time of the previous record.
    pub(crate) raw_time: i64,
    pub(crate) offset: u32,
    pub(crate) size: u16,
    pub(crate) kind: HeaderKind,
}

impl Record {
    /// Reads the record header at `offset` of `buffer`. `buffer` contains the valid bytes of a buffer.
    /// `previous` is the raw time of the previous record.
    #[inline]
    pub(crate) fn read(buffer: &[u8], offset: usize, previous: i64) -> Result<Record, BadRecord> {
        let bytes = &buffer[offset.min(buffer.len())..];
        let (kind, size) = kind_and_size(bytes)?;
        let Some(record) = bytes.get(..usize::from(size)) else {
            return Err(BadRecord::TooLarge(size.into()));
        };
        let raw_time = time_of(kind, record).unwrap_or(previous);
        Ok(Record {
            raw_time,
            offset: offset as u32,
            size,
            kind,
        })
    }

    /// Returns true if `bytes` begin with a record that has at most `room` bytes. `bytes` may end inside the
    /// record.
    pub(crate) fn fits(bytes: &[u8], room: usize) -> bool {
        kind_and_size(bytes).is_ok_and(|(_, size)| usize::from(size) <= room)
    }

    /// Returns the raw time of the record at the start of `bytes`. Returns `None` if the record has no time.
    /// `bytes` may end inside the record.
    pub(crate) fn time(bytes: &[u8]) -> Option<i64> {
        let (kind, _) = kind_and_size(bytes).ok()?;
        time_of(kind, bytes)
    }
}

/// Reads the kind and the size (including the header) of the record at the start of `bytes`.
#[inline]
fn kind_and_size(bytes: &[u8]) -> Result<(HeaderKind, u16), BadRecord> {
    let Some(head) = bytes.first_chunk::<8>() else {
        return Err(BadRecord::TooLarge(8));
    };
    let marker = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let (kind, size) = match (head[3], head[2]) {
        (0xC0, header_type) => {
            let kind =
                HeaderKind::from_type(header_type).ok_or(BadRecord::UnknownMarker(marker))?;
            let size = match kind {
                HeaderKind::System32
                | HeaderKind::System64
                | HeaderKind::Compact32
                | HeaderKind::Compact64
                | HeaderKind::PerfInfo32
                | HeaderKind::PerfInfo64 => u16::from_le_bytes([head[4], head[5]]),
                _ => marker as u16,
            };
            (kind, size)
        }
        (0x90, 0) => (HeaderKind::Message, marker as u16),
        (0xB0, _) => (
            HeaderKind::UlongTime,
            HeaderKind::UlongTime.min_size() as u16,
        ),
        _ => return Err(BadRecord::UnknownMarker(marker)),
    };
    if usize::from(size) < kind.min_size() {
        return Err(BadRecord::TooSmall(size.into()));
    }
    Ok((kind, size))
}

#[inline]
fn time_of(kind: HeaderKind, record: &[u8]) -> Option<i64> {
    match kind.time_offset() {
        Some(at) => le::i64(record, at),
        None if kind == HeaderKind::Message => message_time(record),
        None => None,
    }
}

/// Offsets of the payload and of the optional parts in a MESSAGE record. The flags of the record select the
/// optional parts.
#[derive(Clone, Copy, Debug, Default)]
struct MessageParts {
    guid: Option<usize>,
    time: Option<usize>,
    thread: Option<usize>,
    payload: usize,
}

fn message_parts(record: &[u8]) -> MessageParts {
    let flags = le::u16(record, 6).unwrap_or(0);
    let mut parts = MessageParts::default();
    let mut at = 8;
    if flags & 0x01 != 0 {
        at += 4;
    }
    if flags & 0x04 != 0 {
        at += 4;
    } else if flags & 0x02 != 0 {
        parts.guid = Some(at);
        at += 16;
    }
    if flags & 0x18 != 0 {
        parts.time = Some(at);
        at += 8;
    }
    if flags & 0x20 != 0 {
        parts.thread = Some(at);
        at += 8;
    }
    parts.payload = at;
    parts
}

fn message_time(record: &[u8]) -> Option<i64> {
    le::i64(record, message_parts(record).time?)
}

/// Descriptor of an EVENT_HEADER event (`EVENT_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor {
    /// Event id. Most TraceLogging events have 0.
    pub id: u16,
    /// Version of the event's layout.
    pub version: u8,
    /// Channel of the event. The channel of TraceLogging events is 11.
    pub channel: u8,
    /// Level, from 1 (critical) to 5 (verbose).
    pub level: u8,
    /// Opcode of the event.
    pub opcode: u8,
    /// Task of the event.
    pub task: u16,
    /// Keyword bits of the event.
    pub keyword: u64,
}

/// One extended data item of an EVENT_HEADER event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedItem<'a> {
    /// Type (`EVENT_HEADER_EXT_TYPE_*`); see [`ext_type`].
    pub ext_type: u16,
    /// Data of the item.
    pub data: &'a [u8],
}

/// Types of extended data items (`EVENT_HEADER_EXT_TYPE_*`).
pub mod ext_type {
    /// Related activity id, a GUID.
    pub const RELATED_ACTIVITY_ID: u16 = 1;
    /// Security identifier of the user whose process logged the event.
    pub const SID: u16 = 2;
    /// Terminal session id, a u32.
    pub const TERMINAL_SESSION: u16 = 3;
    /// Call stack: a u64 match id, then 32-bit addresses.
    pub const STACK_TRACE_32: u16 = 5;
    /// Call stack: a u64 match id, then 64-bit addresses.
    pub const STACK_TRACE_64: u16 = 6;
    /// Process start key, a u64.
    pub const PROCESS_START_KEY: u16 = 13;
    /// TraceLogging event schema.
    pub const TRACELOGGING_SCHEMA: u16 = 11;
    /// Provider traits: the provider's name and group.
    pub const PROVIDER_TRAITS: u16 = 12;
}

/// Iterator over the extended items of an event. It ends early at a malformed item.
#[derive(Clone, Debug)]
pub struct ExtendedItems<'a> {
    rest: &'a [u8],
    more: bool,
}

impl<'a> ExtendedItems<'a> {
    /// Returns the next item and skips its padding.
    fn split(&mut self) -> Option<ExtendedItem<'a>> {
        if !std::mem::take(&mut self.more) {
            return None;
        }
        let total = usize::from(le::u16(self.rest, 0)?);
        let data_size = usize::from(le::u16(self.rest, 6)?);
        if total < 8 {
            return None;
        }
        let item = ExtendedItem {
            ext_type: le::u16(self.rest, 2)?,
            data: self.rest.get(8..8 + data_size)?,
        };
        self.more = le::u16(self.rest, 4)? & 1 != 0;
        self.rest = self.rest.get(total.max(8 + data_size)..).unwrap_or(&[]);
        Some(item)
    }
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = ExtendedItem<'a>;

    fn next(&mut self) -> Option<ExtendedItem<'a>> {
        self.split()
    }
}

/// Position of an event in a trace, for error messages. The positions of a CPU's events are in the order in
/// which the events were logged. The exception is a log whose ring buffer was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of the segment in [`crate::Trace::segments`].
    pub segment: u16,
    /// File offset of the event's buffer, in bytes.
    pub buffer_offset: u64,
    /// Offset of the record inside the (decompressed) buffer, in bytes.
    pub offset: u32,
}

/// One event with its record, its CPU and its time. The record is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub(crate) record: &'a [u8],
    pub(crate) kind: HeaderKind,
    pub(crate) cpu: u16,
    pub(crate) raw_time: i64,
    pub(crate) clock: &'a Clock,
    pub(crate) place: Place,
}

impl<'a> Event<'a> {
    /// Returns the kind of header.
    #[inline]
    pub fn kind(&self) -> HeaderKind {
        self.kind
    }

    /// Returns the whole record: header, extended items and payload.
    #[inline]
    pub fn record(&self) -> &'a [u8] {
        self.record
    }

    /// Returns the system-wide index of the CPU whose buffer contains the event.
    #[inline]
    pub fn cpu(&self) -> u16 {
        self.cpu
    }

    /// Returns the time of the event in ticks of the session's clock. If the record has no time, returns the
    /// time of the previous record.
    #[inline]
    pub fn raw_time(&self) -> i64 {
        self.raw_time
    }

    /// Returns the clock of [`Event::raw_time`]. Raw times in payloads use the same clock.
    #[inline]
    pub fn clock(&self) -> &'a Clock {
        self.clock
    }

    /// Returns the time in nanoseconds since the trace's start. The time is negative if the event is before
    /// the start.
    #[inline]
    pub fn time_ns(&self) -> i64 {
        self.clock.to_ns(self.raw_time)
    }

    /// Returns the event's position in its file.
    #[inline]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the size of a pointer in the payload: 4 or 8 bytes. The kind of the event's header determines
    /// the size.
    #[inline]
    pub fn pointer_size(&self) -> usize {
        match self.kind {
            HeaderKind::System32
            | HeaderKind::Compact32
            | HeaderKind::Full32
            | HeaderKind::Instance32
            | HeaderKind::PerfInfo32
            | HeaderKind::EventHeader32 => 4,
            HeaderKind::Message if self.u16(6) & 0x40 != 0 => 4,
            _ => 8,
        }
    }

    /// Returns the hook id of a kernel event: the group in the high byte, the opcode in the low
    /// byte.
    #[inline]
    pub fn hook(&self) -> Option<u16> {
        match self.kind {
            HeaderKind::System32
            | HeaderKind::System64
            | HeaderKind::Compact32
            | HeaderKind::Compact64
            | HeaderKind::PerfInfo32
            | HeaderKind::PerfInfo64 => Some(self.u16(6)),
            _ => None,
        }
    }

    /// Returns the GUID in the header. For classic events, the GUID is the event class. For EVENT_HEADER
    /// events, it is the provider. For WPP messages, it is the message GUID. Kernel events have no GUID.
    pub fn guid(&self) -> Option<Guid> {
        let at = match self.kind {
            HeaderKind::Full32
            | HeaderKind::Full64
            | HeaderKind::EventHeader32
            | HeaderKind::EventHeader64 => 24,
            HeaderKind::Instance32 | HeaderKind::Instance64 if self.record.len() >= 72 => 24,
            HeaderKind::Message => message_parts(self.record).guid?,
            _ => return None,
        };
        Guid::read(self.record.get(at..)?)
    }

    /// Returns the opcode of a kernel event, a classic event or an EVENT_HEADER event.
    pub fn opcode(&self) -> Option<u8> {
        let at = match self.kind {
            HeaderKind::Full32
            | HeaderKind::Full64
            | HeaderKind::Instance32
            | HeaderKind::Instance64 => 4,
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => 45,
            _ if self.hook().is_some() => 6,
            _ => return None,
        };
        self.record.get(at).copied()
    }

    /// Returns the version of the payload's layout, if the header has a version.
    #[inline]
    pub fn version(&self) -> Option<u8> {
        let at = match self.kind {
            HeaderKind::Full32
            | HeaderKind::Full64
            | HeaderKind::Instance32
            | HeaderKind::Instance64 => 6,
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => 42,
            _ if self.hook().is_some() => 0,
            _ => return None,
        };
        self.record.get(at).copied()
    }

    /// Returns the level of classic and EVENT_HEADER events.
    pub fn level(&self) -> Option<u8> {
        match self.kind {
            HeaderKind::Full32
            | HeaderKind::Full64
            | HeaderKind::Instance32
            | HeaderKind::Instance64 => self.record.get(5).copied(),
            _ => self.descriptor().map(|d| d.level),
        }
    }

    /// Returns the descriptor of an EVENT_HEADER event.
    pub fn descriptor(&self) -> Option<Descriptor> {
        let d = match self.kind {
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => self.record.get(40..56)?,
            _ => return None,
        };
        Some(Descriptor {
            id: le::u16(d, 0)?,
            version: d[2],
            channel: d[3],
            level: d[4],
            opcode: d[5],
            task: le::u16(d, 6)?,
            keyword: le::u64(d, 8)?,
        })
    }

    /// Returns the flags of an EVENT_HEADER event (`EVENT_HEADER_FLAG_*`). In a file, flag 1 means that the
    /// event has extended items. Flag 4 means that the payload of the event is one string.
    pub fn header_flags(&self) -> Option<u16> {
        match self.kind {
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => le::u16(self.record, 4),
            _ => None,
        }
    }

    /// Returns the message number of a WPP message. The message number is unique within the message's GUID.
    pub fn message_number(&self) -> Option<u16> {
        (self.kind == HeaderKind::Message).then(|| self.u16(4))
    }

    /// Returns the activity id of an EVENT_HEADER event. Returns `None` if the id is zero.
    pub fn activity_id(&self) -> Option<Guid> {
        match self.kind {
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => {
                Guid::read(self.record.get(64..)?).filter(|g| *g != Guid::ZERO)
            }
            _ => None,
        }
    }

    /// Returns the id of the thread that logged the event, if the header has a thread id. In rundown events,
    /// the id is 0xFFFF_FFFF.
    #[inline]
    pub fn thread_id(&self) -> Option<u32> {
        le::u32(self.record, self.thread_offset()?)
    }

    /// Returns the id of the process that logged the event, if the header has a process id. In rundown
    /// events, the id is 0xFFFF_FFFF.
    #[inline]
    pub fn process_id(&self) -> Option<u32> {
        le::u32(self.record, self.thread_offset()? + 4)
    }

    fn thread_offset(&self) -> Option<usize> {
        match self.kind {
            HeaderKind::PerfInfo32
            | HeaderKind::PerfInfo64
            | HeaderKind::Timed
            | HeaderKind::Error
            | HeaderKind::Wnode
            | HeaderKind::UlongTime => None,
            HeaderKind::Message => message_parts(self.record).thread,
            _ => Some(8),
        }
    }

    /// Returns the extended data items of an EVENT_HEADER event, in file order.
    pub fn extended_items(&self) -> ExtendedItems<'a> {
        match self.header_flags() {
            Some(flags) if flags & 1 != 0 => ExtendedItems {
                rest: self.record.get(80..).unwrap_or(&[]),
                more: true,
            },
            _ => ExtendedItems {
                rest: &[],
                more: false,
            },
        }
    }

    /// Returns the values of the hardware counters. They are between the header and the payload of a PERFINFO
    /// event. The order of the counters is in the last counter-configuration event (hook 0x0F30).
    pub fn counters(&self) -> impl Iterator<Item = u64> + 'a {
        let (start, end) = match self.kind {
            HeaderKind::PerfInfo32 | HeaderKind::PerfInfo64 => {
                let version = self.u16(0);
                let start = if version & 0x8000 != 0 { 24 } else { 16 };
                (start, start + usize::from(version >> 8 & 7) * 8)
            }
            _ => (0, 0),
        };
        let bytes = self.record.get(start..end).unwrap_or(&[]);
        bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| u64::from_le_bytes(*b))
    }

    /// Returns the payload: all bytes after the header, the counters and the extended items.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.record.get(self.payload_offset()..).unwrap_or(&[])
    }

    #[inline]
    fn payload_offset(&self) -> usize {
        match self.kind {
            HeaderKind::System32 | HeaderKind::System64 => 32,
            HeaderKind::Compact32 | HeaderKind::Compact64 => 24,
            HeaderKind::Full32 | HeaderKind::Full64 => 48,
            HeaderKind::Instance32 | HeaderKind::Instance64 => self.record.len().min(72),
            HeaderKind::PerfInfo32 | HeaderKind::PerfInfo64 => {
                let version = self.u16(0);
                let pebs = usize::from(version >> 15) * 8;
                16 + pebs + usize::from(version >> 8 & 7) * 8
            }
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => {
                let mut items = self.extended_items();
                while items.split().is_some() {}
                if self.header_flags().unwrap_or(0) & 1 != 0 {
                    self.record.len() - items.rest.len()
                } else {
                    80
                }
            }
            HeaderKind::Message => message_parts(self.record).payload,
            HeaderKind::UlongTime => 16,
            HeaderKind::Timed | HeaderKind::Error | HeaderKind::Wnode => 8,
        }
    }

    #[inline]
    fn u16(&self, at: usize) -> u16 {
        le::u16(self.record, at).unwrap_or(0)
    }
}
