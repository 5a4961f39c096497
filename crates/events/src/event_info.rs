//! Event descriptions that a merged trace carries: `TRACE_EVENT_INFO` and `EVENT_MAP_INFO`.
//!
//! The merge step (`xperf -merge`, WPR, PerfView) writes one classic event of the provider
//! [`EVENT_METADATA`] per distinct manifest event ([`EVENT_INFO_OPCODE`]) and per value map
//! ([`MAP_INFO_OPCODE`]). They may stand anywhere in the trace. Layouts: the public `tdh.h`.

use std::collections::HashMap;
use std::sync::Arc;

use etl::{Descriptor, Guid, le};

use crate::schema::{Count, Field, InType, Length, Schema, Source, ValueMap};
use crate::tdh;

/// Class GUID of the events that hold descriptions.
pub const EVENT_METADATA: Guid = Guid::new(
    0xbbccf6c1,
    0x6cd1,
    0x48c4,
    [0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71],
);
/// Opcode of events whose payload is a `TRACE_EVENT_INFO`: see [`parse_event_info`].
pub const EVENT_INFO_OPCODE: u8 = 32;
/// Opcode of events whose payload is a GUID and an `EVENT_MAP_INFO`: see [`parse_map_info`].
pub const MAP_INFO_OPCODE: u8 = 33;

/// Structs nested deeper than this are refused.
const MAX_DEPTH: usize = 32;
const HEADER_SIZE: usize = 112;
const PROPERTY_SIZE: usize = 24;

/// Why a description cannot be read. Offsets are bytes from the structure's start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventInfoError {
    /// The structure is shorter than its counts say.
    #[error("{what} needs {needed} bytes, found {found}")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
    /// A string starts outside, lacks its end, or strings overlap beyond reason.
    #[error("no readable string at byte {offset} ({what})")]
    BadString {
        /// What the string names.
        what: &'static str,
        /// Where it should start.
        offset: usize,
    },
    /// A property refers to a property that does not exist, or is already in use.
    #[error("property {property} refers to property {found}, of {count}")]
    BadReference {
        /// The referring property's index.
        property: usize,
        /// The index it names.
        found: usize,
        /// How many properties there are.
        count: usize,
    },
    /// A property has a type that `tdh.h` does not define.
    #[error("property `{property}` has unknown in-type {in_type}")]
    UnknownType {
        /// The property's name.
        property: Arc<str>,
        /// Its type number.
        in_type: u16,
    },
    /// Structs are nested too deeply.
    #[error("property {property} is nested in more than {MAX_DEPTH} structs")]
    TooDeep {
        /// The property's index.
        property: usize,
    },
    /// The map is not one from numbers to names.
    #[error(
        "map `{name}` is of a kind that has no numbers (flags {flags:#x}, value type {value_type})"
    )]
    UnsupportedMap {
        /// The map's name.
        name: Arc<str>,
        /// Its `MAP_FLAGS`.
        flags: u32,
        /// Its `MAP_VALUETYPE`.
        value_type: u32,
    },
}

/// One described event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Which events it describes: those of the schema's provider with this id and version.
    pub descriptor: Descriptor,
    /// Its description. A field's [`Field::map`] has only a name until [`resolve_maps`].
    pub schema: Schema,
}

/// Reads a `TRACE_EVENT_INFO`.
pub fn parse_event_info(blob: &[u8]) -> Result<EventInfo, EventInfoError> {
    let truncated = |needed| EventInfoError::Truncated {
        what: "TRACE_EVENT_INFO",
        needed,
        found: blob.len(),
    };
    let header = blob
        .first_chunk::<HEADER_SIZE>()
        .ok_or_else(|| truncated(HEADER_SIZE))?;
    let u32_at = |at| le::u32(header, at).unwrap_or(0);
    let count = u32_at(100) as usize;
    let top_level = u32_at(104) as usize;
    let needed = count
        .saturating_mul(PROPERTY_SIZE)
        .saturating_add(HEADER_SIZE);
    if blob.len() < needed {
        return Err(truncated(needed));
    }
    if top_level > count {
        return Err(EventInfoError::BadReference {
            property: 0,
            found: top_level,
            count,
        });
    }

    let descriptor = Descriptor {
        id: le::u16(header, 32).unwrap_or(0),
        version: header[34],
        channel: header[35],
        level: header[36],
        opcode: header[37],
        task: le::u16(header, 38).unwrap_or(0),
        keyword: le::u64(header, 40).unwrap_or(0),
    };
    let mut strings = Strings::new(blob);
    let mut text = |at: usize, what| match u32_at(at) {
        0 => Ok(None),
        offset => strings.read(offset, what).map(Some),
    };
    let provider_name = text(52, "provider name")?;
    let task = text(68, "task name")?;
    let opcode = text(72, "opcode name")?;
    let message = text(76, "event message")?;
    // This place holds an activity id's name in WBEM descriptions, the event's name in others.
    let is_wbem = u32_at(48) == 1;
    let name = if is_wbem {
        None
    } else {
        text(92, "event name")?
    };

    let mut properties = Properties {
        blob,
        count,
        strings,
        used: vec![false; count],
    };
    let fields = properties.fields(0, 0, top_level, 0)?;
    let name = tdh::event_name(
        task.as_deref(),
        opcode.as_deref(),
        name.as_deref(),
        descriptor.id,
    );
    let schema = Schema {
        provider: Guid::read(header).unwrap_or_default(),
        provider_name: provider_name.filter(|name| !name.is_empty()),
        name: name.into(),
        message: message.filter(|message| !message.is_empty()),
        source: Source::TraceMetadata,
        fields,
    };
    Ok(EventInfo { descriptor, schema })
}

/// Reads the payload of a map description: the provider whose map it is, and the map.
pub fn parse_map_info(payload: &[u8]) -> Result<(Guid, ValueMap), EventInfoError> {
    let found = payload.len();
    let truncated = |needed| EventInfoError::Truncated {
        what: "EVENT_MAP_INFO",
        needed,
        found,
    };
    let provider = Guid::read(payload).ok_or_else(|| truncated(32))?;
    let map = payload.get(16..).unwrap_or(&[]);
    let header = map.first_chunk::<16>().ok_or_else(|| truncated(32))?;
    let u32_at = |at| le::u32(header, at).unwrap_or(0);
    let (flags, count, value_type) = (u32_at(4), u32_at(8) as usize, u32_at(12));
    let size = count.saturating_mul(8);
    let entries = map.get(16..).unwrap_or(&[]);
    let entries = entries
        .get(..size)
        .ok_or_else(|| truncated(size.saturating_add(32)))?;

    let mut strings = Strings::new(map);
    let name = strings.read(u32_at(0), "map name")?;
    const VALUE_MAPS: u32 = 0x01 | 0x08;
    const BIT_MAPS: u32 = 0x02 | 0x10;
    if flags & (VALUE_MAPS | BIT_MAPS) == 0 || value_type != 0 {
        return Err(EventInfoError::UnsupportedMap {
            name,
            flags,
            value_type,
        });
    }
    let entries = entries.as_chunks::<8>().0.iter().map(|entry| {
        let [a, b, c, d, value @ ..] = *entry;
        let label = strings.read(u32::from_le_bytes([a, b, c, d]), "map entry")?;
        Ok((u32::from_le_bytes(value).into(), label))
    });
    let entries = entries.collect::<Result<_, EventInfoError>>()?;
    Ok((
        provider,
        ValueMap {
            name,
            is_bitmap: flags & BIT_MAPS != 0,
            entries,
        },
    ))
}

/// Replaces each field's named map by the one that `find` knows; drops those it does not know.
pub fn resolve_maps(fields: &mut [Field], find: &dyn Fn(&str) -> Option<Arc<ValueMap>>) {
    for field in fields {
        if let Some(map) = field.map.take() {
            field.map = find(&map.name);
        }
        if let InType::Struct(members) = &mut field.in_type {
            resolve_maps(members, find);
        }
    }
}

/// The UTF-16 strings of a structure, found by offset. A string read twice is shared; together
/// they may not be longer than the structure could hold side by side, so that overlapping ones
/// cannot multiply a small blob into much memory.
struct Strings<'a> {
    blob: &'a [u8],
    known: HashMap<u32, Arc<str>>,
    budget: usize,
}

impl<'a> Strings<'a> {
    fn new(blob: &'a [u8]) -> Strings<'a> {
        Strings {
            blob,
            known: HashMap::new(),
            budget: blob.len(),
        }
    }

    fn read(&mut self, offset: u32, what: &'static str) -> Result<Arc<str>, EventInfoError> {
        if let Some(known) = self.known.get(&offset) {
            return Ok(known.clone());
        }
        let bad = EventInfoError::BadString {
            what,
            offset: offset as usize,
        };
        let units = self
            .blob
            .get(offset as usize..)
            .unwrap_or(&[])
            .as_chunks::<2>()
            .0;
        let end = units
            .iter()
            .take(self.budget / 2)
            .position(|unit| *unit == [0, 0]);
        let Some(end) = end else { return Err(bad) };
        self.budget -= (end + 1) * 2;
        let units = units[..end].iter().map(|unit| u16::from_le_bytes(*unit));
        let text: String = char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        // Names taken from message tables end in a blank.
        let text: Arc<str> = text.trim_end().into();
        self.known.insert(offset, text.clone());
        Ok(text)
    }
}

/// The properties of a `TRACE_EVENT_INFO`, each of which may be used once.
struct Properties<'a> {
    blob: &'a [u8],
    count: usize,
    strings: Strings<'a>,
    used: Vec<bool>,
}

impl Properties<'_> {
    /// Fields `start .. start + len`; `parent` is the struct they belong to.
    fn fields(
        &mut self,
        parent: usize,
        start: usize,
        len: usize,
        depth: usize,
    ) -> Result<Vec<Field>, EventInfoError> {
        if depth > MAX_DEPTH {
            return Err(EventInfoError::TooDeep { property: parent });
        }
        (start..start.saturating_add(len))
            .map(|index| {
                let is_used = self
                    .used
                    .get_mut(index)
                    .is_none_or(|u| std::mem::replace(u, true));
                if is_used {
                    let count = self.count;
                    return Err(EventInfoError::BadReference {
                        property: parent,
                        found: index,
                        count,
                    });
                }
                self.field(index, depth)
            })
            .collect()
    }

    fn field(&mut self, index: usize, depth: usize) -> Result<Field, EventInfoError> {
        const STRUCT: u32 = 0x01;
        const LENGTH_PROPERTY: u32 = 0x02;
        const COUNT_PROPERTY: u32 = 0x04;
        const FIXED_LENGTH: u32 = 0x10;
        const FIXED_COUNT: u32 = 0x20;
        let at = HEADER_SIZE + index * PROPERTY_SIZE;
        let u16_at = |offset| le::u16(self.blob, at + offset).unwrap_or(0);
        let u32_at = |offset| le::u32(self.blob, at + offset).unwrap_or(0);
        let flags = u32_at(0);
        let (name_offset, map_offset) = (u32_at(4), u32_at(12));
        let (in_type, out_type) = (u16_at(8), u16_at(10));
        let (count, length) = (u16_at(16), u16_at(18));

        let name = self.strings.read(name_offset, "property name")?;
        let count = match count {
            index_of if flags & COUNT_PROPERTY != 0 => Count::Field(self.name_of(index, index_of)?),
            1 if flags & FIXED_COUNT == 0 => Count::One,
            0 if flags & FIXED_COUNT == 0 => Count::One,
            count => Count::Fixed(count.into()),
        };
        if flags & STRUCT != 0 {
            // The type's two numbers are the first member's index and the number of members.
            let members = self.fields(index, in_type.into(), out_type.into(), depth + 1)?;
            return Ok(Field {
                count,
                ..Field::new(name, InType::Struct(members))
            });
        }
        let unknown = || EventInfoError::UnknownType {
            property: name.clone(),
            in_type,
        };
        let (in_type, out_type) = tdh::by_number(in_type, out_type).ok_or_else(unknown)?;
        let length = match length {
            index_of if flags & LENGTH_PROPERTY != 0 => {
                Length::Field(self.name_of(index, index_of)?)
            }
            0 if flags & FIXED_LENGTH == 0 => Length::Natural,
            length => Length::Fixed(length.into()),
        };
        let map = match map_offset {
            0 => None,
            offset => {
                let name = self.strings.read(offset, "map name")?;
                Some(Arc::new(ValueMap {
                    name,
                    is_bitmap: false,
                    entries: Vec::new(),
                }))
            }
        };
        let length = tdh::length(&in_type, out_type, length);
        Ok(Field {
            out_type,
            count,
            length,
            map,
            ..Field::new(name, in_type)
        })
    }

    /// The name of the property that gives another one's length or count.
    fn name_of(&mut self, property: usize, index: u16) -> Result<Arc<str>, EventInfoError> {
        let found = usize::from(index);
        if found >= self.count {
            return Err(EventInfoError::BadReference {
                property,
                found,
                count: self.count,
            });
        }
        let at = HEADER_SIZE + found * PROPERTY_SIZE + 4;
        self.strings
            .read(le::u32(self.blob, at).unwrap_or(0), "property name")
    }
}
