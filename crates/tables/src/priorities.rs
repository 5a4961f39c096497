//! `priorities`: changes of threads' priorities and of where they may run.

use etl::Event;
use events::kernel::{
    AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, SetAffinity, SetPriority,
    ThreadMigration,
};

use crate::column::{Named, Names, Nullable};
use crate::join::Join;
use crate::provider_events::{KERNEL_PROCESS, fields, logged_by, number};
use crate::schema::table;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per change of a thread's priority (of the processor, of memory pages, of input and
    /// output), boost, affinity or processor.
    ///
    /// The kernel's own events and those of the provider Kernel-Process tell the same in part.
    Priorities, PrioritiesView = "priorities" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer",
        /// What changes. The kernel's: `priority`, `base_priority`, `page_priority`,
        /// `io_priority`, `affinity`, `anti_starvation_boost`, `migration`,
        /// `auto_boost_set_floor`, `auto_boost_clear_floor`. Kernel-Process': `provider_priority`,
        /// `provider_base_priority`, `provider_page_priority`, `provider_io_priority`.
        kind: Names<PriorityKind> = "hooks 0x0530-0x0535, 0x053C, 0x053D, 0x0542, 0x0543; Kernel-Process 7-10",
        /// The thread that it happens to.
        thread_id: Vec<u32> = "ThreadId",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Its process.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// The thread that did it, where the event tells.
        by_thread_id: Nullable<u32> = "header thread",
        /// The priority before; of a floor the priority that the thread had.
        old_priority: Nullable<i8> = "OldPriority; AutoBoostSetFloor: OldCpuPriority",
        /// The priority after; of a floor the priority that the thread keeps at least.
        new_priority: Nullable<i8> = "NewPriority; AutoBoostSetFloor: NewCpuPriorityFloor; ThreadMigration: Priority",
        /// The thread's priority in effect.
        dynamic_priority: Nullable<i8> = "SetBasePriority: DynamicPriority",
        /// I/O priority before.
        old_io_priority: Nullable<u8> = "AutoBoostSetFloor: IoPriorities, upper half",
        /// I/O priority that it keeps at least.
        new_io_priority: Nullable<u8> = "AutoBoostSetFloor: IoPriorities, lower half",
        /// Address of the lock for whose sake it is boosted.
        lock: Nullable<u64> = "AutoBoostSetFloor, AutoBoostClearFloor: Lock",
        /// Of a floor 1 executing a DPC, 2 boosted when woken, 4 outstanding requests boosted too;
        /// of its end the boosts that end: 1 of I/O, others of the processor.
        flags: Nullable<u16> = "AutoBoostSetFloor: Flags; AutoBoostClearFloor: BoostBitmap",
        /// The processors of the group that it may run on, a bit each.
        affinity: Nullable<u64> = "SetAffinity: Affinity",
        /// The processor group.
        processor_group: Nullable<u16> = "SetAffinity: Group",
        /// The CPU that it leaves; of a boost against starvation the one that it waits for.
        old_cpu: Nullable<u16> = "ThreadMigration: SourceProcessorIndex; AntiStarvationBoost: ProcessorIndex",
        /// The CPU that it goes to.
        new_cpu: Nullable<u16> = "ThreadMigration: TargetProcessorIndex",
        /// Its ideal processor before.
        old_ideal_cpu: Nullable<u16> = "ThreadMigration: OldIdealProcessorIndex",
        /// Its ideal processor changes too.
        ideal_processor_adjusted: Nullable<bool> = "ThreadMigration: IdealProcessorAdjust",
    }
}

/// What of a thread changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PriorityKind {
    /// Its priority in effect.
    Priority,
    /// Its base priority.
    BasePriority,
    /// The priority of its pages in memory.
    PagePriority,
    /// The priority of its input and output.
    IoPriority,
    /// Where it may run.
    Affinity,
    /// It was ready for long and is raised so that it runs.
    AntiStarvationBoost,
    /// It is moved to another CPU.
    Migration,
    /// A lock that others wait for holds its priority up.
    AutoBoostSetFloor,
    /// The lock no longer does.
    AutoBoostClearFloor,
    /// Its priority in effect, by Kernel-Process.
    ProviderPriority,
    /// Its base priority, by Kernel-Process.
    ProviderBasePriority,
    /// The priority of its pages, by Kernel-Process.
    ProviderPagePriority,
    /// The priority of its input and output, by Kernel-Process.
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

/// What a row says beside when and where.
#[derive(Default)]
struct Change {
    thread_id: u32,
    old_priority: Option<i8>,
    new_priority: Option<i8>,
    dynamic_priority: Option<i8>,
    old_io_priority: Option<u8>,
    new_io_priority: Option<u8>,
    lock: Option<u64>,
    flags: Option<u16>,
    affinity: Option<u64>,
    processor_group: Option<u16>,
    old_cpu: Option<u16>,
    new_cpu: Option<u16>,
    old_ideal_cpu: Option<u16>,
    ideal_processor_adjusted: Option<bool>,
}

/// Whether kernel events of that hook are rows.
pub(crate) fn is_priority(hook: u16) -> bool {
    kind_of(hook).is_some()
}

fn kind_of(hook: u16) -> Option<PriorityKind> {
    Some(match hook {
        0x0530 => PriorityKind::Priority,
        0x0531 => PriorityKind::BasePriority,
        0x0533 => PriorityKind::PagePriority,
        0x0534 => PriorityKind::IoPriority,
        0x0535 => PriorityKind::Affinity,
        0x053C => PriorityKind::AntiStarvationBoost,
        0x053D => PriorityKind::Migration,
        0x0542 => PriorityKind::AutoBoostSetFloor,
        0x0543 => PriorityKind::AutoBoostClearFloor,
        _ => return None,
    })
}

impl Priorities {
    /// Adds a row of a kernel event; `None` if the payload is unreadable.
    pub(crate) fn push_kernel(&mut self, hook: u16, event: &Event<'_>) -> Option<()> {
        let kind = kind_of(hook)?;
        let (payload, version) = (event.payload(), event.version()?);
        let width = event.pointer_size();
        let change = match kind {
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
        };
        self.push(kind, &change, event);
        Some(())
    }

    /// Adds a row of an event of Kernel-Process; `None` if the payload is unreadable.
    pub(crate) fn push_provider(&mut self, event: &Event<'_>) -> Option<()> {
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
        self.push(kind, &change, event);
        Some(())
    }

    fn push(&mut self, kind: PriorityKind, change: &Change, event: &Event<'_>) {
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.kind.0.push(kind);
        self.thread_id.push(change.thread_id);
        self.by_thread_id.push(logged_by(event).0);
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

impl Join for Priorities {
    type State = ThreadFinder;

    fn join(&mut self, threads: &mut ThreadFinder, world: &World<'_>) {
        (self.thread_row, self.process_id, self.process_row) =
            threads.whose(world, &self.thread_id, &self.time_ns);
    }
}
