//! Checks reports of a trace that lacks all events of two processors for a second. The CPU time of a process in a
//! report must not be larger than its true CPU time.

use simulated::{Simulated, list, number, sums};
use xperf::{CSwitch, CpuDisk, Profile, Whose};

use super::reported::{open, rows};

/// Maximum time by which the reported CPU time of a process may exceed the true CPU time. There are two reasons for a
/// difference. Runs of threads include interrupts. A run at the edge of the lost second counts if it is shorter than
/// 0.1 s.
const OFF_NS: i64 = 150_000_000;

#[test]
fn lost_events_make_no_cpu_time() {
    for seed in ["seed=20261123", "seed=1", "seed=2"] {
        let lossy = Simulated::new("lost-events", &[seed]);
        let trace = open(&lossy);
        let by_process = CSwitch {
            by: Some(Whose::Process),
        };
        let used = [
            (rows(&by_process, &trace), "cpu_ns"),
            (rows(&CpuDisk::default(), &trace), "cpu_ns"),
            (rows(&Profile::default(), &trace), "weight_ns"),
        ];
        for (rows, column) in used {
            let of = sums(&rows, column, |row| number(row, "process_id"));
            let mut checked = 0;
            for process in list(&lossy.truth, "processes") {
                let (id, cpu_ns) = (number(process, "id"), number(process, "cpu_ns"));
                // The rest of the time belongs to idle threads.
                if id == 0 {
                    continue;
                }
                let found = of.get(&id).copied().unwrap_or(0);
                assert!(
                    found <= cpu_ns + OFF_NS,
                    "{seed} {column}: {found}, not {process}"
                );
                checked += i64::from(found > 0);
            }
            assert!(checked > 5, "{seed}");
        }
    }
}
