//! Event descriptions in a merged trace: `TRACE_EVENT_INFO` and `EVENT_MAP_INFO`.
//!
//! The tools that merge traces (`xperf -merge`, WPR, PerfView) add these descriptions as classic events of
//! the class [`EVENT_METADATA`]. They add one description for each distinct manifest event
//! ([`EVENT_INFO_OPCODE`]) and one for each value map ([`MAP_INFO_OPCODE`]). The descriptions can be anywhere
//! in the trace. The layouts of the descriptions are in the public `tdh.h`.

use std::collections::HashMap;
use std::sync::Arc;

use etl::{Descriptor, Guid, le};

#[cfg(doc)]
use crate::ids::class::EVENT_METADATA;
use crate::schema::{Count, Field, InType, Length, Schema, Source, ValueMap};
use crate::tdh;
use crate::text;

/// Opcode of events whose payload is a `TRACE_EVENT_INFO`; see [`parse_event_info`].
pub const EVENT_INFO_OPCODE: u8 = 32;
/// Opcode of events whose payload is a GUID and an `EVENT_MAP_INFO`; see [`parse_map_info`].
pub const MAP_INFO_OPCODE: u8 = 33;

/// Maximum depth of nested structs.
const MAX_DEPTH: usize = 32;
const HEADER_SIZE: usize = 112;
const PROPERTY_SIZE: usize = 24;

/// Error in a description. Offsets are in bytes. They count from the start of the `TRACE_EVENT_INFO` or
/// `EVENT_MAP_INFO` structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventInfoError {
    /// The structure is too short for the number of elements that it states.
    #[error("{what} needs {needed} bytes, found {found}")]
    Truncated {
        /// Name of the structure.
        what: &'static str,
        /// Number of bytes that the structure needs.
        needed: usize,
        /// Number of bytes that are present.
        found: usize,
    },
    /// A string of the structure is invalid. It starts outside the structure, it has no end, or it overlaps
    /// other strings, so that all strings together are longer than the structure.
    #[error("no readable string at byte {offset} ({what})")]
    BadString {
        /// Meaning of the invalid string, such as "property name".
        what: &'static str,
        /// Offset of the string's start.
        offset: usize,
    },
    /// A property refers to another property that does not exist or is already used.
    #[error(
        "property {property} of {count} refers to property {found}, which does not exist or is already used"
    )]
    BadReference {
        /// Index of the property with the reference.
        property: usize,
        /// Index to which the property refers.
        found: usize,
        /// Number of properties of the described event.
        count: usize,
    },
    /// A property has a type that `tdh.h` does not define.
    #[error("property `{property}` has unknown in-type {in_type}")]
    UnknownType {
        /// Name of the property.
        property: Arc<str>,
        /// Number of the unknown in-type.
        in_type: u16,
    },
    /// Structs are nested too deeply.
    #[error("property {property} is nested in more than {MAX_DEPTH} structs")]
    TooDeep {
        /// Index of the property.
        property: usize,
    },
    /// The map does not map numbers to names. It is a map of another kind.
    #[error(
        "map `{name}` does not map numbers to names (flags {flags:#x}, value type {value_type})"
    )]
    UnsupportedMap {
        /// Name of the map.
        name: Arc<str>,
        /// `MAP_FLAGS` of the map.
        flags: u32,
        /// `MAP_VALUETYPE` of the map.
        value_type: u32,
    },
}

/// Description of one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Provider, id and version of the described events.
    pub descriptor: Descriptor,
    /// Class GUID if the description is about classic events (WBEM). Class, opcode and version identify a
    /// kind of classic event.
    pub class: Option<Guid>,
    /// Names and fields of the described events. The value map of a field has only a name until
    /// [`resolve_maps`] replaces the map.
    pub schema: Schema,
}

/// Reads a `TRACE_EVENT_INFO`.
///
/// # Errors
/// Returns an error if the structure is cut short. Also returns an error if a property refers to a missing
/// property, or to itself directly or through other properties.
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
    // In WBEM descriptions, the field at byte 92 is the offset of the name of an activity id. In other
    // descriptions, the field is the offset of the event's name.
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
    let class = if is_wbem {
        Guid::read(&header[16..])
    } else {
        None
    };
    Ok(EventInfo {
        descriptor,
        class,
        schema,
    })
}

/// Reads the payload of a map description. Returns the GUID of the provider that owns the map, and the map.
///
/// # Errors
/// Returns an error if the payload is cut short, or if the map does not map numbers to names.
pub fn parse_map_info(payload: &[u8]) -> Result<(Guid, ValueMap), EventInfoError> {
    let length = payload.len();
    let truncated = |needed| EventInfoError::Truncated {
        what: "EVENT_MAP_INFO",
        needed,
        found: length,
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

/// Replaces the maps of all fields. A field's map has only a name before the call. `find` returns the
/// complete map for a name. If `find` returns `None`, removes the map from the field.
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

/// Reader of the UTF-16 strings in a structure. The structure contains the offsets of the strings. Equal
/// offsets share one string. The total length of all strings is limited to the structure's size. So a small
/// hostile structure with overlapping strings cannot use much memory.
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
        let text = text::utf16(units[..end].as_flattened());
        // Names from message tables end with a space, which is removed.
        let text: Arc<str> = text.trim_end().into();
        self.known.insert(offset, text.clone());
        Ok(text)
    }
}

/// Reader of the properties of a `TRACE_EVENT_INFO`. Each property may be used only once.
struct Properties<'a> {
    blob: &'a [u8],
    count: usize,
    strings: Strings<'a>,
    used: Vec<bool>,
}

impl Properties<'_> {
    /// Reads the properties `start .. start + len` as fields. `parent` is the index of the struct that
    /// contains these properties.
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
            // If the property is a struct, the two type fields contain the index of the first member and the
            // number of members.
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

    /// Returns the name of a property that contains the length or the count of another property.
    fn name_of(&mut self, property: usize, index: u16) -> Result<Arc<str>, EventInfoError> {
        let place = usize::from(index);
        if place >= self.count {
            return Err(EventInfoError::BadReference {
                property,
                found: place,
                count: self.count,
            });
        }
        let at = HEADER_SIZE + place * PROPERTY_SIZE + 4;
        self.strings
            .read(le::u32(self.blob, at).unwrap_or(0), "property name")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::OutType;

    const PROVIDER: Guid = Guid([9; 16]);

    /// Builder of a `TRACE_EVENT_INFO` in the public layout.
    struct Builder {
        header: Vec<u8>,
        properties: Vec<[u8; PROPERTY_SIZE]>,
        strings: Vec<u8>,
        strings_at: usize,
    }

    impl Builder {
        fn new(top_level: u32, count: u32) -> Builder {
            let mut header = vec![0; HEADER_SIZE];
            header[..16].copy_from_slice(&PROVIDER.0);
            header[32..35].copy_from_slice(&[0x39, 0x05, 2]);
            header[100..104].copy_from_slice(&count.to_le_bytes());
            header[104..108].copy_from_slice(&top_level.to_le_bytes());
            let strings_at = HEADER_SIZE + count as usize * PROPERTY_SIZE;
            Builder {
                header,
                properties: Vec::new(),
                strings: Vec::new(),
                strings_at,
            }
        }

        fn text(&mut self, text: &str) -> u32 {
            let at = self.strings_at + self.strings.len();
            self.strings
                .extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            at as u32
        }

        fn header_text(mut self, at: usize, text: &str) -> Builder {
            let offset = self.text(text);
            self.header[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            self
        }

        fn property(mut self, name: &str, flags: u32, types: [u16; 2], sizes: [u16; 2]) -> Builder {
            let mut property = [0; PROPERTY_SIZE];
            property[..4].copy_from_slice(&flags.to_le_bytes());
            let name = self.text(name);
            property[4..8].copy_from_slice(&name.to_le_bytes());
            for (at, value) in [
                (8, types[0]),
                (10, types[1]),
                (16, sizes[0]),
                (18, sizes[1]),
            ] {
                property[at..at + 2].copy_from_slice(&value.to_le_bytes());
            }
            self.properties.push(property);
            self
        }

        fn map(mut self, name: &str) -> Builder {
            let offset = self.text(name);
            self.properties.last_mut().unwrap()[12..16].copy_from_slice(&offset.to_le_bytes());
            self
        }

        fn build(self) -> Vec<u8> {
            [self.header, self.properties.concat(), self.strings].concat()
        }
    }

    #[test]
    fn names_types_lengths_counts_and_structs() {
        let blob = Builder::new(5, 7)
            .header_text(52, "Contoso-Lamp")
            .header_text(68, "Lamp ")
            .header_text(72, "win:Start")
            .header_text(76, "Lamp %1\r\n")
            .property("Size", 0, [6, 6], [1, 2])
            .property("Bytes", 2, [14, 15], [1, 0])
            .property("State", 0, [8, 8], [1, 4])
            .map("States")
            .property("Parts", 1 | 4, [5, 2], [2, 0])
            .property("Code", 0x30, [1, 1], [3, 8])
            .property("Id", 0, [8, 20], [1, 4])
            .property("Address", 0, [14, 24], [1, 16])
            .build();
        let mut info = parse_event_info(&blob).unwrap();
        assert_eq!((info.descriptor.id, info.descriptor.version), (1337, 2));
        let schema = &info.schema;
        assert_eq!(schema.provider, PROVIDER);
        assert_eq!(schema.provider_name.as_deref(), Some("Contoso-Lamp"));
        assert_eq!(
            (&*schema.name, schema.message.as_deref()),
            ("Lamp/Start", Some("Lamp %1"))
        );
        let [size, bytes, state, parts, code] = &schema.fields[..] else {
            panic!("{schema:?}")
        };
        assert_eq!(*size, Field::new("Size", InType::U16));
        assert_eq!(
            (&bytes.in_type, &bytes.length),
            (&InType::Binary, &Length::Field("Size".into()))
        );
        assert_eq!(&*state.map.as_ref().unwrap().name, "States");
        let id = Field {
            out_type: OutType::ProcessId,
            ..Field::new("Id", InType::U32)
        };
        let address = Field {
            out_type: OutType::Ipv6,
            length: Length::Fixed(16),
            ..Field::new("Address", InType::Binary)
        };
        assert_eq!(parts.in_type, InType::Struct(vec![id, address]));
        assert_eq!(parts.count, Count::Field("State".into()));
        assert_eq!(
            (&code.count, &code.length),
            (&Count::Fixed(3), &Length::Fixed(8))
        );

        let states = Arc::new(ValueMap {
            name: "States".into(),
            is_bitmap: true,
            entries: vec![],
        });
        resolve_maps(&mut info.schema.fields, &|name| {
            (name == "States").then(|| states.clone())
        });
        assert!(info.schema.fields[2].map.as_ref().unwrap().is_bitmap);
        resolve_maps(&mut info.schema.fields, &|_| None);
        assert_eq!(info.schema.fields[2].map, None);
    }

    #[test]
    fn classic_events_are_told_apart_by_class_and_opcode() {
        let mut blob = Builder::new(1, 1)
            .header_text(92, "Name")
            .property("State", 0, [8, 8], [1, 4])
            .build();
        let manifest = parse_event_info(&blob).unwrap();
        assert_eq!((manifest.class, &*manifest.schema.name), (None, "Name"));
        // This sets the decoding source to WBEM. With this source, the field of the event name contains the
        // name of an activity id.
        blob[48] = 1;
        blob[16..32].fill(5);
        blob[37] = 44;
        let classic = parse_event_info(&blob).unwrap();
        assert_eq!(classic.class, Some(Guid([5; 16])));
        assert_eq!(classic.descriptor.opcode, 44);
        assert_eq!(&*classic.schema.name, "EventID(1337)");
    }

    #[test]
    fn maps_of_values_and_bits() {
        let map = |flags: u32, value_type: u32| {
            let [f, t] = [flags.to_le_bytes(), value_type.to_le_bytes()];
            let numbers = [32u32, 2, 36, 1, 40, 8].map(u32::to_le_bytes);
            let [name, count, on, one, off, eight] = numbers;
            let units: Vec<_> = "M\0A\0B\0"
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect();
            [
                &PROVIDER.0[..],
                &name,
                &f,
                &count,
                &t,
                &on,
                &one,
                &off,
                &eight,
                &units,
            ]
            .concat()
        };
        let entries = vec![(1, "A".into()), (8, "B".into())];
        let bits = ValueMap {
            name: "M".into(),
            is_bitmap: true,
            entries,
        };
        assert_eq!(parse_map_info(&map(2, 0)), Ok((PROVIDER, bits.clone())));
        let values = ValueMap {
            is_bitmap: false,
            ..bits
        };
        assert_eq!(parse_map_info(&map(1, 0)), Ok((PROVIDER, values)));
        assert!(matches!(
            parse_map_info(&map(4, 0)),
            Err(EventInfoError::UnsupportedMap { .. })
        ));
        assert!(matches!(
            parse_map_info(&map(1, 1)),
            Err(EventInfoError::UnsupportedMap { .. })
        ));
        for length in 0..map(1, 0).len() {
            assert!(parse_map_info(&map(1, 0)[..length]).is_err());
        }
    }

    #[test]
    fn cycles_overlaps_and_bad_indexes_are_refused() {
        let property = |flags, types, sizes| {
            parse_event_info(
                &Builder::new(1, 1)
                    .property("P", flags, types, sizes)
                    .build(),
            )
        };
        let reference = |found| EventInfoError::BadReference {
            property: 0,
            found,
            count: 1,
        };
        // There are four faulty cases: a struct that contains itself; a struct with a member that does not
        // exist; a length that refers to a property that does not exist; and a count that refers to such a
        // property.
        assert_eq!(property(1, [0, 1], [1, 0]), Err(reference(0)));
        assert_eq!(property(1, [1, 1], [1, 0]), Err(reference(1)));
        assert_eq!(property(2, [14, 0], [1, 7]), Err(reference(7)));
        assert_eq!(property(4, [8, 0], [7, 4]), Err(reference(7)));
        let unknown = EventInfoError::UnknownType {
            property: "P".into(),
            in_type: 99,
        };
        assert_eq!(property(0, [99, 0], [1, 0]), Err(unknown));

        let chain = (1..=100).fold(Builder::new(1, 100), |builder, next| {
            builder.property("S", 1, [next, 1], [1, 0])
        });
        assert_eq!(
            parse_event_info(&chain.build()),
            Err(EventInfoError::TooDeep { property: 32 })
        );
        let shared = Builder::new(2, 3)
            .property("A", 1, [2, 1], [1, 0])
            .property("B", 1, [2, 1], [1, 0])
            .property("C", 0, [8, 0], [1, 4]);
        let reused = EventInfoError::BadReference {
            property: 1,
            found: 2,
            count: 3,
        };
        assert_eq!(parse_event_info(&shared.build()), Err(reused));
    }

    #[test]
    fn overlapping_strings_cannot_multiply() {
        // The structure has 2000 properties. The names of the properties start at different offsets, but all
        // names end at the same NUL.
        let mut builder = Builder::new(2000, 2000);
        for _ in 0..2000 {
            builder = builder.property("", 0, [8, 0], [1, 4]);
        }
        builder.strings = vec![b'x'; 8000];
        builder.strings.extend([0, 0]);
        for (index, property) in builder.properties.iter_mut().enumerate() {
            let at = (builder.strings_at + index * 2) as u32;
            property[4..8].copy_from_slice(&at.to_le_bytes());
        }
        let result = parse_event_info(&builder.build());
        assert!(
            matches!(result, Err(EventInfoError::BadString { .. })),
            "{result:?}"
        );
    }

    #[test]
    fn every_cut_is_refused_or_read() {
        let blob = Builder::new(1, 1).property("P", 0, [8, 0], [1, 4]).build();
        for length in 0..blob.len() {
            assert!(parse_event_info(&blob[..length]).is_err(), "{length}");
        }
        assert!(parse_event_info(&blob).is_ok());
    }
}
