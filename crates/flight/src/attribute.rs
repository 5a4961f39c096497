//! Descriptions of events (`perf_event_attr`). The kernel and the file `perf.data` use the same form.

/// Size in bytes of a description: `PERF_ATTR_SIZE_VER5`, which Linux 4.1 and later accept.
pub(crate) const SIZE: usize = 112;

/// Types of events (`PERF_TYPE_…`).
pub(crate) mod kind {
    pub(crate) const SOFTWARE: u32 = 1;
    pub(crate) const TRACEPOINT: u32 = 2;
}

/// Numbers of events of the type [`kind::SOFTWARE`] (`PERF_COUNT_SW_…`).
pub(crate) mod software {
    pub(crate) const CPU_CLOCK: u64 = 0;
    pub(crate) const MAJOR_FAULTS: u64 = 6;
    pub(crate) const DUMMY: u64 = 9;
}

/// Bits of `sample_type` (`PERF_SAMPLE_…`).
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDRESS: u64 = 1 << 3;
    pub(crate) const CALL_CHAIN: u64 = 1 << 5;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    /// Fields that every sample has. All other records have the same fields in another order (`sample_id_all`).
    pub(crate) const ALWAYS: u64 = TID | TIME | CPU | IDENTIFIER;
}

/// Bits of the field with the flags.
pub(crate) mod flag {
    pub(crate) const DISABLED: u64 = 1 << 0;
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const COMM: u64 = 1 << 9;
    pub(crate) const FREQUENCY: u64 = 1 << 10;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const USE_CLOCKID: u64 = 1 << 25;
}

/// Number of the clock for the times of all records: `CLOCK_MONOTONIC_RAW`. The probes of laglab use the same clock.
pub(crate) const CLOCK: i32 = 4;

/// Description of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attribute {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Number of events from one sample to the next. With [`flag::FREQUENCY`], the number of samples per second
    /// instead.
    pub(crate) period: u64,
    /// Fields of samples, in addition to [`sample::ALWAYS`].
    pub(crate) fields: u64,
    /// Flags in addition to the flags that all events have.
    pub(crate) flags: u64,
}

impl Attribute {
    /// Returns the description in the form that the kernel reads, in the byte order of this machine.
    pub(crate) fn bytes(&self) -> [u8; SIZE] {
        let flags = self.flags | flag::DISABLED | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID;
        // The flags are bit fields. On big-endian machines, bit fields begin at the most significant bit.
        let flags = if cfg!(target_endian = "big") {
            flags.reverse_bits()
        } else {
            flags
        };
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.kind.to_ne_bytes());
        put(4, &(SIZE as u32).to_ne_bytes());
        put(8, &self.config.to_ne_bytes());
        put(16, &self.period.to_ne_bytes());
        put(24, &(self.fields | sample::ALWAYS).to_ne_bytes());
        // The value of `read_format` is PERF_FORMAT_ID, as in recordings of perf.
        put(32, &4_u64.to_ne_bytes());
        put(40, &flags.to_ne_bytes());
        put(92, &CLOCK.to_ne_bytes());
        bytes
    }
}
