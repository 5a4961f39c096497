//! Recording of a Linux machine during a measurement, and the causes of late samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use explain::late::{Late, Lateness, Sampler, late_samples};
use flight::{Capture, Order, Recorder, StartError};
use measure::{LateSample, LateSamples, Measurement, Probe, Summary};
use record::Investigation;
use session::{Amount, Observer, Task, TraceTables};
use tables::Cache;

use super::{Bound, is_sampled};
use crate::cli::Failure;
use crate::measured::{Causes, ExplainedSample, Medians, RecorderCost, Wakes, main_cause};
use crate::watch::Terminal;

/// Time for which the recorder keeps events. A sample is reported only when it ends. If a sample takes longer than this
/// time, its first events are lost.
const LAST: Duration = Duration::from_secs(20);

/// Length of the recorded time before a late sample, in nanoseconds. The events of this time show the threads that ran
/// when the sample began.
const BEFORE_NS: u64 = 300_000_000;

/// Length of the recorded time after a late sample, in nanoseconds. The threads that held the CPU may still run in this
/// time.
const AFTER_NS: u64 = 200_000_000;

/// Maximum number of late samples that are kept.
const KEPT: usize = 20_000;

/// Maximum number of recordings that are written.
const RECORDINGS: usize = 20;

/// Maximum number of samples of one recording that are explained.
const EXPLAINED: usize = 500;

/// Late samples so far, and their number.
#[derive(Default)]
struct LateFindings {
    samples: Vec<LateSample>,
    count: u64,
    /// Lines with the CPUs that the threads of the probe may use, by thread id. They are read at the first late sample
    /// of a thread, because the thread has already ended when the recording is saved.
    cpus: BTreeMap<u32, String>,
}

/// Recorder that runs during a measurement, and the late samples of the measurement.
pub(in crate::cli::measure) struct Why {
    /// Recorder, or the reason why this user may not record. Without a recorder, only the time without a CPU is known,
    /// because the kernel counts it.
    recorder: Result<Arc<Recorder>, String>,
    late: Arc<LateSamples>,
    found: Arc<Mutex<LateFindings>>,
    bound: Bound,
    folder: PathBuf,
}

impl Why {
    pub(super) fn begin(
        folder: Option<&Path>,
        bound: impl FnOnce() -> Result<Bound, Failure>,
    ) -> Result<Why, Failure> {
        let mut order = Order::new(record::linux::events(Investigation::LongWait));
        order.last = LAST;
        order.command_line = std::env::args().collect();
        // This trial shows whether the machine can record, before time is spent on the pilot.
        drop(start(&order)?);
        let folder = folder.map_or_else(new_folder, |folder| {
            if folder.exists() {
                Err(Failure::input(
                    folder,
                    "the folder exists; give a new one with --why-folder",
                ))
            } else {
                Ok(folder.to_owned())
            }
        })?;
        let bound = bound()?;
        let recorder = start(&order)?.map(Arc::new);
        let findings: Arc<Mutex<LateFindings>> = Arc::default();
        let (keeper, finder) = (recorder.as_ref().ok().cloned(), Arc::clone(&findings));
        let late = LateSamples {
            over: bound.over,
            counts_queue: keeper.is_none(),
            tell: Box::new(move |sample| {
                let mut findings = finder.lock().unwrap_or_else(PoisonError::into_inner);
                findings.count += 1;
                if findings.samples.len() < KEPT {
                    if let Some(keeper) = &keeper {
                        keeper.keep(around(&sample.range));
                        if let Some(thread) = sample.thread_id {
                            findings
                                .cpus
                                .entry(thread)
                                .or_insert_with(|| flight::own_cpus(thread));
                        }
                    }
                    findings.samples.push(sample);
                }
            }),
        };
        Ok(Why {
            recorder,
            late: Arc::new(late),
            found: findings,
            bound,
            folder,
        })
    }

    /// Returns the limit of latencies and the function that receives late samples.
    pub(in crate::cli::measure) fn late(&self) -> Arc<LateSamples> {
        Arc::clone(&self.late)
    }

    /// Takes the recorded events, writes the parts around late samples to files, and explains these samples.
    pub(in crate::cli::measure) fn finish(
        self,
        measurement: &Measurement,
    ) -> Result<Causes, Failure> {
        let findings =
            std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
        let wakes = match measurement.probe {
            Probe::Sleep => Wakes::Timer,
            _ => Wakes::Other,
        };
        let mut causes = Causes {
            over_ns: i64::try_from(self.bound.over.as_nanos()).unwrap_or(i64::MAX),
            pilot_samples: self.bound.samples,
            late: findings.count,
            causes: Vec::new(),
            samples: Vec::new(),
            recorder: None,
            medians: medians(&self.bound.pilot, measurement),
            left_out: Vec::new(),
        };
        let recorder = match &self.recorder {
            Ok(recorder) => recorder,
            Err(why) => {
                causes
                    .left_out
                    .push(("who held the CPUs".to_owned(), why.clone()));
                causes.explain_with(
                    findings
                        .samples
                        .into_iter()
                        .map(|it| counted(it, wakes))
                        .collect(),
                );
                return Ok(causes);
            }
        };
        // Events after the last late sample are also needed, so the recorder runs a little longer.
        std::thread::sleep(Duration::from_nanos(AFTER_NS));
        let capture = recorder.capture();
        let thread = recorder.thread_id();
        let cpus: String = findings.cpus.into_values().collect();
        let mut samples = Vec::new();
        for (number, stretch) in (1..).zip(stretches(findings.samples)) {
            let file = self.folder.join(format!("late-{number}.data"));
            fs::create_dir_all(&self.folder)
                .map_err(|error| Failure::writing(&self.folder, &error))?;
            let part = capture.within(&stretch.range);
            write(&part, &cpus, &file).map_err(|error| Failure::writing(&file, &error))?;
            samples.extend(explained(&file, stretch.samples, wakes, thread)?);
        }
        causes.explain_with(samples);
        let cost = capture.cost();
        causes.recorder = Some(RecorderCost {
            cpu_ns: cost.cpu_ns,
            cpu_share: cost.cpu_share(),
            records: cost.records,
            records_per_second: cost.per_second(),
            lost: cost.lost,
            bytes: cost.bytes,
            dropped_bytes: cost.dropped_bytes,
        });
        let left_out = capture.left_out().iter();
        causes.left_out = left_out
            .map(|left| (left.event.clone(), left.why.clone()))
            .collect();
        Ok(causes)
    }
}

/// Starts a recorder. If the user lacks the rights to record, the inner result is the reason.
fn start(order: &Order) -> Result<Result<Recorder, String>, Failure> {
    match Recorder::start(order) {
        Ok(recorder) => Ok(Ok(recorder)),
        Err(error @ StartError::Rights(_)) => Ok(Err(error.to_string())),
        Err(error) => Err(Failure::Input(error.to_string())),
    }
}

/// Explains a sample by the time without a CPU that the kernel counted.
fn counted(sample: LateSample, wakes: Wakes) -> ExplainedSample {
    let own_ns = sample.latency_ns - sample.began_late_ns;
    let parts = sample.queued_ns.map(|queued_ns| Lateness {
        thread_id: sample.thread_id.unwrap_or(0),
        ready_ns: queued_ns.min(own_ns),
        unknown_ns: (own_ns - queued_ns).max(0),
        ..Lateness::default()
    });
    explained_sample(sample, parts, wakes, None, [0, own_ns])
}

fn explained_sample(
    sample: LateSample,
    parts: Option<Lateness>,
    wakes: Wakes,
    recording: Option<String>,
    during_ns: [i64; 2],
) -> ExplainedSample {
    let began_late_ns = sample.began_late_ns;
    let (cause, process) = main_cause(parts.as_ref(), began_late_ns, sample.latency_ns, wakes);
    let mut explained = ExplainedSample {
        method: sample.method,
        setting: sample.setting,
        run: sample.run,
        sequence: sample.sequence,
        latency_ns: sample.latency_ns,
        began_late_ns,
        parts,
        cause,
        process,
        sentence: String::new(),
        recording,
        during_ns,
    };
    explained.sentence = explained.in_words(wakes);
    explained
}
/// Returns the first unused name for the folder.
fn new_folder() -> Result<PathBuf, Failure> {
    let names = (1_u32..).map(|number| match number {
        1 => PathBuf::from("laglab-why"),
        _ => PathBuf::from(format!("laglab-why-{number}")),
    });
    let mut names = names.filter(|name| !name.exists());
    names.next().ok_or_else(|| {
        let why = "all names of folders are in use; give one with --why-folder";
        Failure::Input(format!("cannot make a folder for recordings: {why}"))
    })
}

/// Returns the time range to record for a delay. Both ranges are in nanoseconds of the recording's clock.
fn around(delay: &Range<u64>) -> Range<u64> {
    delay.start.saturating_sub(BEFORE_NS)..delay.end.saturating_add(AFTER_NS)
}

/// Time range of one recording, and the late samples in this range.
struct Stretch {
    range: Range<u64>,
    samples: Vec<LateSample>,
}

/// Groups late samples whose time ranges overlap, so that they share a recording. Returns at most [`RECORDINGS`]
/// groups: the groups with the largest latencies.
fn stretches(mut samples: Vec<LateSample>) -> Vec<Stretch> {
    samples.sort_by_key(|sample| sample.range.start);
    let mut all: Vec<Stretch> = Vec::new();
    for sample in samples {
        let range = around(&sample.range);
        match all.last_mut() {
            Some(last) if range.start <= last.range.end => {
                last.range.end = last.range.end.max(range.end);
                last.samples.push(sample);
            }
            _ => all.push(Stretch {
                range,
                samples: vec![sample],
            }),
        }
    }
    let worst = |stretch: &Stretch| stretch.samples.iter().map(|it| it.latency_ns).max();
    all.sort_by_key(|stretch| Reverse(worst(stretch)));
    all.truncate(RECORDINGS);
    for stretch in &mut all {
        stretch
            .samples
            .sort_by_key(|sample| Reverse(sample.latency_ns));
        stretch.samples.truncate(EXPLAINED);
    }
    all
}

/// Writes a recording, and the facts next to it: those of the recorder, then `cpus`.
fn write(part: &Capture, cpus: &str, file: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    part.write(&mut out)?;
    out.flush()?;
    fs::write(
        import_linux::facts_path(file),
        [part.facts(), cpus].concat(),
    )
}

/// Observer that never cancels the explanation. When the user ends the measurement by Ctrl-C, the explanation of its
/// samples must still be made.
struct Unstoppable;

impl Observer for Unstoppable {
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task> {
        Terminal.begin(what, amount)
    }

    fn warn(&self, text: &str) {
        Terminal.warn(text);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Explains the late samples of a recording. `recorder` is the id of the recorder's thread.
fn explained(
    file: &Path,
    samples: Vec<LateSample>,
    wakes: Wakes,
    recorder: u32,
) -> Result<Vec<ExplainedSample>, Failure> {
    let origin_ns = origin_ns(file).map_err(|error| Failure::input(file, error))?;
    let since = |ns: u64| ns.wrapping_sub(origin_ns).cast_signed();
    let late: Vec<Late> = samples
        .iter()
        .map(|sample| {
            // Until the thread had finished the earlier samples, the delay belongs to them.
            let own = sample
                .range
                .start
                .saturating_add_signed(sample.began_late_ns);
            Late {
                sampler: match sample.thread_id {
                    Some(id) => Sampler::Thread(id),
                    None => Sampler::Process {
                        id: std::process::id(),
                        except: recorder,
                    },
                },
                during: since(own)..since(sample.range.end),
            }
        })
        .collect();
    let tables = TraceTables::open(&[file.to_owned()], Cache::Off, Arc::new(Unstoppable))?;
    let parts = tables.watched(|options| late_samples(tables.store(), &late, options))?;
    let recording = file.display().to_string();
    let explained = samples.into_iter().zip(late).zip(parts);
    let explained = explained.map(|((sample, late), parts)| {
        let during = [late.during.start, late.during.end];
        explained_sample(sample, parts, wakes, Some(recording.clone()), during)
    });
    Ok(explained.collect())
}

/// Returns the time of the recording's first event in nanoseconds of the recording's clock. The times in the tables
/// count from this event.
fn origin_ns(file: &Path) -> Result<u64, linux::OpenError> {
    let recording = linux::Recording::open(Box::new(files::FileSource::new(File::open(file)?)?))?;
    let first = recording.chunks().iter().filter_map(|chunk| chunk.first_ns);
    Ok(first.min().unwrap_or(0))
}

/// Returns the medians of each method and setting: in the pilot, which ran without the recorder, and in the
/// measurement.
fn medians(pilot: &Measurement, measurement: &Measurement) -> Vec<Medians> {
    let of_pilot = pilot.groups();
    let groups = measurement.groups();
    let sampled = groups.iter().filter(|group| is_sampled(group.first));
    sampled
        .map(|group| {
            let first = group.first;
            let same = of_pilot.iter().find(|other| {
                let other = other.first;
                (&other.method, &other.setting, &other.phase)
                    == (&first.method, &first.setting, &first.phase)
            });
            let median = |summary: Summary| summary.p50_ns;
            Medians {
                method: first.method.clone(),
                setting: first.setting.clone(),
                without_ns: same.and_then(|group| median(group.latencies())),
                with_ns: median(group.latencies()),
            }
        })
        .collect()
}
