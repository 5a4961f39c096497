//! `laglab cpudisk`: CPU time and disk requests of each process, by time interval.

use std::collections::BTreeMap;

use session::missing_rows;
use tables::{CpuRunsView, DiskIoView, StoredTable, Table};

use crate::diskio::left_out;
use crate::intervals::Intervals;
use crate::process_filter::{ProcessFilter, WantedProcesses};
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer, percent};

static LAYOUT: Layout = Layout {
    name: "cpudisk",
    labelled: false,
    columns: &[
        Column::new("Start Time", "start_ns"),
        Column::new("  End Time", "end_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("  CPU Usage (us)", "cpu_ns"),
        Column::new("CPU Usage (%)", "cpu_percent"),
        Column::new("     Reads", "reads"),
        Column::new("    Read Bytes", "read_bytes"),
        Column::new("    Writes", "writes"),
        Column::new(" Written Bytes", "written_bytes"),
        Column::new("DiskSvcTime (us)", "service_ns"),
    ],
};

/// Options of `laglab cpudisk`.
#[derive(Clone, Debug, Default)]
pub struct CpuDisk {
    /// Length of the time intervals in nanoseconds. By default, the whole time is one interval.
    pub interval: Option<i64>,
    /// Filter by process.
    pub processes: ProcessFilter,
}

/// CPU and disk use of a process in an interval.
#[derive(Default)]
struct Used {
    cpu_ns: i64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    requests: u64,
    /// Sum of the known service times of the requests, in nanoseconds. `None` if no service time is known.
    service_ns: Option<i64>,
}

impl Used {
    fn add_request(&mut self, kind: Option<&str>, bytes: u64, service_ns: Option<i64>) {
        self.requests += 1;
        if let Some(ns) = service_ns {
            self.service_ns = Some(self.service_ns.unwrap_or(0).saturating_add(ns));
        }
        match kind {
            Some("read") => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Some("write") => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }

    /// Returns the sum of the known service times in nanoseconds: 0 if there are no requests, `None` if no service
    /// time is known.
    fn service_ns(&self) -> Option<i64> {
        match self.requests {
            0 => Some(0),
            _ => self.service_ns,
        }
    }
}

/// Sums by process and interval.
struct Sums<'a> {
    trace: &'a Recording,
    intervals: Intervals,
    wanted: WantedProcesses,
    /// Sums by index of the interval, row of the process, and id of the process.
    used: BTreeMap<(usize, Option<u32>, Option<u32>), Used>,
    requests: u64,
    /// Number of requests whose service time is unknown.
    without_service: u64,
}

impl Sums<'_> {
    fn add_runs(&mut self, table: &StoredTable) -> Result<(), Error> {
        const COLUMNS: [&str; 6] = [
            "start_ns",
            "end_ns",
            "cpu_ns",
            "thread_id",
            "process_row",
            "process_id",
        ];
        let trace = self.trace;
        let doubtful = trace.doubtful_runs()?;
        let range = trace.range.start..i64::MAX;
        for batch in trace.tables.batches(table, range, &COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !self.wanted.has(process.0, process.1) || doubtful.is_unsampled(&view, row) {
                    continue;
                }
                for (index, part) in self.intervals.parts(view.start_ns[row]..view.end_ns[row]) {
                    let used = self.used.entry((index, process.0, process.1)).or_default();
                    used.cpu_ns = used.cpu_ns.saturating_add(part);
                }
            }
        }
        Ok(())
    }

    fn add_requests(&mut self, table: &StoredTable) -> Result<(), Error> {
        const COLUMNS: [&str; 6] = [
            "time_ns",
            "kind",
            "size_bytes",
            "service_ns",
            "process_row",
            "process_id",
        ];
        let trace = self.trace;
        for batch in trace.tables.batches(table, trace.range.clone(), &COLUMNS) {
            let batch = batch?;
            let view = DiskIoView::new(&batch)?;
            for row in 0..view.len() {
                let process = (view.process_row.get(row), view.process_id.get(row));
                let index = self.intervals.at(view.time_ns[row]);
                let Some(index) = index.filter(|_| self.wanted.has(process.0, process.1)) else {
                    continue;
                };
                let used = self.used.entry((index, process.0, process.1)).or_default();
                let bytes = u64::from(view.size_bytes.get(row).unwrap_or(0));
                let service_ns = view.service_ns.get(row);
                self.requests += 1;
                self.without_service += u64::from(service_ns.is_none());
                used.add_request(view.kind.get(row), bytes, service_ns);
            }
        }
        Ok(())
    }
}

impl Report for CpuDisk {
    fn tables(&self) -> Vec<Table> {
        vec![Table::CpuRuns, Table::DiskIo, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let runs = trace.tables.table(Table::CpuRuns)?;
        let disk_io = trace.tables.table(Table::DiskIo)?;
        let (has_runs, has_disk_io) = (runs.rows() > 0, disk_io.rows() > 0);
        if !has_runs && !has_disk_io {
            trace.tables.recorded(Table::CpuRuns)?;
            return Ok(());
        }
        let span = trace.span(&[&runs, &disk_io]);
        let length = self.interval.unwrap_or(i64::MAX);
        let mut sums = Sums {
            trace,
            intervals: Intervals::new(span, length, 1)?,
            wanted: self.processes.wanted(&trace.names),
            used: BTreeMap::new(),
            requests: 0,
            without_service: 0,
        };
        let cpus = trace.cpus()?;
        sums.add_runs(&runs)?;
        sums.add_requests(&disk_io)?;

        out.table(&LAYOUT)?;
        for ((index, row, id), used) in &sums.used {
            let bounds = sums.intervals.bounds(*index);
            let all_ns = (bounds.end - bounds.start).saturating_mul(cpus.len() as i64);
            let of_runs = |value| if has_runs { value } else { Value::Unknown };
            let of_disks = |value| if has_disk_io { value } else { Value::Unknown };
            let values = [
                Value::Time(bounds.start),
                Value::Time(bounds.end),
                Value::Process(trace.names.process(*row, *id)),
                of_runs(Value::Time(used.cpu_ns)),
                of_runs(Value::Percent(percent(used.cpu_ns, all_ns))),
                of_disks(Value::count(used.reads)),
                of_disks(Value::count(used.read_bytes)),
                of_disks(Value::count(used.writes)),
                of_disks(Value::count(used.written_bytes)),
                of_disks(Value::time(used.service_ns())),
            ];
            out.row("", &values)?;
        }
        // If one of the two tables is missing, the report shows only the other table and a warning.
        for (has, table) in [(has_runs, Table::CpuRuns), (has_disk_io, Table::DiskIo)] {
            if !has {
                out.warn(missing_rows(table, trace.tables.store().info().is_linux()));
            }
        }
        if let Some(warning) = left_out(sums.without_service, sums.requests, "DiskSvcTime") {
            out.warn(warning);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_service_time_is_no_time_of_0() {
        let mut used = Used::default();
        assert_eq!(used.service_ns(), Some(0));
        used.add_request(Some("read"), 512, None);
        assert_eq!(used.service_ns(), None);
        used.add_request(Some("write"), 512, Some(7));
        used.add_request(None, 0, None);
        assert_eq!(used.service_ns(), Some(7));
        assert_eq!((used.reads, used.writes, used.requests), (1, 1, 3));
    }
}
