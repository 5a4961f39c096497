//! Thresholds of the theories. Each threshold has one name, one value, a unit and a source.
//!
//! The table of thresholds in `docs/explain.md` is generated from this file, including the
//! comments. Limits of output (rows shown, findings listed) and of memory are not thresholds. They
//! are next to the code that needs them.

use crate::{duration, grouped};

/// Value at which a judgement changes.
struct Threshold {
    name: &'static str,
    meaning: &'static [&'static str],
    value: i64,
    unit: Unit,
    source: &'static str,
}

/// Unit of a threshold.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Duration,
    Percent,
    Number,
}

const NIELSEN: &str = "Jakob Nielsen, Response Times: The 3 Important Limits";
const GUIDANCE: &str = "Microsoft, Example 15: Measuring DPC/ISR Time";
const INTERNALS: &str = "Windows Internals, 7th edition, part 1";
const TIMERS: &str = "Microsoft, timeBeginPeriod";
const MEASURED: &str = "measured on Windows 10 and 11";
const OWN: &str = "laglab's own";

macro_rules! thresholds {
    ($(
        $(#[doc = $meaning:literal])+
        $name:ident: $type:ty = $value:literal $unit:ident, $source:ident;
    )+) => {
        $(
            $(#[doc = $meaning])+
            pub(crate) const $name: $type = $value;
        )+

        static ALL: &[Threshold] = &[$(Threshold {
            name: stringify!($name),
            meaning: &[$($meaning),+],
            value: $value,
            unit: Unit::$unit,
            source: $source,
        }),+];
    };
}

thresholds! {
    /// Delay that people notice. Shorter reactions feel instantaneous.
    NOTICED_NS: i64 = 100_000_000 Duration, NIELSEN;
    /// Delay that interrupts people's flow of thought.
    DISRUPTIVE_NS: i64 = 1_000_000_000 Duration, NIELSEN;
    /// Base priority of ordinary programs. Delays of threads with a lower priority are less urgent.
    NORMAL_PRIORITY: i8 = 8 Number, INTERNALS;
    /// Least share of a second, lost to short waits for a CPU and to interrupts, that counts.
    LOST_PERCENT: i64 = 15 Percent, OWN;
    /// Least priority of a real-time thread. Windows never changes such a priority.
    REAL_TIME_PRIORITY: i8 = 16 Number, INTERNALS;
    /// Least number of wakes of a real-time thread with which its period is determined.
    PERIODS: usize = 20 Number, OWN;
    /// Least share of a real-time thread's period for which a wait for a CPU counts as a missed period.
    MISSED_PERCENT: i64 = 50 Percent, OWN;
    /// Least number of missed periods that are reported.
    MISSED_PERIODS: usize = 3 Number, OWN;
    /// Least share of a wait for which a part of its chain is reported as the cause.
    BLAME_PERCENT: i64 = 30 Percent, OWN;
    /// Least share of a wait for which a cause counts as its explanation.
    CAUSE_PERCENT: i64 = 50 Percent, OWN;
    /// Least share of a wait for which a cause counts as a part of its explanation.
    PARTIAL_CAUSE_PERCENT: i64 = 10 Percent, OWN;
    /// Least share of the CPUs' time during a wait that the trace must show. If it shows less, the wait is
    /// doubtful.
    RECORDED_PERCENT: i64 = 50 Percent, OWN;
    /// Longest time from when data arrives from the network to when the thread that waits for it is
    /// readied.
    NETWORK_WAKE_NS: i64 = 1_000_000 Duration, OWN;
    /// Longest time that a processor takes to leave an idle state.
    IDLE_EXIT_NS: i64 = 1_000_000 Duration, OWN;
    /// Time after which Windows may raise the priority of a ready thread that gets no CPU.
    STARVATION_NS: i64 = 1_000_000_000 Duration, INTERNALS;
    /// Least wait of a ready thread that ends at priority 15 and, with its earlier priority unknown, counts as starved.
    STARVED_NS: i64 = 3_000_000_000 Duration, INTERNALS;
    /// Multiple of the mean time between samples. A CPU without samples for this time may have lost
    /// a buffer.
    LOST_SAMPLES: i64 = 10 Number, OWN;

    /// Shortest gap without any event that is treated as a suspend gap.
    SUSPEND_MIN_NS: i64 = 200_000_000 Duration, OWN;
    /// Length of a gap without any event that is always a suspend gap, because the balance set manager runs
    /// once a second.
    SUSPEND_MAX_NS: i64 = 2_000_000_000 Duration, INTERNALS;
    /// Shortest suspend gap, as a multiple of the time between two samples.
    SUSPEND_SAMPLES: i64 = 100 Number, OWN;

    /// Least share of CPU time for which all CPUs count as busy.
    SATURATED_PERCENT: i64 = 95 Percent, OWN;
    /// Shortest saturation that is reported.
    SATURATED_NS: i64 = 500_000_000 Duration, OWN;

    /// CPU time of a DPC that Microsoft's guidance allows.
    DPC_LIMIT_NS: i64 = 100_000 Duration, GUIDANCE;
    /// CPU time of an ISR that Microsoft's guidance allows.
    ISR_LIMIT_NS: i64 = 25_000 Duration, GUIDANCE;
    /// Least number of runs over the limit for which a routine counts as usually too long. Half of its runs
    /// must also be over the limit.
    USUALLY_LONG_RUNS: i64 = 100 Number, OWN;
    /// Multiple of the limit. A single run of this length matters, because a DPC of 10 ms is as long as a
    /// buffer of sound.
    LONG_RUN_TIMES: i64 = 100 Number, OWN;
    /// Least length of a single run for which the report mentions the DPC watchdog.
    WATCHDOG_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Least share of a second in DPCs and ISRs for which a CPU counts as locked.
    LOCKED_PERCENT: i64 = 80 Percent, OWN;
    /// Least number of samples of a CPU in a second with which a share is computed.
    LOCKED_SAMPLES: i64 = 20 Number, OWN;
    /// Least wait for a locked CPU for which a thread counts as delayed.
    HELD_UP_NS: i64 = 1_000_000 Duration, OWN;

    /// Least stall of a CPU that is reported. A video frame or a buffer of sound is as long.
    STALL_NS: i64 = 10_000_000 Duration, OWN;
    /// Least number of consecutive samples in a small range of addresses that look like a loop, if there
    /// are no symbols.
    LOOP_SAMPLES: i64 = 20 Number, OWN;
    /// Size of the address range of such a loop, in bytes.
    LOOP_BYTES: u64 = 128 Number, OWN;
    /// Number of innermost stack frames among which the driver that waits in a loop is searched.
    LOOP_FRAMES: usize = 3 Number, OWN;

    /// Least wait for a lock that counts as part of a convoy. Shorter waits are ordinary.
    LOCK_WAIT_NS: i64 = 20_000_000 Duration, OWN;
    /// Longest time that a thread of a convoy holds the lock.
    LOCK_HELD_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Least number of threads in a convoy. Fewer threads may be stages of a pipeline.
    CONVOY_THREADS: usize = 4 Number, OWN;
    /// Least number of handovers of the lock in a convoy.
    CONVOY_HANDOVERS: u64 = 8 Number, OWN;
    /// Least share of a thread's waits for which the report says that the holders of the lock got no CPU.
    STARVED_HOLDER_PERCENT: i64 = 10 Percent, OWN;

    /// Least sum of a thread's waits for hard faults that is reported.
    HARD_FAULTS_NS: i64 = 500_000_000 Duration, OWN;
    /// Least mean time of a disk's requests for which the disk counts as slow.
    SLOW_DISK_NS: i64 = 25_000_000 Duration, OWN;
    /// Least time of a single disk request that is reported, even if all other requests are fast.
    SLOW_REQUEST_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Least number of disk requests with which the mean is judged.
    DISK_REQUESTS: u64 = 50 Number, OWN;

    /// Least share of its time for which a CPU that serves the network alone counts as too busy.
    NETWORK_CPU_PERCENT: i64 = 50 Percent, OWN;
    /// Greatest CPU time that signing or encryption of SMB takes for a mebibyte of data. If the
    /// measured time is longer and samples have no stacks, another program probably called the
    /// cryptography.
    SMB_COST_NS: i64 = 200_000_000 Duration, OWN;
    /// Least share of the samples inside DPCs for which SMB's signing or encryption counts as their cause.
    SMB_DPC_PERCENT: i64 = 50 Percent, OWN;
    /// Least CPU time of signing or encryption, as a share of the copy's time, that counts as slowing the
    /// copy.
    SMB_CPU_PERCENT: i64 = 50 Percent, OWN;

    /// Least number of a program's turns with which its quantum is determined.
    QUANTUM_TURNS: u64 = 20 Number, OWN;

    /// Time between two clock interrupts if no program requests a shorter time.
    CLOCK_PERIOD_NS: i64 = 15_625_000 Duration, TIMERS;
    /// Least number of a process's sleeps with which a median is computed.
    SLEEPS: usize = 20 Number, OWN;
    /// Sleeps shorter than this may have been intended to take only a few milliseconds.
    SHORT_SLEEP_NS: i64 = 20_000_000 Duration, OWN;
    /// Timer resolution below which a request counts as finer than the default.
    FINE_RESOLUTION_NS: i64 = 15_000_000 Duration, OWN;
    /// Shortest sleep that ends at a clock interrupt of the default period.
    DEFAULT_SLEEP_MIN_NS: i64 = 15_550_000 Duration, MEASURED;
    /// Longest sleep that ends at a clock interrupt of the default period.
    DEFAULT_SLEEP_MAX_NS: i64 = 15_700_000 Duration, MEASURED;
    /// Time by which a sleep may be shorter than the clock period at whose end it ends.
    SLEEP_BELOW_NS: i64 = 300_000 Duration, MEASURED;
    /// Time by which a sleep may be longer than the clock period at whose end it ends.
    SLEEP_ABOVE_NS: i64 = 100_000 Duration, MEASURED;

    /// Greatest difference between two clocks that still count as agreeing, because a thread may become
    /// ready while it is switched out.
    CLOCKS_AGREE_NS: i64 = 50_000 Duration, OWN;
    /// Time within which an idle processor runs a thread that is assigned to it.
    PROMPT_NS: i64 = 1_000_000 Duration, OWN;
    /// Least number of pairs of events that show that a clock is wrong. Around lost events, one or two
    /// events may seem late.
    CLOCK_PAIRS: usize = 3 Number, OWN;
    /// Largest difference between two clocks that is searched for.
    CLOCKS_APART_MAX_NS: i64 = 10_000_000_000 Duration, OWN;

    /// Least number of missing samples of idle CPUs for which the report says that they were left out.
    IDLE_SAMPLES: u64 = 10 Number, OWN;
}

/// Returns true if `part` is at least `percent` of `whole`.
pub(crate) fn is_share(part: i64, whole: i64, percent: i64) -> bool {
    i128::from(part) * 100 >= i128::from(whole) * i128::from(percent)
}

/// Returns the table of thresholds for `docs/explain.md`.
pub fn thresholds() -> String {
    let mut table = "| threshold | value | meaning | source |\n|---|---|---|---|\n".to_owned();
    for threshold in ALL {
        let value = match threshold.unit {
            Unit::Duration => duration(threshold.value),
            Unit::Percent => format!("{} %", threshold.value),
            Unit::Number => grouped(threshold.value.unsigned_abs()),
        };
        let meaning: String = threshold.meaning.concat();
        table += &format!(
            "| `{}` | {value} | {} | {} |\n",
            threshold.name,
            meaning.trim(),
            threshold.source
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_threshold_has_one_name() {
        let mut names: Vec<&str> = ALL.iter().map(|threshold| threshold.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn shares_are_exact() {
        assert!(is_share(1, 2, 50) && !is_share(49, 100, 50));
        assert!(is_share(i64::MAX, i64::MAX, 100));
        assert!(!is_share(i64::MAX - 1, i64::MAX, 100));
    }
}
