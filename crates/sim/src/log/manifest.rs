//! Events of manifest providers that the model logs. Their layouts come from the providers' manifests.

use etl::write::{Count, EventInfo, Length, Property, PropertyKind};
use etl::{Descriptor, Guid};
use events::ids::provider;

use super::EventKind;

/// A manifest provider.
struct Provider {
    guid: Guid,
    name: &'static str,
}

pub(super) struct ManifestEvent {
    /// Kind of event for the counts of the log.
    pub(super) kind: EventKind,
    provider: &'static Provider,
    id: u16,
    version: u8,
    opcode: u8,
    /// Keyword bits of the event; 0 if public sources do not give them.
    keyword: u64,
    keywords: &'static [&'static str],
    task: &'static str,
    opcode_name: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    /// Type of the field, coded as `TDH_INTYPE_*`.
    in_type: u16,
    length: Length,
}

impl ManifestEvent {
    /// Returns the GUID of the event's provider.
    pub(super) fn provider(&self) -> Guid {
        self.provider.guid
    }

    /// Returns the event's descriptor. Its level is 4 (informational). Its task is 0, because
    /// public sources do not give task numbers.
    pub(super) fn descriptor(&self) -> Descriptor {
        Descriptor {
            id: self.id,
            version: self.version,
            channel: 0,
            level: 4,
            opcode: self.opcode,
            task: 0,
            keyword: self.keyword,
        }
    }

    /// Returns the metadata event that describes the layout of this event in the trace.
    pub(super) fn description(&self) -> etl::write::Injected {
        let property = |field: &Field| Property {
            name: field.name,
            kind: PropertyKind::Value {
                in_type: field.in_type,
                out_type: 0,
                map: "",
            },
            count: Count::One,
            length: field.length,
        };
        let properties: Vec<_> = self.fields.iter().map(property).collect();
        EventInfo {
            provider: self.provider.guid,
            descriptor: self.descriptor(),
            provider_name: self.provider.name,
            level: "Information",
            channel: "",
            keywords: self.keywords,
            task: self.task,
            opcode: self.opcode_name,
            message: "",
            properties: &properties,
            top_level: properties.len(),
        }
        .event()
    }
}

const WIN32K: Provider = Provider {
    guid: provider::WIN32K,
    name: "Microsoft-Windows-Win32k",
};
const KERNEL_PROCESS: Provider = Provider {
    guid: provider::KERNEL_PROCESS,
    name: "Microsoft-Windows-Kernel-Process",
};
const KERNEL_POWER: Provider = Provider {
    guid: provider::KERNEL_POWER,
    name: "Microsoft-Windows-Kernel-Power",
};
const PACKET_CAPTURE: Provider = Provider {
    guid: provider::NDIS_PACKET_CAPTURE,
    name: "Microsoft-Windows-NDIS-PacketCapture",
};
const DOTNET_RUNTIME: Provider = Provider {
    guid: provider::DOTNET_RUNTIME,
    name: "Microsoft-Windows-DotNETRuntime",
};
const INPUT: Provider = Provider {
    guid: provider::MULTI_INPUT,
    name: "Multi-Input",
};

const fn field(name: &'static str, in_type: u16) -> Field {
    Field {
        name,
        in_type,
        length: Length::OfType,
    }
}

const fn unicode(name: &'static str, length: Length) -> Field {
    Field {
        name,
        in_type: 1,
        length,
    }
}

const fn ansi(name: &'static str) -> Field {
    field(name, 2)
}

const fn u16(name: &'static str) -> Field {
    field(name, 6)
}

const fn u32(name: &'static str) -> Field {
    field(name, 8)
}

const fn u64(name: &'static str) -> Field {
    field(name, 10)
}

const fn double(name: &'static str) -> Field {
    field(name, 12)
}

const fn boolean(name: &'static str) -> Field {
    field(name, 13)
}

const fn binary(name: &'static str, length: Length) -> Field {
    Field {
        name,
        in_type: 14,
        length,
    }
}

/// Default values for the following events: no opcode, version 0.
const BLANK: ManifestEvent = ManifestEvent {
    kind: EventKind::Focus,
    provider: &WIN32K,
    id: 0,
    version: 0,
    opcode: 0,
    keyword: 0,
    keywords: &[],
    task: "",
    opcode_name: "",
    fields: &[],
};

/// Event when a process gets the focus.
pub(super) const FOCUSED_PROCESS_CHANGE: ManifestEvent = ManifestEvent {
    kind: EventKind::Focus,
    provider: &WIN32K,
    id: 26,
    keyword: 0x2_0000,
    keywords: &["UserActivity"],
    task: "FocusedProcessChange",
    fields: &[u32("SessionId"), u32("OldProcessId"), u32("NewProcessId")],
    ..BLANK
};

/// Event when a process is frozen, in version 0. Version 1 adds the creation time. It is not known which
/// build of Windows logs version 1 first.
pub(super) const PROCESS_FREEZE_START: ManifestEvent = ManifestEvent {
    kind: EventKind::Freeze,
    provider: &KERNEL_PROCESS,
    id: 11,
    opcode: 1,
    keyword: 0x200,
    keywords: &["WINEVENT_KEYWORD_PROCESS_FREEZE"],
    task: "ProcessFreeze",
    opcode_name: "Start",
    fields: &[u32("FrozenProcessID")],
    ..BLANK
};

/// Event when a process is thawed.
pub(super) const PROCESS_FREEZE_STOP: ManifestEvent = ManifestEvent {
    id: 12,
    opcode: 2,
    opcode_name: "Stop",
    ..PROCESS_FREEZE_START
};

/// Event when a process requests a timer resolution, in the layout before Windows 11.
pub(super) const TIMER_REQUEST: ManifestEvent = ManifestEvent {
    kind: EventKind::TimerRequest,
    provider: &KERNEL_POWER,
    id: 63,
    version: 1,
    task: "SystemTimeResolutionChange",
    fields: &[
        u32("RequestedResolution"),
        u32("Pid"),
        u16("AppNameLength"),
        unicode("AppName", Length::Property(2)),
        u32("SubProcessTag"),
    ],
    ..BLANK
};

/// Event when a process requests a timer resolution, in the layout since Windows 11.
pub(super) const TIMER_REQUEST_2: ManifestEvent = ManifestEvent {
    version: 2,
    fields: &[
        u32("RequestedResolution"),
        u32("Pid"),
        u16("AppNameLength"),
        unicode("AppName", Length::Property(2)),
        u32("SubProcessTag"),
        boolean("RequestIgnored"),
    ],
    ..TIMER_REQUEST
};

/// Event when the timer resolution changes.
pub(super) const TIMER_RESOLUTION: ManifestEvent = ManifestEvent {
    kind: EventKind::TimerResolution,
    provider: &KERNEL_POWER,
    id: 95,
    task: "SystemTimeResolutionUpdate",
    fields: &[u32("NewResolution")],
    ..BLANK
};

/// Event when the machine goes to sleep.
pub(super) const PRE_SLEEP: ManifestEvent = ManifestEvent {
    kind: EventKind::Sleep,
    provider: &KERNEL_POWER,
    id: 42,
    task: "PreSleepNotification",
    fields: &[u32("TargetState"), u32("EffectiveState")],
    ..BLANK
};

/// Event when the machine has resumed from sleep.
pub(super) const POST_SLEEP: ManifestEvent = ManifestEvent {
    id: 107,
    task: "PostSleepNotification",
    fields: &[
        u32("TargetState"),
        u32("EffectiveState"),
        u32("WakeFromState"),
    ],
    ..PRE_SLEEP
};

/// Event when the runtime of .NET begins to stop the threads of its process.
pub(super) const SUSPEND_BEGIN: ManifestEvent = ManifestEvent {
    kind: EventKind::Collection,
    provider: &DOTNET_RUNTIME,
    id: 9,
    version: 1,
    opcode: 137,
    keyword: 0x1,
    keywords: &["GCKeyword"],
    task: "GC",
    opcode_name: "SuspendEEStart",
    fields: &[u32("Reason"), u32("Count"), u16("ClrInstanceID")],
};

/// Event when a garbage collection begins.
pub(super) const COLLECTION_BEGIN: ManifestEvent = ManifestEvent {
    id: 1,
    opcode: 1,
    opcode_name: "Start",
    fields: &[
        u32("Count"),
        u32("Depth"),
        u32("Reason"),
        u32("Type"),
        u16("ClrInstanceID"),
    ],
    ..SUSPEND_BEGIN
};

/// Event when a garbage collection ends.
pub(super) const COLLECTION_END: ManifestEvent = ManifestEvent {
    id: 2,
    opcode: 2,
    opcode_name: "Stop",
    fields: &[u32("Count"), u32("Depth"), u16("ClrInstanceID")],
    ..SUSPEND_BEGIN
};

/// Event when the threads of the process go on.
pub(super) const RESTART_END: ManifestEvent = ManifestEvent {
    id: 3,
    opcode: 132,
    opcode_name: "RestartEEStop",
    fields: &[u16("ClrInstanceID")],
    ..SUSPEND_BEGIN
};

/// Event when the number of threads in the pool of .NET changes.
pub(super) const POOL_THREADS: ManifestEvent = ManifestEvent {
    kind: EventKind::PoolThreads,
    id: 55,
    version: 0,
    opcode: 101,
    keyword: 0x10000,
    keywords: &["ThreadingKeyword"],
    task: "ThreadPoolWorkerThreadAdjustment",
    opcode_name: "Adjustment",
    fields: &[
        double("AverageThroughput"),
        u32("NewWorkerThreadCount"),
        u32("Reason"),
        u16("ClrInstanceID"),
    ],
    ..SUSPEND_BEGIN
};

/// Event that contains a sent Ethernet frame. It is not known which build of Windows logs the last two fields
/// first.
pub(super) const PACKET_SENT: ManifestEvent = ManifestEvent {
    kind: EventKind::Packet,
    provider: &PACKET_CAPTURE,
    id: 1001,
    // Keyword bits: Ethernet, start of the packet, end of the packet, sent packet.
    keyword: 0x1 | 0x4000_0000 | 0x8000_0000 | 0x1_0000_0000,
    fields: &[
        u32("MiniportIfIndex"),
        u32("LowerIfIndex"),
        u32("FragmentSize"),
        binary("Fragment", Length::Property(2)),
        u64("GftFlowEntryId"),
        u64("GftOffloadInformation"),
    ],
    ..BLANK
};

/// Event that contains a received Ethernet frame.
pub(super) const PACKET_RECEIVED: ManifestEvent = ManifestEvent {
    keyword: 0x1 | 0x4000_0000 | 0x8000_0000 | 0x2_0000_0000,
    ..PACKET_SENT
};

/// Event when a key is pressed.
pub(super) const KEY_DOWN: ManifestEvent = ManifestEvent {
    kind: EventKind::KeyDown,
    provider: &INPUT,
    id: 404,
    task: "Keyboard",
    opcode_name: "KeyDown",
    fields: &[
        u32("Virtual key code"),
        ansi("Key name"),
        u32("Repeat count"),
        u32("Flags"),
    ],
    ..BLANK
};
