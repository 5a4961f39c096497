//! Causes of wakes by DPCs: data from the network, or a driver.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Order, Selection};
use tables::{InterruptsView, NetworkView, StoreError, Table};

use crate::chain::path::Leg;
use crate::ranges::union;
use crate::thresholds::{NETWORK_WAKE_NS, NOTICED_NS};
use crate::{Case, Evidence, Unit};

/// Maximum number of rows of evidence.
const SHOWN: usize = 20;

/// Other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Remote {
    pub(crate) address: String,
    pub(crate) port: u16,
    /// `TCP` or `UDP`.
    pub(crate) transport: &'static str,
}

/// Cause of a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waker {
    /// Data from the network, as an index of [`Wakers::remotes`].
    Network(u32),
    /// DPC of a driver, as the row of its module in `images`.
    Driver(u32),
}

/// Wake of a thread by a DPC.
#[derive(Clone, Copy, Debug)]
struct Wake {
    at: i64,
    thread_id: u32,
    cpu: u16,
    process_row: Option<u32>,
}

/// Traffic of a process with another machine.
#[derive(Clone, Debug, Default)]
struct Traffic {
    /// Times at which data was sent, in order.
    sent: Vec<i64>,
    /// Times at which data was sent again, in order.
    resent: Vec<i64>,
}

/// Causes of the wakes by DPCs that ended long waits.
#[derive(Default)]
pub(crate) struct Wakers {
    pub(crate) remotes: Vec<Remote>,
    traffic: FxHashMap<(u32, u32), Traffic>,
    by_wake: FxHashMap<(u32, i64), Waker>,
}

impl Wakers {
    /// Finds the causes of the wakes that ended long steps of the paths.
    pub(crate) fn read<'l>(
        case: &Case<'_>,
        legs: impl Iterator<Item = &'l Leg>,
    ) -> Result<Wakers, StoreError> {
        let long = legs
            .filter(|leg| leg.run.readied_by_dpc == Some(true) && leg.parts()[0] >= NOTICED_NS / 2);
        let mut ranges: Vec<Range<i64>> = Vec::new();
        let mut wakes: Vec<Wake> = Vec::new();
        for leg in long {
            let at = leg.run.since_ns();
            // A thread that waits for an answer sent its request just before the wait. So the range begins
            // before the wait.
            let from = leg.range.start.saturating_sub(NOTICED_NS).min(at);
            ranges.push(from..at.saturating_add(1));
            wakes.extend(leg.run.readying_cpu.map(|cpu| Wake {
                at,
                thread_id: leg.run.thread_id,
                cpu,
                process_row: leg.run.process_row,
            }));
        }
        wakes.sort_by_key(|wake| (wake.at, wake.thread_id));
        wakes.dedup_by_key(|wake| (wake.at, wake.thread_id));
        let mut wakers = Wakers::default();
        if !wakes.is_empty() {
            wakers.add_drivers(case, &wakes)?;
            wakers.add_network(case, &wakes, &union(ranges))?;
        }
        Ok(wakers)
    }

    /// Returns the cause of the wake that ended the wait before a run.
    pub(crate) fn waker(&self, leg: &Leg) -> Option<Waker> {
        let key = (leg.run.thread_id, leg.run.since_ns());
        self.by_wake.get(&key).copied()
    }

    /// Returns the name of the other end of a connection.
    pub(crate) fn remote_name(&self, remote: u32) -> String {
        let remote = &self.remotes[remote as usize];
        if remote.address.contains(':') {
            format!(
                "[{}]:{} ({})",
                remote.address, remote.port, remote.transport
            )
        } else {
            format!("{}:{} ({})", remote.address, remote.port, remote.transport)
        }
    }

    /// Returns the last time before `at` at which the process sent data to the other machine, and the
    /// number of retransmissions within the range.
    pub(crate) fn last_sent(
        &self,
        process_row: Option<u32>,
        remote: u32,
        range: &Range<i64>,
    ) -> (Option<i64>, usize) {
        let traffic = process_row.and_then(|row| self.traffic.get(&(row, remote)));
        let Some(traffic) = traffic else {
            return (None, 0);
        };
        let before = traffic.sent.partition_point(|at| *at < range.end);
        let last_sent = before.checked_sub(1).map(|place| traffic.sent[place]);
        let resent = traffic.resent.iter().filter(|at| range.contains(at));
        (last_sent, resent.count())
    }

    /// Finds the drivers whose DPCs ran when the threads were woken. A DPC is logged at its end.
    fn add_drivers(&mut self, case: &Case<'_>, wakes: &[Wake]) -> Result<(), StoreError> {
        /// Maximum length of a DPC, in nanoseconds. If a longer DPC woke a thread, its driver may not be
        /// found.
        const LONGEST_NS: i64 = 100_000_000;
        let ranges = union(
            (wakes
                .iter()
                .map(|wake| wake.at..wake.at.saturating_add(LONGEST_NS)))
            .collect(),
        );
        let table = case.table(Table::Interrupts)?;
        let columns = ["start_ns", "end_ns", "cpu", "kind", "image_row"];
        for range in ranges {
            for batch in case.batches(&table, range, &columns) {
                let batch = batch?;
                let view = InterruptsView::new(&batch)?;
                for row in 0..view.len() {
                    let is_dpc = matches!(view.kind.get(row), Some("dpc" | "threaded_dpc"));
                    let Some((start, image_row)) = (view.start_ns.get(row))
                        .zip(view.image_row.get(row))
                        .filter(|_| is_dpc)
                    else {
                        continue;
                    };
                    let first = wakes.partition_point(|wake| wake.at < start);
                    let inside = wakes[first..]
                        .iter()
                        .take_while(|wake| wake.at <= view.end_ns[row]);
                    for wake in inside.filter(|wake| wake.cpu == view.cpu[row]) {
                        if !case.is_kernel_or_hal(image_row) {
                            let waker = Waker::Driver(image_row);
                            self.by_wake.insert((wake.thread_id, wake.at), waker);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds the connections whose data arrived just before the threads were woken.
    fn add_network(
        &mut self,
        case: &Case<'_>,
        wakes: &[Wake],
        ranges: &[Range<i64>],
    ) -> Result<(), StoreError> {
        let mut known: FxHashMap<Remote, u32> = FxHashMap::default();
        let table = case.table(Table::Network)?;
        let columns = [
            "time_ns",
            "action",
            "transport",
            "process_row",
            "remote_address",
            "remote_port",
        ];
        for range in ranges {
            for batch in case.batches(&table, range.clone(), &columns) {
                let batch = batch?;
                let view = NetworkView::new(&batch)?;
                for row in (0..view.len()).filter(|row| range.contains(&view.time_ns[*row])) {
                    let process_row = view.process_row.get(row);
                    let address = view.remote_address.get(row);
                    let Some((process_row, address)) = process_row.zip(address) else {
                        continue;
                    };
                    let remote = Remote {
                        address: address.to_owned(),
                        port: view.remote_port[row],
                        transport: match view.transport.get(row) {
                            Some("tcp") => "TCP",
                            _ => "UDP",
                        },
                    };
                    let next = known.len() as u32;
                    let remote = *known.entry(remote).or_insert(next);
                    let at = view.time_ns[row];
                    let traffic = self.traffic.entry((process_row, remote)).or_default();
                    match view.action.get(row) {
                        Some("send") => traffic.sent.push(at),
                        Some("retransmit") => traffic.resent.push(at),
                        Some("receive" | "copy") => {
                            let first = wakes.partition_point(|wake| wake.at < at);
                            let woken = wakes[first..]
                                .iter()
                                .take_while(|wake| wake.at <= at.saturating_add(NETWORK_WAKE_NS));
                            for wake in woken.filter(|w| w.process_row == Some(process_row)) {
                                let key = (wake.thread_id, wake.at);
                                self.by_wake.insert(key, Waker::Network(remote));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        let mut remotes: Vec<(Remote, u32)> = known.into_iter().collect();
        remotes.sort_by_key(|(_, place)| *place);
        self.remotes = remotes.into_iter().map(|(remote, _)| remote).collect();
        Ok(())
    }
}

/// Returns evidence with the last traffic of a process with another machine in the range.
pub(crate) fn evidence(
    case: &Case<'_>,
    process_row: Option<u32>,
    remote: &Remote,
    range: &Range<i64>,
) -> Result<Evidence, StoreError> {
    let within = range.start..range.end.saturating_add(1);
    let transport = remote.transport.to_lowercase();
    let selection = Selection::new(Table::Network)
        .within("time_ns", within.clone())
        .filter(Condition::is_or_unknown("process_row", process_row))
        .filter(Condition::is_text("transport", &[transport.as_str()]))
        .filter(Condition::is_text(
            "remote_address",
            &[remote.address.as_str()],
        ))
        .filter(Condition::is("remote_port", remote.port))
        .order(&[
            Order::descending("time_ns"),
            Order::descending("cpu"),
            Order::ascending("action"),
            Order::ascending("size_bytes"),
        ])
        .limit(SHOWN);
    let title = format!(
        "Last traffic with {}:{} in this time",
        remote.address, remote.port
    );
    let mut evidence = Evidence::from_selection(title, selection)
        .stored("time_ns", "time", Unit::Moment)
        .stored("cpu", "CPU", Unit::None)
        .stored("action", "action", Unit::None)
        .stored("size_bytes", "data", Unit::Bytes);
    let mut rows: Vec<(i64, u16, String, u32)> = Vec::new();
    let table = case.table(Table::Network)?;
    let columns = [
        "time_ns",
        "cpu",
        "action",
        "transport",
        "process_row",
        "remote_address",
        "remote_port",
        "size_bytes",
    ];
    for batch in case.batches(&table, within.clone(), &columns) {
        let batch = batch?;
        let view = NetworkView::new(&batch)?;
        for row in (0..view.len()).filter(|row| within.contains(&view.time_ns[*row])) {
            if view.process_row.get(row) == process_row
                && view.transport.get(row) == Some(&transport)
                && view.remote_address.get(row) == Some(&remote.address)
                && view.remote_port[row] == remote.port
            {
                let action = view.action.get(row).unwrap_or_default().to_owned();
                rows.push((
                    view.time_ns[row],
                    view.cpu[row],
                    action,
                    view.size_bytes[row],
                ));
            }
        }
    }
    rows.sort_by(|a, b| {
        (b.0, b.1)
            .cmp(&(a.0, a.1))
            .then_with(|| (&a.2, a.3).cmp(&(&b.2, b.3)))
    });
    for (at, cpu, action, size_bytes) in rows.into_iter().take(SHOWN) {
        evidence = evidence.row([
            Some(at.into()),
            Some(cpu.into()),
            Some(action.into()),
            Some(size_bytes.into()),
        ]);
    }
    Ok(evidence)
}
