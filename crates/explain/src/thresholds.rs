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
const POOLS: &str = "Microsoft, Debug ThreadPool Starvation";
const NET_SYSCTL: &str = "Linux kernel documentation, /proc/sys/net";
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
    /// Delay at which people turn to something else. A shorter delay of a program in the background is less
    /// important than a noticeable delay of a program in use.
    ABANDONED_NS: i64 = 10_000_000_000 Duration, NIELSEN;
    /// Response of a window that is slow. A shorter response is noticeable, but ordinary.
    SLOW_RESPONSE_NS: i64 = 200_000_000 Duration, OWN;
    /// Number of waits in a second of a response from which the thread may look for messages without waiting for them, as
    /// the loop of a game does.
    LOOP_WAITS: i64 = 20 Number, OWN;
    /// Base priority of ordinary programs. Delays of threads with a lower priority are less urgent.
    NORMAL_PRIORITY: i8 = 8 Number, INTERNALS;
    /// Minimum part of a second that a thread loses to short waits for a CPU and to interrupts. A smaller
    /// loss does not count.
    LOST_PERCENT: i64 = 15 Percent, OWN;
    /// Lowest priority of a real-time thread. Windows never changes such a priority.
    REAL_TIME_PRIORITY: i8 = 16 Number, INTERNALS;
    /// Minimum number of wakes of a real-time thread for determining its period.
    PERIODS: usize = 20 Number, OWN;
    /// A wait for a CPU counts as a missed period if it takes at least this share of the real-time thread's
    /// period.
    MISSED_PERCENT: i64 = 50 Percent, OWN;
    /// Minimum number of missed periods that are reported.
    MISSED_PERIODS: usize = 3 Number, OWN;
    /// A part of a chain is reported as the cause if it takes at least this share of the wait.
    BLAME_PERCENT: i64 = 30 Percent, OWN;
    /// A driver is named as the cause of work of System if it has at least this share of the samples of System's threads.
    DRIVER_PERCENT: i64 = 25 Percent, OWN;
    /// Delays are about the same if the shorter is at least this share of the longer. Then the program that a user
    /// looks at is named first.
    SAME_DELAY_PERCENT: i64 = 85 Percent, OWN;
    /// A cause counts as the explanation of a wait if it takes at least this share of the wait.
    CAUSE_PERCENT: i64 = 50 Percent, OWN;
    /// A cause counts as a part of the explanation of a wait if it takes at least this share of the wait.
    PARTIAL_CAUSE_PERCENT: i64 = 10 Percent, OWN;
    /// Minimum share of the CPUs' time during a wait that the trace must show. If it shows less, the wait is
    /// doubtful.
    RECORDED_PERCENT: i64 = 50 Percent, OWN;
    /// Maximum time from the arrival of data from the network to the moment when the thread that waits for
    /// the data is readied.
    NETWORK_WAKE_NS: i64 = 1_000_000 Duration, OWN;
    /// Maximum time that a processor needs to leave an idle state.
    IDLE_EXIT_NS: i64 = 1_000_000 Duration, OWN;
    /// Time after which Windows may raise the priority of a ready thread that gets no CPU.
    STARVATION_NS: i64 = 1_000_000_000 Duration, INTERNALS;
    /// A ready thread with unknown earlier priority counts as starved if it waits at least this long and then
    /// has priority 15.
    STARVED_NS: i64 = 3_000_000_000 Duration, INTERNALS;
    /// Maximum share of the CPUs' time in runs that begin or end with a context switch that Linux did not log. If no event
    /// is lost and the share is smaller, the recording is usable.
    SKIPPED_PERCENT: i64 = 10 Percent, OWN;
    /// Multiple of the mean time between samples. If a CPU has no samples for this time, a buffer of its
    /// samples may be lost.
    LOST_SAMPLES: i64 = 10 Number, OWN;

    /// Minimum number of answers of a program to another one that are needed to say which answers are late.
    ANSWERS: usize = 5 Number, OWN;
    /// An answer is late if it takes at least this multiple of the median of all answers.
    LATE_ANSWER: i64 = 5 Number, OWN;

    /// Minimum length of a suspend gap. A suspend gap contains no event.
    SUSPEND_MIN_NS: i64 = 200_000_000 Duration, OWN;
    /// A gap without any event is always a suspend gap if it is at least this long, because the balance set
    /// manager runs once a second.
    SUSPEND_MAX_NS: i64 = 2_000_000_000 Duration, INTERNALS;
    /// Minimum length of a suspend gap, as a multiple of the time between two samples.
    SUSPEND_SAMPLES: i64 = 100 Number, OWN;

    /// All CPUs count as busy if they are used for at least this share of their time.
    SATURATED_PERCENT: i64 = 95 Percent, OWN;
    /// Minimum length of a time with busy CPUs that is reported.
    SATURATED_NS: i64 = 500_000_000 Duration, OWN;

    /// Maximum CPU time of a DPC according to Microsoft's guidance.
    DPC_LIMIT_NS: i64 = 100_000 Duration, GUIDANCE;
    /// Maximum CPU time of an ISR according to Microsoft's guidance.
    ISR_LIMIT_NS: i64 = 25_000 Duration, GUIDANCE;
    /// A routine counts as usually too long if at least this number of its runs, and at least half of its
    /// runs, are over the limit.
    USUALLY_LONG_RUNS: i64 = 100 Number, OWN;
    /// A run is far over the limit if it takes this multiple of the limit. For a DPC, this is 1 ms.
    FAR_OVER_TIMES: i64 = 10 Number, OWN;
    /// A routine counts as far too long if at least this number of its runs are far over the limit.
    FAR_OVER_RUNS: i64 = 10 Number, OWN;
    /// A single run matters if it takes this multiple of the limit. For a DPC, this is 10 ms, the length of a
    /// buffer of sound.
    LONG_RUN_TIMES: i64 = 100 Number, OWN;
    /// The report mentions the DPC watchdog if a single run takes at least this long.
    WATCHDOG_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Time for which an interrupt of Linux should run at most.
    INTERRUPT_LIMIT_NS: i64 = 100_000 Duration, OWN;
    /// Time for which a softirq should run at most. The kernel's default limit of a poll for packets is 2 ms to 20 ms
    /// (`netdev_budget_usecs`).
    SOFTIRQ_LIMIT_NS: i64 = 2_000_000 Duration, NET_SYSCTL;
    /// Minimum number of runs of a routine of Linux that stall a CPU. Fewer runs may be long because a host took the CPU of
    /// a virtual machine.
    STALLS: i64 = 3 Number, OWN;
    /// Maximum time from the end of an interrupt to the start of a softirq that it raised.
    RAISED_NS: i64 = 10_000 Duration, OWN;
    /// Minimum number of softirqs that are needed to say which device raised them.
    RAISED_RUNS: u64 = 5 Number, OWN;
    /// Packets count as sent by programs of the same machine if less than this share of the softirqs run right behind the
    /// interrupt of a device.
    LOCAL_PERCENT: i64 = 10 Percent, OWN;
    /// A CPU counts as locked if it spends at least this share of a second in DPCs and ISRs.
    LOCKED_PERCENT: i64 = 80 Percent, OWN;
    /// Minimum number of samples of a CPU in a second for computing a share.
    LOCKED_SAMPLES: i64 = 20 Number, OWN;
    /// A thread counts as delayed by a locked CPU if it waits for the CPU at least this long.
    HELD_UP_NS: i64 = 1_000_000 Duration, OWN;

    /// Minimum stall of a CPU that is reported. A video frame or a buffer of sound has about this length.
    STALL_NS: i64 = 10_000_000 Duration, OWN;
    /// Number of consecutive samples in a small range of addresses that look like a loop. It is used if there
    /// are no symbols.
    LOOP_SAMPLES: i64 = 20 Number, OWN;
    /// Size of a range of addresses that looks like a loop, in bytes.
    LOOP_BYTES: u64 = 128 Number, OWN;
    /// Number of innermost stack frames in which the driver that waits in a loop is searched.
    LOOP_FRAMES: usize = 3 Number, OWN;

    /// Minimum wait for a lock that counts as part of a convoy. Shorter waits are ordinary.
    LOCK_WAIT_NS: i64 = 20_000_000 Duration, OWN;
    /// Maximum time for which a thread of a convoy holds the lock.
    LOCK_HELD_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Minimum number of threads in a convoy. Fewer threads may be stages of a pipeline.
    CONVOY_THREADS: usize = 4 Number, OWN;
    /// Minimum number of handovers of the lock in a convoy.
    CONVOY_HANDOVERS: u64 = 8 Number, OWN;
    /// A thread that takes part in at least this share of a convoy's handovers gives work to the other threads: there is no
    /// lock.
    HUB_PERCENT: i64 = 75 Percent, OWN;
    /// The report says that the holders of a lock got no CPU if the lack of CPU time explains at least this
    /// share of a thread's waits.
    STARVED_HOLDER_PERCENT: i64 = 10 Percent, OWN;

    /// Minimum share of the recorded time for which pauses for garbage collections are reported, however
    /// short each is.
    GC_PERCENT: i64 = 10 Percent, OWN;
    /// Maximum time between two reports of a starving thread pool that still belong together. .NET adds one or
    /// two threads per second to such a pool.
    POOL_GAP_NS: i64 = 3_000_000_000 Duration, POOLS;
    /// Minimum number of reports of a starving thread pool that make a finding.
    POOL_REPORTS: usize = 3 Number, OWN;
    /// Minimum total of a thread's waits for hard faults that is reported.
    HARD_FAULTS_NS: i64 = 500_000_000 Duration, OWN;
    /// A disk counts as slow if its requests take at least this time on average.
    SLOW_DISK_NS: i64 = 25_000_000 Duration, OWN;
    /// Minimum time of a single disk request that is reported, even if all other requests are fast.
    SLOW_REQUEST_NS: i64 = 1_000_000_000 Duration, OWN;
    /// Minimum number of disk requests for judging their mean time.
    DISK_REQUESTS: u64 = 50 Number, OWN;

    /// Share of the time of a CPU that serves the network alone. From this share on, the CPU counts as too
    /// busy.
    NETWORK_CPU_PERCENT: i64 = 50 Percent, OWN;
    /// A CPU serves the network of Linux alone if it has at least this share of the time of softirqs NET_RX.
    NETWORK_ALONE_PERCENT: i64 = 90 Percent, OWN;
    /// Maximum CPU time that signing or encryption of SMB takes for a mebibyte of data. If the measured time
    /// is longer and samples have no stacks, another program probably called the cryptography.
    SMB_COST_NS: i64 = 200_000_000 Duration, OWN;
    /// Signing or encryption of SMB counts as the cause of DPCs if it has at least this share of the samples
    /// inside DPCs.
    SMB_DPC_PERCENT: i64 = 50 Percent, OWN;
    /// Signing or encryption counts as slowing a copy if its CPU time is at least this share of the copy's
    /// time.
    SMB_CPU_PERCENT: i64 = 50 Percent, OWN;

    /// The host of a virtual machine took noticeable time from a CPU if it took at least this share of the CPU's time.
    STOLEN_PERCENT: i64 = 5 Percent, OWN;
    /// The host of a virtual machine took so much of a CPU's time that its programs are slow, if it took at least this
    /// share.
    MUCH_STOLEN_PERCENT: i64 = 30 Percent, OWN;

    /// Minimum number of a program's turns for determining its quantum.
    QUANTUM_TURNS: u64 = 20 Number, OWN;

    /// Time between two clock interrupts if no program requests a shorter time.
    CLOCK_PERIOD_NS: i64 = 15_625_000 Duration, TIMERS;
    /// Minimum number of a process's sleeps for computing a median.
    SLEEPS: usize = 20 Number, OWN;
    /// A sleep that is shorter than this may have been intended to take only a few milliseconds.
    SHORT_SLEEP_NS: i64 = 20_000_000 Duration, OWN;
    /// A request for a timer resolution below this value counts as finer than the default.
    FINE_RESOLUTION_NS: i64 = 15_000_000 Duration, OWN;
    /// Shortest sleep that ends at a clock interrupt of the default period.
    DEFAULT_SLEEP_MIN_NS: i64 = 15_550_000 Duration, MEASURED;
    /// Longest sleep that ends at a clock interrupt of the default period.
    DEFAULT_SLEEP_MAX_NS: i64 = 15_700_000 Duration, MEASURED;
    /// Tolerance for a sleep that ends at a clock interrupt: it may be shorter than the clock period by this
    /// time.
    SLEEP_BELOW_NS: i64 = 300_000 Duration, MEASURED;
    /// Tolerance for a sleep that ends at a clock interrupt: it may be longer than the clock period by this
    /// time.
    SLEEP_ABOVE_NS: i64 = 100_000 Duration, MEASURED;

    /// Two clocks count as equal if their difference is at most this time. A thread may become ready while it
    /// is still being switched out, so equal clocks may seem to differ by this time.
    CLOCKS_AGREE_NS: i64 = 50_000 Duration, OWN;
    /// Maximum time after which an idle processor runs a thread that is assigned to it.
    PROMPT_NS: i64 = 1_000_000 Duration, OWN;
    /// Minimum number of pairs of events that show that a clock is wrong. Around lost events, one or two
    /// events may seem late.
    CLOCK_PAIRS: usize = 3 Number, OWN;
    /// Maximum difference between two clocks that is searched for.
    CLOCKS_APART_MAX_NS: i64 = 10_000_000_000 Duration, OWN;

    /// The report says that samples of idle CPUs were left out if at least this number of them are missing.
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
