//! Tests that each stack is joined with exactly the event to which it belongs.

use std::collections::HashMap;
use std::fs::File;
use std::io::Cursor;

use etl::Trace;
use etl::write::{KernelEvent, Session, Writer};
use events::kernel::{Stack, StackDefinition, StackReference};
use files::{FileSource, Source};
use tables::{Options, Table, Tables};

const KERNEL: u64 = 0xFFFF_F800_0000_0000;

fn tables(trace: &Trace) -> Tables {
    let tables = import_windows::build(trace, Table::ALL, Options::default()).unwrap();
    assert_eq!(tables.unreadable, []);
    tables
}

/// Events in any order. Each has a CPU, a time, a hook and a payload.
#[derive(Default)]
struct Log(Vec<(u16, i64, u16, Vec<u8>)>);

impl Log {
    fn new() -> Log {
        Log::default()
    }

    fn event(&mut self, cpu: u16, time: i64, hook: u16, payload: &[&[u8]]) {
        self.0.push((cpu, time, hook, payload.concat()));
    }

    fn sample(&mut self, cpu: u16, time: i64, thread: u32) {
        let ip = 0x1000u64.to_le_bytes();
        self.event(
            cpu,
            time,
            0x0F2E,
            &[&ip, &thread.to_le_bytes(), &[1, 0, 0, 0]],
        );
    }

    /// Adds a stack event. The event contains addresses, or it refers to a stack by its key.
    fn stack(&mut self, cpu: u16, time: i64, hook: u16, of: (i64, u32), words: &[u64]) {
        let head = [
            &of.0.to_le_bytes()[..],
            &9u32.to_le_bytes(),
            &of.1.to_le_bytes(),
        ]
        .concat();
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.event(cpu, time, hook, &[&head, &words]);
    }

    fn definition(&mut self, time: i64, hook: u16, key: u64, addresses: &[u64]) {
        let words: Vec<u8> = addresses
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        self.event(0, time, hook, &[&key.to_le_bytes(), &words]);
    }

    fn tables(mut self) -> Tables {
        let session = Session {
            processors: 2,
            os_version: (10, 0),
            ..Session::default()
        };
        let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
        self.0.sort_by_key(|(_, time, ..)| *time);
        for (cpu, time, hook, payload) in &self.0 {
            let event = KernelEvent {
                hook: *hook,
                version: 2,
                time: *time,
                thread: None,
            };
            writer.kernel(*cpu, event, payload).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        tables(&Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap())
    }
}

/// Returns the stack of each sample, ordered by time.
fn of_samples(tables: &Tables) -> Vec<(i64, Option<Vec<u64>>)> {
    let mut found = Vec::new();
    for samples in &tables.samples {
        for row in 0..samples.len() {
            let stack = samples.stack_id.get(row);
            let addresses = stack.map(|id| tables.stacks.addresses.get(id as usize).to_vec());
            found.push((samples.time_ns[row], addresses));
        }
    }
    found.sort();
    found
}

#[test]
fn halves_are_joined_kernel_first() {
    let mut log = Log::new();
    log.sample(0, 100, 7);
    log.sample(1, 100, 8);
    log.sample(0, 200, 7);
    // The user half of this stack is logged first and on another CPU.
    log.stack(1, 110, 0x1820, (100, 7), &[0x51, 0x52]);
    log.stack(0, 120, 0x1820, (100, 7), &[KERNEL + 1, KERNEL + 2]);
    // One stack event contains both halves.
    log.stack(1, 130, 0x1820, (100, 8), &[KERNEL + 3, 0x61]);
    // Two stacks match no sample. The first stack has the time of a sample but another thread. The second
    // stack has the thread of a sample but another time.
    log.stack(1, 240, 0x1820, (200, 8), &[0x71]);
    log.stack(1, 250, 0x1820, (201, 7), &[0x72]);
    let tables = log.tables();
    let found = of_samples(&tables);
    assert_eq!(found[0].1, Some(vec![KERNEL + 1, KERNEL + 2, 0x51, 0x52]));
    assert_eq!(found[1].1, Some(vec![KERNEL + 3, 0x61]));
    assert_eq!(found[2], (20_000, None));
}

#[test]
fn a_key_means_its_next_definition() {
    let mut log = Log::new();
    for (time, of) in [(100, 7), (300, 7), (500, 7), (700, 7)] {
        log.sample(0, time, of);
    }
    let key = 0xFFFF_AB00_0000_0040;
    log.stack(0, 105, 0x1825, (100, 7), &[key]);
    log.stack(0, 305, 0x1825, (300, 7), &[key]);
    // The kernel frees the stack and then reuses its key for another stack.
    log.definition(400, 0x1823, key, &[KERNEL + 1]);
    log.stack(0, 505, 0x1825, (500, 7), &[key]);
    log.stack(1, 520, 0x1826, (500, 7), &[key + 8]);
    log.definition(600, 0x1824, key + 8, &[0x51]);
    log.definition(900, 0x1824, key, &[KERNEL + 2, KERNEL + 3]);
    // The key is used after its last definition. So the addresses of this use are not in the trace.
    log.stack(0, 950, 0x1825, (700, 7), &[key]);
    let found = of_samples(&log.tables());
    assert_eq!(found[0].1, Some(vec![KERNEL + 1]));
    assert_eq!(found[1].1, Some(vec![KERNEL + 1]));
    assert_eq!(found[2].1, Some(vec![KERNEL + 2, KERNEL + 3, 0x51]));
    assert_eq!(found[3].1, None);
}

/// Half of a stack: the raw time and the thread of the event, true for the user half, and the addresses. If
/// the half was logged as a key, the addresses are replaced by the key and the time of the key's use.
type Half = ((i64, u32), bool, Result<Vec<u64>, (u64, i64)>);

/// Returns the stack for each raw time and thread. The stacks are computed by a simple join.
fn plain_join(trace: &Trace) -> HashMap<(i64, u32), Vec<u64>> {
    let mut definitions: Vec<(u64, i64, Vec<u64>)> = Vec::new();
    let mut halves: Vec<Half> = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next() {
        let (payload, width) = (event.payload(), event.pointer_size());
        match event.hook() {
            Some(0x1820) => {
                let stack = Stack::read(payload, 2, width).unwrap();
                let addresses: Vec<u64> = stack.addresses.collect();
                let user = addresses.first().is_none_or(|first| first >> 63 == 0);
                let of = (stack.event_time as i64, stack.thread_id);
                halves.push((of, user, Ok(addresses)));
            }
            Some(0x1822..=0x1824) => {
                let definition = StackDefinition::read(payload, 2, width).unwrap();
                let addresses = definition.addresses.collect();
                definitions.push((definition.key, event.raw_time(), addresses));
            }
            Some(hook @ (0x1825 | 0x1826)) => {
                let reference = StackReference::read(payload, 2, width).unwrap();
                let of = (reference.event_time as i64, reference.thread_id);
                halves.push((of, hook == 0x1826, Err((reference.key, event.raw_time()))));
            }
            _ => {}
        }
    }
    let mut stacks: HashMap<(i64, u32), [Option<Vec<u64>>; 2]> = HashMap::new();
    for (of, user, half) in halves {
        let addresses = half.or_else(|(key, used)| {
            let is = |d: &&(u64, i64, Vec<u64>)| d.0 == key && d.1 >= used;
            definitions.iter().find(is).map(|d| d.2.clone()).ok_or(())
        });
        let slot = &mut stacks.entry(of).or_default()[usize::from(user)];
        if slot.is_none() {
            *slot = addresses.ok();
        }
    }
    let known = stacks
        .into_iter()
        .filter(|(_, halves)| halves.iter().any(Option::is_some));
    known
        .map(|(of, halves)| (of, halves.into_iter().flatten().flatten().collect()))
        .collect()
}

/// Compares the stacks in the tables with the stacks of `plain_join`. The traces are real 64-bit traces,
/// which contain stacks as addresses and stacks as keys.
#[test]
fn real_stacks_join_as_the_plainest_join_does() {
    let mut checked = 0;
    for name in [
        "etl/perfview__net.4.5.2.x64.etl",
        "etl/filtrace__etw.etl",
        "etl/perfview__diaghub__diaghub.kernel.1.etl",
    ] {
        let source = FileSource::new(File::open(testdata::path(name)).unwrap()).unwrap();
        let source: Box<dyn Source> = Box::new(source);
        let trace = Trace::from_sources(vec![(name.into(), source)]).unwrap();
        let expected: HashMap<(i64, u32), Vec<u64>> = plain_join(&trace)
            .into_iter()
            .map(|((raw, thread), stack)| ((trace.clock().to_ns(raw), thread), stack))
            .collect();
        let tables = tables(&trace);
        for samples in &tables.samples {
            for row in 0..samples.len() {
                let of = (samples.time_ns[row], samples.thread_id[row]);
                let stack = samples.stack_id.get(row);
                let found = stack.map(|id| tables.stacks.addresses.get(id as usize));
                assert_eq!(
                    found,
                    expected.get(&of).map(Vec::as_slice),
                    "{name}: {of:?}"
                );
                checked += usize::from(found.is_some());
            }
        }
        let runs = &tables.cpu_runs;
        for row in 0..runs.len() {
            let of = (runs.start_ns[row], runs.thread_id[row]);
            if let Some(id) = runs.stack_id.get(row) {
                let found = tables.stacks.addresses.get(id as usize);
                assert_eq!(
                    Some(found),
                    expected.get(&of).map(Vec::as_slice),
                    "{name}: {of:?}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}
