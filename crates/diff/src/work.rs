//! Units of work, to which times are related.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use explain::Reader;
use selection::{Condition, Expression, Selection};
use serde::{Serialize, Serializer};
use tables::{
    CpuRunsView, DiskIoView, EventsView, MarksView, NetworkView, PacketsView, StoreError, Table,
};

use crate::blocks::Blocks;

/// Unit of work. Times are compared per unit of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// KiB of sent and received network traffic.
    NetworkKib,
    /// Sends and receives that TCP and UDP report. One report may cover the bytes of many packets.
    Transfers,
    /// KiB of disk requests.
    DiskKib,
    /// Presented frames of all programs (DXGI).
    Frames,
    /// Marks of the trace.
    Marks,
    /// DPCs.
    Dpcs,
    /// Waits of the threads with this name.
    Waits(String),
}

/// Unit of work, its name on the command line, and its name in sentences.
const NAMES: [(Work, &str, &str); 6] = [
    (Work::NetworkKib, "network-kib", "KiB of network traffic"),
    (Work::Transfers, "transfers", "send or receive"),
    (Work::DiskKib, "disk-kib", "KiB of disk requests"),
    (Work::Frames, "frames", "frame"),
    (Work::Marks, "marks", "mark"),
    (Work::Dpcs, "dpcs", "DPC"),
];

/// Prefix of the unit "waits of a thread" on the command line. The name of the thread follows.
const WAITS: &str = "waits=";

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Work, String> {
        if let Some(thread) = text.strip_prefix(WAITS).filter(|name| !name.is_empty()) {
            return Ok(Work::Waits(thread.to_owned()));
        }
        let named = NAMES.into_iter().find(|(_, name, _)| *name == text);
        named.map(|(work, _, _)| work).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(_, name, _)| *name).collect();
            format!("expected {} or {WAITS}THREAD", names.join(", "))
        })
    }
}

/// Formats the unit in words that can follow "per".
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Waits(thread) => write!(f, "wait of {thread}"),
            other => {
                let named = NAMES.iter().find(|(work, _, _)| work == other);
                f.write_str(named.map_or("", |(_, _, words)| words))
            }
        }
    }
}

impl Serialize for Work {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Work::Waits(thread) => serializer.serialize_str(&format!("{WAITS}{thread}")),
            other => {
                let named = NAMES.iter().find(|(work, _, _)| work == other);
                serializer.serialize_str(named.map_or("", |(_, name, _)| name))
            }
        }
    }
}

/// Three values: the providers of events about presented frames, the name of the event at the start of a
/// present, and the opcode of this event.
const PRESENTS: (&[&str], &str, u8) = (
    &["Microsoft-Windows-DXGI", "Microsoft-Windows-D3D9"],
    "Present",
    1,
);

impl Work {
    /// Returns the selection of the rows that count as work, and the expression for the amount of work. The
    /// amount is a count, or a number of bytes if the unit is KiB. `threads` are the rows of the threads
    /// whose waits count as work.
    pub(crate) fn selection(&self, blocks: &Blocks, threads: &[u32]) -> (Selection, Expression) {
        let (selection, time, amount) = match self {
            Work::NetworkKib | Work::Transfers => {
                let selection = Selection::new(Table::Network)
                    .filter(Condition::is_text("action", &["send", "receive"]));
                let amount = match self {
                    Work::Transfers => Expression::Count,
                    _ => Expression::Sum("size_bytes"),
                };
                (selection, "time_ns", amount)
            }
            Work::DiskKib => {
                let selection = Selection::new(Table::DiskIo);
                (selection, "time_ns", Expression::Sum("size_bytes"))
            }
            Work::Frames => {
                let (providers, event, opcode) = PRESENTS;
                let selection = Selection::new(Table::Events)
                    .filter(Condition::is_text("provider", providers))
                    .filter(Condition::is_text("event", &[event]))
                    .filter(Condition::is("opcode", opcode));
                (selection, "time_ns", Expression::Count)
            }
            Work::Marks => (Selection::new(Table::Marks), "time_ns", Expression::Count),
            Work::Dpcs => {
                let selection = Selection::new(Table::Interrupts)
                    .filter(Condition::IsNotText(
                        "kind",
                        crate::interrupts::ISRS.map(str::to_owned).to_vec(),
                    ))
                    .filter(Condition::IsKnown("exclusive_ns"));
                (selection, "end_ns", Expression::Count)
            }
            Work::Waits(_) => {
                let selection = Selection::new(Table::CpuRuns)
                    .filter(Condition::is_one_of("thread_row", threads))
                    .filter(Condition::AtLeast("waits_ns", 1));
                (selection, "start_ns", Expression::Count)
            }
        };
        let selection = match &blocks.part {
            Some(part) => selection.within(time, part.clone()),
            None => selection,
        };
        (selection, amount)
    }
}

/// Returns the rows of the threads with this name.
pub(crate) fn threads_called(names: &tables::Identities, name: &str) -> Vec<u32> {
    let rows = 0..names.thread_rows() as u32;
    let is_called = |row: &u32| {
        let known = names.thread_name(*row);
        known.is_some_and(|known| known.to_lowercase() == name.to_lowercase())
    };
    rows.filter(is_called).collect()
}

/// Returns the amounts of work in each block, by unit of work. Always computes network traffic, transfers
/// and DPCs. Also computes the requested unit of work. Units that did not occur are left out.
pub(crate) fn read(
    reader: &Reader<'_>,
    blocks: &Blocks,
    dpcs: &[f64],
    asked: Option<&Work>,
) -> Result<BTreeMap<Work, Vec<f64>>, StoreError> {
    let mut all = BTreeMap::new();
    let none = || vec![0.0; blocks.count];
    let (mut kib, mut transfers) = (none(), none());
    each(
        reader,
        Table::Network,
        &["time_ns", "action", "size_bytes"],
        |batch| {
            let view = NetworkView::new(batch)?;
            for row in 0..view.len() {
                let block = blocks.at(view.time_ns[row]);
                if let (Some("send" | "receive"), Some(block)) = (view.action.get(row), block) {
                    kib[block] += f64::from(view.size_bytes[row]) / 1024.0;
                    transfers[block] += 1.0;
                }
            }
            Ok(())
        },
    )?;
    all.insert(Work::NetworkKib, kib);
    all.insert(Work::Transfers, transfers);
    all.insert(Work::Dpcs, dpcs.to_vec());
    if let Some(asked) = asked
        && !all.contains_key(asked)
    {
        all.insert(asked.clone(), asked_for(reader, blocks, asked)?);
    }
    all.retain(|_, blocks| blocks.iter().any(|amount| *amount > 0.0));
    Ok(all)
}

/// Returns the amounts of the requested unit of work in each block. Only units that `read` does not always compute are
/// read here.
fn asked_for(reader: &Reader<'_>, blocks: &Blocks, asked: &Work) -> Result<Vec<f64>, StoreError> {
    let mut amounts = vec![0.0; blocks.count];
    let mut add = |ns: i64, amount: f64| {
        if let Some(block) = blocks.at(ns) {
            amounts[block] += amount;
        }
    };
    match asked {
        Work::NetworkKib | Work::Transfers | Work::Dpcs => {}
        Work::DiskKib => each(reader, Table::DiskIo, &["time_ns", "size_bytes"], |batch| {
            let view = DiskIoView::new(batch)?;
            for row in 0..view.len() {
                let bytes = view.size_bytes.get(row).unwrap_or(0);
                add(view.time_ns[row], f64::from(bytes) / 1024.0);
            }
            Ok(())
        })?,
        Work::Marks => each(reader, Table::Marks, &["time_ns"], |batch| {
            let view = MarksView::new(batch)?;
            view.time_ns.iter().for_each(|ns| add(*ns, 1.0));
            Ok(())
        })?,
        Work::Frames => {
            let columns = ["time_ns", "provider", "event", "opcode"];
            let (providers, event, opcode) = PRESENTS;
            each(reader, Table::Events, &columns, |batch| {
                let view = EventsView::new(batch)?;
                for row in 0..view.len() {
                    let provider = view.provider.get(row);
                    let is_present = provider.is_some_and(|name| providers.contains(&name))
                        && view.event.get(row) == Some(event)
                        && view.opcode.get(row) == Some(opcode);
                    if is_present {
                        add(view.time_ns[row], 1.0);
                    }
                }
                Ok(())
            })?;
        }
        Work::Waits(thread) => {
            let threads = threads_called(&reader.names, thread);
            let columns = ["start_ns", "thread_row", "waits_ns"];
            each(reader, Table::CpuRuns, &columns, |batch| {
                let view = CpuRunsView::new(batch)?;
                for row in 0..view.len() {
                    let waited = view.waits_ns.get(row).is_some_and(|ns| ns > 0);
                    let thread = view.thread_row.get(row);
                    // The rows of threads are in ascending order.
                    let is_asked = thread.is_some_and(|it| threads.binary_search(&it).is_ok());
                    if waited && is_asked {
                        add(view.start_ns[row], 1.0);
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(amounts)
}

/// Returns the number of captured sent packets by their mark (DSCP).
pub(crate) fn marked(
    reader: &Reader<'_>,
    blocks: &Blocks,
) -> Result<BTreeMap<u8, u64>, StoreError> {
    let mut marks = BTreeMap::new();
    each(
        reader,
        Table::Packets,
        &["time_ns", "direction", "dscp"],
        |batch| {
            let view = PacketsView::new(batch)?;
            for row in 0..view.len() {
                let is_sent = view.direction.get(row) == Some("send");
                if let (true, Some(mark)) = (is_sent, view.dscp.get(row))
                    && blocks.at(view.time_ns[row]).is_some()
                {
                    *marks.entry(mark).or_default() += 1;
                }
            }
            Ok(())
        },
    )?;
    Ok(marks)
}

/// Calls `add` for each batch of a table.
fn each(
    reader: &Reader<'_>,
    table: Table,
    columns: &[&str],
    mut add: impl FnMut(&arrow_array::RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let table = reader.table(table)?;
    for batch in reader.batches(&table, i64::MIN..i64::MAX, columns) {
        add(&batch?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_names() {
        for (work, name, _) in NAMES {
            assert_eq!(name.parse(), Ok(work));
        }
        let waits = "waits=render".parse::<Work>().unwrap();
        assert_eq!(waits.to_string(), "wait of render");
        assert!("waits=".parse::<Work>().is_err());
        assert!("apples".parse::<Work>().is_err());
    }
}
