//! Tests of the tables of providers' events. The tests write traces in the public layouts of the events.

use std::io::Cursor;

use etl::write::{ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid, Trace};
use tables::{Named, Options, Table, Tables};

const DOTNET_RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const WIN32K: &str = "8c416c79-d49b-4f01-a467-e56d3aa8234c";
const KERNEL_PROCESS: &str = "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716";
const KERNEL_POWER: &str = "331c3b3a-2005-44c2-ac5e-77220c37d6b4";
const MULTI_MAIN: &str = "231cf54b-22a0-49e4-a59a-47052a30ffed";
const MULTI_INPUT: &str = "70e2503b-c6f3-4780-b323-bd8ed0c61bf8";
const LAGLAB_INPUT: &str = "cc034ed5-a9f4-5c52-dfab-c2b323286686";

/// Writer of a trace of two CPUs that starts at 0 and ends at 1 ms. One tick is 100 ns.
struct Log(Writer<Cursor<Vec<u8>>>);

impl Log {
    fn new() -> Log {
        let session = Session {
            processors: 2,
            end: Some(10_000),
            ..Session::default()
        };
        Log(Writer::new(Cursor::default(), session).unwrap())
    }

    fn event(&mut self, cpu: u16, time: i64, provider: &str, id: u16, version: u8, payload: &[u8]) {
        let provider: Guid = provider.parse().unwrap();
        let descriptor = Descriptor {
            id,
            version,
            ..Descriptor::default()
        };
        let event = ProviderEvent {
            provider,
            descriptor,
            time,
            thread_id: 8,
            process_id: 4,
            activity: Guid::ZERO,
            extended: &[],
        };
        self.0.provider(cpu, event, payload).unwrap();
    }

    fn tables(self, wanted: &[Table]) -> Tables {
        let bytes = self.0.finish().unwrap().into_inner();
        let trace = Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap();
        let tables = import_windows::build(&trace, wanted, Options::default()).unwrap();
        assert_eq!(tables.unreadable, []);
        tables
    }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

#[test]
fn a_process_has_the_focus_between_two_changes() {
    let mut log = Log::new();
    let with_time = |numbers: &[u32]| [words(numbers), vec![0; 8]].concat();
    // In session 1, the focus changes from process 10 to process 20, then to no process, then to process 30.
    // Recent systems log a change twice.
    log.event(0, 1000, WIN32K, 26, 0, &words(&[1, 10, 20]));
    log.event(1, 1000, WIN32K, 259, 0, &with_time(&[1, 10]));
    log.event(1, 1001, WIN32K, 258, 0, &with_time(&[1, 20]));
    log.event(1, 3000, WIN32K, 259, 0, &with_time(&[1, 20]));
    log.event(0, 4000, WIN32K, 26, 0, &words(&[1, 0, 30]));
    // Session 2 has a focus that is independent of session 1.
    log.event(0, 5000, WIN32K, 258, 0, &with_time(&[2, 40]));
    let focus = log.tables(&[Table::Focus]).focus;
    let rows: Vec<_> = (0..focus.len())
        .map(|row| {
            (
                (focus.session_id[row], focus.process_id[row]),
                (focus.start_ns[row], focus.starts_at_event[row]),
                (focus.end_ns[row], focus.ends_at_event[row]),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ((1, 10), (0, false), (100_000, true)),
            ((1, 20), (100_000, true), (300_000, true)),
            ((1, 30), (400_000, true), (1_000_000, false)),
            ((2, 40), (500_000, true), (1_000_000, false)),
        ]
    );
}

#[test]
fn a_freeze_lasts_until_the_thaw_or_the_end() {
    let mut log = Log::new();
    log.event(0, 1000, KERNEL_PROCESS, 12, 0, &words(&[10]));
    log.event(0, 2000, KERNEL_PROCESS, 11, 1, &words(&[10, 0, 0]));
    log.event(0, 2500, KERNEL_PROCESS, 11, 1, &words(&[20, 0, 0]));
    log.event(1, 3000, KERNEL_PROCESS, 12, 1, &words(&[10, 0, 0]));
    let freezes = log.tables(&[Table::ProcessFreezes]).process_freezes;
    assert_eq!(freezes.process_id, [10, 10, 20]);
    assert_eq!(freezes.start_ns, [0, 200_000, 250_000]);
    assert_eq!(freezes.end_ns, [100_000, 300_000, 1_000_000]);
    assert_eq!(freezes.starts_at_event, [false, true, true]);
    assert_eq!(freezes.ends_at_event, [true, true, false]);
}

#[test]
fn pauses_of_dotnet_with_their_collections() {
    let instance = 8_u16.to_le_bytes();
    let with = |numbers: &[u32]| [&words(numbers)[..], &instance].concat();
    let mut log = Log::new();
    // A pause that began before the trace.
    log.event(0, 1000, DOTNET_RUNTIME, 3, 1, &instance);
    // A pause for a collection. The row has the values of the first collection that begins during the pause.
    log.event(0, 2000, DOTNET_RUNTIME, 9, 1, &with(&[1, 6]));
    log.event(0, 2100, DOTNET_RUNTIME, 1, 1, &with(&[7, 2, 4, 0]));
    log.event(0, 2200, DOTNET_RUNTIME, 2, 1, &with(&[7, 2]));
    log.event(0, 2500, DOTNET_RUNTIME, 3, 1, &instance);
    // A pause for a debugger. The oldest layout has a reason of 16 bits.
    log.event(0, 3000, DOTNET_RUNTIME, 9, 0, &5_u16.to_le_bytes());
    log.event(0, 3100, DOTNET_RUNTIME, 3, 0, &[]);
    // A pause that has not ended at the end of the trace.
    log.event(1, 4000, DOTNET_RUNTIME, 9, 1, &with(&[6, 8]));
    let pauses = log.tables(&[Table::DotnetPauses]).dotnet_pauses;
    assert_eq!(pauses.process_id, [4; 4]);
    assert_eq!(pauses.start_ns, [0, 200_000, 300_000, 400_000]);
    assert_eq!(pauses.end_ns, [100_000, 250_000, 310_000, 1_000_000]);
    assert_eq!(pauses.starts_at_event, [false, true, true, true]);
    assert_eq!(pauses.ends_at_event, [true, true, true, false]);
    let for_collection: Vec<_> = pauses.for_collection.iter().collect();
    let expected = [None, Some(true), Some(false), Some(true)];
    assert_eq!(for_collection, expected);
    let only_second = |column: &tables::Nullable<u32>| {
        let values: Vec<_> = column.iter().collect();
        assert_eq!([values[0], values[2], values[3]], [None; 3]);
        values[1]
    };
    assert_eq!(only_second(&pauses.collection), Some(7));
    assert_eq!(only_second(&pauses.generation), Some(2));
    assert_eq!(only_second(&pauses.collection_reason), Some(4));
    assert_eq!(only_second(&pauses.collection_kind), Some(0));
}

#[test]
fn thread_pools_of_dotnet() {
    let change = |threads: u32, reason: u32| {
        let throughput = 12.5_f64.to_le_bytes();
        [
            &throughput[..],
            &words(&[threads, reason]),
            &8_u16.to_le_bytes(),
        ]
        .concat()
    };
    let mut log = Log::new();
    log.event(0, 1000, DOTNET_RUNTIME, 55, 0, &change(9, 3));
    log.event(1, 2000, DOTNET_RUNTIME, 55, 0, &change(10, 6));
    let pools = log.tables(&[Table::DotnetPools]).dotnet_pools;
    assert_eq!(pools.time_ns, [100_000, 200_000]);
    assert_eq!(pools.process_id, [4, 4]);
    assert_eq!(pools.threads, [9, 10]);
    assert_eq!(pools.reason, [3, 6]);
    assert_eq!(pools.starved, [false, true]);
}

#[test]
fn timer_requests_of_all_versions() {
    let name: Vec<u8> = "a.exe".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let application = [&5u16.to_le_bytes()[..], &name].concat();
    let mut log = Log::new();
    log.event(
        0,
        1,
        KERNEL_POWER,
        63,
        0,
        &[words(&[1]), application.clone()].concat(),
    );
    let request = [words(&[10_000, 77]), application, words(&[6])].concat();
    log.event(0, 2, KERNEL_POWER, 63, 1, &request);
    log.event(0, 3, KERNEL_POWER, 63, 2, &[request, words(&[1])].concat());
    log.event(0, 4, KERNEL_POWER, 95, 0, &words(&[5_000]));
    let requests = log.tables(&[Table::TimerRequests]).timer_requests.remove(0);
    let kinds: Vec<_> = requests.kind.0.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, ["request", "request", "request", "effective"]);
    let ns: Vec<_> = requests.resolution_ns.iter().collect();
    assert_eq!(ns, [None, Some(1_000_000), Some(1_000_000), Some(500_000)]);
    let processes: Vec<_> = requests.process_id.iter().collect();
    assert_eq!(processes, [Some(4), Some(77), Some(77), None]);
    assert_eq!(requests.image_path.get(2), Some("a.exe"));
    assert_eq!(requests.sub_process_tag.get(2), Some(6));
    assert_eq!(
        requests.ignored.iter().collect::<Vec<_>>(),
        [None, None, Some(true), None]
    );
}

#[test]
fn keys_of_laglab_itself_have_a_code_only_if_it_was_asked_for() {
    let mut log = Log::new();
    log.event(0, 1000, LAGLAB_INPUT, 1, 0, &words(&[0]));
    log.event(0, 2000, LAGLAB_INPUT, 1, 0, &words(&[162]));
    // An event reports that a window moves to the front. This event is not an input.
    log.event(0, 3000, LAGLAB_INPUT, 2, 0, &words(&[4]));
    let input = log.tables(&[Table::Input]).input.remove(0);
    assert_eq!(input.time_ns, [100_000, 200_000]);
    let kinds: Vec<_> = input.kind.0.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, ["key_down"; 2]);
    let codes: Vec<_> = input.key_code.iter().collect();
    assert_eq!(codes, [None, Some(162)]);
}

#[test]
fn input_of_both_providers() {
    let mut log = Log::new();
    let key = [words(&[65]), b"A\0".to_vec(), words(&[1, 0])].concat();
    log.event(0, 1, MULTI_INPUT, 404, 0, &key);
    log.event(
        0,
        2,
        MULTI_INPUT,
        403,
        0,
        &words(&[0, (-120i32) as u32, 5, 6]),
    );
    let dispatch = [vec![0], words(&[0x100])].concat();
    log.event(0, 3, WIN32K, 92, 0, &dispatch);
    let input = log.tables(&[Table::Input]).input.remove(0);
    let kinds: Vec<_> = input.kind.0.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, ["key_down", "mouse_wheel", "dispatch_start"]);
    assert_eq!(
        (input.key_code.get(0), input.key.get(0)),
        (Some(65), Some("A"))
    );
    assert_eq!(
        input.wheel_delta.iter().collect::<Vec<_>>(),
        [None, Some(-120), None]
    );
    assert_eq!((input.x.get(1), input.y.get(1)), (Some(5), Some(6)));
    assert_eq!(input.message.get(2), Some(0x100));
    assert_eq!(
        (input.thread_id.get(2), input.process_id.get(2)),
        (Some(8), Some(4))
    );
}

#[test]
fn marks_of_uiforetw_with_their_numbers() {
    let mut log = Log::new();
    let wide: Vec<u8> = "wide\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    log.event(0, 1, MULTI_MAIN, 102, 0, b"plain\0");
    log.event(0, 2, MULTI_MAIN, 114, 0, &wide);
    log.event(
        0,
        3,
        MULTI_MAIN,
        105,
        0,
        &[b"two\0".to_vec(), words(&[7, 8])].concat(),
    );
    let marks = log.tables(&[Table::Marks]).marks.remove(0);
    let texts: Vec<_> = marks.text.iter().flatten().collect();
    assert_eq!(texts, ["plain", "wide", "two"]);
    assert_eq!(
        marks.data.iter().collect::<Vec<_>>(),
        [None, None, Some("7, 8")]
    );
}

#[test]
fn short_payloads_are_told_of() {
    let mut log = Log::new();
    for (provider, id) in [
        (WIN32K, 26),
        (WIN32K, 92),
        (KERNEL_PROCESS, 11),
        (KERNEL_POWER, 95),
    ] {
        log.event(0, 1, provider, id, 0, &[1]);
    }
    let bytes = log.0.finish().unwrap().into_inner();
    let trace = Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap();
    let tables = import_windows::build(&trace, Table::ALL, Options::default()).unwrap();
    let told: u64 = tables.unreadable.iter().map(|of| of.count).sum();
    assert_eq!(told, 4);
    assert!(tables.focus.is_empty() && tables.input.is_empty());
}
