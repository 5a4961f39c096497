//! The manifest events that the model logs, as their providers' manifests describe them.

use etl::write::{Count, EventInfo, Length, Property, PropertyKind};
use etl::{Descriptor, Guid};

use super::EventKind;

/// A provider.
struct Provider {
    guid: Guid,
    name: &'static str,
}

/// An event of a provider.
pub(super) struct ManifestEvent {
    /// What the log counts it as.
    pub(super) kind: EventKind,
    provider: &'static Provider,
    id: u16,
    version: u8,
    opcode: u8,
    /// Keywords of all its events; 0 where public sources do not give their values.
    keyword: u64,
    keywords: &'static [&'static str],
    task: &'static str,
    opcode_name: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    /// `TDH_INTYPE_*`.
    in_type: u16,
    length: Length,
}

impl ManifestEvent {
    /// GUID of its provider.
    pub(super) fn provider(&self) -> Guid {
        self.provider.guid
    }

    /// Its descriptor, of level 4, informational. Public sources do not give the tasks' numbers.
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

    /// The payload of the event that describes it.
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
    guid: Guid::new(
        0x8C41_6C79,
        0xD49B,
        0x4F01,
        [0xA4, 0x67, 0xE5, 0x6D, 0x3A, 0xA8, 0x23, 0x4C],
    ),
    name: "Microsoft-Windows-Win32k",
};
const KERNEL_PROCESS: Provider = Provider {
    guid: Guid::new(
        0x22FB_2CD6,
        0x0E7B,
        0x422B,
        [0xA0, 0xC7, 0x2F, 0xAD, 0x1F, 0xD0, 0xE7, 0x16],
    ),
    name: "Microsoft-Windows-Kernel-Process",
};
const KERNEL_POWER: Provider = Provider {
    guid: Guid::new(
        0x331C_3B3A,
        0x2005,
        0x44C2,
        [0xAC, 0x5E, 0x77, 0x22, 0x0C, 0x37, 0xD6, 0xB4],
    ),
    name: "Microsoft-Windows-Kernel-Power",
};
const PACKET_CAPTURE: Provider = Provider {
    guid: Guid::new(
        0x2ED6_006E,
        0x4729,
        0x4609,
        [0xB4, 0x23, 0x3E, 0xE7, 0xBC, 0xD6, 0x78, 0xEF],
    ),
    name: "Microsoft-Windows-NDIS-PacketCapture",
};
const INPUT: Provider = Provider {
    guid: Guid::new(
        0x70E2_503B,
        0xC6F3,
        0x4780,
        [0xB3, 0x23, 0xBD, 0x8E, 0xD0, 0xC6, 0x1B, 0xF8],
    ),
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

/// What most events have in common: no opcode, version 0.
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

/// A process gets the focus.
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

/// A process is frozen. Version 1 adds when it was created; since which build is not known.
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

/// A process is thawed.
pub(super) const PROCESS_FREEZE_STOP: ManifestEvent = ManifestEvent {
    id: 12,
    opcode: 2,
    opcode_name: "Stop",
    ..PROCESS_FREEZE_START
};

/// A process asks for a timer resolution, before Windows 11.
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

/// A process asks for a timer resolution, since Windows 11.
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

/// The timer resolution changes.
pub(super) const TIMER_RESOLUTION: ManifestEvent = ManifestEvent {
    kind: EventKind::TimerResolution,
    provider: &KERNEL_POWER,
    id: 95,
    task: "SystemTimeResolutionUpdate",
    fields: &[u32("NewResolution")],
    ..BLANK
};

/// The machine goes to sleep.
pub(super) const PRE_SLEEP: ManifestEvent = ManifestEvent {
    kind: EventKind::Sleep,
    provider: &KERNEL_POWER,
    id: 42,
    task: "PreSleepNotification",
    fields: &[u32("TargetState"), u32("EffectiveState")],
    ..BLANK
};

/// The machine has resumed.
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

/// A whole Ethernet frame that was sent. Which builds began to log the two last fields is not
/// known.
pub(super) const PACKET_SENT: ManifestEvent = ManifestEvent {
    kind: EventKind::Packet,
    provider: &PACKET_CAPTURE,
    id: 1001,
    // Ethernet, start and end of the packet, sent.
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

/// A whole Ethernet frame that was received.
pub(super) const PACKET_RECEIVED: ManifestEvent = ManifestEvent {
    keyword: 0x1 | 0x4000_0000 | 0x8000_0000 | 0x2_0000_0000,
    ..PACKET_SENT
};

/// A key is pressed.
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
