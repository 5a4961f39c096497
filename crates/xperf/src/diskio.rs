//! `laglab diskio`: requests to disks.

use std::collections::BTreeMap;

use tables::{DiskIoView, Table};
use wording::{counted, grouped};

use crate::intervals::{Intervals, Usage};
use crate::layout::Fold::{Count, Max, Sum, SumOrZero};
use crate::layout::Format::{Hex, Plain, Process, Quoted, Time};
use crate::layout::{Column, EVENT, Layout, Value};
use crate::rows::{Rows, Times};
use crate::{Error, Recording, Report, Writer, percent};

static BY_PROCESS: Layout = Layout {
    name: "diskio",
    columns: &[
        Column::new("DiskNum", "disk", Plain),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("IOType", "kind", Plain).convert(kind),
        Column::new("     Count", "count", Plain).fold(Count),
        Column::new("         Bytes", "size_bytes", Plain).fold(SumOrZero),
        Column::new("DiskSvcTime (us)", "service_ns", Time).fold(Sum),
        Column::new("   IOTime (us)", "duration_ns", Time).fold(Sum),
        Column::new("Longest IOTime (us)", "longest_ns", Time)
            .stored("duration_ns")
            .fold(Max),
    ],
};

static BY_FILE: Layout = Layout {
    name: "diskio_files",
    columns: &[
        Column::new("DiskNum", "disk", Plain),
        Column::new("IOType", "kind", Plain).convert(kind),
        Column::new("     Count", "count", Plain).fold(Count),
        Column::new("         Bytes", "size_bytes", Plain).fold(SumOrZero),
        Column::new("DiskSvcTime (us)", "service_ns", Time).fold(Sum),
        Column::new("   IOTime (us)", "duration_ns", Time).fold(Sum),
        Column::new("Longest IOTime (us)", "longest_ns", Time)
            .stored("duration_ns")
            .fold(Max),
        Column::new("FileName", "path", Quoted),
    ],
};

static UTILIZATION: Layout = Layout {
    name: "diskio_utilization",
    columns: &[
        Column::new("Start Time", "start_ns", Time),
        Column::new("  End Time", "end_ns", Time),
        Column::new("DiskNum", "disk", Plain),
        Column::new("Busy (us)", "busy_ns", Time),
        Column::new("Usage (%)", "busy_percent", Plain),
    ],
};

static DETAIL: Layout = Layout {
    name: "diskio_detail",
    columns: &[
        Column::new(EVENT, "", Plain).stored("kind").convert(event),
        Column::new(" TimeStamp", "time_ns", Time),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  ThreadID", "thread_id", Plain),
        Column::new("CPU", "cpu", Plain),
        Column::new("            IrpPtr", "irp", Hex),
        Column::new("        ByteOffset", "offset_bytes", Plain),
        Column::new("    IOSize", "size_bytes", Plain),
        Column::new("ElapsedTime", "duration_ns", Time),
        Column::new("DiskNum", "disk", Plain),
        Column::new("          IrpFlags", "irp_flags", Hex),
        Column::new("DiskSvcTime", "service_ns", Time),
        Column::new("I/O Pri", "priority", Plain),
        Column::new("        FileObject", "file_object", Hex),
        Column::new("FileName", "path", Quoted),
        Column::new("", "kind", Plain).convert(kind),
        Column::new("", "init_ns", Time),
        Column::new("", "queue_ns", Time),
    ],
};

/// Options of `laglab diskio`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskIo {
    /// True to show each request, ordered by completion.
    pub detail: bool,
    /// True to sum by file instead of process.
    pub summary: bool,
    /// Length of time intervals in nanoseconds. If given, the report shows the utilization of each disk per
    /// interval.
    pub util: Option<i64>,
}

/// Returns the kind of a request: `unknown` if the trace does not contain the kind.
fn kind(kind: Value<'_>) -> Value<'_> {
    if kind == Value::Unknown {
        Value::Text("unknown")
    } else {
        kind
    }
}

/// Returns xperf's name of the event of a kind of request.
fn event(kind: Value<'_>) -> Value<'_> {
    Value::Text(match kind {
        Value::Text("read") => "DiskRead",
        Value::Text("write") => "DiskWrite",
        Value::Text("flush") => "DiskFlush",
        Value::Text("discard") => "DiskDiscard",
        _ => "DiskUnknown",
    })
}

/// Returns a warning if `count` is not 0. `count` of the `requests` requests have no time, so the sums in the column
/// `column` do not include these requests.
pub(crate) fn left_out(count: u64, requests: u64, column: &str) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "the sums of {column} exclude {} of {}, because the time is unknown",
            grouped(count),
            counted(requests, "request", "requests")
        )
    })
}

impl Report for DiskIo {
    fn tables(&self) -> Vec<Table> {
        vec![Table::DiskIo]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let requests = trace.rows(Table::DiskIo, Times::At("time_ns"))?;
        if self.detail {
            return requests.list(&DETAIL, out);
        }
        if let Some(length) = self.util {
            return utilization(trace, &requests, length, out);
        }
        let (layout, order): (_, &[&str]) = if self.summary {
            (&BY_FILE, &["size_bytes", "path"])
        } else {
            (&BY_PROCESS, &[])
        };
        let sums = requests.sums(layout, order, out)?;
        for (column, heading) in [("service_ns", "DiskSvcTime"), ("duration_ns", "IOTime")] {
            if let Some(warning) = left_out(sums.unknown(column), sums.rows(), heading) {
                out.warn(warning);
            }
        }
        Ok(())
    }
}

/// Writes the time that each disk is busy in each interval. It stays code, because a request counts in each interval that
/// it overlaps.
fn utilization(
    trace: &Recording,
    requests: &Rows<'_>,
    length: i64,
    out: &mut Writer,
) -> Result<(), Error> {
    let intervals = Intervals::new(requests.span(), length, 1)?;
    let mut disks: BTreeMap<u32, Usage> = BTreeMap::new();
    requests.for_each(&["disk", "service_ns"], |batch, rows| {
        let view = DiskIoView::new(batch)?;
        for &row in rows {
            let Some(service) = view.service_ns.get(row) else {
                continue;
            };
            let disk = view.disk[row];
            if !disks.contains_key(&disk) {
                // A hostile trace can name any number of disks. This call fails if the data of all disks would need
                // too much memory.
                Intervals::new(requests.span(), length, disks.len() + 1)?;
            }
            let usage = disks.entry(disk).or_insert_with(|| Usage::new(&intervals));
            let end = view.time_ns[row];
            usage.add(&intervals, end.saturating_sub(service)..end, service);
        }
        Ok(())
    })?;
    let busy = disks.iter().map(|(disk, usage)| (*disk, usage.finish()));
    let busy: Vec<(u32, Vec<i64>)> = busy.collect();
    let mut table = out.table(&UTILIZATION, &trace.names);
    for index in 0..intervals.count() {
        let bounds = intervals.bounds(index);
        for (disk, busy) in &busy {
            table.row(&[
                bounds.start.into(),
                bounds.end.into(),
                (*disk).into(),
                busy[index].into(),
                Value::Share(percent(busy[index], bounds.end - bounds.start)),
            ])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_not_called_a_flush() {
        let kinds = [Value::Text("read"), Value::Text("flush"), Value::Unknown];
        let named = kinds.map(|name| (kind(name), event(name)));
        let names = [
            ("read", "DiskRead"),
            ("flush", "DiskFlush"),
            ("unknown", "DiskUnknown"),
        ];
        assert_eq!(
            named,
            names.map(|(kind, event)| (Value::Text(kind), Value::Text(event)))
        );
    }

    #[test]
    fn only_requests_without_a_time_cause_a_warning() {
        assert_eq!(left_out(0, 3, "IOTime"), None);
        let warning = "the sums of IOTime exclude 1 of 3 requests, because the time is unknown";
        assert_eq!(left_out(1, 3, "IOTime").as_deref(), Some(warning));
    }
}
