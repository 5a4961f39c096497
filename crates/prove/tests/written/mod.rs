//! Files of samples in the format of `laglab measure`.

use std::fs::File;
use std::path::Path;

use imports::SampleConditions;
use parquet::arrow::ArrowWriter;
use tables::{LatencySamples, SampleOutcome};

/// Run of a sleep.
pub(crate) struct WrittenRun<'v> {
    pub(crate) method: &'static str,
    pub(crate) number: u32,
    /// Start of the first sample.
    pub(crate) start_ns: i64,
    /// Time from the start of a sample to the start of the next one.
    pub(crate) interval_ns: i64,
    /// Latencies, in nanoseconds.
    pub(crate) values: &'v [f64],
}

pub(crate) fn write<'v>(
    path: &Path,
    runs: impl Iterator<Item = WrittenRun<'v>>,
    conditions: Option<&SampleConditions>,
) {
    let mut samples = LatencySamples::default();
    for run in runs {
        let mut start_ns = run.start_ns;
        for (sequence, value) in (0..).zip(run.values) {
            samples.start_ns.push(start_ns);
            samples.intended_start_ns.push(start_ns);
            samples.latency_ns.push(Some(*value as i64));
            samples.probe.0.push(tables::Probe::Sleep);
            samples.method.push(Some(run.method));
            samples.setting.push(Some("default scheduling"));
            samples.phase.push(None);
            samples.run.push(run.number);
            samples.sequence.push(sequence);
            samples.requested_ns.push(Some(1_000_000));
            samples.resolution_ns.push(None);
            samples.size_bytes.push(None);
            samples.outcome.0.push(SampleOutcome::Done);
            start_ns += run.interval_ns;
        }
    }
    let mut batch = samples.into_batch();
    if let Some(conditions) = conditions {
        batch = conditions.attach(&batch);
    }
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
