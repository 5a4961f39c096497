//! The probe: every method, under every state of the cache, in turns.

use std::time::Duration;

use ioring::Library;
use tables::Probe;

use super::cache::bytes_from_device;
use super::method::Conditions;
use super::opening;
use super::positional::read_all;
use super::sums::Sums;
use super::watch::ReadTime;
use super::{CacheState, FileSet, FilesError, FilesMethod, FilesPhase};
use crate::{
    Clock, ClockFacts, End, Grant, Machine, Measurement, Now, Plan, Sample, Scheduling, Series,
    SettingGrants, Stop, Unavailable,
};

/// What is measured.
#[derive(Clone, Debug)]
pub struct FilesProbe {
    /// The files that are read.
    pub set: FileSet,
    /// How; the others are compared to the first.
    pub methods: Vec<FilesMethod>,
    /// What is in memory before each run; each has rounds of its own.
    pub caches: Vec<CacheState>,
    /// How often.
    pub plan: Plan,
    /// What is asked of the scheduler for the thread that reads.
    pub scheduling: Scheduling,
    /// Where I/O rings come from, if not from the system: a stand-in for tests.
    pub rings: Option<Library>,
}

/// What was measured, also if it came to an early end.
#[derive(Debug)]
pub struct FilesMeasured {
    /// The runs that were made.
    pub measurement: Measurement,
    /// What ended it, if something did.
    pub failure: Option<FilesError>,
}

/// As many files as are read to try a method out.
const TRIAL: usize = 64;

impl FilesProbe {
    /// Measures until the plan is carried out for every state of the cache, it is stopped, or
    /// something goes wrong; what was measured so far is kept.
    ///
    /// # Errors
    /// If nothing can be measured: files that cannot be read, no method and no state of the cache
    /// that is available.
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
            ..ClockFacts::of(clock, clock.source().name())
        };
        let mut measurement = Measurement {
            probe: Probe::Files,
            machine: Machine::here(),
            // Between the two readings that a sample is made of there is one reading's worth.
            sample_cost_ns: Some(clock_facts.reading_ns),
            clock: clock_facts,
            settings: Vec::new(),
            unavailable: Vec::new(),
            series: Vec::new(),
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
            let end = self.plan.carry_out(methods.len(), clock, stop, |turn| {
                rounds.run(turn.method, turn.run)
            });
            measurement.notes.extend(rounds.note());
            // Who begins rotates, but the one that the others are compared to comes first.
            let place = |of: &Series| methods.iter().position(|it| it.name() == of.method);
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

    /// The methods that work here under this state; why the others do not.
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
            Err(FilesError::NotHere(why)) => {
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
            match patiently(|| method.run(&conditions)) {
                Ok(run) => {
                    run.sums.expect(&expected, &set, method.name())?;
                    methods.push(method);
                }
                Err(FilesError::NotHere(why)) => unavailable(method.to_string(), why),
                Err(error) => return Err(error),
            }
        }
        Ok(methods)
    }

    /// The setting's name.
    fn setting(&self, cache: CacheState, grants: &[Grant]) -> String {
        match self.scheduling == Scheduling::default() {
            true => cache.to_string(),
            false => format!("{cache}, {}", Grant::outcome_of(&self.scheduling, grants)),
        }
    }
}

/// How often, and how long one after the other, something is attempted that may become available.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Attempts something again that is not available yet: what a ring takes of the memory that may be
/// locked, Linux gives back some time after the ring was closed.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, FilesError>) -> Result<T, FilesError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(FilesError::NotHere(_)) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

/// Notes what is not there, once.
fn note_unavailable(measurement: &mut Measurement, one: Unavailable) {
    if !measurement.unavailable.contains(&one) {
        measurement.unavailable.push(one);
    }
}

/// The rounds under one state of the cache.
struct Rounds<'r> {
    probe: &'r FilesProbe,
    cache: CacheState,
    clock: &'r Clock,
    methods: &'r [FilesMethod],
    expected: &'r Sums,
    setting: &'r str,
    series: Vec<Series>,
    /// The bytes that the device gave in each run, as far as known.
    from_device: Vec<u64>,
    /// Methods that could be tried out and then were not available in a round.
    gone: Vec<Unavailable>,
}

impl Rounds<'_> {
    /// One run of a method; how long it took in all. None if the method is not available (any
    /// more), which leaves out what it had measured.
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
        let (before, start_ns, done) = match patiently(attempt) {
            Err(FilesError::NotHere(why)) => {
                self.leave_out(method, run, &why);
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
            let took_ns = done.times.of(phase).unwrap_or(0);
            series.samples = vec![Sample::timed(start_ns, start_ns, start_ns + took_ns)];
            self.series.push(series);
        }
        let mut each = series(FilesPhase::EachRead);
        let sample = |read: &ReadTime| Sample::timed(read.start_ns, read.start_ns, read.end_ns);
        each.samples = done.reads.iter().map(sample).collect();
        self.series.push(each);
        Ok(done.times.of(FilesPhase::Total).map(|ns| ns as f64))
    }

    /// Leaves a method out from this round on, and what it had measured before: of the other
    /// methods there are more rounds.
    fn leave_out(&mut self, method: FilesMethod, run: Option<u32>, why: &str) {
        self.series.retain(|series| series.method != method.name());
        let round = match run {
            None => "in the round for warming up".to_owned(),
            Some(0) => "in the first round".to_owned(),
            Some(run) => format!(
                "in round {}, so what it had measured before is left out",
                run + 1
            ),
        };
        self.gone.push(Unavailable {
            method: method.to_string(),
            why: format!("{why} ({}, {round})", self.cache),
        });
    }

    /// Whether the cache was as it was called.
    fn note(&mut self) -> Option<String> {
        self.from_device.sort_unstable();
        let (least, most) = (self.from_device.first()?, self.from_device.last()?);
        let median = self.from_device[self.from_device.len() / 2];
        let all = self.probe.set.bytes();
        let cache = self.cache;
        if *most == 0 && all > 0 && cache != CacheState::Warm {
            return Some(format!(
                "{cache}: the device gave 0 bytes in every run, so these are times of memory and not \
                 of a device: the file system has none of its own (tmpfs), or what is below it \
                 had the files"
            ));
        }
        Some(format!(
            "{cache}: of the {all} bytes of all files the device gave {median} in the median run \
             ({least} to {most}), with what belongs to files and folders"
        ))
    }
}
