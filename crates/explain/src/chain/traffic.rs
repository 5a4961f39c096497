//! Data that each conversation moved over the network.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Selection};
use tables::{NetworkView, StoreError, Table};

use crate::{Case, duration};

/// Conversation of a process over the network, from the table `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) process_row: Option<u32>,
    pub(crate) process_id: u32,
    pub(crate) transport: &'static str,
    pub(crate) local_port: u16,
    /// Index of the remote address in `Traffic::addresses`.
    pub(crate) remote: Option<u32>,
    pub(crate) remote_port: u16,
}

/// Amount of data that a conversation moved, and the time of its first and last event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrafficSum {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) events: i64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

/// Data of each conversation, from one of the two sources of network events.
pub(crate) struct Traffic {
    /// Source of the events: `kernel` or `provider`.
    pub(crate) source: &'static str,
    pub(crate) flows: FxHashMap<Flow, TrafficSum>,
    pub(crate) addresses: Vec<String>,
    /// Time range of the data; `None` for the whole trace.
    pub(crate) during: Option<Range<i64>>,
}

impl Traffic {
    /// Reads the data sent and received in the time range in scope. If there is no such range or no
    /// data in it, reads the data of the whole trace. Returns `None` if the trace records no data.
    pub(crate) fn read(case: &Case<'_>) -> Result<Option<Traffic>, StoreError> {
        if let Some(range) = case.scope.range()
            && let Some(traffic) = Traffic::within(case, range.clone())?
        {
            let during = Some(range.clone());
            return Ok(Some(Traffic { during, ..traffic }));
        }
        Traffic::within(case, i64::MIN..i64::MAX)
    }

    /// Returns a selection of the rows of `network` that were summed up.
    pub(crate) fn rows(&self) -> Selection {
        let rows = Selection::new(Table::Network)
            .filter(Condition::is_text("source", &[self.source]))
            .filter(Condition::is_text("action", &["send", "receive"]));
        match &self.during {
            Some(during) => rows.within("time_ns", during.clone()),
            None => rows,
        }
    }

    pub(crate) fn within(
        case: &Case<'_>,
        range: Range<i64>,
    ) -> Result<Option<Traffic>, StoreError> {
        let columns = [
            "time_ns",
            "action",
            "transport",
            "source",
            "process_id",
            "process_row",
            "size_bytes",
            "local_port",
            "remote_address",
            "remote_port",
        ];
        let table = case.table(Table::Network)?;
        let mut by_source: [FxHashMap<Flow, TrafficSum>; 2] = Default::default();
        let mut known: FxHashMap<String, u32> = FxHashMap::default();
        for batch in case.batches(&table, range.clone(), &columns) {
            let batch = batch?;
            let view = NetworkView::new(&batch)?;
            for row in (0..view.len()).filter(|row| range.contains(&view.time_ns[*row])) {
                let is_sent = match view.action.get(row) {
                    Some("send") => true,
                    Some("receive") => false,
                    _ => continue,
                };
                let remote = view.remote_address.get(row).map(|address| {
                    known.get(address).copied().unwrap_or_else(|| {
                        let place = known.len() as u32;
                        known.insert(address.to_owned(), place);
                        place
                    })
                });
                let flow = Flow {
                    process_row: view.process_row.get(row),
                    process_id: view.process_id[row],
                    transport: match view.transport.get(row) {
                        Some("tcp") => "tcp",
                        _ => "udp",
                    },
                    local_port: view.local_port[row],
                    remote,
                    remote_port: view.remote_port[row],
                };
                let time_ns = view.time_ns[row];
                let is_kernel = view.source.get(row) == Some("kernel");
                let moved = by_source[usize::from(!is_kernel)]
                    .entry(flow)
                    .or_insert(TrafficSum {
                        first_ns: time_ns,
                        last_ns: time_ns,
                        ..TrafficSum::default()
                    });
                let bytes = u64::from(view.size_bytes[row]);
                if is_sent {
                    moved.sent_bytes += bytes
                } else {
                    moved.received_bytes += bytes
                }
                moved.events += 1;
                moved.last_ns = time_ns;
            }
        }
        let [kernel, provider] = by_source;
        let mut addresses: Vec<String> = vec![String::new(); known.len()];
        for (address, place) in known {
            addresses[place as usize] = address;
        }
        Ok(match (kernel.is_empty(), provider.is_empty()) {
            (false, _) => Some(Traffic {
                source: "kernel",
                flows: kernel,
                addresses,
                during: None,
            }),
            (true, false) => Some(Traffic {
                source: "provider",
                flows: provider,
                addresses,
                during: None,
            }),
            (true, true) => None,
        })
    }
}

/// SQL expression for the bits per second of rows of `network`. The result is NULL if the rows are within
/// less than a millisecond.
pub(crate) const BITS_PER_SECOND: &str = "CASE WHEN max(time_ns) - min(time_ns) >= 1000000 THEN 8e9 * \
    sum(size_bytes) / (max(time_ns) - min(time_ns)) END";

/// Shortest time for which a rate is computed. Events within a shorter time are a burst without a
/// meaningful rate.
pub(crate) const SHORTEST_RATE_NS: i64 = 1_000_000;

impl TrafficSum {
    pub(crate) fn bytes(&self) -> u64 {
        self.sent_bytes + self.received_bytes
    }

    /// Adds the data of another conversation.
    pub(crate) fn add(&mut self, other: &TrafficSum) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.events += other.events;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    pub(crate) fn lasted_ns(&self) -> i64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Returns the rate. Returns `None` if the first and the last event are less than a millisecond apart.
    pub(crate) fn bits_per_second(&self) -> Option<f64> {
        let lasted_ns = self.lasted_ns();
        (lasted_ns >= SHORTEST_RATE_NS).then(|| 8e9 * self.bytes() as f64 / lasted_ns as f64)
    }

    /// Returns the duration, with the rate if it is known.
    pub(crate) fn duration_and_rate(&self) -> String {
        let lasted = duration(self.lasted_ns());
        match self.bits_per_second() {
            Some(bits) => format!("within {lasted} ({})", rate(bits)),
            None => format!("within {lasted}"),
        }
    }
}

/// Returns the text for bits per second in a suitable unit.
pub(crate) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        bits if bits < 1e6 => format!("{:.0} kb/s", bits / 1e3),
        bits if bits < 1e9 => format!("{:.1} Mb/s", bits / 1e6),
        bits => format!("{:.2} Gb/s", bits / 1e9),
    }
}
