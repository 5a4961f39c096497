//! `laglab diskio`: requests to disks.

use std::collections::{BTreeMap, HashMap};

use tables::{DiskIoView, Table};
use wording::{counted, grouped};

use crate::intervals::{Intervals, Usage};
use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer, percent};

static BY_PROCESS: Layout = Layout {
    name: "diskio",
    labelled: false,
    columns: &[
        Column::new("DiskNum", "disk"),
        Column::process("Process Name ( PID)", ""),
        Column::new("IOType", "kind"),
        Column::new("     Count", "count"),
        Column::new("         Bytes", "size_bytes"),
        Column::new("DiskSvcTime (us)", "service_ns"),
        Column::new("   IOTime (us)", "duration_ns"),
        Column::new("Longest IOTime (us)", "longest_ns"),
    ],
};

static BY_FILE: Layout = Layout {
    name: "diskio_files",
    labelled: false,
    columns: &[
        Column::new("DiskNum", "disk"),
        Column::new("IOType", "kind"),
        Column::new("     Count", "count"),
        Column::new("         Bytes", "size_bytes"),
        Column::new("DiskSvcTime (us)", "service_ns"),
        Column::new("   IOTime (us)", "duration_ns"),
        Column::new("Longest IOTime (us)", "longest_ns"),
        Column::new("FileName", "path"),
    ],
};

static UTILIZATION: Layout = Layout {
    name: "diskio_utilization",
    labelled: false,
    columns: &[
        Column::new("Start Time", "start_ns"),
        Column::new("  End Time", "end_ns"),
        Column::new("DiskNum", "disk"),
        Column::new("Busy (us)", "busy_ns"),
        Column::new("Usage (%)", "busy_percent"),
    ],
};

static DETAIL: Layout = Layout {
    name: "diskio_detail",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "time_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("  ThreadID", "thread_id"),
        Column::new("CPU", "cpu"),
        Column::new("            IrpPtr", "irp"),
        Column::new("        ByteOffset", "offset_bytes"),
        Column::new("    IOSize", "size_bytes"),
        Column::new("ElapsedTime", "duration_ns"),
        Column::new("DiskNum", "disk"),
        Column::new("          IrpFlags", "irp_flags"),
        Column::new("DiskSvcTime", "service_ns"),
        Column::new("I/O Pri", "priority"),
        Column::new("        FileObject", "file_object"),
        Column::new("FileName", "path"),
        Column::data_only("kind"),
        Column::data_only("init_ns"),
        Column::data_only("queue_ns"),
    ],
};

/// Options of `laglab diskio`.
#[derive(Clone, Debug, Default)]
pub struct DiskIo {
    /// True to show each request, ordered by completion.
    pub detail: bool,
    /// True to sum by file instead of process.
    pub summary: bool,
    /// Length of time intervals in nanoseconds. If given, the report shows the utilization of each disk per
    /// interval.
    pub util: Option<i64>,
    /// Filter by process.
    pub processes: ProcessFilter,
}

/// Sums over requests. A sum of times does not include requests whose time is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    /// Number of transferred bytes; 0 for a flush.
    bytes: u64,
    service_ns: Option<i64>,
    duration_ns: Option<i64>,
    longest_ns: Option<i64>,
}

impl Sum {
    fn add(&mut self, size_bytes: Option<u32>, service_ns: Option<i64>, duration_ns: Option<i64>) {
        self.count += 1;
        self.bytes += u64::from(size_bytes.unwrap_or(0));
        if let Some(ns) = service_ns {
            self.service_ns = Some(self.service_ns.unwrap_or(0).saturating_add(ns));
        }
        if let Some(ns) = duration_ns {
            self.duration_ns = Some(self.duration_ns.unwrap_or(0).saturating_add(ns));
            self.longest_ns = self.longest_ns.max(Some(ns));
        }
    }

    fn values(&self) -> [Value<'static>; 5] {
        [
            Value::count(self.count),
            Value::count(self.bytes),
            Value::time(self.service_ns),
            Value::time(self.duration_ns),
            Value::time(self.longest_ns),
        ]
    }
}

/// Number of all requests, and numbers of requests without a service time or a duration. The sums of times do not
/// include requests whose time is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    requests: u64,
    without_service: u64,
    without_duration: u64,
}

impl LeftOut {
    fn add(&mut self, service_ns: Option<i64>, duration_ns: Option<i64>) {
        self.requests += 1;
        self.without_service += u64::from(service_ns.is_none());
        self.without_duration += u64::from(duration_ns.is_none());
    }

    fn warnings(&self) -> impl Iterator<Item = String> {
        let LeftOut { requests, .. } = *self;
        let sums = [
            (self.without_service, "DiskSvcTime"),
            (self.without_duration, "IOTime"),
        ];
        sums.into_iter()
            .filter_map(move |(count, sum)| left_out(count, requests, sum))
    }
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

/// Returns the kind of a request as a constant string. Returns `unknown` if the trace does not contain the kind.
fn kind(name: Option<&str>) -> &'static str {
    match name {
        Some("read") => "read",
        Some("write") => "write",
        Some("flush") => "flush",
        Some("discard") => "discard",
        _ => "unknown",
    }
}

impl Report for DiskIo {
    fn tables(&self) -> Vec<Table> {
        vec![Table::DiskIo]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        if self.detail {
            return self.detail(trace, out);
        }
        if let Some(length) = self.util {
            return self.utilization(trace, out, length);
        }
        if self.summary {
            self.by_file(trace, out)
        } else {
            self.by_process(trace, out)
        }
    }
}

impl DiskIo {
    /// Calls `visit` for each row of `disk_io` that is within the time range and passes the process filter. Reads the
    /// columns `columns`, the time and the process.
    fn visit(
        &self,
        trace: &Recording,
        columns: &[&str],
        mut visit: impl FnMut(&DiskIoView<'_>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::DiskIo)?;
        let wanted = self.processes.wanted(&trace.names);
        let columns: Vec<&str> = ["time_ns", "process_row", "process_id"]
            .iter()
            .chain(columns)
            .copied()
            .collect();
        for batch in trace.tables.batches(&table, trace.range.clone(), &columns) {
            let batch = batch?;
            let view = DiskIoView::new(&batch)?;
            for row in 0..view.len() {
                if trace.range.contains(&view.time_ns[row])
                    && wanted.has(view.process_row.get(row), view.process_id.get(row))
                {
                    visit(&view, row)?;
                }
            }
        }
        Ok(())
    }

    fn by_process(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        type Key = (u32, Option<u32>, Option<u32>, &'static str);
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        let mut left_out = LeftOut::default();
        let columns = ["disk", "kind", "size_bytes", "service_ns", "duration_ns"];
        self.visit(trace, &columns, |view, row| {
            let process = (view.process_row.get(row), view.process_id.get(row));
            let key = (
                view.disk[row],
                process.0,
                process.1,
                kind(view.kind.get(row)),
            );
            let (service, duration) = (view.service_ns.get(row), view.duration_ns.get(row));
            let sum = sums.entry(key).or_default();
            sum.add(view.size_bytes.get(row), service, duration);
            left_out.add(service, duration);
            Ok(())
        })?;
        out.table(&BY_PROCESS)?;
        for ((disk, row, id, kind), sum) in &sums {
            let [count, bytes, service, duration, longest] = sum.values();
            let process = Value::Process(trace.names.process(*row, *id));
            let disk = Value::Number((*disk).into());
            let kind = Value::Word(kind);
            out.row(
                "",
                &[
                    disk, process, kind, count, bytes, service, duration, longest,
                ],
            )?;
        }
        left_out.warnings().for_each(|warning| out.warn(warning));
        Ok(())
    }

    fn by_file(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        type Key = (u32, &'static str);
        let mut sums: HashMap<Option<Box<str>>, BTreeMap<Key, Sum>> = HashMap::new();
        let mut left_out = LeftOut::default();
        let columns = [
            "disk",
            "kind",
            "size_bytes",
            "service_ns",
            "duration_ns",
            "path",
        ];
        self.visit(trace, &columns, |view, row| {
            let path = view.path.get(row).map(Box::from);
            let key = (view.disk[row], kind(view.kind.get(row)));
            let (service, duration) = (view.service_ns.get(row), view.duration_ns.get(row));
            let sum = sums.entry(path).or_default().entry(key).or_default();
            sum.add(view.size_bytes.get(row), service, duration);
            left_out.add(service, duration);
            Ok(())
        })?;
        let mut rows: Vec<_> = sums
            .iter()
            .flat_map(|(path, kinds)| kinds.iter().map(move |(key, sum)| (path, key, sum)))
            .collect();
        rows.sort_by_key(|(path, key, sum)| (std::cmp::Reverse(sum.bytes), *path, *key));
        out.table(&BY_FILE)?;
        for (path, (disk, kind), sum) in rows {
            let [count, bytes, service, duration, longest] = sum.values();
            let path = Value::quoted(path.as_deref());
            let (disk, kind) = (Value::Number((*disk).into()), Value::Word(kind));
            out.row(
                "",
                &[disk, kind, count, bytes, service, duration, longest, path],
            )?;
        }
        left_out.warnings().for_each(|warning| out.warn(warning));
        Ok(())
    }

    fn utilization(&self, trace: &Recording, out: &mut Writer, length: i64) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::DiskIo)?;
        let intervals = Intervals::new(trace.span(&[&table]), length, 1)?;
        let mut disks: BTreeMap<u32, Usage> = BTreeMap::new();
        self.visit(trace, &["disk", "service_ns"], |view, row| {
            let Some(service) = view.service_ns.get(row) else {
                return Ok(());
            };
            let disk = view.disk[row];
            if !disks.contains_key(&disk) {
                // A hostile trace can name any number of disks. This call fails if the data of all disks would need
                // too much memory.
                Intervals::new(trace.span(&[&table]), length, disks.len() + 1)?;
            }
            let usage = disks.entry(disk).or_insert_with(|| Usage::new(&intervals));
            let end = view.time_ns[row];
            usage.add(&intervals, end.saturating_sub(service)..end, service);
            Ok(())
        })?;
        out.table(&UTILIZATION)?;
        let disks: Vec<(u32, Vec<i64>)> = disks
            .iter()
            .map(|(disk, usage)| (*disk, usage.finish()))
            .collect();
        for index in 0..intervals.count() {
            let bounds = intervals.bounds(index);
            for (disk, busy) in &disks {
                let values = [
                    Value::Time(bounds.start),
                    Value::Time(bounds.end),
                    Value::Number((*disk).into()),
                    Value::Time(busy[index]),
                    Value::Percent(percent(busy[index], bounds.end - bounds.start)),
                ];
                out.row("", &values)?;
            }
        }
        Ok(())
    }

    fn detail(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        trace.tables.recorded(Table::DiskIo)?;
        out.table(&DETAIL)?;
        let columns = [
            "thread_id",
            "cpu",
            "irp",
            "offset_bytes",
            "size_bytes",
            "duration_ns",
            "disk",
            "irp_flags",
            "service_ns",
            "priority",
            "file_object",
            "path",
            "kind",
            "init_ns",
            "queue_ns",
        ];
        self.visit(trace, &columns, |view, row| {
            let process = trace
                .names
                .process(view.process_row.get(row), view.process_id.get(row));
            let kind = kind(view.kind.get(row));
            let label = match kind {
                "read" => "DiskRead",
                "write" => "DiskWrite",
                "flush" => "DiskFlush",
                "discard" => "DiskDiscard",
                _ => "DiskUnknown",
            };
            let values = [
                Value::Time(view.time_ns[row]),
                Value::Process(process),
                Value::number(view.thread_id.get(row)),
                Value::Number(view.cpu[row].into()),
                Value::hex(view.irp.get(row)),
                view.offset_bytes
                    .get(row)
                    .map_or(Value::Unknown, Value::count),
                Value::number(view.size_bytes.get(row)),
                Value::time(view.duration_ns.get(row)),
                Value::Number(view.disk[row].into()),
                Value::hex(view.irp_flags.get(row).map(u64::from)),
                Value::time(view.service_ns.get(row)),
                Value::number(view.priority.get(row)),
                Value::hex(view.file_object.get(row)),
                Value::quoted(view.path.get(row)),
                Value::Word(kind),
                Value::time(view.init_ns.get(row)),
                Value::time(view.queue_ns.get(row)),
            ];
            Ok(out.row(label, &values)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_not_called_a_flush() {
        let kinds = [Some("read"), Some("write"), Some("flush"), Some(""), None].map(kind);
        assert_eq!(kinds, ["read", "write", "flush", "unknown", "unknown"]);
    }

    #[test]
    fn unknown_times_are_in_no_sum_and_reported() {
        let (mut sum, mut left_out) = (Sum::default(), LeftOut::default());
        for (size, service, duration) in [
            (Some(512), None, Some(30)),
            (None, Some(5), Some(70)),
            (None, None, None),
        ] {
            sum.add(size, service, duration);
            left_out.add(service, duration);
        }
        let known = Sum {
            count: 3,
            bytes: 512,
            service_ns: Some(5),
            duration_ns: Some(100),
            longest_ns: Some(70),
        };
        assert_eq!(sum, known);
        assert_eq!(
            left_out.warnings().collect::<Vec<_>>(),
            [
                "the sums of DiskSvcTime exclude 2 of 3 requests, because the time is unknown",
                "the sums of IOTime exclude 1 of 3 requests, because the time is unknown",
            ]
        );

        let mut unknown = Sum::default();
        unknown.add(None, None, None);
        assert_eq!((unknown.service_ns, unknown.duration_ns), (None, None));
        assert_eq!(LeftOut::default().warnings().count(), 0);
    }
}
