//! Tests of invariants that hold for every trace that the model writes. The tests read the traces of random
//! scenarios and compare these traces with the truth.

use std::collections::BTreeMap;
use std::io::Cursor;

use etl::Trace;
use events::kernel::SetPriority;
use serde_json::Value;
use sim::Scenario;
use tables::{Options, Table, Tables};

use crate::random_scenario::Made;

/// Number of random scenarios.
const SCENARIOS: u64 = 150;

/// States of a thread that is switched out, coded as `KTHREAD_STATE`.
const READY: u8 = 1;
const WAITING: u8 = 5;

const IDLE: u32 = 0;

/// Hook id of the event that logs a thread's new priority.
const SET_PRIORITY: u16 = 0x0530;

#[test]
fn every_trace_keeps_to_the_rules() {
    let mut switches = 0;
    let mut broken = Vec::new();
    let scenarios = testdata::rounds(SCENARIOS);
    for number in 0..scenarios {
        let made = Made::new(number);
        let checked = std::panic::catch_unwind(|| {
            let run = Run::new(&made);
            run.check();
            run.turns.iter().map(Vec::len).sum::<usize>()
        });
        match checked {
            Ok(turns) => switches += turns,
            Err(_) => broken.push((number, made.text)),
        }
    }
    if let Some((number, text)) = broken.first() {
        panic!(
            "{} scenarios, see above; number {number} is\n{text}",
            broken.len()
        );
    }
    assert!(
        switches as u64 > 500 * scenarios,
        "only {switches} switches"
    );
}

#[test]
fn the_seed_decides_every_byte() {
    let scenario = read(&Made::new(3).text);
    let (first, again) = (bytes(&scenario, Some(7)), bytes(&scenario, Some(7)));
    assert!(first == again, "the same seed gives other bytes");
    assert!(
        first != bytes(&scenario, Some(8)),
        "another seed gives the same bytes"
    );
}

fn read(text: &str) -> Scenario {
    Scenario::read("made.toml", text, &|_| None, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn bytes(scenario: &Scenario, seed: Option<u64>) -> Vec<u8> {
    let (out, _) = sim::simulate(scenario, seed, Cursor::new(Vec::new()), |_| true)
        .expect("the scenario runs");
    out.into_inner()
}

/// A time range in ns.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: i64,
    to: i64,
}

impl Span {
    fn length(self) -> i64 {
        self.to - self.from
    }

    fn within(self, other: Span) -> Option<Span> {
        let span = Span {
            from: self.from.max(other.from),
            to: self.to.min(other.to),
        };
        (span.from < span.to).then_some(span)
    }
}

/// A turn: a thread that a processor runs from one context switch to the next.
#[derive(Clone, Copy, Debug)]
struct Turn {
    thread: u32,
    cpu: u16,
    span: Span,
    /// State of the thread after the turn; `None` if the trace ends first.
    state: Option<u8>,
}

/// A time range during which a thread was ready, and the processor on which the thread then ran.
#[derive(Clone, Copy, Debug)]
struct Wait {
    thread: u32,
    span: Span,
    cpu: u16,
}

/// A scenario, and the facts that its trace contains.
struct Run<'m> {
    made: &'m Made,
    truth: Value,
    trace: Trace,
    tables: Tables,
    /// Turns of each processor, in order.
    turns: Vec<Vec<Turn>>,
    /// Name of each thread.
    names: BTreeMap<u32, String>,
    /// Changes of priority of each thread: time in ns and new priority.
    priorities: BTreeMap<u32, Vec<(i64, u8)>>,
    /// Service routines and DPCs of each processor in time order. Routines inside other routines are left
    /// out.
    interrupts: Vec<Vec<Span>>,
    suspended: Vec<Span>,
    /// Number of events in the trace.
    events: u64,
    end: i64,
}

impl<'m> Run<'m> {
    fn new(made: &'m Made) -> Run<'m> {
        let scenario = read(&made.text);
        let (out, truth) = sim::simulate(&scenario, None, Cursor::new(Vec::new()), |_| true)
            .expect("the scenario runs");
        let truth = serde_json::to_value(truth).expect("the truth is JSON");
        let trace = Trace::from_sources(vec![("made".into(), Box::new(out.into_inner()))])
            .expect("a trace");
        let tables =
            import_windows::build(&trace, Table::ALL, Options::default()).expect("not cancelled");
        let end = truth["duration_ns"].as_i64().expect("a number");
        let mut run = Run {
            made,
            names: names(&truth),
            truth,
            tables,
            trace,
            turns: vec![Vec::new(); made.cpus],
            priorities: BTreeMap::new(),
            interrupts: vec![Vec::new(); made.cpus],
            suspended: Vec::new(),
            events: 0,
            end,
        };
        run.read_turns();
        run.read_events();
        run.read_interrupts();
        run.read_suspensions();
        run
    }

    /// Converts the context switches of each processor to turns. Checks that each switch switches out the thread that
    /// the previous switch switched in.
    fn read_turns(&mut self) {
        let mut running = vec![(IDLE, 0); self.made.cpus];
        for table in &self.tables.context_switches {
            for row in 0..table.len() {
                let (cpu, time) = (table.cpu[row], table.time_ns[row]);
                let (thread, since) = &mut running[usize::from(cpu)];
                assert_eq!(table.old_thread_id[row], *thread, "CPU {cpu} at {time}");
                assert!(time >= *since, "CPU {cpu} at {time}");
                assert_ne!(
                    table.new_thread_id[row], *thread,
                    "a switch to itself at {time}"
                );
                self.turns[usize::from(cpu)].push(Turn {
                    thread: *thread,
                    cpu,
                    span: Span {
                        from: *since,
                        to: time,
                    },
                    state: Some(table.old_state[row]),
                });
                (*thread, *since) = (table.new_thread_id[row], time);
            }
        }
        for (cpu, (thread, since)) in running.into_iter().enumerate() {
            let span = Span {
                from: since,
                to: self.end,
            };
            self.turns[cpu].push(Turn {
                thread,
                cpu: cpu as u16,
                span,
                state: None,
            });
        }
    }

    fn read_events(&mut self) {
        for (id, name) in &self.names {
            if let Some(thread) = self.made.threads.get(name) {
                self.priorities.insert(*id, vec![(-1, thread.priority)]);
            }
        }
        let mut changes: BTreeMap<u32, Vec<(i64, u8, u8)>> = BTreeMap::new();
        let mut events = self.trace.events();
        while let Some(event) = events.next() {
            self.events += 1;
            if event.hook() != Some(SET_PRIORITY) {
                continue;
            }
            let read = SetPriority::read(event.payload(), event.version().unwrap_or(0), 8);
            let change = read.expect("a readable priority change");
            let thread = change.thread_id;
            if self.priorities.contains_key(&thread) {
                let change = (event.time_ns(), change.old as u8, change.new as u8);
                changes.entry(thread).or_default().push(change);
            }
        }
        for (thread, changes) in changes {
            let known = self.priorities.get_mut(&thread).expect("known");
            // Several processors may log changes at the same moment. The changes are sorted so that each
            // change starts at the priority at which the previous change ended.
            for moment in changes.chunk_by(|a, b| a.0 == b.0) {
                let mut left = moment.to_vec();
                while !left.is_empty() {
                    let now = known.last().expect("not empty").1;
                    let next = left.iter().position(|(_, old, _)| *old == now);
                    let next = next.unwrap_or_else(|| panic!("{thread} has {now} before {left:?}"));
                    let (time, _, new) = left.remove(next);
                    known.push((time, new));
                }
            }
        }
    }

    fn read_interrupts(&mut self) {
        for table in &self.tables.interrupts {
            for row in 0..table.len() {
                let from = table.start_ns.get(row).expect("a start");
                let span = Span {
                    from,
                    to: table.end_ns[row],
                };
                self.interrupts[usize::from(table.cpu[row])].push(span);
            }
        }
        for spans in &mut self.interrupts {
            spans.sort_by_key(|span| (span.from, -span.to));
            let mut outer: Vec<Span> = Vec::new();
            for span in spans.drain(..) {
                match outer.last() {
                    Some(last) if span.from < last.to => {
                        assert!(span.to <= last.to, "{span:?} is half inside {last:?}");
                    }
                    _ => outer.push(span),
                }
            }
            *spans = outer;
        }
    }

    fn read_suspensions(&mut self) {
        let mut since = None;
        for moment in self.truth["moments"].as_array().expect("a list") {
            let at = moment["at_ns"].as_i64().expect("a time");
            match moment["what"].as_str() {
                Some("suspend") => since = Some(at),
                Some("resume") => self.suspended.push(Span {
                    from: since.take().expect("suspended before"),
                    to: at,
                }),
                _ => {}
            }
        }
        let to = self.end;
        self.suspended.extend(since.map(|from| Span { from, to }));
    }

    fn check(&self) {
        self.times_of_each_cpu_rise();
        self.priorities_are_those_of_the_switches();
        self.processor_time_is_conserved();
        self.truth_is_what_the_trace_says();
        for (name, waits) in self.waits() {
            for wait in &waits {
                self.waits_for_no_idle_processor(&name, wait);
                self.waits_for_no_worse_thread(&name, wait);
            }
        }
    }

    fn times_of_each_cpu_rise(&self) {
        for stream in self.trace.streams() {
            let mut reader = stream.reader();
            let mut last = i64::MIN;
            for buffer in stream.buffers() {
                for event in reader.read(buffer) {
                    assert!(event.raw_time() >= last, "CPU {}", stream.cpu());
                    last = event.raw_time();
                }
            }
            assert!(reader.damage().is_empty(), "{:?}", reader.damage());
        }
    }

    /// Checks that each context switch contains the current priority of the new thread.
    fn priorities_are_those_of_the_switches(&self) {
        for table in &self.tables.context_switches {
            for row in 0..table.len() {
                let thread = table.new_thread_id[row];
                if self.priorities.contains_key(&thread) {
                    let time = table.time_ns[row];
                    let said = table.new_priority[row] as u8;
                    let known = &self.priorities[&thread];
                    // The priority may change again at the same moment, so each priority at this moment is
                    // accepted.
                    let before = known.partition_point(|(at, _)| *at < time) - 1;
                    let at_once = known[before..].iter().take_while(|(at, _)| *at <= time);
                    assert!(
                        at_once.into_iter().any(|(_, p)| *p == said),
                        "{thread} at {time}"
                    );
                }
            }
        }
    }

    /// Checks that the time of each processor is the sum of the time of threads, of interrupts, and of
    /// idleness (including the time while the machine is suspended). Turns and interrupts in the trace must
    /// be equal to the turns and interrupts in the truth, except for the unlogged work of clock interrupts.
    /// If a tick is not an integer number of ns, each interval may differ by 1 ns.
    fn processor_time_is_conserved(&self) {
        let whole = 1_000_000_000 % self.made.clock_hz == 0;
        let processors = self.truth["processors"].as_array().expect("a list");
        assert_eq!(processors.len(), self.made.cpus);
        let (mut threads, mut open) = (0, 0);
        for (cpu, said) in processors.iter().enumerate() {
            let ns = |field: &str| said[field].as_i64().expect("a number");
            let interrupted = ns("dpc_ns") + ns("isr_ns");
            let sum = ns("thread_ns") + interrupted + ns("clock_ns") + ns("idle_ns");
            let off = (sum - self.end).abs();
            assert!(
                off <= if whole { 0 } else { 8 },
                "CPU {cpu} is off by {off} ns"
            );

            let turns = self.turns[cpu].iter().filter(|turn| turn.thread != IDLE);
            let run: i64 = turns.map(|turn| self.awake(turn.span)).sum();
            let interrupts = &self.interrupts[cpu];
            let inside: i64 = (self.turns[cpu].iter())
                .filter(|turn| turn.thread != IDLE)
                .flat_map(|turn| overlaps(interrupts, turn.span))
                .map(|span| self.awake(span))
                .sum();
            let all: i64 = interrupts.iter().map(|span| self.awake(*span)).sum();
            let slop = if whole {
                0
            } else {
                (self.turns[cpu].len() + 2 * interrupts.len()) as i64
            };
            // Routines that still run when the trace ends are not logged.
            let cut = interrupted + ns("clock_ns") - all + slop;
            let unlogged = run - inside - ns("thread_ns");
            assert!(
                (-slop..=cut).contains(&unlogged),
                "CPU {cpu}: {unlogged} ns unaccounted for"
            );
            threads += ns("thread_ns");
            open += 1;
        }
        let said: i64 = self
            .list("threads")
            .map(|t| t["cpu_ns"].as_i64().expect("ns"))
            .sum();
        let count = self.list("threads").count() as i64 + open;
        assert!((said - threads).abs() <= if whole { 0 } else { count });
    }

    /// Checks that counts and times in the truth are equal to the counts and times of the trace's events.
    fn truth_is_what_the_trace_says(&self) {
        assert_eq!(self.truth["events"], self.events, "events");
        for said in self.list("threads") {
            let id = said["thread_id"].as_u64().expect("an id") as u32;
            let ins = self.turns.iter().flatten().filter(|turn| turn.thread == id);
            assert_eq!(said["switches_in"], ins.count(), "thread {id}");
        }
        let samples: usize = self.tables.samples.iter().map(|table| table.len()).sum();
        let said: u64 = self
            .list("processes")
            .map(|p| p["samples"].as_u64().expect("a count"))
            .sum();
        assert_eq!(
            self.truth["idle_samples"].as_u64().expect("a count") + said,
            samples as u64
        );

        let (mut count, mut inclusive, mut exclusive, mut longest) = (0, 0, 0, 0);
        for table in &self.tables.interrupts {
            count += table.len() as u64;
            for row in 0..table.len() {
                let duration = table.duration_ns.get(row).expect("a duration");
                inclusive += duration;
                exclusive += table.exclusive_ns.get(row).expect("a duration");
                longest = longest.max(duration);
            }
        }
        let routines = self.truth["windows"][0]["routines"]
            .as_array()
            .expect("a list");
        let whole: Vec<&Value> = routines.iter().filter(|r| r.get("cpu").is_none()).collect();
        let sum = |field: &str| {
            whole
                .iter()
                .map(|r| r[field].as_i64().expect("a number"))
                .sum::<i64>()
        };
        assert_eq!(sum("count"), count as i64);
        assert_eq!(sum("inclusive_ns"), inclusive);
        if 1_000_000_000 % self.made.clock_hz == 0 && self.suspended.is_empty() {
            // Clock interrupts inside routines are not logged, so the trace counts their time as
            // part of the routines.
            let clock: i64 = self
                .list("processors")
                .filter_map(|p| p["clock_ns"].as_i64())
                .sum();
            let unseen = exclusive - sum("exclusive_ns");
            assert!((0..=clock).contains(&unseen), "{unseen} of {clock} ns");
        }
        let said = whole.iter().filter_map(|r| r["max_ns"].as_i64()).max();
        assert_eq!(said.unwrap_or(0), longest);

        let disk = &self.truth["disks"][0];
        let transfers: usize = self.tables.disk_io.iter().map(|table| table.len()).sum();
        let said = disk["reads"].as_u64().zip(disk["writes"].as_u64());
        assert_eq!(
            said.map(|(reads, writes)| reads + writes),
            Some(transfers as u64)
        );
        let faults: usize = self
            .tables
            .hard_faults
            .iter()
            .map(|table| table.len())
            .sum();
        assert_eq!(self.truth["hard_faults"], faults);
    }

    /// Returns for each thread the waits during which it was ready without a processor. Checks three
    /// conditions: the runs of a thread do not overlap; they are on processors of the thread's affinity; and
    /// the thread became ready before each run.
    fn waits(&self) -> BTreeMap<String, Vec<Wait>> {
        let mut runs: BTreeMap<u32, Vec<Turn>> = BTreeMap::new();
        for turn in self
            .turns
            .iter()
            .flatten()
            .filter(|turn| turn.thread != IDLE)
        {
            runs.entry(turn.thread).or_default().push(*turn);
        }
        let mut readied: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for table in &self.tables.ready_threads {
            for row in 0..table.len() {
                readied
                    .entry(table.thread_id[row])
                    .or_default()
                    .push(table.time_ns[row]);
            }
        }
        let mut all = BTreeMap::new();
        for (thread, mut runs) in runs {
            let name = &self.names[&thread];
            let known = &self.made.threads[name];
            // A run without duration may start at the same moment as the next run, on another processor. The sort puts
            // it first.
            runs.sort_by_key(|run| (run.span.from, run.span.to, run.state != Some(READY)));
            let mut readied = readied.remove(&thread).unwrap_or_default();
            readied.sort_unstable();
            let mut readied = readied.into_iter();
            let mut waits = Vec::new();
            let mut before: Option<Turn> = None;
            for run in &runs {
                assert!(
                    known.affinity.contains(&run.cpu),
                    "{name} runs on CPU {}",
                    run.cpu
                );
                let (free, state) = before.map_or((0, Some(WAITING)), |b| (b.span.to, b.state));
                assert!(
                    run.span.from >= free,
                    "{name} runs twice at {}",
                    run.span.from
                );
                let ready = match state {
                    Some(READY) => free,
                    Some(WAITING) => readied.next().expect("a thread is readied before it runs"),
                    other => panic!("{name} runs again after state {other:?}"),
                };
                assert!(
                    (free..=run.span.from).contains(&ready),
                    "{name} is readied at {ready}, out of its wait from {free} to {}",
                    run.span.from
                );
                waits.push(Wait {
                    thread,
                    span: Span {
                        from: ready,
                        to: run.span.from,
                    },
                    cpu: run.cpu,
                });
                before = Some(*run);
            }
            assert!(
                readied.count() <= 1,
                "{name} is readied although it is not waiting"
            );
            all.insert(name.clone(), waits);
        }
        all
    }

    /// Checks that no processor stays idle while a ready thread may use it. The latency of work in progress
    /// is allowed. Threads whose group may be capped are not checked.
    fn waits_for_no_idle_processor(&self, name: &str, wait: &Wait) {
        let thread = &self.made.threads[name];
        if self.may_be_held(name) || wait.span.length() <= self.made.slack_ns {
            return;
        }
        for cpu in &thread.affinity {
            for idle in self
                .turns_in(*cpu, wait.span)
                .filter(|turn| turn.thread == IDLE)
            {
                let both = idle.span.within(wait.span).expect("found by its time");
                self.is_short(
                    &format!("{name} waits for CPU {cpu}, which is idle"),
                    both,
                    &thread.affinity,
                    wait,
                );
            }
        }
    }

    /// Checks that a ready thread does not wait while its ideal processor runs a thread of no better rank and
    /// lower priority. Other processors are not checked, because the dispatcher compares the ready thread
    /// only with the thread of its ideal processor. The test knows only two facts about ranks: the rank is 0
    /// without a group, and it is equal for all threads of a group.
    fn waits_for_no_worse_thread(&self, name: &str, wait: &Wait) {
        let thread = &self.made.threads[name];
        if self.may_be_held(name) || wait.span.length() <= self.made.slack_ns {
            return;
        }
        let ours = &self.priorities[&wait.thread];
        for turn in self
            .turns_in(thread.ideal, wait.span)
            .filter(|turn| turn.thread != IDLE)
        {
            let other = &self.made.threads[&self.names[&turn.thread]];
            if thread.group.is_some() && other.group != thread.group {
                continue;
            }
            let theirs = &self.priorities[&turn.thread];
            let both = turn.span.within(wait.span).expect("found by its time");
            let mut from = both.from;
            while from < both.to {
                let (mine, until) = priority(ours, from);
                let (its, its_until) = priority(theirs, from);
                let to = both.to.min(until).min(its_until);
                if mine > its {
                    let what = format!(
                        "{name} of priority {mine} waits for its ideal CPU {}, which runs {} of \
                         priority {its}",
                        thread.ideal, self.names[&turn.thread]
                    );
                    self.is_short(&what, Span { from, to }, &thread.affinity, wait);
                }
                from = to;
            }
        }
    }

    /// Checks that each part of `span` without interrupts is at most as long as the latency. Interrupts of all
    /// processors in `affinity` count, because a DPC may delay the processor that was chosen for the thread, and
    /// another DPC may delay the processor that was chosen next.
    fn is_short(&self, what: &str, span: Span, affinity: &[u16], wait: &Wait) {
        let mut busy: Vec<Span> = (affinity.iter())
            .flat_map(|cpu| overlaps(&self.interrupts[usize::from(*cpu)], span))
            .chain(
                self.suspended
                    .iter()
                    .filter_map(|asleep| asleep.within(span)),
            )
            .collect();
        busy.push(Span {
            from: span.to,
            to: span.to,
        });
        busy.sort_by_key(|span| span.from);
        let mut free = span.from;
        for busy in busy {
            let left = busy.from - free;
            assert!(
                left <= self.made.slack_ns,
                "{what}, for {left} ns from {free}; it is ready {:?} and then runs on CPU {}",
                wait.span,
                wait.cpu
            );
            free = free.max(busy.to);
        }
    }

    /// Returns true if the cap of a thread's group may prevent it from running.
    fn may_be_held(&self, name: &str) -> bool {
        self.made.threads[name]
            .group
            .is_some_and(|group| self.made.capped[group])
    }

    /// Returns the turns of a processor that overlap a time range.
    fn turns_in(&self, cpu: u16, span: Span) -> impl Iterator<Item = &Turn> {
        let turns = &self.turns[usize::from(cpu)];
        let first = turns.partition_point(|turn| turn.span.to <= span.from);
        turns[first..]
            .iter()
            .take_while(move |turn| turn.span.from < span.to)
            .filter(move |turn| turn.span.within(span).is_some())
    }

    /// Returns the length of a time range in ns, without the time in which the machine slept.
    fn awake(&self, span: Span) -> i64 {
        let asleep = self
            .suspended
            .iter()
            .filter_map(|asleep| asleep.within(span));
        span.length() - asleep.map(Span::length).sum::<i64>()
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.truth[name].as_array().expect("a list").iter()
    }
}

fn names(truth: &Value) -> BTreeMap<u32, String> {
    let threads = truth["threads"].as_array().expect("a list").iter();
    threads
        .map(|thread| {
            let name = thread["name"].as_str().expect("a name");
            (
                thread["thread_id"].as_u64().expect("an id") as u32,
                name.to_owned(),
            )
        })
        .collect()
}

/// Returns the parts of the sorted `spans` that overlap `span`.
fn overlaps(spans: &[Span], span: Span) -> impl Iterator<Item = Span> {
    let first = spans.partition_point(|other| other.to <= span.from);
    spans[first..]
        .iter()
        .take_while(move |other| other.from < span.to)
        .filter_map(move |other| other.within(span))
}

/// Returns the priority at a moment, and the time of the next change.
fn priority(changes: &[(i64, u8)], time: i64) -> (u8, i64) {
    let next = changes.partition_point(|(at, _)| *at <= time);
    let until = changes.get(next).map_or(i64::MAX, |(at, _)| *at);
    (changes[next - 1].1, until)
}
