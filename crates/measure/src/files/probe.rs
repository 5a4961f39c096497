//! File probe. It measures every method under every cache state, in turns.

use std::sync::Arc;
use std::time::Duration;

use ioring::Library;
use tables::Probe;
use wording::grouped;

use super::cache::bytes_from_device;
use super::opening;
use super::positional::read_all;
use super::run::Conditions;
use super::sums::Sums;
use super::watch::ReadTime;
use super::{CacheState, FileSet, FilesError, FilesMethod, FilesPhase};
use crate::compare::{Variant, references};
use crate::late::own_thread_id;
use crate::{
    Clock, ClockFacts, End, Grant, LateSamples, Machine, Measurement, Now, Plan, Sample,
    Scheduling, Series, SettingGrants, Stop, Unavailable,
};

/// Plan of a file measurement.
#[derive(Clone, Debug)]
pub struct FilesProbe {
    /// Files to read.
    pub set: FileSet,
    /// Methods to measure. The other methods are compared with the first.
    pub methods: Vec<FilesMethod>,
    /// Cache states to measure. Each state has separate rounds of runs.
    pub caches: Vec<CacheState>,
    /// Number and order of the runs.
    pub plan: Plan,
    /// Scheduling requests for the reading thread.
    pub scheduling: Scheduling,
    /// Library of I/O rings, for example a stand-in for tests. `None` means the rings of the
    /// system.
    pub rings: Option<Library>,
    /// Limit of the duration of reads, and the function that receives longer reads; `None` if long reads are not
    /// reported.
    pub late: Option<Arc<LateSamples>>,
}

/// Result of a measurement, possibly incomplete.
#[derive(Debug)]
pub struct FilesMeasured {
    /// Measurement with all runs that were completed.
    pub measurement: Measurement,
    /// Error that ended the measurement early, if there was one.
    pub failure: Option<FilesError>,
}

/// Number of files that a method reads in a trial before the measurement.
const TRIAL: usize = 64;

impl FilesProbe {
    /// Carries out the plan for every cache state. If `stop` returns true or an error occurs, the measurement ends
    /// early, and the result contains the runs so far.
    ///
    /// # Errors
    /// Returns an error if nothing can be measured, because files are unreadable, or because no
    /// method or cache state is available.
    pub fn measure(&self, clock: &Clock, stop: Stop<'_>) -> Result<FilesMeasured, FilesError> {
        let work = |grants: &[Grant]| self.in_thread(clock, stop, grants);
        let (measured, _) = self.scheduling.run(work).map_err(FilesError::Thread)?;
        measured
    }

    fn in_thread(
        &self,
        clock: &Clock,
        stop: Stop<'_>,
        grants: &[Grant],
    ) -> Result<FilesMeasured, FilesError> {
        opening::allow(self.set.count())?;
        let expected = read_all(&self.set)?;
        let clock_facts = ClockFacts {
            ticks_per_second: Some(clock.ticks_per_second()),
            ..ClockFacts::measure(clock, clock.source().name())
        };
        let mut measurement = Measurement {
            probe: Probe::Files,
            machine: Machine::detect(),
            // The difference of the two readings around a sample includes the cost of one reading.
            sample_cost_ns: Some(clock_facts.reading_ns),
            clock: clock_facts,
            settings: Vec::new(),
            unavailable: Vec::new(),
            series: Vec::new(),
            goal: self.plan.goal,
            end: End::Rounds,
            notes: Vec::new(),
        };
        let mut failure = None;
        for &cache in &self.caches {
            let methods = self.try_out(cache, clock, &mut measurement)?;
            if methods.is_empty() {
                continue;
            }
            let setting = self.setting(cache, grants);
            let mut rounds = Rounds {
                probe: self,
                cache,
                clock,
                methods: &methods,
                expected: &expected,
                setting: &setting,
                series: Vec::new(),
                from_device: Vec::new(),
                gone: Vec::new(),
            };
            let variants = methods.iter().map(|method| Variant {
                load: cache,
                method,
                setting: (),
            });
            let references = references(&variants.collect::<Vec<_>>());
            let end = self.plan.carry_out(&references, clock, stop, |turn| {
                rounds.run(turn.method, turn.run)
            });
            measurement.notes.extend(rounds.note());
            // The order of the methods changes from round to round. The results have the requested order, so
            // that the reference method comes first.
            let place = |series: &Series| methods.iter().position(|it| it.name() == series.method);
            rounds.series.sort_by_key(place);
            measurement.series.append(&mut rounds.series);
            for gone in rounds.gone {
                note_unavailable(&mut measurement, gone);
            }
            measurement.settings.push(SettingGrants {
                setting,
                of: Vec::new(),
                grants: grants.to_vec(),
            });
            match end {
                Ok(end) => measurement.end = end,
                Err(error) => failure = Some(error),
            }
            if failure.is_some() || measurement.end == End::Stopped {
                break;
            }
        }
        match failure {
            Some(failure) if measurement.series.is_empty() => Err(failure),
            None if measurement.series.is_empty() && measurement.end != End::Stopped => {
                Err(FilesError::NothingAvailable(measurement.unavailable))
            }
            failure => Ok(FilesMeasured {
                measurement,
                failure,
            }),
        }
    }

    /// Returns the methods that work in this cache state. Adds each other method to `measurement`, with the
    /// reason why the method does not work.
    fn try_out(
        &self,
        cache: CacheState,
        clock: &Clock,
        measurement: &mut Measurement,
    ) -> Result<Vec<FilesMethod>, FilesError> {
        let set = self.set.first(TRIAL);
        let expected = read_all(&set)?;
        let mut unavailable = |method: String, why: String| {
            note_unavailable(measurement, Unavailable { method, why })
        };
        match cache.prepare(&set) {
            Ok(()) => {}
            Err(FilesError::Unavailable(why)) => {
                unavailable(cache.to_string(), why);
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
        let conditions = Conditions {
            set: &set,
            cache,
            clock,
            rings: self.rings,
        };
        let mut methods = Vec::new();
        for &method in &self.methods {
            match retry_unavailable(|| method.run(&conditions)) {
                Ok(run) => {
                    run.sums.expect(&expected, &set, method.name())?;
                    methods.push(method);
                }
                Err(FilesError::Unavailable(why)) => unavailable(method.to_string(), why),
                Err(error) => return Err(error),
            }
        }
        Ok(methods)
    }

    /// Returns the name of the setting.
    fn setting(&self, cache: CacheState, grants: &[Grant]) -> String {
        if self.scheduling == Scheduling::default() {
            cache.to_string()
        } else {
            format!("{cache}, {}", Grant::describe(&self.scheduling, grants))
        }
    }
}

/// Number of attempts for a method that may become available.
const ATTEMPTS: u32 = 5;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats an attempt that fails as unavailable. This helps because Linux releases the locked
/// memory of a ring some time after the ring was closed.
fn retry_unavailable<T>(
    mut attempt: impl FnMut() -> Result<T, FilesError>,
) -> Result<T, FilesError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(FilesError::Unavailable(_)) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

/// Adds an unavailable method to the measurement, unless the measurement already lists it.
fn note_unavailable(measurement: &mut Measurement, one: Unavailable) {
    if !measurement.unavailable.contains(&one) {
        measurement.unavailable.push(one);
    }
}

/// Rounds of runs in one cache state.
struct Rounds<'r> {
    probe: &'r FilesProbe,
    cache: CacheState,
    clock: &'r Clock,
    methods: &'r [FilesMethod],
    expected: &'r Sums,
    setting: &'r str,
    series: Vec<Series>,
    /// Number of bytes that the device delivered in each run, if known.
    from_device: Vec<u64>,
    /// Methods that worked in the trial but failed in a later round.
    gone: Vec<Unavailable>,
}

impl Rounds<'_> {
    /// Makes one run of a method and returns its total time in nanoseconds. Returns `None` in a warm-up
    /// round. If the method is no longer available, drops the results of the method and returns `None`.
    fn run(&mut self, method: usize, run: Option<u32>) -> Result<Option<f64>, FilesError> {
        let method = self.methods[method];
        if self.gone.iter().any(|gone| gone.method == method.name()) {
            return Ok(None);
        }
        let set = &self.probe.set;
        let conditions = Conditions {
            set,
            cache: self.cache,
            clock: self.clock,
            rings: self.probe.rings,
        };
        let attempt = || {
            self.cache.prepare(set)?;
            let before = bytes_from_device();
            let start_ns = self.clock.now_ns();
            Ok((before, start_ns, method.run(&conditions)?))
        };
        let (before, start_ns, done) = match retry_unavailable(attempt) {
            Err(FilesError::Unavailable(why)) => {
                self.drop_method(method, run, &why);
                return Ok(None);
            }
            done => done?,
        };
        done.sums.expect(self.expected, set, method.name())?;
        let Some(run) = run else {
            return Ok(None);
        };
        let from_device = before.zip(bytes_from_device());
        self.from_device
            .extend(from_device.and_then(|(before, after)| after.checked_sub(before)));
        let series = |phase: FilesPhase| {
            let mut series = Series::new(Probe::Files, method.name(), self.setting, run);
            series.phase = Some(phase.name().to_owned());
            series
        };
        for phase in FilesPhase::PARTS {
            let mut series = series(phase);
            series.size_bytes = Some(set.bytes());
            let took_ns = done.times.duration_ns(phase).unwrap_or(0);
            series.samples = vec![Sample::timed(start_ns, start_ns, start_ns + took_ns)];
            self.series.push(series);
        }
        let mut each = series(FilesPhase::EachRead);
        let sample = |read: &ReadTime| Sample::timed(read.start_ns, read.start_ns, read.end_ns);
        each.samples = done.reads.iter().map(sample).collect();
        if let Some(late) = &self.probe.late {
            let thread_id = own_thread_id().filter(|_| !method.has_threads());
            late.report_run(&each, thread_id, self.clock);
        }
        self.series.push(each);
        Ok(done
            .times
            .duration_ns(FilesPhase::Total)
            .map(|ns| ns as f64))
    }

    /// Excludes a method from this round on and drops its earlier results. The other methods will have more
    /// rounds, so a comparison with the dropped results would be unfair.
    fn drop_method(&mut self, method: FilesMethod, run: Option<u32>, why: &str) {
        self.series.retain(|series| series.method != method.name());
        let round = match run {
            None => "in the warm-up round".to_owned(),
            Some(0) => "in the first round".to_owned(),
            Some(run) => format!("in round {}; its earlier results are left out", run + 1),
        };
        self.gone.push(Unavailable {
            method: method.to_string(),
            why: format!("{why} ({}, {round})", self.cache),
        });
    }

    /// Returns a note about the number of bytes that the device delivered. The note shows whether the files
    /// were really in the requested cache state.
    fn note(&mut self) -> Option<String> {
        self.from_device.sort_unstable();
        let (least, most) = (self.from_device.first()?, self.from_device.last()?);
        let median = self.from_device[self.from_device.len() / 2];
        let all = self.probe.set.bytes();
        let cache = self.cache;
        if *most == 0 && all > 0 && cache != CacheState::Warm {
            return Some(format!(
                "{cache}: the device delivered 0 bytes in every run, so the reads came from memory, not from \
                 a device: the file system has no device (tmpfs), or a lower layer cached the files"
            ));
        }
        Some(format!(
            "{cache}: the device delivered {} bytes in the median run ({} to {}), including \
             metadata; the files have {} bytes",
            grouped(median),
            grouped(*least),
            grouped(*most),
            grouped(all)
        ))
    }
}
