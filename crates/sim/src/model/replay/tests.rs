//! Tests of replays whose workload is wrong, extreme or hostile.

use super::*;
use crate::model::build_replay;
use crate::replay::{self, Interrupt, Moment, Options, Process, Thread, WorkloadError};

const WAKE: Wake = Wake {
    thread: 0,
    wait: 0,
    boost: 0,
};

/// Returns a workload of a second on one processor.
fn workload(threads: Vec<Thread>) -> Workload {
    Workload {
        duration_ns: 1_000_000_000,
        processes: vec![Process::default()],
        threads,
        ..Workload::default()
    }
}

/// Returns a workload with a thread that runs for 1 µs after an interrupt with these parts.
fn interrupted(parts: Vec<Part>) -> Workload {
    let mut workload = workload(vec![Thread {
        base_priority: 13,
        steps: vec![Step::Wait(Wait::Wake), Step::Run(1_000), Step::Exit],
        ..Thread::default()
    }]);
    workload.interrupts.push(Interrupt {
        at_ns: Some(1_000),
        cpu: 0,
        parts,
    });
    workload
}

fn repeated(steps: Vec<Step>) -> Thread {
    Thread {
        starts_ns: Some(0),
        repeats: true,
        steps,
        ..Thread::default()
    }
}

fn run(workload: Workload) -> Result<ReplayResult, RunError> {
    replay::run(&Arc::new(workload), &Options::default(), |_| true)
}

fn cpu_ns(workload: Workload) -> u64 {
    run(workload).unwrap().threads[0].cpu_ns
}

#[test]
fn many_parts_without_time_need_no_stack() {
    let mut parts = vec![Part::default(); 200_000];
    parts[199_999].wakes.push(WAKE);
    assert_eq!(cpu_ns(interrupted(parts)), 1_000);
}

#[test]
fn service_routines_of_all_vectors_run() {
    for vector in [0, 8, 0x20, 0xFF, 0x1000, u16::MAX] {
        let part = Part {
            kind: PartKind::Isr(vector),
            ns: 1_000,
            wakes: vec![WAKE],
            ..Part::default()
        };
        assert_eq!(cpu_ns(interrupted(vec![part])), 1_000, "{vector}");
    }
}

#[test]
fn the_largest_boost_is_clamped() {
    let wakes = vec![Wake { boost: 127, ..WAKE }];
    let part = Part {
        wakes,
        ..Part::default()
    };
    assert_eq!(cpu_ns(interrupted(vec![part])), 1_000);
}

/// Checks that a wake that repeats has no effect if the wait that it ended does not repeat.
#[test]
fn the_wait_at_the_start_ends_once() {
    let woken = Thread {
        repeats: true,
        steps: vec![
            Step::Wait(Wait::Wake),
            Step::Run(1_000),
            Step::Wait(Wait::Wake),
        ],
        ..Thread::default()
    };
    let waker = repeated(vec![
        Step::Run(1_000),
        Step::Wake(WAKE),
        Step::Wait(Wait::Sleep(10_000_000)),
    ]);
    assert_eq!(cpu_ns(workload(vec![woken, waker])), 1_000);
}

#[test]
fn threads_that_run_far_ahead_stop_the_replay() {
    let ahead = repeated(vec![
        Step::Run(100),
        Step::Wake(Wake {
            thread: 1,
            wait: 1,
            boost: 0,
        }),
    ]);
    let behind = repeated(vec![
        Step::Wait(Wait::Wake),
        Step::Wait(Wait::Wake),
        Step::Run(100),
    ]);
    let error = run(workload(vec![ahead, behind])).unwrap_err().to_string();
    assert!(error.contains("run far ahead"), "{error}");
}

#[test]
fn work_is_limited() {
    let workload = Arc::new(workload(vec![repeated(vec![Step::Run(100)])]));
    let mut model = build_replay(&workload, &Options::default()).unwrap();
    model.recorded.work_left = Some(1_000);
    let error = model.replay(&mut |_| true).unwrap_err().to_string();
    assert!(error.contains("more work than was recorded"), "{error}");
}

#[test]
fn wrong_workloads_are_refused() {
    let check = |change: &dyn Fn(&mut Workload)| {
        let mut workload = interrupted(vec![Part::default()]);
        change(&mut workload);
        workload.check()
    };
    assert_eq!(check(&|_| {}), Ok(()));
    for wait in [Wait::Sleep(1), Wait::After(1), Wait::Disk(0)] {
        let first = check(&|workload| workload.threads[0].steps[0] = Step::Wait(wait));
        assert_eq!(first, Err(WorkloadError::NoStart(0)), "{wait:?}");
    }
    let boost = check(&|workload| {
        workload.interrupts[0].parts[0]
            .wakes
            .push(Wake { boost: 128, ..WAKE });
    });
    assert_eq!(boost, Err(WorkloadError::Boost(128)));
    let long = check(&|workload| workload.duration_ns = (1 << 50) + 1);
    assert_eq!(long, Err(WorkloadError::Time((1 << 50) + 1)));
    let ranked = |cpus: u16| {
        check(&|workload| {
            workload.machine.cpus = cpus;
            workload.processes = vec![Process::default(); 300];
            let moment = |process| Moment {
                at_ns: 0,
                change: Change::Rank(process, 1),
            };
            workload.moments = (0..300).map(moment).collect();
        })
    };
    assert_eq!(ranked(64), Ok(()));
    let (ranks, most) = (300, 256);
    assert_eq!(
        ranked(256),
        Err(WorkloadError::Ranks {
            ranked: ranks,
            most
        })
    );
}

#[test]
fn the_measured_time_is_checked() {
    let workload = Arc::new(interrupted(Vec::new()));
    for range in [5..5, 2_000_000_000..3_000_000_000] {
        let options = Options {
            measured: Some(range),
            ..Options::default()
        };
        let replayed = replay::run(&workload, &options, |_| true);
        assert!(matches!(
            replayed,
            Err(RunError::Workload(WorkloadError::Measured { .. }))
        ));
    }
}
