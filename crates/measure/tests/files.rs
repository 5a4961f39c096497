//! Tests of the file probe: every method reads all bytes, and errors name the file. Each test creates its set of files.
//! Unsafe code is allowed to load the stand-in for I/O rings.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use measure::{
    CacheState, Clock, End, FileSet, FileSizes, FilesError, FilesMeasured, FilesMethod, FilesPhase,
    FilesProbe, Plan, Scheduling,
};

const TWO_ROUNDS: Plan = Plan {
    warm_up: 0,
    at_least: 2,
    at_most: 2,
    time: Duration::from_secs(600),
    goal: None,
};

/// File sizes in bytes: zero, and sizes below, at and above the size of a chunk.
const ODD_SIZES: [usize; 7] = [0, 1, 4096, 65_535, 65_536, 65_537, 200_000];

/// Number of series per run: one for each phase and one for the single reads.
const SERIES_OF_A_RUN: usize = FilesPhase::PARTS.len() + 1;

/// Creates a folder with files of odd sizes, some of them in a subfolder. Returns the folder and
/// the paths of the files.
fn odd_files() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("created");
    let mut paths = Vec::new();
    for (number, size) in ODD_SIZES.into_iter().enumerate() {
        let content: Vec<u8> = (0..size).map(|at| (at * 7 + number) as u8).collect();
        let path = match number % 2 {
            0 => folder.path().join(format!("{number}")),
            _ => inner.join(format!("{number}")),
        };
        fs::write(&path, content).expect("written");
        paths.push(path);
    }
    (folder, paths)
}

fn probe(folder: &Path, caches: &[CacheState]) -> FilesProbe {
    FilesProbe {
        set: FileSet::of_folder(folder, 4_000).expect("it has files"),
        methods: FilesMethod::all().collect(),
        caches: caches.to_vec(),
        plan: TWO_ROUNDS,
        scheduling: Scheduling::default(),
        rings: standin(),
        late: None,
    }
}

fn measure(probe: &FilesProbe) -> FilesMeasured {
    let measured = probe.measure(&Clock::best(), &|| false);
    measured.expect("it can be measured")
}

#[cfg(windows)]
#[expect(unsafe_code, reason = "the stand-in is trusted")]
fn standin() -> Option<ioring::Library> {
    let mut path = std::env::current_exe().expect("a running program has a path");
    path.pop();
    path.pop();
    path.push("examples/ioring_standin.dll");
    assert!(
        path.exists(),
        "{} is missing; build it for this target with `cargo build -p measure --examples`",
        path.display()
    );
    // SAFETY: the stand-in upholds the contract of the system functions.
    Some(unsafe { ioring::Library::from_dll(&path) }.expect("the stand-in has every function"))
}

#[cfg(not(windows))]
fn standin() -> Option<ioring::Library> {
    None
}

#[test]
fn every_method_reads_all_bytes() {
    let (folder, paths) = odd_files();
    let caches = [CacheState::Warm, CacheState::Evicted, CacheState::Direct];
    let probe = probe(folder.path(), &caches);
    assert_eq!(probe.set.count(), paths.len());
    let FilesMeasured {
        measurement,
        failure,
    } = measure(&probe);
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(measurement.end, End::Rounds);
    let first = FilesMethod::all().next().expect("every system has one");
    assert_eq!(measurement.groups()[0].first.method, first.name());
    let forbidden = |name: &str| name.starts_with("io_uring");
    if let Some(missing) = (measurement.unavailable.iter()).find(|one| forbidden(&one.method)) {
        testdata::skip(&format!("{}: {}", missing.method, missing.why));
    }
    for method in FilesMethod::all() {
        let series = measurement.series.iter();
        let warm: Vec<_> = series
            .filter(|series| series.method == method.name() && series.setting == "warm")
            .collect();
        // A kernel or container may forbid io_uring. The measurement must then report it as
        // unavailable.
        let unavailable = measurement.unavailable.iter();
        let is_forbidden = matches!(method, FilesMethod::Uring { .. })
            && unavailable
                .map(|it| &it.method)
                .any(|it| it == method.name());
        assert!(
            is_forbidden || warm.len() == 2 * SERIES_OF_A_RUN,
            "{method}: {} series",
            warm.len()
        );
        // A file needs one read per chunk, but only one read with mmap. A file of size 0 needs no read.
        let least = ODD_SIZES.iter().filter(|&&size| size > 0).count();
        let each = warm
            .iter()
            .filter(|it| it.phase.as_deref() == Some("each read"));
        assert!(
            each.into_iter().all(|it| it.samples.len() >= least),
            "{method}"
        );
    }
}

#[test]
fn phases_add_up_and_carry_the_size() {
    let (folder, _) = odd_files();
    let measurement = measure(&probe(folder.path(), &[CacheState::Warm])).measurement;
    let size: usize = ODD_SIZES.iter().sum();
    for of_run in measurement.series.chunks(SERIES_OF_A_RUN) {
        let latency = |series: &measure::Series| series.samples[0].latency_ns.expect("timed");
        let (total, parts) = of_run[..FilesPhase::PARTS.len()]
            .split_last()
            .expect("parts");
        assert_eq!(parts.iter().map(latency).sum::<i64>(), latency(total));
        assert!(
            latency(&parts[0]) > 0 && latency(&parts[2]) > 0,
            "{of_run:?}"
        );
        assert_eq!(total.size_bytes, Some(size as u64));
    }
}

/// Measures, and runs `happens` before the turn with the number `turn`. The probe calls `stop`
/// before each turn.
fn measure_while(probe: &FilesProbe, turn: u32, happens: impl Fn() + Sync) -> FilesMeasured {
    let calls = AtomicU32::new(0);
    let stop = || {
        if calls.fetch_add(1, Ordering::Relaxed) == turn {
            happens();
        }
        false
    };
    let measured = probe.measure(&Clock::best(), &stop);
    measured.expect("some of it was measured")
}

#[test]
fn a_vanished_file_is_named_and_earlier_runs_are_kept() {
    let (folder, paths) = odd_files();
    let mut probe = probe(folder.path(), &[CacheState::Warm]);
    probe.methods.truncate(2);
    let measured = measure_while(&probe, 2, || fs::remove_file(&paths[5]).expect("removed"));
    assert!(!measured.measurement.series.is_empty());
    let failure = measured.failure.expect("a file is gone");
    assert!(
        matches!(&failure, FilesError::File { path, .. } if *path == paths[5]),
        "{failure}"
    );
    assert!(failure.to_string().contains("vanished"), "{failure}");
}

#[test]
fn a_changed_file_is_named_with_its_content() {
    let (folder, paths) = odd_files();
    // The first replacement is another byte of the same length, so only the sum differs. The second
    // replacement is longer.
    for content in ["x", "longer"] {
        let mut probe = probe(folder.path(), &[CacheState::Warm]);
        probe.methods.truncate(1);
        let change = || fs::write(&paths[1], content).expect("written");
        let failure = measure_while(&probe, 1, change).failure;
        let failure = failure.expect("the file has changed");
        assert!(
            matches!(&failure, FilesError::Different { path, .. } if *path == paths[1]),
            "{failure}"
        );
    }
}

#[test]
fn a_stop_keeps_earlier_runs() {
    let (folder, _) = odd_files();
    let calls = AtomicU32::new(0);
    let stop = || calls.fetch_add(1, Ordering::Relaxed) >= 3;
    let measured = probe(folder.path(), &[CacheState::Warm, CacheState::Direct])
        .measure(&Clock::best(), &stop)
        .expect("three turns were made");
    assert_eq!(measured.measurement.end, End::Stopped);
    assert_eq!(measured.measurement.series.len(), 3 * SERIES_OF_A_RUN);
    assert!(measured.failure.is_none());
}

#[test]
fn a_generated_set_is_measured_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("set");
    let set = FileSet::make(&inner, 100, FileSizes::Small, 42, &|| false).expect("made");
    assert_eq!((set.count(), set.bytes()), (100, 409_600));
    let mut probe = probe(&inner, &[CacheState::Warm]);
    probe.methods.truncate(1);
    let series = measure(&probe).measurement.series;
    assert_eq!(series.len(), 2 * SERIES_OF_A_RUN);
    set.remove();
    assert!(!inner.exists());
}

/// Checks that a full disk is reported, and that all files are removed. The test uses a small separate disk,
/// which only root can mount.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_cleaned_up() {
    use std::process::Command;

    let folder = tempfile::tempdir().expect("a folder");
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(folder.path())
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        testdata::skip("no right to mount a small disk");
        return;
    }
    let inner = folder.path().join("set");
    let result = FileSet::make(&inner, 1_000, FileSizes::Small, 1, &|| false);
    let is_left = inner.exists();
    let unmount = Command::new("umount").arg(folder.path()).status();
    assert!(unmount.is_ok_and(|status| status.success()));
    let error = result.expect_err("1,000 files of 4 KiB do not fit into 256 KiB");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(!is_left, "all files are removed");
}
