//! Registration of tables. A table states the events that it reads. It also states the data that is joined
//! with its rows.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use etl::{BufferRef, Damage, Event, Guid, HeaderKind, Trace};
use events::Decoder;
use events::kernel::Class;
use rustc_hash::FxHashMap;

use crate::Table;
use crate::activity::CpuActivity;
use crate::event_buffer::{BufferedEvent, in_time_order};
use crate::first_pass::CpuEvents;
use crate::kind_survey::KindSurvey;
use crate::recorded::Recorded;
use crate::schema::Rows;
use crate::table::rows::*;
use crate::table::{for_each_table, samples};
use crate::trackers::{ProcessTracker, Trackers};
use crate::unreadable::UnreadableEvents;

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

/// A reader of events. It is a table, or it collects data that is joined with the rows of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Table(Table),
    /// Paths of files by key.
    FileNames,
    /// Drive letters of volumes, by NT path.
    Volumes,
    /// Time between two samples of a CPU.
    SamplingInterval,
    /// Descriptions of events.
    Metadata,
}

impl Reader {
    const TABLES: usize = Table::ALL.len();
    /// Number of readers.
    pub(crate) const COUNT: usize = Reader::TABLES + 4;

    /// Returns the index of the reader, which is less than [`Reader::COUNT`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Reader::Table(table) => table as usize,
            Reader::FileNames => Reader::TABLES,
            Reader::Volumes => Reader::TABLES + 1,
            Reader::SamplingInterval => Reader::TABLES + 2,
            Reader::Metadata => Reader::TABLES + 3,
        }
    }

    const fn from_index(index: usize) -> Reader {
        match index {
            0..Reader::TABLES => Reader::Table(Table::ALL[index]),
            Reader::TABLES => Reader::FileNames,
            _ if index == Reader::TABLES + 1 => Reader::Volumes,
            _ if index == Reader::TABLES + 2 => Reader::SamplingInterval,
            _ => Reader::Metadata,
        }
    }

    fn all() -> impl Iterator<Item = Reader> {
        (0..Reader::COUNT).map(Reader::from_index)
    }
}

/// A set of readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderSet(u64);

const _: () = assert!(Reader::COUNT <= u64::BITS as usize);

impl ReaderSet {
    pub(crate) fn add(&mut self, reader: Reader) {
        self.0 |= 1 << reader.index();
    }

    #[inline]
    pub(crate) fn has(self, reader: Reader) -> bool {
        self.0 >> reader.index() & 1 != 0
    }

    #[inline]
    pub(crate) fn has_table(self, table: Table) -> bool {
        self.has(Reader::Table(table))
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn intersection(self, other: ReaderSet) -> ReaderSet {
        ReaderSet(self.0 & other.0)
    }

    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = Reader> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(Reader::from_index(index))
        })
    }
}

/// Registration of a table.
pub(crate) trait Register {
    /// Events from which the rows of the table are made.
    const READS: Reads = Reads::NOTHING;
    /// Readers whose data is joined with the rows of the table.
    const NEEDS: &'static [Reader] = &[];
    /// True if the headers of the trace contain all data of the table. In this case, no event is read for the
    /// table.
    const IS_IN_HEADERS: bool = false;
}

/// A table that is made from the events of time slices.
pub(crate) trait EventTable: Register + Rows {
    /// Data of one CPU stream until the end of the slice. It consists of rows, or of events from which rows
    /// are made.
    type Raw: Rows;
    /// State that is kept between consecutive slices.
    type State: Default + Send;

    /// Adds an event. Returns `None` if the payload of the event is unreadable.
    fn push(raw: &mut Self::Raw, event: &Incoming<'_, '_>) -> Option<()>;

    /// Makes the rows of a slice, sorted. `raw` is the merged raw data of the slice.
    fn join(raw: &mut Self::Raw, state: &mut Self::State, trackers: &Trackers<'_>) -> Self;

    /// Makes the remaining rows at the end of the trace. `_last_ns` is the time of the last event.
    fn finish(_state: &mut Self::State, _last_ns: i64, _trackers: &Trackers<'_>) -> Self {
        Self::default()
    }
}

/// A table that is made once, from the whole trace.
pub(crate) trait WholeTable: Register + Rows {
    /// Makes the rows.
    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> Self;
}

/// Data of the whole trace, from which tables are made.
pub(crate) struct TraceFacts<'p> {
    pub(crate) trace: &'p Trace,
    /// Events that the first pass buffered.
    pub(crate) cpus: &'p [CpuEvents],
    pub(crate) processes: &'p ProcessTracker<'p>,
    pub(crate) recorded: &'p Recorded,
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
pub(crate) struct Incoming<'a, 'e> {
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

impl<'a, 'e> Incoming<'a, 'e> {
    #[inline]
    pub(crate) fn new(event: &'a Event<'e>, os_version: (u8, u8)) -> Incoming<'a, 'e> {
        let hook = event.hook().or_else(|| classic_hook(event));
        let readers = match hook {
            Some(hook) => ROUTES.hooks[usize::from(hook)],
            None => ROUTES.other(event),
        };
        Incoming {
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
            let reads = reader.reads();
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
    ($($group:ident { $($module:ident: $table:ident,)+ })+) => {
        impl Table {
            /// Returns the events that the table reads.
            fn reads(self) -> Reads {
                match self {
                    $($(Table::$table => $table::READS,)+)+
                }
            }

            /// Returns the readers whose data is joined with the rows of the table.
            pub(crate) fn needs(self) -> &'static [Reader] {
                match self {
                    $($(Table::$table => $table::NEEDS,)+)+
                }
            }

            /// Returns true if the headers of the trace contain all data of the table.
            pub(crate) fn is_in_headers(self) -> bool {
                match self {
                    $($(Table::$table => $table::IS_IN_HEADERS,)+)+
                }
            }
        }
    };
}

for_each_table!(declare);

impl Reader {
    fn reads(self) -> Reads {
        match self {
            Reader::Table(table) => table.reads(),
            Reader::FileNames => crate::trackers::FILE_NAME_EVENTS,
            Reader::Volumes => crate::volumes::EVENTS,
            Reader::SamplingInterval => samples::INTERVAL_EVENTS,
            // The function `events::is_metadata` recognises these events.
            Reader::Metadata => Reads::NOTHING,
        }
    }

    /// Returns the readers that this reader needs. This reader uses their data to interpret events.
    pub(crate) fn needs(self) -> &'static [Reader] {
        match self {
            Reader::Table(table) => table.needs(),
            Reader::FileNames => &[Reader::Volumes],
            Reader::Volumes | Reader::SamplingInterval | Reader::Metadata => &[],
        }
    }
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
    fn a_set_has_what_was_added() {
        let mut set = ReaderSet::default();
        assert!(set.is_empty());
        let added = [
            Reader::Table(Table::ALL[0]),
            Reader::Table(*Table::ALL.last().unwrap()),
            Reader::FileNames,
            Reader::Metadata,
        ];
        added.iter().for_each(|reader| set.add(*reader));
        assert_eq!(set.iter().collect::<Vec<_>>(), added);
        for reader in Reader::all() {
            assert_eq!(set.has(reader), added.contains(&reader), "{reader:?}");
            assert_eq!(Reader::from_index(reader.index()), reader);
        }
    }

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
