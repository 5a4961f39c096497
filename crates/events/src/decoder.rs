//! One place that answers for any event: who logged it, what it is called, what it says.

use std::sync::Arc;

use etl::{Event, Guid};

use crate::decode::{Fields, decode};
use crate::kernel;
use crate::schema::Source;
use crate::value::Value;
use crate::wpp::{self, TmfError, TmfSet};

/// Turns events into names and values, by everything it has been told and has learned.
///
/// Metadata can stand anywhere in a trace, so walk it once with [`Decoder::learn`] before
/// decoding. A decoder is then only read and can be shared between threads.
#[derive(Debug, Default)]
pub struct Decoder {
    tmf: TmfSet,
}

/// Who logged an event and what it is called, without looking at its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Provider or event-class GUID; of kernel events their class's. `None` for the records that
    /// have none.
    pub guid: Option<Guid>,
    /// The provider's name: `Windows Kernel` for kernel classes.
    pub provider: Option<Arc<str>>,
    /// The event's name: `Process/DCStart`, `ProcessStart/Start`, a TraceLogging name.
    pub name: Option<Arc<str>>,
}

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Who logged it and what it is called.
    pub identity: Identity,
    /// Where the layout comes from; `None` if there is none, and then `fields.tail` is the
    /// payload.
    pub source: Option<Source>,
    /// The text of a WPP message or of a string-only event.
    pub message: Option<String>,
    /// Its fields.
    pub fields: Fields<'a>,
}

impl Decoder {
    /// A decoder that knows the kernel's classes and the built-in manifests.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Adds the messages of a TMF file; returns how many there were.
    ///
    /// # Errors
    /// If the text is not TMF; says at which line.
    pub fn add_tmf(&mut self, text: &str) -> Result<usize, TmfError> {
        self.tmf.add(text)
    }

    /// Takes in what an event says about the meaning of others. Most say nothing.
    pub fn learn(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// Who logged the event and what it is called.
    pub fn identify(&self, event: &Event<'_>) -> Identity {
        self.decode(event).identity
    }

    /// Everything the event says.
    pub fn decode<'a>(&self, event: &Event<'a>) -> Decoded<'a> {
        let payload = event.payload();
        if let Some((class, opcode)) = kernel::Class::of_event(event) {
            let name = class.event_name(opcode).unwrap_or("?");
            let schema = kernel::schema(event);
            return Decoded {
                identity: Identity {
                    guid: Some(class.guid),
                    provider: Some("Windows Kernel".into()),
                    name: Some(format!("{}/{name}", class.name).into()),
                },
                source: schema.map(|s| s.source),
                message: None,
                fields: match schema {
                    Some(schema) => decode(&schema.fields, payload, event.pointer_size()),
                    None => undecoded(payload),
                },
            };
        }
        if let Some(message) = wpp::decode(&self.tmf, event) {
            return Decoded {
                identity: Identity {
                    guid: event.guid(),
                    provider: Some(message.module.clone()),
                    name: Some(message.name.clone()),
                },
                source: Some(Source::Tmf),
                message: Some(message.text),
                fields: Fields {
                    values: message.arguments,
                    tail: message.tail,
                    truncated: None,
                },
            };
        }
        Decoded {
            identity: Identity {
                guid: event.guid(),
                provider: None,
                name: None,
            },
            source: None,
            message: None,
            fields: undecoded(payload),
        }
    }
}

fn undecoded(payload: &[u8]) -> Fields<'_> {
    Fields {
        values: Vec::<(Arc<str>, Value<'_>)>::new(),
        tail: payload,
        truncated: None,
    }
}
