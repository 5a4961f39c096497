//! Explanations of waits for locks: convoys, and priority inversion with and without inheritance. The program that
//! waits measures the truth.

use std::path::Path;

use explain::{Explanation, Value};

use super::recorded::{
    BUSY, EVENTS, compiled, explain_all, first_about_thread, is_near, numbers, recorded_with, says,
    with_all_events,
};

/// Program whose threads take turns with a lock and hold it for 25 ms. Prints for each thread its id, the sum of its
/// waits of 20 ms or longer for the lock, in nanoseconds, and their number.
const CONVOY: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long now(int clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void *work(void *unused) {
  long long waited = 0, times = 0;
  for (int i = 0; i < 10; i++) {
    long long start = now(CLOCK_MONOTONIC);
    pthread_mutex_lock(&lock);
    long long took = now(CLOCK_MONOTONIC) - start;
    if (took >= 20000000) { waited += took; times++; }
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + 25000000;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end);
    pthread_mutex_unlock(&lock);
    sched_yield();
  }
  printf("%ld %lld %lld\n", syscall(SYS_gettid), waited, times);
  return unused;
}
int main(void) {
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) pthread_create(threads + i, 0, work, 0);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
}
"#;

/// Program with three real-time threads on CPU 0. The thread of priority 10 holds a lock for 150 ms of CPU time, that
/// of priority 30 waits for it, and then that of priority 20 computes for 300 ms. With an argument, the lock has
/// priority inheritance. Prints the id of the thread that waits, and the time until it had the lock, in nanoseconds.
const INVERSION: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock;
static volatile int held, go, placed;
static long long now(int clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void burn(long long ns) { long long end = now(CLOCK_THREAD_CPUTIME_ID) + ns; while (now(CLOCK_THREAD_CPUTIME_ID) < end); }
static void place(int priority) {
  cpu_set_t cpus; CPU_ZERO(&cpus); CPU_SET(0, &cpus); sched_setaffinity(0, sizeof cpus, &cpus);
  struct sched_param param = {priority};
  if (sched_setscheduler(0, SCHED_FIFO, &param)) exit(1);
  usleep(1000);
  __sync_fetch_and_add(&placed, 1);
  while (placed < 3) usleep(500);
}
static void *low(void *unused) { place(10); pthread_mutex_lock(&lock); held = 1; burn(150000000); pthread_mutex_unlock(&lock); return unused; }
static void *middle(void *unused) { place(20); while (!go) usleep(500); burn(300000000); return unused; }
static void *high(void *unused) {
  place(30);
  while (!held) usleep(500);
  usleep(5000);
  long long start = now(CLOCK_MONOTONIC);
  go = 1;
  pthread_mutex_lock(&lock);
  printf("%ld %lld\n", syscall(SYS_gettid), now(CLOCK_MONOTONIC) - start);
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(int count, char **arguments) {
  pthread_mutexattr_t attributes; pthread_mutexattr_init(&attributes);
  if (count > 1) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&lock, &attributes);
  void *(*work[])(void *) = {high, middle, low};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(threads + i, 0, work[i], 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
"#;

#[test]
pub(super) fn threads_of_a_convoy_hand_a_lock_over() {
    with_all_events(|folder| {
        compiled(folder.path(), "convoy", CONVOY);
        let events = format!("{EVENTS},syscalls:sys_enter_futex");
        let script = format!("{BUSY}; nice -n -20 ./convoy > convoy.txt; kill $B");
        let Some(recording) = recorded_with(folder.path(), &events, &[], &script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let threads = numbers(folder.path(), "convoy.txt");
        let longest = threads.iter().max_by_key(|thread| thread[1]).unwrap();
        let first = first_about_thread(&explanation, longest[0]);
        says(
            first,
            "lock-convoy",
            "waited for each other, probably for a lock (futex 0x",
        );
        // A thread that always finds the lock free is not counted. So the number of threads is not checked.
        assert!(
            first.sentence.contains("threads of convoy"),
            "{}",
            first.sentence
        );
        // The delay excludes the time in which the holder of the lock got no CPU. The program cannot measure this time.
        // So the sum of all waits is compared instead of the delay.
        let by_thread = first
            .evidence
            .iter()
            .find(|it| it.title == "Waits by thread");
        for row in &by_thread.unwrap().rows {
            let [
                Some(Value::Integer(id)),
                _,
                Some(Value::Integer(waited_ns)),
                _,
            ] = row[..]
            else {
                panic!("{row:?}");
            };
            let own = threads.iter().find(|thread| thread[0] == id).unwrap();
            is_near(waited_ns, own[1], own[2] as usize);
        }
    });
}

/// Records the program `INVERSION` and explains it. Returns the explanation, the id of the thread that waits, and the
/// time until it had the lock, in nanoseconds.
fn inversion(folder: &Path, events: &str, option: &str) -> Option<(Explanation, i64, i64)> {
    compiled(folder, "inversion", INVERSION);
    let events = format!("{EVENTS},{events}");
    let script = format!("./inversion {option} > inversion.txt");
    let recording = recorded_with(folder, &events, &[], &script)?;
    let [id, waited_ns] = numbers(folder, "inversion.txt")[0][..] else {
        panic!("inversion.txt");
    };
    Some((explain_all(&recording), id, waited_ns))
}

#[test]
pub(super) fn a_lock_without_inheritance_inverts_priorities() {
    // The first recording has the calls that wait for locks. The second recording lacks them.
    for events in ["syscalls:sys_enter_futex", "sched:sched_pi_setprio"] {
        with_all_events(|folder| {
            let Some((explanation, id, waited_ns)) = inversion(folder.path(), events, "") else {
                return;
            };
            let first = first_about_thread(&explanation, id);
            says(
                first,
                "priority-inversion",
                "real-time priority 30, waited 1 time for a lock",
            );
            says(
                first,
                "priority-inversion",
                "real-time priority 10, held it",
            );
            says(first, "priority-inversion", "a priority inversion");
            assert!(
                first.remedies[0]
                    .to_string()
                    .contains("PTHREAD_PRIO_INHERIT")
            );
            assert!(waited_ns > 400_000_000, "{waited_ns} ns: not inverted");
            is_near(first.delay_ns(), waited_ns, 1);
        });
    }
}

#[test]
pub(super) fn a_lock_with_inheritance_is_held_for_long() {
    with_all_events(|folder| {
        let events = "syscalls:sys_enter_futex,sched:sched_pi_setprio";
        let Some((explanation, id, waited_ns)) = inversion(folder.path(), events, "inherit") else {
            return;
        };
        let first = first_about_thread(&explanation, id);
        says(
            first,
            "priority-inversion",
            "real-time priority 10, held it",
        );
        says(
            first,
            "priority-inversion",
            "The kernel gave the holder real-time priority 30",
        );
        assert!(
            !first.sentence.contains("a priority inversion"),
            "{}",
            first.sentence
        );
        assert!(waited_ns < 200_000_000, "{waited_ns} ns: inverted");
        is_near(first.delay_ns(), waited_ns, 1);
    });
}
