//! Test that a cancelled query leaves no running thread. It is a separate test program because it counts
//! threads by name.
#![cfg(target_os = "linux")]

mod given;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use given::{session, simulated};
use sql::{Settings, SqlError};
use tables::Options;

/// Checks that cancelled joins end their threads, although they would combine rows for a long time. One join
/// has many results, and one has none.
#[test]
fn a_cancelled_join_ends_its_threads() {
    let given = simulated("healthy", &["duration=2s"]);
    let session = session(&[&given], Settings::default());
    for text in [
        // This query combines about 10^12 rows. It returns no row before it has summed up all of them.
        "SELECT sum(a.cpu + b.cpu + c.cpu) FROM samples a, samples b, samples c",
        "SELECT count(*) FROM samples a, samples b, samples c WHERE a.cpu + b.cpu + c.cpu < -1",
        "SELECT count(*) FROM samples a JOIN samples b ON a.cpu = b.cpu JOIN samples c ON a.cpu = c.cpu AND \
         a.time_ns + b.time_ns + c.time_ns < -1",
    ] {
        let query = session
            .prepare(&sql::parse(text).unwrap()[0], Options::default())
            .unwrap();
        let begun = Instant::now();
        let go_on = || begun.elapsed() < Duration::from_millis(1_500);
        let mut batches = query.batches(&go_on).unwrap();
        let outcome = batches.next();
        assert!(
            matches!(outcome, Some(Err(SqlError::Cancelled))),
            "{text}: {outcome:?}"
        );
        drop(batches);
        let running = || {
            let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
            let names = threads.flat_map(|thread| fs::read_to_string(thread.path().join("comm")));
            names.filter(|name| name.trim() == "sql").count()
        };
        assert!(running() == 0 || session.queries().get() > 0, "{text}");
        while running() > 0 || session.queries().get() > 0 {
            let waited = begun.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "{text}: {} threads",
                running()
            );
            sleep(Duration::from_millis(100));
        }
    }
}
