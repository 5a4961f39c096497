//! Names of events that are not tracepoints, as `perf list` prints them. Streams of old versions of perf contain only the
//! type and the number of an event.
//!
//! Source: `enum perf_type_id` and the following enumerations of `include/uapi/linux/perf_event.h`.

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

const CACHES: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];

/// Operations on a cache, and their plurals.
const OPERATIONS: [(&str, &str); 3] = [
    ("load", "loads"),
    ("store", "stores"),
    ("prefetch", "prefetches"),
];

/// Returns the name of the event with the type `kind` and the number `config`.
pub(crate) fn of(kind: u32, config: u64) -> String {
    // On machines with several kinds of CPUs, the upper half of `config` has the kind of the CPU.
    let number = (config & 0xFFFF_FFFF) as usize;
    let known = match kind {
        0 => HARDWARE.get(number).map(|name| (*name).to_owned()),
        1 => SOFTWARE.get(number).map(|name| (*name).to_owned()),
        3 => of_cache(number),
        4 => Some(format!("r{config:x}")),
        _ => None,
    };
    known.unwrap_or_else(|| format!("{kind}:{config}"))
}

/// Returns the type and the number of a hardware or software event. Returns `None` for other names.
pub(crate) fn number(name: &str) -> Option<(u32, u64)> {
    let index = |names: &[&str]| names.iter().position(|known| *known == name);
    let hardware = index(&HARDWARE).map(|number| (0, number as u64));
    hardware.or_else(|| index(&SOFTWARE).map(|number| (1, number as u64)))
}

/// Returns the name of an event of a cache. Its number has the cache in the lowest byte, then the operation, then 0 for
/// each access or 1 for misses.
fn of_cache(number: usize) -> Option<String> {
    let cache = CACHES.get(number & 0xFF)?;
    let (one, many) = OPERATIONS.get(number >> 8 & 0xFF)?;
    match number >> 16 {
        0 => Some(format!("{cache}-{many}")),
        1 => Some(format!("{cache}-{one}-misses")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_of_perf_list() {
        for (kind, config, name) in [
            (0, 0, "cycles"),
            (0, 9, "ref-cycles"),
            (0, 4 << 32 | 1, "instructions"),
            (0, 10, "0:10"),
            (1, 0, "cpu-clock"),
            (1, 6, "major-faults"),
            (2, 316, "2:316"),
            (3, 0, "L1-dcache-loads"),
            (3, 0x1_0002, "LLC-load-misses"),
            (3, 0x0203, "dTLB-prefetches"),
            (3, 0x0303, "3:771"),
            (4, 0x1A8, "r1a8"),
            (8, 7, "8:7"),
        ] {
            assert_eq!(of(kind, config), name);
        }
    }
}
