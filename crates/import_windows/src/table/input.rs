//! `input`: keys, mo

use etl::{Event, le};
use tables::{Input, InputKind};

use crate::providers::{
    LAGLAB_INPUT, MULTI_INPUT, WIN32K, fields, logged_by, number, signed, text,
};
use crate::register::{FromEvents, IncomingEvent, Reads};

fn kind_of(id: u16) -> Option<InputKind> {
    Some(match id {
        63 => InputKind::MessageRetrieved,
        72 => InputKind::DeviceReadStart,
        73 => InputKind::DeviceReadStop,
        79 => InputKind::PointerMotionStart,
        80 => InputKind::PointerMotionStop,
        81 => InputKind::InjectMouseStart,
        82 => InputKind::InjectMouseStop,
        88 => InputKind::MessageQueued,
        92 => InputKind::DispatchStart,
        93 => InputKind::DispatchStop,
        400 => InputKind::MouseDown,
        401 => InputKind::MouseUp,
        402 => InputKind::MouseMove,
        403 => InputKind::MouseWheel,
        404 => InputKind::KeyDown,
        _ => return None,
    })
}

impl FromEvents for Input {
    const READS: Reads = Reads {
        providers: &[
            (WIN32K, &[63..=63, 72..=73, 79..=82, 88..=88, 92..=93]),
            (MULTI_INPUT, &[400..=404]),
            (LAGLAB_INPUT, &[1..=1]),
        ],
        ..Reads::NOTHING
    };

    fn push(raw: &mut Input, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        if event.guid() == Some(LAGLAB_INPUT) {
            return push_key(raw, event);
        }
        let id = event.descriptor()?.id;
        let kind = kind_of(id)?;
        let provider = if id >= 400 { MULTI_INPUT } else { WIN32K };
        let fields = fields(provider, event)?;
        let (thread_id, process_id) = logged_by(event);
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(event.cpu());
        raw.kind.0.push(kind);
        raw.key_code.push(number(&fields, "Virtual key code"));
        raw.key.push(text(&fields, "Key name"));
        raw.repeats.push(number(&fields, "Repeat count"));
        raw.button.push(signed(&fields, "Button Type"));
        raw.wheel_delta.push(signed(&fields, "zDelta"));
        raw.x
            .push(signed(&fields, "x").or_else(|| signed(&fields, "X")));
        raw.y
            .push(signed(&fields, "y").or_else(|| signed(&fields, "Y")));
        raw.device_type.push(signed(&fields, "DeviceType"));
        raw.message.push(number(&fields, "message"));
        raw.thread_id.push(thread_id);
        raw.process_id.push(process_id);
        Some(())
    }
}

/// Adds a key event that `laglab record input` logged. The payload is the code of the key. The code is 0
/// if key codes were not requested.
fn push_key(rows: &mut Input, event: &Event<'_>) -> Option<()> {
    let code = le::u32(event.payload(), 0)?;
    let (thread_id, process_id) = logged_by(event);
    rows.time_ns.push(event.time_ns());
    rows.cpu.push(event.cpu());
    rows.kind.0.push(InputKind::KeyDown);
    rows.key_code.push(Some(code).filter(|code| *code != 0));
    rows.key.push(None);
    rows.repeats.push(None);
    rows.button.push(None);
    rows.wheel_delta.push(None);
    rows.x.push(None);
    rows.y.push(None);
    rows.device_type.push(None);
    rows.message.push(None);
    rows.thread_id.push(thread_id);
    rows.process_id.push(process_id);
    Some(())
}
