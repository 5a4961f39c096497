//! Files of perf that the tests write byte by byte.
//!
//! Source of the format: `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h` of the
//! kernel.

/// Size in bytes of the header of a file.
const HEADER: usize = 104;

/// Time of the first event of the recordings in `../shared/data/linux`.
pub(crate) const ORIGIN_NS: u64 = 1_000_000_000_000;

/// Returns a record: its type, 2 bytes of flags, its size, and `body`.
pub(crate) fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    let header = [&kind.to_le_bytes()[..], &[0; 2], &size.to_le_bytes()];
    [&header.concat()[..], body].concat()
}

/// Returns a `perf_event_attr` of 64 bytes: an event with a type and a number, whose samples have the fields
/// `sample_type`. All other records have such fields at their end.
pub(crate) fn attribute((kind, config): (u32, u64), sample_type: u64) -> Vec<u8> {
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    let numbers = [config, 1, sample_type, 0, SAMPLE_ID_ALL, 0, 0];
    let start = [kind, 64].map(u32::to_le_bytes).concat();
    [start, numbers.map(u64::to_le_bytes).concat()].concat()
}

/// Returns a file with events and records, and without feature sections. The events have no ids.
pub(crate) fn file(attributes: &[Vec<u8>], records: &[u8]) -> Vec<u8> {
    file_with_ids(attributes, (0, 0), records)
}

/// Returns a file in which all events have the same place of their ids: an offset and a size in bytes.
pub(crate) fn file_with_ids(attributes: &[Vec<u8>], ids: (u64, u64), records: &[u8]) -> Vec<u8> {
    let size = 80 * attributes.len() as u64;
    let data = HEADER as u64 + size;
    let sections = [HEADER as u64, size, data, records.len() as u64, 0, 0];
    let numbers = [&[HEADER as u64, 80][..], &sections, &[0; 4]].concat();
    let mut file = b"PERFILE2".to_vec();
    file.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    for attribute in attributes {
        file.extend(attribute);
        file.extend([ids.0, ids.1].map(u64::to_le_bytes).concat());
    }
    file.extend(records);
    file
}

/// Returns the number of 64 bits at an offset.
pub(crate) fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Returns the time of a record of a recording in `../shared/data/linux`, in nanoseconds since its first event. Samples
/// have the time after their id, instruction and thread; other records at their end.
pub(crate) fn time(record: &[u8]) -> u64 {
    let at = match record[0] {
        9 => 8 + 24,
        _ => record.len() - 24,
    };
    number(record, at).saturating_sub(ORIGIN_NS)
}

/// Parts of a file of perf.
pub(crate) struct Parts {
    /// Header and descriptions of events.
    start: Vec<u8>,
    pub(crate) records: Vec<Vec<u8>>,
    /// Offsets and sizes of the feature sections.
    pub(crate) features: Vec<(u64, u64)>,
    /// Feature sections.
    end: Vec<u8>,
    /// Offset of the feature sections in the original file.
    end_at: u64,
}

impl Parts {
    pub(crate) fn parse(file: &[u8]) -> Parts {
        let data = number(file, 40) as usize;
        let end = data + number(file, 48) as usize;
        let mut records = Vec::new();
        let mut at = data;
        while at < end {
            let size = usize::from(file[at + 6]) | usize::from(file[at + 7]) << 8;
            records.push(file[at..at + size].to_vec());
            at += size;
        }
        let count = number(file, 72).count_ones() as usize;
        let places = (0..count).map(|place| end + 16 * place);
        let features = places.map(|at| (number(file, at), number(file, at + 8)));
        let after = end + 16 * count;
        Parts {
            start: file[..data].to_vec(),
            records,
            features: features.collect(),
            end: file[after..].to_vec(),
            end_at: after as u64,
        }
    }

    /// Returns the file with these parts.
    pub(crate) fn joined(mut self) -> Vec<u8> {
        let records = self.records.concat();
        self.start[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
        let end_at = (self.start.len() + records.len() + 16 * self.features.len()) as u64;
        let moved = |offset: u64| offset.wrapping_sub(self.end_at).wrapping_add(end_at);
        let places = self.features.iter().flat_map(|(offset, size)| {
            let offset = if *size == 0 { *offset } else { moved(*offset) };
            [offset, *size].map(u64::to_le_bytes)
        });
        let places: Vec<u8> = places.flatten().collect();
        [self.start, records, places, self.end].concat()
    }
}
