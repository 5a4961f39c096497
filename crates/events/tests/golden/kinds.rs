//! TraceEvent's names of events, and the events that TraceEvent omits from its dumps.
//!
//! TraceEvent's names and rules are in `TraceEvent/Parsers/KernelTraceEventParser.cs`,
//! `SymbolTraceEventParser.cs` and `TraceLog.cs` of `github:microsoft/perfview` (MIT).

use etl::Event;
use events::schema::Source;
use events::{Decoded, Value, built_in};

/// Kernel classes that TraceEvent names differently or lists under another provider. Each entry has our name,
/// TraceEvent's provider, and TraceEvent's name.
const CLASSES: &[(&str, &str, &str)] = &[
    ("DiskIo", "Windows Kernel", "DiskIO"),
    ("FileIo", "Windows Kernel", "FileIO"),
    ("PageFault", "Windows Kernel", "Memory"),
    ("SysConfigEx", "Windows Kernel", "SysConfig"),
    ("EventMetadata", "KernelTraceControl", "MetaData"),
    ("ImageId", "KernelTraceControl", "ImageID"),
];

/// Opcodes that TraceEvent names differently in all classes. Each entry has our name and TraceEvent's name.
const OPCODES: &[(&str, &str)] = &[
    ("End", "Stop"),
    ("DCEnd", "DCStop"),
    ("RecvIPV4", "Recv"),
    ("SendIPV4", "Send"),
];

/// Single kernel events that TraceEvent names differently. Each entry has our name and TraceEvent's name.
const EVENTS: &[(&str, &str)] = &[
    ("EventTrace/Header", "EventTrace"),
    ("ImageId/DbgIdDeterministic", "ImageID/DbgDeterm"),
    ("ImageId/DbgIdILRSDS", "ImageID/DbgID_ILRSDS"),
    ("ImageId/DbgIdNone", "ImageID/None"),
    ("ImageId/DbgIdPPDB", "ImageID/DbgPPDB"),
    ("ImageId/DbgIdRSDS", "ImageID/DbgID_RSDS"),
    ("ImageId/ImageId", "ImageID"),
    ("PerfInfo/SampledProfile", "PerfInfo/Sample"),
    ("PerfInfo/SampledProfileDCEnd", "PerfInfo/CollectionEnd"),
    ("PerfInfo/SampledProfileDCStart", "PerfInfo/CollectionStart"),
    ("SysConfigEx/DeviceFamily", "SysConfig/Opcode(37)"),
    ("SystemConfig/Boot", "SystemConfig/BootConfigInfo"),
    (
        "SystemConfig/TelemetryInfo",
        "SystemConfig/TelemetryConfiguration",
    ),
    (
        "SystemConfig/Virtualization",
        "SystemConfig/VirtualizationConfigInfo",
    ),
];

/// Kernel events that TraceEvent does not know. TraceEvent asks Windows to decode them.
const DECODED_BY_WINDOWS: &[&str] = &[
    "EventTrace/PartitionInfo",
    "Image/HypercallPage",
    "Image/KernelBase",
    "SystemConfig/DPI",
    "SystemConfig/OpticalDisk",
    "SystemConfig/Platform",
];

/// Events of user-mode providers that TraceEvent names differently. Each entry has our name and TraceEvent's
/// name.
const USER_EVENTS: &[(&str, &str)] = &[
    (
        "Microsoft-Windows-DotNETRuntime/GC/GCBulkMovedObjectRanges",
        "GC/BulkMovedObjectRanges",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/GCBulkSurvivingObjectRanges",
        "GC/BulkSurvivingObjectRanges",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/GCGenerationRange",
        "GC/GenerationRange",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/IncreaseMemoryPressure",
        "GarbageCollection/IncreaseMemoryPressure",
    ),
    (
        "System.Threading.Tasks.TplEventSource/TaskCompleted",
        "TaskExecute/Stop",
    ),
    (
        "System.Threading.Tasks.TplEventSource/TaskStarted",
        "TaskExecute/Start",
    ),
];

/// Events that TraceEvent removes from a trace, with the reason. TraceEvent keeps the facts of these events in other
/// data. TraceEvent calls these events "bookkeeping events".
const LEFT_OUT: &[(&str, &str)] = &[
    ("Windows Kernel/FileIO/FileCreate", "kept as file names"),
    ("Windows Kernel/FileIO/FileDelete", "kept as file names"),
    ("Windows Kernel/FileIO/FileRundown", "kept as file names"),
    ("Windows Kernel/StackWalk/KeyDelete", "kept as stacks"),
    ("Windows Kernel/StackWalk/KeyRundown", "kept as stacks"),
    ("Windows Kernel/StackWalk/Stack", "kept as stacks"),
    ("Windows Kernel/StackWalk/StackKeyKernel", "kept as stacks"),
    ("Windows Kernel/StackWalk/StackKeyUser", "kept as stacks"),
    ("Windows Kernel/Thread/DCStart", "kept as threads"),
    ("Windows Kernel/Thread/DCStop", "kept as threads"),
    (
        "Microsoft-Windows-DotNETRuntime/ClrStack/Walk",
        "kept as stacks",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Method/MethodILToNativeMap",
        "kept as methods",
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopVerbose",
        "kept as methods",
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Method/MethodDCEndILToNativeMap",
        "kept as methods",
    ),
];

/// Returns the names that TraceEvent uses for the event's provider and for the event.
pub(crate) fn name(event: &Event<'_>, decoded: &Decoded<'_>) -> (String, String) {
    let identity = &decoded.identity;
    let provider = identity.provider.as_deref().unwrap_or("");
    let own = identity.name.as_deref();
    if decoded.source == Some(Source::Kernel) {
        return kernel_name(own.unwrap());
    }
    let descriptor = event.descriptor();
    let by_id = || format!("EventID({})", descriptor.unwrap().id);
    let mut name = own.map_or_else(by_id, str::to_owned);
    if provider.starts_with("Microsoft-Windows-DotNETRuntime") {
        // Metadata in the trace has names for programmers (`GarbageCollection/GCStart`). TraceEvent prints
        // names for users. Our built-in layouts also have the names for users.
        let d = descriptor.unwrap();
        let facts = built_in::schema(identity.guid.unwrap(), d.id, d.version);
        name = facts.unwrap().name.to_string();
    } else if decoded.source == Some(Source::TraceLogging) {
        // The name of a TraceLogging event does not include the opcode. TraceEvent appends the
        // names of the opcodes Start and Stop.
        match event.opcode() {
            Some(1) => name += "/Start",
            Some(2) => name += "/Stop",
            _ => {}
        }
    }
    let full = format!("{provider}/{name}");
    if let Some((_, theirs)) = USER_EVENTS.iter().find(|(ours, _)| *ours == full) {
        name = (*theirs).to_owned();
    }
    (provider.to_owned(), name)
}

fn kernel_name(ours: &str) -> (String, String) {
    let (class, opcode) = ours.split_once('/').unwrap();
    let class = CLASSES.iter().find(|(name, ..)| *name == class);
    let provider = match class {
        _ if DECODED_BY_WINDOWS.contains(&ours) => "MSNT_SystemTrace",
        Some((_, provider, _)) => provider,
        None => "Windows Kernel",
    };
    let name = match EVENTS.iter().find(|(event, _)| *event == ours) {
        Some((_, theirs)) => (*theirs).to_owned(),
        None => {
            let class = class.map_or(ours.split('/').next().unwrap(), |(.., theirs)| theirs);
            let opcode = OPCODES
                .iter()
                .find(|(name, _)| *name == opcode)
                .map_or(opcode, |(_, theirs)| theirs);
            format!("{class}/{opcode}")
        }
    };
    (provider.to_owned(), name)
}

/// Returns the reason why TraceEvent's baselines have no event of the kind `kind`. Returns `None` if the
/// baselines can have such events.
pub(crate) fn reason_not_in_baselines(kind: &str) -> Option<&'static str> {
    let kept = ["Image/KernelBase", "SystemConfig/Platform"];
    let own = kind.strip_prefix("MSNT_SystemTrace/")?;
    (!kept.contains(&own)).then_some("Windows decodes the event, and builds of Windows differ")
}

/// Returns the reason why TraceEvent removes an event of the kind `kind` from a trace. Returns `None` if
/// TraceEvent keeps the event.
pub(crate) fn reason_left_out(kind: &str, decoded: &Decoded<'_>) -> Option<&'static str> {
    let number = |name: &str| decoded.fields.get(name).and_then(Value::as_u64);
    match kind {
        // TraceEvent removes samples of idle processors. It keeps the samples of interrupts on idle
        // processors.
        "Windows Kernel/PerfInfo/Sample" => {
            let Some(Value::Struct(flags)) = decoded.fields.get("Flags") else {
                panic!("no flags")
            };
            let is_set = |name: &str| {
                flags
                    .iter()
                    .any(|(n, v)| &**n == name && v.as_u64() == Some(1))
            };
            let is_interrupt = is_set("ExecutingDpc") || is_set("ExecutingIsr");
            (number("ThreadId") == Some(0) && !is_interrupt).then_some("an idle processor")
        }
        "Microsoft-Windows-DotNETRuntime/Method/LoadVerbose" => {
            let is_compiled_here = number("MethodFlags").unwrap() & 9 != 0;
            (!is_compiled_here).then_some("neither dynamic nor jitted: kept as methods")
        }
        "Microsoft-Windows-DotNETRuntime/Method/UnloadVerbose" => {
            (number("MethodFlags").unwrap() & 8 == 0).then_some("not jitted: kept as methods")
        }
        _ => LEFT_OUT
            .iter()
            .find(|(name, _)| *name == kind)
            .map(|(_, reason)| *reason),
    }
}
