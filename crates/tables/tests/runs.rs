//! Tests of runs. The tests write logs that contain each kind of event that can occur between two runs of a
//! thread.

use std::io::Cursor;

use etl::write::{KernelEvent, Session, Writer};
use etl::{Trace, mode};
use tables::{CpuRuns, Options, Table, Tables};

/// State of a thread that was switched out but is ready to run.
const READY: u8 = 1;
/// State of a thread that was switched out because it waits.
const WAITING: u8 = 5;

/// Writer of a trace with a 10 MHz clock that starts at 0. One tick is 100 ns.
struct Log(Writer<Cursor<Vec<u8>>>);

/// Context switch with the old thread, the state of the old thread, and the new thread.
struct Switch {
    cpu: u16,
    at: i64,
    old: u32,
    state: u8,
    new: u32,
}

impl Log {
    fn new() -> Log {
        Log::with_mode(mode::SEQUENTIAL)
    }

    fn with_mode(mode: u32) -> Log {
        let session = Session {
            processors: 2,
            mode,
            os_version: (10, 0),
            ..Session::default()
        };
        Log(Writer::new(Cursor::default(), session).unwrap())
    }

    fn kernel(&mut self, cpu: u16, time: i64, hook: u16, version: u8, payload: &[u8]) -> &mut Self {
        let event = KernelEvent {
            hook,
            version,
            time,
            thread: None,
        };
        self.0.kernel(cpu, event, payload).unwrap();
        self
    }

    /// Adds a context switch of version 4. The new thread has priority 9. The old thread has priority 8. The
    /// rank or C-state is 2. The remaining quantum is 7 units of 1024 CPU cycles.
    fn switch(&mut self, switch: Switch) -> &mut Self {
        let Switch {
            cpu,
            at,
            old,
            state,
            new,
        } = switch;
        let mut payload = [new.to_le_bytes(), old.to_le_bytes()].concat();
        payload.extend([9, 8, 2, 0, 6, 0, state, 1]);
        payload.extend(3u32.to_le_bytes());
        payload.extend(7i32.to_le_bytes());
        self.kernel(cpu, at, 0x0524, 4, &payload)
    }

    fn ready(&mut self, cpu: u16, at: i64, thread: u32, by_dpc: bool) -> &mut Self {
        let mut payload = thread.to_le_bytes().to_vec();
        payload.extend([1, 2, u8::from(by_dpc), 0]);
        self.kernel(cpu, at, 0x0532, 2, &payload)
    }

    /// Adds a sample of the profile timer.
    fn sample(&mut self, cpu: u16, at: i64, thread: u32) -> &mut Self {
        let mut payload = 0x1000_u64.to_le_bytes().to_vec();
        payload.extend(thread.to_le_bytes());
        payload.extend([1, 0, 0, 0]);
        self.kernel(cpu, at, 0x0F2E, 2, &payload)
    }

    fn thread(&mut self, at: i64, process: u32, thread: u32) -> &mut Self {
        let mut payload = [process.to_le_bytes(), thread.to_le_bytes()].concat();
        payload.extend([0; 56]);
        payload.extend([0; 8]);
        payload.extend([0; 2]);
        self.kernel(0, at, 0x0503, 3, &payload)
    }

    fn runs(self) -> CpuRuns {
        let bytes = self.0.finish().unwrap().into_inner();
        let trace = Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap();
        let tables: Tables = import_windows::build(&trace, Table::ALL, Options::default()).unwrap();
        assert_eq!(tables.unreadable, []);
        tables.cpu_runs
    }
}

/// Returns the row of a run. The run belongs to the thread `thread` and starts at the tick `tick`.
fn run(runs: &CpuRuns, thread: u32, tick: i64) -> usize {
    let is = |row: &usize| runs.thread_id[*row] == thread && runs.start_ns[*row] == tick * 100;
    (0..runs.len()).find(is).expect("the run")
}

#[test]
fn a_wait_is_split_where_the_thread_became_ready() {
    let mut log = Log::new();
    log.thread(0, 77, 7).thread(0, 88, 8);
    let switch = |at, old, state, new| Switch {
        cpu: 0,
        at,
        old,
        state,
        new,
    };
    log.switch(switch(100, 0, 2, 7))
        .switch(switch(200, 7, WAITING, 0))
        .switch(switch(600, 0, 2, 8))
        // While thread 8 runs on the CPU, two events of this CPU make thread 7 ready. The second event
        // counts.
        .ready(0, 700, 7, true)
        .ready(0, 750, 7, false)
        .switch(switch(900, 8, WAITING, 7))
        .switch(switch(950, 7, WAITING, 0));
    let runs = log.runs();
    let row = run(&runs, 7, 900);
    assert_eq!(runs.process_id.get(row), Some(77));
    assert_eq!(runs.previous_out_ns.get(row), Some(20_000));
    assert_eq!(runs.readied_ns.get(row), Some(75_000));
    assert_eq!(runs.ready_ns.get(row), Some(15_000));
    assert_eq!(runs.waits_ns.get(row), Some(55_000));
    assert_eq!(runs.since_last_ns.get(row), Some(70_000));
    assert_eq!(runs.readying_thread_id.get(row), Some(8));
    assert_eq!(runs.readying_process_id.get(row), Some(88));
    assert_eq!(runs.readied_by_dpc.get(row), Some(false));
    assert_eq!(runs.adjust_increment.get(row), Some(2));
    assert_eq!(runs.previous_thread_id.get(row), Some(8));
    assert_eq!(runs.cpu_ns[row], 5_000);
    assert_eq!(
        (runs.priority.get(row), runs.priority_out.get(row)),
        (Some(9), Some(8))
    );
    // If a normal thread is switched out, byte 10 of the event is a rank. If the idle thread is switched out,
    // byte 10 is a C-state.
    assert_eq!(runs.rank_out.get(row), Some(2));
    assert_eq!(runs.previous_c_state.get(row), None);
    assert_eq!(runs.previous_c_state.get(run(&runs, 8, 600)), Some(2));
    assert_eq!(runs.rank_out.get(run(&runs, 0, 200)), None);
    assert_eq!(runs.remaining_quantum_out.get(row), Some(7));
    assert_eq!(runs.previous_wait_reason.get(row), Some(6));
    assert_eq!(runs.state_out.get(row), Some(WAITING));
}

#[test]
fn who_lost_the_cpu_without_waiting_was_ready_all_the_time() {
    let mut log = Log::new();
    for (at, old, state, new) in [
        (100, 0, 2, 7),
        (200, 7, READY, 8),
        (500, 8, WAITING, 7),
        (600, 7, WAITING, 0),
    ] {
        log.switch(Switch {
            cpu: 0,
            at,
            old,
            state,
            new,
        });
    }
    let runs = log.runs();
    let row = run(&runs, 7, 500);
    assert_eq!(runs.ready_ns.get(row), Some(30_000));
    assert_eq!(runs.waits_ns.get(row), Some(0));
    assert_eq!(runs.readied_ns.get(row), None);
    assert_eq!(runs.readying_thread_id.get(row), None);
}

#[test]
fn a_wait_that_no_event_ends_is_not_ready_time() {
    let mut log = Log::new();
    for (at, old, state, new) in [
        (100, 0, 2, 7),
        (200, 7, WAITING, 0),
        (500, 0, 2, 7),
        (600, 7, WAITING, 0),
    ] {
        log.switch(Switch {
            cpu: 0,
            at,
            old,
            state,
            new,
        });
    }
    let runs = log.runs();
    let row = run(&runs, 7, 500);
    assert_eq!(runs.since_last_ns.get(row), Some(30_000));
    assert_eq!(
        (runs.ready_ns.get(row), runs.waits_ns.get(row)),
        (None, None)
    );
}

#[test]
fn a_thread_may_be_readied_before_it_has_left() {
    let mut log = Log::new();
    // Thread 7 runs on CPU 0 until tick 200. At tick 190, CPU 1 ends the wait of thread 7. At this time, the
    // wait has not started yet.
    log.switch(Switch {
        cpu: 0,
        at: 100,
        old: 0,
        state: 2,
        new: 7,
    });
    log.switch(Switch {
        cpu: 0,
        at: 200,
        old: 7,
        state: WAITING,
        new: 0,
    });
    log.switch(Switch {
        cpu: 0,
        at: 260,
        old: 0,
        state: 2,
        new: 7,
    });
    log.switch(Switch {
        cpu: 0,
        at: 300,
        old: 7,
        state: WAITING,
        new: 0,
    });
    log.switch(Switch {
        cpu: 1,
        at: 150,
        old: 0,
        state: 2,
        new: 8,
    });
    log.ready(1, 190, 7, false);
    log.switch(Switch {
        cpu: 1,
        at: 400,
        old: 8,
        state: WAITING,
        new: 0,
    });
    let runs = log.runs();
    let row = run(&runs, 7, 260);
    assert_eq!(runs.readied_ns.get(row), Some(19_000));
    assert_eq!(runs.waits_ns.get(row), Some(0));
    assert_eq!(runs.ready_ns.get(row), Some(6_000));
    // The ready event does not belong to the run during which it was logged.
    assert_eq!(runs.readied_ns.get(run(&runs, 7, 100)), None);
}

fn switch(cpu: u16, at: i64, old: u32, state: u8, new: u32) -> Switch {
    Switch {
        cpu,
        at,
        old,
        state,
        new,
    }
}

/// Tests a context switch and a ready event of one CPU at the same time. They count in the order in which
/// they were logged.
#[test]
fn at_equal_times_the_order_of_a_cpus_events_decides() {
    let by = |runs: &CpuRuns| runs.readying_thread_id.get(run(runs, 9, 700));
    for (first, expected) in [(true, Some(8)), (false, Some(7))] {
        let mut log = Log::new();
        log.thread(0, 77, 7).thread(0, 88, 8).thread(0, 99, 9);
        log.switch(switch(0, 100, 0, 2, 7))
            .switch(switch(1, 100, 0, 2, 9))
            .switch(switch(1, 200, 9, WAITING, 0));
        if first {
            log.switch(switch(0, 600, 7, WAITING, 8));
        }
        log.ready(0, 600, 9, false);
        if !first {
            log.switch(switch(0, 600, 7, WAITING, 8));
        }
        log.switch(switch(1, 700, 0, 2, 9))
            .switch(switch(1, 800, 9, WAITING, 0))
            .switch(switch(0, 900, 8, WAITING, 0));
        assert_eq!(by(&log.runs()), expected);
    }
    // Thread 7 is switched in on one CPU. At the same time, another CPU makes it ready. The ready event
    // counts as earlier.
    let mut log = Log::new();
    log.switch(switch(0, 100, 0, 2, 7))
        .switch(switch(1, 100, 0, 2, 9))
        .switch(switch(1, 200, 9, WAITING, 0))
        .switch(switch(1, 700, 0, 2, 9))
        .ready(0, 700, 9, false)
        .switch(switch(1, 800, 9, WAITING, 0));
    let runs = log.runs();
    let row = run(&runs, 9, 700);
    assert_eq!(by(&runs), Some(7));
    assert_eq!(runs.ready_ns.get(row), Some(0));
}

/// Tests a thread that is switched in on a CPU and makes another thread ready, both at the time at which another CPU made
/// the thread itself ready.
#[test]
fn a_thread_that_readies_another_one_at_once_was_readied_before() {
    // In the second log, the thread waits again before the other CPU's event is processed.
    for readies_again in [false, true] {
        let mut log = Log::new();
        log.switch(switch(1, 100, 0, 2, 7))
            .switch(switch(0, 100, 0, 2, 9))
            .switch(switch(0, 200, 9, WAITING, 0))
            .switch(switch(0, 700, 0, 2, 9))
            .ready(0, 700, 5, false)
            .switch(switch(0, 700, 9, WAITING, 5));
        if readies_again {
            log.ready(0, 700, 6, false);
        }
        log.ready(1, 700, 9, false)
            .switch(switch(0, 900, 5, WAITING, 9))
            .switch(switch(0, 950, 9, WAITING, 0));
        let runs = log.runs();
        let of_run = |at| {
            let row = run(&runs, 9, at);
            (runs.readying_thread_id.get(row), runs.ready_ns.get(row))
        };
        assert_eq!(of_run(700), (Some(7), Some(0)));
        assert_eq!(of_run(900), (None, None));
    }
}

#[test]
fn runs_at_the_ends_are_cut() {
    let mut log = Log::new();
    // The list of threads can be older than the first context switch. In this log, context switches start at
    // tick 50.
    log.thread(20, 77, 7);
    log.switch(Switch {
        cpu: 1,
        at: 50,
        old: 0,
        state: 2,
        new: 9,
    });
    log.switch(Switch {
        cpu: 0,
        at: 100,
        old: 7,
        state: WAITING,
        new: 8,
    });
    log.kernel(1, 1000, 0x0F22, 0, b"mark\0");
    let runs = log.runs();
    assert_eq!(runs.len(), 4);
    let first = run(&runs, 7, 50);
    assert_eq!(
        (runs.starts_at_switch[first], runs.ends_at_switch[first]),
        (false, true)
    );
    assert_eq!(runs.cpu_ns[first], 5_000);
    assert_eq!(runs.priority.get(first), None);
    assert_eq!(runs.ready_ns.get(first), None);
    let last = run(&runs, 8, 100);
    assert_eq!(
        (runs.starts_at_switch[last], runs.ends_at_switch[last]),
        (true, false)
    );
    assert_eq!(runs.end_ns[last], 100_000);
    assert_eq!(
        (runs.priority.get(last), runs.priority_out.get(last)),
        (Some(9), None)
    );
}

/// One second in ticks.
const SECOND: i64 = 10_000_000;

#[test]
fn samples_limit_runs_without_a_switch_at_an_end() {
    let mut log = Log::new();
    log.switch(switch(1, 100, 0, 2, 9))
        .sample(0, SECOND, 7)
        .switch(switch(0, 2 * SECOND, 7, WAITING, 8))
        .sample(0, 3 * SECOND, 8)
        .switch(switch(1, 4 * SECOND, 9, WAITING, 0))
        .kernel(0, 5 * SECOND, 0x0F22, 0, b"mark\0");
    let runs = log.runs();
    let times = |thread, start| {
        let row = run(&runs, thread, start);
        (runs.end_ns[row] / 100, runs.ends_at_switch[row])
    };
    // The first sample of the CPU shows thread 7, and the last one thread 8.
    assert_eq!(times(7, SECOND), (2 * SECOND, true));
    assert_eq!(times(8, 2 * SECOND), (3 * SECOND, false));
    // Switches at both ends need no sample, and idle threads have none.
    assert_eq!(times(9, 100), (4 * SECOND, true));
    assert_eq!(times(0, 4 * SECOND), (5 * SECOND, false));
}

#[test]
fn the_end_of_a_recording_shows_a_run_but_the_end_of_a_part_does_not() {
    for (mode, cpu_ticks) in [
        (mode::SEQUENTIAL, 2 * SECOND),
        (mode::SEQUENTIAL | mode::RELOG, 0),
    ] {
        let mut log = Log::with_mode(mode);
        log.switch(switch(0, SECOND, 7, WAITING, 8))
            .kernel(0, 3 * SECOND, 0x0F22, 0, b"mark\0");
        let runs = log.runs();
        let open = run(&runs, 8, SECOND);
        assert_eq!(runs.cpu_ns[open], cpu_ticks * 100, "{mode:#x}");
    }
}

#[test]
fn who_really_ran_is_told_by_the_switch_that_ends_the_run() {
    let mut log = Log::new();
    log.switch(Switch {
        cpu: 0,
        at: 100,
        old: 8,
        state: WAITING,
        new: 0,
    });
    log.switch(Switch {
        cpu: 1,
        at: 150,
        old: 9,
        state: WAITING,
        new: 0,
    });
    // The context switch at tick 200 names thread 7 as its new thread, but thread 8 ran instead.
    log.ready(0, 180, 7, false).ready(0, 190, 8, false);
    log.switch(Switch {
        cpu: 0,
        at: 200,
        old: 0,
        state: 2,
        new: 7,
    });
    log.switch(Switch {
        cpu: 0,
        at: 300,
        old: 8,
        state: WAITING,
        new: 0,
    });
    log.switch(Switch {
        cpu: 1,
        at: 400,
        old: 0,
        state: 2,
        new: 7,
    });
    log.switch(Switch {
        cpu: 1,
        at: 500,
        old: 7,
        state: WAITING,
        new: 0,
    });
    let runs = log.runs();
    let row = run(&runs, 8, 200);
    assert_eq!(runs.planned_thread_id.get(row), Some(7));
    // The switch has the priority of thread 7, but thread 8 ran. So the priority of thread 8 is unknown. The other
    // values come from the ready event and the last switch-out of thread 8.
    assert_eq!(runs.priority.get(row), None);
    assert_eq!(runs.ready_ns.get(row), Some(1_000));
    assert_eq!(runs.previous_out_ns.get(row), Some(10_000));
    // Thread 7 counts as ready until it really ran. The trace may lack an earlier run of thread 7.
    let row = run(&runs, 7, 400);
    assert_eq!(runs.ready_ns.get(row), Some(22_000));
    assert_eq!(runs.planned_thread_id.get(row), None);
    assert!(runs.ran_unseen[row]);
    assert!(!runs.ran_unseen[run(&runs, 8, 200)]);
}

#[test]
fn rows_are_sorted_by_their_end_over_all_cpus() {
    let mut log = Log::new();
    for at in (100..2000).step_by(10) {
        let cpu = u16::from(at % 20 == 0);
        let (old, new) = if at % 40 < 20 { (7, 0) } else { (0, 7) };
        let thread = |id: u32| if id == 0 { 0 } else { id + u32::from(cpu) };
        log.switch(Switch {
            cpu,
            at,
            old: thread(old),
            state: WAITING,
            new: thread(new),
        });
    }
    let runs = log.runs();
    assert!(runs.end_ns.is_sorted());
    for cpu in 0..2 {
        let own: Vec<usize> = (0..runs.len())
            .filter(|row| runs.cpu[*row] == cpu)
            .collect();
        let apart = |pair: &[usize]| runs.end_ns[pair[0]] == runs.start_ns[pair[1]];
        assert!(own.windows(2).all(apart), "runs of a CPU follow each other");
    }
}
