//! `event_kinds`: number and size of the events of each kind.

use etl::HeaderKind;
use events::Decoder;
use events::kernel::Class;
use rustc_hash::FxHashMap;
use tables::import::UnreadableEvents;
use tables::{EventFormat, EventKinds};

use crate::kind_survey::{EventKind, KindCount, learn};
use crate::register::{TraceFacts, WholeTable};

impl WholeTable for EventKinds {
    fn build(facts: &TraceFacts<'_>, _: &mut UnreadableEvents) -> EventKinds {
        let survey = facts.kinds;
        let mut decoder = Decoder::new();
        learn(&mut decoder, facts.trace, facts.metadata());
        let mut identities = FxHashMap::default();
        survey.visit_examples(
            facts.trace,
            |_| true,
            |header, kind, event| {
                identities.insert((header, kind), decoder.identify(event));
            },
        );
        let mut kinds: Vec<_> = survey.kinds.iter().collect();
        kinds.sort_by_key(|(key, count)| (count.first_ns, **key));
        let files: Vec<&str> = facts.trace.files().map(tables::file_name).collect();
        let mut rows = EventKinds::default();
        for (key, count) in kinds {
            let identity = identities.get(key);
            rows.provider
                .push(identity.and_then(|i| i.provider.as_deref()));
            rows.event.push(identity.and_then(|i| i.name.as_deref()));
            push_kind(&mut rows, key.0, key.1);
            push_count(&mut rows, count);
            let segment = &facts.trace.segments()[usize::from(count.example.segment)];
            rows.file
                .push(files.get(usize::from(segment.file)).copied());
        }
        rows
    }
}

fn push_kind(rows: &mut EventKinds, header: HeaderKind, kind: EventKind) {
    let (format, guid) = match kind {
        EventKind::Kernel { .. } => (EventFormat::Kernel, None),
        EventKind::Classic { guid, .. } => (EventFormat::Classic, Some(guid)),
        EventKind::Provider {
            guid, tracelogging, ..
        } => match tracelogging {
            Some(_) => (EventFormat::Tracelogging, Some(guid)),
            None => (EventFormat::Manifest, Some(guid)),
        },
        EventKind::Message { guid, .. } => (EventFormat::Wpp, guid),
        EventKind::Bare | EventKind::Further => (EventFormat::Other, None),
    };
    let class = match kind {
        EventKind::Kernel { hook, .. } => Class::of_group(hook.to_be_bytes()[0]),
        EventKind::Classic { guid, .. } => Class::of_guid(guid),
        _ => None,
    };
    let (hook, id, version, opcode) = match kind {
        EventKind::Kernel { hook, version } => (Some(hook), None, Some(version), Some(hook as u8)),
        EventKind::Classic {
            opcode, version, ..
        } => {
            let group = class.and_then(|class| class.group);
            let hook = group.map(|group| u16::from_be_bytes([group, opcode]));
            (hook, None, Some(version), Some(opcode))
        }
        EventKind::Provider {
            id,
            version,
            opcode,
            ..
        } => (None, Some(id), Some(version), Some(opcode)),
        EventKind::Message { number, .. } => (None, Some(number), None, None),
        EventKind::Bare | EventKind::Further => (None, None, None, None),
    };
    rows.format.0.push(format);
    rows.class.push(class.map(|class| class.name));
    rows.header.push(Some(header.name()));
    let guid = guid.map(|guid| guid.to_string());
    rows.provider_guid.push(guid.as_deref());
    rows.hook.push(hook);
    rows.id.push(id);
    rows.version.push(version);
    rows.opcode.push(opcode);
}

fn push_count(rows: &mut EventKinds, count: &KindCount) {
    rows.first_ns.push(count.first_ns);
    rows.last_ns.push(count.last_ns);
    rows.count.push(count.events);
    rows.size_bytes.push(count.bytes);
    rows.least_payload_bytes.push(count.payload_min);
    rows.greatest_payload_bytes.push(count.payload_max);
    rows.stacks.push(count.stacks);
    rows.buffer_offset_bytes.push(count.example.buffer_offset);
    rows.record_offset_bytes.push(count.example.offset);
}
