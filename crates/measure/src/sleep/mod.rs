//! How late sleeps end.
//!
//! A sample is one sleep. Of a relative method the latency is what it slept beyond what was asked
//! for; of an absolute one, how long after its due time, which is the slot's and not the thread's, it
//! was awake: what cyclictest measures.

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
use std::time::Duration;

use crate::{
    Clock, ClockFacts, Grant, Machine, Measurement, Now, Pacing, Percentiles, Plan, Probe, Sample,
    SampleOutcome, Scheduling, Series, SettingGrants, Stop, Turn, Unavailable,
};
pub use method::{SleepMethod, UnknownMethod};
pub use resolution::{HeldResolution, Resolution, hold_resolution};

/// What is set while a thread sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SleepSetting {
    /// What it asks of the scheduler.
    pub scheduling: Scheduling,
    /// Windows: the timer resolution that the program asks for.
    pub resolution: Option<Resolution>,
    /// Windows: the program asks that its resolution holds even while no window of it is seen.
    pub without_throttling: bool,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct SleepPlan {
    /// The methods; those that are not there are said to be.
    pub methods: Vec<SleepMethod>,
    /// Every method is measured under each.
    pub settings: Vec<SleepSetting>,
    /// How long to sleep, at most [`SleepPlan::LONGEST`].
    pub requested: Duration,
    /// From the start of one sleep to that of the next.
    pub interval: Duration,
    /// Sleeps in a run.
    pub samples: u32,
    /// How many runs.
    pub plan: Plan,
}

/// Nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum SleepError {
    /// None of the methods is there.
    #[error("none of these ways to sleep is available here: {}", Unavailable::list(.0))]
    NothingAvailable(Vec<Unavailable>),
    /// No thread could be started.
    #[error("cannot start a thread to sleep in: {0}")]
    Thread(#[from] io::Error),
    /// The times cannot be measured.
    #[error(
        "a sleep of {requested:?} every {interval:?} cannot be measured: it must be at least \
             1 ns and at most {:?}, and the interval no less",
        SleepPlan::LONGEST
    )]
    Times {
        /// How long to sleep.
        requested: Duration,
        /// How often.
        interval: Duration,
    },
}

impl fmt::Display for SleepSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut asked = Vec::new();
        asked.extend(self.resolution.map(|resolution| resolution.to_string()));
        if self.without_throttling {
            asked.push("no throttling".to_owned());
        }
        if asked.is_empty() || self.scheduling != Scheduling::default() {
            asked.insert(0, self.scheduling.to_string());
        }
        f.write_str(&asked.join(", "))
    }
}

/// Of a run while warming up.
const WARM_UP_SAMPLES: u32 = 20;

/// Sleeps of no length, for what a sample itself costs.
const COST_SAMPLES: u32 = 2_000;

/// The longest that nobody looks whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

impl SleepPlan {
    /// The longest sleep: it cannot be stopped while it lasts.
    pub const LONGEST: Duration = Duration::from_secs(10);

    /// Measures until it is enough or somebody wants it to stop.
    ///
    /// # Errors
    /// If the times make no sense, no method is there, or no thread can be started.
    pub fn measure(&self, clock: &Clock, stop: Stop<'_>) -> Result<Measurement, SleepError> {
        let (requested, interval) = (self.requested, self.interval);
        if requested.is_zero() || requested > Self::LONGEST || interval < requested {
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
                    why,
                }),
            }
        }
        if methods.is_empty() {
            return Err(SleepError::NothingAvailable(unavailable));
        }
        let machine = Machine::here();
        let facts = ClockFacts::of(clock, clock.source().name());
        let mut grants: Vec<Option<Vec<Grant>>> = vec![None; self.settings.len()];
        let mut pace = Pace::default();
        let mut series = Vec::new();
        let combinations = methods.len() * self.settings.len();
        let start_ns = clock.now_ns();
        let end = self.plan.carry_out(combinations, clock, stop, |turn| {
            let method = methods[turn.method % methods.len()];
            let number = turn.method / methods.len();
            let samples = match turn.run {
                None => self.warm_up_samples(),
                Some(_) => self.samples_kept(&pace),
            };
            let (run, granted) =
                self.run((method, number), turn, samples, (clock, start_ns), stop)?;
            if turn.run.is_none() {
                pace.add(&run, self.interval);
            }
            grants[number].get_or_insert(granted);
            let median = run.percentiles().median();
            // A run without a sample was stopped before its first.
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
                        setting: Grant::outcome_of(setting, &grants),
                        of: Vec::new(),
                        grants,
                    }
                })
                .collect(),
            unavailable,
            series,
            end,
            notes: self.notes(&methods, &pace),
        })
    }

    /// One run, in a thread of its own.
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
        let (failed, mut grants) = setting.scheduling.run(|_| {
            let held = setting.hold();
            series.resolution_ns = system::resolution_ns();
            let mut sleeper = match system::Sleeper::open(method) {
                Ok(sleeper) => sleeper,
                Err(why) => return (Some(why), held),
            };
            let loops = Loop {
                requested_ns: nanoseconds(self.requested),
                interval_ns: nanoseconds(self.interval),
                is_absolute: method.is_absolute(),
            };
            let now = Since { clock, start_ns };
            let failed = loops.sample(&now, stop, samples, &mut series, |ns| sleeper.sleep(ns));
            (failed.map(|error| error.to_string()), held)
        })?;
        let (failed, held) = failed;
        grants.extend(held.grants.iter().cloned());
        series.setting = Grant::outcome_of(&setting, &grants);
        if let Some(why) = failed {
            grants.push(Grant::new(method.name(), Err(why)));
        }
        Ok((series, grants))
    }

    /// What a sample costs: one that does not sleep.
    fn sample_cost_ns(&self, clock: &Clock) -> f64 {
        let loops = Loop {
            requested_ns: 0,
            interval_ns: 1,
            is_absolute: true,
        };
        let mut nothing = Series::new(Probe::Sleep, "", "", 0);
        let start_ns = clock.now_ns();
        loops.sample(clock, &|| false, COST_SAMPLES, &mut nothing, |_| Ok(()));
        (clock.now_ns() - start_ns) as f64 / f64::from(COST_SAMPLES)
    }

    /// How long it takes at least, whatever [`Plan::time`] says: the rounds that are made anyway, if
    /// every slot is kept.
    pub fn least_time(&self) -> Duration {
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

    /// Sleeps in a run that counts: fewer than asked for if there is a time to keep and slots are too
    /// short to be, so that a run takes as long as it would if they were. This is settled before the
    /// first such run: to end runs early would leave out just the latest sleeps.
    fn samples_kept(&self, pace: &Pace) -> u32 {
        let is_kept = pace.found_ns * 4 <= pace.planned_ns * 5;
        if is_kept || self.plan.time == Duration::MAX {
            return self.samples;
        }
        let samples = i128::from(self.samples) * pace.planned_ns / pace.found_ns;
        u32::try_from(samples).unwrap_or(self.samples).max(1)
    }

    fn notes(&self, methods: &[SleepMethod], pace: &Pace) -> Vec<String> {
        let mut notes = self.grains(methods);
        let samples = self.samples_kept(pace);
        if samples < self.samples {
            notes.push(format!(
                "Sleeps every {:?} cannot be kept here: a run has {samples} of them, not {}, to end in \
                 time. What an absolute sleep is late by is mostly that; try a longer --interval.",
                self.interval, self.samples
            ));
        }
        notes
    }

    /// What methods round that they are asked for.
    fn grains(&self, methods: &[SleepMethod]) -> Vec<String> {
        let grain = |method: &&SleepMethod| nanoseconds(self.requested) % method.grain_ns() != 0;
        methods
            .iter()
            .filter(grain)
            .map(|method| {
                format!(
                    "{} takes whole steps of {}: what it sleeps longer for that counts as late.",
                    method.name(),
                    crate::short_time(method.grain_ns())
                )
            })
            .collect()
    }
}

/// How long slots take, as the runs for warming up find it.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// One of each method and setting, as planned.
    planned_ns: i128,
    /// As found.
    found_ns: i128,
}

impl Pace {
    /// Adds that of a run: the median time from one start to the next.
    fn add(&mut self, run: &Series, interval: Duration) {
        let starts = run.samples.windows(2);
        let between = starts.map(|two| Some(two[1].start_ns.saturating_sub(two[0].start_ns)));
        let mut found = Percentiles::default();
        between.for_each(|ns| found.add(ns));
        let planned_ns = nanoseconds(interval);
        self.planned_ns += i128::from(planned_ns);
        self.found_ns += i128::from(found.median().unwrap_or(0).max(planned_ns));
    }
}

impl SleepSetting {
    /// What is held while a run lasts.
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

/// The clock, from the measurement's start on.
struct Since<'c> {
    clock: &'c Clock,
    start_ns: i64,
}

impl Now for Since<'_> {
    fn now_ns(&self) -> i64 {
        self.clock.now_ns() - self.start_ns
    }
}

/// The loop that every method is measured in.
struct Loop {
    requested_ns: i64,
    interval_ns: i64,
    /// Whether a sleep's end is that of its slot, or counts from when it began.
    is_absolute: bool,
}

impl Loop {
    /// Takes samples until there are enough, somebody wants it to stop, or a sleep fails, which is
    /// given.
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
        // No memory is asked for between samples.
        series.samples.reserve(samples.min(1 << 20) as usize);
        let mut failed = None;
        for _ in 0..samples {
            let slot = pacing.slot();
            // Never longer than a slot: the clock may have gone back.
            let left_ns = slot.intended_ns.saturating_sub(clock.now_ns());
            let left_ns = left_ns.clamp(0, self.interval_ns);
            pause(Duration::from_nanos(left_ns.cast_unsigned()), stop);
            if stop() {
                break;
            }
            let start_ns = clock.now_ns();
            let from_ns = match self.is_absolute {
                true => slot.intended_ns,
                false => start_ns,
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
            // How long it slept becomes how late that was.
            let late = |slept_ns: i64| slept_ns - (due_ns - start_ns);
            sample.latency_ns = sample.latency_ns.map(late);
            series.samples.push(sample);
        }
        failed
    }
}

/// Waits for so long, or until somebody wants it to stop.
fn pause(time: Duration, stop: Stop<'_>) {
    let mut left = time;
    while !left.is_zero() && !stop() {
        let step = left.min(PATIENCE);
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

    /// A clock that only sleeping moves.
    #[derive(Default)]
    struct Hand(Cell<i64>);

    impl Now for Hand {
        fn now_ns(&self) -> i64 {
            self.0.get()
        }
    }

    /// A cycle of 1 ms whose sleeps are 10 µs late, save one that is a second late.
    fn stalled(is_absolute: bool) -> Series {
        let clock = Hand::default();
        let mut series = Series::new(Probe::Sleep, "m", "s", 0);
        let loops = Loop {
            requested_ns: MS,
            interval_ns: MS,
            is_absolute,
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
    fn a_stall_of_a_second_shows_in_the_sleeps_after_it() {
        let series = stalled(true);
        let late: Vec<i64> = series.samples.iter().filter_map(|s| s.latency_ns).collect();
        assert_eq!(late.len(), 3_000);
        assert_eq!(late[999], MS / 100);
        assert_eq!(late[1_000], 1_000 * MS);
        // Each sleep after it was due a millisecond later and took 10 µs of no sleep.
        assert_eq!(late[1_001], 999 * MS + MS / 100);
        assert_eq!(late[1_500], 500 * MS + 500 * MS / 100);
        assert_eq!(late[2_500], MS / 100);
        // Counted per sleep, as a loop that waits for the machine would, one in 3,000 was late.
        let over = late.iter().filter(|ns| **ns > 500 * MS).count();
        assert!(over > 490, "{over}");
    }

    #[test]
    fn a_relative_sleep_counts_from_its_start_and_its_slot_is_kept_beside_it() {
        let series = stalled(false);
        let sample = series.samples[1_001];
        assert_eq!(sample.latency_ns, Some(MS / 100));
        assert_eq!(sample.intended_start_ns, 1_001 * MS);
        // 1,001 sleeps that took 10 µs more than a slot, save the one.
        assert_eq!(
            sample.start_ns - sample.intended_start_ns,
            1_000 * MS + 1_000 * MS / 100
        );
        assert!(series.lateness().missed >= 1_999);
    }

    #[test]
    fn a_clock_that_goes_back_is_said() {
        let clock = Hand::default();
        let mut series = Series::new(Probe::Sleep, "m", "s", 0);
        let loops = Loop {
            requested_ns: MS,
            interval_ns: MS,
            is_absolute: false,
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
        assert_eq!(series.percentiles().summary().unknown, 1);
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
                precision: None,
            },
        }
    }

    #[test]
    fn every_method_sleeps_no_less_than_asked_for_or_says_why_it_is_not_there() {
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
            let summary = group.percentiles().summary();
            assert_eq!(
                (summary.count, summary.unknown),
                (10, 0),
                "{}",
                group.first.method
            );
            // The clock that times sleeps and ours may run apart by 500 parts per million.
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
    fn what_was_measured_before_it_was_stopped_is_kept() {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) > 200;
        let mut long = plan(&SleepMethod::HERE[..1]);
        long.samples = 1_000_000;
        long.plan.warm_up = 0;
        let measured = long.measure(&Clock::best(), &stop).unwrap();
        assert_eq!(measured.end, End::Stopped);
        let samples = measured.series[0].samples.len();
        assert!((20..=200).contains(&samples), "{samples}");
        assert_eq!(measured.table().len(), samples);
    }

    /// 100,000 slots of 10 ns are a millisecond, in which no system sleeps as often.
    #[test]
    fn slots_that_nothing_can_keep_do_not_make_runs_longer() {
        let mut hasty = plan(&SleepMethod::HERE[..1]);
        (hasty.requested, hasty.interval) = (Duration::from_nanos(10), Duration::from_nanos(10));
        (hasty.samples, hasty.plan.at_most) = (100_000, 4);
        hasty.plan.time = Duration::from_millis(4);
        let measured = hasty.measure(&Clock::best(), &|| false).unwrap();
        for run in &measured.series {
            assert!((1..=20_000).contains(&run.samples.len()));
        }
        let told = |note: &String| note.contains("cannot be kept");
        assert!(measured.notes.iter().any(told), "{:?}", measured.notes);

        // Without a time to keep, as many as were asked for.
        (hasty.samples, hasty.plan.time) = (50, Duration::MAX);
        let measured = hasty.measure(&Clock::best(), &|| false).unwrap();
        assert!(measured.series.iter().all(|run| run.samples.len() == 50));
    }

    #[test]
    fn the_least_time_is_that_of_the_rounds_that_are_made_anyway() {
        let mut long = plan(SleepMethod::HERE);
        (long.requested, long.interval) = (Duration::from_secs(10), Duration::from_secs(20));
        (long.samples, long.plan.warm_up, long.plan.at_least) = (3, 0, 2);
        // Two rounds of runs of three sleeps: 20 s, 20 s, and the last of 10 s.
        let methods = SleepMethod::HERE.len() as u64;
        assert_eq!(long.least_time().as_secs(), methods * 2 * 50);
        long.plan.warm_up = 1;
        assert_eq!(long.least_time().as_secs(), methods * 3 * 50);
        let elsewhere = |method: &SleepMethod| !SleepMethod::HERE.contains(method);
        long.methods = SleepMethod::ALL.into_iter().filter(elsewhere).collect();
        assert_eq!(long.least_time(), Duration::ZERO);
    }

    #[test]
    fn samples_carry_what_was_refused() {
        let mut asking = plan(&SleepMethod::HERE[..1]);
        asking.settings[0].scheduling.cpu = Some(100_000);
        let measured = asking.measure(&Clock::best(), &|| false).unwrap();
        assert_eq!(measured.settings[0].setting, "CPU 100000 (refused)");
        let settings = measured.series.iter().map(|series| &series.setting);
        assert!(settings.eq([&measured.settings[0].setting; 2]));
    }

    #[test]
    fn nonsense_is_refused() {
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
