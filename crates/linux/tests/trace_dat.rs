//! Reads recordings of trace-cmd 3.1.6 (kernel 6.18). The expected values are the output of `trace-cmd report -R -t`
//! and `trace-cmd dump` for these recordings. The output is next to the recordings, in `trace_dat/*.txt`.
//!
//! - `version6.dat`: version 6, not compressed, clock `mono`, with the time of day (`--date`) and a filter;
//! - `stacks.dat`: version 7, Zstandard, clock `boot`, with the kernel's stacks (`-T`);
//! - `lost.dat`: version 7, Zstandard, clock `mono`, with buffers of 8 KiB that overflowed.

use std::collections::BTreeMap;

use linux::{Clock, Damage, Event, EventKind, Fault, FieldValue, GapKind, Recorder, Recording};

const VERSION_6: &[u8] = include_bytes!("trace_dat/version6.dat");
const STACKS: &[u8] = include_bytes!("trace_dat/stacks.dat");
const LOST: &[u8] = include_bytes!("trace_dat/lost.dat");

fn open(bytes: &[u8]) -> Recording {
    Recording::open(Box::new(bytes.to_vec())).unwrap()
}

/// Line of `trace-cmd report -R -t`.
#[derive(Debug)]
struct Printed<'t> {
    thread_id: u32,
    cpu: u32,
    time_ns: u64,
    name: &'t str,
    values: &'t str,
}

/// Reads a line such as `sh-12 [001] 3.000000004: sched_switch: prev_comm=sh …`.
fn printed(line: &str) -> Printed<'_> {
    let at = line.find(" [0").unwrap();
    let (thread, rest) = line.split_at(at);
    let (cpu, rest) = rest[2..].split_once(']').unwrap();
    let (time, rest) = rest.split_once(": ").unwrap();
    let (name, values) = rest.split_once(": ").unwrap();
    Printed {
        thread_id: thread.trim().rsplit_once('-').unwrap().1.parse().unwrap(),
        cpu: cpu.parse().unwrap(),
        time_ns: time.trim().replace('.', "").parse().unwrap(),
        name: name.trim(),
        values: values.trim(),
    }
}

/// Returns the printed value of a field: the text up to the next field.
fn value<'t>(values: &'t str, name: &str, next: Option<&str>) -> &'t str {
    let at = values.find(&format!("{name}=")).unwrap() + name.len() + 1;
    let rest = &values[at..];
    let end = next.and_then(|next| rest.find(&format!(" {next}=")));
    rest[..end.unwrap_or(rest.len())].trim()
}

/// Checks an event. `since_ns` is the time of day, in nanoseconds, at the time 0 of the recording's clock.
fn check(recording: &Recording, event: &Event<'_>, printed: &Printed<'_>, since_ns: u64) {
    let EventKind::Tracepoint {
        attribute,
        tracepoint,
        ..
    } = &event.kind
    else {
        panic!("{event:?}");
    };
    assert_eq!(event.cpu, Some(printed.cpu));
    assert_eq!(event.thread_id, Some(printed.thread_id));
    assert_eq!(
        (event.process_id, tracepoint.thread_id),
        (None, printed.thread_id)
    );
    assert_eq!(event.time_ns.unwrap() + since_ns, printed.time_ns);
    let format = recording
        .format_of(&recording.attributes()[*attribute])
        .unwrap();
    assert_eq!(format.name, printed.name);
    let own = format
        .fields
        .iter()
        .filter(|field| !field.name.starts_with("common_"));
    let fields: Vec<_> = own.collect();
    for (index, field) in fields.iter().enumerate() {
        let next = fields.get(index + 1).map(|field| &*field.name);
        let expected = value(printed.values, &field.name, next);
        // trace-cmd fills some numbers with zeros.
        let digits = expected.trim_start_matches('0');
        let expected = if digits.is_empty() { "0" } else { digits };
        // trace-cmd prints some numbers in hexadecimal.
        let found = match recording.value(field, tracepoint.data).unwrap() {
            FieldValue::Text(text) => vec![String::from_utf8(text.to_vec()).unwrap()],
            FieldValue::Signed(number) => vec![number.to_string()],
            FieldValue::Unsigned(number) | FieldValue::Hexadecimal(number) => {
                vec![
                    number.to_string(),
                    format!("{number:x}"),
                    format!("0x{number:x}"),
                ]
            }
            FieldValue::Bytes(_) => continue,
        };
        assert!(
            found.iter().any(|it| it == expected),
            "{found:?}, {printed:?}"
        );
    }
}

/// Passes all events in time order to `each`. Returns all faults.
fn read(recording: &Recording, mut each: impl FnMut(&Event<'_>)) -> Damage {
    let mut damage = recording.damage().clone();
    let read = recording.read_in_order(0..=u64::MAX, &mut |event| {
        each(event);
        std::ops::ControlFlow::Continue(())
    });
    damage.merge(&read.unwrap());
    damage
}

#[test]
fn version_6_has_the_events_that_trace_cmd_prints() {
    let recording = open(VERSION_6);
    let text = include_str!("trace_dat/version6.txt");
    let mut lines = text.lines().skip(1).map(printed);
    let clock = recording.system().wall_clock.unwrap();
    let damage = read(&recording, |event| {
        let expected = lines.next().expect("an event that trace-cmd prints");
        check(&recording, event, &expected, clock.unix_ns - clock.clock_ns);
    });
    assert!(lines.next().is_none());
    assert_eq!(damage, Damage::default());

    assert_eq!(recording.recorder(), Recorder::TraceCmd);
    assert_eq!(recording.attributes()[0].clock, Clock::Monotonic);
    let system = recording.system();
    let texts = [
        &system.host_name,
        &system.os_release,
        &system.architecture,
        &system.recorder_version,
    ];
    let texts = texts.map(|text| text.as_deref().unwrap());
    assert_eq!(
        texts,
        ["vm", "6.18.44-fc-v595", "x86_64", "3.1.6 not-a-git-repo"]
    );
    assert_eq!(system.cpus_online, Some(2));
}

#[test]
fn events_have_the_stacks_that_trace_cmd_prints_after_them() {
    let recording = open(STACKS);
    let text = include_str!("trace_dat/stacks.txt");
    let mut lines = text.lines().skip(1).map(printed);
    let mut stacks = 0;
    let damage = read(&recording, |event| {
        let expected = lines.next().expect("an event that trace-cmd prints");
        check(&recording, event, &expected, 0);
        let stack = lines.next().unwrap();
        assert_eq!((stack.name, stack.cpu), ("kernel_stack", expected.cpu));
        let size: usize = value(stack.values, "size", Some("caller")).parse().unwrap();
        let bytes = value(stack.values, "caller", None).trim_start_matches("ARRAY[");
        let bytes = bytes.trim_end_matches(']').split(", ");
        let bytes: Vec<u8> = bytes
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        // trace-cmd prints eight addresses. Addresses after the end of the stack are other data.
        let expected = bytes
            .as_chunks()
            .0
            .iter()
            .map(|address| u64::from_le_bytes(*address));
        let expected: Vec<u64> = expected.take(size).collect();
        let found: Vec<u64> = event.chain().unwrap().addresses().collect();
        assert_eq!(
            (found.len(), &found[..expected.len()]),
            (size, &expected[..])
        );
        stacks += 1;
    });
    assert!(lines.next().is_none() && stacks == 7, "{stacks}");
    assert_eq!(damage, Damage::default());
    assert_eq!(recording.attributes()[0].clock, Clock::Boot);
    let symbols = recording.kernel_symbols().unwrap().unwrap();
    assert!(symbols.starts_with(b"ffffffff81000000 T _stext\n"));
}

#[test]
fn threads_and_the_kernel_have_names() {
    let recording = open(STACKS);
    let mut names = BTreeMap::new();
    let mut kernel = None;
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| match &event.kind {
            EventKind::Name { name, .. } => {
                names.insert(event.thread_id.unwrap(), name.clone());
                assert_eq!(event.time_ns, None);
            }
            EventKind::Mapped { address, path, .. } => kernel = Some((*address, path.clone())),
            _ => {}
        });
        assert_eq!(read.unwrap(), Damage::default());
    }
    // In the lines of `trace-cmd report`, the names come before the ids.
    for line in include_str!("trace_dat/stacks.txt").lines().skip(1) {
        let (name, _) = line.split_at(line.find(" [0").unwrap());
        let (name, id) = name.trim().rsplit_once('-').unwrap();
        assert_eq!(
            names.get(&id.parse().unwrap()).map(String::as_str),
            Some(name)
        );
    }
    // The expected address is in the line of `_stext` in /proc/kallsyms.
    assert_eq!(kernel.unwrap().0, 0xFFFF_FFFF_8100_0000);
}

#[test]
fn lost_events_are_counted() {
    let recording = open(LOST);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let damage = read(&recording, |event| {
        let attribute = &recording.attributes()[event.attribute().unwrap()];
        let name = attribute
            .name
            .as_deref()
            .unwrap()
            .split_once(':')
            .unwrap()
            .1;
        *counts.entry(name.to_owned()).or_default() += 1;
    });
    // trace-cmd prints `[69 EVENTS DROPPED]`, `[278 EVENTS DROPPED]` and the expected numbers of events.
    assert_eq!(damage.lost_events, 69 + 278);
    assert_eq!(damage.faults.len(), 0);
    let lost: Vec<GapKind> = damage.gaps.iter().map(|gap| gap.kind).collect();
    assert_eq!(lost, [GapKind::Lost(69), GapKind::Lost(278)]);
    // Each loss is between two consecutive events of its CPU.
    for gap in &damage.gaps {
        let mut times_ns = Vec::new();
        read(&recording, |event| {
            times_ns.extend(event.time_ns.filter(|_| event.cpu == gap.cpu));
        });
        let range = (gap.start_ns.unwrap(), gap.end_ns.unwrap());
        let is_range = |times: &[u64]| (times[0], times[1]) == range && range.0 < range.1;
        assert!(times_ns.windows(2).any(is_range), "{gap:?}");
    }
    let expected = [
        ("irq_work_entry", 13),
        ("irq_work_exit", 13),
        ("local_timer_entry", 20),
        ("local_timer_exit", 20),
        ("reschedule_entry", 9),
        ("reschedule_exit", 9),
        ("sched_switch", 1305),
        ("sched_waking", 657),
    ];
    let found: Vec<(&str, u32)> = counts
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    assert_eq!(found, expected);
}

/// Replaces the first occurrence of `old` by `new`, which has the same length.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(old.len()).position(|it| it == old).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn recordings_that_cannot_be_read_are_refused_with_the_reason() {
    for (bytes, expected) in [
        (VERSION_6[..8].to_vec(), "not a recording"),
        (VERSION_6[..12].to_vec(), "the file is too short"),
        (
            VERSION_6[..4000].to_vec(),
            "descriptions are damaged or cut off",
        ),
        (
            replaced(VERSION_6, b"tracing6", b"tracing8"),
            "version 8, expected 6 or 7",
        ),
        (replaced(STACKS, b"zstd", b"lzma"), "compressed with lzma"),
        (
            replaced(VERSION_6, b"flyrecord\0\0", b"latency  \0\0"),
            "only the text of a trace",
        ),
        (
            replaced(VERSION_6, b"type == 30", b"type == 17"),
            "layout of its ring buffer",
        ),
    ] {
        let error = Recording::open(Box::new(bytes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Replaces the name of the clock at both places.
    let counter = replaced(
        &replaced(VERSION_6, b"[mono]", b"[jiff]"),
        b"[mono]",
        b"[jiff]",
    );
    let error = Recording::open(Box::new(counter)).unwrap_err().to_string();
    assert!(
        error.contains("`jiff` does not count nanoseconds"),
        "{error}"
    );
}

#[test]
fn a_recording_without_an_end_is_read_as_far_as_it_goes() {
    let (mut all, mut some) = (0, 0);
    read(&open(VERSION_6), |_| all += 1);
    // The pages of the second CPU are cut off.
    let cut = open(&VERSION_6[..VERSION_6.len() - 4096]);
    let damage = read(&cut, |_| some += 1);
    assert!(some < all, "{some} of {all}");
    assert!(damage.faults.contains_key(&Fault::CutOff), "{damage:?}");
}

#[test]
fn damaged_recordings_are_read_or_refused() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let (mut refused, mut faults) = (0, 0);
    for round in 0..900 {
        let whole = [VERSION_6, STACKS, LOST][round % 3];
        let mut bytes = whole.to_vec();
        for _ in 0..=next() % 8 {
            let at = (next() % bytes.len() as u64) as usize;
            bytes[at] = [0, 0xFF, 0x80, next() as u8][(next() % 4) as usize];
        }
        if round % 5 == 0 {
            bytes.truncate((next() % bytes.len() as u64) as usize);
        }
        match Recording::open(Box::new(bytes)) {
            Ok(recording) => {
                let mut events = 0_u64;
                let damage = read(&recording, |event| {
                    events += 1 + event.chain().map_or(0, |chain| chain.addresses().count()) as u64;
                });
                let _ = recording.kernel_symbols();
                faults += u64::from(!damage.faults.is_empty());
                assert!(events < 10 * whole.len() as u64);
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(
        refused > 50 && faults > 50,
        "{refused} refused, {faults} with faults"
    );
}
