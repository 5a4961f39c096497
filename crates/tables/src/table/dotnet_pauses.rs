//! `dotnet_pauses`: time ranges in which .NET stopped the threads of programs.

use std::collections::HashMap;

use crate::column::Nullable;
use crate::intervals::Interval;
use crate::providers::{DOTNET_RUNTIME, buffered_fields, number};
use crate::register::{Reader, Reads, Register, TraceFacts, WholeTable};
use crate::schema::table;
use crate::table::Table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per time range in which the .NET runtime of a process stopped the threads that run managed code. The
    /// runtime does this for garbage collections and for other reasons.
    ///
    /// A background collection stops the threads several times, so it can have several rows. Rows of collections of
    /// younger generations can be between these rows.
    DotnetPauses, DotnetPausesView = "dotnet_pauses" sorted by start_ns
        title ".NET Pauses"
        record "pauses of .NET (provider Microsoft-Windows-DotNETRuntime with keyword 0x1)"
        lasts start_ns to end_ns
    {
        /// Time at which the runtime began to stop threads, or the trace's start.
        start_ns: Vec<i64> = "DotNETRuntime GC/SuspendEEStart: header time",
        /// Time at which all threads could go on, or the trace's end.
        end_ns: Vec<i64> = "DotNETRuntime GC/RestartEEStop: header time",
        /// True if an event reports the stop at `start_ns`.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// True if an event reports the restart at `end_ns`.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// Process whose threads were stopped.
        process_id: Vec<u32> = "header: process of the event",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
        /// True if the runtime stopped the threads for a collection, or for a part of a collection. False for other
        /// reasons, such as a debugger.
        for_collection: Nullable<bool> = "GC/SuspendEEStart: Reason 1 or 6",
        /// Number of the first collection that began during the pause. The runtime counts the collections.
        collection: Nullable<u32> = "GC/Start: Count",
        /// Generation of the collection in `collection`: 0, 1 or 2. Generation 2 is a full collection.
        generation: Nullable<u32> = "GC/Start: Depth",
        /// Kind of the collection in `collection`: 0 blocking, 1 background, 2 blocking during a background collection.
        collection_kind: Nullable<u32> = "GC/Start: Type",
        /// Cause of the collection in `collection`: 0 small objects allocated, 1 induced, 2 memory is low, 4 large
        /// objects allocated, 5 and 6 out of space, 7 induced but not forced as blocking.
        collection_reason: Nullable<u32> = "GC/Start: Reason",
    }
}

/// Id of the event that reports the start of a collection.
const COLLECTION: u16 = 1;
/// Id of the event that reports that all threads were restarted.
const RESTARTED: u16 = 3;
/// Id of the event that reports that the runtime begins to stop threads.
const STOPS: u16 = 9;

impl Register for DotnetPauses {
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
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

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
