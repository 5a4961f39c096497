//! Differences between Windows and Linux: terms, priorities and questions.

use tables::disk_of_linux;

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
    a_routine: "a DPC",
};

static LINUX: Terms = Terms {
    dpcs: "softirqs",
    isrs: "interrupts",
    routines: "softirqs and interrupts",
    a_routine: "an interrupt",
};

impl Reader<'_> {
    /// Returns true if the tables are of a recording of Linux.
    pub(crate) fn is_linux(&self) -> bool {
        self.store().info().is_linux()
    }

    /// Returns the terms of the traced operating system.
    pub(crate) fn terms(&self) -> &'static Terms {
        Terms::for_system(self.is_linux())
    }

    /// Returns the lowest priority of threads whose delays matter. On Linux, the delays of all threads matter,
    /// because events do not show which threads have the policy SCHED_IDLE.
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
