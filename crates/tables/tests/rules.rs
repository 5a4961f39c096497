//! Tests of the rules of the tables. The tests write traces. The expected values follow from the format and
//! the documented meaning of the events. They do not come from the code.

use std::io::Cursor;
use std::sync::atomic::{AtomicU64, Ordering};

use etl::Trace;
use etl::write::{KernelEvent, Session, Writer};
use tables::InterruptKind;
use tables::{ImageTracker, Options, ProcessTracker, StoreError, Table, Tables, ThreadTracker};

/// Writer of a trace with a 10 MHz clock that starts at 0. One tick is 100 ns.
struct Log(Writer<Cursor<Vec<u8>>>);

impl Log {
    fn new(processors: u16) -> Log {
        let session = Session {
            processors,
            os_version: (10, 0),
            ..Session::default()
        };
        Log(Writer::new(Cursor::default(), session).unwrap())
    }

    fn event(&mut self, cpu: u16, time: i64, hook: u16, version: u8, payload: &[&[u8]]) {
        self.by(None, cpu, time, hook, version, payload);
    }

    fn by(
        &mut self,
        thread: Option<(u32, u32)>,
        cpu: u16,
        time: i64,
        hook: u16,
        version: u8,
        payload: &[&[u8]],
    ) {
        let event = KernelEvent {
            hook,
            version,
            time,
            thread,
        };
        self.0.kernel(cpu, event, &payload.concat()).unwrap();
    }

    fn trace(self) -> Trace {
        let bytes = self.0.finish().unwrap().into_inner();
        Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap()
    }

    fn tables(self) -> Tables {
        import_windows::build(&self.trace(), Table::ALL, Options::default()).unwrap()
    }
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

#[test]
fn exclusive_time_leaves_nested_routines_out() {
    let mut log = Log::new(2);
    // CPU 0 runs a DPC from tick 100 to 200. Inside the DPC, an ISR runs from 120 to 160. Inside
    // this ISR, another ISR runs from 130 to 140. A third ISR runs inside the DPC from 170 to 175.
    // An unrelated DPC follows from 200 to 230.
    for (hook, start, end) in [
        (0x0F43, 130i64, 140),
        (0x0F43, 120, 160),
        (0x0F32, 170, 175),
        (0x0F44, 100, 200),
        (0x0F45, 200, 230),
    ] {
        let isr: &[u8] = if hook == 0x0F44 || hook == 0x0F45 {
            &[]
        } else {
            &[1, 0x51, 0x01, 0]
        };
        let message: &[u8] = if hook == 0x0F32 { &[9, 0, 0, 0] } else { &[] };
        let routine = 0xFFFF_F800_0000_1000u64.to_le_bytes();
        log.event(
            0,
            end,
            hook,
            2,
            &[&start.to_le_bytes(), &routine, isr, message],
        );
    }
    // Routines on CPU 1 run in the same time range. They are not nested in routines on CPU 0. The last
    // routine would start after its end, so its start is unknown.
    let routine = 7u64.to_le_bytes();
    log.event(1, 150, 0x0F44, 2, &[&145i64.to_le_bytes(), &routine]);
    log.event(1, 151, 0x0F44, 2, &[&152i64.to_le_bytes(), &routine]);
    let tables = log.tables();
    assert_eq!(tables.unreadable, []);
    let [cpu0, cpu1] = &tables.interrupts[..] else {
        panic!("two CPUs have interrupts")
    };
    let durations: Vec<_> = cpu0.duration_ns.iter().flatten().collect();
    assert_eq!(durations, [1000, 4000, 500, 10_000, 3000]);
    let exclusive: Vec<_> = cpu0.exclusive_ns.iter().flatten().collect();
    assert_eq!(exclusive, [1000, 3000, 500, 5500, 3000]);
    assert_eq!(cpu0.kind.0[2], InterruptKind::MessageIsr);
    assert_eq!(
        cpu0.vector.iter().collect::<Vec<_>>()[..2],
        [Some(0x0151); 2]
    );
    assert_eq!(cpu0.vector.get(3), None);
    assert_eq!(cpu0.message_number.get(2), Some(9));
    assert_eq!(
        cpu1.exclusive_ns.iter().collect::<Vec<_>>(),
        [Some(500), None]
    );
    assert_eq!(cpu1.start_ns.get(1), None);
}

/// Tests a routine with a wrong start. A DPC interrupts neither a service routine nor another DPC. So if a
/// DPC seems to have ended inside a routine, the logged start of the routine is wrong.
#[test]
fn a_routine_within_which_a_dpc_seems_to_end_has_no_known_begin() {
    const DPC: u16 = 0x0F44;
    const TIMER_DPC: u16 = 0x0F45;
    const THREADED_DPC: u16 = 0x0F42;
    const ISR: u16 = 0x0F43;
    let mut log = Log::new(1);
    for (hook, start, end) in [
        (DPC, 100i64, 110),
        (ISR, 90, 120),
        (DPC, 20, 130),
        (TIMER_DPC, 40, 140),
        // A threaded DPC runs in a thread. DPCs can interrupt this thread.
        (THREADED_DPC, 50, 150),
        // This routine ends when the next routine starts. So it is not inside the next routine.
        (DPC, 150, 160),
        (DPC, 160, 170),
        (TIMER_DPC, 182, 185),
        (DPC, 180, 190),
    ] {
        let isr: &[u8] = if hook == ISR {
            &[1, 0x51, 0x01, 0]
        } else {
            &[]
        };
        let routine = 7u64.to_le_bytes();
        log.event(0, end, hook, 2, &[&start.to_le_bytes(), &routine, isr]);
    }
    let tables = log.tables();
    assert_eq!(tables.unreadable, []);
    let [cpu] = &tables.interrupts[..] else {
        panic!("one CPU has interrupts")
    };
    let durations: Vec<_> = cpu.duration_ns.iter().collect();
    let known = |ticks: i64| Some(ticks * 100);
    let expected = [
        known(10),
        None,
        None,
        None,
        known(100),
        known(10),
        known(10),
        known(3),
        known(10),
    ];
    assert_eq!(durations, expected);
    let begins: Vec<bool> = cpu.start_ns.iter().map(|ns| ns.is_some()).collect();
    assert_eq!(begins, expected.map(|ns| ns.is_some()));
    assert_eq!(cpu.exclusive_ns.get(8), known(7));
}

#[test]
fn a_request_begins_at_its_own_start() {
    let mut log = Log::new(2);
    let read = |irp: u64, response: u64, priority: u32, thread: u32| -> Vec<u8> {
        let flags = priority << 17 | 0x43;
        [
            &2u32.to_le_bytes()[..],
            &flags.to_le_bytes(),
            &4096u32.to_le_bytes(),
            &[0; 4],
            &8192u64.to_le_bytes(),
            &0xAAu64.to_le_bytes(),
            &irp.to_le_bytes(),
            &response.to_le_bytes(),
            &thread.to_le_bytes(),
        ]
        .concat()
    };
    let start = |irp: u64, thread: u32| [&irp.to_le_bytes()[..], &thread.to_le_bytes()].concat();
    // Two requests use request packet 5, one after the other. They start on one CPU and complete on the other
    // CPU.
    log.event(0, 100, 0x010C, 3, &[&start(5, 11)]);
    log.event(1, 150, 0x010A, 3, &[&read(5, 49, 2, 11)]);
    log.event(0, 300, 0x010C, 3, &[&start(5, 12)]);
    log.event(1, 310, 0x010A, 3, &[&read(5, 9, 3, 12)]);
    // If there is no start event, the start is the completion time minus the response time.
    log.event(1, 400, 0x010A, 3, &[&read(6, 30, 0, 13)]);
    // In version 2, the completion event has no thread.
    log.by(Some((77, 4)), 0, 500, 0x010D, 2, &[&8u64.to_le_bytes()]);
    log.event(1, 600, 0x010B, 2, &[&read(8, 90, 1, 0)[..48]]);
    let tables = log.tables();
    assert_eq!(tables.unreadable, []);
    let [t] = &tables.disk_io[..] else {
        panic!("one CPU completes")
    };
    let column = |c: &tables::Nullable<i64>| c.iter().flatten().collect::<Vec<_>>();
    assert_eq!(column(&t.init_ns), [10_000, 30_000, 37_000, 50_000]);
    assert_eq!(column(&t.duration_ns), [5000, 1000, 3000, 10_000]);
    assert_eq!(column(&t.response_ns), [4900, 900, 3000, 9000]);
    let priorities: Vec<_> = t.priority.iter().flatten().collect();
    assert_eq!(priorities, [2, 3, 0, 1]);
    let threads: Vec<_> = t.thread_id.iter().flatten().collect();
    assert_eq!(threads, [11, 12, 13, 77]);
}

/// Returns the payload of a context switch with the given bytes 10 and 13. Version 5 of the event has all 28
/// bytes. Older versions have only the first bytes.
fn switch(old: u32, new: u32, byte10: u8, byte13: u8) -> [u8; 28] {
    let mut payload = [0; 28];
    payload[..4].copy_from_slice(&new.to_le_bytes());
    payload[4..8].copy_from_slice(&old.to_le_bytes());
    payload[8..16].copy_from_slice(&[15, 8, byte10, 0x20, 6, byte13, 5, 3]);
    payload[16..20].copy_from_slice(&4u32.to_le_bytes());
    payload[20..24].copy_from_slice(&(-3i32).to_le_bytes());
    payload[24..].copy_from_slice(&8u32.to_le_bytes());
    payload
}

#[test]
fn a_rank_is_known_only_where_the_event_says_it() {
    let mut log = Log::new(1);
    log.event(0, 1, 0x0524, 5, &[&switch(70, 71, 2, 0b0010_0101)]);
    log.event(0, 2, 0x0524, 5, &[&switch(0, 71, 3, 0)]);
    log.event(0, 3, 0x0524, 4, &[&switch(70, 71, 1, 0)[..24]]);
    log.event(0, 4, 0x0524, 2, &[&switch(70, 71, 1, 1)[..24]]);
    log.event(0, 5, 0x0524, 2, &[&switch(0, 71, 1, 1)[..24]]);
    log.event(0, 6, 0x0524, 1, &[&switch(70, 71, 6, 1)[..16]]);
    log.event(0, 7, 0x0524, 5, &[&switch(70, 71, 6, 1)[..24]]);
    let tables = log.tables();
    let t = &tables.context_switches[0];
    let rank: Vec<_> = t.old_rank.iter().collect();
    assert_eq!(rank, [Some(2), None, Some(1), None, None, None]);
    let c_state: Vec<_> = t.previous_c_state.iter().collect();
    assert_eq!(c_state, [None, Some(3), None, None, Some(1), None]);
    let quantum: Vec<_> = t.old_remaining_quantum.iter().collect();
    assert_eq!(
        quantum,
        [Some(-3), Some(-3), Some(-3), Some(-3), Some(-3), None]
    );
    assert_eq!(
        (t.old_qos.get(0), t.new_qos.get(0), t.old_wait_mode.get(0)),
        (Some(2), Some(2), Some(1))
    );
    assert_eq!((t.old_qos.get(3), t.new_quantum.get(5)), (None, Some(6)));
    // An event of version 5 that has only 24 bytes is too short.
    let [short] = tables.unreadable[..] else {
        panic!("{:?}", tables.unreadable)
    };
    assert_eq!((short.table, short.count), (Table::ContextSwitches, 1));
}

fn process(key: u64, id: u32, name: &str) -> Vec<u8> {
    let ids = [id, 100, 1, 0x103].map(u32::to_le_bytes).concat();
    // The process has no page tables, no flags and no SID.
    [
        &key.to_le_bytes()[..],
        &ids,
        &[0; 16],
        name.as_bytes(),
        &[0],
        &[0; 6],
    ]
    .concat()
}

#[test]
fn ids_mean_what_had_them_at_the_time() {
    let mut log = Log::new(1);
    let thread = |process: u32, thread: u32| {
        let ids = [process, thread].map(u32::to_le_bytes).concat();
        [ids, vec![0; 72]].concat()
    };
    let hook = |opcode: u16| 0x0300 | opcode;
    log.event(0, 10, hook(3), 4, &[&process(0xA, 8, "old.exe")]);
    log.event(0, 10, 0x0503, 3, &[&thread(8, 9)]);
    log.event(0, 20, 0x0502, 3, &[&thread(8, 9)]);
    log.event(0, 20, hook(2), 4, &[&process(0xA, 8, "old.exe")]);
    // The rundown at the end of the session still lists the process that ended. This must not add a second
    // process.
    log.event(0, 21, hook(4), 4, &[&process(0xA, 8, "old.exe")]);
    log.by(
        Some((1, 2)),
        0,
        30,
        hook(1),
        4,
        &[&process(0xB, 8, "new.exe")],
    );
    log.by(Some((1, 2)), 0, 31, 0x0501, 3, &[&thread(8, 9)]);
    log.event(0, 50, hook(4), 4, &[&process(0xB, 8, "new.exe")]);
    log.event(0, 50, hook(4), 4, &[&process(0xC, 12, "ever.exe")]);
    log.event(0, 50, 0x0504, 3, &[&thread(8, 9)]);
    let tables = log.tables();
    assert_eq!(tables.unreadable, []);
    let p = &tables.processes;
    assert_eq!(p.process_id, [8, 8, 12]);
    assert_eq!(
        p.start_ns.iter().collect::<Vec<_>>(),
        [None, Some(3000), None]
    );
    assert_eq!(
        p.end_ns.iter().collect::<Vec<_>>(),
        [Some(2000), None, None]
    );
    let tracker = ProcessTracker::new(p);
    assert_eq!(tracker.name(8, -5), Some("old.exe"));
    assert_eq!(
        tracker.name(8, 2500),
        Some("old.exe"),
        "until its id is reused"
    );
    assert_eq!(tracker.name(8, 3000), Some("new.exe"));
    assert_eq!(tracker.name(12, 0), Some("ever.exe"));
    assert_eq!(tracker.name(12, i64::MAX), Some("ever.exe"));
    assert_eq!(
        (tracker.name(0, 0), tracker.name(4, 0)),
        (Some("Idle"), Some("System"))
    );
    assert_eq!(tracker.name(99, 0), None);

    let t = &tables.threads;
    assert_eq!(t.start_ns.iter().collect::<Vec<_>>(), [None, Some(3100)]);
    assert_eq!(
        t.creator_thread_id.iter().collect::<Vec<_>>(),
        [None, Some(1)]
    );
    let tracker = ThreadTracker::new(t);
    assert_eq!(tracker.lookup(9, 0), Some(0));
    assert_eq!(
        tracker.lookup(9, 2100),
        Some(0),
        "its last switch follows its end"
    );
    assert_eq!(tracker.lookup(9, 4000), Some(1));
    assert_eq!(
        (tracker.process_id(0, 0), tracker.process_id(10, 0)),
        (Some(0), None)
    );
}

#[test]
fn addresses_mean_what_was_mapped_at_the_time() {
    let mut log = Log::new(1);
    let image = |process: u32, base: u64, size: u64, name: &str| {
        let (b, s) = (base.to_le_bytes(), size.to_le_bytes());
        [&b[..], &s, &process.to_le_bytes(), &[0; 36], &utf16(name)].concat()
    };
    let kernel = 0xFFFF_F800_0000_0000;
    log.event(
        0,
        1,
        0x1403,
        3,
        &[&image(0, kernel, 0x1000, "ntoskrnl.exe")],
    );
    // First, `a` is unmapped. Then `b` is mapped and covers a part of the range of `a`. Then `a` is mapped at
    // another address.
    log.event(0, 10, 0x140A, 3, &[&image(8, 0x10000, 0x4000, "a.dll")]);
    log.event(0, 20, 0x1402, 3, &[&image(8, 0x10000, 0x4000, "a.dll")]);
    log.event(0, 30, 0x030A, 3, &[&image(8, 0x11000, 0x1000, "b.dll")]);
    log.event(0, 40, 0x140A, 3, &[&image(8, 0x12000, 0x4000, "a.dll")]);
    log.event(0, 90, 0x1404, 3, &[&image(8, 0x12000, 0x4000, "a.dll")]);
    let tables = log.tables();
    assert_eq!(tables.unreadable, []);
    let t = &tables.images;
    let tracker = ImageTracker::new(t);
    let name = |process, address, ns| {
        tracker
            .lookup(process, address, ns)
            .map(|row| (t.path.get(row).unwrap(), t.base_address[row]))
    };
    assert_eq!(name(8, 0x13FFF, 1500), Some(("a.dll", 0x10000)));
    assert_eq!(name(8, 0x14000, 1500), None);
    assert_eq!(name(8, 0x10000, 999), None);
    assert_eq!(name(8, 0x11800, 1500), Some(("a.dll", 0x10000)));
    assert_eq!(name(8, 0x11800, 2500), None);
    assert_eq!(name(8, 0x11800, 3500), Some(("b.dll", 0x11000)));
    assert_eq!(name(8, 0x10800, 3500), None);
    assert_eq!(name(8, 0x12000, 4000), Some(("a.dll", 0x12000)));
    assert_eq!(name(9, 0x12000, 4000), None);
    assert_eq!(name(8, kernel + 0xFFF, 0), Some(("ntoskrnl.exe", kernel)));
    assert_eq!(name(77, kernel + 0x1000, 0), None);
}

/// Tests look-ups in a large random set of images. A look-up must find the same image as a full search.
#[test]
fn lookups_agree_with_a_plain_search() {
    let mut random = testdata::Rng(11);
    let mut log = Log::new(1);
    let mut mapped: Vec<(u64, u64, i64, i64)> = Vec::new();
    for time in 0..400i64 {
        let (base, size) = (random.below(200) as u64 * 16, 1 + random.below(300) as u64);
        let payload = |base: u64, size: u64| {
            [
                &base.to_le_bytes()[..],
                &size.to_le_bytes(),
                &[8, 0, 0, 0],
                &[0; 38],
            ]
            .concat()
        };
        let overlaps = |m: &&mut (u64, u64, i64, i64)| {
            m.3 == i64::MAX && m.0 < base + size && base < m.0 + m.1
        };
        // In a real address space, images do not overlap. So overlapping images are unmapped first.
        for image in mapped.iter_mut().filter(|m| overlaps(m)) {
            log.event(0, time * 2, 0x1402, 3, &[&payload(image.0, image.1)]);
            image.3 = time * 200;
        }
        log.event(0, time * 2 + 1, 0x140A, 3, &[&payload(base, size)]);
        mapped.push((base, size, time * 200 + 100, i64::MAX));
    }
    let tables = log.tables();
    let tracker = ImageTracker::new(&tables.images);
    for _ in 0..20_000 {
        let (address, time) = (random.below(3600) as u64, random.below(80_000) as i64);
        let expected = mapped
            .iter()
            .find(|m| (m.0..m.0 + m.1).contains(&address) && (m.2..=m.3).contains(&time));
        let found = tracker.lookup(8, address, time);
        let found = found.map(|row| {
            (
                tables.images.base_address[row],
                tables.images.load_ns.get(row).unwrap(),
            )
        });
        assert_eq!(found, expected.map(|m| (m.0, m.2)), "{address:x} at {time}");
    }
}

#[test]
fn only_what_is_asked_for_is_built() {
    let mut log = Log::new(1);
    log.event(0, 1, 0x0524, 5, &[&switch(1, 2, 0, 0)]);
    log.event(0, 2, 0x0532, 2, &[&[7, 0, 0, 0, 1, 2, 0b1001, 0]]);
    let trace = log.trace();
    let tables = import_windows::build(&trace, &[Table::ReadyThreads], Options::default()).unwrap();
    assert!(tables.context_switches.is_empty());
    let ready = &tables.ready_threads[0];
    assert_eq!(
        (
            ready.thread_id[0],
            ready.adjust_reason.get(0),
            ready.adjust_increment.get(0)
        ),
        (7, Some(1), Some(2))
    );
    assert!(ready.by_dpc[0] && ready.direct_switch_attempt.get(0) == Some(true));
    assert_eq!(ready.kernel_stack_not_resident.get(0), Some(false));
    assert_eq!(ready.process_out_of_memory.get(0), Some(false));
}

#[test]
fn progress_reaches_the_end_and_can_stop() {
    let mut log = Log::new(4);
    for time in 0..20_000 {
        log.event((time % 4) as u16, time, 0x0524, 5, &[&switch(1, 2, 0, 0)]);
    }
    let trace = log.trace();
    let all: u64 = trace
        .buffers()
        .iter()
        .map(|b| u64::from(b.stored_size))
        .sum();
    let most = AtomicU64::new(0);
    let progress = |done: u64| {
        most.fetch_max(done, Ordering::Relaxed);
        true
    };
    let options = Options {
        progress: &progress,
    };
    assert!(import_windows::build(&trace, Table::ALL, options).is_ok());
    assert_eq!(most.into_inner(), all);
    let options = Options {
        progress: &|done| done < all / 2,
    };
    let error = import_windows::build(&trace, Table::ALL, options).unwrap_err();
    assert!(matches!(error, StoreError::Cancelled(_)), "{error}");
}
