//! Number and size of the buffers of a logging session.

/// A machine on which a trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Size of the memory, in bytes.
    pub memory_bytes: u64,
    /// Number of logical processors.
    pub cpus: u32,
    /// Number of NUMA nodes.
    pub nodes: u32,
}

impl Machine {
    /// Assumed machine if the actual machine is unknown.
    pub const TYPICAL: Machine = Machine {
        memory_bytes: 16 << 30,
        cpus: 8,
        nodes: 1,
    };

    /// Minimum memory of a large server, in bytes. On such a server, buffers whose size is a percentage of
    /// the memory take too much of the non-paged pool. For example, a backup server with 24 GiB of memory
    /// used up the whole pool.
    const LARGE_MEMORY_BYTES: u64 = 24 << 30;

    /// Minimum number of CPUs of a large server. With this number of CPUs, stacks of context
    /// switches fill buffers faster than a disk can write them.
    const MANY_CPUS: u32 = 24;

    /// Returns true if the machine is a large server, on which less is recorded.
    pub fn is_large_server(&self) -> bool {
        self.memory_bytes >= Machine::LARGE_MEMORY_BYTES && self.cpus >= Machine::MANY_CPUS
    }
}

/// Number and size of a logging session's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Size of one buffer, in KiB.
    pub size_kib: u32,
    /// Number of buffers.
    pub count: u32,
}

/// Maximum size of all buffers of a kernel session in memory, in KiB. UIforETW uses the same maximum on a
/// workstation.
const MAX_KIB: u64 = 600 << 10;
/// Minimum size of all buffers of a kernel session in memory, in KiB.
const MIN_KIB: u64 = 64 << 10;
/// Divisor of the memory size. A kernel session in memory takes 1/32 of the memory.
const MEMORY_DIVISOR: u64 = 32;
/// Minimum number of buffers per CPU. While one buffer is written, the CPU fills the other.
const PER_CPU: u32 = 2;

impl Buffers {
    /// Returns the buffers of a kernel session that keeps the latest events in memory.
    pub fn kernel_in_memory(machine: Machine) -> Buffers {
        let part_kib = machine.memory_bytes / 1024 / MEMORY_DIVISOR;
        with_total_size(part_kib.clamp(MIN_KIB, MAX_KIB), machine.cpus)
    }

    /// Returns the buffers of a kernel session that writes to a file. The buffers can hold bursts of events that the
    /// disk cannot write fast enough.
    pub fn kernel_to_file(machine: Machine) -> Buffers {
        let in_memory = Buffers::kernel_in_memory(machine);
        let count = machine.cpus.saturating_mul(8).max(64);
        Buffers {
            count: count.min(in_memory.count),
            ..in_memory
        }
    }

    /// Returns the buffers of the session for all other providers, which log few events.
    pub fn providers(machine: Machine, in_memory: bool) -> Buffers {
        let count = if in_memory { 256 } else { 64 };
        Buffers {
            size_kib: 128,
            count: count.max(machine.cpus.saturating_mul(PER_CPU)),
        }
    }

    /// Returns the size of all buffers, in bytes.
    pub fn bytes(&self) -> u64 {
        (u64::from(self.size_kib) * u64::from(self.count)) << 10
    }
}

/// Divides a total size into buffers of 1 MiB, which is the maximum of xperf. If the machine has too many
/// CPUs for this size, the buffers are smaller.
fn with_total_size(all_kib: u64, cpus: u32) -> Buffers {
    let least = cpus.max(1).saturating_mul(PER_CPU);
    let mut size_kib = 1024;
    while size_kib > 64 && u64::from(size_kib) * u64::from(least) > all_kib {
        size_kib /= 2;
    }
    let count = u32::try_from(all_kib / u64::from(size_kib)).unwrap_or(u32::MAX);
    Buffers {
        size_kib,
        count: count.max(least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gib: u64, cpus: u32) -> Machine {
        Machine {
            memory_bytes: gib << 30,
            cpus,
            nodes: 1,
        }
    }

    #[test]
    fn a_workstation_gets_the_buffers_of_uiforetw() {
        let buffers = Buffers::kernel_in_memory(machine(32, 16));
        assert_eq!((buffers.size_kib, buffers.count), (1024, 600));
    }

    #[test]
    fn every_cpu_has_two_buffers_within_the_limits() {
        let mut rng = testdata::Rng(10);
        for _ in 0..2_000 {
            let machine = machine(rng.below(4096) as u64, rng.below(2048) as u32);
            for buffers in [
                Buffers::kernel_in_memory(machine),
                Buffers::kernel_to_file(machine),
                Buffers::providers(machine, true),
                Buffers::providers(machine, false),
            ] {
                assert!(
                    buffers.count >= 2 * machine.cpus,
                    "{machine:?}: {buffers:?}"
                );
                assert!((4..=1024).contains(&buffers.size_kib));
                // The total is at most 600 MiB. It may be greater only if two buffers of 128 KiB per CPU need more
                // memory.
                let least = u64::from(2 * machine.cpus) * (128 << 10);
                assert!(
                    buffers.bytes() <= (600 << 20).max(least),
                    "{machine:?}: {buffers:?}"
                );
            }
        }
    }
}
