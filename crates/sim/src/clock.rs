//! The clock interrupt of Windows: its period, the processes whose timers an interrupt checks, and
//! the times at which sleeps end.
//!
//! Times are ticks of the trace's clock, counted from the trace's start. Periods are in units of
//! 100 ns, as in the interfaces of Windows.

use std::collections::BTreeMap;
use std::num::NonZero;

use crate::windows::Windows;

/// Time between clock interrupts if no process requests a shorter one: 15.625 ms, in units of 100
/// ns.
pub(crate) const DEFAULT_PERIOD: u32 = 156_250;

/// Minimum time between clock interrupts: 0.5 ms, in units of 100 ns.
pub(crate) const FINEST_PERIOD: u32 = 5_000;

/// Number of period units (100 ns) in a second.
const UNITS_PER_SECOND: u128 = 10_000_000;

/// The clock interrupt of a machine, and the processes that request a shorter period
/// (`timeBeginPeriod`, `NtSetTimerResolution`).
///
/// Interrupt *k* occurs after *k* periods, converted to ticks and rounded down. Rounding errors
/// therefore do not accumulate at any clock frequency. When the period changes, the new period
/// counts from the last interrupt.
#[derive(Clone, Debug)]
pub struct ClockInterrupt {
    windows: Windows,
    frequency: u128,
    global_requests: bool,
    period: u32,
    /// Time of the interrupt after which `period` applies, in units of 100 ns since the trace's start.
    anchor: u128,
    processes: BTreeMap<u32, Process>,
}

/// State of a process that affects the process's timers.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    requested: Option<u32>,
    hidden: bool,
    always_honoured: bool,
}

impl ClockInterrupt {
    /// Creates a clock interrupt that occurs at time 0 and every default period after it. The
    /// trace's clock has `frequency` ticks per second. `global_requests` is the registry value
    /// `GlobalTimerResolutionRequests`, which only Windows 11 (and Server 2022) uses.
    pub fn new(windows: Windows, frequency: NonZero<u64>, global_requests: bool) -> ClockInterrupt {
        ClockInterrupt {
            windows,
            frequency: frequency.get().into(),
            global_requests,
            period: DEFAULT_PERIOD,
            anchor: 0,
            processes: BTreeMap::new(),
        }
    }

    /// Sets the time of the first interrupt, in units of 100 ns since the trace's start. Before it, no interrupt occurs.
    pub fn set_phase(&mut self, phase: u64) {
        self.anchor = phase.into();
    }

    /// Sets the period that a process requests, in units of 100 ns. `None` withdraws the request.
    pub fn request(&mut self, now: u64, process: u32, period: Option<u32>) {
        self.change(now, process, |process| process.requested = period);
    }

    /// Sets whether a process has visible windows: false if all its windows are occluded or
    /// minimised.
    pub(crate) fn set_visible(&mut self, now: u64, process: u32, visible: bool) {
        self.change(now, process, |process| process.hidden = !visible);
    }

    /// Sets whether a process's request counts even while its windows are hidden. In Windows, a
    /// process achieves this if it sets `PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION` in the
    /// control mask and clears it in the state mask.
    pub(crate) fn set_always_honoured(&mut self, now: u64, process: u32, always: bool) {
        self.change(now, process, |process| process.always_honoured = always);
    }

    /// Removes a process, and withdraws the timer period that it requested.
    pub(crate) fn end_process(&mut self, now: u64, process: u32) {
        self.processes.remove(&process);
        self.follow_requests(now);
    }

    /// Returns true if Windows 11 ignores the process's request because its windows are hidden. The
    /// provider Microsoft-Windows-Kernel-Power logs this as `RequestIgnored`.
    pub(crate) fn is_request_ignored(&self, process: u32) -> bool {
        self.processes
            .get(&process)
            .is_some_and(|process| process.requested.is_some() && self.honoured(process).is_none())
    }

    /// Returns the current time between clock interrupts, in units of 100 ns. It is the shortest
    /// requested period that Windows does not ignore, or the default period.
    pub fn hardware_period(&self) -> u32 {
        self.period
    }

    /// Returns the period at which Windows checks a process's timers, in units of 100 ns. It is a
    /// multiple of the [hardware's period](ClockInterrupt::hardware_period).
    ///
    /// Before Windows 10 2004, and if requests are global, every interrupt serves all processes.
    /// Since Windows 10 2004, a process benefits only from its own request. A process without a
    /// request is served at the default period. If another process's request shortens the hardware
    /// period, the default is rounded down to whole hardware periods.
    ///
    /// This rounding is inferred from a measurement on Windows 10 21H2: `Sleep(1)` took 15.48 to
    /// 15.58 ms while the hardware period was 0.4992 ms. 31 hardware periods are 15.4752 ms.
    pub fn period_for(&self, process: u32) -> u32 {
        if self.requests_are_global() {
            return self.period;
        }
        let own = self.processes.get(&process);
        let wanted = own
            .and_then(|process| self.honoured(process))
            .unwrap_or(DEFAULT_PERIOD);
        whole_periods(wanted, self.period)
    }

    /// Returns the time of the last clock interrupt at or before `time`, in ticks.
    pub fn last_interrupt_ticks(&self, time: u64) -> u64 {
        self.ticks(self.last_interrupt(time))
    }

    /// Returns the time of the first clock interrupt at or after `time`.
    pub(crate) fn next_interrupt(&self, time: u64) -> u64 {
        self.next_multiple(time, self.period)
    }

    /// Returns the end of a wait of `delay` ticks that a thread of `process` begins at `now`. The wait ends
    /// at the first clock interrupt that serves the process and occurs at or after the due time. The result
    /// is valid until the next change of a request.
    ///
    /// Since Windows 8, the due time counts from `now`, so a wait is never shorter than `delay`. Before
    /// Windows 8, it counts from the last clock interrupt (source: "Timer Accuracy" in the driver
    /// documentation).
    pub(crate) fn expiry(&self, now: u64, delay: u64, process: u32) -> u64 {
        let start = match self.windows {
            Windows::Seven => self.ticks(self.last_interrupt(now)),
            _ => now,
        };
        self.next_multiple(start.saturating_add(delay), self.period_for(process))
    }

    fn requests_are_global(&self) -> bool {
        match self.windows {
            Windows::Seven => true,
            Windows::Ten => false,
            Windows::Eleven23H2 | Windows::Eleven25H2 => self.global_requests,
        }
    }

    /// Returns the period that the process requests, clamped to the limits of the hardware. Returns
    /// `None` if there is no request or Windows ignores it.
    fn honoured(&self, process: &Process) -> Option<u32> {
        let ignores_hidden = self.windows >= Windows::Eleven23H2;
        process
            .requested
            .filter(|_| !(ignores_hidden && process.hidden && !process.always_honoured))
            .map(|period| period.clamp(FINEST_PERIOD, DEFAULT_PERIOD))
    }

    fn change(&mut self, now: u64, process: u32, change: impl FnOnce(&mut Process)) {
        change(self.processes.entry(process).or_default());
        self.follow_requests(now);
    }

    /// Sets the period to the shortest request that Windows does not ignore. A new period counts
    /// from the last interrupt.
    fn follow_requests(&mut self, now: u64) {
        let requests = self.processes.values();
        let finest = requests
            .filter_map(|process| self.honoured(process))
            .min()
            .unwrap_or(DEFAULT_PERIOD);
        if finest == self.period {
            return;
        }
        self.anchor = self.last_interrupt(now);
        self.period = finest;
    }

    /// Returns the time of the last clock interrupt at or before `time`. `time` is in ticks, the
    /// result in units of 100 ns.
    fn last_interrupt(&self, time: u64) -> u128 {
        // The conversion to ticks rounds down. `until` is the largest time, in units of 100 ns, that becomes
        // `time` or less when it is converted to ticks.
        let until = ((u128::from(time) + 1) * UNITS_PER_SECOND).div_ceil(self.frequency) - 1;
        let passed = until.saturating_sub(self.anchor);
        self.anchor + passed - passed % u128::from(self.period)
    }

    /// Returns the first time at or after `time` that is an integer number of periods after the anchor.
    fn next_multiple(&self, time: u64, period: u32) -> u64 {
        let units = (u128::from(time) * UNITS_PER_SECOND).div_ceil(self.frequency);
        let count = units
            .saturating_sub(self.anchor)
            .div_ceil(u128::from(period));
        self.ticks(self.anchor + count * u128::from(period))
    }

    fn ticks(&self, units: u128) -> u64 {
        u64::try_from(units * self.frequency / UNITS_PER_SECOND).unwrap_or(u64::MAX)
    }
}

/// Returns the largest multiple of `hardware` that is at most `wanted`. If there is no such multiple, returns
/// `hardware`.
fn whole_periods(wanted: u32, hardware: u32) -> u32 {
    (wanted / hardware).max(1) * hardware
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    const GAME: u32 = 4242;
    const OTHER: u32 = 100;
    /// Clock frequency at which a tick is 100 ns.
    const TEN_MHZ: NonZero<u64> = NonZero::new(10_000_000).expect("not 0");

    fn clock(windows: Windows) -> ClockInterrupt {
        ClockInterrupt::new(windows, TEN_MHZ, false)
    }

    /// Returns the duration of a `Sleep(1)` in ms. The game's thread calls it 4 µs after an
    /// interrupt woke the thread.
    fn sleep_1(clock: &ClockInterrupt) -> f64 {
        let woken = clock.expiry(1_000_000, 0, GAME) + 40;
        (clock.expiry(woken, 10_000, GAME) - woken) as f64 / 10_000.0
    }

    /// Compares durations of `Sleep(1)` in the model with durations computed by hand: ceil((d + 1 ms) / T) ·
    /// T − d. T is the period, and d = 4 µs is the time from the last interrupt to the call of `Sleep(1)`.
    #[test]
    fn sleep_lengths_follow_from_the_period() {
        for (period, expected) in [
            (156_250, 15.621),
            (5_000, 1.496),
            (10_000, 1.996),
            (5_070, 1.010),
        ] {
            let mut clock = clock(Windows::Ten);
            clock.request(0, GAME, Some(period));
            assert_eq!(sleep_1(&clock), expected, "{period}");
        }
    }

    /// Compares durations of `Sleep(1)` in the model with the durations that PC-Tuning measured: 1.4953 to
    /// 1.4968 ms if a request counts, about 15.5 ms on Windows 10 if only another process has a request, and
    /// 15.616 to 15.6245 ms if a request is ignored because the process's windows are hidden.
    #[test]
    fn sleep_lengths_follow_from_whose_request_counts() {
        let mut own = clock(Windows::Ten);
        own.request(0, GAME, Some(5_000));
        assert_eq!(sleep_1(&own), 1.496);

        let mut foreign = clock(Windows::Ten);
        foreign.request(0, OTHER, Some(5_000));
        assert_eq!(foreign.hardware_period(), 5_000);
        assert_eq!(foreign.period_for(GAME), 155_000);
        assert_eq!(sleep_1(&foreign), 15.496);

        let mut global = ClockInterrupt::new(Windows::Eleven23H2, TEN_MHZ, true);
        global.request(0, OTHER, Some(5_000));
        assert_eq!(sleep_1(&global), 1.496);

        let mut hidden = global;
        hidden.set_visible(500_000, OTHER, false);
        assert!(hidden.is_request_ignored(OTHER));
        assert_eq!(hidden.hardware_period(), DEFAULT_PERIOD);
        assert_eq!(sleep_1(&hidden), 15.621);

        let mut opted_out = hidden;
        opted_out.set_always_honoured(600_000, OTHER, true);
        assert!(!opted_out.is_request_ignored(OTHER));
        assert_eq!(sleep_1(&opted_out), 1.496);
    }

    #[test]
    fn releases_differ_in_whom_a_request_serves() {
        for (windows, global, period) in [
            (Windows::Seven, false, 10_000),
            (Windows::Ten, false, 150_000),
            (Windows::Ten, true, 150_000),
            (Windows::Eleven23H2, false, 150_000),
            (Windows::Eleven23H2, true, 10_000),
            (Windows::Eleven25H2, true, 10_000),
        ] {
            let mut clock = ClockInterrupt::new(windows, TEN_MHZ, global);
            clock.request(0, OTHER, Some(10_000));
            assert_eq!(clock.period_for(OTHER), 10_000);
            assert_eq!(clock.period_for(GAME), period, "{windows:?} {global}");
        }
    }

    /// Checks a rule of the driver documentation for Windows before version 8: "The expiration can
    /// occur up to a period earlier than … the specified time".
    #[test]
    fn windows_7_counts_from_the_last_interrupt() {
        let mut clock = clock(Windows::Seven);
        assert_eq!(clock.expiry(400_000, 10_000, GAME), 468_750);
        clock.request(0, OTHER, Some(10_000));
        assert_eq!(clock.expiry(400_040, 10_000, GAME), 410_000);
        assert_eq!(clock.expiry(409_999, 10_000, GAME), 410_000);
        assert_eq!(clock.expiry(410_000, 10_000, GAME), 420_000);
        assert_eq!(clock.expiry(410_000, 10_001, GAME), 430_000);
    }

    #[test]
    fn only_windows_11_ignores_the_hidden() {
        for (windows, ignored) in [
            (Windows::Seven, false),
            (Windows::Ten, false),
            (Windows::Eleven23H2, true),
            (Windows::Eleven25H2, true),
        ] {
            let mut clock = clock(windows);
            clock.set_visible(0, GAME, false);
            assert!(!clock.is_request_ignored(GAME), "it has none yet");
            clock.request(0, GAME, Some(10_000));
            assert_eq!(clock.is_request_ignored(GAME), ignored, "{windows:?}");
        }
    }

    #[test]
    fn a_period_measured_at_0_4992_ms_explains_15_4752_ms() {
        assert_eq!(whole_periods(DEFAULT_PERIOD, 4_992), 154_752);
    }

    #[test]
    fn the_finest_request_wins_within_limits_until_it_ends() {
        let mut clock = clock(Windows::Ten);
        clock.request(0, GAME, Some(10_000));
        clock.request(0, OTHER, Some(1));
        assert_eq!(clock.hardware_period(), FINEST_PERIOD);
        clock.end_process(0, OTHER);
        assert_eq!(clock.hardware_period(), 10_000);
        clock.request(0, GAME, Some(u32::MAX));
        assert_eq!(clock.hardware_period(), DEFAULT_PERIOD);
        clock.request(0, GAME, Some(20_000));
        clock.request(0, GAME, None);
        assert_eq!(clock.hardware_period(), DEFAULT_PERIOD);
    }

    /// Checks that interrupt k occurs at floor(k · period) ticks at any clock frequency. The test searches a
    /// list of all interrupts for the expected interrupt. The due times are one tick before, at, and one tick
    /// after an interrupt. The period also changes at these times.
    #[test]
    fn interrupts_are_exact_at_any_frequency() {
        let mut rng = Rng(5);
        for frequency in [1, 1_000, 3_579_545, 10_000_000, 2_996_000_000] {
            let mut clock =
                ClockInterrupt::new(Windows::Ten, NonZero::new(frequency).expect("not 0"), false);
            let period = 5_000 + rng.below(151_250) as u128;
            clock.request(0, GAME, Some(period as u32));
            let ticks = |units: u128| (units * u128::from(frequency) / 10_000_000) as u64;
            let interrupts: Vec<u64> = (0..2_000).map(|k| ticks(k * period)).collect();
            for _ in 0..2_000 {
                let near = interrupts[1 + rng.below(1_900)];
                let now = rng.bits() % near.max(1);
                let due = (near + rng.below(3) as u64).saturating_sub(1).max(now);
                let expected = interrupts.iter().find(|&&time| time >= due);
                assert_eq!(Some(&clock.expiry(now, due - now, GAME)), expected);

                let mut changed = clock.clone();
                changed.request(due, GAME, Some(150_000));
                let last = interrupts.partition_point(|&time| time <= due) as u128 - 1;
                let mut later = (1..).map(|k| ticks(last * period + k * 150_000));
                let next = later.find(|&time| time > due);
                assert_eq!(Some(changed.next_interrupt(due + 1)), next);
            }
        }
    }

    #[test]
    fn a_new_period_counts_from_the_last_interrupt() {
        let mut clock = clock(Windows::Ten);
        assert_eq!(clock.next_interrupt(1), 156_250);
        clock.request(400_000, GAME, Some(10_000));
        assert_eq!(clock.next_interrupt(400_000), 312_500 + 9 * 10_000);
        clock.request(402_500, GAME, Some(5_000)); // exactly at the time of an interrupt
        assert_eq!(clock.next_interrupt(402_501), 407_500);
        clock.request(404_000, GAME, None);
        assert_eq!(clock.next_interrupt(404_000), 402_500 + 156_250);
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        let clock = ClockInterrupt::new(Windows::Ten, NonZero::<u64>::MAX, false);
        assert_eq!(clock.expiry(u64::MAX, u64::MAX, GAME), u64::MAX);
        let slow = ClockInterrupt::new(Windows::Ten, NonZero::<u64>::MIN, false);
        assert_eq!(slow.expiry(u64::MAX, 1, GAME), u64::MAX);
    }
}
