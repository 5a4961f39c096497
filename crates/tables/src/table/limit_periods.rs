//! `limit_periods`: ends of periods of limits on CPU time.

use crate::column::{Named, Names};
use crate::register::{EventTable, Register};
use crate::schema::table;
use crate::trackers::Trackers;

table! {
    /// One row per end of a period of a limit on CPU time. Linux limits the CPU time of threads in each period. A
    /// thread that used up its limit runs again when the period ends.
    ///
    /// The file `FILE.proc` next to the recording must have the addresses of the timers' functions.
    LimitPeriods, LimitPeriodsView = "limit_periods" sorted by time_ns
        title "Periods of CPU Limits"
        record "timers of CPU limits (perf record -e timer:hrtimer_expire_entry)"
    {
        /// Time at which the timer expired.
        time_ns: Vec<i64> = "Linux timer: hrtimer_expire_entry",
        /// CPU that handled the timer.
        cpu: Vec<u16> = "CPU of the event",
        /// Kind of limit: `cpu_max` (quota of a cgroup), `real_time` (limit of all real-time threads), or
        /// `deadline` (budget of a deadline thread).
        kind: Names<LimitKind> = "function: sched_cfs_period_timer, sched_rt_period_timer, dl_task_timer",
    }
}

/// Kind of a limit on CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Quota of a cgroup (`cpu.max`, or `cpu.cfs_quota_us`).
    CpuMax,
    /// Limit of all real-time threads (`sched_rt_runtime_us`).
    RealTime,
    /// Budget of a deadline thread.
    Deadline,
}

impl Named for LimitKind {
    const NAMES: &'static [&'static str] = &["cpu_max", "real_time", "deadline"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl LimitKind {
    /// Returns the kind of limit for the name of a kernel function. The function is called by a timer when a period of
    /// the limit ends. Returns `None` for other functions.
    pub fn of_function(name: &str) -> Option<LimitKind> {
        Some(match name {
            "sched_cfs_period_timer" => LimitKind::CpuMax,
            "sched_rt_period_timer" => LimitKind::RealTime,
            "dl_task_timer" => LimitKind::Deadline,
            _ => return None,
        })
    }
}

impl Register for LimitPeriods {}

impl EventTable for LimitPeriods {
    type Raw = LimitPeriods;
    type State = ();

    fn join(raw: &mut LimitPeriods, (): &mut (), _: &Trackers<'_>) -> LimitPeriods {
        std::mem::take(raw)
    }
}
