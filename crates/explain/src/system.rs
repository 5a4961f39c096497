//! Differences between Windows and Linux: terms, priorities and questions.

use selection::Expression;
use tables::{CpuRunsView, disk_of_linux};

use crate::Reader;
use crate::thresholds::{NORMAL_PRIORITY, REAL_TIME_PRIORITY};

/// Terms of an operating system.
#[derive(Debug)]
pub struct Terms {
    /// Routines that run after an interrupt, in the plural.
    pub dpcs: &'static str,
    /// Routines that handle an interrupt, in the plural.
    pub isrs: &'static str,
    /// Both kinds of routines.
    pub routines: &'static str,
    /// Title of a column with the time of both kinds of routines within a longer time.
    pub(crate) routines_in_it: &'static str,
    /// Subject of the sentence “… readied it”, if a DPC (on Linux: an interrupt or softirq) readied the thread.
    pub a_routine: &'static str,
}

impl Terms {
    /// Returns the terms of Linux or of Windows.
    pub(crate) fn for_system(is_linux: bool) -> &'static Terms {
        if is_linux { &LINUX } else { &WINDOWS }
    }
}

static WINDOWS: Terms = Terms {
    dpcs: "DPCs",
    isrs: "ISRs",
    routines: "DPCs and ISRs",
    routines_in_it: "DPCs and ISRs in it",
    a_routine: "a DPC",
};

static LINUX: Terms = Terms {
    dpcs: "softirqs",
    isrs: "interrupts",
    routines: "softirqs and interrupts",
    routines_in_it: "softirqs and interrupts in it",
    a_routine: "an interrupt",
};

/// Returns the priority with which a thread ran; `None` if it is unknown. If the priority of a thread of Linux changed
/// during its run, the higher priority kept other threads off the CPU. Windows records changes of priorities, so the
/// priority at the start of the run is used.
pub(crate) fn run_priority(is_linux: bool, runs: &CpuRunsView<'_>, row: usize) -> Option<i8> {
    let (first, last) = (runs.priority.get(row), runs.priority_out.get(row));
    if is_linux {
        first.max(last)
    } else {
        first.or(last)
    }
}

/// SQL expression of [`run_priority`].
pub(crate) fn run_priority_sql(is_linux: bool) -> &'static str {
    if is_linux {
        "greatest(priority, priority_out)"
    } else {
        "coalesce(priority, priority_out)"
    }
}

/// Expression of [`run_priority`] in a selection of runs.
pub(crate) fn run_priority_expression(is_linux: bool) -> Expression {
    let columns = vec!["priority", "priority_out"];
    if is_linux {
        Expression::Greatest(columns)
    } else {
        Expression::FirstKnown(columns)
    }
}

impl Reader<'_> {
    /// Returns true if the tables are of a recording of Linux.
    pub(crate) fn is_linux(&self) -> bool {
        self.store().info().is_linux()
    }

    /// Returns the SQL expression for what the thread of a row of `cpu_runs` waited for. Linux logs only the state of a
    /// thread that waits, so the kind of the wait says more.
    pub(crate) fn waited_for_sql(&self) -> &'static str {
        if self.is_linux() {
            "coalesce(wait_kind, wait_reason(previous_wait_reason))"
        } else {
            "wait_reason(previous_wait_reason)"
        }
    }

    /// Returns the terms of the traced operating system.
    pub(crate) fn terms(&self) -> &'static Terms {
        Terms::for_system(self.is_linux())
    }

    /// Returns the lowest priority of threads whose delays matter. On Linux, no priority is that low: threads with the
    /// policy SCHED_IDLE have the priority of fair threads.
    pub(crate) fn normal_priority(&self) -> i8 {
        if self.is_linux() { 0 } else { NORMAL_PRIORITY }
    }

    /// Returns the lowest priority of real-time threads.
    pub(crate) fn real_time_priority(&self) -> i8 {
        if self.is_linux() {
            1
        } else {
            REAL_TIME_PRIORITY
        }
    }

    /// Returns the name of a disk: “disk 0”, on Linux with major and minor number “disk 8:0”.
    pub(crate) fn disk(&self, number: u32) -> String {
        if self.is_linux() {
            let (major, minor) = disk_of_linux(number);
            format!("disk {major}:{minor}")
        } else {
            format!("disk {number}")
        }
    }

    /// Returns a thread's priority as an apposition: “priority 8”, “real-time priority 50”, “a fair thread”.
    pub(crate) fn priority_words(&self, priority: i8) -> String {
        match priority {
            _ if !self.is_linux() => format!("priority {priority}"),
            ..=0 => "a fair thread".to_owned(),
            1..=99 => format!("real-time priority {priority}"),
            100.. => "a deadline thread".to_owned(),
        }
    }
}
