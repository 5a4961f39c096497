//! A method that works when it is tried out and not in a later round. It has a program of its own, since
//! it takes away from all threads of it the right to open more files.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "what is left out is said")]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use measure::{
    CacheState, Clock, End, FileSet, FilesMethod, FilesPhase, FilesProbe, Plan, Scheduling,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const FILES: usize = 5;

/// So many files may be open as a run has, and not the ring's own descriptor.
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
fn a_ring_that_cannot_be_made_in_a_round_is_left_out_and_the_others_are_measured() {
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
            precision: None,
        },
        scheduling: Scheduling::default(),
        rings: None,
    };
    // It is asked before each of the three runs of a round and after them.
    let asked = AtomicU32::new(0);
    let stop = || {
        if asked.fetch_add(1, Ordering::Relaxed) == 3 {
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
        eprintln!("left out: there is no io_uring here: {unavailable:?}");
        return;
    }
    assert_eq!(measurement.end, End::Rounds);
    let names: Vec<&str> = unavailable.iter().map(|one| one.method.as_str()).collect();
    assert_eq!(names, ["io_uring-32", "io_uring-files"]);
    for one in unavailable {
        assert!(one.why.contains("warm, in round 2"), "{}", one.why);
        assert!(one.why.contains("left out"), "{}", one.why);
    }
    // Of the three rounds of the method that stays, and nothing of the others.
    assert!(
        measurement
            .series
            .iter()
            .all(|series| series.method == "pread")
    );
    assert_eq!(measurement.series.len(), 3 * (FilesPhase::PARTS.len() + 1));
}
