//! Kinds of events from which the rows of tables are made.

use crate::Kind;

/// Kinds of events from which the rows of a table are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableNeeds {
    /// Name of the table in SQL.
    pub table: &'static str,
    /// Name of its rows, in the plural.
    pub rows: &'static str,
    /// Kinds of events to record. Processes and images are included if the rows refer to them.
    pub kinds: &'static [Kind],
    /// Further advice for the user; empty if there is none.
    pub remark: &'static str,
}

const fn needs(table: &'static str, rows: &'static str, kinds: &'static [Kind]) -> TableNeeds {
    TableNeeds {
        table,
        rows,
        kinds,
        remark: "",
    }
}

impl TableNeeds {
    const fn remark(self, remark: &'static str) -> TableNeeds {
        TableNeeds { remark, ..self }
    }
}

/// Needs of all tables whose rows depend on the recorded kinds of events.
pub static TABLES: [TableNeeds; 23] = [
    needs(
        "cpu_runs",
        "context switches",
        &[
            Kind::Processes,
            Kind::Images,
            Kind::ContextSwitches,
            Kind::ReadyThreads,
        ],
    ),
    needs(
        "samples",
        "CPU samples",
        &[
            Kind::Processes,
            Kind::Images,
            Kind::Samples,
            Kind::SampleStacks,
        ],
    ),
    needs(
        "interrupts",
        "DPCs and ISRs",
        &[Kind::Images, Kind::Dpcs, Kind::ServiceRoutines],
    ),
    needs(
        "ready_threads",
        "threads made ready",
        &[
            Kind::Processes,
            Kind::Images,
            Kind::ContextSwitches,
            Kind::ReadyThreads,
        ],
    ),
    needs(
        "context_switches",
        "context switches",
        &[Kind::Processes, Kind::ContextSwitches],
    ),
    needs("priorities", "priority changes", &[Kind::Priorities])
        .remark("the provider Microsoft-Windows-Kernel-Process logs them too"),
    needs(
        "stacks",
        "stacks",
        &[
            Kind::Processes,
            Kind::Images,
            Kind::SwitchStacks,
            Kind::ReadyStacks,
            Kind::SampleStacks,
        ],
    ),
    needs(
        "disk_io",
        "disk requests",
        &[Kind::DiskRequests, Kind::DiskStarts],
    ),
    needs(
        "file_io",
        "file operations",
        &[Kind::FileOperations, Kind::FileStarts, Kind::FileNames],
    ),
    needs("hard_faults", "hard page faults", &[Kind::HardFaults]),
    needs("network", "network events", &[Kind::Traffic]),
    needs("packets", "packets", &[Kind::Packets]).remark(
        "netsh trace start capture=yes and pktmon capture them; a pcapng file next to the trace is \
         read too",
    ),
    needs(
        "focus",
        "changes of the window in focus",
        &[Kind::Processes, Kind::Focus],
    ),
    needs("input", "input events", &[Kind::Input]).remark(
        "run laglab record input while recording; Microsoft-Windows-Win32k and UIforETW's \
         Multi-Input are read too",
    ),
    needs("timer_requests", "timer requests", &[Kind::TimerRequests]),
    needs(
        "dotnet_pauses",
        "pauses of .NET",
        &[Kind::Processes, Kind::DotnetPauses],
    ),
    needs(
        "dotnet_pools",
        "thread pools of .NET",
        &[Kind::Processes, Kind::DotnetPools],
    ),
    needs("process_freezes", "process freezes", &[Kind::Freezes]),
    needs("processes", "process events", &[Kind::Processes]),
    needs("threads", "thread events", &[Kind::Processes]),
    needs("images", "image events", &[Kind::Images]),
    needs("marks", "marks", &[])
        .remark("wpr -marker TEXT or xperf -m TEXT writes one while a recording runs"),
    needs("events", "provider events", &[])
        .remark("xperf -start NAME -on PROVIDER, or a WPR profile that names the providers"),
];

/// Returns the needs of the table with this name in SQL. Returns `None` if the rows of the table do not
/// depend on the recorded kinds of events.
pub fn for_table(table: &str) -> Option<&'static TableNeeds> {
    TABLES.iter().find(|needs| needs.table == table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn table_names_are_unique_and_found() {
        let names: BTreeSet<&str> = TABLES.iter().map(|needs| needs.table).collect();
        assert_eq!(names.len(), TABLES.len());
        assert!(
            names
                .iter()
                .all(|name| for_table(name).unwrap().table == *name)
        );
        assert_eq!(for_table("volumes"), None);
    }

    #[test]
    fn each_table_has_kinds_or_a_remark() {
        for needs in &TABLES {
            assert!(
                !needs.kinds.is_empty() || !needs.remark.is_empty(),
                "{}",
                needs.table
            );
        }
    }
}
