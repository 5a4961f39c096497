//! Layout of samples, and of the common fields at the end of other records.

use crate::bytes::{Bytes, Order};

/// Bits of `perf_event_attr::sample_type`, in the order of the constants of `perf_event.h`.
mod bit {
    pub(super) const IP: u64 = 1 << 0;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
    /// Fields that can be at the end of records that are not samples.
    pub(super) const TRAILER: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
}

/// Bits of `perf_event_attr::read_format`.
mod read {
    pub(super) const ENABLED: u64 = 1 << 0;
    pub(super) const RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Layout of the samples of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    sample_type: u64,
    read_format: u64,
    /// True if records that are not samples end with the fields of [`Common`].
    has_trailers: bool,
}

/// Fields that samples can have. If the event is recorded with `sample_id_all`, all other records have these fields,
/// too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) id: Option<u64>,
    /// Ids of the process and the thread.
    pub(crate) ids: Option<(u32, u32)>,
    pub(crate) time_ns: Option<u64>,
    pub(crate) cpu: Option<u32>,
}

/// Fields of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample<'r> {
    pub(crate) common: Common,
    pub(crate) ip: Option<u64>,
    pub(crate) address: Option<u64>,
    pub(crate) period: Option<u64>,
    /// Addresses of the call chain. Each has 8 bytes in the recording's byte order.
    pub(crate) chain: &'r [u8],
    /// Data of a tracepoint; empty for other events.
    pub(crate) raw: &'r [u8],
}

impl SampleLayout {
    /// Layout of records that are made from pages of the kernel's ring buffer.
    pub(crate) const OF_PAGES: SampleLayout = SampleLayout {
        sample_type: bit::IDENTIFIER | bit::TID | bit::TIME | bit::CPU | bit::CALLCHAIN | bit::RAW,
        read_format: 0,
        has_trailers: false,
    };

    /// Returns the layout of samples that are made from lines of a text.
    pub(crate) fn of_text(has_period: bool) -> SampleLayout {
        let period = if has_period { bit::PERIOD } else { 0 };
        let common = Self::OF_PAGES.sample_type & !bit::RAW;
        SampleLayout::new(common | bit::IP | period, 0, false)
    }

    pub(crate) fn new(sample_type: u64, read_format: u64, has_trailers: bool) -> SampleLayout {
        SampleLayout {
            sample_type,
            read_format,
            has_trailers,
        }
    }

    fn has(self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Returns the id of the event to which a sample belongs. Samples of different events can have different layouts,
    /// but the id has the same offset in all of them, so the layout of any event can be used. Returns `None` if samples
    /// have no id, or if the sample is too short.
    pub(crate) fn identifier(self, body: &[u8], order: Order) -> Option<u64> {
        let mut bytes = Bytes::new(body, order);
        if self.has(bit::IDENTIFIER) {
            return bytes.u64();
        }
        if !self.has(bit::ID) {
            return None;
        }
        let before = bit::IP | bit::TID | bit::TIME | bit::ADDR;
        bytes.take(8 * (self.sample_type & before).count_ones() as usize)?;
        bytes.u64()
    }

    /// Reads the fields of a sample that have a fixed size.
    fn read_fixed<'r>(self, bytes: &mut Bytes<'r>) -> Option<Sample<'r>> {
        let mut sample = Sample::default();
        let common = &mut sample.common;
        if self.has(bit::IDENTIFIER) {
            common.id = Some(bytes.u64()?);
        }
        if self.has(bit::IP) {
            sample.ip = Some(bytes.u64()?);
        }
        if self.has(bit::TID) {
            common.ids = Some((bytes.u32()?, bytes.u32()?));
        }
        if self.has(bit::TIME) {
            common.time_ns = Some(bytes.u64()?);
        }
        if self.has(bit::ADDR) {
            sample.address = Some(bytes.u64()?);
        }
        if self.has(bit::ID) {
            common.id = Some(bytes.u64()?);
        }
        if self.has(bit::STREAM_ID) {
            bytes.u64()?;
        }
        if self.has(bit::CPU) {
            common.cpu = Some(bytes.u32()?);
            bytes.u32()?;
        }
        if self.has(bit::PERIOD) {
            sample.period = Some(bytes.u64()?);
        }
        Some(sample)
    }

    /// Reads the common fields of a sample.
    pub(crate) fn read_common(self, body: &[u8], order: Order) -> Option<Common> {
        let sample = self.read_fixed(&mut Bytes::new(body, order));
        sample.map(|sample| sample.common)
    }

    /// Reads a sample. Returns `None` if the sample is too short.
    pub(crate) fn read(self, body: &[u8], order: Order) -> Option<Sample<'_>> {
        let mut bytes = Bytes::new(body, order);
        let mut sample = self.read_fixed(&mut bytes)?;
        if self.has(bit::READ) {
            self.skip_counters(&mut bytes)?;
        }
        if self.has(bit::CALLCHAIN) {
            let addresses = bytes.len64()?;
            sample.chain = bytes.take(addresses.checked_mul(8)?)?;
        }
        if self.has(bit::RAW) {
            let size = bytes.len32()?;
            sample.raw = bytes.take(size)?;
        }
        Some(sample)
    }

    fn skip_counters(self, bytes: &mut Bytes<'_>) -> Option<()> {
        let has = |bit: u64| u64::from(self.read_format & bit != 0);
        let times = has(read::ENABLED) + has(read::RUNNING);
        let per_counter = 1 + has(read::ID) + has(read::LOST);
        let numbers = if self.read_format & read::GROUP != 0 {
            times.checked_add(bytes.u64()?.checked_mul(per_counter)?)?
        } else {
            times + per_counter
        };
        bytes.take(usize::try_from(numbers.checked_mul(8)?).ok()?)?;
        Some(())
    }

    /// Reads the common fields at the end of a record that is not a sample. If the record has no common fields, all
    /// fields of the result are `None`.
    pub(crate) fn read_trailer(self, body: &[u8], order: Order) -> Common {
        self.trailer(body, order).unwrap_or_default()
    }

    /// Returns the size in bytes of the common fields at the end of a record that is not a sample.
    pub(crate) fn trailer_size(self) -> usize {
        if self.has_trailers {
            8 * (self.sample_type & bit::TRAILER).count_ones() as usize
        } else {
            0
        }
    }

    fn trailer(self, body: &[u8], order: Order) -> Option<Common> {
        if !self.has_trailers {
            return None;
        }
        let at = body.len().checked_sub(self.trailer_size())?;
        let mut bytes = Bytes::new(&body[at..], order);
        // The order of these fields is the same as in samples, except that the identifier is the last field.
        let fields = SampleLayout {
            sample_type: self.sample_type & bit::TRAILER & !bit::IDENTIFIER,
            ..self
        };
        let mut common = fields.read_fixed(&mut bytes)?.common;
        if self.has(bit::IDENTIFIER) {
            common.id = Some(bytes.u64()?);
        }
        Some(common)
    }
}
