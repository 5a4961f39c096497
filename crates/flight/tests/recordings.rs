//! Tests of recordings of this machine. Both laglab's reader and perf read them.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flight::{Capture, Event, Order, Recorder};
use linux::{EventKind, Meaning, Recording};
use record::Investigation;
use testdata::{perf, skip};

/// Starts a recorder. Returns `None` if this machine cannot record events.
fn start(order: &Order) -> Option<Recorder> {
    match Recorder::start(order) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

/// Records while a shell runs a script.
fn recorded(events: Vec<Event>, script: &str) -> Option<Capture> {
    let recorder = start(&Order::new(events))?;
    let status = Command::new("sh").args(["-c", script]).status().unwrap();
    assert!(status.success());
    Some(recorder.stop())
}

/// Saves a recording as `perf.data` in a folder.
fn save(capture: &Capture, folder: &Path) -> PathBuf {
    let path = folder.join("perf.data");
    let size = capture.write(&mut File::create(&path).unwrap()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    path
}

fn open(path: &Path) -> Recording {
    let source = files::FileSource::new(File::open(path).unwrap()).unwrap();
    Recording::open(Box::new(source)).unwrap()
}

/// Returns the times in nanoseconds of tracepoints and samples, in ascending order, by name of the event.
fn times(recording: &Recording) -> BTreeMap<String, Vec<u64>> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for chunk in recording.chunks() {
        let damage = recording.read(chunk, &mut |event| {
            let attribute = match event.kind {
                EventKind::Tracepoint { attribute, .. } | EventKind::Sample { attribute, .. } => {
                    attribute
                }
                _ => return,
            };
            let name = recording.attributes()[attribute].name.clone().unwrap();
            times.entry(name).or_default().push(event.time_ns.unwrap());
        });
        assert!(damage.unwrap().faults.is_empty());
    }
    times.values_mut().for_each(|of| of.sort_unstable());
    times
}

/// Returns the times of the events that `perf script` prints, by name of the event. Returns `None` if perf is not
/// installed.
fn printed(folder: &Path) -> Option<BTreeMap<String, Vec<u64>>> {
    if Command::new("perf").arg("--version").output().is_err() {
        skip("perf is not installed");
        return None;
    }
    // perf prints the event of a sample with a call chain on a separate line.
    let line = ["script", "-i", "perf.data", "--ns", "-F", "time,event"];
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in perf::run(&line, folder)
        .lines()
        .filter(|line| !line.trim().is_empty())
    {
        let (time, name) = line.trim().split_once(": ").unwrap();
        let (seconds, nanoseconds) = time.split_once('.').unwrap();
        let time: u64 = format!("{seconds}{nanoseconds}").parse().unwrap();
        let name = name.trim().trim_end_matches(':').to_owned();
        times.entry(name).or_default().push(time);
    }
    times.values_mut().for_each(|of| of.sort_unstable());
    Some(times)
}

#[test]
fn perf_reads_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    let events = record::linux::events(Investigation::LongWait);
    let script = "for i in 1 2 3 4 5; do sleep 0.02; /bin/true; done";
    let Some(capture) = recorded(events, script) else {
        return;
    };
    let path = save(&capture, folder.path());
    let recording = open(&path);
    assert!(recording.damage().faults.is_empty());
    let own = times(&recording);
    let switches = &own["sched:sched_switch"];
    // The shell, five sleeps and five programs cause more than 20 context switches.
    assert!(switches.len() > 20, "{}", switches.len());
    let Some(perf) = printed(folder.path()) else {
        return;
    };
    assert_eq!(own, perf);
    // perf prints only some of the records that the recorder counts.
    let lines: usize = perf.values().map(Vec::len).sum();
    let cost = capture.cost();
    assert!(cost.records >= lines as u64, "{cost:?}");
    assert_eq!(cost.lost, recording.damage().lost_events);
}

#[test]
fn perf_reads_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let mut order = Order::new(record::linux::events(Investigation::Dpc));
    order.command_line = vec!["laglab".to_owned(), "record now".to_owned()];
    let Some(recorder) = start(&order) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(150));
    let path = save(&recorder.stop(), folder.path());
    let system = open(&path).system().clone();
    let uname = |option: &str| {
        let output = Command::new("uname").arg(option).output().unwrap().stdout;
        Some(String::from_utf8(output).unwrap().trim().to_owned())
    };
    assert_eq!(system.os_release, uname("-r"));
    assert_eq!(system.host_name, uname("-n"));
    assert_eq!(system.architecture, uname("-m"));
    let cpus = Command::new("nproc").arg("--all").output().unwrap().stdout;
    let cpus: u32 = String::from_utf8(cpus).unwrap().trim().parse().unwrap();
    assert_eq!(system.cpus_online, Some(cpus));
    assert!(system.wall_clock.is_some());
    if Command::new("perf").arg("--version").output().is_err() {
        return skip("perf is not installed");
    }
    let header = perf::run(
        &["report", "--header-only", "-i", "perf.data"],
        folder.path(),
    );
    for expected in [
        format!("# os release : {}", system.os_release.unwrap()),
        format!("# nrcpus online : {cpus}"),
        "# cmdline : laglab record now".to_owned(),
        "# event : name = sched:sched_switch, ".to_owned(),
        "clockid: monotonic_raw".to_owned(),
    ] {
        assert!(header.contains(&expected), "{expected}: {header}");
    }
}

#[test]
fn samples_have_the_code_that_ran() {
    let folder = tempfile::tempdir().unwrap();
    let events = record::linux::events(Investigation::Cpu);
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let Some(capture) = recorded(events, script) else {
        return;
    };
    let path = save(&capture, folder.path());
    let recording = open(&path);
    let (mut chains, mut mapped) = (0, 0);
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| match &event.kind {
            EventKind::Sample { chain, .. } => {
                chains += usize::from(chain.addresses().next().is_some())
            }
            EventKind::Mapped { path, .. } => {
                mapped += usize::from(path.ends_with("_text") || path.contains(".so"))
            }
            _ => {}
        });
        read.unwrap();
    }
    assert!(chains > 20 && mapped > 5, "{chains} chains, {mapped} files");
    let Some(perf) = printed(folder.path()) else {
        return;
    };
    assert_eq!(times(&recording), perf);
    // This test's executable is mapped while the recording is saved. So perf must list its build id.
    let own = std::env::current_exe().unwrap().display().to_string();
    let notes = Command::new("readelf").args(["-n", &own]).output().unwrap();
    let notes = String::from_utf8_lossy(&notes.stdout).into_owned();
    let id = notes
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "));
    let listed = perf::run(&["buildid-list", "-i", "perf.data"], folder.path());
    let expected = id.map(|id| format!("{id} {own}")).unwrap();
    assert!(
        listed.lines().any(|line| line.trim() == expected),
        "{expected}: {listed}"
    );
}

#[test]
fn threads_that_existed_have_their_names_and_facts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recorder) = start(&Order::new(record::linux::events(Investigation::LongWait))) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(150));
    let capture = recorder.stop();
    let recording = open(&save(&capture, folder.path()));
    let own = std::process::id();
    let (mut named, mut started) = (false, false);
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| match &event.kind {
            EventKind::Name { name, .. } if event.thread_id == Some(own) => {
                let comm = fs::read_to_string("/proc/self/comm").unwrap();
                named |= name == comm.trim_end();
            }
            EventKind::Started { .. } => started |= event.thread_id == Some(own),
            _ => {}
        });
        read.unwrap();
    }
    assert!(named && started);
    // The program `taskset` prints the CPUs of this process, independently of the recorder.
    let list = Command::new("sh")
        .args(["-c", "taskset -pc $PPID"])
        .output()
        .unwrap()
        .stdout;
    let list = String::from_utf8(list).unwrap();
    let list = list.rsplit(' ').next().unwrap().trim();
    let line = |line: &str| {
        line.starts_with(&format!("/proc/{own}/task/{own}/status:Cpus_allowed_list:"))
            && line
                .split_ascii_whitespace()
                .last()
                .is_some_and(|cpus| cpus.replace('-', ",") == list.replace('-', ","))
    };
    assert!(capture.facts().lines().any(line), "{list}");
    let policy = format!("/proc/{own}/task/{own}/stat:");
    assert!(capture.facts().contains(&policy));
    // The times of the CPUs, at the start and at the end.
    let of_cpu = |line: &&str| line.starts_with("/proc/stat:cpu0 ");
    let times: Vec<&str> = capture.facts().lines().filter(of_cpu).collect();
    assert!(times.len() == 2 && times[0] != times[1], "{times:?}");
}

#[test]
fn the_ring_keeps_the_last_events_and_those_that_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let mut order = Order::new(record::linux::events(Investigation::Dpc));
    order.last = Duration::from_millis(300);
    let Some(recorder) = start(&order) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(250));
    let wanted = flight::now_ns();
    recorder.keep(wanted..wanted + 1);
    std::thread::sleep(Duration::from_millis(1_200));
    let capture = recorder.capture();
    let now = flight::now_ns();
    let recording = open(&save(&capture, folder.path()));
    let all: Vec<u64> = times(&recording).into_values().flatten().collect();
    // A round takes 0.1 s, unless the recorder's thread is delayed. The records between the requested range and the
    // last rounds were dropped.
    assert!(all.iter().any(|ns| ns.abs_diff(wanted) < 150_000_000));
    assert!(all.iter().any(|ns| *ns + 300_000_000 > now));
    let dropped = wanted + 400_000_000..wanted + 600_000_000;
    assert!(!all.iter().any(|ns| dropped.contains(ns)));
    // The recording continues.
    std::thread::sleep(Duration::from_millis(150));
    assert!(recorder.stop().cost().records > capture.cost().records);
}

#[test]
fn a_switch_has_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    let Some(capture) = recorded(record::linux::events(Investigation::LongWait), "sleep 0.05")
    else {
        return;
    };
    let recording = open(&save(&capture, folder.path()));
    let mut sleeps = 0;
    // The test expects only one switch of `sleep`: from `sleep` to another thread. Some kernels record no event while
    // the idle thread runs, so the switch from the idle thread to `sleep` can be missing.
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| {
            if let EventKind::Tracepoint { tracepoint, .. } = &event.kind
                && let Meaning::Switch(switch) = tracepoint.meaning
                && [switch.previous.name.bytes(), switch.next.name.bytes()]
                    .contains(&b"sleep".as_slice())
            {
                sleeps += 1;
            }
        });
        read.unwrap();
    }
    assert!(sleeps >= 1, "the program ran at least once");
}
