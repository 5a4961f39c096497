//! The clock interrupt: how often it comes, which process's timers it serves, and so when a sleep
//! ends.
//!
//! Times are ticks of the trace's clock since the trace began; periods are in 100 ns, as Windows'
//! own interfaces count them.

use std::collections::BTreeMap;
use std::num::NonZero;

use crate::windows::Windows;

/// Time between clock interrupts when nobody asks for less: 15.625 ms, in 100 ns.
pub const DEFAULT_PERIOD: u32 = 156_250;

/// The least time between clock interrupts: 0.5 ms, in 100 ns.
pub const FINEST_PERIOD: u32 = 5_000;

/// The 100 ns of which periods are counted, in a second.
const UNITS_PER_SECOND: u128 = 10_000_000;

/// The clock interrupt of a machine and the processes that ask for it to come more often
/// (`timeBeginPeriod`, `NtSetTimerResolution`).
///
/// Interrupt *k* comes at the floor of *k* periods in ticks, so that no error builds up at any clock
/// frequency. When the period changes, the next one is counted from the last interrupt.
#[derive(Clone, Debug)]
pub struct ClockInterrupt {
    windows: Windows,
    frequency: u128,
    global_requests: bool,
    period: u32,
    /// The interrupt from which `period` is counted, in 100 ns since the trace began.
    anchor: u128,
    processes: BTreeMap<u32, Process>,
}

/// What a process has said or shown that bears on its timers.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    requested: Option<u32>,
    hidden: bool,
    always_honoured: bool,
}

impl ClockInterrupt {
    /// A clock interrupt at time 0 and every [`DEFAULT_PERIOD`] after it, on a clock of `frequency`
    /// ticks per second. `global_requests` is the registry value `GlobalTimerResolutionRequests`,
    /// which Windows 11 (and Server 2022) obeys and others ignore.
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

    /// A process asks for a period of 100 ns units, or with `None` takes its request back. A new
    /// request replaces its former one.
    pub fn request(&mut self, now: u64, process: u32, period: Option<u32>) {
        self.change(now, process, |process| process.requested = period);
    }

    /// A process's windows become visible, or all hidden: occluded or minimised.
    pub fn set_visible(&mut self, now: u64, process: u32, visible: bool) {
        self.change(now, process, |process| process.hidden = !visible);
    }

    /// A process says whether its request must count even while it is hidden:
    /// `PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION` under control and off.
    pub fn set_always_honoured(&mut self, now: u64, process: u32, always: bool) {
        self.change(now, process, |process| process.always_honoured = always);
    }

    /// A process ends, and with it what it asked for.
    pub fn end_process(&mut self, now: u64, process: u32) {
        self.processes.remove(&process);
        self.follow_requests(now);
    }

    /// Whether a process has a request that Windows ignores, because it is Windows 11 and the
    /// process is hidden. What `RequestIgnored` of Microsoft-Windows-Kernel-Power tells.
    pub fn is_request_ignored(&self, process: u32) -> bool {
        self.processes
            .get(&process)
            .is_some_and(|process| process.requested.is_some() && self.honoured(process).is_none())
    }

    /// The time between clock interrupts now, in 100 ns: the finest request that is honoured.
    pub fn hardware_period(&self) -> u32 {
        self.period
    }

    /// How often a process's timers are looked at, in 100 ns; always a multiple of the
    /// [hardware's period](ClockInterrupt::hardware_period).
    ///
    /// Before Windows 10 2004, and with global requests, every interrupt serves everyone. Since
    /// then only a process's own request counts for it: without one it is served at the default
    /// period, or, when the hardware runs at a finer one for somebody else, at as many whole
    /// periods as the default holds. That last rule is inferred: `Sleep(1)` was measured to take
    /// 15.48 to 15.58 ms on Windows 10 21H2 while the hardware ran at 0.4992 ms, of which 31 make
    /// 15.4752 ms.
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

    /// The first clock interrupt at or after `time`.
    pub fn next_interrupt(&self, time: u64) -> u64 {
        self.next_multiple(time, self.period)
    }

    /// When a wait of `delay` ticks that a thread of `process` begins `now` ends: at the first clock
    /// interrupt that serves the process at or after its due time. It holds until the next change
    /// of a request.
    ///
    /// The due time counts from the precise present since Windows 8, so that no wait is too short,
    /// and before that from the last clock interrupt ("Timer Accuracy" in the driver documentation).
    pub fn expiry(&self, now: u64, delay: u64, process: u32) -> u64 {
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

    /// The period that a process asked for, within what the hardware can do, unless it is ignored.
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

    /// Sets the period to the finest honoured request, counted from the last interrupt.
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

    /// The last clock interrupt that is not after `time`, in 100 ns.
    fn last_interrupt(&self, time: u64) -> u128 {
        // The last 100 ns unit that is not after it once rounded down to ticks.
        let until = ((u128::from(time) + 1) * UNITS_PER_SECOND).div_ceil(self.frequency) - 1;
        let passed = until.saturating_sub(self.anchor);
        self.anchor + passed - passed % u128::from(self.period)
    }

    /// The first multiple of `period` after the anchor that is not before `time`.
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

/// The most whole hardware periods that `wanted` holds, at least one.
fn whole_periods(wanted: u32, hardware: u32) -> u32 {
    (wanted / hardware).max(1) * hardware
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    const GAME: u32 = 4242;
    const OTHER: u32 = 100;
    /// Ticks of 100 ns.
    const TEN_MHZ: NonZero<u64> = NonZero::new(10_000_000).expect("not 0");

    fn clock(windows: Windows) -> ClockInterrupt {
        ClockInterrupt::new(windows, TEN_MHZ, false)
    }

    /// How long `Sleep(1)` of the game's thread takes, in ms, 4 µs after an interrupt woke it.
    fn sleep_1(clock: &ClockInterrupt) -> f64 {
        let woken = clock.expiry(1_000_000, 0, GAME) + 40;
        (clock.expiry(woken, 10_000, GAME) - woken) as f64 / 10_000.0
    }

    /// ceil((d + 1 ms) / T) · T − d with d = 4 µs, worked out by hand.
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

    /// `Sleep(1)` as PC-Tuning measured it: 1.4953 to 1.4968 ms with a request that counts, about
    /// 15.5 ms on Windows 10 with somebody else's, and 15.616 to 15.6245 ms when hidden.
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

    /// "The expiration can occur up to a period earlier than … the specified time" before Windows 8.
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

    /// Whatever the frequency, interrupt k is at floor(k · period), found here one by one; also
    /// right before and after an interrupt, and when the period changes there.
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
        clock.request(402_500, GAME, Some(5_000)); // at the very moment of an interrupt
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
