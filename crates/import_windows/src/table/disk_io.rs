//! `disk_io`: requests to disks.

use etl::{ClockKind, Event};
use events::ids::hook;
use events::kernel::{DiskFlush, DiskStart, DiskTransfer};
use tables::import::TimedValues;
use tables::{DiskEvents, DiskIo, DiskIoKind, RequestStart};

use crate::register::{FromEvents, IncomingEvent, Reads};

impl FromEvents for DiskIo {
    const READS: Reads = Reads {
        hooks: &[
            hook::DISK_READ..=hook::DISK_FLUSH_INIT,
            hook::OPTICAL_READ..=hook::OPTICAL_FLUSH_INIT,
        ],
        ..Reads::NOTHING
    };

    fn push(raw: &mut DiskEvents, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        match incoming.hook? {
            hook::DISK_READ_INIT
            | hook::DISK_WRITE_INIT
            | hook::DISK_FLUSH_INIT
            | hook::OPTICAL_READ_INIT..=hook::OPTICAL_FLUSH_INIT => {
                push_start(&mut raw.starts, event, incoming.hook?)
            }
            _ => push_completion(&mut raw.completions, event),
        }
    }
}

/// Adds a completion. Returns `None` if the payload is unreadable.
fn push_completion(rows: &mut DiskIo, event: &Event<'_>) -> Option<()> {
    let (payload, version) = (event.payload(), event.version()?);
    let kind = match event.opcode()? {
        10 | 55 => DiskIoKind::Read,
        11 | 56 => DiskIoKind::Write,
        _ => DiskIoKind::Flush,
    };
    let (flags, response) = if kind == DiskIoKind::Flush {
        let flush = DiskFlush::read(payload, version, event.pointer_size())?;
        rows.disk.push(flush.disk);
        rows.offset_bytes.push(None);
        rows.size_bytes.push(None);
        rows.irp.push(Some(flush.irp));
        rows.file_object.push(None);
        rows.thread_id.push(flush.issuing_thread_id);
        (flush.irp_flags, Some(flush.response_time))
    } else {
        let transfer = DiskTransfer::read(payload, version, event.pointer_size())?;
        rows.disk.push(transfer.disk);
        rows.offset_bytes.push(Some(transfer.offset));
        rows.size_bytes.push(Some(transfer.size));
        rows.irp.push(transfer.irp);
        rows.file_object.push(Some(transfer.file_object));
        rows.thread_id.push(transfer.issuing_thread_id);
        (transfer.irp_flags, transfer.response_time)
    };
    // The response time is in ticks of the performance counter. If this counter is not the session's
    // clock, its frequency is unknown.
    let clock = event.clock();
    let response = response
        .filter(|_| clock.kind() == ClockKind::Qpc)
        .and_then(|ticks| i64::try_from(ticks).ok())
        .map(|ticks| clock.ticks_to_ns(ticks));
    let time = event.time_ns();
    rows.time_ns.push(time);
    rows.init_ns
        .push(response.map(|response| time.saturating_sub(response)));
    rows.duration_ns.push(response);
    rows.response_ns.push(response);
    rows.cpu.push(event.cpu());
    rows.kind.0.push(kind);
    rows.priority.push(Some((flags >> 17 & 7) as u8));
    rows.irp_flags.push(Some(flags));
    Some(())
}

/// Adds a start. Returns `None` if the payload is unreadable.
fn push_start(starts: &mut TimedValues<RequestStart>, event: &Event<'_>, hook: u16) -> Option<()> {
    let kind = match hook {
        hook::DISK_READ_INIT | hook::OPTICAL_READ_INIT => DiskIoKind::Read,
        hook::DISK_FLUSH_INIT | hook::OPTICAL_FLUSH_INIT => DiskIoKind::Flush,
        _ => DiskIoKind::Write,
    };
    let start = DiskStart::read(event.payload(), event.version()?, event.pointer_size())?;
    let logging = event.thread_id().filter(|id| *id != u32::MAX);
    let start = RequestStart {
        cpu: event.cpu(),
        kind,
        irp: start.irp,
        thread_id: start.issuing_thread_id.or(logging),
    };
    starts.0.push((event.time_ns(), start));
    Some(())
}
