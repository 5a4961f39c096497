//! `priorities`: changes of threads' priorities and of the CPUs that they may run on.

use etl::Event;
use events::ids::hook;
use events::kernel::{
    AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, SetAffinity, SetPriority,
    ThreadMigration,
};
use tables::{Change, Priorities, PriorityKind};

use crate::providers::{KERNEL_PROCESS, fields, logged_by, number};
use crate::register::{FromEvents, IncomingEvent, Reads};

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

impl FromEvents for Priorities {
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

    fn push(raw: &mut Priorities, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let (kind, change) = match incoming.hook {
            Some(hook) => {
                let kind = kind_of(hook)?;
                (kind, read(kind, event)?)
            }
            None => read_provider(event)?,
        };
        let place = (event.time_ns(), event.cpu());
        raw.push(kind, &change, place, logged_by(event).0);
        Some(())
    }
}
