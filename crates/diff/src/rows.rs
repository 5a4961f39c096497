//! Rows that are compared, and their sums.

use serde::Serialize;

/// Kind of a compared row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// CPU time of a program's threads, without the DPCs and ISRs that interrupted them.
    Program,
    /// CPU time of a program's threads with the same name or start function, without DPCs and ISRs.
    Thread,
    /// DPCs of a module.
    Dpc,
    /// DPCs of one function.
    DpcFunction,
    /// Interrupt service routines of a module.
    Isr,
    /// Runs of one interrupt service routine.
    IsrFunction,
    /// DPCs and interrupt service routines on a CPU.
    Cpu,
    /// Code of a module that ran in DPCs and ISRs, from samples.
    InterruptCode,
    /// Function that ran in DPCs and ISRs, from samples.
    InterruptFunction,
    /// Code of a module that ran in threads, from samples.
    ThreadCode,
    /// Function that ran in threads, from samples.
    ThreadFunction,
    /// Time that a program's ready threads waited for a CPU.
    Ready,
    /// Time that a program's threads waited for something other than a CPU, by the reason of the wait.
    Wait,
    /// Time that a program's threads waited, by the reason of the wait and the code that waited.
    WaitCode,
    /// Time during which a disk served requests of one kind.
    Disk,
    /// Time during which disks served requests for a file.
    File,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 16] = [
        Kind::Program,
        Kind::Thread,
        Kind::Dpc,
        Kind::DpcFunction,
        Kind::Isr,
        Kind::IsrFunction,
        Kind::Cpu,
        Kind::InterruptCode,
        Kind::InterruptFunction,
        Kind::ThreadCode,
        Kind::ThreadFunction,
        Kind::Ready,
        Kind::Wait,
        Kind::WaitCode,
        Kind::Disk,
        Kind::File,
    ];

    /// Returns true if the row is counted by samples. Their number and weight depend on the sampling interval.
    pub fn is_sampled(self) -> bool {
        matches!(
            self,
            Kind::InterruptCode | Kind::InterruptFunction | Kind::ThreadCode | Kind::ThreadFunction
        )
    }

    /// Returns true if the row sums time in DPCs and ISRs. Network traffic usually causes most of this time.
    pub fn is_in_interrupts(self) -> bool {
        matches!(
            self,
            Kind::Dpc
                | Kind::DpcFunction
                | Kind::Isr
                | Kind::IsrFunction
                | Kind::Cpu
                | Kind::InterruptCode
                | Kind::InterruptFunction
        )
    }

    /// Returns the plural name of the things that the row counts.
    pub fn counted(self) -> &'static str {
        match self {
            Kind::Program | Kind::Thread => "runs",
            Kind::Dpc | Kind::DpcFunction => "DPCs",
            Kind::Isr | Kind::IsrFunction => "ISRs",
            Kind::Cpu => "DPCs and ISRs",
            Kind::InterruptCode
            | Kind::InterruptFunction
            | Kind::ThreadCode
            | Kind::ThreadFunction => "samples",
            Kind::Ready | Kind::Wait | Kind::WaitCode => "waits",
            Kind::Disk | Kind::File => "requests",
        }
    }

    /// Returns the singular name of the things that the row counts.
    pub fn one(self) -> &'static str {
        let several = match self {
            Kind::Cpu => "DPC or ISR",
            _ => self.counted(),
        };
        several.strip_suffix('s').unwrap_or(several)
    }

    /// Returns true if the row sums CPU time of threads without the DPCs and ISRs that interrupted them.
    pub fn is_own_time(self) -> bool {
        matches!(self, Kind::Program | Kind::Thread)
    }

    /// Returns true if rows of this kind are parts of rows of another kind. For example, threads are parts of a
    /// program. A change of a part is also counted in the change of the whole.
    pub fn is_detail(self) -> bool {
        matches!(
            self,
            Kind::Thread
                | Kind::DpcFunction
                | Kind::IsrFunction
                | Kind::InterruptFunction
                | Kind::ThreadFunction
                | Kind::WaitCode
                | Kind::File
        )
    }
}

/// Number of events (runs, routines, samples, waits or requests) and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Number of runs, routines, samples, waits or requests.
    pub count: f64,
    /// Total time of the events that `count` counts, in nanoseconds.
    pub ns: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, count: f64, ns: f64) {
        self.count += count;
        self.ns += ns;
    }

    /// Returns the sum of several sums.
    pub(crate) fn total(sums: &[Sum]) -> Sum {
        let mut whole = Sum::default();
        sums.iter().for_each(|sum| whole.add(sum.count, sum.ns));
        whole
    }

    /// Returns the sum divided by a number.
    pub(crate) fn per(self, divisor: f64) -> Sum {
        Sum {
            count: self.count / divisor,
            ns: self.ns / divisor,
        }
    }

    /// Returns the mean time of one event. Returns `None` if there are no events.
    pub fn mean_ns(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.ns / self.count)
    }
}
