//! Reading position in a packet.

use super::WireError;

/// Cursor that reads integers and slices in sequence, with bounds checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset from the start of the packet.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn take(&mut self, what: &'static str, count: usize) -> Result<&'a [u8], WireError> {
        let rest = self.rest();
        let Some((taken, _)) = rest.split_at_checked(count) else {
            return Err(WireError::Short {
                what,
                offset: self.at,
                needed: count,
                found: rest.len(),
            });
        };
        self.at += count;
        Ok(taken)
    }

    /// Returns a cursor over the next `count` bytes, and moves this cursor past these bytes. The offsets of
    /// the returned cursor also count from the start of the packet.
    pub(super) fn part(
        &mut self,
        what: &'static str,
        count: usize,
    ) -> Result<Cursor<'a>, WireError> {
        let start = self.at;
        self.take(what, count)?;
        Ok(Cursor {
            bytes: &self.bytes[..self.at],
            at: start,
        })
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array(what)?))
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }
}
