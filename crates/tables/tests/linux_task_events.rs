//! Comparison of the processes and threads of Linux recordings with the records of names, starts and ends that
//! `perf script --show-task-events` prints.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;

use tables::{Cache, Options, ProcessesView, Store, Table, ThreadsView};
use testdata::perf;

use crate::linux::EVENTS;

/// Script that starts many short processes, some of which never start another program. One process changes
/// its name.
const LOAD: &str = "for i in $(seq 120); do (read line < /proc/self/stat; echo $line > /dev/null) & \
    seq 10 | tail -n 1 > /dev/null; ln -sf $(command -v sleep) 'odd: name:7'; './odd: name:7' 0.01; done; \
    sh -c 'printf renamed > /proc/self/comm; sleep 0.01; :'; wait";

/// Process or thread between its start and its end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Life {
    process_id: u32,
    /// Last name of the thread.
    name: Option<String>,
    /// Name of the program that the thread started last. If it started none, its first name. Only for the first thread
    /// of a process.
    program: Option<String>,
    has_ended: bool,
}

/// Lives of each thread id, in the order of time.
type Lives = BTreeMap<u32, Vec<Life>>;

/// Returns the two ids in a text such as `(29204:29206)`.
fn ids(text: &str) -> Option<(u32, u32)> {
    let (process, thread) = text.trim_matches(['(', ')']).split_once(':')?;
    Some((process.parse().ok()?, thread.parse().ok()?))
}

/// Lives that perf prints.
fn printed(folder: &Path, file: &str) -> Lives {
    let arguments = [
        "script",
        "--show-task-events",
        "-F",
        "time,event",
        "-i",
        file,
    ];
    let text = perf::run(&arguments, folder);
    let mut lives = Lives::new();
    for line in text.lines() {
        let Some((time, record)) = line.split_once(": PERF_RECORD_") else {
            continue;
        };
        if let Some(rest) = record.strip_prefix("COMM") {
            let Some((kind, rest)) = rest.split_once(": ") else {
                panic!("{line:?}")
            };
            let (name, ids) = rest.rsplit_once(':').unwrap();
            let (process, thread) = ids.trim().split_once('/').unwrap();
            let life = living(&mut lives, thread.parse().unwrap());
            life.process_id = process.parse().unwrap();
            life.name = Some(name.to_owned());
            if kind == " exec" || life.program.is_none() {
                life.program = life.name.clone();
            }
        } else if let Some((_, rest)) = record.split_once("FORK") {
            let (of, parent) = rest.split_once("):(").unwrap();
            let ((process, thread), (_, parent)) = (ids(of).unwrap(), ids(parent).unwrap());
            // perf writes such records also of threads that existed before. They are not new.
            let is_new = !time.trim().trim_start_matches(['0', '.']).is_empty();
            let parent = lives.get(&parent).and_then(|lives| lives.last());
            let parent = parent.filter(|_| is_new).cloned().unwrap_or_default();
            // A thread that starts while perf looks for the existing ones has two records.
            let life = living(&mut lives, thread);
            life.process_id = process;
            life.name = life.name.take().or(parent.name);
            life.program = life.program.take().or(parent.program);
        } else if let Some((_, rest)) = record.split_once("EXIT") {
            let (process, thread) = ids(rest.split_once("):(").unwrap().0).unwrap();
            let life = living(&mut lives, thread);
            (life.process_id, life.has_ended) = (process, true);
        }
    }
    lives
}

/// Returns the life of a thread that has not ended. Adds it if there is none.
fn living(lives: &mut Lives, thread: u32) -> &mut Life {
    let lives = lives.entry(thread).or_default();
    if lives.last().is_none_or(|life| life.has_ended) {
        lives.push(Life::default());
    }
    lives.last_mut().unwrap()
}

/// Lives in the tables of threads and processes.
fn lives(store: &Store) -> Lives {
    let mut programs: BTreeMap<u32, Vec<Option<String>>> = BTreeMap::new();
    let processes = store.table(Table::Processes, Options::default()).unwrap();
    for group in 0..processes.chunks().len() {
        let batch = processes.read_all(group).unwrap();
        let view = ProcessesView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let of_id = programs.entry(view.process_id[row]).or_default();
            of_id.push(view.image_name.get(row).map(str::to_owned));
        }
    }
    let mut lives = Lives::new();
    let threads = store.table(Table::Threads, Options::default()).unwrap();
    for group in 0..threads.chunks().len() {
        let batch = threads.read_all(group).unwrap();
        let view = ThreadsView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let (thread_id, process_id) = (view.thread_id[row], view.process_id.get(row));
            let of_id = lives.entry(thread_id).or_default();
            let programs = programs
                .get(&thread_id)
                .filter(|_| process_id == Some(thread_id));
            of_id.push(Life {
                process_id: process_id.unwrap_or_default(),
                name: view.name.get(row).map(str::to_owned),
                program: programs.and_then(|programs| programs.get(of_id.len()).cloned()?),
                has_ended: view.end_ns.get(row).is_some(),
            });
        }
    }
    lives
}

/// Compares all lives. Returns their number.
///
/// # Panics
/// Panics if laglab has other threads than perf prints, or other names of threads or processes.
fn compare(folder: &Path, file: &str) -> usize {
    let store = imports::open_store(&[folder.join(file)], Cache::Off).unwrap();
    let (printed, mut found) = (printed(folder, file), lives(&store));
    let mut different = Vec::new();
    for (thread, expected) in &printed {
        let mut expected = expected.clone();
        for life in &mut expected {
            life.program.take_if(|_| life.process_id != *thread);
        }
        let found = found.remove(thread).unwrap_or_default();
        if found != expected && *thread != 0 {
            different.push(format!("{thread}: {found:?}, perf {expected:?}"));
        }
    }
    assert!(
        different.is_empty(),
        "{file}: {} of {}: {:#?}",
        different.len(),
        printed.len(),
        &different[..different.len().min(10)]
    );
    // perf has no such records of threads that it did not find when it began. The events name them.
    let events = perf::run(&["script", "-F", "event,trace", "-i", file], folder);
    for (thread, lives) in found {
        let is_named = events.contains(&format!("pid={thread} "));
        assert!(
            is_named && lives.len() == 1,
            "{file}: perf does not print {thread}: {lives:?}"
        );
    }
    printed.values().map(Vec::len).sum()
}

#[test]
fn names_and_lives_are_those_that_perf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let load = format!("cd {}; {LOAD}", folder.path().display());
    if perf::record(folder.path(), EVENTS, &[], &load).is_none() {
        return;
    }
    let count = compare(folder.path(), "perf.data");
    assert!(count > 600, "{count} lives");
}

#[test]
fn names_and_lives_of_recordings_made_by_hand_are_those_that_perf_prints() {
    let folder = testdata::path("linux");
    let files = std::fs::read_dir(&folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    for name in names.filter(|name| name.ends_with(".data") && !name.starts_with("mut_")) {
        compare(&folder, &name);
    }
}
