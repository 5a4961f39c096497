//! Chunks of a recording. A chunk is a sequence of consecutive records of one CPU.

/// Consecutive records of one CPU in a file.
///
/// `perf record` writes all records that it finds in the ring buffer of one CPU, then the records of the next CPU. The
/// chunks of a CPU are in time order. Records that perf itself made from `/proc` have no time, so they are an
/// exception. In a recording of trace-cmd, a chunk is a sequence of pages of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// CPU of the records; `None` if they have no CPU.
    pub cpu: Option<u32>,
    /// Offset of the first record in bytes. It counts from the start of the file, or from the start of the expanded
    /// records if the records were compressed.
    pub offset: u64,
    /// Size of all records in bytes.
    pub bytes: u32,
    /// Number of records.
    pub records: u32,
    /// Earliest time of a record, in nanoseconds of the recording's clock; `None` if no record has a time.
    pub first_ns: Option<u64>,
    /// Latest time of a record, in nanoseconds of the recording's clock; `None` if no record has a time.
    pub last_ns: Option<u64>,
    pub(crate) part: Part,
}

/// Source from which the records of a chunk are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// The file of the recording.
    #[default]
    File,
    /// The temporary file with the expanded records. It exists if the recording has compressed records.
    Inflated,
    /// Facts of a recording of trace-cmd, in the form of records of perf.
    Facts,
}

/// Maximum size of a chunk in bytes. It limits the memory for reading a chunk.
const LARGEST: u32 = 1 << 20;

/// Number of chunks that every recording may have.
const MAY_HAVE: u64 = 1 << 20;

/// Number of bytes of records for each further chunk. Without this limit, records that alternate between CPUs would need
/// more memory than the file.
const BYTES_PER_CHUNK: u64 = 64;

/// Builder of chunks. It contains the chunks of the records that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pub(crate) all: Vec<Chunk>,
    /// True if the next record begins a new chunk.
    is_closed: bool,
    part: Part,
    /// Size of all records in bytes.
    bytes: u64,
}

impl Chunks {
    /// Adds a record with its offset and size in bytes. Begins a new chunk if the record has another CPU, does not
    /// follow the last record directly, or does not fit into the chunk. Returns false if there would be too many chunks.
    pub(crate) fn add(
        &mut self,
        cpu: Option<u32>,
        time_ns: Option<u64>,
        offset: u64,
        bytes: u32,
    ) -> bool {
        self.bytes += u64::from(bytes);
        let is_full = self.all.len() as u64 >= MAY_HAVE + self.bytes / BYTES_PER_CHUNK;
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
            None if is_full => return false,
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
        true
    }

    /// Ends the current chunk. The next records are in `part`.
    pub(crate) fn begin(&mut self, part: Part) {
        self.close();
        self.part = part;
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Ends the current chunk. The next record begins a new chunk.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}
