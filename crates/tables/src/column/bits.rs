//! Bitmap of the rows that are not null.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::column::Place;

/// One bit per row, packed like Arrow's bitmaps. Most columns have the same bit in all rows. In this case, no
/// bytes are stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    len: usize,
    /// Bit of all rows. It is valid only while `bytes` is empty.
    all: bool,
}

impl Bits {
    #[inline]
    pub(super) fn push(&mut self, bit: bool) {
        if self.bytes.is_empty() {
            if self.all == bit || self.len == 0 {
                self.all = bit;
                self.len += 1;
                return;
            }
            self.spread();
        }
        let at = self.len % 8;
        if at == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << at;
        }
        self.len += 1;
    }

    /// Adds up to 64 rows. The lowest bit of `word` belongs to the first new row. The bits at index `rows`
    /// and above must be 0.
    #[inline]
    pub(super) fn extend(&mut self, word: u64, rows: usize) {
        if rows == 0 {
            return;
        }
        if self.bytes.is_empty() {
            let all = word != 0;
            let is_uniform = !all || word == u64::MAX >> (64 - rows);
            if is_uniform && (self.all == all || self.len == 0) {
                self.all = all;
                self.len += rows;
                return;
            }
            self.spread();
        }
        let used = self.len % 8;
        let mut bits = u128::from(word) << used;
        if used > 0
            && let Some(last) = self.bytes.last_mut()
        {
            *last |= bits as u8;
            bits >>= 8;
        }
        self.len += rows;
        let bytes = self.len.div_ceil(8) - self.bytes.len();
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..bytes]);
    }

    /// Adds `rows` rows. `bit` returns the bit of a new row. Its argument is the index of the row among the
    /// new rows, from 0.
    fn extend_with(&mut self, rows: usize, bit: impl Fn(usize) -> bool) {
        for first in (0..rows).step_by(64) {
            let count = (rows - first).min(64);
            let word = (0..count).fold(0, |word, at| word | u64::from(bit(first + at)) << at);
            self.extend(word, count);
        }
    }

    /// Stores the bits of all rows in `bytes`.
    #[cold]
    fn spread(&mut self) {
        self.bytes = vec![if self.all { 0xFF } else { 0 }; self.len.div_ceil(8)];
        if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.len % 8) {
            *last &= (1 << used) - 1;
        }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> bool {
        if self.bytes.is_empty() {
            return self.all;
        }
        self.bytes[row / 8] >> (row % 8) & 1 != 0
    }

    pub(super) fn set(&mut self, row: usize, bit: bool) {
        if self.bytes.is_empty() {
            if self.all == bit {
                return;
            }
            self.spread();
        }
        let byte = &mut self.bytes[row / 8];
        *byte = *byte & !(1 << (row % 8)) | u8::from(bit) << (row % 8);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn gather(parts: &[&Bits], order: &[Place]) -> Bits {
        let row = |place: &Place| parts[place.part as usize].get(place.row as usize);
        let mut gathered = Bits::default();
        if let Some(all) = order.first().map(row)
            && parts.iter().all(|part| part.is_all(all))
        {
            (gathered.len, gathered.all) = (order.len(), all);
        } else {
            gathered.extend_with(order.len(), |at| row(&order[at]));
        }
        gathered
    }

    /// Returns true if all rows have the value `bit` and no bytes are stored, or if there are no rows.
    fn is_all(&self, bit: bool) -> bool {
        self.len == 0 || self.bytes.is_empty() && self.all == bit
    }

    pub(super) fn append(&mut self, other: &Bits) {
        if self.len == 0 {
            *self = other.clone();
        } else if self.bytes.is_empty() && other.bytes.is_empty() && self.all == other.all {
            self.len += other.len;
        } else {
            self.extend_with(other.len, |row| other.get(row));
        }
    }

    pub(super) fn split_off(&mut self, at: usize) -> Bits {
        let mut tail = Bits::default();
        tail.extend_with(self.len.saturating_sub(at), |row| self.get(at + row));
        self.len = at.min(self.len);
        if !self.bytes.is_empty() {
            self.bytes.truncate(self.len.div_ceil(8));
            if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.len % 8) {
                *last &= (1 << used) - 1;
            }
            if self.len == 0 {
                *self = Bits::default();
            }
        }
        tail
    }

    pub(super) fn into_nulls(self) -> Option<NullBuffer> {
        if self.bytes.is_empty() {
            return (!self.all).then(|| NullBuffer::new_null(self.len));
        }
        let bits = BooleanBuffer::new(Buffer::from_vec(self.bytes), 0, self.len);
        Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
    }
}
