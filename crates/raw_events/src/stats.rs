//! Numbers of events and bytes by kind. The JSON form is the output of `laglab stats --json`. This form is stable and
//! documented in `docs/stats-json.md`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use etl::{Damage, Guid, Trace};
use events::{Decoder, Identity, kernel};
use facts::{DamageReport, FaultReport, Losses};
use import_windows::{EventKind, KindCount, KindSurvey, learn};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use tables::{Cancelled, EventKindsView, Options, Store, StoreError, Table};

/// Numbers of events and bytes in a trace.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// Number of all events.
    pub total_events: u64,
    /// Size of all records, in bytes.
    pub total_bytes: u64,
    /// Number of events by kind of header.
    pub header_kinds: BTreeMap<String, u64>,
    /// Number of extended data items by type.
    pub extended_items: BTreeMap<String, u64>,
    /// Events with kernel headers.
    pub kernel_events: Vec<KernelEvents>,
    /// Events with classic headers.
    pub classic_events: Vec<ClassicEvents>,
    /// Events whose header names a provider or event class.
    pub providers: Vec<Provider>,
    /// WPP messages.
    pub messages: Vec<Messages>,
    /// Number of events that no other list counts. Their header names no provider, or the maximum number of
    /// kinds was exceeded.
    pub other_events: u64,
    /// Lost and damaged parts.
    pub damage: DamageReport,
}

/// Kernel events with the same group, opcode and version.
#[derive(Debug, Serialize)]
pub struct KernelEvents {
    /// Name of the event class of the hook group.
    pub class: Option<&'static str>,
    /// Hook group, which is the high byte of the hook id.
    pub group: u8,
    /// Opcode of the events.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Name of the event.
    pub name: Option<&'static str>,
    /// Number of events.
    pub count: u64,
    /// Size of the smallest payload, in bytes.
    pub payload_min: u32,
    /// Size of the largest payload, in bytes.
    pub payload_max: u32,
    /// Size of all records, in bytes.
    pub bytes: u64,
}

/// Classic events with the same class, opcode and version.
#[derive(Debug, Serialize)]
pub struct ClassicEvents {
    /// GUID of the event class.
    #[serde(serialize_with = "as_text")]
    pub guid: Guid,
    /// Name of the event.
    pub name: Option<Arc<str>>,
    /// Opcode of the events.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Number of events.
    pub count: u64,
    /// Size of all records, in bytes.
    pub bytes: u64,
}

/// All events of one provider or event class.
#[derive(Debug, Serialize)]
pub struct Provider {
    /// GUID of the provider or event class; `None` for a subsystem of Linux.
    #[serde(serialize_with = "maybe_as_text")]
    pub guid: Option<Guid>,
    /// Name of the provider, or of the subsystem of Linux.
    pub name: Option<Arc<str>>,
    /// Number of events.
    pub count: u64,
    /// Size of all records, in bytes.
    pub bytes: u64,
    /// Events by id, version, opcode and name.
    pub events: Vec<ProviderEvents>,
}

/// Events of a provider with the same id, version, opcode and name.
#[derive(Debug, Serialize)]
pub struct ProviderEvents {
    /// Event id; `None` for classic events, which have no id.
    pub id: Option<u16>,
    /// Version of the payload's layout; `None` for events of Linux.
    pub version: Option<u8>,
    /// Opcode of the events; `None` for events of Linux.
    pub opcode: Option<u8>,
    /// Name of the event.
    pub name: Option<Arc<str>>,
    /// Number of events.
    pub count: u64,
    /// Size of all records, in bytes.
    pub bytes: u64,
}

/// WPP messages with the same source file and message number.
#[derive(Debug, Serialize)]
pub struct Messages {
    /// GUID that identifies the source file.
    #[serde(serialize_with = "maybe_as_text")]
    pub guid: Option<Guid>,
    /// Number of the message in the source file.
    pub number: u16,
    /// Name of the program or module that logged the messages.
    pub provider: Option<Arc<str>>,
    /// Name of the message.
    pub name: Option<Arc<str>>,
    /// Number of messages.
    pub count: u64,
    /// Size of all records, in bytes.
    pub bytes: u64,
}

fn as_text<S: Serializer>(guid: &Guid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(guid)
}

fn maybe_as_text<S: Serializer>(guid: &Option<Guid>, serializer: S) -> Result<S::Ok, S::Error> {
    match guid {
        Some(guid) => serializer.collect_str(guid),
        None => serializer.serialize_none(),
    }
}

impl Stats {
    /// Counts the events of a trace in one pass. The decoder learns descriptions from the trace and names the
    /// events.
    ///
    /// # Errors
    /// Returns an error if the progress callback cancels the work.
    pub fn read(
        trace: &Trace,
        decoder: &mut Decoder,
        options: Options<'_>,
    ) -> Result<Stats, Cancelled> {
        let (survey, damage) = KindSurvey::read(trace, options)?;
        learn(decoder, trace, survey.metadata.clone());
        let mut identities = FxHashMap::default();
        survey.visit_examples(
            trace,
            |_| true,
            |_, kind, event| {
                identities
                    .entry(kind)
                    .or_insert_with(|| decoder.identify(event));
            },
        );
        Ok(Stats::new(trace, &survey, &identities, &damage))
    }

    /// Counts the events of a recording of Linux.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read.
    pub fn from_tables(store: &Store, options: Options<'_>) -> Result<Stats, StoreError> {
        store.make(&[Table::EventKinds, Table::Damages], options)?;
        let mut providers: BTreeMap<Option<Arc<str>>, Provider> = BTreeMap::new();
        let mut stats = Stats {
            total_events: 0,
            total_bytes: 0,
            header_kinds: BTreeMap::new(),
            extended_items: BTreeMap::new(),
            kernel_events: Vec::new(),
            classic_events: Vec::new(),
            providers: Vec::new(),
            messages: Vec::new(),
            other_events: 0,
            damage: DamageReport::made(store)?.unwrap_or_default(),
        };
        let stored = store.table(Table::EventKinds, options)?;
        for group in 0..stored.chunks().len() {
            let batch = stored.read_all(group)?;
            let view = EventKindsView::new(&batch)?;
            for row in 0..view.len() {
                let (count, bytes) = (view.count[row], view.size_bytes[row]);
                let header = view.header.get(row).unwrap_or_default().to_owned();
                *stats.header_kinds.entry(header).or_default() += count;
                stats.total_events += count;
                stats.total_bytes += bytes;
                let name: Option<Arc<str>> = view.provider.get(row).map(Arc::from);
                let provider = providers.entry(name.clone()).or_insert(Provider {
                    guid: None,
                    name,
                    count: 0,
                    bytes: 0,
                    events: Vec::new(),
                });
                provider.count += count;
                provider.bytes += bytes;
                provider.events.push(ProviderEvents {
                    id: view.id.get(row),
                    version: None,
                    opcode: None,
                    name: view.event.get(row).map(Arc::from),
                    count,
                    bytes,
                });
            }
        }
        stats.providers = sorted(providers.into_values().collect());
        Ok(stats)
    }

    /// Sorts the counts in descending order, and adds the names.
    fn new(
        trace: &Trace,
        survey: &KindSurvey,
        identities: &FxHashMap<EventKind, Identity>,
        damage: &Damage,
    ) -> Stats {
        let kinds = survey.by_kind();
        let headers = survey.by_header().into_iter();
        let mut stats = Stats {
            total_events: survey.total_events(),
            total_bytes: kinds.values().map(|count| count.bytes).sum(),
            header_kinds: headers
                .map(|(kind, count)| (kind.name().to_owned(), count))
                .collect(),
            extended_items: survey
                .extended_items
                .iter()
                .map(|(kind, count)| (extended_item_name(*kind), *count))
                .collect(),
            kernel_events: Vec::new(),
            classic_events: Vec::new(),
            providers: Vec::new(),
            messages: Vec::new(),
            other_events: 0,
            damage: damage_report(trace, damage),
        };
        let mut providers = Providers::default();
        for (kind, count) in &kinds {
            stats.add(kind, count, identities.get(kind), &mut providers);
        }
        stats.providers = providers.sorted();
        stats
            .kernel_events
            .sort_by_key(|e| (u64::MAX - e.count, e.group, e.opcode, e.version));
        stats
            .classic_events
            .sort_by_key(|e| (u64::MAX - e.count, e.guid, e.opcode, e.version));
        stats
            .messages
            .sort_by_key(|m| (u64::MAX - m.count, m.guid, m.number));
        stats
    }

    fn add(
        &mut self,
        kind: &EventKind,
        count: &KindCount,
        identity: Option<&Identity>,
        providers: &mut Providers,
    ) {
        let name = identity.and_then(|i| i.name.clone());
        match *kind {
            EventKind::Kernel { hook, version } => {
                let [group, opcode] = hook.to_be_bytes();
                self.kernel_events.push(KernelEvents {
                    class: kernel::Class::of_group(group).map(|c| c.name),
                    group,
                    opcode,
                    version,
                    name: kernel::Class::of_hook(hook)
                        .and_then(|(class, opcode)| class.event_name(opcode)),
                    count: count.events,
                    payload_min: count.payload_min,
                    payload_max: count.payload_max,
                    bytes: count.bytes,
                });
            }
            EventKind::Classic {
                guid,
                opcode,
                version,
            } => {
                self.classic_events.push(ClassicEvents {
                    guid,
                    name: name.clone(),
                    opcode,
                    version,
                    count: count.events,
                    bytes: count.bytes,
                });
                let provider = match kernel::Class::of_guid(guid) {
                    Some(class) => Some(class.name.into()),
                    None => identity.and_then(|i| i.provider.clone()),
                };
                providers.add(guid, provider, (None, version, opcode, name), count);
            }
            EventKind::Provider {
                guid,
                id,
                version,
                opcode,
                ..
            } => {
                let provider = identity.and_then(|i| i.provider.clone());
                providers.add(guid, provider, (Some(id), version, opcode, name), count);
            }
            EventKind::Message { guid, number } => self.messages.push(Messages {
                guid,
                number,
                provider: identity.and_then(|i| i.provider.clone()),
                name,
                count: count.events,
                bytes: count.bytes,
            }),
            EventKind::Bare | EventKind::Further => self.other_events += count.events,
        }
    }
}

/// Returns the report of the damage that was found when the trace was opened, and when its events were read.
fn damage_report(trace: &Trace, read: &Damage) -> DamageReport {
    let mut damage = trace.damage().clone();
    damage.merge(read.clone());
    let places = damage.faults().iter().map(|fault| FaultReport {
        file: tables::file_name(trace.files().nth(fault.file.into()).unwrap_or_default())
            .to_owned(),
        buffer_offset: fault.buffer_offset,
        offset: fault.offset,
        kind: fault.what.name().to_owned(),
        what: fault.what.to_string(),
    });
    let counts = damage.counts().iter();
    let losses = Losses {
        loss_events: damage.loss_events,
        throttled: 0,
        faults: counts
            .map(|(kind, count)| ((*kind).to_owned(), *count))
            .collect(),
        places: places.collect(),
    };
    DamageReport::from_losses(&import_windows::info_of(trace), losses)
}

/// Id, version, opcode and name of an event. TraceLogging events with the same name can have several
/// layouts, which are counted together.
type EventOf = (Option<u16>, u8, u8, Option<Arc<str>>);

#[derive(Default)]
struct Providers {
    names: HashMap<Guid, Arc<str>>,
    events: BTreeMap<(Guid, EventOf), (u64, u64)>,
}

impl Providers {
    fn add(&mut self, guid: Guid, name: Option<Arc<str>>, event: EventOf, count: &KindCount) {
        if let Some(name) = name {
            // Events may contain different names of one provider. The first name in alphabetical order is selected, so
            // that the result does not depend on the order of events.
            let known = self.names.entry(guid).or_insert_with(|| name.clone());
            if name < *known {
                *known = name;
            }
        }
        let sum = self.events.entry((guid, event)).or_default();
        sum.0 += count.events;
        sum.1 += count.bytes;
    }

    fn sorted(self) -> Vec<Provider> {
        let mut providers: Vec<Provider> = Vec::new();
        for ((guid, (id, version, opcode, name)), (count, bytes)) in self.events {
            if providers.last().is_none_or(|p| p.guid != Some(guid)) {
                providers.push(Provider {
                    guid: Some(guid),
                    name: self.names.get(&guid).cloned(),
                    count: 0,
                    bytes: 0,
                    events: Vec::new(),
                });
            }
            let Some(provider) = providers.last_mut() else {
                continue;
            };
            provider.count += count;
            provider.bytes += bytes;
            provider.events.push(ProviderEvents {
                id,
                version: Some(version),
                opcode: Some(opcode),
                name,
                count,
                bytes,
            });
        }
        sorted(providers)
    }
}

/// Sorts providers and their events by count, in descending order.
fn sorted(mut providers: Vec<Provider>) -> Vec<Provider> {
    providers.sort_by_key(|p| (u64::MAX - p.count, p.guid));
    for provider in &mut providers {
        provider.events.sort_by(|a, b| {
            let order = |e: &ProviderEvents| (u64::MAX - e.count, e.id, e.version, e.opcode);
            (order(a), &a.name).cmp(&(order(b), &b.name))
        });
    }
    providers
}

/// Returns the name of an extended item's type. In `evntcons.h`, this name has the prefix
/// `EVENT_HEADER_EXT_TYPE_`, which is removed here. Returns the number if the type has no name.
fn extended_item_name(ext_type: u16) -> String {
    let name = match ext_type {
        1 => "RELATED_ACTIVITYID",
        2 => "SID",
        3 => "TS_ID",
        4 => "INSTANCE_INFO",
        5 => "STACK_TRACE32",
        6 => "STACK_TRACE64",
        7 => "PEBS_INDEX",
        8 => "PMC_COUNTERS",
        9 => "PSM_KEY",
        10 => "EVENT_KEY",
        11 => "EVENT_SCHEMA_TL",
        12 => "PROV_TRAITS",
        13 => "PROCESS_START_KEY",
        14 => "CONTROL_GUID",
        15 => "QPC_DELTA",
        16 => "CONTAINER_ID",
        17 => "STACK_KEY32",
        18 => "STACK_KEY64",
        other => return other.to_string(),
    };
    name.to_owned()
}
