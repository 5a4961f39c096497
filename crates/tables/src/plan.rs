//! What is to be read for the tables asked for.

use crate::Table;

/// What is to be read for the tables asked for.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// In the pass for what lived during the trace, which rows of events are joined with.
    pub(crate) whole: Wanted,
    /// In the pass for events.
    pub(crate) events: Wanted,
    /// Context switches and ready events are put in order.
    pub(crate) schedules: bool,
    /// Runs are made of them.
    pub(crate) runs: bool,
}

impl Plan {
    pub(crate) fn new(wanted: &[Table]) -> Plan {
        let of_events = |table: &&Table| table.is_of_events();
        let mut whole = Wanted::default();
        let mut events = Wanted::default();
        for table in wanted.iter().filter(|table| !of_events(table)) {
            match table {
                // Headers tell all of it.
                Table::Sessions => {}
                // No trace has any.
                Table::LatencySamples => {}
                Table::Focus | Table::ProcessFreezes => {
                    whole.add(Table::Processes);
                    whole.add(*table);
                }
                _ => whole.add(*table),
            }
        }
        for table in wanted.iter().filter(of_events) {
            events.add(*table);
            // What its rows are joined with.
            let with: &[Table] = match table {
                Table::ContextSwitches => &[],
                Table::Interrupts => &[Table::Images],
                Table::HardFaults
                | Table::Network
                | Table::Priorities
                | Table::Packets
                | Table::Input
                | Table::TimerRequests
                | Table::Marks => &[Table::Processes, Table::Threads],
                _ => &[
                    Table::Processes,
                    Table::Threads,
                    Table::Images,
                    Table::Stacks,
                ],
            };
            with.iter().for_each(|table| whole.add(*table));
            if matches!(table, Table::DiskIo | Table::HardFaults | Table::FileIo) {
                whole.0 |= FILE_NAMES;
            }
            if *table == Table::Events {
                whole.0 |= METADATA;
            }
        }
        let runs = events.has(Table::CpuRuns);
        let schedules = runs || events.has(Table::ReadyThreads);
        if schedules {
            events.add(Table::ContextSwitches);
            events.add(Table::ReadyThreads);
        }
        Plan {
            whole,
            events,
            schedules,
            runs,
        }
    }
}

/// Tables, as bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted(u32);

/// The names of files, which are of no table but of rows of several.
const FILE_NAMES: u32 = 1 << 31;

/// Where the trace says what its events mean.
const METADATA: u32 = 1 << 30;

impl Wanted {
    fn add(&mut self, table: Table) {
        self.0 |= 1 << table as u32;
    }

    #[inline]
    pub(crate) fn has(self, table: Table) -> bool {
        self.0 >> table as u32 & 1 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether names of files are wanted.
    pub(crate) fn has_file_names(self) -> bool {
        self.0 & FILE_NAMES != 0
    }

    /// Whether the events are wanted that say what events mean.
    #[inline]
    pub(crate) fn has_metadata(self) -> bool {
        self.0 & METADATA != 0
    }
}
