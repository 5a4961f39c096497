//! CPU time by CPU and process.

use tables::CpuRunsView;

/// Time of threads and of the idle thread on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Number of the CPU.
    pub cpu: u16,
    /// Time that threads ran on the CPU, in nanoseconds.
    pub busy_ns: i64,
    /// Time that the idle thread of the CPU ran, in nanoseconds, including interrupts.
    pub idle_ns: i64,
    /// Time for which recorded DPCs and service routines interrupted the idle thread, in
    /// nanoseconds. In this time the CPU was not idle.
    pub idle_interrupts_ns: i64,
}

/// CPU time of a process's threads, and their waits for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// Time that the threads ran, in nanoseconds, including interrupts.
    pub cpu_ns: i64,
    /// Time for which recorded DPCs and service routines interrupted the threads, in nanoseconds.
    pub interrupts_ns: i64,
    /// Number of runs of the threads.
    pub runs: u64,
    /// Number of waits for a CPU whose length is known.
    pub known_waits: u64,
    /// Total length of the waits that count in `known_waits`, in nanoseconds.
    pub ready_ns: i64,
    /// Length of the longest wait that counts in `known_waits`, in nanoseconds.
    pub longest_ready_ns: i64,
}

impl ProcessUse {
    /// Adds a run. The arguments are the length of the run, the time of interrupts during the run, and the
    /// wait before the run.
    pub(crate) fn add(&mut self, cpu_ns: i64, interrupts_ns: i64, ready_ns: Option<i64>) {
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
        self.interrupts_ns = self.interrupts_ns.saturating_add(interrupts_ns);
        self.runs += 1;
        if let Some(ready_ns) = ready_ns {
            self.known_waits += 1;
            self.ready_ns = self.ready_ns.saturating_add(ready_ns);
            self.longest_ready_ns = self.longest_ready_ns.max(ready_ns);
        }
    }

    /// Returns the time that the threads ran, without interrupts, in nanoseconds.
    pub(crate) fn own_ns(&self) -> i64 {
        self.cpu_ns - self.interrupts_ns
    }
}

/// Sums of CPU time by CPU and process.
pub(super) struct UseOfCpus {
    cpus: Vec<Option<CpuUse>>,
    processes: Vec<ProcessUse>,
}

impl UseOfCpus {
    pub(super) fn new(processes: usize) -> UseOfCpus {
        UseOfCpus {
            cpus: Vec::new(),
            processes: vec![ProcessUse::default(); processes + 1],
        }
    }

    /// Adds the runs that are not doubtful. `inside_ns` is the time of interrupts in each run.
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, is_doubtful: &[bool], inside_ns: &[i64]) {
        let unknown = self.processes.len() - 1;
        for (row, is_doubtful) in is_doubtful.iter().enumerate() {
            let (cpu, cpu_ns) = (runs.cpu[row], runs.cpu_ns[row]);
            let place = usize::from(cpu);
            if place >= self.cpus.len() {
                self.cpus.resize(place + 1, None);
            }
            let used = self.cpus[place].get_or_insert(CpuUse {
                cpu,
                ..CpuUse::default()
            });
            if *is_doubtful {
                continue;
            }
            if runs.thread_id[row] == 0 {
                used.idle_ns = used.idle_ns.saturating_add(cpu_ns);
                used.idle_interrupts_ns = used.idle_interrupts_ns.saturating_add(inside_ns[row]);
                continue;
            }
            used.busy_ns = used.busy_ns.saturating_add(cpu_ns);
            let process = runs
                .process_row
                .get(row)
                .map_or(unknown, |row| row as usize);
            self.processes[process.min(unknown)].add(
                cpu_ns,
                inside_ns[row],
                runs.ready_ns.get(row),
            );
        }
    }

    pub(super) fn finish(self) -> (Vec<CpuUse>, Vec<ProcessUse>) {
        let cpus = self.cpus.into_iter().flatten().collect();
        (cpus, self.processes)
    }
}
