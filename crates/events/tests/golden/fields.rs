//! Comparison of an event's fields with the output of TraceEvent.
//!
//! TraceEvent's fields are defined in `TraceEvent/Parsers/*TraceEventParser.cs` of
//! `github:microsoft/perfview` (MIT). Most fields have the same names in TraceEvent and in our decoder.
//! [`RENAMED`] lists the fields with different names. [`COMPUTED`] has functions that compute TraceEvent's
//! text from our fields. [`EXPLAINED`] lists the fields that differ, with the reasons.

use etl::Event;
use events::{Decoded, Value};

use crate::golden::facts::Facts;

/// A decoded event that is compared with a line of TraceEvent's output.
pub(crate) struct DecodedEvent<'a> {
    pub(crate) event: &'a Event<'a>,
    pub(crate) decoded: &'a Decoded<'a>,
    pub(crate) facts: &'a Facts,
}

/// Result of comparing a field.
pub(crate) enum Outcome {
    Equal,
    /// The field does not exist in the event's version, so TraceEvent prints it as empty or zero.
    Absent,
    /// The field differs for a known reason. Contains the reason.
    Explained(&'static str),
    /// The field differs for an unknown reason. Contains the value that our decoder returned.
    Different(String),
}

/// Fields with different names. Each entry has the event kind (`*` means any text), the name in TraceEvent
/// and the name in our decoder.
const RENAMED: &[(&str, &str, &str)] = &[
    (
        "Windows Kernel/Process/*",
        "PageDirectoryBase",
        "DirectoryTableBase",
    ),
    (
        "Windows Kernel/Process/PerfCtr*",
        "MemoryCount",
        "PageFaultCount",
    ),
    // Since version 3 of the event, the value is the affinity. TraceEvent still uses the name of version 2.
    ("Windows Kernel/Thread/*", "StartAddr", "Affinity"),
    ("Windows Kernel/DiskIO/*", "FileKey", "FileObject"),
    ("Windows Kernel/Memory/HardFault", "FileKey", "FileObject"),
    (
        "Windows Kernel/PerfInfo/Collection*",
        "SampleSource",
        "Source",
    ),
    ("Windows Kernel/SysConfig/UnknownVolume", "Value", "NtPath"),
    (
        "Microsoft-Windows-DotNETRuntime/GC/MarkWithType",
        "Promoted",
        "Bytes",
    ),
    ("Microsoft-Windows-Kernel-File/Create", "IrpPtr", "Irp"),
    (
        "Microsoft-Windows-Kernel-File/Create",
        "FileAttributes",
        "CreateAttributes",
    ),
];

/// Function that computes TraceEvent's text from our values. Returns `None` if the values are missing in our
/// event.
type Compute = fn(&DecodedEvent<'_>) -> Option<String>;

/// Fields that TraceEvent computes. Each entry has the event kind, the name of the field, and a function that
/// computes the same text.
const COMPUTED: &[(&str, &str, Compute)] = &[
    // These five fields are the header of a line. For some classes, their values come from the payload, not
    // from the event's header.
    ("*", "PID", |e| Some(e.process().to_string())),
    ("*", "TID", |e| Some(e.thread().to_string())),
    ("*", "PName", |e| Some(e.facts.process_name(e.process()))),
    ("*", "ProceNum", |e| Some(e.event.cpu().to_string())),
    ("*", "DataLen", |e| {
        Some(e.event.payload().len().to_string())
    }),
    // TraceEvent shows four bytes as one number.
    ("Windows Kernel/EventTrace", "Version", |e| {
        let parts = [
            "VersionMajor",
            "VersionMinor",
            "SubVersion",
            "SubMinorVersion",
        ];
        let bytes = parts.map(|name| e.number(name).unwrap());
        thousands(bytes.iter().rev().fold(0, |all, byte| all << 8 | byte))
    }),
    ("Windows Kernel/EventTrace", "UtcOffsetMinutes", |e| {
        Some(e.member("TimeZoneInformation", "Bias")?.to_string())
    }),
    // TraceEvent shows a number of seconds since 1970 as a date.
    ("*", "BuildTime", |e| date(e.number("TimeDateStamp")?)),
    ("Windows Kernel/Image/*", "FileName", |e| {
        Some(e.facts.user_path(&e.text("FileName")?))
    }),
    ("Windows Kernel/DiskIO/*", "FileName", |e| e.file_name()),
    ("Windows Kernel/Memory/HardFault", "FileName", |e| {
        e.file_name()
    }),
    ("Windows Kernel/DiskIO/*", "ElapsedTimeMSec", |e| {
        Some(milliseconds(e.ticks_ns("HighResResponseTime")?))
    }),
    // The service time is the smaller of two times: the response time, and the time since the disk's previous
    // transfer ended.
    ("Windows Kernel/DiskIO/*", "DiskServiceTimeMSec", |e| {
        let time = e.event.time_ns();
        let since_last = time - e.facts.transfer_before(e.number("DiskNumber")?, time);
        Some(milliseconds(
            e.ticks_ns("HighResResponseTime")?.min(since_last),
        ))
    }),
    // Bits 17 to 19 of the flags are the priority. TraceEvent shows the priority as a separate field.
    ("Windows Kernel/DiskIO/*", "Priority", |e| {
        Some((e.number("IrpFlags")? >> 17 & 7).to_string())
    }),
    ("Windows Kernel/DiskIO/*", "IrpFlags", |e| {
        Some((e.number("IrpFlags")? & !0xE_0000).to_string())
    }),
    ("Windows Kernel/Memory/HardFault", "ElapsedTimeMSec", |e| {
        let start = e.event.clock().to_ns(e.number("InitialTime")? as i64);
        Some(milliseconds(e.event.time_ns() - start))
    }),
    ("Windows Kernel/PerfInfo/Sample", "ProcessorNumber", |e| {
        Some(e.event.cpu().to_string())
    }),
    ("Windows Kernel/PerfInfo/Sample", "Priority", |e| {
        Some(e.member("Flags", "Priority")?.to_string())
    }),
    ("Windows Kernel/PerfInfo/Sample", "ExecutingDPC", |e| {
        truth(e.member("Flags", "ExecutingDpc")?)
    }),
    ("Windows Kernel/PerfInfo/Sample", "ExecutingISR", |e| {
        truth(e.member("Flags", "ExecutingIsr")?)
    }),
    // The event of a thread's start is logged by the thread that starts the new thread.
    ("Windows Kernel/Thread/*", "ParentThreadID", |e| {
        let starts = e.event.opcode() == Some(1);
        thousands_signed(if starts {
            (e.event.thread_id()? as i32).into()
        } else {
            -1
        })
    }),
    ("Windows Kernel/Thread/*", "ParentProcessID", |e| {
        let starts = e.event.opcode() == Some(1);
        thousands_signed(if starts {
            (e.event.process_id()? as i32).into()
        } else {
            -1
        })
    }),
    // TraceEvent reads version 2 as version 0. Version 0 begins with eight bytes of context. In version 2,
    // these eight bytes are the process id and the size.
    ("Windows Kernel/UdpIp/*", "context", |e| {
        Some(format!("{:#x}", e.number("size")? << 32 | e.number("PID")?))
    }),
    ("Windows Kernel/UdpIp/*", "dsize", |e| {
        thousands(e.number("seqnum")? & 0xFFFF)
    }),
    ("Windows Kernel/SystemConfig/Services", "ProcessName", |e| {
        Some(e.facts.process_name(e.process()))
    }),
    ("Microsoft-Windows-Kernel-File/Create", "FileName", |e| {
        Some(e.facts.user_path(&e.text("FileName")?))
    }),
    // The upper byte of the options is the disposition.
    (
        "Microsoft-Windows-Kernel-File/Create",
        "CreateOptions",
        |e| Some((e.number("CreateOptions")? & 0xFF_FFFF).to_string()),
    ),
    (
        "Microsoft-Windows-Kernel-File/Create",
        "CreateDisposition",
        |e| Some((e.number("CreateOptions")? >> 24).to_string()),
    ),
    ("*", "ModuleILFileName", |e| {
        Some(e.text("ModuleILPath")?.rsplit('\\').next()?.to_owned())
    }),
    ("*/GC/HeapStats", "TotalHeapSize", |e| {
        thousands(e.generations("GenerationSize"))
    }),
    ("*/GC/HeapStats", "TotalPromoted", |e| {
        thousands(e.generations("TotalPromotedSize"))
    }),
    // The depth is the oldest generation from which objects were promoted.
    ("*/GC/HeapStats", "Depth", |e| {
        let promoted = |n: &i32| e.number(&format!("TotalPromotedSize{n}")) != Some(0);
        Some((1..=2).rev().find(|n| promoted(n)).unwrap_or(0).to_string())
    }),
    ("*/GC/FinalizeObject", "TypeName", |e| {
        Some(e.facts.type_name(e.number("TypeID")?))
    }),
    ("*/Type/BulkType", "TypeID_0", |e| {
        Some(format!("0x{:08x}", e.first("Values", "TypeID")?.as_u64()?))
    }),
    ("*/Type/BulkType", "TypeName_0", |e| {
        Some(e.first("Values", "Name")?.to_string())
    }),
    ("solar_system/PrimitiveTypesTest", "char_type", |e| {
        let character = e.text("char_type")?.chars().next()?;
        Some(u32::from(character).to_string())
    }),
    // TraceEvent prints the length of the whole payload: the manifest's text and its header.
    ("*/ManifestData", "PayloadLength", |e| {
        Some(e.event.payload().len().to_string())
    }),
];

/// Fields that differ in some events. Each entry has the event kind, the name in TraceEvent, and the reason.
/// If the values are equal, the field counts as equal.
const EXPLAINED: &[(&str, &str, &str)] = &[
    (
        "KernelTraceControl/ImageID",
        "ProcessID",
        "TraceEvent prints 0 for every event",
    ),
    (
        "Windows Kernel/DiskIO/FlushBuffers",
        "*ID",
        "TraceEvent reads half of the response time as the thread id",
    ),
    (
        "Windows Kernel/DiskIO/FlushBuffers",
        "PName",
        "TraceEvent reads half of the response time as the thread id",
    ),
    (
        "Windows Kernel/SystemConfig/IRQ",
        "IRQNum",
        "TraceEvent reads version 3 as version 2, so it shows the processor group as the number",
    ),
    (
        "Windows Kernel/SystemConfig/PnP",
        "PdoName",
        "TraceEvent reads this field only since version 4, but version 3 has it too",
    ),
    (
        "Microsoft-Windows-DotNETRuntimePrivate/GC/PerHeapHistory",
        "*",
        "the public manifest has no template; TraceEvent has built-in offsets",
    ),
    (
        "solar_system/PrimitiveTypesTest",
        "system_time_type",
        "TraceEvent prints about 30 ms for every event; file_time_type confirms our value",
    ),
    (
        "PerfView/KernelEnableParameters",
        "*",
        "the whole value has the name Default; TraceEvent lists the names of its bits",
    ),
];

/// Numbers and the names that TraceEvent prints for them.
type Names = &'static [(u64, &'static str)];

/// Fields whose values TraceEvent prints as names that our decoder does not have. Each entry has the event kind, the
/// name in TraceEvent, a flag that is true if the values are sets of bits, and the names of the values.
const NAMES: &[(&str, &str, bool, Names)] = &[
    (
        "Microsoft-Windows-DotNETRuntime*/GC/GlobalHeapHistory",
        "Reason",
        false,
        &[(0, "AllocSmall"), (1, "Induced")],
    ),
    (
        "Microsoft-Windows-DotNETRuntime*/GC/GlobalHeapHistory",
        "GlobalMechanisms",
        true,
        &[
            (0x1, "Concurrent"),
            (0x2, "Compaction"),
            (0x4, "Promotion"),
            (0x8, "Demotion"),
            (0x10, "CardBundles"),
        ],
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/GlobalHeapHistory",
        "PauseMode",
        false,
        &[(1, "Interactive")],
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/FitBucketInfo",
        "BucketKind",
        false,
        &[(0, "LargestFreeListItems"), (1, "PlugsInCondemned")],
    ),
    // These names belong to complete values, not to single bits. The top bit is always set. It means that a
    // mechanism is present.
    (
        "Microsoft-Windows-DotNETRuntime/GC/PerHeapHistory",
        "CompactMechanisms",
        false,
        &[
            (0x8000_0002, "compact_high_frag"),
            (0x8000_0008, "compact_loh_forced"),
        ],
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/PerHeapHistory",
        "ExpandMechanisms",
        false,
        &[(0, "not_specified")],
    ),
    (
        "Microsoft-Windows-DotNETRuntimePrivate/NgenBinder/NgenBind",
        "ReasonCode",
        false,
        &[
            (0, "START_BIND"),
            (9, "REJECT_IL_SIG"),
            (22, "LOADFROM_NOT_ALLOWED"),
        ],
    ),
    (
        "Windows Kernel/DiskIO/*",
        "Priority",
        false,
        &[
            (0, "Notset"),
            (1, "Verylow"),
            (2, "Low"),
            (3, "Normal"),
            (4, "High"),
            (5, "Critical"),
        ],
    ),
    (
        "Windows Kernel/DiskIO/*",
        "IrpFlags",
        true,
        &[
            (0x1, "Nocache"),
            (0x2, "MountCompletion"),
            (0x4, "SynchronousApi"),
            (0x8, "AssociatedIrp"),
            (0x10, "BufferedIO"),
            (0x20, "DeallocateBuffer"),
            (0x40, "InputOperation"),
            (0x80, "Create"),
            (0x100, "Read"),
            (0x200, "Write"),
            (0x400, "Close"),
            (0x800, "DeferIOCompletion"),
            (0x1000, "ObQueryName"),
            (0x2000, "HoldDeviceQueue"),
        ],
    ),
    (
        "Microsoft-Windows-Kernel-File/Create",
        "CreateOptions",
        false,
        &[(0x20, "FILE_ATTRIBUTE_ARCHIVE")],
    ),
    (
        "Microsoft-Windows-Kernel-File/Create",
        "CreateDisposition",
        false,
        &[(1, "OPEN_EXISTING")],
    ),
    (
        "Microsoft-Windows-Kernel-File/Create",
        "ShareAccess",
        true,
        &[(3, "ReadWrite"), (4, "Delete")],
    ),
];

/// Compares the field `name` of a line with the corresponding value of our event. `printed` is the text that
/// TraceEvent printed for the field.
pub(crate) fn compare(kind: &str, name: &str, printed: &str, ours: &DecodedEvent<'_>) -> Outcome {
    let applies = |of: &str, field: &str| matches(of, kind) && matches(field, name);
    let is_zero = ["", "0", "0x00000000", "None", "Unknown"].contains(&printed);
    let names = NAMES.iter().find(|(of, field, ..)| applies(of, field));
    let computed = COMPUTED.iter().find(|(of, field, _)| applies(of, field));
    let renamed = RENAMED.iter().find(|(of, field, _)| applies(of, field));
    let name = renamed.map_or(name, |(.., ours)| ours);
    let value = match computed {
        Some((.., compute)) => compute(ours).map(|text| Value::Text(text.into())),
        None => ours.value(name).cloned(),
    };
    let outcome = match &value {
        Some(value) if is_printed_as(value, printed) => Outcome::Equal,
        Some(value)
            if names.is_some_and(|(.., bits, names)| {
                let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
                number.is_some_and(|number| named(number, *bits, names) == printed)
            }) =>
        {
            Outcome::Equal
        }
        Some(value) => Outcome::Different(format!("{value:?}")),
        None if is_zero && ours.is_fully_read() => Outcome::Absent,
        None => Outcome::Different("nothing".into()),
    };
    match EXPLAINED.iter().find(|(of, field, _)| applies(of, field)) {
        Some((.., reason)) if matches!(outcome, Outcome::Different(_)) => {
            Outcome::Explained(reason)
        }
        _ => outcome,
    }
}

/// Returns TraceEvent's text for a number whose values have names.
fn named(number: u64, bits: bool, names: &[(u64, &str)]) -> String {
    let of_bits = || {
        let set = names.iter().filter(|(bit, _)| number & bit != 0);
        let all = set.clone().fold(0, |all, (bit, _)| all | bit);
        let set: Vec<_> = set.map(|(_, name)| *name).collect();
        (bits && all == number && number != 0).then(|| set.join(", "))
    };
    let exact = || {
        names
            .iter()
            .find(|(n, _)| *n == number)
            .map(|(_, name)| (*name).to_owned())
    };
    let none = || (number == 0).then(|| "None".to_owned());
    cut(&exact().or_else(of_bits).or_else(none).unwrap_or_default())
}

fn matches(pattern: &str, kind: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => kind.starts_with(start) && kind.ends_with(end),
        None => kind == pattern,
    }
}

impl<'a> DecodedEvent<'a> {
    fn value(&self, name: &str) -> Option<&'a Value<'a>> {
        let mut values = self.decoded.fields.values.iter();
        values
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns true if the decoder read the whole payload, so that no bytes are left for another
    /// field.
    fn is_fully_read(&self) -> bool {
        self.decoded.fields.tail.is_empty() && self.decoded.fields.truncated.is_none()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(self.value(name)?.to_string())
    }

    /// Returns a member of a struct, or named bits of an integer.
    fn member(&self, name: &str, member: &str) -> Option<&'a Value<'a>> {
        let Value::Struct(members) = self.value(name)? else {
            return None;
        };
        let mut members = members.iter();
        members
            .find(|(n, _)| &**n == member)
            .map(|(_, value)| value)
    }

    /// Returns a member of the first element of an array of structs.
    fn first(&self, name: &str, member: &str) -> Option<&'a Value<'a>> {
        let Value::Array(elements) = self.value(name)? else {
            return None;
        };
        let Value::Struct(members) = elements.first()? else {
            return None;
        };
        let mut members = members.iter();
        members
            .find(|(n, _)| &**n == member)
            .map(|(_, value)| value)
    }

    /// Returns the sum of a field over all generations.
    fn generations(&self, name: &str) -> u64 {
        (0..5)
            .filter_map(|n| self.number(&format!("{name}{n}")))
            .sum()
    }

    fn is_called(&self, opcode: &str) -> bool {
        let name = self.decoded.identity.name.as_deref();
        name.is_some_and(|name| name.rsplit('/').next() == Some(opcode))
    }

    fn class(&self) -> &str {
        let name = self.decoded.identity.name.as_deref();
        match self.decoded.identity.provider.as_deref() {
            Some("Windows Kernel") => name.unwrap().split('/').next().unwrap(),
            _ => "",
        }
    }

    /// Returns the process to which the event's payload refers. If the payload names no process, returns the
    /// process that logged the event. If the header has no process either, returns the process of the event's
    /// thread. Returns -1 if no process is known.
    fn process(&self) -> i64 {
        let of_payload = match self.class() {
            "Process" | "Thread" | "Image" => self.number("ProcessId"),
            "TcpIp" | "UdpIp" => self.number("PID"),
            "SystemConfig" if self.is_called("Services") => self.number("ProcessId"),
            _ => None,
        };
        let of_header = || {
            self.event
                .process_id()
                .map(|id| id as i32)
                .filter(|id| *id != -1)
        };
        of_payload
            .map(|id| id as i32)
            .or_else(of_header)
            .or_else(|| {
                let (thread, time) = (self.thread(), self.event.time_ns());
                let process = self.facts.process_of_thread(thread as u64, time);
                process.map(|id| id as i32)
            })
            .unwrap_or(-1)
            .into()
    }

    /// Returns the thread that TraceEvent prints for the event. This is the thread in the payload, or else the
    /// thread that logged the event. For `DiskIo`, the thread that logged the event takes precedence. Returns -1
    /// for events of processes, for events of images except loads, and if no thread is known.
    fn thread(&self) -> i64 {
        let of_header = || self.event.thread_id().map(|id| id as i32);
        let of_payload = match self.class() {
            "Process" => Some(-1),
            "Image" if !self.is_called("Load") => self.number("ProcessId").map(|_| -1),
            "Thread" | "PageFault" => self.number("TThreadId").map(|id| id as i32),
            "PerfInfo" => self.number("ThreadId").map(|id| id as i32),
            "DiskIo" => of_header().or(self.number("IssuingThreadId").map(|id| id as i32)),
            _ => None,
        };
        of_payload.or_else(of_header).unwrap_or(-1).into()
    }

    fn file_name(&self) -> Option<String> {
        let time = self.event.time_ns();
        Some(self.facts.file_name(self.number("FileObject")?, time))
    }

    /// Returns a field's duration in nanoseconds. The field has ticks of the trace's clock.
    fn ticks_ns(&self, name: &str) -> Option<i64> {
        let (clock, ticks) = (self.event.clock(), self.number(name)?);
        let now = self.event.raw_time();
        Some(clock.to_ns(now) - clock.to_ns(now - ticks as i64))
    }
}

fn thousands(number: u64) -> Option<String> {
    let digits = number.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(parts.join(&b',')).ok()
}

fn thousands_signed(number: i64) -> Option<String> {
    let sign = if number < 0 { "-" } else { "" };
    Some(format!("{sign}{}", thousands(number.unsigned_abs())?))
}

fn truth(value: &Value<'_>) -> Option<String> {
    let text = if value.as_u64()? == 1 {
        "True"
    } else {
        "False"
    };
    Some(text.into())
}

fn milliseconds(ns: i64) -> String {
    let us = (ns + 500) / 1000;
    format!("{}.{:03}", us / 1000, us % 1000)
}

fn date(seconds_since_1970: u64) -> Option<String> {
    let file_time = (seconds_since_1970 + 11_644_473_600) * 10_000_000;
    Some(date_text(&Value::FileTime(file_time)))
}

fn date_text(value: &Value<'_>) -> String {
    let text = value.to_string();
    let text = text.trim_end_matches('Z')[2..]
        .replace('-', "/")
        .replace('T', " ");
    format!("{text:0<24}")
}

/// Shortens a text as TraceEvent does.
fn cut(text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let text = if units.len() > 20 {
        String::from_utf16_lossy(&units[..20]) + "..."
    } else {
        text.to_owned()
    };
    text.replace('\n', "\\n").replace('\r', "\\r")
}

/// Returns true if `printed` is TraceEvent's text for `value`. TraceEvent prints numbers with thousands
/// separators and often as signed numbers. It prints bits as a list of names, and times in UTC.
fn is_printed_as(value: &Value<'_>, printed: &str) -> bool {
    let number = printed.replace(',', "");
    match value {
        Value::Int(value) => number.parse() == Ok(*value),
        Value::Named(number, names) => {
            let names = cut(&names.replace('|', ", "));
            names.eq_ignore_ascii_case(printed) || is_number(*number, printed)
        }
        Value::FileTime(_) | Value::SystemTime(_) => cut(&date_text(value)) == printed,
        _ => match value.as_u64() {
            Some(value) => is_number(value, printed),
            None => cut(&value.to_string()) == printed,
        },
    }
}

fn is_number(value: u64, printed: &str) -> bool {
    if printed.ends_with("...") {
        return thousands_signed(value as i64).is_some_and(|text| cut(&text) == printed);
    }
    if let Some(hex) = printed.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16) == Ok(value);
    }
    match printed {
        "False" | "None" => value == 0,
        "True" => value == 1,
        _ => match printed.replace(',', "").parse::<i128>() {
            Ok(number) if number < 0 => {
                number == i128::from(value as i64) || number == i128::from(value as u32 as i32)
            }
            number => number == Ok(value.into()),
        },
    }
}
