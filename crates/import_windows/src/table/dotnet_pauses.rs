//! `dotnet_pauses`: time ranges in which .NET stopped the threads of programs.

use std::collections::HashMap;

use tables::import::{Interval, UnreadableEvents};
use tables::{DotnetPauses, Table};

use crate::providers::{DOTNET_RUNTIME, buffered_fields, number};
use crate::register::{Reads, TraceFacts, WholeTable};

/// Id of the event that reports the start of a collection.
const COLLECTION: u16 = 1;

/// Id of the event that reports that all threads were restarted.
const RESTARTED: u16 = 3;

/// Id of the event that reports that the runtime begins to stop threads.
const STOPS: u16 = 9;

/// Pause of a process. The event that ends the pause was not read yet.
struct Pause {
    interval: Interval,
    reason: Option<u32>,
    collection: Option<Collection>,
}

#[derive(Clone, Copy)]
struct Collection {
    number: u32,
    generation: Option<u32>,
    kind: Option<u32>,
    reason: Option<u32>,
}

impl Pause {
    fn new(interval: Interval) -> Pause {
        Pause {
            interval,
            reason: None,
            collection: None,
        }
    }
}

impl WholeTable for DotnetPauses {
    const READS: Reads = Reads {
        providers: &[(
            DOTNET_RUNTIME,
            &[
                COLLECTION..=COLLECTION,
                RESTARTED..=RESTARTED,
                STOPS..=STOPS,
            ],
        )],
        ..Reads::NOTHING
    };

    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> DotnetPauses {
        let (start_ns, end_ns) = facts.span_ns;
        let mut open: HashMap<u32, Pause> = HashMap::new();
        let mut rows: Vec<Pause> = Vec::new();
        for event in &facts.events(Table::DotnetPauses) {
            let fields = buffered_fields(DOTNET_RUNTIME, event);
            let Some((fields, id)) = fields.zip(event.process_id) else {
                unreadable.add(Table::DotnetPauses, event.place);
                continue;
            };
            match event.id {
                STOPS => {
                    let pause = Pause {
                        reason: number(&fields, "Reason"),
                        ..Pause::new(Interval::open(id, event.time_ns))
                    };
                    open.entry(id).or_insert(pause);
                }
                COLLECTION => {
                    if let Some(pause) = open.get_mut(&id)
                        && let Some(collection) = number(&fields, "Count")
                    {
                        pause.collection.get_or_insert(Collection {
                            number: collection,
                            generation: number(&fields, "Depth"),
                            kind: number(&fields, "Type"),
                            reason: number(&fields, "Reason"),
                        });
                    }
                }
                _ => {
                    let before = || Pause::new(Interval::since_before(id, start_ns));
                    let pause = open.remove(&id).unwrap_or_else(before);
                    rows.push(Pause {
                        interval: pause.interval.ended(event.time_ns),
                        ..pause
                    });
                }
            }
        }
        rows.extend(open.into_values().map(|pause| Pause {
            interval: pause.interval.cut(end_ns),
            ..pause
        }));
        rows.sort_by_key(|pause| (pause.interval.start_ns, pause.interval.process_id));
        let mut table = DotnetPauses::default();
        for Pause {
            interval,
            reason,
            collection,
        } in rows
        {
            table.start_ns.push(interval.start_ns);
            table.end_ns.push(interval.end_ns);
            table.starts_at_event.push(interval.starts_at_event);
            table.ends_at_event.push(interval.ends_at_event);
            table.process_id.push(interval.process_id);
            let row = (facts.processes).lookup(interval.process_id, interval.start_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
            table
                .for_collection
                .push(reason.map(|reason| matches!(reason, 1 | 6)));
            table.collection.push(collection.map(|c| c.number));
            table.generation.push(collection.and_then(|c| c.generation));
            table.collection_kind.push(collection.and_then(|c| c.kind));
            table
                .collection_reason
                .push(collection.and_then(|c| c.reason));
        }
        table
    }
}
