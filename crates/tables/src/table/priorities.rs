//! `priorities`: changes of threads' priorities and of the CPUs that they may run on.

use crate::column::{Named, Names, Nullable};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per change of a thread. The priority (for the processor, for memory pages or for I/O), the boost, the
    /// affinity or the processor of the thread changes.
    ///
    /// On Linux, there are two kinds of rows: a thread's priority changes because of a lock (`priority`), or a thread
    /// moves to another CPU (`migration`).
    ///
    /// Some changes have two rows: one from the events of the kernel, and one from the events of the provider
    /// Kernel-Process.
    Priorities, PrioritiesView = "priorities" sorted by time_ns
        title "Changes of Priority"
        record "changes of priorities (xperf -on PRIORITY, or the provider Microsoft-Windows-Kernel-Process)"
    {
        /// Time of the event.
        time_ns: Vec<i64> = "header time",
        /// CPU that logged the event.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Kind of change. Kinds from the kernel are `priority`, `base_priority`, `page_priority`,
        /// `io_priority`, `affinity`, `anti_starvation_boost`, `migration`, `auto_boost_set_floor` and
        /// `auto_boost_clear_floor`. Kinds from Kernel-Process are `provider_priority`,
        /// `provider_base_priority`, `provider_page_priority` and `provider_io_priority`.
        kind: Names<PriorityKind> = "hooks 0x0530-0x0535, 0x053C, 0x053D, 0x0542, 0x0543; Kernel-Process 7-10",
        /// Thread that is changed.
        thread_id: Vec<u32> = "ThreadId",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Thread that made the change. Unknown if the event does not contain this thread.
        by_thread_id: Nullable<u32> = "header thread",
        /// Priority before the change.
        old_priority: Nullable<i8> = "OldPriority; AutoBoostSetFloor: OldCpuPriority",
        /// Priority after the change. For `auto_boost_set_floor`, this is the minimum priority that the
        /// thread gets.
        new_priority: Nullable<i8> = "NewPriority; AutoBoostSetFloor: NewCpuPriorityFloor; ThreadMigration: Priority",
        /// Current priority of the thread, including boosts.
        dynamic_priority: Nullable<i8> = "SetBasePriority: DynamicPriority",
        /// I/O priority before the change.
        old_io_priority: Nullable<u8> = "AutoBoostSetFloor: IoPriorities, upper half",
        /// Minimum I/O priority that the thread gets.
        new_io_priority: Nullable<u8> = "AutoBoostSetFloor: IoPriorities, lower half",
        /// Address of the lock that causes the boost.
        lock: Nullable<u64> = "AutoBoostSetFloor, AutoBoostClearFloor: Lock",
        /// Flags. For `auto_boost_set_floor`, flag 1 means set in a DPC, flag 2 means boosted when woken, and
        /// flag 4 means outstanding requests boosted too. For `auto_boost_clear_floor`, the flags are the
        /// boosts that end: bit value 1 is the I/O boost, and the other bits are processor boosts.
        flags: Nullable<u16> = "AutoBoostSetFloor: Flags; AutoBoostClearFloor: BoostBitmap",
        /// CPUs of the processor group on which the thread may run, as a bit mask.
        affinity: Nullable<u64> = "SetAffinity: Affinity",
        /// Processor group of the CPUs in `affinity`.
        processor_group: Nullable<u16> = "SetAffinity: Group",
        /// CPU that the thread leaves. For `anti_starvation_boost`, this is the CPU for which the thread
        /// waits.
        old_cpu: Nullable<u16> = "ThreadMigration: SourceProcessorIndex; AntiStarvationBoost: ProcessorIndex",
        /// CPU to which the thread moves.
        new_cpu: Nullable<u16> = "ThreadMigration: TargetProcessorIndex",
        /// Ideal processor before the change.
        old_ideal_cpu: Nullable<u16> = "ThreadMigration: OldIdealProcessorIndex",
        /// True if the ideal processor also changes.
        ideal_processor_adjusted: Nullable<bool> = "ThreadMigration: IdealProcessorAdjust",
    }
}

/// Kind of change of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PriorityKind {
    /// Current priority, including boosts.
    Priority,
    /// Base priority.
    BasePriority,
    /// Priority of memory pages.
    PagePriority,
    /// I/O priority.
    IoPriority,
    /// CPUs on which the thread may run.
    Affinity,
    /// Boost of a thread that was ready but did not run for a long time.
    AntiStarvationBoost,
    /// Move to another CPU.
    Migration,
    /// Start of a boost. Other threads wait for a lock that the thread holds.
    AutoBoostSetFloor,
    /// End of a boost because of a lock.
    AutoBoostClearFloor,
    /// Current priority, reported by Kernel-Process.
    ProviderPriority,
    /// Base priority, reported by Kernel-Process.
    ProviderBasePriority,
    /// Priority of memory pages, reported by Kernel-Process.
    ProviderPagePriority,
    /// I/O priority, reported by Kernel-Process.
    ProviderIoPriority,
}

impl Named for PriorityKind {
    const NAMES: &'static [&'static str] = &[
        "priority",
        "base_priority",
        "page_priority",
        "io_priority",
        "affinity",
        "anti_starvation_boost",
        "migration",
        "auto_boost_set_floor",
        "auto_boost_clear_floor",
        "provider_priority",
        "provider_base_priority",
        "provider_page_priority",
        "provider_io_priority",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Values of a row, read from one event.
#[derive(Default)]
pub struct Change {
    /// Id of the thread.
    pub thread_id: u32,
    /// Priority before the change.
    pub old_priority: Option<i8>,
    /// Priority after the change.
    pub new_priority: Option<i8>,
    /// Dynamic priority.
    pub dynamic_priority: Option<i8>,
    /// I/O priority before the change.
    pub old_io_priority: Option<u8>,
    /// I/O priority after the change.
    pub new_io_priority: Option<u8>,
    /// Lock that causes the boost.
    pub lock: Option<u64>,
    /// Flags of the event.
    pub flags: Option<u16>,
    /// Mask of the CPUs on which the thread may run.
    pub affinity: Option<u64>,
    /// Processor group of the mask.
    pub processor_group: Option<u16>,
    /// CPU before the change.
    pub old_cpu: Option<u16>,
    /// CPU after the change.
    pub new_cpu: Option<u16>,
    /// Ideal CPU before the change.
    pub old_ideal_cpu: Option<u16>,
    /// True if the ideal CPU also changed.
    pub ideal_processor_adjusted: Option<bool>,
}

impl Register for Priorities {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for Priorities {
    type Raw = Priorities;
    type State = ThreadFinder;

    fn join(
        raw: &mut Priorities,
        threads: &mut ThreadFinder,
        trackers: &Trackers<'_>,
    ) -> Priorities {
        let mut rows = std::mem::take(raw);
        (rows.thread_row, rows.process_id, rows.process_row) =
            threads.find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}

impl Priorities {
    /// Adds a row, except for the columns that refer to other tables.
    pub fn push(
        &mut self,
        kind: PriorityKind,
        change: &Change,
        (time_ns, cpu): (i64, u16),
        by_thread_id: Option<u32>,
    ) {
        self.time_ns.push(time_ns);
        self.cpu.push(cpu);
        self.kind.0.push(kind);
        self.thread_id.push(change.thread_id);
        self.by_thread_id.push(by_thread_id);
        self.old_priority.push(change.old_priority);
        self.new_priority.push(change.new_priority);
        self.dynamic_priority.push(change.dynamic_priority);
        self.old_io_priority.push(change.old_io_priority);
        self.new_io_priority.push(change.new_io_priority);
        self.lock.push(change.lock);
        self.flags.push(change.flags);
        self.affinity.push(change.affinity);
        self.processor_group.push(change.processor_group);
        self.old_cpu.push(change.old_cpu);
        self.new_cpu.push(change.new_cpu);
        self.old_ideal_cpu.push(change.old_ideal_cpu);
        self.ideal_processor_adjusted
            .push(change.ideal_processor_adjusted);
    }
}
