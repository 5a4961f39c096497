//! `cpus`: the machine's logical processors.

use crate::column::{Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per logical processor. A processor has a row if the trace describes it, if it has events, or
    /// if the log-file header counts it.
    Cpus, CpusView = "cpus" sorted by first_seen_ns {
        /// Start of the first session.
        first_seen_ns: Vec<i64> = "log-file header: StartTime",
        /// System-wide index of the processor. The column `cpu` of other tables has the same index.
        cpu: Vec<u16> = "Processors: ProcessorIndex; CPU of buffers; log-file header: NumberOfProcessors"
            wpa "CPU",
        /// Processor group. Present since Windows 10.
        processor_group: Nullable<u16> = "ProcessorNumber; ProcessorGroup",
        /// Number of the processor within its group.
        number: Nullable<u8> = "ProcessorNumber; ProcessorGroup",
        /// Number of the NUMA node.
        numa_node: Nullable<u16> = "NumaNode, by group and number",
        /// Frequency of the processor.
        mhz: Nullable<u32> = "Processors: ProcessorSpeed; log-file header: CpuSpeedInMHz" in "MHz",
        /// Marketing name of the processor. Present since Windows 10.
        model: Text = "Processors: ProcessorName",
        /// Family, model and stepping of the processor.
        identifier: Text = "Processors: ProcessorIdentifier",
        /// Vendor of the processor.
        vendor: Text = "Processors: VendorIdentifier",
        /// True if the trace has buffers of the processor.
        has_events: Vec<bool> = "CPU of buffers",
        /// Time from which the trace has all events of the processor. If the session was a ring buffer and
        /// overwrote older events, this is the time of the first event. Null if the trace has all events
        /// since the trace's start.
        recorded_from_ns: Nullable<i64> = "log-file header: LogFileMode; header time",
        /// Time until which the trace has all events of the processor. If the file was truncated or the
        /// session never stopped, this is the time of the last event. The value is 0 if the trace has context
        /// switches but does not show which threads this processor ran. Null if the trace has all events
        /// until the trace's end.
        recorded_until_ns: Nullable<i64> = "log-file header: EndTime; header time",
        /// Number of events that the processor logged.
        events: Vec<u64> = "number of events",
        /// Time of the processor's first event.
        first_event_ns: Nullable<i64> = "header time",
        /// Time of the processor's last event.
        last_event_ns: Nullable<i64> = "header time",
        /// Longest time between two consecutive events of the processor.
        longest_gap_ns: Nullable<i64> = "header time of two consecutive events",
        /// Start of the longest time between two consecutive events of the processor.
        longest_gap_start_ns: Nullable<i64> = "header time of two consecutive events",
        /// Time at which the session last dropped an event of the processor. Present since Windows 11.
        last_dropped_ns: Nullable<i64> = "LastDroppedTimes: TimeStamp",
        /// Time for which the host of this virtual machine did not run the processor although it had work, in multiples
        /// of 10 ms. Only of recordings of Linux whose facts have the processor's times twice.
        stolen_ns: Nullable<i64> = "FILE.proc: steal in the last and the first line of the processor in /proc/stat",
        /// Time in which `stolen_ns` was counted. It is longer than the recording if the times were read before and
        /// after it.
        stolen_within_ns: Nullable<i64> = "FILE.proc: the sum of the times in the same lines",
    }
}

/// Maximum number of processors that this table accepts. Windows supports fewer processors.
pub const MAX_CPUS: u32 = 2048;

impl Register for Cpus {}
