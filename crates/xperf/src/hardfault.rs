//! `laglab hardfault`: page faults that caused a disk read.

use std::collections::BTreeMap;

use tables::{HardFaultsView, Table};

use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer};

static BY_PROCESS: Layout = Layout {
    name: "hardfault",
    labelled: false,
    columns: &[
        Column::process("Process Name ( PID)", ""),
        Column::new("     Count", "count"),
        Column::new("         Bytes", "size_bytes"),
        Column::new("ElapsedTime (us)", "duration_ns"),
        Column::new("Longest (us)", "longest_ns"),
    ],
};

static DETAIL: Layout = Layout {
    name: "hardfault_detail",
    labelled: true,
    columns: &[
        Column::new(" TimeStamp", "time_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("  ThreadID", "thread_id"),
        Column::new("       VirtualAddr", "address"),
        Column::new("        ByteOffset", "offset_bytes"),
        Column::new("    IOSize", "size_bytes"),
        Column::new("ElapsedTime", "duration_ns"),
        Column::new("        FileObject", "file_object"),
    ],
};

/// Options of `laglab hardfault`.
#[derive(Clone, Debug, Default)]
pub struct HardFault {
    /// True to show each fault.
    pub detail: bool,
    /// Filter by process.
    pub processes: ProcessFilter,
}

/// Sums over page faults.
#[derive(Default)]
struct Sum {
    count: u64,
    /// Number of bytes that were read. Unknown on Linux.
    bytes: Option<u64>,
    duration_ns: Option<i64>,
    longest_ns: Option<i64>,
}

impl Report for HardFault {
    fn tables(&self) -> Vec<Table> {
        vec![Table::HardFaults]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        const COLUMNS: [&str; 9] = [
            "address",
            "duration_ns",
            "file_object",
            "offset_bytes",
            "process_id",
            "process_row",
            "size_bytes",
            "thread_id",
            "time_ns",
        ];
        let table = trace.tables.recorded(Table::HardFaults)?;
        let wanted = self.processes.wanted(&trace.names);
        let mut sums: BTreeMap<(Option<u32>, Option<u32>), Sum> = BTreeMap::new();
        if self.detail {
            out.table(&DETAIL)?;
        }
        for batch in trace.tables.batches(&table, trace.range.clone(), &COLUMNS) {
            let batch = batch?;
            let view = HardFaultsView::new(&batch)?;
            for row in 0..view.len() {
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !trace.range.contains(&view.time_ns[row]) || !wanted.has(process.0, process.1) {
                    continue;
                }
                let duration = view.duration_ns.get(row);
                if self.detail {
                    let values = [
                        Value::Time(view.time_ns[row]),
                        Value::Process(trace.names.process(process.0, process.1)),
                        Value::Number(view.thread_id[row].into()),
                        Value::Hex(view.address[row]),
                        view.offset_bytes
                            .get(row)
                            .map_or(Value::Unknown, Value::count),
                        Value::number(view.size_bytes.get(row)),
                        Value::time(duration),
                        Value::hex(view.file_object.get(row)),
                    ];
                    out.row("HardFault", &values)?;
                    continue;
                }
                let sum = sums.entry(process).or_default();
                sum.count += 1;
                if let Some(bytes) = view.size_bytes.get(row) {
                    sum.bytes = Some(sum.bytes.unwrap_or(0) + u64::from(bytes));
                }
                if let Some(duration) = duration {
                    let so_far = sum.duration_ns.unwrap_or(0);
                    sum.duration_ns = Some(so_far.saturating_add(duration));
                    sum.longest_ns = sum.longest_ns.max(Some(duration));
                }
            }
        }
        if self.detail {
            return Ok(());
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(process, sum)| (std::cmp::Reverse(sum.count), *process));
        out.table(&BY_PROCESS)?;
        for ((row, id), sum) in sums {
            let values = [
                Value::Process(trace.names.process(row, id)),
                Value::count(sum.count),
                sum.bytes.map_or(Value::Unknown, Value::count),
                Value::time(sum.duration_ns),
                Value::time(sum.longest_ns),
            ];
            out.row("", &values)?;
        }
        Ok(())
    }
}
