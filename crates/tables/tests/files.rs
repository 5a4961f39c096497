//! Tests of file names, file operations, network traffic and priorities. Some tests write traces. Other tests
//! compare real traces with the dump of another trace reader.

use std::collections::BTreeMap;
use std::io::Cursor;

use etl::Trace;
use etl::write::{KernelEvent, Session, Writer};
use tables::{Named, Options, Table, Tables};

const WANTED: [Table; 5] = [
    Table::FileIo,
    Table::DiskIo,
    Table::HardFaults,
    Table::Network,
    Table::Priorities,
];

/// Writer of a trace of two CPUs. One tick is 100 ns.
struct Log(Writer<Cursor<Vec<u8>>>);

impl Log {
    fn new() -> Log {
        let session = Session {
            processors: 2,
            ..Session::default()
        };
        Log(Writer::new(Cursor::new(Vec::new()), session).unwrap())
    }

    fn event(&mut self, cpu: u16, time: i64, hook: u16, version: u8, payload: &[&[u8]]) {
        let event = KernelEvent {
            hook,
            version,
            time,
            thread: Some((11, 5)),
        };
        self.0.kernel(cpu, event, &payload.concat()).unwrap();
    }

    fn name(&mut self, time: i64, hook: u16, key: u64, path: &str) {
        let path: Vec<u8> = path
            .encode_utf16()
            .chain([0])
            .flat_map(u16::to_le_bytes)
            .collect();
        self.event(0, time, hook, 2, &[&key.to_le_bytes(), &path]);
    }

    /// Adds a read event of version 3.
    fn read(&mut self, time: i64, irp: u64, key: u64, offset: u64, size: u32) {
        let numbers = [offset, irp, 0xF0, key].map(u64::to_le_bytes).concat();
        let rest = [11, size, 0].map(u32::to_le_bytes).concat();
        self.event(0, time, 0x0443, 3, &[&numbers, &rest]);
    }

    fn end(&mut self, cpu: u16, time: i64, irp: u64, moved: u64, status: u32) {
        let numbers = [irp, moved].map(u64::to_le_bytes).concat();
        self.event(cpu, time, 0x044C, 3, &[&numbers, &status.to_le_bytes()]);
    }

    fn tables(self) -> Tables {
        let bytes = self.0.finish().unwrap().into_inner();
        let trace = Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap();
        let tables = import_windows::build(&trace, &WANTED, Options::default()).unwrap();
        assert_eq!(tables.unreadable, []);
        tables
    }
}

#[test]
fn keys_mean_files_from_their_creation_until_they_get_another() {
    let mut log = Log::new();
    // Key 1 is created, deleted and created again. Key 2 is only reported at the end of the trace. Key 3 is
    // used before it is created, so its first use has no name.
    let begin = |log: &mut Log, time: i64, key: u64| {
        let irp = key << 32 | time as u64;
        log.read(time, irp, key, 0, 1);
        log.end(0, time + 1, irp, 1, 0);
    };
    begin(&mut log, 50, 1);
    begin(&mut log, 60, 2);
    begin(&mut log, 70, 3);
    log.name(100, 0x0420, 1, r"\first");
    begin(&mut log, 200, 1);
    log.name(300, 0x0423, 1, r"\first");
    begin(&mut log, 400, 1);
    log.name(500, 0x0420, 1, r"\second");
    begin(&mut log, 550, 1);
    log.name(600, 0x0420, 3, r"\third");
    begin(&mut log, 700, 3);
    log.name(900, 0x0424, 2, r"\there");
    let tables = log.tables();
    let rows = &tables.file_io[0];
    let found: BTreeMap<(u64, i64), Option<&str>> = (0..rows.len())
        .map(|row| {
            let key = rows.file_key.get(row).unwrap();
            ((key, rows.start_ns[row] / 100), rows.path.get(row))
        })
        .collect();
    let expected = [
        ((1, 50), None),
        ((1, 200), Some(r"\first")),
        ((1, 400), Some(r"\first")),
        ((1, 550), Some(r"\second")),
        ((2, 60), Some(r"\there")),
        ((3, 70), None),
        ((3, 700), Some(r"\third")),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn operations_end_with_their_packet() {
    let mut log = Log::new();
    log.read(100, 7, 1, 4096, 512);
    log.end(1, 150, 7, 512, 0);
    // Request packet 8 is reused, so its first operation has no end. The operation of request packet 9 has
    // not ended at the end of the trace.
    log.read(200, 8, 1, 0, 1);
    log.read(300, 8, 1, 8, 2);
    log.end(0, 350, 8, 0, 0xC000_0011);
    log.read(400, 9, 1, 16, 3);
    let tables = log.tables();
    let rows = &tables.file_io[0];
    assert_eq!(rows.start_ns, [10_000, 20_000, 30_000, 40_000]);
    let ends: Vec<_> = rows.end_ns.iter().collect();
    assert_eq!(ends, [Some(15_000), None, Some(35_000), None]);
    let durations: Vec<_> = rows.duration_ns.iter().collect();
    assert_eq!(durations, [Some(5000), None, Some(5000), None]);
    assert_eq!(rows.status.get(2), Some(0xC000_0011));
    assert_eq!((rows.result.get(0), rows.result.get(1)), (Some(512), None));
    assert_eq!(
        (rows.offset_bytes.get(0), rows.size_bytes.get(0)),
        (Some(4096), Some(512))
    );
    assert!(rows.operation.0.iter().all(|kind| kind.name() == "read"));
    assert_eq!(rows.thread_id, [11; 4]);
}

#[test]
fn priorities_of_all_kinds() {
    let mut log = Log::new();
    let thread = 77u32.to_le_bytes();
    log.event(0, 1, 0x0530, 3, &[&thread, &[8, 15, 0, 0]]);
    log.event(0, 2, 0x0531, 3, &[&thread, &[8, 10, 12, 0]]);
    log.event(
        0,
        3,
        0x0535,
        2,
        &[&0xF0u64.to_le_bytes(), &thread, &[1, 0, 0, 0]],
    );
    log.event(0, 4, 0x053C, 2, &[&thread, &[3, 0, 4, 0]]);
    log.event(0, 5, 0x053D, 2, &[&thread, &[1, 0, 6, 0, 9, 1, 2, 0]]);
    log.event(
        0,
        6,
        0x0542,
        2,
        &[&0xABu64.to_le_bytes(), &thread, &[13, 8, 0x21, 2]],
    );
    log.event(
        0,
        7,
        0x0543,
        2,
        &[&0xABu64.to_le_bytes(), &thread, &[3, 0, 0, 0]],
    );
    let tables = log.tables();
    let rows = &tables.priorities[0];
    let kinds: Vec<_> = rows.kind.0.iter().map(|kind| kind.name()).collect();
    let expected = [
        "priority",
        "base_priority",
        "affinity",
        "anti_starvation_boost",
        "migration",
        "auto_boost_set_floor",
        "auto_boost_clear_floor",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(rows.thread_id, [77; 7]);
    assert_eq!(rows.by_thread_id.get(0), Some(11));
    assert_eq!(
        (rows.old_priority.get(0), rows.new_priority.get(0)),
        (Some(8), Some(15))
    );
    assert_eq!(
        (rows.dynamic_priority.get(0), rows.dynamic_priority.get(1)),
        (None, Some(12))
    );
    assert_eq!(
        (rows.affinity.get(2), rows.processor_group.get(2)),
        (Some(0xF0), Some(1))
    );
    assert_eq!(
        (rows.old_cpu.get(3), rows.old_priority.get(3)),
        (Some(3), Some(4))
    );
    assert_eq!(
        (rows.old_cpu.get(4), rows.new_cpu.get(4)),
        (Some(1), Some(6))
    );
    assert_eq!(
        (
            rows.old_ideal_cpu.get(4),
            rows.ideal_processor_adjusted.get(4)
        ),
        (Some(2), Some(true))
    );
    assert_eq!(
        (rows.old_io_priority.get(5), rows.new_io_priority.get(5)),
        (Some(2), Some(1))
    );
    assert_eq!((rows.lock.get(6), rows.flags.get(6)), (Some(0xAB), Some(3)));
}

/// Returns the lines of the dump about one kind of event. Each element has the time in milliseconds and the
/// fields.
fn lines(dump: &str, kind: &str) -> Vec<(f64, BTreeMap<String, String>)> {
    let start = format!(": Windows Kernel/{kind} ");
    dump.lines()
        .filter_map(|line| {
            let (time, fields) = line.strip_prefix("EVENT ")?.split_once(&start)?;
            let fields = fields.split("; ").filter_map(|field| field.split_once('='));
            let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Some((time.replace(',', "").parse().ok()?, fields.collect()))
        })
        .collect()
}

fn read(relative: &str) -> Tables {
    let bytes = testdata::bytes(relative);
    let trace = Trace::from_sources(vec![(relative.into(), Box::new(bytes))]).unwrap();
    import_windows::build(&trace, &WANTED, Options::default()).unwrap()
}

fn is_at(ms: f64, ns: i64) -> bool {
    (ms - ns as f64 / 1e6).abs() < 0.000_51
}

/// Returns true if the path `dumped` in the dump means the path `path`. The dump may shorten a path.
fn is_path(dumped: &str, path: Option<&str>) -> bool {
    match dumped.strip_suffix("...") {
        Some(start) => path.is_some_and(|path| path.starts_with(start)),
        None => path.unwrap_or_default() == dumped,
    }
}

#[test]
fn real_requests_and_faults_have_their_files() {
    let dump = testdata::bytes("etl/golden/net.4.5.2.x64.baseline.txt");
    let dump = String::from_utf8_lossy(&dump);
    let tables = read("etl/perfview__net.4.5.2.x64.etl");
    let mut named = 0;
    for kind in ["DiskIO/Read", "DiskIO/Write"] {
        for (ms, fields) in lines(&dump, kind) {
            let rows = tables.disk_io.iter();
            let found = rows
                .flat_map(|of| (0..of.len()).map(move |row| (of.time_ns[row], of.path.get(row))))
                .find(|(time, path)| is_at(ms, *time) && is_path(&fields["FileName"], *path));
            assert!(found.is_some(), "{kind} at {ms} ms: {}", fields["FileName"]);
            named += usize::from(!fields["FileName"].is_empty());
        }
    }
    for (ms, fields) in lines(&dump, "Memory/HardFault") {
        let rows = tables.hard_faults.iter();
        let found = rows
            .flat_map(|of| (0..of.len()).map(move |row| (of.time_ns[row], of.path.get(row))))
            .find(|(time, path)| is_at(ms, *time) && is_path(&fields["FileName"], *path));
        assert!(found.is_some(), "fault at {ms} ms: {}", fields["FileName"]);
        named += usize::from(!fields["FileName"].is_empty());
    }
    assert!(named >= 5, "{named}");
}

#[test]
fn real_traffic_is_what_another_reader_sees() {
    let mut seen = 0;
    for (trace, dump) in [
        (
            "etl/perfview__net.4.5.2.x64.etl",
            "etl/golden/net.4.5.2.x64.baseline.txt",
        ),
        (
            "etl/perfview__net.4.5.x86-win7.etl",
            "etl/golden/net.4.5.x86-win7.baseline.txt",
        ),
    ] {
        let dump = testdata::bytes(dump);
        let dump = String::from_utf8_lossy(&dump);
        let tables = read(trace);
        for (kind, transport, action) in [
            ("TcpIp/SendIPV6", "tcp", "send"),
            ("TcpIp/RecvIPV6", "tcp", "receive"),
            ("TcpIp/DisconnectIPV6", "tcp", "disconnect"),
            ("TcpIp/AcceptIPV6", "tcp", "accept"),
            ("TcpIp/TCPCopyIPV6", "tcp", "copy"),
            ("UdpIp/Send", "udp", "send"),
            ("UdpIp/Recv", "udp", "receive"),
            ("UdpIp/SendIPV6", "udp", "send"),
            ("UdpIp/RecvIPV6", "udp", "receive"),
        ] {
            for (ms, fields) in lines(&dump, kind) {
                let number = |name: &str| fields[name].replace(',', "").parse::<u32>().unwrap();
                let (port, other) = (number("sport") as u16, number("dport") as u16);
                // For a received UDP datagram, the destination is this machine.
                let is_turned = transport == "udp" && action == "receive";
                let (local, remote) = if is_turned {
                    (other, port)
                } else {
                    (port, other)
                };
                // The dump has no addresses for UDP over IPv6.
                let (from, to) = (fields.get("saddr"), fields.get("daddr"));
                let (local_ip, remote_ip) = if is_turned { (to, from) } else { (from, to) };
                let is_row = |of: &tables::Network, row: usize| {
                    is_at(ms, of.time_ns[row])
                        && of.transport.0[row].name() == transport
                        && of.action.0[row].name() == action
                        && of.size_bytes[row] == number("size")
                        && (of.local_port[row], of.remote_port[row]) == (local, remote)
                        && local_ip.is_none_or(|ip| is_path(ip, of.local_address.get(row)))
                        && remote_ip.is_none_or(|ip| is_path(ip, of.remote_address.get(row)))
                };
                let found =
                    (tables.network.iter()).any(|of| (0..of.len()).any(|row| is_row(of, row)));
                assert!(found, "{trace}: {kind} at {ms} ms: {fields:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
