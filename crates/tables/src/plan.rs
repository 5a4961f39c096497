//! The passes over a trace that the requested tables need.

use crate::Table;
use crate::register::{Reader, ReaderSet};

/// The passes over a trace that the requested tables need.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Readers of the first pass. They read tables of the whole trace, and data that is joined with rows of
    /// events.
    pub first: ReaderSet,
    /// Tables of events that were requested.
    pub rows: ReaderSet,
    /// Tables of events that are collected to make the requested rows. They include context switches and
    /// ready events if the scheduler needs these events.
    pub events: ReaderSet,
}

impl Plan {
    /// Finds the passes that the tables `wanted` need.
    pub fn new(wanted: &[Table]) -> Plan {
        let mut plan = Plan {
            first: ReaderSet::default(),
            rows: ReaderSet::default(),
            events: ReaderSet::default(),
        };
        for table in wanted {
            let reader = Reader::Table(*table);
            if table.is_of_events() {
                plan.rows.add(reader);
                plan.events.add(reader);
            } else {
                plan.first.add(reader);
            }
            add_needs(&mut plan.first, reader);
        }
        if plan.has_schedule() {
            plan.events.add(Reader::Table(Table::ContextSwitches));
            plan.events.add(Reader::Table(Table::ReadyThreads));
        }
        plan
    }

    /// Returns true if the scheduler is needed. The scheduler processes the context switches and ready events
    /// of all CPUs in time order.
    pub fn has_schedule(&self) -> bool {
        self.rows.has_table(Table::CpuRuns) || self.rows.has_table(Table::ReadyThreads)
    }

    /// Returns the number of times that the trace is read.
    pub fn passes(&self) -> u64 {
        u64::from(self.first.iter().any(Reader::is_read)) + u64::from(!self.rows.is_empty())
    }
}

/// Adds all readers that `reader` needs, directly or indirectly.
fn add_needs(set: &mut ReaderSet, reader: Reader) {
    for needed in reader.needs() {
        if !set.has(*needed) {
            set.add(*needed);
            add_needs(set, *needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(set: ReaderSet) -> Vec<Reader> {
        set.iter().collect()
    }

    #[test]
    fn a_table_brings_what_it_needs() {
        let plan = Plan::new(&[Table::HardFaults]);
        let first = [
            Reader::Table(Table::Processes),
            Reader::Table(Table::Threads),
            Reader::FileNames,
            Reader::Volumes,
        ];
        assert_eq!(tables(plan.first), first);
        assert_eq!(tables(plan.events), [Reader::Table(Table::HardFaults)]);
        assert_eq!(plan.passes(), 2);
    }

    #[test]
    fn runs_are_made_of_switches_that_are_not_rows() {
        let plan = Plan::new(&[Table::CpuRuns]);
        assert_eq!(tables(plan.rows), [Reader::Table(Table::CpuRuns)]);
        assert!(plan.events.has_table(Table::ContextSwitches));
        assert!(plan.events.has_table(Table::ReadyThreads));
    }

    #[test]
    fn headers_are_known_without_a_pass() {
        assert_eq!(Plan::new(&[Table::Sessions]).passes(), 0);
        assert_eq!(Plan::new(&[Table::Damages]).passes(), 1);
        assert_eq!(Plan::new(&[Table::ContextSwitches]).passes(), 1);
    }
}
