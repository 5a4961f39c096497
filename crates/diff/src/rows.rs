//! Rows that are compared, and their sums.

use serde::Serialize;

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// CPU time of a program's threads, without the DPCs and ISRs that interrupted them.
    Program,
    /// DPCs of a module.
    Dpc,
    /// Interrupt service routines of a module.
    Isr,
    /// Code of a module that ran in DPCs and ISRs, from samples.
    InterruptCode,
    /// Code of a module that ran in threads, from samples.
    ThreadCode,
    /// Time that a program's ready threads waited for a CPU.
    Ready,
    /// Time that a disk served requests of one kind.
    Disk,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 7] = [
        Kind::Program,
        Kind::Dpc,
        Kind::Isr,
        Kind::InterruptCode,
        Kind::ThreadCode,
        Kind::Ready,
        Kind::Disk,
    ];

    /// Returns true if the row is counted by samples. Their number and weight depend on the sampling interval.
    pub fn is_sampled(self) -> bool {
        matches!(self, Kind::InterruptCode | Kind::ThreadCode)
    }

    /// Returns true for time of DPCs and ISRs. Network traffic causes most of it.
    pub fn is_in_interrupts(self) -> bool {
        matches!(self, Kind::Dpc | Kind::Isr | Kind::InterruptCode)
    }
}

/// Number and time of what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Number of runs, routines, samples, waits or requests.
    pub count: f64,
    /// Their time, in nanoseconds.
    pub ns: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, count: f64, ns: f64) {
        self.count += count;
        self.ns += ns;
    }

    /// Returns the sum divided by a number.
    pub(crate) fn per(self, divisor: f64) -> Sum {
        Sum {
            count: self.count / divisor,
            ns: self.ns / divisor,
        }
    }

    /// Returns the mean time; `None` if nothing happened.
    pub fn mean_ns(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.ns / self.count)
    }
}
