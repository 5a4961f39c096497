//! Test of a method that works in the trial and fails in a later round. It needs a separate test
//! program, because it lowers the limit of open files for all threads.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use measure::{
    CacheState, Clock, End, FileSet, FilesMethod, FilesPhase, FilesProbe, Plan, Scheduling,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const FILES: usize = 5;

/// Limits open files to the files of a run, so that no descriptor is left for a ring.
fn allow_no_ring() {
    let files: Vec<File> = (0..FILES)
        .map(|_| File::open("/dev/null").expect("opened"))
        .collect();
    let highest = files.iter().map(AsRawFd::as_raw_fd).max().expect("some");
    let limit = Rlimit {
        current: Some(highest as u64 + 1),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).expect("it may be lowered");
}

#[test]
fn a_method_that_fails_in_a_round_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..FILES {
        fs::write(folder.path().join(number.to_string()), "content").expect("written");
    }
    let method = |name: &str| name.parse::<FilesMethod>().expect("a method");
    let probe = FilesProbe {
        set: FileSet::of_folder(folder.path(), FILES).expect("it has files"),
        methods: ["pread", "io_uring-32", "io_uring-files"]
            .map(method)
            .into(),
        caches: vec![CacheState::Warm],
        plan: Plan {
            warm_up: 0,
            at_least: 3,
            at_most: 3,
            time: Duration::MAX,
            goal: None,
        },
        scheduling: Scheduling::default(),
        rings: None,
        late: None,
    };
    // `stop` is called before each of the three runs of a round, and after the last run. The fourth call is
    // therefore at the end of the first round.
    let calls = AtomicU32::new(0);
    let stop = || {
        if calls.fetch_add(1, Ordering::Relaxed) == 3 {
            allow_no_ring();
        }
        false
    };
    let measured = probe
        .measure(&Clock::best(), &stop)
        .expect("some of it was measured");
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    let measurement = measured.measurement;
    let unavailable = &measurement.unavailable;
    let is_forbidden = |why: &str| !why.contains("open files");
    if unavailable.iter().any(|one| is_forbidden(&one.why)) {
        testdata::skip(&format!("io_uring is not available: {unavailable:?}"));
        return;
    }
    assert_eq!(measurement.end, End::Rounds);
    let names: Vec<&str> = unavailable.iter().map(|one| one.method.as_str()).collect();
    assert_eq!(names, ["io_uring-32", "io_uring-files"]);
    for one in unavailable {
        assert!(one.why.contains("warm, in round 2"), "{}", one.why);
        assert!(one.why.contains("left out"), "{}", one.why);
    }
    // The result has three rounds of the remaining method and no series of the other methods.
    assert!(
        measurement
            .series
            .iter()
            .all(|series| series.method == "pread")
    );
    assert_eq!(measurement.series.len(), 3 * (FilesPhase::PARTS.len() + 1));
}
