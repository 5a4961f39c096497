//! Reads texts of events. `text/version6.txt` and `text/lost.txt` are the output of `trace-cmd report` (3.1.6) for the
//! recordings in `trace_dat`, the latter up to its line 440. So each text must have the events of its recording.
//! `text/kernel.txt` is the start of `/sys/kernel/tracing/trace` of kernel 6.18, with the options `stacktrace` and
//! `record-tgid`.

use std::ops::ControlFlow;

use linux::{Event, EventKind, GapKind, Meaning, Recorder, Recording};

fn open(bytes: &[u8]) -> Recording {
    Recording::open(Box::new(bytes.to_vec())).unwrap()
}

/// Fields of an event. `meaning` is its text, because an interrupt of the machine has the id of its tracepoint, which a text
/// does not contain.
#[derive(Debug, PartialEq)]
struct Comparable {
    time_ns: u64,
    cpu: Option<u32>,
    thread_id: Option<u32>,
    name: String,
    meaning: String,
    chain: Vec<u64>,
}

/// Returns all events in time order.
fn events(recording: &Recording) -> Vec<Comparable> {
    let mut events = Vec::new();
    let mut each = |event: &Event<'_>| {
        let attribute = &recording.attributes()[event.attribute().unwrap()];
        let meaning = match &event.kind {
            EventKind::Tracepoint { tracepoint, .. } => match tracepoint.meaning {
                Meaning::VectorEntry { name, .. } => name.to_owned(),
                meaning => format!("{meaning:?}"),
            },
            kind => format!("{kind:?}"),
        };
        events.push(Comparable {
            time_ns: event.time_ns.unwrap(),
            cpu: event.cpu,
            thread_id: event.thread_id,
            name: attribute.known_name(),
            meaning,
            chain: event.chain().unwrap().addresses().collect(),
        });
        ControlFlow::Continue(())
    };
    let damage = recording.read_in_order(0..=u64::MAX, &mut each).unwrap();
    assert!(damage.faults.is_empty(), "{damage:?}");
    events
}

/// Checks that a text has the first events of a recording. `since_ns` is added to the times of the recording. A time of the
/// text is rounded to microseconds, and events with the same printed time are one nanosecond apart.
fn check(text: &Recording, recording: &Recording, since_ns: u64) {
    let (found, mut expected) = (events(text), events(recording));
    assert!(!found.is_empty() && found.len() <= expected.len());
    for (found, expected) in found.into_iter().zip(&mut expected) {
        expected.time_ns += since_ns;
        assert!(
            found.time_ns.abs_diff(expected.time_ns) <= 600,
            "{found:?} {expected:?}"
        );
        expected.time_ns = found.time_ns;
        assert_eq!(found, *expected);
    }
}

#[test]
fn a_report_of_trace_cmd_has_the_events_of_the_recording() {
    let text = open(include_bytes!("text/version6.txt"));
    let recording = open(include_bytes!("trace_dat/version6.dat"));
    let clock = recording.system().wall_clock.unwrap();
    check(&text, &recording, clock.unix_ns - clock.clock_ns);
    assert_eq!(events(&text).len(), events(&recording).len());
    assert_eq!(text.recorder(), Recorder::Text);
    assert_eq!(text.system().cpus_online, Some(2));
    assert!(text.damage().faults.is_empty());
}

#[test]
fn losses_in_a_report_of_trace_cmd_are_those_of_the_recording() {
    let text = open(include_bytes!("text/lost.txt"));
    let recording = open(include_bytes!("trace_dat/lost.dat"));
    check(&text, &recording, 0);
    let gaps = |recording: &Recording| -> Vec<(GapKind, Option<u32>, u64, u64)> {
        let gaps = recording.damage().gaps.iter().take(2);
        gaps.map(|gap| {
            let (start, end) = (gap.start_ns.unwrap(), gap.end_ns.unwrap());
            (gap.kind, gap.cpu, (start + 500) / 1000, (end + 500) / 1000)
        })
        .collect()
    };
    assert_eq!(gaps(&text), gaps(&recording));
    assert_eq!(text.damage().lost_events, 69 + 278);
}

#[test]
fn call_chains_of_the_kernel_have_the_printed_functions() {
    let text = open(include_bytes!("text/kernel.txt"));
    let symbols = text.kernel_symbols().unwrap().unwrap();
    let symbols = String::from_utf8(symbols).unwrap();
    let name = |address: &u64| {
        let line = symbols
            .lines()
            .find(|line| line.starts_with(&format!("{address:x} t ")));
        line.unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    let events = events(&text);
    let softirq = events
        .iter()
        .find(|event| event.name == "irq:softirq_entry" && !event.chain.is_empty());
    let softirq = softirq.unwrap();
    // The lines of the stack follow those of other CPUs.
    assert_eq!(
        (softirq.time_ns, softirq.cpu, softirq.thread_id),
        (27_512_556_291_000, Some(0), Some(20769))
    );
    let names: Vec<String> = softirq.chain.iter().take(4).map(name).collect();
    assert_eq!(
        names,
        [
            "trace_event_raw_event_softirq",
            "handle_softirqs",
            "__irq_exit_rcu",
            "sysvec_apic_timer_interrupt"
        ]
    );
    assert!(text.damage().faults.is_empty());
}

#[test]
fn events_of_one_microsecond_keep_the_order_of_their_lines() {
    let text = "a-1 [000] ..... 1.000001: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
                b-2 [001] ..... 1.000001: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> \
                next_comm=b next_pid=2 next_prio=120\n\
                a-1 [000] ..... 1.000002: cpu_idle: state=1 cpu_id=0\n";
    let times: Vec<_> = events(&open(text.as_bytes()))
        .iter()
        .map(|event| event.time_ns)
        .collect();
    assert_eq!(times, [1_000_001_000, 1_000_001_001, 1_000_002_000]);
}

#[test]
fn wakes_between_the_start_and_the_end_of_an_interrupt_are_in_it() {
    let waking = "sched_waking: comm=b pid=2 prio=120 target_cpu=001";
    let text = format!(
        "a-1 [000] 1.000001: {waking}\n\
         a-1 [000] 1.000002: irq_handler_entry: irq=36 name=disk\n\
         a-1 [001] 1.000003: {waking}\n\
         a-1 [000] 1.000004: {waking}\n\
         a-1 [000] 1.000005: irq_handler_exit: irq=36 ret=handled\n\
         a-1 [000] 1.000006: {waking}\n"
    );
    let mut wakes = Vec::new();
    let recording = open(text.as_bytes());
    let mut each = |event: &Event<'_>| {
        if let EventKind::Tracepoint { tracepoint, .. } = &event.kind
            && let Meaning::Waking(_) = tracepoint.meaning
        {
            wakes.push(tracepoint.in_interrupt);
        }
        ControlFlow::Continue(())
    };
    recording.read_in_order(0..=u64::MAX, &mut each).unwrap();
    assert_eq!(wakes, [false, false, true, false]);
}

#[test]
fn unreadable_lines_are_damage_with_their_place() {
    let text = "a-1 [000] 1.000001: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
                no event\n\
                a-1 [000] 1.000002: sched_waking: comm=b pid=2\n";
    let recording = open(text.as_bytes());
    assert_eq!(events(&recording).len(), 1);
    let faults = &recording.damage().faults[&linux::Fault::Line];
    assert_eq!(
        (faults.count, faults.offset),
        (2, text.find("no event").unwrap() as u64)
    );
}

#[test]
fn losses_after_the_last_event_and_forged_numbers_are_counted() {
    let event = "a-1 [001] 18446744073.709551615: <stack trace>\n\
                 a-1 [000] 18446744073.709551615: cpu_idle: state=1\n";
    let chain = "a-1 [000] 18446744073.709551615: <stack trace>\n => f+0xffffffffffffffff/0x1\n";
    let text = format!("{event}{event}{chain}CPU:1 [LOST 7 EVENTS]\n");
    assert_eq!(open(text.as_bytes()).damage().lost_events, 7);
    let forged = format!(
        "{event}CPU:1 [LOST {0} EVENTS]\nCPU:2 [LOST {0} EVENTS]\n",
        u64::MAX
    );
    assert_eq!(open(forged.as_bytes()).damage().lost_events, u64::MAX);
}

#[test]
fn a_text_without_events_is_an_error() {
    let error = Recording::open(Box::new(b"# tracer: nop\n#\n".to_vec())).unwrap_err();
    assert!(error.to_string().contains("no line of an event"), "{error}");
    // Times of clocks that count no nanoseconds have no point.
    let error = Recording::open(Box::new(
        b"# tracer: nop\na-1 [000] ..... 123: cpu_idle: state=1\n".to_vec(),
    ));
    assert!(error.is_err());
    assert!(!linux::is_recording(&b"a,b\n1,2\n".to_vec()).unwrap());
}
