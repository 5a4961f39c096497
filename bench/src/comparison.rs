//! Measures the time and the memory of `laglab prove compare` for many long runs. For comparison, two other tasks only
//! read the same samples, or read and sort them.
//!
//! Each task is a separate process, so that its peak memory is known.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use prove::{Pairing, Question, Summary, judge, measured, sides};
use tables::{LatencySamples, Probe, SampleOutcome};
use testdata::Rng;

use crate::{Outcome, process};

/// Number of pairs of runs.
const PAIRS: u32 = 64;

/// Number of samples of each run.
const SAMPLES: usize = 1_000_000;

/// Measures the comparison of the runs in a generated file. Each measured program is a whole process.
pub(crate) fn all(report: &mut String, scratch: &Path) -> Outcome<()> {
    std::fs::create_dir_all(scratch)?;
    let file = scratch.join("comparison.parquet");
    let bench = std::env::current_exe()?;
    let run = |task: &str, times: usize| {
        let args: [&OsStr; 2] = [task.as_ref(), file.as_os_str()];
        process::median(&bench, &args, times)
    };
    run("comparison-make", 1)?;
    writeln!(
        report,
        "\n## Comparison of long runs\n\n{PAIRS} pairs of {SAMPLES} samples in a file of `laglab measure` \
         ({:.0} MB). Medians of 3 processes. Aim: 1 s, 100 MB.\n\n\
         | task | s | CPU s | peak MB |\n|---|---|---|---|",
        file.metadata()?.len() as f64 / 1e6
    )?;
    for (name, task) in [
        ("compare", "comparison-judge"),
        (
            "read the column of latencies, one thread",
            "comparison-read",
        ),
        ("read it and sort each run, one thread", "comparison-sort"),
    ] {
        let run = run(task, 3)?;
        writeln!(
            report,
            "| {name} | {:.2} | {:.2} | {:.0} |",
            run.seconds,
            run.cpu_seconds,
            run.peak_bytes as f64 / 1e6
        )?;
    }
    std::fs::remove_file(file)?;
    Ok(())
}

/// Writes a measurement of two methods whose runs alternate, in the format of `laglab measure`.
pub(crate) fn make(path: &Path) -> Outcome<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let schema = LatencySamples::schema().arrow();
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema.into(), Some(properties))?;
    let mut rng = Rng(1);
    let mut start_ns = 0;
    for run in 0..PAIRS {
        for turn in 0..2 {
            let method = (run + turn) % 2;
            let mut samples = LatencySamples::default();
            for sequence in 0..SAMPLES {
                // Latencies are around 50 µs. One in a thousand is late.
                let noise = (0..4).map(|_| rng.below(10_000) as i64).sum::<i64>();
                let late = if rng.below(1_000) == 0 { 1_000_000 } else { 0 };
                samples.start_ns.push(start_ns);
                samples.intended_start_ns.push(start_ns);
                samples
                    .latency_ns
                    .push(Some(30_000 + noise + i64::from(method) * 1_000 + late));
                samples.probe.0.push(Probe::Sleep);
                samples
                    .method
                    .push(Some(["first", "second"][method as usize]));
                samples.setting.push(Some("default scheduling"));
                samples.phase.push(None);
                samples.run.push(run);
                samples.sequence.push(sequence as u64);
                samples.requested_ns.push(Some(1_000_000));
                samples.resolution_ns.push(Some(50_000));
                samples.size_bytes.push(None);
                samples.outcome.0.push(SampleOutcome::Done);
                start_ns += 2_000_000;
            }
            writer.write(&samples.into_batch())?;
        }
    }
    writer.close()?;
    Ok(())
}

/// Compares the two methods in the file with each other.
pub(crate) fn compare(path: &Path) -> Outcome<()> {
    let both = sides::within(measured::read(path)?, None, None, Pairing::ByName)?;
    let summary = Summary::read(&both)?;
    let judgement = judge(&both, &summary, Question { margin: 0.02 })?;
    let is_complete = judgement.lines.iter().all(|line| line.verdict.is_some());
    if is_complete && judgement.runs_before == PAIRS as usize {
        Ok(())
    } else {
        Err("the comparison is incomplete".into())
    }
}

/// Reads the column of latencies. If `sorts` is true, also sorts the latencies of each run.
pub(crate) fn read(path: &Path, sorts: bool) -> Outcome<()> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["latency_ns"]);
    let reader = builder
        .with_projection(mask)
        .with_batch_size(1 << 16)
        .build()?;
    let mut run: Vec<i64> = Vec::with_capacity(SAMPLES);
    let mut sum = 0_i64;
    for batch in reader {
        let batch = batch?;
        for value in batch.column(0).as_primitive::<Int64Type>().values() {
            sum = sum.wrapping_add(*value);
            if sorts {
                run.push(*value);
            }
            if run.len() == SAMPLES {
                run.sort_unstable();
                sum = sum.wrapping_add(run[SAMPLES / 2]);
                run.clear();
            }
        }
    }
    std::hint::black_box(sum);
    Ok(())
}
