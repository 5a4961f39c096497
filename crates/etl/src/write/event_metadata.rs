//! Descriptions of manifest events (EventMetadata class). These descriptions are added when a trace is
//! merged.
//!
//! Source: `TRACE_EVENT_INFO`, `EVENT_PROPERTY_INFO` and `EVENT_MAP_INFO` of the public `tdh.h`.

use super::injected::Injected;
use super::payload::Payload;
use crate::event::Descriptor;
use crate::guid::Guid;
use crate::ids::class::EVENT_METADATA;

/// Description of one event (`TRACE_EVENT_INFO`). An empty name means that the description does not contain
/// this name.
#[derive(Clone, Debug, Default)]
pub struct EventInfo<'a> {
    /// GUID of the provider.
    pub provider: Guid,
    /// Descriptor of the event.
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
    /// Text of the event's message, with the placeholder `%1` for the first property.
    pub message: &'a str,
    /// Properties: first the top-level properties in payload order, then the members of structures.
    pub properties: &'a [Property<'a>],
    /// Number of top-level properties.
    pub top_level: usize,
}

/// One property of an event (`EVENT_PROPERTY_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct Property<'a> {
    /// Name of the property.
    pub name: &'a str,
    /// Type of the property.
    pub kind: PropertyKind<'a>,
    /// Number of values of the property.
    pub count: Count,
    /// Size of each value of the property.
    pub length: Length,
}

/// Type of a property.
#[derive(Clone, Copy, Debug)]
pub enum PropertyKind<'a> {
    /// A value. It has an in-type (`TDH_INTYPE_*`), an out-type (`TDH_OUTTYPE_*`), and optionally the name of
    /// an [`EventMap`].
    Value {
        /// Type that determines the layout of the bytes.
        in_type: u16,
        /// Type that determines the format in which the value is shown; 0 means the default.
        out_type: u16,
        /// Name of the map that has the names of the values. The name is empty if there is no map.
        map: &'a str,
    },
    /// A structure whose members are other properties.
    Struct {
        /// Index of the first member.
        first: u16,
        /// Number of members of the structure.
        members: u16,
    },
}

/// Number of values of a property.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// One value that is not an array.
    One,
    /// Fixed number of values.
    Fixed(u16),
    /// Number of values that another property contains. The variant has the index of that property.
    Property(u16),
}

/// Size of a property's value. The unit is bytes, or characters for text.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// Size that the property's type defines.
    OfType,
    /// Fixed size.
    Fixed(u16),
    /// Size that another property contains. The variant has the index of that property.
    Property(u16),
}

/// Flags of a property (`PROPERTY_FLAGS` in `tdh.h`).
mod property_flag {
    pub(super) const STRUCT: u32 = 0x1;
    pub(super) const PARAM_LENGTH: u32 = 0x2;
    pub(super) const PARAM_COUNT: u32 = 0x4;
    pub(super) const FIXED_LENGTH: u32 = 0x10;
    pub(super) const FIXED_COUNT: u32 = 0x20;
}

/// Builder of a structure that has a fixed part and then strings. The fixed part contains the strings'
/// offsets.
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

    /// Appends the offset of the next string that is added.
    fn put_offset(&mut self) {
        let offset = self.fixed_size + self.strings.len();
        self.fixed.u32(offset as u32);
    }

    /// Appends a string, and its offset to the fixed part. If the string is empty, appends only the
    /// offset 0.
    fn name(&mut self, text: &str) {
        if text.is_empty() {
            self.fixed.u32(0);
        } else {
            self.put_offset();
            self.strings.utf16_z(text);
        }
    }

    fn finish(mut self) -> Payload {
        debug_assert_eq!(
            self.fixed.len(),
            self.fixed_size,
            "the fixed part has the size of the layout"
        );
        self.fixed.bytes(&self.strings);
        self.fixed
    }
}

impl EventInfo<'_> {
    /// Returns the event with this description. It has opcode 32.
    pub fn event(&self) -> Injected {
        /// Size in bytes of the structure without its properties and strings.
        const FIXED: usize = 112;
        /// Size in bytes of one property.
        const PROPERTY: usize = 24;
        let mut info = WithStrings::new(FIXED + PROPERTY * self.properties.len());
        let d = &self.descriptor;
        // Only descriptions of classic events use the second GUID.
        info.fixed.guid(self.provider).guid(Guid::ZERO);
        info.fixed.u16(d.id).u8(d.version).u8(d.channel);
        info.fixed.u8(d.level).u8(d.opcode).u16(d.task);
        // The u32 after the keyword is the decoding source. 0 means an XML manifest.
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
        // These five fields are the provider message, the binary XML, the size of the binary XML, the
        // activity name, and the name of the related activity. All five are absent.
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
    /// Returns the length that a description states for a type. The length is 0 if the type has no fixed
    /// size.
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
    /// GUID of the provider.
    pub provider: Guid,
    /// Name of the map. Properties refer to the map by this name.
    pub name: &'a str,
    /// True if the values are bits that can be combined.
    pub is_bitmap: bool,
    /// Values and their names.
    pub entries: &'a [(u32, &'a str)],
}

impl EventMap<'_> {
    /// Returns the event with this map. It has opcode 33.
    pub fn event(&self) -> Injected {
        let mut map = WithStrings::new(16 + 8 * self.entries.len());
        map.name(self.name);
        map.fixed.u32(if self.is_bitmap { 2 } else { 1 });
        // The u32 after the number of entries is the type of the values. 0 means unsigned 32-bit
        // numbers.
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
