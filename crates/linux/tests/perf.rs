//! Checks that events in new recordings are equal to the events that `perf script` prints. The tests run perf to make
//! the recordings.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use linux::{EventKind, Fault, Meaning, Recording};
use testdata::perf;

/// Tracepoints that the tests record.
const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_migrate_task,\
    sched:sched_process_exec,sched:sched_process_exit,task:task_newtask,task:task_rename,irq:softirq_entry,\
    irq:softirq_exit,irq_vectors:local_timer_entry,irq_vectors:local_timer_exit,power:cpu_idle";

/// Shell script that runs while perf records. It runs `true` five times.
const WORK: &str = "for i in 1 2 3 4 5; do sleep 0.01; /bin/true; done";

/// Records the whole machine while [`WORK`] runs, and opens the recording. `options` are further options of perf.
/// Returns `None` if perf cannot record here.
fn record(folder: &Path, options: &[&str]) -> Option<Recording> {
    let file = perf::record(folder, EVENTS, options, WORK)?;
    let source = files::FileSource::new(std::fs::File::open(file).unwrap()).unwrap();
    Some(Recording::open(Box::new(source)).unwrap())
}

/// Event as `perf script` prints it: time in nanoseconds, CPU, name of the tracepoint, and a text with some of its
/// values.
type Printed = (u64, u32, String, String);

/// Returns the events that `perf script` prints, in time order.
fn printed(folder: &Path) -> Vec<Printed> {
    let line = [
        "script",
        "--ns",
        "-F",
        "cpu,time,event,trace",
        "-i",
        "perf.data",
    ];
    let text = perf::run(&line, folder);
    let mut events: Vec<Printed> = text.lines().map(printed_event).collect();
    events.sort();
    events
}

fn printed_event(line: &str) -> Printed {
    let (cpu, rest) = line
        .trim()
        .strip_prefix('[')
        .unwrap()
        .split_once("] ")
        .unwrap();
    let (time, rest) = rest.trim().split_once(": ").unwrap();
    let (seconds, nanoseconds) = time.split_once('.').unwrap();
    let time_ns: u64 = format!("{seconds}{nanoseconds}").parse().unwrap();
    let (name, values) = rest
        .trim()
        .split_once(": ")
        .unwrap_or((rest.trim().trim_end_matches(':'), ""));
    (
        time_ns,
        cpu.parse().unwrap(),
        name.to_owned(),
        printed_values(name, values),
    )
}

fn printed_values(name: &str, values: &str) -> String {
    let value = |key: &str| {
        let at = values.find(&format!("{key}=")).map(|at| at + key.len() + 1);
        let rest = at.map_or("", |at| &values[at..]);
        // A name may contain spaces. All other values end at a space.
        let end = match key {
            "prev_comm" => rest.find(" prev_pid="),
            "next_comm" => rest.find(" next_pid="),
            "comm" => rest.find(" pid="),
            _ => rest.find([' ', ']']),
        };
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let listed = |keys: &[&str]| {
        keys.iter()
            .map(|key| value(key))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match name {
        "sched:sched_switch" => listed(&[
            "prev_comm",
            "prev_pid",
            "prev_prio",
            "next_comm",
            "next_pid",
            "next_prio",
        ]),
        "sched:sched_waking" | "sched:sched_wakeup_new" => {
            let cpu: u32 = value("target_cpu").parse().unwrap();
            format!("{} {cpu}", listed(&["comm", "pid", "prio"]))
        }
        "sched:sched_migrate_task" => listed(&["pid", "prio", "orig_cpu", "dest_cpu"]),
        "sched:sched_process_exec" => listed(&["filename", "pid"]),
        "sched:sched_process_exit" => listed(&["pid"]),
        "task:task_newtask" => listed(&["pid"]),
        "task:task_rename" => listed(&["pid"]),
        "irq:softirq_entry" | "irq:softirq_exit" => listed(&["vec"]),
        "power:cpu_idle" => listed(&["state"]),
        _ => String::new(),
    }
}

/// Returns the events that laglab reads from a recording, in the form of [`printed`].
fn read(recording: &Recording) -> Vec<Printed> {
    let mut events = Vec::new();
    for chunk in recording.chunks() {
        let damage = recording.read(chunk, &mut |event| {
            let EventKind::Tracepoint {
                attribute,
                tracepoint,
                ..
            } = &event.kind
            else {
                return;
            };
            let id = recording.attributes()[*attribute].config;
            let format = recording
                .formats()
                .iter()
                .find(|format| u64::from(format.id) == id);
            let format = format.expect("a described event");
            let name = format!("{}:{}", format.system, format.name);
            assert_eq!(
                recording.attributes()[*attribute]
                    .name
                    .as_deref()
                    .unwrap_or(&name),
                name
            );
            assert_eq!(event.cpu, chunk.cpu);
            let values = values(&tracepoint.meaning);
            events.push((event.time_ns.unwrap(), event.cpu.unwrap(), name, values));
        });
        assert_eq!(damage.unwrap(), linux::Damage::default());
    }
    events.sort();
    events
}

fn values(meaning: &Meaning<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match meaning {
        Meaning::Switch(switch) => {
            let thread = |of: &linux::SwitchedThread<'_>| {
                format!("{} {} {}", text(of.name.bytes()), of.thread_id, of.priority)
            };
            format!("{} {}", thread(&switch.previous), thread(&switch.next))
        }
        Meaning::Waking(woken) | Meaning::Wakeup(woken) | Meaning::WakeupNew(woken) => {
            format!(
                "{} {} {} {}",
                text(woken.name.bytes()),
                woken.thread_id,
                woken.priority,
                woken.cpu
            )
        }
        Meaning::Migrate {
            thread_id,
            priority,
            from,
            to,
        } => {
            format!("{thread_id} {priority} {from} {to}")
        }
        Meaning::Exec { path, process_id } => format!("{} {process_id}", text(path)),
        Meaning::Exit { thread_id }
        | Meaning::NewTask { thread_id, .. }
        | Meaning::Rename { thread_id, .. } => thread_id.to_string(),
        Meaning::SoftirqEntry { vector } | Meaning::SoftirqExit { vector } => vector.to_string(),
        Meaning::Idle(state) => state.unwrap_or(u32::MAX).to_string(),
        _ => String::new(),
    }
}

/// Records the machine with `options` and checks that laglab reads the events that `perf script` prints. Returns the
/// recording, or `None` if perf cannot record here.
fn check(options: &[&str]) -> Option<Recording> {
    check_in(tempfile::tempdir().unwrap().path(), options)
}

/// Checks the events of a recording in the way of [`check`]. The recording stays in `folder`.
fn check_in(folder: &Path, options: &[&str]) -> Option<Recording> {
    let recording = record(folder, options)?;
    let (expected, found) = (printed(folder), read(&recording));
    assert!(expected.len() > 100, "{} events", expected.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, _, name, _) in &expected {
        *counts.entry(name).or_default() += 1;
    }
    // The shell runs `true` five times.
    assert!(counts["sched:sched_process_exec"] >= 5, "{counts:?}");
    assert!(counts["sched:sched_switch"] >= 10, "{counts:?}");
    Some(recording)
}

#[test]
fn a_file_has_the_events_that_perf_prints() {
    let Some(recording) = check(&[]) else {
        return;
    };
    let system = recording.system();
    assert_eq!(
        system.os_release.as_deref(),
        Some(read_text("/proc/sys/kernel/osrelease").as_str())
    );
    assert_eq!(
        system.host_name.as_deref(),
        Some(read_text("/proc/sys/kernel/hostname").as_str())
    );
    // Ranges such as `0-3,6`. The process of the test may have fewer CPUs.
    let online = read_text("/sys/devices/system/cpu/online");
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<u32>().unwrap() - first.parse::<u32>().unwrap() + 1
    };
    assert_eq!(system.cpus_online, Some(online.split(',').map(count).sum()));
    assert_eq!(
        system.command_line.as_ref().map(|line| &line[1][..]),
        Some("record")
    );
    assert_eq!(recording.attributes()[0].clock, linux::Clock::Monotonic);
    assert!(system.wall_clock.is_some());
    assert_eq!(recording.damage(), &linux::Damage::default());
}

#[test]
fn call_chains_are_read() {
    let Some(recording) = check(&["-g"]) else {
        return;
    };
    let mut chains = 0;
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| {
            if let EventKind::Tracepoint { chain, .. } = &event.kind {
                chains += usize::from(chain.addresses().count() > 2);
            }
        });
        read.unwrap();
    }
    assert!(chains > 50, "{chains}");
}

#[test]
fn compressed_records_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recording) = check_in(folder.path(), &["-z"]) else {
        return;
    };
    let bytes = std::fs::read(folder.path().join("perf.data")).unwrap();
    assert!(compressed_records(&bytes) > 0);
    assert_eq!(recording.damage(), &linux::Damage::default());
}

/// Returns the number of records of compressed events (`PERF_RECORD_COMPRESSED` and `PERF_RECORD_COMPRESSED2` of
/// perf's file format). The header has the place of the records at byte 40 and their size at byte 48.
fn compressed_records(file: &[u8]) -> usize {
    let number = |at: usize, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&file[at..at + size]);
        u64::from_le_bytes(bytes) as usize
    };
    let (mut at, mut count) = (number(40, 8), 0);
    let end = at + number(48, 8);
    while at < end {
        count += usize::from([81, 83].contains(&number(at, 4)));
        at += number(at + 6, 2);
    }
    count
}

/// Records the whole machine while [`WORK`] runs. Returns the bytes of the recording, or `None` if perf cannot record
/// here.
fn bytes(options: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let file = perf::record(folder.path(), EVENTS, options, WORK)?;
    Some(std::fs::read(file).unwrap())
}

/// Reads all events. Returns their number and the faults.
fn read_all(recording: &Recording) -> (u64, linux::Damage) {
    let (mut events, mut damage) = (0, recording.damage().clone());
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| {
            events += 1;
            if let EventKind::Tracepoint { chain, .. } = &event.kind {
                events += chain.addresses().filter(|address| *address == 1).count() as u64;
            }
        });
        damage.merge(&read.unwrap());
    }
    (events, damage)
}

#[test]
fn a_stream_is_read() {
    if bytes(&[]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("perf record -q -a -e {EVENTS} -o - -- sleep 0.05 > perf.data");
    let shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .status();
    assert!(shell.unwrap().success());
    let source = std::fs::read(folder.path().join("perf.data")).unwrap();
    let recording = Recording::open(Box::new(source)).unwrap();
    let found = read(&recording);
    assert_eq!(found, printed(folder.path()));
    assert!(found.len() > 50, "{}", found.len());
    assert!(recording.system().os_release.is_some());
}

#[test]
fn a_recording_without_an_end_is_read_as_far_as_it_goes() {
    let Some(whole) = bytes(&[]) else {
        return;
    };
    let data = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let (offset, size) = (data(40), data(48));
    let (events, damage) = read_all(&Recording::open(Box::new(whole.clone())).unwrap());
    assert_eq!(damage, linux::Damage::default());

    // The header still states the size of the complete data.
    let half = whole[..(offset + size / 2) as usize].to_vec();
    let (some, damage) = read_all(&Recording::open(Box::new(half.clone())).unwrap());
    assert!(some > 0 && some < events, "{some} of {events}");
    assert!(damage.faults.contains_key(&Fault::CutOff), "{damage:?}");

    // This file is like the file of a killed perf: its header states no data size, and it has no descriptions of
    // tracepoints.
    let mut killed = whole.clone();
    killed[48..56].fill(0);
    killed.truncate((offset + size) as usize);
    let recording = Recording::open(Box::new(killed)).unwrap();
    let (_, damage) = read_all(&recording);
    assert_eq!(recording.formats(), []);
    let [(Fault::Killed, killed), ..] = &damage.faults.iter().collect::<Vec<_>>()[..] else {
        panic!("{damage:?}");
    };
    assert_eq!(killed.count, 1);
    assert!(Fault::Killed.to_string().starts_with("perf was killed: "));
}

#[test]
fn damaged_recordings_are_read_or_refused() {
    for options in [&[][..], &["-z"]] {
        if let Some(whole) = bytes(options) {
            damage(&whole);
        }
    }
}

fn damage(whole: &[u8]) {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut refused = 0;
    for round in 0..300 {
        let mut bytes = whole.to_vec();
        // Most descriptions are near the start and the end of the file. In a third of the rounds, only the first 4
        // KiB are changed.
        let limit = match round % 3 {
            0 => 4096.min(bytes.len()),
            _ => bytes.len(),
        };
        for _ in 0..=next() % 8 {
            let at = (next() % limit as u64) as usize;
            bytes[at] = [0, 0xFF, 0x80, next() as u8][(next() % 4) as usize];
        }
        if round % 5 == 0 {
            bytes.truncate((next() % bytes.len() as u64) as usize);
        }
        match Recording::open(Box::new(bytes)) {
            Ok(recording) => {
                let (events, _) = read_all(&recording);
                assert!(events < 200 * whole.len() as u64);
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(refused < 200, "{refused}");
}

#[test]
fn other_files_are_refused() {
    for (bytes, expected) in [
        (Vec::new(), "not a recording"),
        (b"MZ executable".to_vec(), "not a recording"),
        (b"PERFILE2".to_vec(), "the file is too short"),
        (
            [&b"PERFILE2"[..], &[16], &[0; 7]].concat(),
            "describes no event",
        ),
    ] {
        let error = Recording::open(Box::new(bytes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

fn read_text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Writes the part of a recording in a time range to the file `part.data`.
fn write_part(
    folder: &Path,
    recording: &Recording,
    range: &std::ops::RangeInclusive<u64>,
) -> linux::WrittenCounts {
    let mut part = std::fs::File::create(folder.join("part.data")).unwrap();
    recording.write_part(range.clone(), &mut part).unwrap()
}

#[test]
fn perf_prints_the_same_events_of_a_part() {
    for options in [&["-g"][..], &["-z"]] {
        let folder = tempfile::tempdir().unwrap();
        let Some(recording) = record(folder.path(), options) else {
            return;
        };
        let print = |file: &str| {
            let fields = "comm,pid,tid,cpu,time,event,ip,sym,trace";
            perf::run(&["script", "--ns", "-F", fields, "-i", file], folder.path())
        };
        let times = printed(folder.path()).into_iter().map(|event| event.0);
        let times: Vec<u64> = times.collect();
        let range = times[times.len() / 3]..=times[times.len() * 2 / 3];
        let written = write_part(folder.path(), &recording, &range);
        let expected = times.iter().filter(|time| range.contains(time)).count() as u64;
        assert_eq!(written.samples, expected);
        assert!(
            written.others > 10 && written.read > written.samples,
            "{written:?}"
        );

        // perf selects the same time range of the whole recording.
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let between = format!("{},{}", seconds(*range.start()), seconds(*range.end()));
        let fields = "comm,pid,tid,cpu,time,event,ip,sym,trace";
        let select = [
            "script",
            "--ns",
            "--time",
            &between,
            "-F",
            fields,
            "-i",
            "perf.data",
        ];
        let selected = perf::run(&select, folder.path());
        let part = print("part.data");
        assert!(part.lines().count() as u64 >= expected);
        for (found, expected) in part.lines().zip(selected.lines()) {
            assert_eq!(found, expected);
        }
        assert_eq!(part.len(), selected.len());

        let source = std::fs::read(folder.path().join("part.data")).unwrap();
        let part = Recording::open(Box::new(source)).unwrap();
        assert_eq!(part.damage(), &linux::Damage::default());
        assert_eq!(part.system(), recording.system());
        assert!(part.size_bytes() < recording.size_bytes() || options.contains(&"-z"));
    }
}
