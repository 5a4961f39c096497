//! Theory: data was moved over the network.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order};
use tables::{StoreError, Table};

use crate::chain::traffic::{BITS_PER_SECOND, Flow, Traffic, TrafficSum};
use crate::{About, Case, Evidence, Finding, Outcome, Severity, Theory, Unit, listed, size};

/// Theory about network traffic by process and conversation. Its findings are only information,
/// because a trace does not contain the network's capacity.
pub(crate) struct Throughput;

static ABOUT: About = About {
    id: "network-throughput",
    name: "network use",
    question: "Which programs used the network, how much and how fast?",
    tables: &[Table::Network],
    sources: &[],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

impl Theory for Throughput {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let Some(traffic) = Traffic::read(case)? else {
            let missing = "the trace records no sent or received data".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        };
        let mut processes: FxHashMap<(Option<u32>, u32), TrafficSum> = FxHashMap::default();
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
                "{} received {} and sent {} {}",
                case.process(*row, Some(*id)),
                size(moved.received_bytes),
                size(moved.sent_bytes),
                moved.duration_and_rate()
            )
        });
        let sentence = format!("Over the network, {}.", listed(most));
        let mut finding = Finding::new(&ABOUT, Severity::Information, sentence);
        finding.during = traffic.during.clone();
        let named = processes.iter().take(3);
        let named = named.filter_map(|((row, id), _)| case.process_subject(*row, Some(*id)));
        let finding = finding
            .subjects(named)
            .with(by_process(case, &traffic, &processes))
            .with(by_flow(case, &traffic))
            .doubt(
                "The trace does not contain the capacity of the network: compare with the speed of \
                 the link, or with a trace from before the problem",
            );
        Ok(Outcome::For(vec![finding]))
    }
}

/// Adds the columns of moved data.
fn with_moved(evidence: Evidence) -> Evidence {
    let bytes =
        |action: &str| Expression::sum_if("size_bytes", Condition::is_text("action", &[action]));
    let (first, last) = (Expression::Min("time_ns"), Expression::Max("time_ns"));
    let speed = Expression::Formula(BITS_PER_SECOND.to_owned());
    evidence
        .column("sent_bytes", "sent", Unit::Bytes, bytes("send"))
        .column("received_bytes", "received", Unit::Bytes, bytes("receive"))
        .column("first_ns", "first", Unit::Moment, first)
        .column("last_ns", "last", Unit::Moment, last)
        .column("bits_per_second", "speed", Unit::BitsPerSecond, speed)
}

fn cells(moved: &TrafficSum) -> [Option<crate::Value>; 5] {
    [
        Some(moved.sent_bytes.into()),
        Some(moved.received_bytes.into()),
        Some(moved.first_ns.into()),
        Some(moved.last_ns.into()),
        moved.bits_per_second().map(Into::into),
    ]
}

fn by_process(
    case: &Case<'_>,
    traffic: &Traffic,
    processes: &[((Option<u32>, u32), TrafficSum)],
) -> Evidence {
    let selection = traffic
        .rows()
        .group_by(&["process_row", "process_id"])
        .order(&[
            Order::descending("sum(size_bytes)"),
            Order::ascending("process_id"),
            Order::ascending("process_row"),
        ])
        .limit(SHOWN);
    let process = Expression::Process("process_row");
    let evidence = Evidence::from_selection("Data by process", selection);
    let mut evidence = with_moved(evidence.column("process", "process", Unit::None, process));
    for ((row, _), moved) in processes.iter().take(SHOWN) {
        let process = case.process_label(*row).map(Into::into);
        evidence = evidence.row([process].into_iter().chain(cells(moved)));
    }
    evidence
}

fn by_flow(case: &Case<'_>, traffic: &Traffic) -> Evidence {
    let selection = traffic
        .rows()
        .group_by(&[
            "process_row",
            "process_id",
            "transport",
            "local_port",
            "remote_address",
            "remote_port",
        ])
        .order(&[
            Order::descending("sum(size_bytes)"),
            Order::ascending("first_ns"),
            Order::ascending("local_port"),
            Order::ascending("remote_port"),
            Order::ascending("remote_address"),
        ])
        .limit(SHOWN);
    let process = Expression::Process("process_row");
    let evidence = Evidence::from_selection("Data by conversation", selection)
        .column("process", "process", Unit::None, process)
        .stored("transport", "transport", Unit::None)
        .stored("local_port", "local port", Unit::None)
        .stored("remote_address", "remote address", Unit::None)
        .stored("remote_port", "remote port", Unit::None);
    let mut evidence = with_moved(evidence);
    let address = |flow: &Flow| {
        let place = flow.remote? as usize;
        traffic.addresses.get(place).map(String::as_str)
    };
    let mut flows: Vec<(&Flow, &TrafficSum)> = traffic.flows.iter().collect();
    flows.sort_unstable_by_key(|(flow, moved)| {
        let ports = (flow.local_port, flow.remote_port);
        (Reverse(moved.bytes()), moved.first_ns, ports, address(flow))
    });
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
