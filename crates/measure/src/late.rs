//! Late samples: samples whose latency exceeds a limit. A measurement reports each of them while it still runs. A
//! recorder of the machine's events can then keep the events around the late sample.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::{Now, Series};

/// Sample whose latency exceeded the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateSample {
    /// Name of the method, as in [`Series::method`].
    pub method: String,
    /// Requested setting, without the answers of the system.
    pub setting: String,
    /// Number of the run, from 0.
    pub run: u32,
    /// Number of the sample in its run, from 0.
    pub sequence: u64,
    /// Latency of the sample in nanoseconds.
    pub latency_ns: i64,
    /// Id of the thread that took the sample; `None` if several threads of the program took part, or if the system has
    /// no such ids.
    pub thread_id: Option<u32>,
    /// Time range in which the sample was late, in nanoseconds of [`system_clock_ns`].
    pub range: Range<u64>,
    /// Time in nanoseconds from the start of `range` until the thread had finished the earlier samples. During this
    /// time, the thread could not take this sample. The value is 0 if the thread had finished them before `range`.
    pub began_late_ns: i64,
    /// Time in nanoseconds for which the thread was ready but had no CPU, since the end of the previous sample. The
    /// kernel counts this time. `None` if there is no count, or if [`LateSamples::counts_queue`] is false.
    pub queued_ns: Option<i64>,
}

/// Limit of latencies, and the function that receives the samples above the limit.
pub struct LateSamples {
    /// Samples with a larger latency are reported.
    pub over: Duration,
    /// True if the kernel's count of the time without a CPU is also read. The thread of the probe reads it after each
    /// sleep, which takes about a microsecond.
    pub counts_queue: bool,
    /// Function that receives a late sample. If the sample is a sleep, its thread calls the function before the next
    /// sleep. Reads and round trips are reported after their run.
    pub tell: Box<dyn Fn(LateSample) + Send + Sync>,
}

impl fmt::Debug for LateSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateSamples")
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// Returns the time of the clock to which [`LateSample::range`] refers, in nanoseconds. The clock is
/// `CLOCK_MONOTONIC_RAW` on Linux, and the default clock of probes on other systems.
pub fn system_clock_ns() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        crate::Clock::best().ticks()
    }
}

/// Returns the id of the calling thread; `None` if the system has no such ids.
pub(crate) fn own_thread_id() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        Some(
            rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs(),
        )
    }
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
}

/// Late sample, in times of the probe's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    pub(crate) latency_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) began_late_ns: i64,
    pub(crate) queued_ns: Option<i64>,
}

/// Kernel's count of the time for which the calling thread was ready without a CPU.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "other systems have no such count")
)]
pub(crate) struct Queue(#[cfg(target_os = "linux")] std::fs::File);

impl Queue {
    /// Opens the count of the calling thread; `None` if the system has no such count.
    pub(crate) fn open() -> Option<Queue> {
        #[cfg(target_os = "linux")]
        {
            let file = std::fs::File::open("/proc/thread-self/schedstat");
            file.ok().map(Queue)
        }
        #[cfg(not(target_os = "linux"))]
        {
            None
        }
    }

    /// Returns the counted time in nanoseconds since the start of the thread. The count is the second number of the
    /// file `schedstat` (proc(5)).
    pub(crate) fn read_ns(&self) -> Option<i64> {
        #[cfg(target_os = "linux")]
        {
            let mut text = [0; 64];
            let read = std::os::unix::fs::FileExt::read_at(&self.0, &mut text, 0).ok()?;
            let text = std::str::from_utf8(&text[..read]).ok()?;
            text.split_ascii_whitespace().nth(1)?.parse().ok()
        }
        #[cfg(not(target_os = "linux"))]
        {
            None
        }
    }
}

impl LateSamples {
    /// Returns true if a latency exceeds the limit.
    pub(crate) fn has(&self, latency_ns: i64) -> bool {
        u128::try_from(latency_ns).is_ok_and(|ns| ns > self.over.as_nanos())
    }

    /// Reports a late sample. `clock` is the clock to which the times in `delay` refer.
    pub(crate) fn report(
        &self,
        series: &Series,
        sequence: u64,
        delay: Delay,
        thread_id: Option<u32>,
        clock: &impl Now,
    ) {
        let since_ns = clock.now_ns().saturating_sub(delay.end_ns);
        let end = system_clock_ns().saturating_add_signed(since_ns.saturating_neg());
        let start = end.saturating_add_signed(delay.latency_ns.saturating_neg());
        (self.tell)(LateSample {
            method: series.method.clone(),
            setting: series.setting.clone(),
            run: series.run,
            sequence,
            latency_ns: delay.latency_ns,
            thread_id,
            range: start..end,
            began_late_ns: delay.began_late_ns.clamp(0, delay.latency_ns),
            queued_ns: delay.queued_ns,
        });
    }

    /// Reports the late samples of a run. The latency of each sample must be its duration.
    pub(crate) fn report_run(&self, series: &Series, thread_id: Option<u32>, clock: &impl Now) {
        for (sequence, sample) in (0..).zip(&series.samples) {
            if let Some(latency_ns) = sample.latency_ns.filter(|ns| self.has(*ns)) {
                let delay = Delay {
                    latency_ns,
                    end_ns: sample.start_ns.saturating_add(latency_ns),
                    began_late_ns: 0,
                    queued_ns: None,
                };
                self.report(series, sequence, delay, thread_id, clock);
            }
        }
    }
}
