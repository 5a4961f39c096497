//! Which events a user wants to see.

use std::str::FromStr;

use clap::Args;
use etl::{Clock, Event, Guid};
use events::{Decoded, Decoder, Identity};
use rustc_hash::FxHashMap;

use crate::key::Key;
use crate::moment::Moment;
use crate::processes::{Processes, known_id, processes_in, threads_in};

/// Conditions that all must hold; of several values for one of them, one must.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which events")]
pub(crate) struct Filter {
    /// Of this provider: its GUID, or (part of) its name in any case
    #[arg(long, value_name = "NAME|GUID")]
    provider: Vec<Provider>,
    /// Of this kind: its id (opcode of kernel and classic events), its name, or the part of it before
    /// or after the /, in any case; * stands for anything
    #[arg(long, value_name = "NAME|ID")]
    event: Vec<Name>,
    /// Logged by, or about, the process with this id
    #[arg(long)]
    pid: Vec<u32>,
    /// Logged by, or about, a process whose name holds this, in any case
    #[arg(long, value_name = "NAME")]
    process: Vec<String>,
    /// Logged by, or about, the thread with this id
    #[arg(long)]
    tid: Vec<u32>,
    /// Logged on this CPU
    #[arg(long)]
    cpu: Vec<u16>,
    /// From this time on: since the trace's start (1.5, 1.5s, 20ms, 7us) or UTC (ISO 8601)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,
}

/// A provider as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Provider {
    Guid(Guid),
    Name(String),
}

impl FromStr for Provider {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Provider, Self::Err> {
        Ok(match text.parse() {
            Ok(guid) => Provider::Guid(guid),
            Err(_) => Provider::Name(text.to_lowercase()),
        })
    }
}

/// A kind of event as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Number(u16),
    Text(String),
}

impl FromStr for Name {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Name, Self::Err> {
        Ok(match text.parse() {
            Ok(number) => Name::Number(number),
            Err(_) => Name::Text(text.to_lowercase()),
        })
    }
}

/// Whether `text` is as `pattern` says, where `*` stands for anything.
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
    /// The first and last nanosecond wanted, since the trace's start.
    pub(crate) fn range(&self, clock: &Clock) -> (i64, i64) {
        (
            self.from.map_or(i64::MIN, |m| m.since_start(clock)),
            self.to.map_or(i64::MAX, |m| m.since_start(clock)),
        )
    }

    /// # Errors
    /// If no time is in the range.
    pub(crate) fn check(&self, clock: &Clock) -> Result<(), String> {
        let (from, to) = self.range(clock);
        match from > to {
            true => Err("--from is later than --to: no event can be between".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether processes and threads must be known to decide.
    pub(crate) fn asks_for_ids(&self) -> bool {
        !(self.pid.is_empty() && self.process.is_empty() && self.tid.is_empty())
    }

    fn wants_kind(&self, key: Key, identity: &Identity) -> bool {
        let holds = |text: &Option<std::sync::Arc<str>>, part: &str| {
            text.as_ref()
                .is_some_and(|t| t.to_lowercase().contains(part))
        };
        let provider = self.provider.is_empty()
            || self.provider.iter().any(|wanted| match wanted {
                Provider::Guid(guid) => identity.guid == Some(*guid),
                Provider::Name(part) => holds(&identity.provider, part),
            });
        let number = match key {
            Key::Kernel { hook, .. } => Some(hook & 0xFF),
            Key::Classic { opcode, .. } => Some(opcode.into()),
            Key::Provider { id, .. } => Some(id),
            Key::Message { number, .. } => Some(number),
            Key::Bare(_) | Key::Further => None,
        };
        let event = self.event.is_empty()
            || self.event.iter().any(|wanted| match wanted {
                Name::Number(wanted) => number == Some(*wanted),
                Name::Text(pattern) => identity.name.as_ref().is_some_and(|name| {
                    let name = name.to_lowercase();
                    matches(pattern, &name) || name.split('/').any(|part| matches(pattern, part))
                }),
            });
        provider && event
    }

    /// Whether kinds of events are picked.
    pub(crate) fn asks_for_kinds(&self) -> bool {
        !(self.provider.is_empty() && self.event.is_empty())
    }

    /// Whether the event is of a wanted thread, of which `running` is one that it is of, too.
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
            known_id(event.thread_id())
                .into_iter()
                .chain(threads_in(fields))
                .chain(running)
        };
        let processes = || {
            known_id(event.process_id())
                .into_iter()
                .chain(processes_in(fields))
                .chain(threads().filter_map(|tid| known.of_thread(tid, time_ns)))
        };
        let tid = self.tid.is_empty() || threads().any(|id| self.tid.contains(&id));
        let pid = self.pid.is_empty() || processes().any(|id| self.pid.contains(&id));
        let process = self.process.is_empty()
            || processes()
                .filter_map(|id| known.name(id, time_ns))
                .any(|name| {
                    let name = name.to_lowercase();
                    self.process
                        .iter()
                        .any(|p| name.contains(&p.to_lowercase()))
                });
        tid && pid && process
    }
}

/// Decodes the events that a filter wants.
pub(crate) struct Sieve<'a> {
    filter: &'a Filter,
    decoder: &'a Decoder,
    processes: &'a Processes,
    range: (i64, i64),
    /// Kinds seen, and whether they are wanted.
    kinds: FxHashMap<Key, bool>,
}

impl<'a> Sieve<'a> {
    /// A sieve for a trace with that clock.
    pub(crate) fn new(
        filter: &'a Filter,
        decoder: &'a Decoder,
        processes: &'a Processes,
        clock: &Clock,
    ) -> Sieve<'a> {
        Sieve {
            filter,
            decoder,
            processes,
            range: filter.range(clock),
            kinds: FxHashMap::default(),
        }
    }

    /// What the event says, if it is wanted.
    pub(crate) fn pass<'e>(&mut self, event: &Event<'e>) -> Option<Decoded<'e>> {
        if !self.is_of_kind(event) {
            return None;
        }
        let decoded = self.decoder.decode(event);
        self.is_of_process(event, &decoded, None).then_some(decoded)
    }

    /// Whether the event is wanted, if the CPU was running that thread.
    pub(crate) fn passes(&mut self, event: &Event<'_>, running: Option<u32>) -> bool {
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

    /// Whether the event is of a wanted time, CPU and kind.
    pub(crate) fn is_of_kind(&mut self, event: &Event<'_>) -> bool {
        const MAX_KINDS: usize = 1 << 16;
        let (from, to) = self.range;
        let time_ns = event.time_ns();
        let cpu = &self.filter.cpu;
        if time_ns < from || time_ns > to || !cpu.is_empty() && !cpu.contains(&event.cpu()) {
            return false;
        }
        if !self.filter.asks_for_kinds() {
            return true;
        }
        let key = Key::of(event);
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        let (filter, decoder) = (self.filter, self.decoder);
        *self
            .kinds
            .entry(key)
            .or_insert_with(|| filter.wants_kind(key, &decoder.identify(event)))
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
