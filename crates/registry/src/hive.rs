//! Reader of hive files (`regf`): finds keys by path and decodes values.
//!
//! Each available library with a permissive licence has at least one of these problems: it reads the whole hive before
//! the first lookup, it refuses hives that were copied from a running system, or it never ends if a damaged hive
//! contains a cycle. This reader visits only the cells on the path to a key, checks every offset, and limits the number
//! of visited cells.
//!
//! Format: <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>

use std::cell::Cell;

use crate::Value;

/// Offset of the first cell in bytes. The base block precedes this cell.
pub(crate) const BASE: usize = 4096;

/// Maximum size of one segment of a large value, in bytes.
const SEGMENT: usize = 16344;

/// Maximum length of a value in bytes. The registry allows longer values, but the values of settings are
/// short.
const MAX_VALUE: usize = 1 << 20;

/// Maximum number of bytes of names and values that are copied from one hive.
const MAX_BYTES: usize = 64 << 20;

/// Maximum number of cells that are visited in one hive. Windows' own hives contain about a million keys. A
/// lookup of all settings visits a few tens of thousands of cells.
const MAX_VISITS: usize = 2_000_000;

/// Maximum number of subkeys of one key.
const MAX_CHILDREN: usize = 1 << 17;

/// Maximum length of a value's name in bytes. Windows allows 16383 characters, which have 2 bytes each.
const MAX_NAME: usize = 2 * 16383;

/// A hive file in memory.
pub struct Hive<'a> {
    bytes: &'a [u8],
    visits: Budget,
    copied: Budget,
}

/// Amount of work that is still allowed, such as cells to visit or bytes to copy.
struct Budget(Cell<usize>);

impl Budget {
    fn new(most: usize) -> Self {
        Self(Cell::new(most))
    }

    fn spend(&self, amount: usize) -> Result<(), HiveError> {
        let left = self.0.get().checked_sub(amount);
        self.0.set(left.ok_or(HiveError::TooLarge)?);
        Ok(())
    }
}

/// Reason why a part of a hive cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HiveError {
    /// The file does not start with a base block.
    #[error("not a registry hive: it does not begin with \"regf\" and a block of 4096 bytes")]
    NotAHive,
    /// A cell is outside the file or has the wrong type.
    #[error("damaged at byte {at:#x}: expected a {expected}")]
    Damaged {
        /// Expected type of the cell.
        expected: &'static str,
        /// Offset of the cell from the start of the file, in bytes.
        at: u64,
    },
    /// The lookups visited more cells or copied more bytes than an undamaged hive needs.
    #[error("damaged: more keys and values than an intact hive has")]
    TooLarge,
}

/// A key of a hive.
#[derive(Clone, Copy)]
pub struct HiveKey<'a> {
    hive: &'a Hive<'a>,
    cell: &'a [u8],
}

/// A value of a key.
pub struct HiveValue {
    /// Name of the value. The name of the key's default value is empty.
    pub name: String,
    /// Type and data of the value.
    pub value: Value,
    /// Offset of the value's cell from the start of the file, in bytes.
    pub offset: u64,
}

/// Returns true if a file starts with the signature of a hive. Transaction logs of hives have the same
/// signature.
pub fn is_hive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"regf")
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Converts a cell offset, which counts from the first cell, to an offset in the file.
fn file_offset(offset: u32) -> u64 {
    BASE as u64 + u64::from(offset)
}

impl<'a> Hive<'a> {
    /// Opens a hive.
    ///
    /// # Errors
    /// Returns [`HiveError::NotAHive`] if the bytes do not start with a base block.
    pub fn open(bytes: &'a [u8]) -> Result<Self, HiveError> {
        if !is_hive(bytes) || bytes.len() < BASE {
            return Err(HiveError::NotAHive);
        }
        Ok(Self {
            bytes,
            visits: Budget::new(MAX_VISITS),
            copied: Budget::new(MAX_BYTES),
        })
    }

    /// Returns the size in bytes that the base block states for the file.
    pub fn claimed_size(&self) -> u64 {
        u32_at(self.bytes, 40).map_or(0, file_offset)
    }

    /// Returns the root key.
    ///
    /// # Errors
    /// Returns an error if the root key is damaged.
    pub fn root(&'a self) -> Result<HiveKey<'a>, HiveError> {
        let offset = u32_at(self.bytes, 0x24).ok_or(HiveError::NotAHive)?;
        self.key(offset)
    }

    fn key(&'a self, offset: u32) -> Result<HiveKey<'a>, HiveError> {
        let cell = self.cell(offset, "key")?;
        if !cell.starts_with(b"nk") || cell.len() < 76 {
            return Err(damaged("key", offset));
        }
        Ok(HiveKey { hive: self, cell })
    }

    /// Returns the bytes of a cell without its size field.
    fn cell(&self, offset: u32, expected: &'static str) -> Result<&'a [u8], HiveError> {
        self.visits.spend(1)?;
        let cell = || {
            let start = BASE.checked_add(usize::try_from(offset).ok()?)?;
            // The size of an allocated cell is negative.
            let size = u32_at(self.bytes, start)?.cast_signed().checked_neg()?;
            let size = usize::try_from(size).ok().filter(|size| *size >= 4)?;
            self.bytes.get(start + 4..start.checked_add(size)?)
        };
        cell().ok_or_else(|| damaged(expected, offset))
    }

    fn value(&self, offset: u32) -> Result<HiveValue, HiveError> {
        let cell = self.cell(offset, "value")?;
        let broken = || damaged("value", offset);
        let field = |at| u32_at(cell, at).ok_or_else(broken);
        if !cell.starts_with(b"vk") {
            return Err(broken());
        }
        let length = usize::from(u16_at(cell, 2).ok_or_else(broken)?);
        let latin = u16_at(cell, 16).ok_or_else(broken)? & 1 != 0;
        let bytes = cell.get(20..).unwrap_or_default();
        let bytes = bytes.get(..length).filter(|name| name.len() <= MAX_NAME);
        let name = decode_name(bytes.ok_or_else(broken)?, latin);
        let data = self.data(field(4)?, field(8)?, cell)?;
        self.copied.spend(name.len() + data.len())?;
        Ok(HiveValue {
            name,
            value: Value::from_bytes(field(12)?, &data),
            offset: file_offset(offset),
        })
    }

    /// Returns the data of a value. Short data is inline. Longer data is in a separate cell, or in segments.
    fn data(&self, size: u32, offset: u32, cell: &[u8]) -> Result<Vec<u8>, HiveError> {
        const INLINE: u32 = 1 << 31;
        let broken = || damaged("value's data", offset);
        let length = usize::try_from(size & !INLINE).map_err(|_| broken())?;
        if size & INLINE != 0 {
            let bytes = cell.get(8..8 + length.min(4)).ok_or_else(broken)?;
            return Ok(bytes.to_vec());
        }
        if length == 0 {
            return Ok(Vec::new());
        }
        if length > MAX_VALUE {
            return Err(broken());
        }
        let data = self.cell(offset, "value's data")?;
        if length <= SEGMENT || !data.starts_with(b"db") {
            return Ok(data.get(..length).ok_or_else(broken)?.to_vec());
        }
        let count = usize::from(u16_at(data, 2).ok_or_else(broken)?);
        let list = self.cell(u32_at(data, 4).ok_or_else(broken)?, "list of segments")?;
        let mut whole = Vec::with_capacity(length);
        for index in 0..count {
            let segment = u32_at(list, index * 4).ok_or_else(broken)?;
            let segment = self.cell(segment, "segment of a value")?;
            let missing = length - whole.len();
            whole.extend(segment.iter().take(missing.min(SEGMENT)));
        }
        if whole.len() < length {
            return Err(broken());
        }
        Ok(whole)
    }
}

fn damaged(expected: &'static str, offset: u32) -> HiveError {
    HiveError::Damaged {
        expected,
        at: file_offset(offset),
    }
}

/// Decodes a name as Latin-1 if `latin` is true, otherwise as UTF-16.
fn decode_name(bytes: &[u8], latin: bool) -> String {
    if latin {
        return bytes.iter().copied().map(char::from).collect();
    }
    let (units, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}

impl<'a> HiveKey<'a> {
    fn field(&self, at: usize) -> u32 {
        u32_at(self.cell, at).unwrap_or(u32::MAX)
    }

    /// Returns the name of the key.
    pub fn name(&self) -> String {
        let length = usize::from(u16_at(self.cell, 72).unwrap_or(0));
        let latin = u16_at(self.cell, 2).unwrap_or(0) & 0x20 != 0;
        let bytes = &self.cell[76..];
        // Windows allows 255 characters, which have up to 510 bytes.
        decode_name(&bytes[..length.min(bytes.len()).min(510)], latin)
    }

    /// Returns the subkey called `name`. Ignores case.
    ///
    /// # Errors
    /// Returns an error if the list of subkeys is damaged.
    pub fn child(&self, name: &str) -> Result<Option<Self>, HiveError> {
        let wanted = name.to_lowercase();
        let keys = self.children()?.into_iter();
        let mut named = keys.filter(|key| key.name().to_lowercase() == wanted);
        Ok(named.next())
    }

    /// Returns the key at `path` below this key. Ignores case.
    ///
    /// # Errors
    /// Returns an error if the list of subkeys of a key on the path is damaged.
    pub fn descendant(&self, path: &str) -> Result<Option<Self>, HiveError> {
        let mut key = *self;
        for name in path.split('\\') {
            match key.child(name)? {
                Some(child) => key = child,
                None => return Ok(None),
            }
        }
        Ok(Some(key))
    }

    /// Returns all subkeys.
    ///
    /// # Errors
    /// Returns an error if the list of subkeys or one of the subkeys is damaged.
    pub fn children(&self) -> Result<Vec<Self>, HiveError> {
        let mut keys = Vec::new();
        if self.field(20) == 0 {
            return Ok(keys);
        }
        let list = self.hive.cell(self.field(28), "list of keys")?;
        if list.starts_with(b"ri") {
            // This cell is a list whose elements are lists of keys. An inner list never contains another list
            // of lists.
            for offset in offsets(list, 4) {
                let list = self.hive.cell(offset, "list of keys")?;
                self.add_children(list, offset, &mut keys)?;
            }
        } else {
            self.add_children(list, self.field(28), &mut keys)?;
        }
        Ok(keys)
    }

    fn add_children(
        &self,
        list: &[u8],
        offset: u32,
        keys: &mut Vec<Self>,
    ) -> Result<(), HiveError> {
        let step = match list.get(..2) {
            Some(b"lf" | b"lh") => 8,
            Some(b"li") => 4,
            _ => return Err(damaged("list of keys", offset)),
        };
        for offset in offsets(list, step) {
            if keys.len() == MAX_CHILDREN {
                return Err(HiveError::TooLarge);
            }
            keys.push(self.hive.key(offset)?);
        }
        Ok(())
    }

    /// Returns all values of the key. If a value is damaged, its element in the result is an error.
    ///
    /// # Errors
    /// Returns an error if the list of values is damaged.
    pub fn values(&self) -> Result<Vec<Result<HiveValue, HiveError>>, HiveError> {
        let count = self.field(36);
        if count == 0 {
            return Ok(Vec::new());
        }
        let list = self.hive.cell(self.field(40), "list of values")?;
        let (list, _) = list.as_chunks::<4>();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let offsets = list.iter().take(count);
        Ok(offsets
            .map(|offset| self.hive.value(u32::from_le_bytes(*offset)))
            .collect())
    }

    /// Returns the value called `name`. Ignores case, and skips damaged values.
    ///
    /// # Errors
    /// Returns an error if the list of values is damaged.
    pub fn value(&self, name: &str) -> Result<Option<HiveValue>, HiveError> {
        let wanted = name.to_lowercase();
        let values = self.values()?.into_iter().flatten();
        let mut named = values.filter(|value| value.name.to_lowercase() == wanted);
        Ok(named.next())
    }
}

/// Returns the cell offsets in a list of keys. Each element of the list has `step` bytes.
fn offsets(list: &[u8], step: usize) -> impl Iterator<Item = u32> {
    let count = usize::from(u16_at(list, 2).unwrap_or(0));
    (0..count).map_while(move |index| u32_at(list, 4 + index * step))
}

#[cfg(test)]
mod tests {
    use regf::HiveBuilder;
    use testdata::Rng;

    use super::*;

    /// Builds a hive with an independent library.
    fn sample() -> Vec<u8> {
        let mut hive = HiveBuilder::new().unwrap();
        for number in 0..8 {
            let key = format!(r"Set\Control\Key{number}");
            hive.create_key(&key).unwrap();
            hive.add_value_dword(&key, Some("Number"), number).unwrap();
            hive.add_value_string(&key, Some("Text"), "text").unwrap();
        }
        let many: Vec<u8> = (0..40_000_u32).map(|place| (place % 251) as u8).collect();
        hive.add_value_binary("Set", Some("Many"), &many).unwrap();
        hive.to_bytes().unwrap()
    }

    /// Visits all keys and values up to `depth` levels below `key`. Returns the number of values.
    fn walk(key: &HiveKey<'_>, depth: usize) -> Result<usize, HiveError> {
        let mut values = key.values()?.into_iter().flatten().count();
        if depth > 0 {
            for child in key.children()? {
                values += walk(&child, depth - 1)?;
            }
        }
        Ok(values)
    }

    #[test]
    fn keys_and_values_are_found_by_name_in_any_case() {
        let bytes = sample();
        let hive = Hive::open(&bytes).unwrap();
        let root = hive.root().unwrap();
        assert_eq!(walk(&root, 8), Ok(17));
        let key = root.descendant(r"set\CONTROL\key3").unwrap().unwrap();
        assert_eq!(key.name(), "Key3");
        let number = key.value("number").unwrap().unwrap();
        assert_eq!(number.value, Value::Dword(3));
        assert!(key.value("missing").unwrap().is_none());
        assert!(root.descendant(r"Set\Missing").unwrap().is_none());
    }

    #[test]
    fn a_long_value_is_joined_from_its_segments() {
        let bytes = sample();
        let hive = Hive::open(&bytes).unwrap();
        let set = hive.root().unwrap().child("Set").unwrap().unwrap();
        let many = set.value("Many").unwrap().unwrap().value;
        let expected = (0..40_000_u32).map(|place| (place % 251) as u8).collect();
        assert_eq!(many, Value::Binary(expected));
    }

    #[test]
    fn a_damaged_hive_neither_panics_nor_loops() {
        let whole = sample();
        let mut rng = Rng(1);
        for _ in 0..2000 {
            let mut damaged = whole.clone();
            for _ in 0..=rng.below(4) {
                let place = rng.below(damaged.len());
                damaged[place] = rng.bits() as u8;
            }
            damaged.truncate(damaged.len() - rng.below(2) * rng.below(damaged.len()));
            if let Ok(hive) = Hive::open(&damaged) {
                let _ = hive.root().and_then(|root| walk(&root, 8));
            }
        }
    }

    #[test]
    fn a_list_of_keys_that_contains_itself_is_an_error() {
        let mut bytes = sample();
        // The test changes every list of keys into a list of lists. The first element of the new list is the
        // list itself.
        for place in (BASE..bytes.len() - 8).step_by(4) {
            if matches!(&bytes[place + 4..place + 6], b"lf" | b"lh") {
                let offset = u32::try_from(place - BASE).unwrap();
                bytes[place + 4..place + 6].copy_from_slice(b"ri");
                bytes[place + 8..place + 12].copy_from_slice(&offset.to_le_bytes());
            }
        }
        let hive = Hive::open(&bytes).unwrap();
        let children = hive.root().unwrap().children();
        assert!(matches!(children, Err(HiveError::Damaged { .. })));
    }
}
