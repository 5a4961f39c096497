//! Events and bytes per kind: the shape that `laglab stats --json` prints, which is stable. It is
//! documented in `docs/stats-json.md`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use etl::{Damage, Guid, Trace};
use events::{Identity, kernel};
use serde::{Serialize, Serializer};

use crate::damage::DamageReport;
use crate::key::Key;
use crate::survey::{Count, Survey};

/// Everything counted.
#[derive(Debug, Serialize)]
pub(crate) struct Stats {
    /// All events.
    pub(crate) total_events: u64,
    /// Bytes of all records.
    pub(crate) total_bytes: u64,
    /// Events per kind of header.
    pub(crate) header_kinds: BTreeMap<&'static str, u64>,
    /// Extended items per type.
    pub(crate) extended_items: BTreeMap<String, u64>,
    /// Events with kernel headers.
    pub(crate) kernel_events: Vec<KernelEvents>,
    /// Events with classic headers.
    pub(crate) classic_events: Vec<ClassicEvents>,
    /// Events that name a provider or event class, and those below it.
    pub(crate) providers: Vec<Provider>,
    /// WPP messages.
    pub(crate) messages: Vec<Messages>,
    /// Events of header kinds that say nothing else, and of kinds too many to tell apart.
    pub(crate) other_events: u64,
    /// What is lost or broken.
    pub(crate) damage: DamageReport,
}

/// Kernel events of one group, opcode and version.
#[derive(Debug, Serialize)]
pub(crate) struct KernelEvents {
    /// Name of the hook group's class.
    pub(crate) class: Option<&'static str>,
    /// Hook group.
    pub(crate) group: u8,
    /// Opcode.
    pub(crate) opcode: u8,
    /// Version of the layout.
    pub(crate) version: u8,
    /// The event's name.
    pub(crate) name: Option<&'static str>,
    /// Events.
    pub(crate) count: u64,
    /// Bytes of the smallest payload.
    pub(crate) payload_min: u32,
    /// Bytes of the largest payload.
    pub(crate) payload_max: u32,
    /// Bytes of the records.
    pub(crate) bytes: u64,
}

/// Classic events of one class, opcode and version.
#[derive(Debug, Serialize)]
pub(crate) struct ClassicEvents {
    /// Event class.
    #[serde(serialize_with = "as_text")]
    pub(crate) guid: Guid,
    /// The event's name.
    pub(crate) name: Option<Arc<str>>,
    /// Opcode.
    pub(crate) opcode: u8,
    /// Version of the layout.
    pub(crate) version: u8,
    /// Events.
    pub(crate) count: u64,
    /// Bytes of the records.
    pub(crate) bytes: u64,
}

/// Events of one provider or event class.
#[derive(Debug, Serialize)]
pub(crate) struct Provider {
    /// Provider or event class.
    #[serde(serialize_with = "as_text")]
    pub(crate) guid: Guid,
    /// Its name.
    pub(crate) name: Option<Arc<str>>,
    /// Events.
    pub(crate) count: u64,
    /// Bytes of the records.
    pub(crate) bytes: u64,
    /// The events by id, version and opcode.
    pub(crate) events: Vec<ProviderEvents>,
}

/// Events of one id, version, opcode and name of a provider.
#[derive(Debug, Serialize)]
pub(crate) struct ProviderEvents {
    /// Event id; classic events have none.
    pub(crate) id: Option<u16>,
    /// Version of the layout.
    pub(crate) version: u8,
    /// Opcode.
    pub(crate) opcode: u8,
    /// The event's name.
    pub(crate) name: Option<Arc<str>>,
    /// Events.
    pub(crate) count: u64,
    /// Bytes of the records.
    pub(crate) bytes: u64,
}

/// WPP messages of one source file and number.
#[derive(Debug, Serialize)]
pub(crate) struct Messages {
    /// GUID of the source file.
    #[serde(serialize_with = "maybe_as_text")]
    pub(crate) guid: Option<Guid>,
    /// Number of the message in it.
    pub(crate) number: u16,
    /// The program or module.
    pub(crate) provider: Option<Arc<str>>,
    /// The message's name.
    pub(crate) name: Option<Arc<str>>,
    /// Messages.
    pub(crate) count: u64,
    /// Bytes of the records.
    pub(crate) bytes: u64,
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
    /// Orders what was counted and gives it names; the largest counts come first.
    pub(crate) fn new(
        trace: &Trace,
        survey: &Survey,
        names: &HashMap<Key, Identity>,
        walk: Damage,
    ) -> Stats {
        let mut stats = Stats {
            total_events: survey.total_events(),
            total_bytes: survey.kinds.values().map(|c| c.bytes).sum(),
            header_kinds: survey
                .header_kinds
                .iter()
                .map(|(kind, count)| (kind.name(), *count))
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
            damage: DamageReport::new(trace, walk),
        };
        let mut providers = Providers::default();
        for (key, count) in &survey.kinds {
            stats.add(key, count, names.get(key), &mut providers);
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
        key: &Key,
        count: &Count,
        identity: Option<&Identity>,
        providers: &mut Providers,
    ) {
        let name = identity.and_then(|i| i.name.clone());
        match *key {
            Key::Kernel { hook, version } => {
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
            Key::Classic {
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
            Key::Provider {
                guid,
                id,
                version,
                opcode,
                ..
            } => {
                let provider = identity.and_then(|i| i.provider.clone());
                providers.add(guid, provider, (Some(id), version, opcode, name), count);
            }
            Key::Message { guid, number } => self.messages.push(Messages {
                guid,
                number,
                provider: identity.and_then(|i| i.provider.clone()),
                name,
                count: count.events,
                bytes: count.bytes,
            }),
            Key::Bare(_) | Key::Further => self.other_events += count.events,
        }
    }
}

/// Id, version, opcode and name of a provider's event. TraceLogging events of one name can have
/// several layouts, which count as one.
type EventOf = (Option<u16>, u8, u8, Option<Arc<str>>);

#[derive(Default)]
struct Providers {
    names: HashMap<Guid, Arc<str>>,
    events: BTreeMap<(Guid, EventOf), (u64, u64)>,
}

impl Providers {
    fn add(&mut self, guid: Guid, name: Option<Arc<str>>, event: EventOf, count: &Count) {
        if let Some(name) = name {
            // One provider can be named differently by different events: any order must choose
            // the same.
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
            if providers.last().is_none_or(|p| p.guid != guid) {
                providers.push(Provider {
                    guid,
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
                version,
                opcode,
                name,
                count,
                bytes,
            });
        }
        providers.sort_by_key(|p| (u64::MAX - p.count, p.guid));
        for provider in &mut providers {
            provider.events.sort_by(|a, b| {
                let order = |e: &ProviderEvents| (u64::MAX - e.count, e.id, e.version, e.opcode);
                (order(a), &a.name).cmp(&(order(b), &b.name))
            });
        }
        providers
    }
}

/// The name of an extended item's type, after `EVENT_HEADER_EXT_TYPE_` in `evntcons.h`; its
/// number where it has none.
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
