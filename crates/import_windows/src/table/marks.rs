//! `marks`: text that programs and people wrote into the trace.

use etl::{Event, Guid};
use events::Ansi;
use events::ids::hook;
use tables::{MarkSource, Marks};

use crate::providers::{MULTI_MAIN, MULTI_WORKER, fields, logged_by, text};
use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for Marks {
    const READS: Reads = Reads {
        hooks: &[hook::MARK..=hook::MARK],
        providers: &[
            (MULTI_MAIN, &[102..=102, 104..=107, 114..=114, 116..=119]),
            (MULTI_WORKER, &[102..=102]),
        ],
        ..Reads::NOTHING
    };

    fn push(raw: &mut Marks, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        match incoming.hook {
            Some(_) => push_kernel(raw, incoming.event),
            None => push_uiforetw(raw, incoming.event)?,
        }
        Some(())
    }
}

/// Adds a mark of the kernel. The whole payload is text, so the mark is always readable.
fn push_kernel(rows: &mut Marks, event: &Event<'_>) {
    let payload = event.payload();
    let end = payload.iter().position(|byte| *byte == 0);
    let label = Ansi(&payload[..end.unwrap_or(payload.len())]).to_str();
    push_row(rows, event, MarkSource::Kernel, Some(&label), None);
}

/// Adds a mark of UIforETW. Returns `None` if the payload is unreadable.
fn push_uiforetw(rows: &mut Marks, event: &Event<'_>) -> Option<()> {
    let is_worker = event.guid() == Some(MULTI_WORKER);
    let provider: Guid = if is_worker { MULTI_WORKER } else { MULTI_MAIN };
    let fields = fields(provider, event)?;
    let data: Vec<String> = fields
        .values
        .iter()
        .filter(|(name, _)| name.starts_with("Data"))
        .map(|(_, value)| value.to_string())
        .collect();
    let data = (!data.is_empty()).then(|| data.join(", "));
    let label = text(&fields, "Description");
    push_row(rows, event, MarkSource::Uiforetw, label, data.as_deref());
    Some(())
}

fn push_row(
    rows: &mut Marks,
    event: &Event<'_>,
    source: MarkSource,
    text: Option<&str>,
    data: Option<&str>,
) {
    let (thread_id, process_id) = logged_by(event);
    rows.time_ns.push(event.time_ns());
    rows.cpu.push(event.cpu());
    rows.source.0.push(source);
    rows.text.push(text);
    rows.data.push(data);
    rows.thread_id.push(thread_id);
    rows.process_id.push(process_id);
}
