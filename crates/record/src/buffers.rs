//! How many buffers a session gets.

/// The machine that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its logical processors.
    pub cpus: u32,
    /// Its NUMA nodes.
    pub nodes: u32,
}

impl Machine {
    /// An ordinary one, where nothing is known of it.
    pub const ORDINARY: Machine = Machine {
        memory_bytes: 16 << 30,
        cpus: 8,
        nodes: 1,
    };

    /// With so much memory, buffers counted in percent of it would take too much of what is not
    /// paged: 24 GiB, by the case of the flooded backup server.
    const LARGE_MEMORY_BYTES: u64 = 24 << 30;

    /// With so many CPUs, stacks of all that is switched fill buffers faster than a disk takes them.
    const MANY_CPUS: u32 = 24;

    /// Whether it is recorded as a large server.
    pub fn is_large_server(&self) -> bool {
        self.memory_bytes >= Machine::LARGE_MEMORY_BYTES && self.cpus >= Machine::MANY_CPUS
    }
}

/// Buffers of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Size of one in KiB.
    pub size_kib: u32,
    /// How many.
    pub count: u32,
}

/// Of the kernel's session in memory at most, in KiB: what UIforETW takes on a workstation.
const MOST_KIB: u64 = 600 << 10;
/// And at least.
const LEAST_KIB: u64 = 64 << 10;
/// Of the memory, the part that the kernel's session takes.
const PART_OF_MEMORY: u64 = 32;
/// Each CPU fills one buffer while another is written.
const PER_CPU: u32 = 2;

impl Buffers {
    /// Of the kernel's session that keeps in memory what just happened.
    pub fn kernel_in_memory(machine: Machine) -> Buffers {
        let part_kib = machine.memory_bytes / 1024 / PART_OF_MEMORY;
        of_size(part_kib.clamp(LEAST_KIB, MOST_KIB), machine.cpus)
    }

    /// Of the kernel's session that writes a file: enough for bursts that the disk is too slow for.
    pub fn kernel_to_file(machine: Machine) -> Buffers {
        let in_memory = Buffers::kernel_in_memory(machine);
        let count = machine.cpus.saturating_mul(8).max(64);
        Buffers {
            count: count.min(in_memory.count),
            ..in_memory
        }
    }

    /// Of the session of other providers, of which few events come.
    pub fn providers(machine: Machine, in_memory: bool) -> Buffers {
        let count = if in_memory { 256 } else { 64 };
        Buffers {
            size_kib: 128,
            count: count.max(machine.cpus.saturating_mul(PER_CPU)),
        }
    }

    /// Their bytes together.
    pub fn bytes(&self) -> u64 {
        (u64::from(self.size_kib) * u64::from(self.count)) << 10
    }
}

/// Buffers of so many KiB together: of 1 MiB each, the most that xperf takes, or of less where CPUs
/// are too many for that.
fn of_size(all_kib: u64, cpus: u32) -> Buffers {
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
    fn a_workstation_gets_what_uiforetw_gives_it() {
        let buffers = Buffers::kernel_in_memory(machine(32, 16));
        assert_eq!((buffers.size_kib, buffers.count), (1024, 600));
    }

    #[test]
    fn nobody_is_starved_and_every_cpu_has_two() {
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
                // Never more than 600 MiB, but for CPUs that need two of the smallest each.
                let least = u64::from(2 * machine.cpus) * (128 << 10);
                assert!(
                    buffers.bytes() <= (600 << 20).max(least),
                    "{machine:?}: {buffers:?}"
                );
            }
        }
    }
}
