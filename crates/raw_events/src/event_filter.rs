//! Filter of events that a user specifies.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use etl::{Event, Guid};
use events::{Decoded, Decoder, Identity};
use import_linux::LinuxDecoder;
use import_windows::EventKind;
use rustc_hash::FxHashMap;

use crate::processes::{Processes, known_id, linux_threads_in, processes_in, threads_in};

/// Conditions on events. An event must satisfy all conditions. If a condition has several values, at least one value
/// must match. If a condition has no values, every event satisfies the condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Providers of the selected events.
    pub providers: Vec<ProviderPattern>,
    /// Kinds of the selected events.
    pub events: Vec<EventPattern>,
    /// Process ids of the selected events.
    pub process_ids: Vec<u32>,
    /// Parts of process names. Their case is ignored.
    pub process_names: Vec<String>,
    /// Thread ids of the selected events.
    pub thread_ids: Vec<u32>,
    /// CPUs that logged the selected events.
    pub cpus: Vec<u16>,
    /// Start of the time range in nanoseconds since the trace's start, inclusive.
    pub from_ns: Option<i64>,
    /// End of the time range in nanoseconds since the trace's start, inclusive.
    pub to_ns: Option<i64>,
}

/// A provider, identified by text from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderPattern {
    /// GUID of the provider.
    Guid(Guid),
    /// Part of the provider's name, in lower case.
    Name(String),
}

impl FromStr for ProviderPattern {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<ProviderPattern, Self::Err> {
        Ok(match text.parse() {
            Ok(guid) => ProviderPattern::Guid(guid),
            Err(_) => ProviderPattern::Name(text.to_lowercase()),
        })
    }
}

/// A kind of event, identified by text from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventPattern {
    /// Event id; for kernel and classic events, the opcode.
    Number(u16),
    /// Name of the event in lower case, or the part of the name before or after the `/`. A `*` matches
    /// any text.
    Text(String),
}

impl FromStr for EventPattern {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<EventPattern, Self::Err> {
        Ok(match text.parse() {
            Ok(number) => EventPattern::Number(number),
            Err(_) => EventPattern::Text(text.to_lowercase()),
        })
    }
}

/// Returns true if `text` matches `pattern`. A `*` in the pattern matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(end)
}

impl Filter {
    /// Returns the start and the end of the time range, in nanoseconds since the trace's start, both
    /// inclusive.
    pub fn range(&self) -> (i64, i64) {
        (
            self.from_ns.unwrap_or(i64::MIN),
            self.to_ns.unwrap_or(i64::MAX),
        )
    }

    /// Returns true if the filter has no condition except the time range.
    pub fn is_only_time(&self) -> bool {
        let others = Filter {
            from_ns: None,
            to_ns: None,
            ..self.clone()
        };
        others == Filter::default()
    }

    /// Returns true if the time range is empty.
    pub fn is_empty_range(&self) -> bool {
        let (from, to) = self.range();
        from > to
    }

    /// Returns true if the filter has conditions on processes or threads. Then processes and threads must be
    /// known before the filter can be applied.
    pub fn asks_for_ids(&self) -> bool {
        !(self.process_ids.is_empty()
            && self.process_names.is_empty()
            && self.thread_ids.is_empty())
    }

    fn wants_kind(&self, number: Option<u16>, identity: &Identity) -> bool {
        let holds = |text: &Option<Arc<str>>, part: &str| {
            text.as_ref()
                .is_some_and(|t| t.to_lowercase().contains(part))
        };
        let provider = self.providers.is_empty()
            || self.providers.iter().any(|wanted| match wanted {
                ProviderPattern::Guid(guid) => identity.guid == Some(*guid),
                ProviderPattern::Name(part) => holds(&identity.provider, part),
            });
        let event = self.events.is_empty()
            || self.events.iter().any(|wanted| match wanted {
                EventPattern::Number(wanted) => number == Some(*wanted),
                EventPattern::Text(pattern) => identity.name.as_ref().is_some_and(|name| {
                    let name = name.to_lowercase();
                    let provider = identity.provider.as_deref().unwrap_or_default();
                    matches(pattern, &name)
                        || name.split('/').any(|part| matches(pattern, part))
                        || matches(pattern, &format!("{}:{name}", provider.to_lowercase()))
                }),
            });
        provider && event
    }

    /// Returns true if the filter has conditions on kinds of events.
    pub fn asks_for_kinds(&self) -> bool {
        !(self.providers.is_empty() && self.events.is_empty())
    }

    /// Returns true if the event belongs to a selected thread or process. `running` is the thread that ran on
    /// the event's CPU, if it is known. This thread also counts as a thread of the event.
    fn wants_ids(
        &self,
        event: &Event<'_>,
        decoded: &Decoded<'_>,
        known: &Processes,
        running: Option<u32>,
    ) -> bool {
        let time_ns = event.time_ns();
        let fields = &decoded.fields.values;
        let threads = || {
            let own = known_id(event.thread_id()).into_iter();
            own.chain(threads_in(fields)).chain(running)
        };
        let processes = || {
            let own = known_id(event.process_id()).into_iter();
            own.chain(processes_in(fields))
        };
        self.wants_any(time_ns, threads, processes, known)
    }

    /// Returns true if a thread or a process of an event is selected. The processes of the event's threads count too.
    fn wants_any<T: Iterator<Item = u32>, P: Iterator<Item = u32>>(
        &self,
        time_ns: i64,
        threads: impl Fn() -> T,
        processes: impl Fn() -> P,
        known: &Processes,
    ) -> bool {
        let of_threads = || threads().filter_map(|tid| known.of_thread(tid, time_ns));
        let processes = || processes().chain(of_threads());
        let tid = self.thread_ids.is_empty() || threads().any(|id| self.thread_ids.contains(&id));
        let pid =
            self.process_ids.is_empty() || processes().any(|id| self.process_ids.contains(&id));
        let process = self.process_names.is_empty()
            || processes()
                .filter_map(|id| known.name(id, time_ns))
                .any(|name| {
                    let name = name.to_lowercase();
                    self.process_names
                        .iter()
                        .any(|p| name.contains(&p.to_lowercase()))
                });
        tid && pid && process
    }
}

/// Names of kinds of events and of their providers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindNames {
    /// Names of events, and the parts of these names after the `/`.
    pub events: BTreeSet<Arc<str>>,
    /// Names of providers.
    pub providers: BTreeSet<Arc<str>>,
}

impl KindNames {
    fn add(&mut self, identity: &Identity) {
        self.providers.extend(identity.provider.clone());
        if let Some(name) = &identity.name {
            let part = name.split_once('/').map(|(_, part)| Arc::from(part));
            self.events
                .extend(part.into_iter().chain([Arc::clone(name)]));
        }
    }
}

/// Selects events by a filter, and decodes them.
pub struct Sieve<'a> {
    filter: &'a Filter,
    decoder: &'a Decoder,
    processes: &'a Processes,
    range: (i64, i64),
    /// Kinds of events that were seen. The value is true if the filter selects the kind.
    kinds: FxHashMap<EventKind, bool>,
    names: KindNames,
}

impl<'a> Sieve<'a> {
    /// Creates a sieve for the events that `decoder` decodes.
    pub fn new(filter: &'a Filter, decoder: &'a Decoder, processes: &'a Processes) -> Sieve<'a> {
        Sieve {
            filter,
            decoder,
            processes,
            range: filter.range(),
            kinds: FxHashMap::default(),
            names: KindNames::default(),
        }
    }

    /// Returns the names of the kinds of events that were seen, if the filter has conditions on kinds.
    pub fn names(&self) -> &KindNames {
        &self.names
    }

    /// Decodes the event. Returns `None` if the filter does not select it.
    pub fn pass<'e>(&mut self, event: &Event<'e>) -> Option<Decoded<'e>> {
        if !self.is_of_kind(event) {
            return None;
        }
        let decoded = self.decoder.decode(event);
        self.is_of_process(event, &decoded, None).then_some(decoded)
    }

    /// Returns true if the filter selects the event. `running` is the thread that ran on the event's CPU, if
    /// known.
    pub fn passes(&mut self, event: &Event<'_>, running: Option<u32>) -> bool {
        self.is_of_kind(event)
            && (!self.filter.asks_for_ids()
                || self.is_of_process(event, &self.decoder.decode(event), running))
    }

    fn is_of_process(
        &self,
        event: &Event<'_>,
        decoded: &Decoded<'_>,
        running: Option<u32>,
    ) -> bool {
        let filter = self.filter;
        !filter.asks_for_ids() || filter.wants_ids(event, decoded, self.processes, running)
    }

    /// Returns true if the filter selects the time, CPU and kind of the event.
    pub fn is_of_kind(&mut self, event: &Event<'_>) -> bool {
        const MAX_KINDS: usize = 1 << 16;
        let (from, to) = self.range;
        let time_ns = event.time_ns();
        let cpu = &self.filter.cpus;
        if time_ns < from || time_ns > to || !cpu.is_empty() && !cpu.contains(&event.cpu()) {
            return false;
        }
        if !self.filter.asks_for_kinds() {
            return true;
        }
        let key = EventKind::new(event);
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        let (filter, decoder, names) = (self.filter, self.decoder, &mut self.names);
        *self.kinds.entry(key).or_insert_with(|| {
            let identity = decoder.identify(event);
            if names.events.len() < MAX_KINDS {
                names.add(&identity);
            }
            filter.wants_kind(number_of(key), &identity)
        })
    }
}

/// Returns the number that identifies a kind of event for the user.
fn number_of(key: EventKind) -> Option<u16> {
    match key {
        EventKind::Kernel { hook, .. } => Some(hook & 0xFF),
        EventKind::Classic { opcode, .. } => Some(opcode.into()),
        EventKind::Provider { id, .. } => Some(id),
        EventKind::Message { number, .. } => Some(number),
        EventKind::Bare | EventKind::Further => None,
    }
}

/// Selects events of a recording of Linux by a filter, and decodes them.
pub struct LinuxSieve<'a> {
    filter: &'a Filter,
    decoder: &'a LinuxDecoder<'a>,
    processes: &'a Processes,
    /// True for each kind of event that the filter selects. The index is the index of the event in the recording's
    /// attributes.
    kinds: Vec<bool>,
}

impl<'a> LinuxSieve<'a> {
    /// Creates a sieve for a recording. The sieve does not check the time range of the filter, so the caller must check
    /// it.
    pub fn new(
        filter: &'a Filter,
        decoder: &'a LinuxDecoder<'a>,
        processes: &'a Processes,
    ) -> LinuxSieve<'a> {
        let kinds = decoder.kinds();
        let kinds = kinds.map(|(identity, id)| filter.wants_kind(id, identity));
        LinuxSieve {
            filter,
            decoder,
            processes,
            kinds: kinds.collect(),
        }
    }

    /// Returns the names of all kinds of events of the recording.
    pub fn names(&self) -> KindNames {
        let mut names = KindNames::default();
        let kinds = self.decoder.kinds();
        kinds.for_each(|(identity, _)| names.add(identity));
        names
    }

    /// Decodes the event at a time since the recording's start. Returns `None` if the filter does not select it.
    pub fn pass<'e>(&self, event: &linux::Event<'e>, time_ns: i64) -> Option<Decoded<'e>> {
        let cpu = |cpu: u32| {
            self.filter
                .cpus
                .iter()
                .any(|wanted| u32::from(*wanted) == cpu)
        };
        let is_of_cpu = self.filter.cpus.is_empty() || event.cpu.is_some_and(cpu);
        if !is_of_cpu || !*self.kinds.get(event.attribute()?)? {
            return None;
        }
        let decoded = self.decoder.decode(event)?;
        if self.filter.asks_for_ids() {
            let threads = || {
                let own = event.thread_id.into_iter();
                own.chain(linux_threads_in(&decoded.fields.values))
            };
            let processes = || event.process_id.into_iter();
            let is_it = (self.filter).wants_any(time_ns, threads, processes, self.processes);
            return is_it.then_some(decoded);
        }
        Some(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("read", "read", true),
            ("read", "readinit", false),
            ("read*", "readinit", true),
            ("*init", "readinit", true),
            ("r*d*n*t", "readinit", true),
            ("r*x*t", "readinit", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
