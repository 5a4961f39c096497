//! `priorities`: changes of threads' priorities and of the CPUs that they may run on.

use etl::Event;
use events::ids::hook;
use events::kernel::{
    AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, SetAffinity, SetPriority,
    ThreadMigration,
};

use crate::column::{Named, Names, Nullable};
use crate::providers::{KERNEL_PROCESS, fields, logged_by, number};
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
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
pub(crate) struct Change {
    pub(crate) thread_id: u32,
    pub(crate) old_priority: Option<i8>,
    pub(crate) new_priority: Option<i8>,
    pub(crate) dynamic_priority: Option<i8>,
    pub(crate) old_io_priority: Option<u8>,
    pub(crate) new_io_priority: Option<u8>,
    pub(crate) lock: Option<u64>,
    pub(crate) flags: Option<u16>,
    pub(crate) affinity: Option<u64>,
    pub(crate) processor_group: Option<u16>,
    pub(crate) old_cpu: Option<u16>,
    pub(crate) new_cpu: Option<u16>,
    pub(crate) old_ideal_cpu: Option<u16>,
    pub(crate) ideal_processor_adjusted: Option<bool>,
}

fn kind_of(hook: u16) -> Option<PriorityKind> {
    Some(match hook {
        hook::SET_PRIORITY => PriorityKind::Priority,
        hook::SET_BASE_PRIORITY => PriorityKind::BasePriority,
        hook::SET_PAGE_PRIORITY => PriorityKind::PagePriority,
        hook::SET_IO_PRIORITY => PriorityKind::IoPriority,
        hook::SET_AFFINITY => PriorityKind::Affinity,
        hook::ANTI_STARVATION_BOOST => PriorityKind::AntiStarvationBoost,
        hook::THREAD_MIGRATION => PriorityKind::Migration,
        hook::AUTO_BOOST_SET_FLOOR => PriorityKind::AutoBoostSetFloor,
        hook::AUTO_BOOST_CLEAR_FLOOR => PriorityKind::AutoBoostClearFloor,
        _ => return None,
    })
}

impl Change {
    /// Reads a kernel event.
    fn read(kind: PriorityKind, event: &Event<'_>) -> Option<Change> {
        let (payload, version) = (event.payload(), event.version()?);
        let width = event.pointer_size();
        Some(match kind {
            PriorityKind::Affinity => {
                let set = SetAffinity::read(payload, version, width)?;
                Change {
                    thread_id: set.thread_id,
                    affinity: Some(set.affinity),
                    processor_group: Some(set.group),
                    ..Change::default()
                }
            }
            PriorityKind::AntiStarvationBoost => {
                let boost = AntiStarvationBoost::read(payload, version, width)?;
                Change {
                    thread_id: boost.thread_id,
                    old_priority: Some(boost.old_priority),
                    old_cpu: Some(boost.cpu),
                    ..Change::default()
                }
            }
            PriorityKind::Migration => {
                let migration = ThreadMigration::read(payload, version, width)?;
                Change {
                    thread_id: migration.thread_id,
                    new_priority: i8::try_from(migration.priority).ok(),
                    old_cpu: Some(migration.source_cpu),
                    new_cpu: Some(migration.target_cpu),
                    old_ideal_cpu: Some(migration.old_ideal_cpu),
                    ideal_processor_adjusted: Some(migration.ideal_processor_adjusted),
                    ..Change::default()
                }
            }
            PriorityKind::AutoBoostSetFloor => {
                let floor = AutoBoostSetFloor::read(payload, version, width)?;
                Change {
                    thread_id: floor.thread_id,
                    old_priority: Some(floor.old_cpu_priority),
                    new_priority: Some(floor.new_cpu_floor),
                    old_io_priority: Some(floor.old_io_priority),
                    new_io_priority: Some(floor.new_io_floor),
                    lock: Some(floor.lock),
                    flags: Some(floor.flags.into()),
                    ..Change::default()
                }
            }
            PriorityKind::AutoBoostClearFloor => {
                let floor = AutoBoostClearFloor::read(payload, version, width)?;
                Change {
                    thread_id: floor.thread_id,
                    lock: Some(floor.lock),
                    flags: Some(floor.boosts),
                    ..Change::default()
                }
            }
            _ => {
                let set = SetPriority::read(payload, version, width)?;
                let is_base = kind == PriorityKind::BasePriority;
                Change {
                    thread_id: set.thread_id,
                    old_priority: Some(set.old),
                    new_priority: Some(set.new),
                    dynamic_priority: is_base.then_some(set.dynamic),
                    ..Change::default()
                }
            }
        })
    }

    /// Reads an event of Kernel-Process.
    fn read_provider(event: &Event<'_>) -> Option<(PriorityKind, Change)> {
        let fields = fields(KERNEL_PROCESS, event)?;
        let priority = |name| i8::try_from(number(&fields, name)?).ok();
        let kind = match event.descriptor()?.id {
            7 => PriorityKind::ProviderBasePriority,
            8 => PriorityKind::ProviderPriority,
            9 => PriorityKind::ProviderPagePriority,
            _ => PriorityKind::ProviderIoPriority,
        };
        let change = Change {
            thread_id: number(&fields, "ThreadID")?,
            old_priority: priority("OldPriority"),
            new_priority: priority("NewPriority"),
            ..Change::default()
        };
        Some((kind, change))
    }
}

impl Register for Priorities {
    const READS: Reads = Reads {
        hooks: &[
            hook::SET_PRIORITY..=hook::SET_BASE_PRIORITY,
            hook::SET_PAGE_PRIORITY..=hook::SET_AFFINITY,
            hook::ANTI_STARVATION_BOOST..=hook::THREAD_MIGRATION,
            hook::AUTO_BOOST_SET_FLOOR..=hook::AUTO_BOOST_CLEAR_FLOOR,
        ],
        providers: &[(KERNEL_PROCESS, &[7..=10])],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for Priorities {
    type Raw = Priorities;
    type State = ThreadFinder;

    fn push(raw: &mut Priorities, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let (kind, change) = match incoming.hook {
            Some(hook) => {
                let kind = kind_of(hook)?;
                (kind, Change::read(kind, event)?)
            }
            None => Change::read_provider(event)?,
        };
        let place = (event.time_ns(), event.cpu());
        raw.push(kind, &change, place, logged_by(event).0);
        Some(())
    }

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
    pub(crate) fn push(
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
