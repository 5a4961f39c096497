//! Output of throughput measurements as a table or JSON.

use std::io::{self, Write};

use measure::net::throughput::{
    Method, PEER, PeerThroughputRun, ThroughputPlan, ThroughputReport, ThroughputRun,
};
use measure::{Comparison, End, Grant, Incomparable, MARGIN, Machine, Unavailable, Verdict};
use serde::Serialize;

use crate::output::{self, Columns, Side, grouped, size};

/// JSON output of a throughput measurement. Programs rely on its fields.
#[derive(Serialize)]
struct Everything<'r> {
    machine: Machine,
    runs: &'r [ThroughputRun],
    peer: &'r [PeerThroughputRun],
    compared_to_the_first: Vec<Compared>,
    unavailable: &'r [Unavailable],
    grants: &'r [Grant],
    end: End,
    notes: &'r [String],
}

#[derive(Serialize)]
struct Compared {
    method: &'static str,
    #[serde(flatten)]
    comparison: Option<Comparison>,
    verdict: Option<Verdict>,
}

/// Measured methods, which are compared with the first of them.
struct Methods<'r> {
    report: &'r ThroughputReport,
    measured: Vec<&'r Method>,
}

/// Prints the results of a throughput measurement.
pub(crate) fn throughput(
    report: &ThroughputReport,
    plan: &ThroughputPlan,
    json: bool,
) -> io::Result<()> {
    let measured = plan
        .methods
        .iter()
        .filter(|method| report.runs_with(method.name).next().is_some());
    let methods = Methods {
        report,
        measured: measured.collect(),
    };
    let machine = Machine::detect();
    if json {
        return output::json(&Everything {
            machine,
            runs: &report.runs,
            peer: &report.peer,
            compared_to_the_first: methods.comparisons(),
            unavailable: &report.unavailable,
            grants: &report.grants,
            end: report.end,
            notes: &report.notes,
        });
    }
    let mut out = output::for_people();
    let title = format!("Throughput of packets with {} bytes", plan.size);
    output::first_heading(&mut out, &title)?;
    methods.write(&mut out)?;
    if let Some(run) = report.runs.first() {
        output::paragraph(&mut out, &buffers(run))?;
    }
    for note in &report.notes {
        output::paragraph(&mut out, note)?;
    }
    for grant in &report.grants {
        if grant.is_granted() {
            output::paragraph(&mut out, &grant.to_string())?
        } else {
            output::warning(&mut out, &grant.to_string())?
        }
    }
    for one in &report.unavailable {
        let line = format!("{}: not available: {}", one.method, one.why);
        output::quiet(&mut out, &line)?;
    }
    let facts = [
        machine.kernel.clone(),
        machine.cpu.clone(),
        machine.load.map(|load| format!("load {load}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    output::paragraph(&mut out, &facts.join(" · "))?;
    for warning in super::text::hosts(&machine) {
        output::warning(&mut out, &warning)?;
    }
    out.flush()
}

impl Methods<'_> {
    /// Compares a method, or the peer, with the first method. Returns `None` for the first method.
    fn compare(&self, method: &str) -> Option<Result<Comparison, Incomparable>> {
        let first = (self.measured.first()).filter(|first| first.name != method)?;
        Some(self.report.compared(method, first.name))
    }

    /// Returns the comparisons of all methods but the first, and of the peer.
    fn comparisons(&self) -> Vec<Compared> {
        let peer = (!self.report.peer.is_empty()).then_some(PEER);
        (self.measured.iter().map(|method| method.name))
            .chain(peer)
            .filter_map(|method| {
                let comparison = self.compare(method)?.ok();
                Some(Compared {
                    method,
                    comparison,
                    verdict: comparison.map(|comparison| comparison.verdict(MARGIN)),
                })
            })
            .collect()
    }

    fn in_words(&self, method: &str) -> String {
        match self.compare(method) {
            None => String::new(),
            Some(Err(why)) => format!("not compared: {why}"),
            Some(Ok(comparison)) => super::in_words(&comparison, MARGIN),
        }
    }

    /// Writes a table with a row for each method and one for the peer.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut columns = Columns::new(&[
            Side::Left,
            Side::Left,
            Side::Right,
            Side::Right,
            Side::Right,
            Side::Right,
            Side::Left,
        ]);
        columns.row([
            "method",
            "calls",
            "runs",
            "packets/s",
            "payload/s",
            "lost",
            "packets/s vs first",
        ]);
        for method in &self.measured {
            let runs: Vec<&ThroughputRun> = self.report.runs_with(method.name).collect();
            let rates = runs
                .iter()
                .filter_map(|run| run.through.packets_per_second());
            let bytes = runs.iter().filter_map(|run| run.through.bytes_per_second());
            let lost: u64 = runs.iter().map(|run| run.through.lost()).sum();
            let sent: u64 = runs.iter().map(|run| run.through.sent).sum();
            columns.row([
                method.name.to_owned(),
                method.calls.to_owned(),
                runs.len().to_string(),
                middle(rates).map_or_else(unknown, grouped),
                middle(bytes).map_or_else(unknown, size),
                percent(lost, sent),
                self.in_words(method.name),
            ]);
        }
        let peer = &self.report.peer;
        if !peer.is_empty() {
            let of = |value: fn(&PeerThroughputRun) -> f64| middle(peer.iter().map(value));
            columns.row([
                PEER.to_owned(),
                "another program".to_owned(),
                peer.len().to_string(),
                of(|run| run.through.packets_per_second).map_or_else(unknown, grouped),
                of(|run| run.through.bytes_per_second).map_or_else(unknown, size),
                percent(
                    peer.iter().map(|run| run.through.lost).sum(),
                    peer.iter().map(|run| run.through.sent).sum(),
                ),
                self.in_words(PEER),
            ]);
        }
        columns.write(out)
    }
}

/// Returns the requested and granted sizes of a run's buffers.
fn buffers(run: &ThroughputRun) -> String {
    let (near, far) = (run.through.sender_buffers, run.through.receiver_buffers);
    let asked = near
        .asked
        .map_or("the system's".to_owned(), |bytes| size(bytes as u64));
    let granted =
        |bytes: Option<usize>| bytes.map_or("unknown".to_owned(), |bytes| size(bytes as u64));
    format!(
        "Requested buffers: {asked}; granted to the sender: {}, to the receiver: {}",
        granted(near.send),
        granted(far.receive)
    )
}

/// Returns the median, rounded down to an integer. For an even number of values, it is the upper of the two
/// middle values.
fn middle(values: impl Iterator<Item = f64>) -> Option<u64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).map(|value| *value as u64)
}

fn unknown() -> String {
    "-".to_owned()
}

fn percent(part: u64, of: u64) -> String {
    match of {
        0 => unknown(),
        of => format!("{:.2} %", part as f64 * 100.0 / of as f64),
    }
}
