//! What makes two events the same kind of event, as far as headers tell.

use std::hash::Hasher;

use etl::{Event, Guid, HeaderKind, ext_type, le};
use rustc_hash::FxHasher;

/// A kind of event. Events of one key have the same provider, name and layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A kernel event with a compact header.
    Kernel {
        /// Group in the high byte, opcode in the low one.
        hook: u16,
        /// Version of the layout.
        version: u8,
    },
    /// A classic event with a class GUID in its header.
    Classic {
        /// Event class.
        guid: Guid,
        /// Opcode.
        opcode: u8,
        /// Version of the layout.
        version: u8,
    },
    /// A manifest, TraceLogging or EventSource event.
    Provider {
        /// Provider.
        guid: Guid,
        /// Event id.
        id: u16,
        /// Version of the layout.
        version: u8,
        /// Opcode.
        opcode: u8,
        /// Hash of the name and layout that a TraceLogging event carries.
        tracelogging: Option<u64>,
    },
    /// A WPP message.
    Message {
        /// GUID of the message's source file.
        guid: Option<Guid>,
        /// Number within it.
        number: u16,
    },
    /// A record of a historic kind, or an old instance event, that says no more than its kind.
    Bare(HeaderKind),
    /// Kinds that came after so many others that they were no longer told apart.
    Further,
}

/// A kind of header and the bytes in it that make an event's [`Key`]: events alike in these have
/// equal keys. Comparing two is far cheaper than making a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(HeaderKind, u64, u128);

impl Fingerprint {
    /// The fingerprint of an event; `None` if its key rests on more than its header.
    #[inline]
    pub(crate) fn of(event: &Event<'_>) -> Option<Fingerprint> {
        let kind = event.kind();
        if let Some(hook) = event.hook() {
            let version = event.version()?;
            return Some(Fingerprint(
                kind,
                u64::from(hook) << 8 | u64::from(version),
                0,
            ));
        }
        match kind {
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64
                if event.header_flags() == Some(0) =>
            {
                let guid = u128::from_le_bytes(event.guid()?.0);
                // Id, version, channel, level, opcode and task.
                Some(Fingerprint(kind, le::u64(event.record(), 40)?, guid))
            }
            HeaderKind::Full32 | HeaderKind::Full64 => {
                let guid = u128::from_le_bytes(event.guid()?.0);
                let (opcode, version) = (event.opcode()?, event.version()?);
                Some(Fingerprint(
                    kind,
                    u64::from(opcode) << 8 | u64::from(version),
                    guid,
                ))
            }
            _ => None,
        }
    }
}

impl Key {
    /// The key of an event.
    pub(crate) fn of(event: &Event<'_>) -> Key {
        let (opcode, version) = (event.opcode(), event.version());
        if let (Some(hook), Some(version)) = (event.hook(), version) {
            return Key::Kernel { hook, version };
        }
        if let Some(number) = event.message_number() {
            let guid = event.guid();
            return Key::Message { guid, number };
        }
        match (event.guid(), event.descriptor(), opcode, version) {
            (Some(guid), Some(descriptor), ..) => Key::Provider {
                guid,
                id: descriptor.id,
                version: descriptor.version,
                opcode: descriptor.opcode,
                tracelogging: tracelogging_schema(event).map(hash),
            },
            (Some(guid), None, Some(opcode), Some(version)) => Key::Classic {
                guid,
                opcode,
                version,
            },
            _ => Key::Bare(event.kind()),
        }
    }
}

/// The schema that a TraceLogging event carries: its name and layout.
pub(crate) fn tracelogging_schema<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    event
        .extended_items()
        .find(|item| item.ext_type == ext_type::TRACELOGGING_SCHEMA)
        .map(|item| item.data)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
