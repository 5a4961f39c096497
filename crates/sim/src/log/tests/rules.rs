//! Tests of rules that hold for all kinds of events: stacks, recorded kinds, losses, order.

use std::collections::BTreeMap;

use events::kernel;

use super::*;

#[test]
fn stacks_belong_to_their_events() {
    let mut frames = Vec::new();
    let seen = logged(Windows::Ten, &everything(), |log| {
        let modules = &mut log.modules;
        frames = [
            (None, "ntoskrnl.exe!KiSwapContext"),
            (Some(40), "win32u.dll!NtUserGetMessage"),
            (Some(40), "app.exe!main"),
        ]
        .map(|(process, frame)| modules.frame(process, frame).unwrap())
        .to_vec();
        let stack = Some(Stack {
            who: WHO,
            frames: modules.stack(&frames),
        });
        log.context_switch(0, 100, &switch(), stack);
        // This event is on processor 1, so it does not write the pending stack of processor 0.
        log.context_switch(1, 100, &switch(), None);
        log.context_switch(0, 100, &switch(), stack);
        log.sample(0, 200, &Sample::default(), stack);
        log.mark(0, 300, "no stack");
        log.skew(0, 5);
        log.ready_thread(0, 400, &ReadyThread::default(), stack);
    });
    let stacks: Vec<_> = seen
        .iter()
        .filter(|event| event.hook == Some(0x1820))
        .map(|event| {
            let read = kernel::Stack::read(&event.payload, event.version, 8).unwrap();
            assert_eq!((read.process_id, read.thread_id), (40, 44));
            assert!(read.addresses.eq(frames.iter().copied()));
            (event.cpu, event.time, read.event_time - RAW_START as u64)
        })
        .collect();
    // Each tuple has the processor, the time of the stack event, and the time of the event to which the stack
    // belongs. When the last event (the readied thread) is logged, the clock of processor 0 is 5 ticks ahead.
    assert_eq!(
        stacks,
        [(0, 100, 100), (0, 101, 100), (0, 201, 200), (0, 406, 405)]
    );
    // Each stack directly follows its event.
    let order: Vec<_> = seen.iter().filter(|event| event.cpu == 0).collect();
    let hooks: Vec<_> = order.iter().map(|event| event.hook.unwrap()).collect();
    assert_eq!(
        hooks,
        [
            0x524, 0x1820, 0x524, 0x1820, 0xF2E, 0x1820, 0xF22, 0x532, 0x1820
        ]
    );
}

/// Logs one event of each kind, with a stack if the kind can have one.
fn one_of_each(log: &mut TestLog) {
    let frame = log
        .modules
        .frame(None, "ndis.sys!ndisInterruptDpc")
        .unwrap();
    let stack = Some(Stack {
        who: WHO,
        frames: log.modules.stack(&[frame]),
    });
    let process = Process::default();
    let thread = Thread::default();
    let lives = [Life::Start, Life::End, Life::RundownStart, Life::RundownEnd];
    for (time, life) in (1..).zip(lives) {
        log.process(0, 10 * time, life, &process, WHO);
        log.thread(0, 10 * time, life, &thread, WHO);
        log.images(0, 10 * time, life, 0, WHO);
    }
    log.context_switch(0, 100, &switch(), stack);
    log.ready_thread(0, 110, &ReadyThread::default(), stack);
    log.set_priority(0, 120, 7, 8, 9, stack);
    log.anti_starvation(0, 130, 7, 0, 8);
    log.sample(0, 140, &Sample::default(), stack);
    for kind in [DpcKind::Regular, DpcKind::Threaded, DpcKind::Timer] {
        let began = 145;
        log.dpc(
            0,
            150,
            &Dpc {
                kind,
                began,
                routine: frame,
            },
        );
    }
    for message in [None, Some(0)] {
        log.isr(
            0,
            160,
            &Isr {
                message,
                ..Isr::default()
            },
        );
    }
    log.hard_fault(0, 170, &HardFault::default(), stack);
    for action in [DiskAction::Read, DiskAction::Write, DiskAction::Flush] {
        let request = DiskRequest {
            action,
            disk: 0,
            irp: 1,
            by: WHO,
            bytes: 1,
            offset: 0,
            file: 0,
            is_paging: false,
            priority: 0,
        };
        log.disk_start(0, 180, &request, stack);
        log.disk_end(0, 180, &request, 180);
    }
    log.file("x");
    for ends in [["1.1.1.1:1", "2.2.2.2:2"], ["[::1]:1", "[::2]:2"]] {
        let [local, remote] = ends.map(parse);
        for (tcp, direction) in [
            (true, Direction::Send),
            (true, Direction::Receive),
            (false, Direction::Send),
            (false, Direction::Receive),
        ] {
            let traffic = Traffic {
                tcp,
                direction,
                process: 1,
                bytes: 1,
                local,
                remote,
                sequence: 0,
                connection: 0,
            };
            log.traffic(0, 190, &traffic);
        }
    }
    log.focus(0, 200, WHO, 1, 2, 3);
    log.freeze(0, 200, WHO, 1, true);
    log.timer_request(0, 200, WHO, "x", 1, false);
    log.timer_resolution(0, 200, WHO, 1);
    log.sleep(0, 200, WHO, 4);
    log.packet(0, 200, WHO, 1, Direction::Receive, &[1]);
    log.collection_begins(0, 200, WHO, 1, 2);
    log.pool_threads(0, 200, WHO, 8, true);
    log.key_down(0, 200, WHO, 1, "x");
    log.mark(0, 210, "x");
}

#[test]
fn what_is_not_recorded_is_absent() {
    let kinds_of = |recording: &Recording| {
        let mut kinds = Vec::new();
        bytes_of(Windows::Ten, recording, |log| {
            one_of_each(log);
            kinds = log.counts().map(|(kind, _)| kind).collect();
        });
        kinds
    };
    // If everything is recorded, every kind occurs except the kinds that are logged at the trace's end.
    let missing: Vec<_> = EventKind::ALL
        .into_iter()
        .filter(|kind| !kinds_of(&everything()).contains(kind))
        .collect();
    assert_eq!(
        missing,
        [
            EventKind::SystemConfig,
            EventKind::EventMetadata,
            EventKind::FileName
        ]
    );
    use EventKind as K;
    // The keyword PRIORITY enables ThreadSetPriority, but its stack also needs the keyword
    // DISPATCHER.
    let text = "kernel = ['PRIORITY']\nstacks = ['ThreadSetPriority']";
    bytes_of(Windows::Ten, &toml::from_str(text).unwrap(), |log| {
        assert!(log.records(K::SetPriority) && !log.walked.contains(K::SetPriority));
    });
    let always = [K::Extension, K::SysConfigEx, K::Simulated, K::Mark];
    assert_eq!(kinds_of(&nothing()), always);
    for (keyword, kinds) in [
        ("CSWITCH", &[K::ContextSwitch][..]),
        ("INTERRUPT", &[K::Isr, K::MessageIsr]),
        ("DPC", &[K::Dpc, K::ThreadedDpc, K::TimerDpc]),
        ("PROFILE", &[K::SamplingInterval, K::Sample]),
        ("DISK_IO", &[K::DiskRead, K::DiskWrite, K::DiskFlush]),
    ] {
        let text = format!("kernel = ['{keyword}']\nstacks = ['HardFault']\nproviders = []");
        let recording: Recording = toml::from_str(&text).unwrap();
        let mut logged = kinds_of(&recording);
        logged.retain(|kind| !always.contains(kind));
        assert_eq!(logged, kinds);
    }
    let recording: Recording =
        toml::from_str("kernel = []\nproviders = ['Microsoft-Windows-Kernel-Power']").unwrap();
    let kinds = kinds_of(&recording);
    assert!(kinds.contains(&K::TimerRequest) && kinds.contains(&K::Sleep));
    assert!(!kinds.contains(&K::Focus) && !kinds.contains(&K::Stack));
}

#[test]
fn counts_are_those_of_the_trace() {
    for windows in RELEASES {
        let (mut counts, mut hooks) = (BTreeMap::new(), BTreeMap::new());
        let bytes = bytes_of(windows, &everything(), |log| {
            one_of_each(log);
            for (kind, count) in log.counts().filter(|(kind, _)| kind.hook() != 0) {
                counts.insert(kind.hook(), count);
            }
            assert_eq!(
                log.counts().map(|(_, count)| count).sum::<u64>(),
                log.events()
            );
        });
        for event in read(bytes).iter().filter(|event| event.time < END) {
            *hooks.entry(event.hook.unwrap_or(0)).or_default() += 1u64;
        }
        hooks.retain(|hook, _| counts.contains_key(hook));
        assert_eq!(counts, hooks);
    }
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    for compressed in [false, true] {
        let recording = Recording {
            compressed,
            ..everything()
        };
        for windows in RELEASES {
            let write = || bytes_of(windows, &recording, one_of_each);
            assert_eq!(write(), write());
        }
    }
}

#[test]
fn events_are_lost_where_they_are_meant_to_be() {
    let finished = write(Windows::Ten, &everything(), |log| {
        log.lose(100..200, Some(&[1]));
        for cpu in [0, 1] {
            for time in [99, 100, 199, 200] {
                log.mark(cpu, time, "x");
            }
        }
    });
    assert_eq!(finished.lost, 2);
    let bytes = finished.out.into_inner();
    assert_eq!(open(bytes.clone()).header().unwrap().events_lost, 2);
    let seen = read(bytes);
    let marks = seen.iter().filter(|event| event.hook == Some(0x0F22));
    let left: Vec<_> = marks.map(|event| (event.time, event.cpu)).collect();
    assert_eq!(
        left,
        [(99, 0), (99, 1), (100, 0), (199, 0), (200, 0), (200, 1)]
    );
}

#[test]
fn the_first_error_is_kept() {
    let out = Cursor::new(Vec::new());
    let computer = computer(Windows::Ten);
    let modules = Modules::new(Windows::Ten);
    let mut log = Log::new(out, computer, &everything(), modules).unwrap();
    log.mark(1, 100, "x");
    log.mark(1, 99, "too early");
    assert!(log.failed());
    log.mark(9, 100, "no such processor");
    let error = log.finish(END).unwrap_err();
    assert!(
        matches!(error, WriteError::OutOfOrder { cpu: 1, .. }),
        "{error}"
    );
}

#[test]
fn recordings_say_what_is_wrong_with_them() {
    let error = |text: &str| toml::from_str::<Recording>(text).unwrap_err().to_string();
    assert!(error("kernel = ['CSWITHC']").contains("CSWITHC"));
    assert!(error("kernl = []").contains("kernl"));
    let recording: Recording =
        toml::from_str("kernel = ['PROC_THREAD', 'FILENAME', 'NETWORKTRACE', 'HARD_FAULTS']")
            .unwrap();
    assert!(recording.has(Keyword::NetworkTrace) && !recording.has(Keyword::CSwitch));
    // Stacks of context switches are not recorded, because the keyword CSWITCH is missing.
    assert!(!recording.walks(StackWalk::CSwitch));
}
