//! Chunks: neighbouring records of one CPU.

/// Neighbouring records of one CPU in a file. `perf record` writes what it finds in the ring buffer of one CPU, then
/// what it finds in the next. The chunks of a CPU are in time order, except for facts that perf collected itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// CPU; `None` for records without a CPU.
    pub cpu: Option<u32>,
    /// Offset of the first record in the file, or in the expanded records.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// Number of records.
    pub records: u32,
    /// Earliest time of a record; `None` if no record has a time.
    pub first_ns: Option<u64>,
    /// Latest time of a record.
    pub last_ns: Option<u64>,
    pub(crate) part: Part,
}

/// Part of a recording that has a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// The file.
    #[default]
    File,
    /// The expanded records, if the file has compressed ones.
    Inflated,
}

/// Largest size of a chunk. It limits the memory that reading a chunk needs.
const LARGEST: u32 = 1 << 20;

/// Chunks of the records that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pub(crate) all: Vec<Chunk>,
    /// True if the next record begins a new chunk.
    is_closed: bool,
    part: Part,
}

impl Chunks {
    /// Adds a record that follows the last one in the file.
    pub(crate) fn add(&mut self, cpu: Option<u32>, time_ns: Option<u64>, offset: u64, bytes: u32) {
        let fits = |chunk: &&mut Chunk| {
            chunk.cpu == cpu
                && chunk.offset + u64::from(chunk.bytes) == offset
                && chunk.bytes + bytes <= LARGEST
        };
        let open = (self.all.last_mut()).filter(|_| !self.is_closed);
        match open.filter(fits) {
            Some(chunk) => {
                chunk.bytes += bytes;
                chunk.records += 1;
                if let Some(time_ns) = time_ns {
                    chunk.first_ns = Some(chunk.first_ns.map_or(time_ns, |ns| ns.min(time_ns)));
                    chunk.last_ns = chunk.last_ns.max(Some(time_ns));
                }
            }
            None => self.all.push(Chunk {
                cpu,
                offset,
                bytes,
                records: 1,
                first_ns: time_ns,
                last_ns: time_ns,
                part: self.part,
            }),
        }
        self.is_closed = false;
    }

    /// Begins with the records of another part.
    pub(crate) fn begin(&mut self, part: Part) {
        self.close();
        self.part = part;
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Ends the last chunk.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}
