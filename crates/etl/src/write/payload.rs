//! Builder of payloads, field by field.

use std::ops::Deref;

use crate::guid::Guid;

/// A payload of little-endian fields without padding. Pointers have 8 bytes. To build many payloads in the
/// same memory, call [`Payload::clear`] between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// Creates an empty payload.
    pub fn new() -> Payload {
        Payload::default()
    }

    /// Removes the fields, but keeps the allocated memory.
    pub fn clear(&mut self) -> &mut Payload {
        self.0.clear();
        self
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Payload {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends an 8-bit number.
    pub fn u8(&mut self, value: u8) -> &mut Payload {
        self.bytes(&[value])
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, value: u16) -> &mut Payload {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, value: u32) -> &mut Payload {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a 64-bit number or a pointer.
    pub fn u64(&mut self, value: u64) -> &mut Payload {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a signed 64-bit number, such as a raw time or a FILETIME.
    pub fn i64(&mut self, value: i64) -> &mut Payload {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a GUID.
    pub fn guid(&mut self, value: Guid) -> &mut Payload {
        self.bytes(&value.0)
    }

    /// Appends `text` up to its first NUL, as UTF-16 with a NUL at the end.
    pub fn utf16_z(&mut self, text: &str) -> &mut Payload {
        for unit in text.encode_utf16().take_while(|unit| *unit != 0) {
            self.u16(unit);
        }
        self.u16(0)
    }

    /// Appends `text` up to its first NUL, as UTF-8 with a NUL at the end.
    pub fn utf8_z(&mut self, text: &str) -> &mut Payload {
        let text = text.split('\0').next().unwrap_or("");
        self.bytes(text.as_bytes()).u8(0)
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
