//! Names and fields of events of Linux, in the form that events of Windows also have.

use std::ops::RangeInclusive;
use std::sync::Arc;

use events::{Decoded, Fields, Identity, Value};
use linux::{Event, EventKind, Field, FieldValue, Recording};

use crate::recording::{origin_ns, time_since};

/// Decoder of the events of a recording of Linux.
#[derive(Debug)]
pub struct LinuxDecoder<'r> {
    recording: &'r Recording,
    origin_ns: u64,
    /// Kinds of events, by their index in [`Recording::attributes`].
    kinds: Vec<Kind<'r>>,
}

/// Kind of event.
#[derive(Debug)]
struct Kind<'r> {
    identity: Identity,
    /// Fields of a tracepoint, except the fields that all tracepoints have.
    fields: Vec<(Arc<str>, &'r Field)>,
    id: Option<u16>,
}

impl<'r> LinuxDecoder<'r> {
    /// Creates the decoder of a recording.
    pub fn new(recording: &'r Recording) -> LinuxDecoder<'r> {
        let kinds = recording.attributes().iter().map(|attribute| {
            let format = recording.format_of(attribute);
            let fields = format.iter().flat_map(|format| &format.fields);
            let own = fields.filter(|field| !field.name.starts_with("common_"));
            let name = format.map(|format| Arc::from(&*format.name));
            Kind {
                identity: Identity {
                    guid: None,
                    // A text has no subsystem for most events.
                    provider: (format.map(|format| Arc::from(&*format.system)))
                        .filter(|system: &Arc<str>| !system.is_empty()),
                    name: name.or_else(|| Some(Arc::from(attribute.known_name()))),
                },
                fields: own.map(|field| (Arc::from(&*field.name), field)).collect(),
                id: format.map(|format| format.id),
            }
        });
        LinuxDecoder {
            recording,
            origin_ns: origin_ns(recording),
            kinds: kinds.collect(),
        }
    }

    /// Returns the time of an event since the start of the recording, in nanoseconds.
    pub fn time_ns(&self, event: &Event<'_>) -> i64 {
        time_since(self.origin_ns, event)
    }

    /// Returns the name of the record type that contains the events, such as `PERF_RECORD_SAMPLE`.
    pub fn form(&self) -> &'static str {
        self.recording.recorder().event_form()
    }

    /// Converts times since the start of the recording, in nanoseconds, to times of the recording's clock.
    pub fn clock_range(&self, from_ns: i64, to_ns: i64) -> RangeInclusive<u64> {
        let time = |ns: i64| self.origin_ns.saturating_add_signed(ns);
        time(from_ns)..=time(to_ns)
    }

    /// Returns the subsystem and the name of the event with this index in [`Recording::attributes`].
    pub fn identity(&self, attribute: usize) -> &Identity {
        &self.kinds[attribute].identity
    }

    /// Returns the id of the tracepoint with this index; `None` if the event is not a tracepoint.
    pub fn id(&self, attribute: usize) -> Option<u16> {
        self.kinds[attribute].id
    }

    /// Returns the identities and ids of all kinds of events.
    pub fn kinds(&self) -> impl Iterator<Item = (&Identity, Option<u16>)> {
        self.kinds.iter().map(|kind| (&kind.identity, kind.id))
    }

    /// Returns the names and values of an event. Returns `None` for records that describe processes and their memory.
    pub fn decode<'e>(&self, event: &Event<'e>) -> Option<Decoded<'e>> {
        let mut fields = Fields::default();
        let attribute = match &event.kind {
            EventKind::Tracepoint {
                attribute,
                tracepoint,
                ..
            } => {
                for (name, field) in &self.kinds[*attribute].fields {
                    let Some(value) = self.recording.value(field, tracepoint.data) else {
                        fields.truncated = Some(Arc::clone(name));
                        break;
                    };
                    fields.values.push((Arc::clone(name), shared(value)));
                }
                *attribute
            }
            EventKind::Sample {
                attribute,
                ip,
                address,
                period,
                ..
            } => {
                let pointer = |value: Option<u64>| value.map(Value::Pointer);
                let named = [
                    ("ip", pointer(*ip)),
                    ("address", pointer(*address)),
                    ("period", period.map(Value::UInt)),
                ];
                let known = named
                    .into_iter()
                    .filter_map(|(name, value)| Some((Arc::from(name), value?)));
                fields.values.extend(known);
                *attribute
            }
            _ => return None,
        };
        Some(Decoded {
            identity: self.kinds[attribute].identity.clone(),
            source: None,
            message: None,
            fields,
        })
    }
}

/// Converts a value of Linux to the type that the decoders of both systems return.
fn shared(value: FieldValue<'_>) -> Value<'_> {
    match value {
        FieldValue::Signed(number) => Value::Int(number),
        FieldValue::Unsigned(number) => Value::UInt(number),
        FieldValue::Hexadecimal(number) => Value::Hex(number),
        FieldValue::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes)),
        FieldValue::Bytes(bytes) => Value::Bytes(bytes),
    }
}
