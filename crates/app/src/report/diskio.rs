//! `laglab diskio`: requests to disks.

use std::collections::{BTreeMap, HashMap};

use tables::{DiskIoView, Table};

use super::intervals::{self, Intervals, Usage};
use super::process_filter::ProcessFilter;
use super::recorded::{Recorded, batches};
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer, percent};
use crate::cli::Failure;

/// What the report rests on.
pub(crate) const DISK_IO: Recorded = Recorded {
    table: Table::DiskIo,
    what: "requests to disks",
    xperf: "DISK_IO+DISK_IO_INIT",
    wpr: "DiskIO and DiskIOInit",
};

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
#[derive(clap::Args, Debug)]
pub(crate) struct DiskIo {
    /// Show each request, in the order of their completion
    #[arg(long, conflicts_with_all = ["summary", "util"])]
    detail: bool,
    /// Sum by file, not by process
    #[arg(long, conflicts_with = "util")]
    summary: bool,
    /// Show how busy each disk was in intervals of so many milliseconds
    #[arg(long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = intervals::length)]
    util: Option<i64>,
    #[command(flatten)]
    processes: ProcessFilter,
}

/// Requests summed.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    service_ns: i64,
    duration_ns: i64,
    longest_ns: i64,
    /// Requests whose start is known; without any, their times are unknown.
    timed: u64,
}

impl Sum {
    fn add(&mut self, view: &DiskIoView<'_>, row: usize) {
        self.count += 1;
        self.bytes += u64::from(view.size_bytes.get(row).unwrap_or(0));
        if let Some(duration) = view.duration_ns.get(row) {
            self.timed += 1;
            self.duration_ns = self.duration_ns.saturating_add(duration);
            self.longest_ns = self.longest_ns.max(duration);
        }
        let service = view.service_ns.get(row).unwrap_or(0);
        self.service_ns = self.service_ns.saturating_add(service);
    }

    fn values(&self) -> [Value<'static>; 5] {
        let time = |ns| Value::time((self.timed > 0).then_some(ns));
        [
            Value::count(self.count),
            Value::count(self.bytes),
            time(self.service_ns),
            time(self.duration_ns),
            time(self.longest_ns),
        ]
    }
}

/// The names of kinds of requests, so that they can be kept.
fn kind(name: Option<&str>) -> &'static str {
    match name {
        Some("read") => "read",
        Some("write") => "write",
        _ => "flush",
    }
}

impl Report for DiskIo {
    fn tables(&self) -> Vec<Table> {
        vec![Table::DiskIo]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        if self.detail {
            return self.detail(trace, out);
        }
        if let Some(length) = self.util {
            return self.utilization(trace, out, length);
        }
        match self.summary {
            true => self.by_file(trace, out),
            false => self.by_process(trace, out),
        }
    }
}

impl DiskIo {
    /// Gives `visit` the wanted rows, with the columns.
    fn visit(
        &self,
        trace: &Recording,
        columns: &[&str],
        mut visit: impl FnMut(&DiskIoView<'_>, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let table = DISK_IO.of(trace)?;
        let wanted = self.processes.wanted(&trace.names);
        let columns: Vec<&str> = ["time_ns", "process_row", "process_id"]
            .iter()
            .chain(columns)
            .copied()
            .collect();
        for batch in batches(&table, trace.range.clone(), &columns) {
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

    fn by_process(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        type Key = (u32, Option<u32>, Option<u32>, &'static str);
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        let columns = ["disk", "kind", "size_bytes", "service_ns", "duration_ns"];
        self.visit(trace, &columns, |view, row| {
            let process = (view.process_row.get(row), view.process_id.get(row));
            let key = (
                view.disk[row],
                process.0,
                process.1,
                kind(view.kind.get(row)),
            );
            sums.entry(key).or_default().add(view, row);
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
        Ok(())
    }

    fn by_file(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        type Key = (u32, &'static str);
        let mut sums: HashMap<Option<Box<str>>, BTreeMap<Key, Sum>> = HashMap::new();
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
            sums.entry(path)
                .or_default()
                .entry(key)
                .or_default()
                .add(view, row);
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
        Ok(())
    }

    fn utilization(&self, trace: &Recording, out: &mut Writer, length: i64) -> Result<(), Failure> {
        let table = DISK_IO.of(trace)?;
        let intervals = Intervals::new(trace.span(&[&table]), length, 1)?;
        let mut disks: BTreeMap<u32, Usage> = BTreeMap::new();
        self.visit(trace, &["disk", "service_ns"], |view, row| {
            let Some(service) = view.service_ns.get(row) else {
                return Ok(());
            };
            let disk = view.disk[row];
            if !disks.contains_key(&disk) {
                // As many disks as fit; a hostile trace could name any number of them.
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

    fn detail(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        DISK_IO.of(trace)?;
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
                _ => "DiskFlush",
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
                Value::Hex(view.irp_flags[row].into()),
                Value::time(view.service_ns.get(row)),
                Value::Number(view.priority[row].into()),
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
