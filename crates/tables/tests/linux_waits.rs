//! Tests of the kinds of waits of Linux. Each test records a program that waits for an object of each kind and prints for
//! which one.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tables::{Cache, CpuRunsView, Options, Table};
use testdata::perf;

use crate::linux::EVENTS;

/// Program that starts a process for each wait. A wait for another process takes 100 ms. Prints for each wait its kind,
/// the thread, and the address of the futex, or 0.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { TIME = 100000, SIZE = 1 << 20 };
static const char *const path = "pages";
static pthread_mutex_t lock;
static char byte;
static int word = 5;
static volatile int held;
static void *hold(void *unused) { pthread_mutex_lock(&lock); held = 1; usleep(TIME); pthread_mutex_unlock(&lock); return unused; }
static void with_lock(int protocol) {
  pthread_mutexattr_t attributes; pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutex_init(&lock, &attributes);
  pthread_t thread; pthread_create(&thread, 0, hold, 0);
  while (!held) usleep(1000);
  pthread_mutex_lock(&lock);
  _exit(0);
}
static void writes_to(int file) { if (!fork()) { usleep(TIME); write(file, "x", 1); _exit(0); } }
static void sleeps() { usleep(TIME); }
static void locks() { with_lock(PTHREAD_PRIO_NONE); }
static void locks_with_inheritance() { with_lock(PTHREAD_PRIO_INHERIT); }
static void waits_for_a_value() {
  struct timespec time = {0, TIME * 1000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 5, &time);
}
static void reads_a_pipe() { int ends[2]; pipe(ends); writes_to(ends[1]); read(ends[0], &byte, 1); }
static void reads_a_socket() {
  int ends[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  writes_to(ends[1]); read(ends[0], &byte, 1);
}
static void polls() { int ends[2]; pipe(ends); writes_to(ends[1]); struct pollfd file = {ends[0], POLLIN}; poll(&file, 1, -1); }
static void polls_with_epoll() {
  int ends[2]; pipe(ends); writes_to(ends[1]);
  struct epoll_event event = {EPOLLIN}; int queue = epoll_create1(0);
  epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event);
  epoll_wait(queue, &event, 1, -1);
}
static void waits_for_a_child() { if (!fork()) { usleep(TIME); _exit(0); } wait(0); }
static void stops() { pid_t me = getpid(); if (!fork()) { usleep(TIME); kill(me, SIGCONT); _exit(0); } raise(SIGSTOP); }
static void waits_for_a_signal() {
  sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, 0);
  struct timespec time = {0, TIME * 1000};
  sigtimedwait(&set, 0, &time);
}
static void locks_a_file() {
  int ends[2]; pipe(ends);
  if (!fork()) { flock(open(path, O_RDWR), LOCK_EX); write(ends[1], "x", 1); usleep(TIME); _exit(0); }
  read(ends[0], &byte, 1);
  flock(open(path, O_RDWR), LOCK_EX);
}
static void writes_to_a_disk() {
  void *memory = aligned_alloc(4096, SIZE);
  int file = open("written", O_RDWR | O_CREAT | O_DIRECT, 0600);
  for (int i = 0; i < 20; i++) { pwrite(file, memory, SIZE, 0); fsync(file); }
}
static void maps_a_file() {
  int file = open(path, O_RDWR);
  for (int i = 0; i < 20; i++) {
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    char *memory = mmap(0, SIZE, PROT_READ, MAP_SHARED, file, 0);
    madvise(memory, SIZE, MADV_RANDOM);
    for (int page = 0; page < SIZE; page += 4096) byte += memory[page];
    munmap(memory, SIZE);
  }
}
static void run(const char *kind, void (*wait_of_kind)(), void *object) {
  pid_t process = fork();
  if (!process) { wait_of_kind(); _exit(0); }
  printf("%s %d %lu\n", kind, process, (unsigned long)object);
  fflush(stdout);
  waitpid(process, 0, 0);
}
int main() {
  void *memory = calloc(1, SIZE);
  int file = open(path, O_RDWR | O_CREAT, 0600); write(file, memory, SIZE); fsync(file);
  run("sleep", sleeps, 0);
  run("lock", locks, &lock);
  run("lock", locks_with_inheritance, &lock);
  run("lock", locks_a_file, 0);
  run("futex", waits_for_a_value, &word);
  run("message", reads_a_pipe, 0);
  run("message", reads_a_socket, 0);
  run("message", polls, 0);
  run("message", polls_with_epoll, 0);
  run("child", waits_for_a_child, 0);
  run("stopped", stops, 0);
  run("unknown", waits_for_a_signal, 0);
  run("disk", writes_to_a_disk, 0);
  run("page", maps_a_file, 0);
}
"#;

/// Waits of a thread: their length in nanoseconds, kind and object.
type Waits = Vec<(i64, Option<String>, Option<u64>)>;

/// Printed wait: its kind, the thread and the object, if it has one.
type Printed = (String, u32, Option<u64>);

/// Records the program. `symbols` are those of the kernel. Returns the printed waits, and all waits of each thread in the
/// tables.
fn recorded(
    folder: &Path,
    symbols: &str,
    events: &str,
    options: &[&str],
) -> Option<(Vec<Printed>, BTreeMap<u32, Waits>)> {
    fs::write(folder.join("waits.c"), WAITS).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-w", "-pthread", "-o", "waits", "waits.c"]);
    assert!(cc.current_dir(folder).status().unwrap().success(), "cc");
    let file = perf::record(folder, events, options, "./waits > waits.txt")?;
    fs::write(folder.join("perf.data.proc"), symbols).unwrap();
    let printed = fs::read_to_string(folder.join("waits.txt")).unwrap();
    let printed = printed.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let (kind, thread) = (word().to_owned(), word().parse().unwrap());
        (
            kind,
            thread,
            Some(word().parse().unwrap()).filter(|object| *object != 0),
        )
    });
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let runs = store.table(Table::CpuRuns, Options::default()).unwrap();
    let mut waits: BTreeMap<u32, Waits> = BTreeMap::new();
    for group in 0..runs.chunks().len() {
        let batch = runs.read_all(group).unwrap();
        let view = CpuRunsView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let of_thread = waits.entry(view.thread_id[row]).or_default();
            let kind = view.wait_kind.get(row).map(str::to_owned);
            if view.previous_state.get(row) == Some(5) {
                let waited = view.waits_ns.get(row).unwrap_or(0);
                of_thread.push((waited, kind, view.wait_object.get(row)));
            } else {
                assert_eq!(kind, None);
            }
        }
    }
    Some((printed.collect(), waits))
}

/// Time in nanoseconds that no other wait of the program takes on a machine that is not busy.
const LONG_NS: i64 = 30_000_000;

/// Maximum number of recordings until each wait was shown as expected in one of them. On a busy machine, a thread may lose
/// its CPU between a call and its wait, or a wait may be short because it began late.
const TRIES: usize = 8;

/// Kind of a wait, and its object.
type Shown<'s> = (Option<&'s str>, Option<u64>);

/// Records the program. Each thread must have a wait with the kind and object that `expected` returns for its printed wait.
fn check(events: &str, options: &[&str], expected: impl Fn(&Printed) -> Option<Shown<'_>>) {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    check_with(&symbols, events, options, expected);
}

/// Does the same as [`check`], with these symbols of the kernel.
fn check_with(
    symbols: &str,
    events: &str,
    options: &[&str],
    expected: impl Fn(&Printed) -> Option<Shown<'_>>,
) {
    let mut wrong: BTreeMap<usize, String> = (0..14).map(|wait| (wait, String::new())).collect();
    for _ in 0..TRIES {
        let folder = tempfile::tempdir().unwrap();
        let Some((printed, waits)) = recorded(folder.path(), symbols, events, options) else {
            return;
        };
        assert_eq!(printed.len(), 14);
        for (number, printed) in printed.iter().enumerate() {
            let Some(expected) = expected(printed) else {
                wrong.remove(&number);
                continue;
            };
            let (kind, thread, _) = printed;
            let of_thread = &waits[thread];
            let long_ns = match &**kind {
                "disk" | "page" => 0,
                _ => LONG_NS,
            };
            let mut long = of_thread.iter().filter(|it| it.0 >= long_ns);
            if long.any(|(_, shown, object)| (shown.as_deref(), *object) == expected) {
                wrong.remove(&number);
            } else if let Some(wrong) = wrong.get_mut(&number) {
                *wrong = format!("{expected:x?}: {of_thread:x?}");
            }
        }
        if wrong.is_empty() {
            return;
        }
    }
    panic!("{wrong:#?}");
}

#[test]
fn call_chains_and_calls_show_what_a_thread_waited_for() {
    let events = format!("{EVENTS},syscalls:sys_enter_futex");
    check(&events, &["-g"], |(kind, _, object)| {
        Some((Some(&**kind).filter(|kind| *kind != "unknown"), *object))
    });
}

#[test]
fn calls_show_for_which_futex_a_thread_waited() {
    let events = format!("{EVENTS},syscalls:sys_enter_futex");
    check(&events, &[], |(kind, _, object)| match &**kind {
        "lock" | "futex" if object.is_some() => Some((Some(kind), *object)),
        "stopped" => Some((Some(kind), None)),
        // Their waits are short, as are other waits.
        "disk" | "page" => None,
        _ => Some((None, None)),
    });
}

#[test]
fn without_calls_it_is_unknown_whether_a_futex_is_a_lock() {
    check(EVENTS, &["-g"], |(.., object)| {
        object.is_some().then_some((Some("futex"), None))
    });
}

#[test]
fn symbols_of_a_kernel_at_another_address_show_nothing() {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    // A kernel is loaded at another address after each boot.
    let moved = symbols.lines().filter_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some(format!("{:x} {rest}\n", address.wrapping_add(0x20_0000)))
    });
    let moved: String = moved.collect();
    check_with(&moved, EVENTS, &["-g"], |(kind, ..)| match &**kind {
        "disk" | "page" => None,
        "stopped" => Some((Some("stopped"), None)),
        _ => Some((None, None)),
    });
}
