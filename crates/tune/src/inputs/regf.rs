//! The format of hives, `regf`: keys found by their path, and their values.
//!
//! Written here because the permissively licensed libraries walk the whole hive before the first
//! look-up, refuse hives copied from a running system, or follow cycles of a damaged one without end.
//! Only what lies on the way to a key is read, nothing is believed to be where it says, and how much is
//! looked at is bounded.
//!
//! Format: <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>

use std::cell::Cell;

use super::walk::{KeyTree, KeyValue};
use crate::found::At;
use crate::registry::Value;

/// Where cells begin: after the base block.
pub(super) const BASE: usize = 4096;

/// More of a value than this is kept in segments, of at most this size. In bytes.
const SEGMENT: usize = 16344;

/// The longest value read, in bytes: the registry allows about as much as memory does, settings are
/// short.
const MAX_VALUE: usize = 1 << 20;

/// The most that is read of names and values in all, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// How many cells may be looked at in one hive. Windows' own hold about a million keys; settings lie
/// on the way past some tens of thousands.
const MAX_LOOKS: usize = 2_000_000;

/// How many keys may be below one.
const MAX_CHILDREN: usize = 1 << 17;

/// The longest name of a value, in bytes: Windows allows 16383 characters.
const MAX_NAME: usize = 2 * 16383;

/// A hive in memory.
pub(super) struct Hive<'a> {
    bytes: &'a [u8],
    looks: Budget,
    copied: Budget,
}

/// How much may still be done.
struct Budget(Cell<usize>);

impl Budget {
    fn new(most: usize) -> Self {
        Self(Cell::new(most))
    }

    fn spend(&self, amount: usize) -> Result<(), HiveError> {
        let left = self.0.get().checked_sub(amount);
        self.0.set(left.ok_or(HiveError::TooMuch)?);
        Ok(())
    }
}

/// Why something of a hive cannot be read: what it is, and the byte where it should be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HiveError {
    /// It does not begin as hives do.
    #[error("it does not begin with \"regf\" and a block of 4096 bytes")]
    NotAHive,
    /// A cell lies outside the file, or holds something else than it should.
    #[error("damaged at byte {at:#x}: no {expected} is there")]
    Damaged {
        /// What should be there.
        expected: &'static str,
        /// Where, from the start of the file.
        at: u64,
    },
    /// More is looked at than an honest hive needs.
    #[error("more keys and values lie on the way than an honest hive holds: it is damaged")]
    TooMuch,
}

/// A key of a hive.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    hive: &'a Hive<'a>,
    cell: &'a [u8],
}

/// Whether these are the first bytes of a hive.
pub(super) fn starts(bytes: &[u8]) -> bool {
    bytes.starts_with(b"regf")
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Where a cell is in the file.
fn place(offset: u32) -> u64 {
    BASE as u64 + u64::from(offset)
}

impl<'a> Hive<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, HiveError> {
        if !starts(bytes) || bytes.len() < BASE {
            return Err(HiveError::NotAHive);
        }
        Ok(Self {
            bytes,
            looks: Budget::new(MAX_LOOKS),
            copied: Budget::new(MAX_BYTES),
        })
    }

    /// The size that the hive says it has, in bytes.
    pub(super) fn claimed_size(&self) -> u64 {
        u32_at(self.bytes, 40).map_or(0, place)
    }

    /// The key that all others are below.
    pub(super) fn root(&'a self) -> Result<Node<'a>, HiveError> {
        let offset = u32_at(self.bytes, 0x24).ok_or(HiveError::NotAHive)?;
        self.node(offset)
    }

    fn node(&'a self, offset: u32) -> Result<Node<'a>, HiveError> {
        let cell = self.cell(offset, "key")?;
        if !cell.starts_with(b"nk") || cell.len() < 76 {
            return Err(damaged("key", offset));
        }
        Ok(Node { hive: self, cell })
    }

    /// The bytes of a cell without its size.
    fn cell(&self, offset: u32, expected: &'static str) -> Result<&'a [u8], HiveError> {
        self.looks.spend(1)?;
        let cell = || {
            let start = BASE.checked_add(usize::try_from(offset).ok()?)?;
            // Of a cell in use the size is negative.
            let size = u32_at(self.bytes, start)?.cast_signed().checked_neg()?;
            let size = usize::try_from(size).ok().filter(|size| *size >= 4)?;
            self.bytes.get(start + 4..start.checked_add(size)?)
        };
        cell().ok_or_else(|| damaged(expected, offset))
    }
}

fn damaged(expected: &'static str, offset: u32) -> HiveError {
    HiveError::Damaged {
        expected,
        at: place(offset),
    }
}

/// A name, kept as Latin-1 where that is enough.
fn name(bytes: &[u8], latin: bool) -> String {
    if latin {
        return bytes.iter().copied().map(char::from).collect();
    }
    let (units, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}

impl<'a> Node<'a> {
    fn field(&self, at: usize) -> u32 {
        u32_at(self.cell, at).unwrap_or(u32::MAX)
    }

    pub(super) fn name(&self) -> String {
        let length = usize::from(u16_at(self.cell, 72).unwrap_or(0));
        let latin = u16_at(self.cell, 2).unwrap_or(0) & 0x20 != 0;
        let bytes = &self.cell[76..];
        // Windows allows 255 characters.
        name(&bytes[..length.min(bytes.len()).min(510)], latin)
    }

    /// The key of that path below this one.
    pub(super) fn descendant(&self, path: &str) -> Result<Option<Node<'a>>, HiveError> {
        let mut node = *self;
        for name in path.split('\\') {
            match node.child(name)? {
                Some(child) => node = child,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn nodes(&self) -> Result<Vec<Node<'a>>, HiveError> {
        let mut nodes = Vec::new();
        if self.field(20) == 0 {
            return Ok(nodes);
        }
        let list = self.hive.cell(self.field(28), "list of keys")?;
        if list.starts_with(b"ri") {
            // A list of lists, which are never lists of lists themselves.
            for offset in offsets(list, 4) {
                let list = self.hive.cell(offset, "list of keys")?;
                self.add_children(list, offset, &mut nodes)?;
            }
        } else {
            self.add_children(list, self.field(28), &mut nodes)?;
        }
        Ok(nodes)
    }

    fn add_children(
        &self,
        list: &[u8],
        offset: u32,
        nodes: &mut Vec<Node<'a>>,
    ) -> Result<(), HiveError> {
        let step = match list.get(..2) {
            Some(b"lf" | b"lh") => 8,
            Some(b"li") => 4,
            _ => return Err(damaged("list of keys", offset)),
        };
        for offset in offsets(list, step) {
            if nodes.len() == MAX_CHILDREN {
                return Err(HiveError::TooMuch);
            }
            nodes.push(self.hive.node(offset)?);
        }
        Ok(())
    }

    /// The value of that name, whatever its case.
    pub(super) fn value(&self, name: &str) -> Result<Option<KeyValue>, HiveError> {
        let wanted = name.to_lowercase();
        let values = self.values()?.into_iter().flatten();
        let mut named = values.filter(|value| value.name.to_lowercase() == wanted);
        Ok(named.next())
    }
}

impl KeyTree for Node<'_> {
    type Error = HiveError;

    fn child(&self, name: &str) -> Result<Option<Self>, HiveError> {
        let wanted = name.to_lowercase();
        let nodes = self.nodes()?.into_iter();
        let mut named = nodes.filter(|node| node.name().to_lowercase() == wanted);
        Ok(named.next())
    }

    fn children(&self) -> Result<Vec<(String, Self)>, HiveError> {
        let nodes = self.nodes()?.into_iter();
        Ok(nodes.map(|node| (node.name(), node)).collect())
    }

    fn values(&self) -> Result<Vec<Result<KeyValue, HiveError>>, HiveError> {
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
}

/// The offsets that a list of keys holds, `step` bytes from each other.
fn offsets(list: &[u8], step: usize) -> impl Iterator<Item = u32> {
    let count = usize::from(u16_at(list, 2).unwrap_or(0));
    (0..count).map_while(move |index| u32_at(list, 4 + index * step))
}

impl Hive<'_> {
    fn value(&self, offset: u32) -> Result<KeyValue, HiveError> {
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
        let name = name(bytes.ok_or_else(broken)?, latin);
        let data = self.data(field(4)?, field(8)?, cell)?;
        self.copied.spend(name.len() + data.len())?;
        Ok(KeyValue {
            name,
            value: Value::from_bytes(field(12)?, &data),
            at: At::Offset(place(offset)),
        })
    }

    /// The data of a value: in its cell if short, in a cell of its own, or in segments.
    fn data(&self, size: u32, offset: u32, cell: &[u8]) -> Result<Vec<u8>, HiveError> {
        const INLINE: u32 = 1 << 31;
        let broken = || damaged("data of a value", offset);
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
        let data = self.cell(offset, "data of a value")?;
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
