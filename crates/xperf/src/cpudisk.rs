//! `laglab cpudisk`: CPU time and disk requests of each process, by time interval. It stays code, because it joins two
//! tables, and a run counts in each interval that it overlaps.

use std::collections::BTreeMap;

use session::missing_rows;
use tables::{CpuRunsView, DiskIoView, Table};

use crate::diskio::left_out;
use crate::intervals::Intervals;
use crate::layout::Format::{Plain, Process, Time};
use crate::layout::{Column, Layout, ProcessKey, Value};
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer, percent};

static LAYOUT: Layout = Layout {
    name: "cpudisk",
    columns: &[
        Column::new("Start Time", "start_ns", Time),
        Column::new("  End Time", "end_ns", Time),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  CPU Usage (us)", "cpu_ns", Time),
        Column::new("CPU Usage (%)", "cpu_percent", Plain),
        Column::new("     Reads", "reads", Plain),
        Column::new("    Read Bytes", "read_bytes", Plain),
        Column::new("    Writes", "writes", Plain),
        Column::new(" Written Bytes", "written_bytes", Plain),
        Column::new("DiskSvcTime (us)", "service_ns", Time),
    ],
};

/// Options of `laglab cpudisk`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDisk {
    /// Length of the time intervals in nanoseconds. By default, the whole time is one interval.
    pub interval: Option<i64>,
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

impl Report for CpuDisk {
    fn tables(&self) -> Vec<Table> {
        vec![Table::CpuRuns, Table::DiskIo, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let [runs, disk_io] =
            [Table::CpuRuns, Table::DiskIo].map(|table| trace.tables.table(table));
        let (runs, disk_io) = (runs?, disk_io?);
        let (has_runs, has_disk_io) = (runs.rows() > 0, disk_io.rows() > 0);
        if !has_runs && !has_disk_io {
            trace.tables.recorded(Table::CpuRuns)?;
            return Ok(());
        }
        let span = trace.span(&[&runs, &disk_io]);
        let intervals = Intervals::new(span, self.interval.unwrap_or(i64::MAX), 1)?;
        let doubtful = trace.doubtful_runs()?;
        let cpus = trace.cpus()?.len() as i64;
        let mut used: BTreeMap<(usize, ProcessKey), Used> = BTreeMap::new();
        let columns = ["cpu_ns", "thread_id", "process_row", "process_id"];
        trace
            .select(runs, Times::Overlapping)
            .for_each(&columns, |batch, rows| {
                let view = CpuRunsView::new(batch)?;
                for &row in rows
                    .iter()
                    .filter(|row| !doubtful.is_unsampled(&view, **row))
                {
                    let process = (view.process_row.get(row), view.process_id.get(row));
                    for (index, part) in intervals.parts(view.start_ns[row]..view.end_ns[row]) {
                        let used = used.entry((index, process)).or_default();
                        used.cpu_ns = used.cpu_ns.saturating_add(part);
                    }
                }
                Ok(())
            })?;
        let (mut requests, mut without_service) = (0, 0);
        let columns = [
            "kind",
            "size_bytes",
            "service_ns",
            "process_row",
            "process_id",
        ];
        trace
            .select(disk_io, Times::At("time_ns"))
            .for_each(&columns, |batch, rows| {
                let view = DiskIoView::new(batch)?;
                for &row in rows {
                    let Some(index) = intervals.at(view.time_ns[row]) else {
                        continue;
                    };
                    let process = (view.process_row.get(row), view.process_id.get(row));
                    let bytes = u64::from(view.size_bytes.get(row).unwrap_or(0));
                    let service_ns = view.service_ns.get(row);
                    requests += 1;
                    without_service += u64::from(service_ns.is_none());
                    let used = used.entry((index, process)).or_default();
                    used.add_request(view.kind.get(row), bytes, service_ns);
                }
                Ok(())
            })?;
        let mut table = out.table(&LAYOUT, &trace.names);
        for ((index, process), used) in &used {
            let bounds = intervals.bounds(*index);
            let all_ns = (bounds.end - bounds.start).saturating_mul(cpus);
            let of_runs = |value| if has_runs { value } else { Value::Unknown };
            let of_disks = |value| if has_disk_io { value } else { Value::Unknown };
            table.row(&[
                bounds.start.into(),
                bounds.end.into(),
                Value::Process(*process),
                of_runs(used.cpu_ns.into()),
                of_runs(Value::Share(percent(used.cpu_ns, all_ns))),
                of_disks(used.reads.into()),
                of_disks(used.read_bytes.into()),
                of_disks(used.writes.into()),
                of_disks(used.written_bytes.into()),
                of_disks(used.service_ns().into()),
            ])?;
        }
        // If one of the two tables is missing, the report shows only the other table and a warning.
        for (has, table) in [(has_runs, Table::CpuRuns), (has_disk_io, Table::DiskIo)] {
            if !has {
                out.warn(missing_rows(table, trace.tables.store().info().is_linux()));
            }
        }
        if let Some(warning) = left_out(without_service, requests, "DiskSvcTime") {
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
