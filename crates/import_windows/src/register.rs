//! Events that tables read, and the readers of an event.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use etl::{BufferRef, Damage, Event, Guid, HeaderKind, Trace};
use events::Decoder;
use events::kernel::Class;
use rustc_hash::FxHashMap;
use tables::import::{
    CpuActivity, EventTable, RawRows, Reader, ReaderSet, RecordedTimes, Rows, UnreadableEvents,
};
use tables::{
    ContextSwitches, Cpus, Damages, DiskIo, DotnetPauses, DotnetPools, EventKinds, Events, FileIo,
    Focus, HardFaults, Input, Interrupts, Marks, Network, Packets, Priorities, ProcessFreezes,
    ProcessTracker, ReadyThreads, Samples, Sessions, SystemConfig, Table, TimerRequests,
};

use crate::event_buffer::{BufferedEvent, in_time_order};
use crate::first_pass::CpuEvents;
use crate::kind_survey::KindSurvey;
use crate::table::{for_each_table, images, processes, samples, stacks, threads};

/// Events that a reader handles.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// Kernel events, by hook id (group and opcode).
    pub(crate) hooks: &'static [RangeInclusive<u16>],
    /// Classic events by class GUID. Their classes have no hook group.
    pub(crate) classes: &'static [Guid],
    /// Events of manifest providers, by provider and by ranges of event ids.
    pub(crate) providers: &'static [(Guid, &'static [RangeInclusive<u16>])],
}

impl Reads {
    pub(crate) const NOTHING: Reads = Reads {
        hooks: &[],
        classes: &[],
        providers: &[],
    };
}

/// A table that is made from the events of time slices.
pub(crate) trait FromEvents: EventTable {
    /// Events from which the rows of the table are made.
    const READS: Reads = Reads::NOTHING;

    /// Adds an event. Returns `None` if the payload of the event is unreadable.
    fn push(raw: &mut Self::Raw, event: &IncomingEvent<'_, '_>) -> Option<()>;
}

/// A table that is made once, from the whole trace.
pub(crate) trait WholeTable: Rows {
    /// Events from which the rows of the table are made.
    const READS: Reads = Reads::NOTHING;

    /// Makes the rows.
    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> Self;
}

/// Data of the whole trace, from which tables are made.
pub(crate) struct TraceFacts<'p> {
    pub(crate) trace: &'p Trace,
    /// Events that the first pass buffered.
    pub(crate) cpus: &'p [CpuEvents],
    pub(crate) processes: &'p ProcessTracker<'p>,
    pub(crate) recorded: &'p RecordedTimes,
    /// Activity of each CPU. It is empty if the table `cpus` is not requested.
    pub(crate) activity: BTreeMap<u16, CpuActivity>,
    /// Counts of events by kind. They are empty if the table `event_kinds` is not requested.
    pub(crate) kinds: &'p KindSurvey,
    pub(crate) damage: &'p Damage,
    /// Start and end of the trace, in nanoseconds since the trace's start.
    pub(crate) span_ns: (i64, i64),
}

impl TraceFacts<'_> {
    /// Returns the buffered events of a table, in time order.
    pub(crate) fn events(&self, table: Table) -> Vec<BufferedEvent<'_>> {
        buffered(self.cpus, Reader::Table(table))
    }

    /// Returns the buffers that contain descriptions of events.
    pub(crate) fn metadata(&self) -> Vec<BufferRef> {
        let buffers = self.cpus.iter().flat_map(|cpu| &cpu.metadata);
        buffers.copied().collect()
    }
}

/// Returns the buffered events of a reader, in time order.
pub(crate) fn buffered(cpus: &[CpuEvents], reader: Reader) -> Vec<BufferedEvent<'_>> {
    in_time_order(cpus.iter().map(|cpu| cpu.buffer(reader)))
}

/// Event that is passed to readers.
pub(crate) struct IncomingEvent<'a, 'e> {
    pub(crate) event: &'a Event<'e>,
    /// Hook id of a kernel event. A classic event of a kernel class also has a hook id.
    pub(crate) hook: Option<u16>,
    /// All readers that are registered for the event. Readers that were not requested are included.
    pub(crate) readers: ReaderSet,
    /// Major and minor version of the Windows that logged the event.
    pub(crate) os_version: (u8, u8),
    /// Decoder of events. `None` if the requested tables do not need decoded events.
    pub(crate) decoder: Option<&'a Decoder>,
}

impl<'a, 'e> IncomingEvent<'a, 'e> {
    #[inline]
    pub(crate) fn new(event: &'a Event<'e>, os_version: (u8, u8)) -> IncomingEvent<'a, 'e> {
        let hook = event.hook().or_else(|| classic_hook(event));
        let readers = match hook {
            Some(hook) => ROUTES.hooks[usize::from(hook)],
            None => ROUTES.other(event),
        };
        IncomingEvent {
            event,
            hook,
            readers,
            os_version,
            decoder: None,
        }
    }

    /// Returns the hook id, event id or opcode of the event.
    pub(crate) fn id(&self) -> u16 {
        let id = self.hook.or_else(|| Some(self.event.descriptor()?.id));
        id.or_else(|| self.event.opcode().map(u16::from))
            .unwrap_or(0)
    }

    /// Returns true if the event belongs to the table of decoded events. This table contains the events of
    /// providers, and the events that have no other reader.
    pub(crate) fn is_generic(&self) -> bool {
        let event = self.event;
        if let Some(hook) = self.hook {
            // The table shows all events of group 0 (log-file headers), even if other tables also read them.
            return hook >> 8 == 0 || self.readers.is_empty();
        }
        if event.descriptor().is_some() || !is_classic(event) {
            return true;
        }
        let is_known = event.guid().is_some() && event.opcode().is_some();
        is_known && self.readers.is_empty() && !events::is_metadata(event)
    }
}

/// Readers for each kind of event.
struct Routes {
    /// Readers by hook id; 65,536 entries.
    hooks: Vec<ReaderSet>,
    classes: FxHashMap<Guid, ReaderSet>,
    providers: FxHashMap<Guid, FxHashMap<u16, ReaderSet>>,
}

static ROUTES: LazyLock<Routes> = LazyLock::new(Routes::new);

impl Routes {
    fn new() -> Routes {
        let mut routes = Routes {
            hooks: vec![ReaderSet::default(); 1 << 16],
            classes: FxHashMap::default(),
            providers: FxHashMap::default(),
        };
        for reader in Reader::all() {
            let reads = reads_of(reader);
            for hook in reads.hooks.iter().cloned().flatten() {
                routes.hooks[usize::from(hook)].add(reader);
            }
            for class in reads.classes {
                routes.classes.entry(*class).or_default().add(reader);
            }
            for (provider, ids) in reads.providers {
                let of_provider = routes.providers.entry(*provider).or_default();
                for id in ids.iter().cloned().flatten() {
                    of_provider.entry(id).or_default().add(reader);
                }
            }
        }
        routes
    }

    /// Returns the readers of an event without a hook.
    fn other(&self, event: &Event<'_>) -> ReaderSet {
        let readers = match event.descriptor() {
            Some(descriptor) => {
                let of_provider = event.guid().and_then(|guid| self.providers.get(&guid));
                of_provider.and_then(|ids| ids.get(&descriptor.id))
            }
            None if is_classic(event) => event.guid().and_then(|guid| self.classes.get(&guid)),
            None => None,
        };
        readers.copied().unwrap_or_default()
    }
}

macro_rules! declare {
    (
        events { $($event_module:ident: $event:ident,)+ }
        whole { $($whole_module:ident: $whole:ident,)+ }
    ) => {
        /// Returns the events that a reader handles.
        fn reads_of(reader: Reader) -> Reads {
            match reader {
                $(Reader::Table(Table::$event) => <$event as FromEvents>::READS,)+
                $(Reader::Table(Table::$whole) => <$whole as WholeTable>::READS,)+
                Reader::Table(Table::Processes) => processes::READS,
                Reader::Table(Table::Threads) => threads::READS,
                Reader::Table(Table::Images) => images::READS,
                Reader::Table(Table::Stacks) => stacks::READS,
                Reader::FileNames => crate::file_names::EVENTS,
                Reader::Volumes => crate::volumes::EVENTS,
                Reader::SamplingInterval => samples::INTERVAL_EVENTS,
                // The function `events::is_metadata` recognises the events of `Reader::Metadata`. Other tables have no
                // rows of Windows.
                _ => Reads::NOTHING,
            }
        }

        impl Push for RawRows {
            #[inline]
            fn push(&mut self, table: Table, event: &IncomingEvent<'_, '_>) -> Option<()> {
                match table {
                    $(Table::$event => <$event as FromEvents>::push(&mut self.$event_module, event),)+
                    _ => Some(()),
                }
            }
        }
    };
}

for_each_table!(declare);

/// Adds events to the data of tables.
pub(crate) trait Push {
    /// Adds an event to the data of a table. Returns `None` if the payload of the event is unreadable.
    fn push(&mut self, table: Table, event: &IncomingEvent<'_, '_>) -> Option<()>;
}

/// Returns true if the event has a classic header. Two sources log kernel events with such headers: tools,
/// and kernels before Windows 7.
#[inline]
fn is_classic(event: &Event<'_>) -> bool {
    matches!(event.kind(), HeaderKind::Full32 | HeaderKind::Full64)
}

/// Returns the hook id that belongs to a classic event of a kernel class. Returns `None` for other events.
fn classic_hook(event: &Event<'_>) -> Option<u16> {
    if !is_classic(event) {
        return None;
    }
    let group = Class::of_guid(event.guid()?)?.group?;
    Some(u16::from_be_bytes([group, event.opcode()?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_readers_that_registered_for_them() {
        let hook = |hook: u16| ROUTES.hooks[usize::from(hook)].iter().collect::<Vec<_>>();
        let table = Reader::Table;
        assert_eq!(hook(0x0524), [table(Table::ContextSwitches)]);
        // This is the hook id of a service event. Threads need the name of the service. The service is also a
        // part of the machine's configuration.
        let service = [table(Table::Threads), table(Table::SystemConfig)];
        assert_eq!(hook(0x0B0F), service);
        assert_eq!(hook(0x0420), [Reader::FileNames]);
        assert_eq!(hook(0x0001), []);
    }
}
