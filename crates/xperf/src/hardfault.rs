//! `laglab hardfault`: page faults that caused a disk read.

use tables::Table;

use crate::layout::Fold::{Count, Max, Sum};
use crate::layout::Format::{Hex, Plain, Process, Time};
use crate::layout::{Column, EVENT, Layout};
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer};

static BY_PROCESS: Layout = Layout {
    name: "hardfault",
    columns: &[
        Column::new("Process Name ( PID)", "", Process),
        Column::new("     Count", "count", Plain).fold(Count),
        Column::new("         Bytes", "size_bytes", Plain).fold(Sum),
        Column::new("ElapsedTime (us)", "duration_ns", Time).fold(Sum),
        Column::new("Longest (us)", "longest_ns", Time)
            .stored("duration_ns")
            .fold(Max),
    ],
};

static DETAIL: Layout = Layout {
    name: "hardfault_detail",
    columns: &[
        Column::new(EVENT, "", Plain).value(|_| "HardFault".into()),
        Column::new(" TimeStamp", "time_ns", Time),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  ThreadID", "thread_id", Plain),
        Column::new("       VirtualAddr", "address", Hex),
        Column::new("        ByteOffset", "offset_bytes", Plain),
        Column::new("    IOSize", "size_bytes", Plain),
        Column::new("ElapsedTime", "duration_ns", Time),
        Column::new("        FileObject", "file_object", Hex),
    ],
};

/// Options of `laglab hardfault`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HardFault {
    /// True to show each fault.
    pub detail: bool,
}

impl Report for HardFault {
    fn tables(&self) -> Vec<Table> {
        vec![Table::HardFaults]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let faults = trace.rows(Table::HardFaults, Times::At("time_ns"))?;
        if self.detail {
            return faults.list(&DETAIL, out);
        }
        faults.sums(&BY_PROCESS, &["count"], out)?;
        Ok(())
    }
}
