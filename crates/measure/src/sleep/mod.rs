//! Lateness of sleeps.
//!
//! A sample is one sleep. For a relative method, the latency is the time by which the sleep exceeded the
//! requested duration. For an absolute method, the latency is the time from the slot's due time to the
//! wake-up, as in cyclictest.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

mod method;
mod resolution;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Since;
use crate::compare::{Variant, references};
use crate::late::{Delay, Queue, own_thread_id};
use crate::{
    Clock, ClockFacts, Grant, LateSamples, Machine, Measurement, Now, Pacing, Percentiles, Plan,
    Probe, Sample, SampleOutcome, Scheduling, Series, SettingGrants, Stop, Turn, Unavailable,
};
pub use method::SleepMethod;
pub use resolution::{HeldResolution, Resolution, hold_resolution};

/// Settings under which a thread sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SleepSetting {
    /// Scheduling requests.
    pub scheduling: Scheduling,
    /// Timer resolution that the program requests on Windows.
    pub resolution: Option<Resolution>,
    /// True if the program requests that Windows keeps the resolution while no window of the program is
    /// visible.
    pub without_throttling: bool,
}

/// Plan of a sleep measurement.
#[derive(Clone, Debug)]
pub struct SleepPlan {
    /// Methods to measure. Unavailable methods are listed in the result.
    pub methods: Vec<SleepMethod>,
    /// Settings to measure. Every method is measured under each setting.
    pub settings: Vec<SleepSetting>,
    /// Duration of a sleep, at most [`SleepPlan::MAX_SLEEP`].
    pub requested: Duration,
    /// Time from the start of a sleep to the start of the next sleep.
    pub interval: Duration,
    /// Number of sleeps per run.
    pub samples: u32,
    /// Number and order of the runs.
    pub plan: Plan,
    /// Limit of the lateness, and the function that receives later sleeps; `None` if late sleeps are not reported.
    pub late: Option<Arc<LateSamples>>,
}

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum SleepError {
    /// No method is available.
    #[error("none of the sleep methods is available: {}", Unavailable::list(.0))]
    NothingAvailable(Vec<Unavailable>),
    /// The thread cannot be started.
    #[error("cannot start the sleeping thread: {0}")]
    Thread(#[from] io::Error),
    /// The duration of a sleep or the interval is invalid.
    #[error(
        "invalid times: a sleep of {requested:?} every {interval:?}; a sleep must take 1 ns to {:?}, \
         and the interval must not be shorter",
        SleepPlan::MAX_SLEEP
    )]
    Times {
        /// Duration of a sleep.
        requested: Duration,
        /// Time from the start of a sleep to the start of the next sleep.
        interval: Duration,
    },
}

impl fmt::Display for SleepSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.resolution.map(|resolution| resolution.to_string()));
        if self.without_throttling {
            parts.push("no throttling".to_owned());
        }
        if parts.is_empty() || self.scheduling != Scheduling::default() {
            parts.insert(0, self.scheduling.to_string());
        }
        f.write_str(&parts.join(", "))
    }
}

/// Number of sleeps in a warm-up run.
const WARM_UP_SAMPLES: u32 = 20;

/// Number of samples from which the cost of a sample is computed. These samples do not sleep.
const COST_SAMPLES: u32 = 2_000;

/// Maximum time between two calls of `stop`.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

impl SleepPlan {
    /// Maximum duration of a sleep. It is limited because `stop` cannot end a sleep.
    pub const MAX_SLEEP: Duration = Duration::from_secs(10);

    /// Measures until the plan is done or `stop` returns true.
    ///
    /// # Errors
    /// Returns an error if the times are invalid, no method is available, or the thread cannot be
    /// started.
    pub fn measure(&self, clock: &Clock, stop: Stop<'_>) -> Result<Measurement, SleepError> {
        let (requested, interval) = (self.requested, self.interval);
        if requested.is_zero() || requested > Self::MAX_SLEEP || interval < requested {
            return Err(SleepError::Times {
                requested,
                interval,
            });
        }
        let mut unavailable = Vec::new();
        let mut methods = Vec::new();
        for method in &self.methods {
            match system::Sleeper::open(*method) {
                Ok(_) => methods.push(*method),
                Err(why) => unavailable.push(Unavailable {
                    method: method.name().to_owned(),
                    why: why.to_string(),
                }),
            }
        }
        if methods.is_empty() {
            return Err(SleepError::NothingAvailable(unavailable));
        }
        let machine = Machine::detect();
        let facts = ClockFacts::measure(clock, clock.source().name());
        let mut grants: Vec<Option<Vec<Grant>>> = vec![None; self.settings.len()];
        let mut pace = Pace::default();
        let mut series = Vec::new();
        let variants = (0..methods.len() * self.settings.len()).map(|place| Variant {
            load: (),
            method: place / self.settings.len(),
            setting: place % self.settings.len(),
        });
        let references = references(&variants.collect::<Vec<_>>());
        let start_ns = clock.now_ns();
        let end = self.plan.carry_out(&references, clock, stop, |turn| {
            // The settings of a method are adjacent, because they are compared with each other.
            let method = methods[turn.method / self.settings.len()];
            let number = turn.method % self.settings.len();
            let samples = match turn.run {
                None => self.warm_up_samples(),
                Some(_) => self.samples_per_run(&pace),
            };
            let (run, granted) =
                self.run((method, number), turn, samples, (clock, start_ns), stop)?;
            if turn.run.is_none() {
                pace.add(&run, self.interval);
            }
            grants[number].get_or_insert(granted);
            let median = run.percentiles().median();
            // A run has no samples if it was stopped before its first sample.
            if turn.run.is_some() && !run.samples.is_empty() {
                series.push(run);
            }
            Ok::<_, SleepError>(median.map(|ns| ns as f64))
        })?;
        let settings = self.settings.iter().zip(grants);
        Ok(Measurement {
            probe: Probe::Sleep,
            machine,
            clock: facts,
            sample_cost_ns: Some(self.sample_cost_ns(clock)),
            settings: settings
                .map(|(setting, grants)| {
                    let grants = grants.unwrap_or_default();
                    SettingGrants {
                        setting: Grant::describe(setting, &grants),
                        of: Vec::new(),
                        grants,
                    }
                })
                .collect(),
            unavailable,
            series,
            goal: self.plan.goal,
            end,
            notes: self.notes(&methods, &pace),
        })
    }

    /// Runs a method in a new thread.
    fn run(
        &self,
        (method, number): (SleepMethod, usize),
        turn: Turn,
        samples: u32,
        (clock, start_ns): (&Clock, i64),
        stop: Stop<'_>,
    ) -> io::Result<(Series, Vec<Grant>)> {
        let setting = self.settings[number];
        let mut series = Series::new(Probe::Sleep, method.name(), "", turn.run.unwrap_or(0));
        series.requested_ns = Some(nanoseconds(self.requested));
        // Late samples are reported during the run. At this time, the answers of the system are not complete, so the
        // reports name only the requested setting.
        series.setting = setting.to_string();
        let late = self.late.as_deref().filter(|_| turn.run.is_some());
        let (failed, mut grants) = setting.scheduling.run(|_| {
            let hold = setting.hold();
            series.resolution_ns = system::resolution_ns();
            let mut sleeper = match system::Sleeper::open(method) {
                Ok(sleeper) => sleeper,
                Err(refusal) => return (Some(refusal.to_string()), hold),
            };
            let loops = Loop {
                requested_ns: nanoseconds(self.requested),
                interval_ns: nanoseconds(self.interval),
                is_absolute: method.is_absolute(),
                late,
            };
            let now = Since { clock, start_ns };
            let failed = loops.sample(&now, stop, samples, &mut series, |ns| sleeper.sleep(ns));
            (failed.map(|error| error.to_string()), hold)
        })?;
        let (failed, held) = failed;
        grants.extend(held.grants.iter().cloned());
        series.setting = Grant::describe(&setting, &grants);
        if let Some(why) = failed {
            grants.push(Grant::new(method.name(), Err(why)));
        }
        Ok((series, grants))
    }

    /// Returns the mean cost of a sample in nanoseconds, measured with samples that do not sleep.
    fn sample_cost_ns(&self, clock: &Clock) -> f64 {
        let loops = Loop {
            requested_ns: 0,
            interval_ns: 1,
            is_absolute: true,
            late: None,
        };
        let mut nothing = Series::new(Probe::Sleep, "", "", 0);
        let start_ns = clock.now_ns();
        loops.sample(clock, &|| false, COST_SAMPLES, &mut nothing, |_| Ok(()));
        (clock.now_ns() - start_ns) as f64 / f64::from(COST_SAMPLES)
    }

    /// Returns the minimum duration of the measurement, regardless of [`Plan::time`]. The minimum duration is
    /// the duration of the required rounds if every sleep starts on time.
    pub fn minimum_time(&self) -> Duration {
        let run = |samples: u32| {
            let between = self.interval.saturating_mul(samples.saturating_sub(1));
            between.saturating_add(self.requested)
        };
        let warm_up = run(self.warm_up_samples()).saturating_mul(self.plan.warm_up);
        let counted = run(self.samples).saturating_mul(self.plan.at_least.max(1));
        let here = |method: &&SleepMethod| SleepMethod::HERE.contains(*method);
        let methods = self.methods.iter().filter(here).count() * self.settings.len();
        let methods = u32::try_from(methods).unwrap_or(u32::MAX);
        warm_up.saturating_add(counted).saturating_mul(methods)
    }

    fn warm_up_samples(&self) -> u32 {
        self.samples.min(WARM_UP_SAMPLES)
    }

    /// Returns the number of sleeps per counted run. If the machine cannot keep the interval, the number is
    /// reduced, so that a run ends in time. The number is fixed before the first counted run. If the plan
    /// ended a run early instead, the run would lose its last sleeps. The last sleeps have the largest
    /// lateness.
    fn samples_per_run(&self, pace: &Pace) -> u32 {
        let is_kept = pace.found_ns * 4 <= pace.planned_ns * 5;
        if is_kept || self.plan.time == Duration::MAX {
            return self.samples;
        }
        let samples = i128::from(self.samples) * pace.planned_ns / pace.found_ns;
        u32::try_from(samples).unwrap_or(self.samples).max(1)
    }

    fn notes(&self, methods: &[SleepMethod], pace: &Pace) -> Vec<String> {
        let mut notes = self.granularity_notes(methods);
        let samples = self.samples_per_run(pace);
        if samples < self.samples {
            notes.push(format!(
                "This machine cannot keep an interval of {:?}: to end in time, a run has {} \
                 instead of {}. Absolute sleeps are late mostly because the interval is too short; use a \
                 longer --interval.",
                self.interval,
                wording::counted(samples.into(), "sleep", "sleeps"),
                wording::grouped(self.samples.into())
            ));
        }
        notes
    }

    /// Returns notes about methods that round the requested duration.
    fn granularity_notes(&self, methods: &[SleepMethod]) -> Vec<String> {
        let rounds =
            |method: &&SleepMethod| nanoseconds(self.requested) % method.granularity_ns() != 0;
        methods
            .iter()
            .filter(rounds)
            .map(|method| {
                format!(
                    "{} rounds up to steps of {}; the extra sleep counts as lateness.",
                    method.name(),
                    crate::short_time(method.granularity_ns())
                )
            })
            .collect()
    }
}

/// Planned and measured duration of slots. The slots are measured in warm-up runs.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Sum of the planned slot durations, one for each warm-up run.
    planned_ns: i128,
    /// Sum of the measured slot durations, one for each warm-up run.
    found_ns: i128,
}

impl Pace {
    /// Adds a warm-up run. Its slot duration is the median time from one start to the next.
    fn add(&mut self, run: &Series, interval: Duration) {
        let starts = run.samples.windows(2);
        let between = starts.map(|two| Some(two[1].start_ns.saturating_sub(two[0].start_ns)));
        let percentiles = Percentiles::from_latencies(between);
        let planned_ns = nanoseconds(interval);
        self.planned_ns += i128::from(planned_ns);
        self.found_ns += i128::from(percentiles.median().unwrap_or(0).max(planned_ns));
    }
}

impl SleepSetting {
    /// Requests the timer resolution of the setting until the result is dropped.
    fn hold(&self) -> HeldResolution {
        match (self.resolution, self.without_throttling) {
            (None, false) => HeldResolution::default(),
            (resolution, without_throttling) => hold_resolution(resolution, without_throttling),
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Sampling loop that all methods share.
struct Loop<'l> {
    requested_ns: i64,
    interval_ns: i64,
    /// True if the due time of a sleep counts from the intended start of its slot. False if the due time
    /// counts from the actual start of the sleep.
    is_absolute: bool,
    late: Option<&'l LateSamples>,
}

impl Loop<'_> {
    /// Takes samples until there are `samples` samples, `stop` returns true, or a sleep fails. Returns the
    /// error of the failed sleep, if there is one.
    fn sample(
        &self,
        clock: &impl Now,
        stop: Stop<'_>,
        samples: u32,
        series: &mut Series,
        mut sleep: impl FnMut(i64) -> io::Result<()>,
    ) -> Option<io::Error> {
        let mut pacing = Pacing::every(self.interval_ns, clock.now_ns());
        series.interval_ns = Some(self.interval_ns);
        // Memory is allocated before the first sample, so that this does not disturb the samples.
        series.samples.reserve(samples.min(1 << 20) as usize);
        let mut failed = None;
        let thread_id = self.late.and_then(|_| own_thread_id());
        let queue = self.late.filter(|late| late.counts_queue);
        let queue = queue.and_then(|_| Queue::open());
        for _ in 0..samples {
            let slot = pacing.slot();
            let queued_before = queue.as_ref().and_then(Queue::read_ns);
            let free_ns = clock.now_ns();
            // The pause is never longer than a slot, even if the clock went back.
            let left_ns = slot.intended_ns.saturating_sub(free_ns);
            let left_ns = left_ns.clamp(0, self.interval_ns);
            pause(Duration::from_nanos(left_ns.cast_unsigned()), stop);
            if stop() {
                break;
            }
            let start_ns = clock.now_ns();
            let from_ns = if self.is_absolute {
                slot.intended_ns
            } else {
                start_ns
            };
            let due_ns = from_ns.saturating_add(self.requested_ns);
            if let Err(error) = sleep(due_ns - start_ns) {
                let (intended, outcome) = (slot.intended_ns, SampleOutcome::Failed);
                let sample = Sample::without_end(intended, start_ns, outcome);
                series.samples.push(sample);
                failed = Some(error);
                break;
            }
            let mut sample = Sample::timed(slot.intended_ns, start_ns, clock.now_ns());
            // Converts the duration of the sleep into its lateness.
            let late = |slept_ns: i64| slept_ns - (due_ns - start_ns);
            sample.latency_ns = sample.latency_ns.map(late);
            series.samples.push(sample);
            if let Some(late) = self.late
                && let Some(latency_ns) = sample.latency_ns.filter(|ns| late.has(*ns))
            {
                let queued = queue.as_ref().and_then(Queue::read_ns).zip(queued_before);
                let delay = Delay {
                    latency_ns,
                    queued_ns: queued.map(|(after, before)| after.saturating_sub(before)),
                    end_ns: due_ns.saturating_add(latency_ns),
                    // At `free_ns`, the thread had finished the previous sleep. If `free_ns` is after `due_ns`, the
                    // previous sleep caused the delay between these two times. A pause that was too long is later than
                    // `free_ns`, so it counts as a delay of this sleep.
                    began_late_ns: free_ns.saturating_sub(due_ns),
                };
                let sequence = series.samples.len() as u64 - 1;
                late.report(series, sequence, delay, thread_id, clock);
            }
        }
        failed
    }
}

/// Waits for a duration, or until `stop` returns true.
fn pause(time: Duration, stop: Stop<'_>) {
    let mut left = time;
    while !left.is_zero() && !stop() {
        let step = left.min(STOP_INTERVAL);
        std::thread::sleep(step);
        left -= step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::End;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    const MS: i64 = 1_000_000;

    /// Clock that advances only during sleeps.
    #[derive(Default)]
    struct Hand(Cell<i64>);

    impl Now for Hand {
        fn now_ns(&self) -> i64 {
            self.0.get()
        }
    }

    /// Returns samples that start every millisecond. Each sleep ends 10 µs late, except for one sleep that
    /// ends 1 s late.
    fn stalled(is_absolute: bool) -> Series {
        let clock = Hand::default();
        let mut series = Series::new(Probe::Sleep, "m", "s", 0);
        let loops = Loop {
            requested_ns: MS,
            interval_ns: MS,
            is_absolute,
            late: None,
        };
        let slept = Cell::new(0);
        let failed = loops.sample(&clock, &|| false, 3_000, &mut series, |ns| {
            slept.set(slept.get() + 1);
            let late = if slept.get() == 1_001 {
                1_000 * MS
            } else {
                MS / 100
            };
            clock.0.set(clock.0.get() + ns.max(0) + late);
            Ok(())
        });
        assert!(failed.is_none());
        series
    }

    #[test]
    fn a_stall_shows_in_later_sleeps() {
        let series = stalled(true);
        let late: Vec<i64> = series.samples.iter().filter_map(|s| s.latency_ns).collect();
        assert_eq!(late.len(), 3_000);
        assert_eq!(late[999], MS / 100);
        assert_eq!(late[1_000], 1_000 * MS);
        // Each sleep after the stall is due 1 ms after the previous sleep. The due time of this sleep has
        // already passed, so the sleep takes only 10 µs.
        assert_eq!(late[1_001], 999 * MS + MS / 100);
        assert_eq!(late[1_500], 500 * MS + 500 * MS / 100);
        assert_eq!(late[2_500], MS / 100);
        // A loop that starts over after a stall would find only one late sleep in 3,000.
        let over = late.iter().filter(|ns| **ns > 500 * MS).count();
        assert!(over > 490, "{over}");
    }

    #[test]
    fn relative_sleeps_count_from_their_start() {
        let series = stalled(false);
        let sample = series.samples[1_001];
        assert_eq!(sample.latency_ns, Some(MS / 100));
        assert_eq!(sample.intended_start_ns, 1_001 * MS);
        // Of the 1,001 sleeps before this sample, 1,000 ended 10 µs late and one ended 1 s late.
        assert_eq!(
            sample.start_ns - sample.intended_start_ns,
            1_000 * MS + 1_000 * MS / 100
        );
        assert!(series.lateness().missed >= 1_999);
    }

    #[test]
    fn a_clock_that_goes_back_is_reported() {
        let clock = Hand::default();
        let mut series = Series::new(Probe::Sleep, "m", "s", 0);
        let loops = Loop {
            requested_ns: MS,
            interval_ns: MS,
            is_absolute: false,
            late: None,
        };
        let count = Cell::new(0);
        loops.sample(&clock, &|| false, 3, &mut series, |ns| {
            count.set(count.get() + 1);
            let step = if count.get() == 2 {
                -3_600_000 * MS
            } else {
                ns
            };
            clock.0.set(clock.0.get() + step);
            Ok(())
        });
        let outcomes: Vec<SampleOutcome> = series.samples.iter().map(|s| s.outcome).collect();
        assert_eq!(outcomes[1], SampleOutcome::ClockWentBack);
        assert_eq!(series.samples[1].latency_ns, None);
        assert_eq!(series.percentiles().summary(|_| 0).unknown, 1);
    }

    fn plan(methods: &[SleepMethod]) -> SleepPlan {
        SleepPlan {
            methods: methods.to_vec(),
            settings: vec![SleepSetting::default()],
            requested: Duration::from_micros(100),
            interval: Duration::from_micros(200),
            samples: 5,
            plan: Plan {
                warm_up: 1,
                at_least: 2,
                at_most: 2,
                time: Duration::MAX,
                goal: None,
            },
            late: None,
        }
    }

    #[test]
    fn methods_sleep_long_enough_or_are_unavailable() {
        let measured = plan(&SleepMethod::ALL)
            .measure(&Clock::best(), &|| false)
            .unwrap();
        let groups = measured.groups();
        assert_eq!(
            groups.len() + measured.unavailable.len(),
            SleepMethod::ALL.len()
        );
        assert!(!groups.is_empty());
        for group in &groups {
            assert_eq!(group.runs.len(), 2);
            let summary = group.latencies();
            assert_eq!(
                (summary.count, summary.unknown),
                (10, 0),
                "{}",
                group.first.method
            );
            // The clock of the samples and the clock of the sleeps may differ by up to 500 parts per million.
            let early = summary.min_ns.unwrap();
            assert!(
                early >= -1_000 || cfg!(windows),
                "{}: {early}",
                group.first.method
            );
        }
        for unavailable in &measured.unavailable {
            assert!(unavailable.why.contains("Windows") || unavailable.why.contains("Linux"));
        }
        assert!(measured.sample_cost_ns.is_some_and(|ns| ns > 0.0));
    }

    #[test]
    fn samples_before_a_stop_are_kept() {
        let calls = AtomicU32::new(0);
        let stop = || calls.fetch_add(1, Ordering::Relaxed) > 200;
        let mut long = plan(&SleepMethod::HERE[..1]);
        long.samples = 1_000_000;
        long.plan.warm_up = 0;
        let measured = long.measure(&Clock::best(), &stop).unwrap();
        assert_eq!(measured.end, End::Stopped);
        let samples = measured.series[0].samples.len();
        assert!((20..=200).contains(&samples), "{samples}");
        assert_eq!(measured.table().len(), samples);
    }

    #[test]
    fn late_samples_are_reported_with_their_time() {
        let late = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = Arc::clone(&late);
        let mut reporting = plan(&SleepMethod::HERE[..1]);
        reporting.late = Some(Arc::new(LateSamples {
            over: Duration::ZERO,
            counts_queue: true,
            tell: Box::new(move |sample| sink.lock().unwrap().push(sample)),
        }));
        let before = crate::system_clock_ns();
        let measured = reporting.measure(&Clock::best(), &|| false).unwrap();
        let after = crate::system_clock_ns();
        let late = late.lock().unwrap();
        // The warm-up does not count. Sleeps of this system never end early, except on Windows.
        let positive = measured.series.iter().flat_map(|run| &run.samples);
        let positive = positive
            .filter(|sample| sample.latency_ns > Some(0))
            .count();
        assert_eq!(late.len(), positive);
        let mut last = before;
        for sample in late.iter() {
            let length = sample.range.end - sample.range.start;
            assert_eq!(i64::try_from(length).unwrap(), sample.latency_ns);
            let series = &measured.series[sample.run as usize];
            let expected = series.samples[sample.sequence as usize];
            assert_eq!(expected.latency_ns, Some(sample.latency_ns));
            assert!(last <= sample.range.end && sample.range.end <= after);
            last = sample.range.end;
            if cfg!(target_os = "linux") {
                assert!(sample.thread_id.is_some());
                assert!(sample.queued_ns.is_none_or(|ns| ns >= 0));
            }
        }
    }

    /// A run of 100,000 slots of 10 ns would take 1 ms, but no system sleeps that often.
    #[test]
    fn slots_that_cannot_be_kept_do_not_lengthen_runs() {
        let mut hasty = plan(&SleepMethod::HERE[..1]);
        (hasty.requested, hasty.interval) = (Duration::from_nanos(10), Duration::from_nanos(10));
        (hasty.samples, hasty.plan.at_most) = (100_000, 4);
        hasty.plan.time = Duration::from_millis(4);
        let measured = hasty.measure(&Clock::best(), &|| false).unwrap();
        for run in &measured.series {
            assert!((1..=20_000).contains(&run.samples.len()));
        }
        let is_found = |note: &String| note.contains("cannot keep an interval");
        assert!(measured.notes.iter().any(is_found), "{:?}", measured.notes);

        // Without a time limit, the requested number of samples is kept.
        (hasty.samples, hasty.plan.time) = (50, Duration::MAX);
        let measured = hasty.measure(&Clock::best(), &|| false).unwrap();
        assert!(measured.series.iter().all(|run| run.samples.len() == 50));
    }

    #[test]
    fn the_minimum_time_is_that_of_the_required_rounds() {
        let mut long = plan(SleepMethod::HERE);
        (long.requested, long.interval) = (Duration::from_secs(10), Duration::from_secs(20));
        (long.samples, long.plan.warm_up, long.plan.at_least) = (3, 0, 2);
        // The plan has two rounds. A run has three sleeps and takes 50 s: two intervals of 20 s and
        // the last sleep of 10 s.
        let methods = SleepMethod::HERE.len() as u64;
        assert_eq!(long.minimum_time().as_secs(), methods * 2 * 50);
        long.plan.warm_up = 1;
        assert_eq!(long.minimum_time().as_secs(), methods * 3 * 50);
        let elsewhere = |method: &SleepMethod| !SleepMethod::HERE.contains(method);
        long.methods = SleepMethod::ALL.into_iter().filter(elsewhere).collect();
        assert_eq!(long.minimum_time(), Duration::ZERO);
    }

    #[test]
    fn settings_name_refused_requests() {
        let mut asking = plan(&SleepMethod::HERE[..1]);
        asking.settings[0].scheduling.cpu = Some(100_000);
        let measured = asking.measure(&Clock::best(), &|| false).unwrap();
        assert_eq!(measured.settings[0].setting, "CPU 100000 (refused)");
        let settings = measured.series.iter().map(|series| &series.setting);
        assert!(settings.eq([&measured.settings[0].setting; 2]));
    }

    #[test]
    fn invalid_times_are_refused() {
        let elsewhere = SleepMethod::ALL
            .into_iter()
            .find(|m| !SleepMethod::HERE.contains(m));
        let refused = plan(&[elsewhere.unwrap()]).measure(&Clock::best(), &|| false);
        assert!(matches!(refused, Err(SleepError::NothingAvailable(of)) if of.len() == 1));
        for (requested, interval) in [(0, 1), (2, 1), (11_000_000_000, 11_000_000_000)] {
            let mut odd = plan(SleepMethod::HERE);
            odd.requested = Duration::from_nanos(requested);
            odd.interval = Duration::from_nanos(interval);
            let refused = odd.measure(&Clock::best(), &|| false);
            assert!(matches!(refused, Err(SleepError::Times { .. })));
        }
    }
}
