//! Descriptions of manifest events inside a log, as a merge writes them (EventMetadata class).
//!
//! Source: `TRACE_EVENT_INFO`, `EVENT_PROPERTY_INFO` and `EVENT_MAP_INFO` of the public `tdh.h`.

use super::injected::Injected;
use super::payload::Payload;
use crate::event::Descriptor;
use crate::guid::Guid;

/// Class of the events that describe others.
const EVENT_METADATA: Guid = Guid::new(
    0xbbcc_f6c1,
    0x6cd1,
    0x48c4,
    [0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71],
);

/// What a manifest says of one event (`TRACE_EVENT_INFO`). Empty names are absent.
#[derive(Clone, Debug, Default)]
pub struct EventInfo<'a> {
    /// Provider.
    pub provider: Guid,
    /// The event.
    pub descriptor: Descriptor,
    /// Name of the provider.
    pub provider_name: &'a str,
    /// Name of the level.
    pub level: &'a str,
    /// Name of the channel.
    pub channel: &'a str,
    /// Names of the keywords.
    pub keywords: &'a [&'a str],
    /// Name of the task.
    pub task: &'a str,
    /// Name of the opcode.
    pub opcode: &'a str,
    /// Message, with `%1` for the first property.
    pub message: &'a str,
    /// Properties: the top-level ones in the order of the payload, then members of structures.
    pub properties: &'a [Property<'a>],
    /// How many of them are top-level ones.
    pub top_level: usize,
}

/// One property of an event (`EVENT_PROPERTY_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct Property<'a> {
    /// Name.
    pub name: &'a str,
    /// What it is.
    pub kind: PropertyKind<'a>,
    /// How many there are.
    pub count: Count,
    /// How long each is.
    pub length: Length,
}

/// What a property is.
#[derive(Clone, Copy, Debug)]
pub enum PropertyKind<'a> {
    /// A value of these types (`TDH_INTYPE_*`, `TDH_OUTTYPE_*`), with the name of an [`EventMap`]
    /// or none.
    Value {
        /// How it is stored.
        in_type: u16,
        /// How it is shown; 0 for the default.
        out_type: u16,
        /// Name of its map; empty for none.
        map: &'a str,
    },
    /// A structure of the properties from this index on.
    Struct {
        /// Index of the first.
        first: u16,
        /// How many.
        members: u16,
    },
}

/// How many values a property has.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// One, and it is no array.
    One,
    /// So many.
    Fixed(u16),
    /// As many as the property of this index says.
    Property(u16),
}

/// How long a property's value is: bytes, or characters of text.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// As long as its type says.
    OfType,
    /// So long.
    Fixed(u16),
    /// As long as the property of this index says.
    Property(u16),
}

/// `PROPERTY_FLAGS`.
mod property_flag {
    pub(super) const STRUCT: u32 = 0x1;
    pub(super) const PARAM_LENGTH: u32 = 0x2;
    pub(super) const PARAM_COUNT: u32 = 0x4;
    pub(super) const FIXED_LENGTH: u32 = 0x10;
    pub(super) const FIXED_COUNT: u32 = 0x20;
}

/// Structure whose strings lie behind its fixed part, at offsets from its start.
struct WithStrings {
    fixed: Payload,
    strings: Payload,
    fixed_size: usize,
}

impl WithStrings {
    fn new(fixed_size: usize) -> WithStrings {
        WithStrings {
            fixed: Payload::new(),
            strings: Payload::new(),
            fixed_size,
        }
    }

    /// Puts the offset that the next string will have.
    fn put_offset(&mut self) {
        let offset = self.fixed_size + self.strings.len();
        self.fixed.u32(offset as u32);
    }

    /// Puts a string's offset; 0 if it is empty.
    fn name(&mut self, text: &str) {
        if text.is_empty() {
            self.fixed.u32(0);
        } else {
            self.put_offset();
            self.strings.utf16_z(text);
        }
    }

    fn finish(mut self) -> Payload {
        debug_assert_eq!(self.fixed.len(), self.fixed_size, "the layout's size");
        self.fixed.bytes(&self.strings);
        self.fixed
    }
}

impl EventInfo<'_> {
    /// The event that describes: opcode 32.
    pub fn event(&self) -> Injected {
        /// Size of the structure and of each property.
        const FIXED: usize = 112;
        const PROPERTY: usize = 24;
        let mut info = WithStrings::new(FIXED + PROPERTY * self.properties.len());
        let d = &self.descriptor;
        // The event's own GUID is for classic events.
        info.fixed.guid(self.provider).guid(Guid::ZERO);
        info.fixed.u16(d.id).u8(d.version).u8(d.channel);
        info.fixed.u8(d.level).u8(d.opcode).u16(d.task);
        // Decoding source 0: an XML manifest.
        info.fixed.u64(d.keyword).u32(0);
        info.name(self.provider_name);
        info.name(self.level);
        info.name(self.channel);
        if self.keywords.is_empty() {
            info.fixed.u32(0);
        } else {
            info.put_offset();
            for keyword in self.keywords {
                info.strings.utf16_z(keyword);
            }
            info.strings.u16(0);
        }
        info.name(self.task);
        info.name(self.opcode);
        info.name(self.message);
        // Provider message, binary XML and its size, activity and related activity names.
        info.fixed.bytes(&[0; 5 * 4]);
        info.fixed.u32(self.properties.len() as u32);
        info.fixed.u32(self.top_level as u32).u32(0);
        for property in self.properties {
            property.put(&mut info);
        }
        Injected {
            class: EVENT_METADATA,
            opcode: 32,
            version: 0,
            payload: info.finish(),
        }
    }
}

impl PropertyKind<'_> {
    /// The length that descriptions state of types that have one; 0 for the others.
    fn size(&self) -> u16 {
        let PropertyKind::Value { in_type, .. } = self else {
            return 0;
        };
        match in_type {
            3 | 4 => 1,
            5 | 6 => 2,
            7 | 8 | 11 | 13 | 20 => 4,
            9 | 10 | 12 | 17 | 21 => 8,
            15 | 18 => 16,
            _ => 0,
        }
    }
}

impl Property<'_> {
    fn put(&self, info: &mut WithStrings) {
        use property_flag::*;
        let (count_flag, count) = match self.count {
            Count::One => (0, 1),
            Count::Fixed(count) => (FIXED_COUNT, count),
            Count::Property(index) => (PARAM_COUNT, index),
        };
        let (length_flag, length) = match self.length {
            Length::OfType => (0, self.kind.size()),
            Length::Fixed(length) => (FIXED_LENGTH, length),
            Length::Property(index) => (PARAM_LENGTH, index),
        };
        let kind_flag = match self.kind {
            PropertyKind::Value { .. } => 0,
            PropertyKind::Struct { .. } => STRUCT,
        };
        info.fixed.u32(count_flag | length_flag | kind_flag);
        info.name(self.name);
        match self.kind {
            PropertyKind::Value {
                in_type,
                out_type,
                map,
            } => {
                info.fixed.u16(in_type).u16(out_type);
                info.name(map);
            }
            PropertyKind::Struct { first, members } => {
                info.fixed.u16(first).u16(members).u32(0);
            }
        }
        info.fixed.u16(count).u16(length).u32(0);
    }
}

/// Names of a property's values (`EVENT_MAP_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct EventMap<'a> {
    /// Provider.
    pub provider: Guid,
    /// Name, as properties give it.
    pub name: &'a str,
    /// Whether values are bits that can be set together.
    pub is_bitmap: bool,
    /// Values and their names.
    pub entries: &'a [(u32, &'a str)],
}

impl EventMap<'_> {
    /// The event that describes: opcode 33.
    pub fn event(&self) -> Injected {
        let mut map = WithStrings::new(16 + 8 * self.entries.len());
        map.name(self.name);
        map.fixed.u32(if self.is_bitmap { 2 } else { 1 });
        // Values are unsigned 32-bit numbers: map entry value type 0.
        map.fixed.u32(self.entries.len() as u32).u32(0);
        for (value, name) in self.entries {
            map.name(name);
            map.fixed.u32(*value);
        }
        let mut payload = Payload::new();
        payload.guid(self.provider).bytes(&map.finish());
        Injected {
            class: EVENT_METADATA,
            opcode: 33,
            version: 0,
            payload,
        }
    }
}
