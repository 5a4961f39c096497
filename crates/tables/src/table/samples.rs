//! `samples`: code that CPUs were executing when the profile timer fired.

use std::collections::HashMap;

use crate::column::Nullable;
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::stack_index::StackCursor;
use crate::table::Table;
use crate::trackers::{ImageFinder, ThreadFinder, Trackers};

table! {
    /// One row per sample of the profile timer. A sample is the address of the code that a CPU was executing.
    Samples, SamplesView = "samples" sorted by time_ns
        title "CPU Usage (Sampled)"
        record "samples (xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, WPR keyword SampledProfile)"
    {
        /// Time of the sample.
        time_ns: Vec<i64> = "SampledProfile: header time" wpa "TimeStamp (s)",
        /// CPU that was sampled. Unknown if a recording of Linux has samples without CPUs, as `perf record COMMAND` writes
        /// them.
        cpu: Nullable<u16> = "SampledProfile: CPU of the buffer" wpa "CPU",
        /// Address of the interrupted instruction.
        address: Vec<u64> = "SampledProfile: InstructionPointer" wpa "Address",
        /// Thread that ran; 0 is the CPU's idle thread.
        thread_id: Vec<u32> = "SampledProfile: ThreadId" wpa "Thread ID",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread; 0 for idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Row in `images` of the module at the address.
        image_row: Nullable<u32> = "address, process_id and time_ns in `images`" wpa "Module",
        /// Time that the sample represents. This is the time since the previous sample of the CPU. So if timer ticks
        /// are late or lost, their time is part of the next sample's weight. The weight of a CPU's first sample is the
        /// profiling interval. On Linux, the time depends on the sampled event. For `cpu-clock` and `task-clock`, this
        /// is the time that the event counted. For cycles that are sampled by frequency, this is the mean time between
        /// two samples.
        weight_ns: Nullable<i64> = "time_ns minus that of the CPU's previous sample"
            wpa "Weight (in view)",
        /// Stack of the thread.
        stack_id: Nullable<u32> = "the stack of the SampledProfile" wpa "Stack",
        /// Number of profile interrupts that the row represents.
        count: Vec<u16> = "SampledProfile: Count" wpa "All Count",
        /// True if the CPU was executing a DPC. Present since Windows 7.
        in_dpc: Nullable<bool> = "SampledProfile: Flags bit 0" wpa "DPC/ISR",
        /// True if the CPU was executing an interrupt service routine. Present since Windows 7.
        in_isr: Nullable<bool> = "SampledProfile: Flags bit 1" wpa "DPC/ISR",
        /// Priority of the thread, 0 to 31. Present since Windows 8.
        priority: Nullable<u8> = "SampledProfile: Flags bits 3-7",
        /// Rank of the thread in its scheduling group. Threads with rank 0 run before threads with higher
        /// ranks. Present since Windows 8.
        rank: Nullable<u8> = "SampledProfile: Rank",
    }
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct SampleState {
    threads: ThreadFinder,
    images: ImageFinder,
    stacks: StackCursor,
    /// Time of each CPU's last sample.
    last_ns: HashMap<Option<u16>, i64>,
}

impl Samples {
    /// Adds a sample of Linux, except for the columns that refer to other tables.
    pub fn push_of_linux(
        &mut self,
        (time_ns, cpu): (i64, Option<u16>),
        thread_id: u32,
        address: u64,
        weight_ns: Option<i64>,
    ) {
        self.time_ns.push(time_ns);
        self.cpu.push(cpu);
        self.address.push(address);
        self.thread_id.push(thread_id);
        self.weight_ns.push(weight_ns);
        self.count.push(1);
        self.in_dpc.push(None);
        self.in_isr.push(None);
        self.priority.push(None);
        self.rank.push(None);
    }
}

impl Register for Samples {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Images),
        Reader::Table(Table::Stacks),
        Reader::SamplingInterval,
    ];
}

impl EventTable for Samples {
    type Raw = Samples;
    type State = SampleState;

    fn join(raw: &mut Samples, state: &mut SampleState, trackers: &Trackers<'_>) -> Samples {
        let mut rows = std::mem::take(raw);
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        // Samples of Linux already have weights.
        let has_weights = rows.weight_ns.len() == rows.len();
        for row in 0..rows.len() {
            let (time_ns, thread_id) = (rows.time_ns[row], rows.thread_id[row]);
            let process_id = rows.process_id.get(row).unwrap_or(0);
            let address = rows.address[row];
            let image = (state.images).find(trackers, process_id, address, time_ns);
            rows.image_row.push(image);
            if !has_weights {
                let before = state.last_ns.insert(rows.cpu.get(row), time_ns);
                let weight = before.map(|before| time_ns.saturating_sub(before));
                rows.weight_ns
                    .push(weight.or(trackers.sampling_interval_ns));
            }
            let cpu = rows.cpu.get(row);
            let stack = (trackers.stacks).at(&mut state.stacks, time_ns, thread_id, cpu);
            rows.stack_id.push(stack);
        }
        rows
    }
}
