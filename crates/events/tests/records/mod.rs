//! A walker over uncompressed traces, apart from the `etl` crate's, and a measure of how many
//! bytes of a payload a schema accounts for. For tests only.

#![allow(dead_code, unreachable_pub)] // Each test uses its part.

use std::path::PathBuf;
use std::sync::Arc;

use etl::{Guid, le};
use events::schema::{Count, Field, InType, Length};

/// A classic or EVENT_HEADER record of a trace.
pub struct Record {
    pub provider: Guid,
    pub process: u32,
    pub thread: u32,
    pub id: u16,
    pub version: u8,
    pub opcode: u8,
    pub pointer_size: usize,
    /// Has an EVENT_HEADER; a classic record has none, and no id.
    pub is_manifest: bool,
    /// Extended items by type.
    pub items: Vec<(u16, Vec<u8>)>,
    pub payload: Vec<u8>,
}

impl Record {
    pub fn item(&self, ext_type: u16) -> Option<&[u8]> {
        self.items
            .iter()
            .find(|(t, _)| *t == ext_type)
            .map(|(_, data)| &data[..])
    }
}

/// Where the traces are.
pub fn data(name: &str) -> PathBuf {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let directory = PathBuf::from(directory);
    assert!(directory.is_dir(), "../shared/data is missing");
    directory.join(name)
}

/// All classic and EVENT_HEADER records of the uncompressed trace `name`.
pub fn records(name: &str) -> Vec<Record> {
    let file = std::fs::read(data("etl").join(name)).unwrap();
    let u16_at = |at| usize::from(le::u16(&file, at).unwrap());
    let u32_at = |at| le::u32(&file, at).unwrap() as usize;
    let mut records = Vec::new();
    let mut buffer = 0;
    while buffer + 0x48 <= file.len() && u32_at(buffer) >= 0x48 {
        let size = u32_at(buffer);
        assert_eq!(u16_at(buffer + 0x34) & 0x40, 0, "{name} is compressed");
        let end = match u32_at(buffer + 4) {
            0 => u32_at(buffer + 0x30),
            saved => saved,
        };
        let end = buffer + end.min(size).min(file.len() - buffer);
        let mut at = buffer + 0x48;
        while at + 8 <= end {
            let [_, _, kind, family, ..] = file[at..at + 4] else {
                unreachable!()
            };
            let is_system = matches!(kind, 1..=4 | 16 | 17) && family == 0xC0;
            let record_size = match family {
                0xC0 | 0x90 => u16_at(if is_system { at + 4 } else { at }),
                _ => break,
            };
            if record_size < 8 || at + record_size > end {
                break;
            }
            if family == 0xC0 {
                records.extend(record(&file[at..at + record_size], kind));
            }
            at = (at - buffer + record_size).next_multiple_of(8) + buffer;
        }
        buffer += size;
    }
    records
}

fn record(bytes: &[u8], kind: u8) -> Option<Record> {
    let is_manifest = match kind {
        18 | 19 => true,
        10 | 20 => false,
        _ => return None,
    };
    let mut items = Vec::new();
    let mut payload = if is_manifest { 80 } else { 48 };
    let mut more = is_manifest && le::u16(bytes, 4)? & 1 != 0;
    while more {
        let total = usize::from(le::u16(bytes, payload)?);
        let size = usize::from(le::u16(bytes, payload + 6)?);
        let data = bytes[payload + 8..payload + 8 + size].to_vec();
        items.push((le::u16(bytes, payload + 2)?, data));
        more = le::u16(bytes, payload + 4)? & 1 != 0;
        payload += total;
    }
    Some(Record {
        provider: Guid::read(&bytes[24..])?,
        thread: le::u32(bytes, 8)?,
        process: le::u32(bytes, 12)?,
        id: if is_manifest { le::u16(bytes, 40)? } else { 0 },
        version: if is_manifest { bytes[42] } else { bytes[6] },
        opcode: if is_manifest { bytes[45] } else { bytes[4] },
        pointer_size: if matches!(kind, 10 | 18) { 4 } else { 8 },
        is_manifest,
        items,
        payload: bytes[payload..].to_vec(),
    })
}

/// How many bytes of `payload` the fields take; `None` if it is too short for them.
pub fn measure(fields: &[Field], payload: &[u8], pointer_size: usize) -> Option<usize> {
    let mut measure = Measure {
        payload,
        pointer_size,
        at: 0,
        numbers: Vec::new(),
    };
    measure.fields(fields)?;
    Some(measure.at)
}

struct Measure<'a> {
    payload: &'a [u8],
    pointer_size: usize,
    at: usize,
    numbers: Vec<(Arc<str>, u64)>,
}

impl Measure<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let bytes = self.payload.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    fn number(&self, name: &str) -> Option<usize> {
        let known = self.numbers.iter().rev().find(|(n, _)| &**n == name);
        known.map(|(_, value)| *value as usize)
    }

    fn prefix(&mut self) -> Option<usize> {
        let bytes = self.take(2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn fields(&mut self, fields: &[Field]) -> Option<()> {
        for field in fields {
            let count = match &field.count {
                Count::One => 1,
                Count::Fixed(count) => *count as usize,
                Count::Field(name) => self.number(name)?,
                Count::Prefix16 => self.prefix()?,
                Count::Rest => panic!("no test needs it"),
            };
            for _ in 0..count {
                self.element(field)?;
            }
        }
        Some(())
    }

    fn element(&mut self, field: &Field) -> Option<()> {
        use InType::*;
        let length = match &field.length {
            Length::Natural => None,
            Length::Fixed(length) => Some(*length as usize),
            Length::Field(name) => Some(self.number(name)?),
        };
        let rest = &self.payload[self.at..];
        let size = match &field.in_type {
            Struct(members) => return self.fields(members),
            Null => 0,
            Utf16 => match length {
                Some(length) => length * 2,
                None => {
                    let units = rest.as_chunks::<2>().0;
                    let end = units.iter().position(|unit| *unit == [0, 0]);
                    end.map_or(rest.len(), |end| (end + 1) * 2)
                }
            },
            Ansi => match length {
                Some(length) => length,
                None => rest
                    .iter()
                    .position(|b| *b == 0)
                    .map_or(rest.len(), |end| end + 1),
            },
            Binary => length.unwrap_or(rest.len()),
            Utf16Rest | AnsiRest => rest.len(),
            CountedUtf16 | CountedAnsi | CountedBinary => self.prefix()?,
            I8 | U8 | AnsiChar | Bool8 => 1,
            I16 | U16 | Utf16Char => 2,
            I32 | U32 | F32 | Bool32 | Hex32 => 4,
            I64 | U64 | F64 | FileTime | Hex64 => 8,
            Guid | SystemTime => 16,
            Pointer | SizeT => self.pointer_size,
            Sid => 8 + 4 * usize::from(*rest.get(1)?),
            other => panic!("no test needs {other:?}"),
        };
        let bytes = self.take(size)?;
        if matches!(field.in_type, U8 | U16 | U32 | U64 | I32) {
            let mut number = [0; 8];
            number[..size].copy_from_slice(bytes);
            self.numbers
                .push((field.name.clone(), u64::from_le_bytes(number)));
        }
        Some(())
    }
}
