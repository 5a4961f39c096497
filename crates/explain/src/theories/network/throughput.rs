//! Who moved how much over the network?

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tables::{StoreError, Table};

use super::{Flow, Moved, Traffic, rate};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, duration, listed, size,
};

/// Traffic by process and conversation. It judges nothing: what a network could do is not in a
/// trace.
pub(crate) struct Throughput;

static ABOUT: About = About {
    id: "network-throughput",
    question: "Was data moved over the network: by whom, how much and how fast?",
    tables: &[Table::Network],
    sources: &[],
};

/// How many rows are shown.
const SHOWN: usize = 10;

impl Theory for Throughput {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let Some(traffic) = Traffic::read(case)? else {
            let missing = "the trace tells of no data sent or received".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        };
        let mut processes: FxHashMap<(Option<u32>, u32), Moved> = FxHashMap::default();
        for (flow, moved) in &traffic.flows {
            processes
                .entry((flow.process_row, flow.process_id))
                .and_modify(|sum| sum.add(moved))
                .or_insert(*moved);
        }
        let mut processes: Vec<_> = processes.into_iter().collect();
        processes.sort_unstable_by_key(|((row, id), moved)| {
            (Reverse(moved.bytes()), *id, row.map_or(i64::MAX, i64::from))
        });
        let most = processes.iter().take(3).map(|((row, id), moved)| {
            format!(
                "{} received {} and sent {} within {} ({})",
                case.process(*row, Some(*id)),
                size(moved.received_bytes),
                size(moved.sent_bytes),
                duration(moved.lasted_ns()),
                rate(moved.bits_per_second())
            )
        });
        let sentence = format!("Over the network {}.", listed(most));
        let mut finding = Finding::new(&ABOUT, Severity::Information, sentence);
        finding.during = traffic.during.clone();
        let finding = finding
            .with(by_process(case, &traffic, &processes))
            .with(by_flow(case, &traffic))
            .doubt(
                "What it could have been is not in the trace: compare with the link's speed, or a \
                 recording of better days",
            );
        Ok(Outcome::For(vec![finding]))
    }
}

const SUMS: &str = "sum(CASE WHEN action = 'send' THEN size_bytes ELSE 0 END) AS sent_bytes, \
                    sum(CASE WHEN action = 'receive' THEN size_bytes ELSE 0 END) AS \
                    received_bytes, min(time_ns) AS first_ns, max(time_ns) AS last_ns, 8e9 * \
                    sum(size_bytes) / greatest(max(time_ns) - min(time_ns), 1) AS bits_per_second";

const MOVED: [Column; 5] = [
    Column::new("sent_bytes", "sent", Unit::Bytes),
    Column::new("received_bytes", "received", Unit::Bytes),
    Column::new("first_ns", "first", Unit::Moment),
    Column::new("last_ns", "last", Unit::Moment),
    Column::new("bits_per_second", "speed", Unit::BitsPerSecond),
];

/// Cells of what was moved.
fn cells(moved: &Moved) -> [Option<crate::Value>; 5] {
    [
        Some(moved.sent_bytes.into()),
        Some(moved.received_bytes.into()),
        Some(moved.first_ns.into()),
        Some(moved.last_ns.into()),
        Some(moved.bits_per_second().into()),
    ]
}

fn by_process(
    case: &Case<'_>,
    traffic: &Traffic,
    processes: &[((Option<u32>, u32), Moved)],
) -> Evidence {
    let query = format!(
        "SELECT process(process_row) AS process, {SUMS} FROM network WHERE {} GROUP BY process_row, \
         process_id ORDER BY sum(size_bytes) DESC, process_id, process_row NULLS LAST LIMIT {SHOWN}",
        traffic.condition()
    );
    let columns: Vec<Column> = [Column::new("process", "process", Unit::None)]
        .into_iter()
        .chain(MOVED)
        .collect();
    let mut evidence = Evidence::new("Data by process", query, &columns);
    for ((row, _), moved) in processes.iter().take(SHOWN) {
        let process = case.process_label(*row).map(Into::into);
        evidence = evidence.row([process].into_iter().chain(cells(moved)));
    }
    evidence
}

fn by_flow(case: &Case<'_>, traffic: &Traffic) -> Evidence {
    let query = format!(
        "SELECT process(process_row) AS process, transport, local_port, remote_address, \
         remote_port, {SUMS} FROM network WHERE {} GROUP BY process_row, process_id, transport, local_port, remote_address, remote_port ORDER \
         BY sum(size_bytes) DESC, min(time_ns), local_port, remote_port, remote_address LIMIT \
         {SHOWN}",
        traffic.condition()
    );
    let columns: Vec<Column> = [
        Column::new("process", "process", Unit::None),
        Column::new("transport", "transport", Unit::None),
        Column::new("local_port", "local port", Unit::None),
        Column::new("remote_address", "remote address", Unit::None),
        Column::new("remote_port", "remote port", Unit::None),
    ]
    .into_iter()
    .chain(MOVED)
    .collect();
    let address = |flow: &Flow| {
        let place = flow.remote? as usize;
        traffic.addresses.get(place).map(String::as_str)
    };
    let mut flows: Vec<(&Flow, &Moved)> = traffic.flows.iter().collect();
    flows.sort_unstable_by_key(|(flow, moved)| {
        let ports = (flow.local_port, flow.remote_port);
        (Reverse(moved.bytes()), moved.first_ns, ports, address(flow))
    });
    let mut evidence = Evidence::new("Data by conversation", query, &columns);
    for (flow, moved) in flows.into_iter().take(SHOWN) {
        let who = [
            case.process_label(flow.process_row).map(Into::into),
            Some(flow.transport.into()),
            Some(flow.local_port.into()),
            address(flow).map(Into::into),
            Some(flow.remote_port.into()),
        ];
        evidence = evidence.row(who.into_iter().chain(cells(moved)));
    }
    evidence
}
