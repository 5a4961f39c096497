//! Events of manifest providers, and their fields.

use etl::{Event, Guid};
pub(crate) use events::ids::provider::*;
use events::{Fields, Value, built_in};

use crate::event_buffer::BufferedEvent;

/// Decodes the fields of an event with its publicly known layout. Returns `None` if no layout is known or the
/// payload is too short.
pub(crate) fn fields<'e>(provider: Guid, event: &Event<'e>) -> Option<Fields<'e>> {
    let descriptor = event.descriptor()?;
    let (payload, width) = (event.payload(), event.pointer_size());
    decode(provider, descriptor.id, descriptor.version, payload, width)
}

/// Decodes the fields of a buffered event in the same way as [`fields`].
pub(crate) fn buffered_fields<'e>(provider: Guid, event: &BufferedEvent<'e>) -> Option<Fields<'e>> {
    let (payload, width) = (event.payload, event.pointer_size);
    decode(provider, event.id, event.version, payload, width)
}

fn decode(
    provider: Guid,
    id: u16,
    version: u8,
    payload: &[u8],
    pointer_size: usize,
) -> Option<Fields<'_>> {
    let schema = built_in::schema(provider, id, version)?;
    let fields = events::decode(&schema.fields, payload, pointer_size);
    fields.truncated.is_none().then_some(fields)
}

/// Returns a field as a number of 32 bits.
pub(crate) fn number(fields: &Fields<'_>, name: &str) -> Option<u32> {
    u32::try_from(fields.get(name)?.as_u64()?).ok()
}

/// Returns a field as a signed number of 32 bits.
pub(crate) fn signed(fields: &Fields<'_>, name: &str) -> Option<i32> {
    match fields.get(name)? {
        Value::Int(value) => i32::try_from(*value).ok(),
        value => i32::try_from(value.as_u64()?).ok(),
    }
}

/// Returns a field as text. Returns `None` if the text is empty.
pub(crate) fn text<'f>(fields: &'f Fields<'_>, name: &str) -> Option<&'f str> {
    fields.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the id of the thread and the id of the process that logged an event. An id is `None` if the header
/// does not have it.
pub(crate) fn logged_by(event: &Event<'_>) -> (Option<u32>, Option<u32>) {
    let known = |id: Option<u32>| id.filter(|id| *id != u32::MAX);
    (known(event.thread_id()), known(event.process_id()))
}
