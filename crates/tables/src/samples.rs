//! `samples`: what CPUs were doing when the profile timer asked.

use etl::Event;
use events::kernel::Sample;

use crate::column::Nullable;
use crate::schema::table;

table! {
    /// One row per sample of the profile timer: the address a CPU was executing.
    Samples, SamplesView = "samples" sorted by time_ns {
        /// When the sample was taken.
        time_ns: Vec<i64> = "SampledProfile: header time" wpa "TimeStamp (s)",
        /// The CPU.
        cpu: Vec<u16> = "SampledProfile: CPU of the buffer" wpa "CPU",
        /// Address of the interrupted instruction.
        address: Vec<u64> = "SampledProfile: InstructionPointer" wpa "Address",
        /// The thread that ran; 0 is the CPU's idle thread.
        thread_id: Vec<u32> = "SampledProfile: ThreadId" wpa "Thread ID",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Its process; 0 of idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Row in `images` of the module at the address.
        image_row: Nullable<u32> = "address, process_id and time_ns in `images`" wpa "Module",
        /// How much time it stands for: since the CPU's sample before, so that late and lost ticks
        /// are charged to the next sample; of a CPU's first sample the profiling interval.
        weight_ns: Nullable<i64> = "time_ns less that of the CPU's sample before"
            wpa "Weight (in view)",
        /// Its stack.
        stack_id: Nullable<u32> = "the stack of the SampledProfile" wpa "Stack",
        /// How many profile interrupts the row stands for.
        count: Vec<u16> = "SampledProfile: Count" wpa "All Count",
        /// The CPU was executing a DPC. Since Windows 7.
        in_dpc: Nullable<bool> = "SampledProfile: Flags bit 0" wpa "DPC/ISR",
        /// The CPU was executing an interrupt's service routine. Since Windows 7.
        in_isr: Nullable<bool> = "SampledProfile: Flags bit 1" wpa "DPC/ISR",
        /// Priority of the thread, 0 to 31. Since Windows 8.
        priority: Nullable<u8> = "SampledProfile: Flags bits 3-7",
        /// Rank of the thread in its scheduling group; 0 runs before higher ranks. Since
        /// Windows 8.
        rank: Nullable<u8> = "SampledProfile: Rank",
    }
}

impl Samples {
    /// Adds a row; `None` if the payload is unreadable. `system` is the version of Windows.
    ///
    /// A trace of Windows 7 SP1 has the flags of DPCs and ISRs, but 0 for every priority and rank;
    /// older systems are said to leave both bytes 0.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>, system: (u8, u8)) -> Option<()> {
        let sample = Sample::read(event.payload(), event.version()?, event.pointer_size())?;
        let has_flags = system >= (6, 1) && sample.flags.is_some();
        let has_priority = system >= (6, 2);
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.address.push(sample.instruction_pointer);
        self.thread_id.push(sample.thread_id);
        self.count.push(sample.count);
        self.in_dpc.push(has_flags.then(|| sample.in_dpc()));
        self.in_isr.push(has_flags.then(|| sample.in_isr()));
        self.priority
            .push(sample.priority().filter(|_| has_priority));
        self.rank.push(sample.rank.filter(|_| has_priority));
        Some(())
    }
}
