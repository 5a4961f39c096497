//! `events`: decoded events of any provider.

use tables::Events;

use crate::providers::logged_by;
use crate::register::{FromEvents, IncomingEvent};

impl FromEvents for Events {
    fn push(raw: &mut Events, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let decoded = incoming.decoder?.decode(event);
        let (descriptor, identity) = (event.descriptor(), &decoded.identity);
        let (thread_id, process_id) = logged_by(event);
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(event.cpu());
        raw.provider.push(identity.provider.as_deref());
        let guid = identity.guid.map(|guid| guid.to_string());
        raw.provider_guid.push(guid.as_deref());
        raw.event.push(identity.name.as_deref());
        let id = descriptor.map(|d| d.id);
        raw.id.push(id.or_else(|| event.message_number()));
        raw.version.push(event.version());
        raw.opcode.push(event.opcode());
        raw.level.push(event.level());
        raw.task.push(descriptor.map(|d| d.task));
        raw.keyword.push(descriptor.map(|d| d.keyword));
        raw.thread_id.push(thread_id);
        raw.process_id.push(process_id);
        let activity = event.activity_id().map(|guid| guid.to_string());
        raw.activity_id.push(activity.as_deref());
        raw.message.push(decoded.message.as_deref());
        let has_fields = !decoded.fields.values.is_empty();
        let fields = has_fields.then(|| serde_json::to_string(&decoded.fields));
        raw.fields.push(fields.and_then(Result::ok).as_deref());
        // The cast is safe, because records are shorter than 64 KiB.
        raw.undescribed_bytes.push(decoded.fields.tail.len() as u32);
        Some(())
    }
}
