//! A query that was cancelled leaves no thread at work. It is alone in its program, since threads are
//! counted by their name.
#![cfg(target_os = "linux")]

mod given;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use given::{session, simulated};
use sql::{Settings, SqlError};
use tables::Options;

/// A join that makes rows of few that it read long ago lets go of its threads too.
#[test]
fn a_join_lets_go_of_its_threads() {
    let given = simulated("healthy", &["duration=2s"]);
    let session = session(&[&given], Settings::default());
    // Some 10^12 rows that are summed up, so that none is given.
    let text = "SELECT sum(a.cpu + b.cpu + c.cpu) FROM samples a, samples b, samples c";
    let query = session
        .prepare(&sql::parse(text).unwrap()[0], Options::default())
        .unwrap();
    let begun = Instant::now();
    let go_on = || begun.elapsed() < Duration::from_millis(1_500);
    let mut batches = query.batches(&go_on).unwrap();
    assert!(matches!(batches.next(), Some(Err(SqlError::Cancelled))));
    drop(batches);
    let at_work = || {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = threads.flat_map(|thread| fs::read_to_string(thread.path().join("comm")));
        names.filter(|name| name.trim() == "sql").count()
    };
    while at_work() > 0 {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(60), "{} threads", at_work());
        sleep(Duration::from_millis(100));
    }
}
