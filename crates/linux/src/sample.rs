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
    fixed: FixedFields,
}

/// Offsets in bytes of the fields with a fixed size. `None` if a sample does not have the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FixedFields {
    id: Option<usize>,
    ip: Option<usize>,
    /// Ids of the process and the thread.
    ids: Option<usize>,
    time: Option<usize>,
    address: Option<usize>,
    cpu: Option<usize>,
    period: Option<usize>,
    /// Size of all fields in bytes. Each field has eight bytes.
    size: usize,
}

impl FixedFields {
    const fn new(sample_type: u64) -> FixedFields {
        let mut size = 0;
        // The fields are in this order.
        let identifier = place(sample_type, bit::IDENTIFIER, &mut size);
        let ip = place(sample_type, bit::IP, &mut size);
        let ids = place(sample_type, bit::TID, &mut size);
        let time = place(sample_type, bit::TIME, &mut size);
        let address = place(sample_type, bit::ADDR, &mut size);
        let id = place(sample_type, bit::ID, &mut size);
        place(sample_type, bit::STREAM_ID, &mut size);
        let cpu = place(sample_type, bit::CPU, &mut size);
        let period = place(sample_type, bit::PERIOD, &mut size);
        FixedFields {
            id: match identifier {
                Some(_) => identifier,
                None => id,
            },
            ip,
            ids,
            time,
            address,
            cpu,
            period,
            size,
        }
    }
}

/// Returns the offset of a field, and adds the field to `size`. Returns `None` if samples do not have the field.
const fn place(sample_type: u64, bit: u64, size: &mut usize) -> Option<usize> {
    if sample_type & bit == 0 {
        return None;
    }
    *size += 8;
    Some(*size - 8)
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
    pub(crate) const OF_PAGES: SampleLayout = SampleLayout::new(
        bit::IDENTIFIER | bit::TID | bit::TIME | bit::CPU | bit::CALLCHAIN | bit::RAW,
        0,
        false,
    );

    /// Returns the layout of samples that are made from lines of a text.
    pub(crate) fn of_text(has_period: bool) -> SampleLayout {
        let period = if has_period { bit::PERIOD } else { 0 };
        let common = Self::OF_PAGES.sample_type & !bit::RAW;
        SampleLayout::new(common | bit::IP | period, 0, false)
    }

    pub(crate) const fn new(
        sample_type: u64,
        read_format: u64,
        has_trailers: bool,
    ) -> SampleLayout {
        SampleLayout {
            sample_type,
            read_format,
            has_trailers,
            fixed: FixedFields::new(sample_type),
        }
    }

    fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    pub(crate) fn has_chains(&self) -> bool {
        self.has(bit::CALLCHAIN)
    }

    /// Returns the id of the event to which a sample belongs. Samples of different events can have different layouts,
    /// but the id has the same offset in all of them, so the layout of any event can be used. Returns `None` if samples
    /// have no id, or if the sample is too short.
    pub(crate) fn identifier(&self, body: &[u8], order: Order) -> Option<u64> {
        number_at(body, self.fixed.id?, order)
    }

    /// Reads the fields of a sample that have a fixed size. It is always inlined, because returning the large result through
    /// memory takes as long as reading it.
    #[inline(always)]
    fn read_fixed<'r>(&self, bytes: &mut Bytes<'r>, order: Order) -> Option<Sample<'r>> {
        let fields = bytes.take(self.fixed.size)?;
        let number = |place: Option<usize>| number_at(fields, place?, order);
        let half = |place: Option<usize>| half_at(fields, place?, order);
        Some(Sample {
            common: Common {
                id: number(self.fixed.id),
                ids: half(self.fixed.ids).zip(half(self.fixed.ids.map(|place| place + 4))),
                time_ns: number(self.fixed.time),
                cpu: half(self.fixed.cpu),
            },
            ip: number(self.fixed.ip),
            address: number(self.fixed.address),
            period: number(self.fixed.period),
            ..Sample::default()
        })
    }

    /// Reads the common fields of a sample.
    pub(crate) fn read_common(&self, body: &[u8], order: Order) -> Option<Common> {
        let sample = self.read_fixed(&mut Bytes::new(body, order), order);
        sample.map(|sample| sample.common)
    }

    /// Reads a sample. Returns `None` if the sample is too short.
    #[inline]
    pub(crate) fn read<'r>(&self, body: &'r [u8], order: Order) -> Option<Sample<'r>> {
        let mut bytes = Bytes::new(body, order);
        let mut sample = self.read_fixed(&mut bytes, order)?;
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

    fn skip_counters(&self, bytes: &mut Bytes<'_>) -> Option<()> {
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
    pub(crate) fn read_trailer(&self, body: &[u8], order: Order) -> Common {
        self.trailer(body, order).unwrap_or_default()
    }

    /// Returns the size in bytes of the common fields at the end of a record that is not a sample.
    pub(crate) fn trailer_size(&self) -> usize {
        if self.has_trailers {
            8 * (self.sample_type & bit::TRAILER).count_ones() as usize
        } else {
            0
        }
    }

    fn trailer(&self, body: &[u8], order: Order) -> Option<Common> {
        if !self.has_trailers {
            return None;
        }
        let at = body.len().checked_sub(self.trailer_size())?;
        let mut bytes = Bytes::new(&body[at..], order);
        // The order of these fields is the same as in samples, except that the identifier is the last field.
        let fields = self.sample_type & bit::TRAILER & !bit::IDENTIFIER;
        let fields = SampleLayout::new(fields, 0, false);
        let mut common = fields.read_fixed(&mut bytes, order)?.common;
        if self.has(bit::IDENTIFIER) {
            common.id = Some(bytes.u64()?);
        }
        Some(common)
    }
}

/// Returns the number at an offset; `None` if there are too few bytes.
fn number_at(bytes: &[u8], offset: usize, order: Order) -> Option<u64> {
    let number = bytes.get(offset..)?.first_chunk()?;
    Some(order.u64(*number))
}

/// Returns the number of four bytes at an offset; `None` if there are too few bytes.
fn half_at(bytes: &[u8], offset: usize, order: Order) -> Option<u32> {
    let number = bytes.get(offset..)?.first_chunk()?;
    Some(order.u32(*number))
}
