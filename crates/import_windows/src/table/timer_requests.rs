//! `timer_requests`: requests for timer resolutions, and the resolutions in effect.

use tables::{TimerRequestKind, TimerRequests};

use crate::providers::{KERNEL_POWER, fields, logged_by, number, text};
use crate::register::{FromEvents, IncomingEvent, Reads};

/// Id of the event with the resolution in effect.
const EFFECTIVE: u16 = 95;

impl FromEvents for TimerRequests {
    const READS: Reads = Reads {
        providers: &[(KERNEL_POWER, &[63..=63, EFFECTIVE..=EFFECTIVE])],
        ..Reads::NOTHING
    };

    fn push(raw: &mut TimerRequests, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let fields = fields(KERNEL_POWER, event)?;
        let is_effective = event.descriptor()?.id == EFFECTIVE;
        let (kind, resolution, process_id) = if is_effective {
            (
                TimerRequestKind::Effective,
                number(&fields, "NewResolution"),
                None,
            )
        } else {
            let process_id = number(&fields, "Pid").or(logged_by(event).1);
            let resolution = number(&fields, "RequestedResolution");
            (TimerRequestKind::Request, resolution, process_id)
        };
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(event.cpu());
        raw.kind.0.push(kind);
        // The resolution in the event is in units of 100 ns.
        raw.resolution_ns
            .push(resolution.map(|units| i64::from(units) * 100));
        raw.process_id.push(process_id);
        raw.image_path.push(text(&fields, "AppName"));
        let tag = number(&fields, "SubProcessTag").filter(|tag| *tag != 0);
        raw.sub_process_tag.push(tag);
        raw.ignored
            .push(number(&fields, "RequestIgnored").map(|flag| flag != 0));
        Some(())
    }
}
