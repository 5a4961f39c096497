//! Helpers that run scenarios in memory and read their traces.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;

use etl::Trace;
use serde_json::Value;
use sim::shipped;
use sim::{Override, Scenario};
use tables::{Options, Table, Tables};

/// Wait reason `WrQuantumEnd` of context switches.
pub(crate) const QUANTUM_END: u8 = 30;
/// State of a thread that is switched out but ready to run.
pub(crate) const READY: u8 = 1;
/// State of a thread that is switched out to wait.
pub(crate) const WAITING: u8 = 5;

/// A completed run of a scenario, and its trace.
pub(crate) struct Run {
    /// Truth of the run, as JSON.
    pub(crate) truth: Value,
    /// Bytes of the trace.
    pub(crate) bytes: Vec<u8>,
    /// Opened trace.
    pub(crate) trace: Trace,
    /// Tables of the trace.
    pub(crate) tables: Tables,
}

/// Runs a shipped scenario with the given seed, or with the scenario's seed if `seed` is `None`.
pub(crate) fn run(name: &str, seed: Option<u64>) -> Run {
    run_with(name, seed, &[])
}

/// Runs a shipped scenario with overrides.
pub(crate) fn run_with(name: &str, seed: Option<u64>, settings: &[&str]) -> Run {
    let text = shipped::text(name).expect("a scenario that ships");
    run_text(name, text, seed, settings)
}

/// Runs the scenario in a text, with overrides.
pub(crate) fn run_text(name: &str, text: &str, seed: Option<u64>, settings: &[&str]) -> Run {
    let named = |name: &str| shipped::text(name).map(str::to_owned);
    let settings: Vec<_> = (settings.iter())
        .map(|setting| Override::parse(setting).expect("a setting"))
        .collect();
    let scenario = Scenario::read(name, text, &named, &settings).expect("a scenario");
    let out = Cursor::new(Vec::new());
    let (out, truth) = sim::simulate(&scenario, seed, out, |_| true).expect("it runs");
    let bytes = out.into_inner();
    let source = Box::new(bytes.clone());
    let trace = Trace::from_sources(vec![(name.into(), source)]).expect("a trace");
    let tables =
        import_windows::build(&trace, Table::ALL, Options::default()).expect("not cancelled");
    assert!(tables.unreadable.is_empty(), "{:?}", tables.unreadable);
    Run {
        truth: serde_json::to_value(truth).expect("truth is JSON"),
        bytes,
        trace,
        tables,
    }
}

/// A run of a thread: the time from the context switch to the thread until the next context switch on this
/// processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) cpu: u16,
    pub(crate) thread: u32,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) priority: i8,
    /// State of the thread at the end of the run; `None` if the run continues at the trace's end.
    pub(crate) end: Option<End>,
}

/// State of a thread at the end of a run, from the context switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) state: u8,
    pub(crate) reason: u8,
    pub(crate) rank: Option<u8>,
    pub(crate) remaining_quantum: Option<i32>,
}

/// Wait of a ready thread for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyWait {
    pub(crate) readied: i64,
    pub(crate) ran: i64,
}

impl ReadyWait {
    pub(crate) fn length(&self) -> i64 {
        self.ran - self.readied
    }
}

impl Run {
    pub(crate) fn duration(&self) -> i64 {
        number(&self.truth["duration_ns"])
    }

    /// Returns the runs of all threads, including idle threads, from the context switches of each
    /// processor.
    pub(crate) fn stays(&self) -> Vec<Stay> {
        let mut stays = Vec::new();
        for switches in &self.tables.context_switches {
            let mut present: Option<Stay> = None;
            for row in 0..switches.len() {
                let time = switches.time_ns[row];
                let mut old = present.unwrap_or(Stay {
                    cpu: switches.cpu[row],
                    thread: switches.old_thread_id[row],
                    from: 0,
                    to: 0,
                    priority: switches.old_priority[row],
                    end: None,
                });
                assert_eq!(old.thread, switches.old_thread_id[row], "at {time} ns");
                old.to = time;
                old.end = Some(End {
                    state: switches.old_state[row],
                    reason: switches.old_wait_reason.get(row).unwrap(),
                    rank: switches.old_rank.get(row),
                    remaining_quantum: switches.old_remaining_quantum.get(row),
                });
                stays.push(old);
                present = Some(Stay {
                    thread: switches.new_thread_id[row],
                    from: time,
                    to: self.duration(),
                    priority: switches.new_priority[row],
                    end: None,
                    ..old
                });
            }
            stays.extend(present);
        }
        stays.sort_by_key(|stay| stay.from);
        stays
    }

    /// Returns a thread's waits for a processor. Before each switch-in, the thread became ready either by an
    /// event or by a switch-out in the ready state. So the n-th switch-in belongs to the n-th moment at which
    /// the thread became ready.
    pub(crate) fn ready_waits(&self, thread: u32, stays: &[Stay]) -> Vec<ReadyWait> {
        let own = || stays.iter().filter(|stay| stay.thread == thread);
        let mut ready: Vec<i64> = own()
            .filter(|stay| stay.end.is_some_and(|end| end.state == READY))
            .map(|stay| stay.to)
            .collect();
        for readies in &self.tables.ready_threads {
            let rows = 0..readies.len();
            ready.extend(
                rows.filter(|row| readies.thread_id[*row] == thread)
                    .map(|row| readies.time_ns[row]),
            );
        }
        ready.sort_unstable();
        own()
            .zip(ready)
            .map(|(stay, readied)| ReadyWait {
                readied,
                ran: stay.from,
            })
            .collect()
    }

    /// Returns the process id of each thread id.
    pub(crate) fn process_of_threads(&self) -> HashMap<u32, u32> {
        let threads = &self.tables.threads;
        let pairs = threads.thread_id.iter().zip(threads.process_id.iter());
        let idle = (0, 0);
        pairs
            .filter_map(|(t, p)| Some((*t, p?)))
            .chain([idle])
            .collect()
    }

    /// Returns the id of the thread with this name.
    pub(crate) fn thread(&self, name: &str) -> u32 {
        let threads = list(&self.truth["threads"]);
        let thread = threads.iter().find(|thread| thread["name"] == name);
        number(&thread.expect("a thread")["thread_id"]) as u32
    }

    /// Returns the ids of the processes with this name.
    pub(crate) fn processes(&self, name: &str) -> Vec<u32> {
        let named = |process: &&Value| process["name"] == name;
        list(&self.truth["processes"])
            .iter()
            .filter(named)
            .map(|process| number(&process["id"]) as u32)
            .collect()
    }

    /// Returns the section of the truth about the watched thread of the process with this name.
    pub(crate) fn watched(&self, process: &str) -> &Value {
        list(&self.truth["watched_threads"])
            .iter()
            .find(|watched| watched["process"]["name"] == process)
            .expect("a watched thread")
    }

    /// Returns the section of the truth about the time range with this name.
    pub(crate) fn window(&self, name: &str) -> &Value {
        list(&self.truth["windows"])
            .iter()
            .find(|window| window["name"] == name)
            .expect("a window")
    }

    /// Returns the processor time in ns that threads used in a time range of the truth. If `process` is
    /// `None`, all processes count.
    pub(crate) fn window_cpu(&self, window: &str, process: Option<&str>) -> i64 {
        list(&self.window(window)["process_cpu_ns"])
            .iter()
            .filter(|of| process.is_none_or(|name| of["name"] == name))
            .map(|of| number(&of["cpu_ns"]))
            .sum()
    }

    /// Returns the moments of a kind: the time in seconds and the name of the process.
    pub(crate) fn moments(&self, what: &str) -> Vec<(f64, &str)> {
        list(&self.truth["moments"])
            .iter()
            .filter(|moment| moment["what"] == what)
            .map(|moment| {
                let process = moment["process"]["name"].as_str().unwrap_or("");
                (number(&moment["at_ns"]) as f64 / 1e9, process)
            })
            .collect()
    }

    /// Returns the `module!function` that contains a kernel address, from the images of the trace
    /// and the functions of the truth.
    pub(crate) fn kernel_function(&self, address: u64) -> Option<String> {
        let images = &self.tables.images;
        let row = (0..images.len()).find(|row| {
            let base = images.base_address[*row];
            (base..base + images.size_bytes[*row]).contains(&address)
        })?;
        let path = images.nt_path.get(row)?;
        let rva = address - images.base_address[row];
        let modules = list(&self.truth["modules"]);
        let module = modules.iter().find(|module| module["path"] == path)?;
        let function = list(&module["functions"]).iter().find(|function| {
            let start = number(&function["rva"]) as u64;
            (start..start + number(&function["size"]) as u64).contains(&rva)
        })?;
        let file = path.rsplit('\\').next()?;
        Some(format!("{file}!{}", function["name"].as_str()?))
    }

    /// Returns the number of events of a manifest provider, by event id.
    pub(crate) fn manifest_events(&self, provider: &str) -> BTreeMap<u16, u64> {
        let mut counts = BTreeMap::new();
        let mut events = self.trace.events();
        while let Some(event) = events.next() {
            if let (Some(of), Some(descriptor)) = (event.guid(), event.descriptor())
                && of.to_string() == provider
            {
                *counts.entry(descriptor.id).or_default() += 1;
            }
        }
        counts
    }
}

/// Returns a value of the truth as an integer.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

/// Returns a value of the truth as a list.
pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// Compares a trace with its truth. The following must be equal: the switches and samples of each thread, the
/// routines, and the waits, ranks and priorities of watched threads. Processor time may differ by the
/// unlogged handling of the clock.
pub(crate) fn assert_trace_tells_the_truth(run: &Run) {
    let faults = run.trace.damage().faults();
    assert!(faults.is_empty(), "{faults:?}");
    let stays = run.stays();
    assert_switches_and_samples_agree(run, &stays);
    assert_routines_agree(run);
    assert_watched_threads_agree(run, &stays);
    assert_processor_time_agrees(run, &stays);
    assert_runs_agree(run, &stays);
}

/// Checks that the table of CPU runs has the runs that follow from the context switches, and the ready waits
/// of watched threads.
fn assert_runs_agree(run: &Run, stays: &[Stay]) {
    let runs = &run.tables.cpu_runs;
    // At time 0, a switch cannot be distinguished from a run that began before the trace.
    let switched = |row: &usize| runs.starts_at_switch[*row] && runs.start_ns[*row] > 0;
    let mut found: Vec<_> = (0..runs.len())
        .filter(switched)
        .map(|row| (runs.start_ns[row], runs.cpu[row], runs.thread_id[row]))
        .collect();
    let mut expected: Vec<_> = stays
        .iter()
        .filter(|stay| stay.from > 0)
        .map(|stay| (stay.from, stay.cpu, stay.thread))
        .collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let processes = run.process_of_threads();
    for row in 0..runs.len() {
        let process = processes[&runs.thread_id[row]];
        assert_eq!(runs.process_id.get(row), Some(process));
    }
    for watched in list(&run.truth["watched_threads"]) {
        let id = number(&watched["thread_id"]) as u32;
        let rows = || (0..runs.len()).filter(|row| runs.thread_id[*row] == id);
        let ready = || rows().filter_map(|row| runs.ready_ns.get(row));
        assert_eq!(ready().count() as i64, number(&watched["ready_waits"]));
        assert_eq!(ready().sum::<i64>(), number(&watched["ready_ns"]));
        for wait in list(&watched["longest_ready_waits"]) {
            let (ran, length) = (number(&wait["ran_ns"]), number(&wait["ready_ns"]));
            let row = rows()
                .find(|row| runs.start_ns[*row] == ran)
                .expect("it ran");
            assert_eq!(runs.ready_ns.get(row), Some(length));
            assert_eq!(
                runs.priority.get(row).map(i64::from),
                wait["priority"].as_i64()
            );
        }
    }
}

fn assert_switches_and_samples_agree(run: &Run, stays: &[Stay]) {
    let mut switches: HashMap<u32, i64> = HashMap::new();
    for stay in stays.iter().filter(|stay| stay.from > 0 || stay.thread > 0) {
        *switches.entry(stay.thread).or_default() += 1;
    }
    for thread in list(&run.truth["threads"]) {
        let id = number(&thread["thread_id"]) as u32;
        let found = switches.get(&id).copied().unwrap_or(0);
        assert_eq!(found, number(&thread["switches_in"]), "{thread}");
    }
    let processes = run.process_of_threads();
    let mut samples: HashMap<u32, i64> = HashMap::new();
    let rows = run.tables.samples.iter().flat_map(|of| &of.thread_id);
    for thread in rows {
        *samples.entry(processes[thread]).or_default() += 1;
    }
    for process in list(&run.truth["processes"]).iter().skip(1) {
        let id = number(&process["id"]) as u32;
        let found = samples.get(&id).copied().unwrap_or(0);
        assert_eq!(found, number(&process["samples"]), "{process}");
    }
    let idle = samples.get(&0).copied().unwrap_or(0);
    assert_eq!(idle, number(&run.truth["idle_samples"]));
}

/// Checks that the routines in the trace are equal to the routines in the truth. The clock's unlogged work inside a
/// routine may cause small differences.
fn assert_routines_agree(run: &Run) {
    // Count, inclusive nanoseconds, exclusive nanoseconds (without nested routines), and number of
    // pieces.
    type Sums = BTreeMap<String, (i64, i64, i64, i64)>;
    let mut found = Sums::new();
    for rows in &run.tables.interrupts {
        for row in 0..rows.len() {
            let kind = match tables::Named::name(rows.kind.0[row]) {
                "msi" => "isr",
                kind => kind,
            };
            let sums = found.entry(kind.to_owned()).or_default();
            sums.0 += 1;
            sums.1 += rows.duration_ns.get(row).expect("known");
            sums.2 += rows.exclusive_ns.get(row).expect("known");
            sums.3 += i64::from(rows.fragments.get(row).expect("known"));
        }
    }
    let mut expected = Sums::new();
    let routines = list(&run.window("trace")["routines"]);
    for routine in routines.iter().filter(|routine| routine["cpu"].is_null()) {
        let kind = routine["kind"].as_str().expect("a kind");
        let sums = expected.entry(kind.to_owned()).or_default();
        sums.0 += number(&routine["count"]);
        sums.1 += number(&routine["inclusive_ns"]);
        sums.2 += number(&routine["exclusive_ns"]);
        sums.3 += number(&routine["fragments"]);
    }
    let clock: i64 = (list(&run.truth["processors"]).iter())
        .map(|cpu| number(&cpu["clock_ns"]))
        .sum();
    assert!(found.keys().eq(expected.keys()));
    for ((kind, found), expected) in found.iter().zip(expected.values()) {
        assert_eq!((found.0, found.1), (expected.0, expected.1), "{kind}");
        assert_eq!(found.3, expected.3, "pieces of {kind}");
        assert!((0..=clock).contains(&(found.2 - expected.2)), "{kind}");
    }
}

fn assert_watched_threads_agree(run: &Run, stays: &[Stay]) {
    for watched in list(&run.truth["watched_threads"]) {
        let id = number(&watched["thread_id"]) as u32;
        let mut waits = run.ready_waits(id, stays);
        assert_eq!(waits.len() as i64, number(&watched["ready_waits"]));
        let total: i64 = waits.iter().map(ReadyWait::length).sum();
        assert_eq!(total, number(&watched["ready_ns"]), "{watched}");
        waits.sort_by_key(|wait| (std::cmp::Reverse(wait.length()), wait.readied));
        for (wait, expected) in waits.iter().zip(list(&watched["longest_ready_waits"])) {
            assert_eq!(wait.readied, number(&expected["readied_ns"]));
            assert_eq!(wait.ran, number(&expected["ran_ns"]));
        }
        let mut ranks: BTreeMap<String, i64> = BTreeMap::new();
        let own = stays.iter().filter(|stay| stay.thread == id);
        for end in own.filter_map(|stay| stay.end) {
            *ranks.entry(end.rank.unwrap().to_string()).or_default() += 1;
        }
        assert_eq!(serde_json::json!(ranks), watched["ranks_at_switch_out"]);
    }
}

/// Checks the processor time of threads on each processor, without the routines that interrupt
/// them. The trace may exceed the model by at most the time of clock interrupts, which are not
/// logged.
fn assert_processor_time_agrees(run: &Run, stays: &[Stay]) {
    for expected in list(&run.truth["processors"]) {
        let cpu = number(&expected["cpu"]) as u16;
        let clock = number(&expected["clock_ns"]);
        let sum: i64 = ["thread_ns", "dpc_ns", "isr_ns", "idle_ns"]
            .iter()
            .map(|part| number(&expected[*part]))
            .sum();
        assert_eq!(sum + clock, run.duration(), "processor {cpu}");
        let own: Vec<&Stay> = stays.iter().filter(|stay| stay.cpu == cpu).collect();
        let busy: i64 = (own.iter().filter(|stay| stay.thread != 0))
            .map(|stay| stay.to - stay.from)
            .sum();
        let mut interrupted = 0;
        let rows = run
            .tables
            .interrupts
            .iter()
            .filter(|of| of.cpu.first() == Some(&cpu));
        for rows in rows {
            for row in 0..rows.len() {
                let at = own.partition_point(|stay| stay.from < rows.end_ns[row]);
                if at > 0 && own[at - 1].thread != 0 {
                    interrupted += rows.exclusive_ns.get(row).expect("known");
                }
            }
        }
        let more = busy - interrupted - number(&expected["thread_ns"]);
        assert!(
            (0..=clock).contains(&more),
            "processor {cpu}: {more} of {clock} ns"
        );
    }
}
