//! Who used the CPUs.

use tables::CpuRunsView;

/// What a CPU did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u16,
    /// How long threads ran on it, in nanoseconds.
    pub busy_ns: i64,
    /// How long its idle thread did.
    pub idle_ns: i64,
}

/// What a process had of the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// How long its threads ran, in nanoseconds, with what interrupted them.
    pub cpu_ns: i64,
    /// How long DPCs and service routines interrupted them, as far as these are recorded.
    pub interrupts_ns: i64,
    /// How often.
    pub runs: u64,
    /// How many of its waits for a CPU are known.
    pub known_waits: u64,
    /// How long its threads were ready and had no CPU, as far as is known.
    pub ready_ns: i64,
    /// The longest of these waits.
    pub longest_ready_ns: i64,
}

impl ProcessUse {
    /// Adds a run, how long it was interrupted, and how long its thread was ready before it.
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

    /// How long its threads themselves ran.
    pub(crate) fn own_ns(&self) -> i64 {
        self.cpu_ns - self.interrupts_ns
    }
}

/// Adds up who used the CPUs.
pub(super) struct UseOfCpus {
    cpus: Vec<Option<CpuUse>>,
    processes: Vec<ProcessUse>,
    priorities_ns: [i64; 32],
}

impl UseOfCpus {
    pub(super) fn new(processes: usize) -> UseOfCpus {
        UseOfCpus {
            cpus: Vec::new(),
            processes: vec![ProcessUse::default(); processes + 1],
            priorities_ns: [0; 32],
        }
    }

    /// Adds runs but those of which it is said that they are doubtful, and how long routines
    /// interrupted each.
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
            let priority = runs.priority.get(row).and_then(|p| usize::try_from(p).ok());
            if let Some(ns) = priority.and_then(|p| self.priorities_ns.get_mut(p)) {
                *ns = ns.saturating_add(cpu_ns);
            }
        }
    }

    pub(super) fn finish(self) -> (Vec<CpuUse>, Vec<ProcessUse>, [i64; 32]) {
        let cpus = self.cpus.into_iter().flatten().collect();
        (cpus, self.processes, self.priorities_ns)
    }
}
