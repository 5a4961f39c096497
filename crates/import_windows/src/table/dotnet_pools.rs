//! `dotnet_pools`: changes of the number of threads in the thread pools of .NET.

use tables::import::UnreadableEvents;
use tables::{DotnetPools, Table};

use crate::providers::{DOTNET_RUNTIME, buffered_fields, number};
use crate::register::{Reads, TraceFacts, WholeTable};

/// Id of the event that reports a change of the number of threads.
const ADJUSTED: u16 = 55;

/// Reason of a change: the pool starved.
const STARVATION: u32 = 6;

impl WholeTable for DotnetPools {
    const READS: Reads = Reads {
        providers: &[(DOTNET_RUNTIME, &[ADJUSTED..=ADJUSTED])],
        ..Reads::NOTHING
    };

    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> DotnetPools {
        let mut table = DotnetPools::default();
        for event in &facts.events(Table::DotnetPools) {
            let change = buffered_fields(DOTNET_RUNTIME, event).and_then(|fields| {
                Some((
                    event.process_id?,
                    number(&fields, "NewWorkerThreadCount")?,
                    number(&fields, "Reason")?,
                ))
            });
            let Some((id, threads, reason)) = change else {
                unreadable.add(Table::DotnetPools, event.place);
                continue;
            };
            table.time_ns.push(event.time_ns);
            table.process_id.push(id);
            let row = facts.processes.lookup(id, event.time_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
            table.threads.push(threads);
            table.reason.push(reason);
            table.starved.push(reason == STARVATION);
        }
        table
    }
}
