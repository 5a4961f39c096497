//! Tests of packets in events and in capture files. The tests write the events and the files in the public
//! formats.

use std::path::PathBuf;

use etl::write::{ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid, Trace};
use tables::{Cache, Named, Options, Packets, PacketsView, Table};
use testdata::Rng;
#[cfg(target_os = "linux")]
use testdata::memory::{Bound, Forged, check};

const NDIS: &str = "2ed6006e-4729-4609-b423-3ee7bcd678ef";
const PKTMON: &str = "4d4f80d9-c8bd-4d73-bb5b-19c90402c5ac";
const START: u64 = 0x4000_0000;
const END: u64 = 0x8000_0000;
const SEND: u64 = 0x1_0000_0000;
const RECEIVE: u64 = 0x2_0000_0000;
const ETHERNET: u64 = 1;

/// Returns an Ethernet frame with a UDP packet over IPv6. The packet has a DSCP and an ECN. According to RFC
/// 8200, the traffic class is in bits 4 to 11 of the IPv6 header.
fn frame(dscp: u8, ecn: u8) -> Vec<u8> {
    let class = dscp << 2 | ecn;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xDD];
    frame.extend([0x60 | class >> 4, class << 4, 0, 0, 0, 12, 17, 64]);
    frame.extend([&[0xFD; 15][..], &[1]].concat());
    frame.extend([&[0xFD; 15][..], &[2]].concat());
    frame.extend([0x13, 0x88, 0x13, 0x89, 0, 12, 0, 0, b'd', b'a', b't', b'a']);
    frame
}

/// An event. The values are its CPU, time, provider, id, keyword and payload.
type Provided<'e> = (u16, i64, &'e str, u16, u64, Vec<u8>);

/// Returns the packets of a trace of events.
fn packets_of(events: &[Provided<'_>]) -> Packets {
    let session = Session {
        processors: 2,
        ..Session::default()
    };
    let mut log = Writer::new(std::io::Cursor::new(Vec::new()), session).unwrap();
    for (cpu, time, provider, id, keyword, payload) in events {
        let descriptor = Descriptor {
            id: *id,
            keyword: *keyword,
            ..Descriptor::default()
        };
        let event = ProviderEvent {
            provider: provider.parse().unwrap(),
            descriptor,
            time: *time,
            thread_id: 8,
            process_id: 77,
            activity: Guid::ZERO,
            extended: &[],
        };
        log.provider(*cpu, event, payload).unwrap();
    }
    let bytes = log.finish().unwrap().into_inner();
    let trace = Trace::from_sources(vec![("written".into(), Box::new(bytes))]).unwrap();
    let mut tables = import_windows::build(&trace, &[Table::Packets], Options::default()).unwrap();
    assert_eq!(tables.unreadable, []);
    tables.packets.remove(0)
}

fn ndis(fragment: &[u8]) -> Vec<u8> {
    let size = fragment.len() as u32;
    [
        &[7, 0, 0, 0, 9, 0, 0, 0],
        &size.to_le_bytes()[..],
        fragment,
        &[0; 16],
    ]
    .concat()
}

#[test]
fn fragments_make_a_packet() {
    let (sent, received) = (frame(46, 1), frame(8, 0));
    let packets = packets_of(&[
        (0, 1, NDIS, 1001, ETHERNET | SEND | START, ndis(&sent[..20])),
        // The fragments of the other direction do not belong to this packet.
        (
            0,
            2,
            NDIS,
            1001,
            ETHERNET | RECEIVE | START | END,
            ndis(&received),
        ),
        (0, 3, NDIS, 1001, ETHERNET | SEND, ndis(&sent[20..30])),
        (0, 4, NDIS, 1001, ETHERNET | SEND | END, ndis(&sent[30..])),
    ]);
    assert_eq!(packets.time_ns, [200, 400]);
    assert_eq!(
        packets.direction.iter().collect::<Vec<_>>(),
        [Some("receive"), Some("send")]
    );
    assert_eq!(packets.frame.get(0), &received);
    assert_eq!(packets.frame.get(1), &sent);
    assert_eq!(packets.dscp.iter().collect::<Vec<_>>(), [Some(8), Some(46)]);
    assert_eq!(packets.ecn.iter().collect::<Vec<_>>(), [Some(0), Some(1)]);
    // Only sent packets are logged in the context of the process that sends them.
    assert_eq!(
        packets.process_id.iter().collect::<Vec<_>>(),
        [None, Some(77)]
    );
    assert_eq!(packets.length_bytes, [66, 66]);
    assert_eq!(packets.payload_bytes.get(1), Some(4));
    assert_eq!(
        packets.source_address.get(1),
        Some("fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fd01")
    );
    assert_eq!(packets.source_mac.get(1), Some("02:00:00:00:00:02"));
    assert_eq!(
        (packets.source_port.get(1), packets.destination_port.get(1)),
        (Some(5000), Some(5001))
    );
    assert_eq!(
        (packets.protocol.get(1), packets.hop_limit.get(1)),
        (Some(17), Some(64))
    );
    assert_eq!(packets.interface.get(1), Some(7));
}

#[test]
fn packet_monitor_tells_of_cut_packets() {
    let bytes = frame(34, 0);
    let head = |kind: u16, original: u16, logged: u16| -> Vec<u8> {
        let words = [1u16, 1, 2, kind, 5, 1, 0].map(u16::to_le_bytes).concat();
        let drop = [3u32, 4].map(u32::to_le_bytes).concat();
        let sizes = [original, logged].map(u16::to_le_bytes).concat();
        [&99u64.to_le_bytes()[..], &words, &drop, &sizes].concat()
    };
    let cut = [head(1, 1500, 54), bytes[..54].to_vec()].concat();
    let whole = [head(3, 52, 52), bytes[14..].to_vec()].concat();
    let packets = packets_of(&[(0, 1, PKTMON, 160, 0, cut), (0, 2, PKTMON, 170, 0, whole)]);
    assert_eq!(
        (&packets.length_bytes[..], &packets.captured_bytes[..]),
        (&[1500, 52][..], &[54, 52][..])
    );
    assert_eq!(
        packets.dscp.iter().collect::<Vec<_>>(),
        [Some(34), Some(34)]
    );
    assert_eq!(
        packets.link_type.iter().collect::<Vec<_>>(),
        [Some("ethernet"), Some("ip")]
    );
    assert_eq!(
        (packets.packet_id.get(0), packets.drop_reason.get(0)),
        (Some(99), Some(3))
    );
    assert_eq!(packets.interface.get(0), Some(5));
    assert_eq!(
        (packets.source_port.get(0), packets.source_port.get(1)),
        (None, Some(5000))
    );
}

/// Returns a data frame of IEEE 802.11 with the content of an Ethernet frame. `kind` is the first byte of the frame
/// control, and `header` the size of the header in bytes. Bytes 12 and 13 are those of an EtherType, as in the address
/// of some transmitters.
fn wifi(kind: u8, header: usize, ethernet: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0x86, 0xDD, 0x60, 1];
    frame.resize(header, 0);
    frame.extend([0xAA, 0xAA, 3, 0, 0, 0]);
    frame.extend(&ethernet[12..]);
    frame
}

#[test]
fn packets_of_wifi_adapters_have_the_link_layer_of_their_bytes() {
    const WIFI: u64 = 0x1_0000;
    let ipv6 = frame(46, 0);
    let mut tagged = ipv6[..12].to_vec();
    tagged.extend([0x81, 0, 0, 7]);
    tagged.extend(&ipv6[12..]);
    // The receiver's address starts like the frame control of a data frame.
    let mut like_data = ipv6.clone();
    like_data[0] = 0x88;
    let mut arp = ipv6[..12].to_vec();
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    let beacon = [
        &[0x80, 0, 0, 0][..],
        &[0xFF; 6],
        &[2, 0, 0, 0, 0, 1].repeat(2),
    ]
    .concat();
    let pktmon = |bytes: &[u8]| {
        let size = (bytes.len() as u16).to_le_bytes();
        let mut payload = [[0; 14].as_slice(), &[2, 0], &[0; 14]].concat();
        payload.extend([size, size].concat());
        payload.extend(bytes);
        payload
    };
    for (bytes, link, dscp) in [
        (&ipv6, "ethernet", Some(46)),
        (&tagged, "ethernet", Some(46)),
        (&like_data, "ethernet", Some(46)),
        (&arp, "ethernet", None),
        (&wifi(0x08, 24, &ipv6), "802.11", None),
        (&wifi(0x88, 26, &ipv6), "802.11", None),
        (&beacon, "802.11", None),
    ] {
        let packets = packets_of(&[
            (0, 1, PKTMON, 160, 0, pktmon(bytes)),
            (0, 2, NDIS, 1001, WIFI | RECEIVE | START | END, ndis(bytes)),
        ]);
        for row in 0..2 {
            assert_eq!(packets.link_type.get(row), Some(link), "{bytes:x?}");
            assert_eq!(packets.dscp.get(row), dscp, "{bytes:x?}");
        }
    }
}

/// Seconds from 1601 to 1970.
const EPOCH: i64 = 11_644_473_600;
/// Time at which the captures start, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// Writer of integers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.is_big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.is_big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.u32(body.len() as u32 + 12);
        [&self.u32(kind)[..], &length, &body, &length].concat()
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut padded = value.to_vec();
        padded.resize(value.len().next_multiple_of(4), 0);
        [&self.u16(code)[..], &self.u16(value.len() as u16), &padded].concat()
    }

    fn section(self) -> Vec<u8> {
        let versions = [self.u16(1), self.u16(0)].concat();
        self.block(
            0x0A0D_0D0A,
            &[&self.u32(0x1A2B_3C4D)[..], &versions, &[0xFF; 8]].concat(),
        )
    }

    fn interface(self, link: u16, name: &str, resolution: u8) -> Vec<u8> {
        let options = [
            self.option(2, name.as_bytes()),
            self.option(9, &[resolution]),
            vec![0; 4],
        ];
        let head = [&self.u16(link)[..], &[0; 2], &[0; 4]].concat();
        self.block(1, &[head, options.concat()].concat())
    }

    fn packet(self, interface: u32, ticks: u64, flags: u32, length: u32, bytes: &[u8]) -> Vec<u8> {
        let captured = bytes.len() as u32;
        let head = [
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            captured,
            length,
        ];
        let head = head.map(|word| self.u32(word)).concat();
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let options = [self.option(2, &self.u32(flags)), vec![0; 4]].concat();
        self.block(6, &[head, padded, options].concat())
    }

    /// Returns a capture with three packets: an outgoing Ethernet packet at 1.000000003 s after `BEGIN`, an
    /// incoming raw IP packet at 0.5 s, and a truncated packet at 2 s.
    fn capture(self) -> Vec<u8> {
        let (first, second) = (frame(46, 2), frame(10, 0));
        [
            self.section(),
            self.interface(1, "Ethernet", 9),
            // This interface has a time resolution of 2^-10 s.
            self.interface(101, "tun", 0x8A),
            self.packet(0, (BEGIN + 1) * 1_000_000_000 + 3, 2, 66, &first),
            self.packet(1, BEGIN * 1024 + 512, 1, 52, &second[14..]),
            self.packet(0, (BEGIN + 2) * 1_000_000_000, 0, 1400, &first[..54]),
        ]
        .concat()
    }
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("captures");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Calls `check` with the packets of all files.
fn with_packets(files: &[PathBuf], check: impl Fn(&PacketsView<'_>)) {
    let store = imports::open_store(files, Cache::Off).unwrap();
    let table = store.table(Table::Packets, Options::default()).unwrap();
    assert_eq!(table.chunks().len(), 1);
    let batch = table.read_all(0).unwrap();
    check(&PacketsView::new(&batch).unwrap());
}

#[test]
fn captures_of_either_byte_order_stand_alone() {
    for (name, is_big) in [("little.pcapng", false), ("big.pcapng", true)] {
        let path = file(name, &Order { is_big }.capture());
        with_packets(&[path], |packets| {
            // The trace starts with the earliest packet.
            assert_eq!(packets.time_ns, [0, 500_000_003, 1_500_000_000]);
            let text =
                |view: &tables::TextView<'_>| [0, 1, 2].map(|row| view.get(row).map(str::to_owned));
            let some = |text: &str| Some(text.to_owned());
            assert_eq!(
                text(&packets.direction),
                [some("receive"), some("send"), None]
            );
            assert_eq!(
                text(&packets.interface_name),
                [some("tun"), some("Ethernet"), some("Ethernet")]
            );
            assert_eq!(
                text(&packets.link_type),
                [some("ip"), some("ethernet"), some("ethernet")]
            );
            assert_eq!(
                [0, 1, 2].map(|row| packets.dscp.get(row)),
                [Some(10), Some(46), Some(46)]
            );
            assert_eq!(
                [0, 1, 2].map(|row| packets.ecn.get(row)),
                [Some(0), Some(2), Some(2)]
            );
            assert_eq!(packets.length_bytes, [52, 66, 1400]);
            assert_eq!(packets.captured_bytes, [52, 66, 54]);
            assert_eq!(packets.frame.get(1), frame(46, 2));
            assert_eq!(packets.cpu.get(0), None);
        });
    }
}

#[test]
fn old_captures_are_read_too() {
    let order = Order { is_big: true };
    let bytes = frame(26, 3);
    // This file header states times in nanoseconds, version 2.4, and Ethernet.
    let head = [0xA1B2_3C4D, 0x0002_0004, 0, 0, 65_535, 1]
        .map(|word| order.u32(word))
        .concat();
    let at = |second: u64, ns: u32| {
        [second as u32, ns, 66, 66]
            .map(|word| order.u32(word))
            .concat()
    };
    let whole = [head, at(BEGIN, 7), bytes.clone(), at(BEGIN, 1000), bytes].concat();
    with_packets(&[file("old.pcap", &whole)], |packets| {
        // The trace's start is rounded down to a multiple of 100 ns. So the first packet is at 7 ns.
        assert_eq!(packets.time_ns, [7, 1000]);
        assert_eq!(
            (packets.dscp.get(0), packets.ecn.get(1)),
            (Some(26), Some(3))
        );
        assert_eq!(
            packets.source.get(0),
            Some(tables::PacketSource::Pcap.name())
        );
    });
}

#[test]
fn a_capture_beside_a_trace_shares_its_time() {
    let session = Session {
        // The trace starts one second before `BEGIN`.
        start: (EPOCH + BEGIN as i64 - 1) * 10_000_000,
        ..Session::default()
    };
    let mut log = Writer::new(std::io::Cursor::new(Vec::new()), session).unwrap();
    let descriptor = Descriptor {
        id: 1001,
        keyword: ETHERNET | SEND | START | END,
        ..Descriptor::default()
    };
    let event = ProviderEvent {
        provider: NDIS.parse().unwrap(),
        descriptor,
        time: 17_000_000,
        thread_id: 8,
        process_id: 77,
        activity: Guid::ZERO,
        extended: &[],
    };
    log.provider(0, event, &ndis(&frame(0, 0))).unwrap();
    let trace = file("mixed.etl", &log.finish().unwrap().into_inner());
    let capture = file("mixed.pcapng", &Order { is_big: false }.capture());
    with_packets(&[trace, capture], |packets| {
        assert_eq!(
            packets.time_ns,
            [1_500_000_000, 1_700_000_000, 2_000_000_003, 3_000_000_000]
        );
        let sources = [0, 1, 2, 3].map(|row| packets.source.get(row).unwrap());
        assert_eq!(sources, ["pcap", "ndis", "pcap", "pcap"]);
    });
}

#[test]
fn a_capture_alone_reaches_beyond_its_last_packet() {
    let capture = file("alone.pcapng", &Order { is_big: false }.capture());
    let store = imports::open_store(&[capture], Cache::Off).unwrap();
    assert_eq!(store.info().only_table, Some(Table::Packets));
    let table = store.table(Table::Packets, Options::default()).unwrap();
    assert_eq!(table.chunks()[0].last, 1_500_000_000);
    assert_eq!(store.info().end_ns, 1_500_000_100);
}

#[test]
fn damaged_captures_are_survived() {
    let mut random = Rng(3);
    let good = [
        Order { is_big: false }.capture(),
        Order { is_big: true }.capture(),
    ]
    .concat();
    for _ in 0..500 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(8) {
            let at = 4 + random.below(bytes.len() - 4);
            bytes[at] = [0, 0xFF, 0x80, random.bits() as u8][random.below(4)];
        }
        bytes.truncate(4 + random.below(bytes.len() - 3));
        let path = file("damaged.pcapng", &bytes);
        if let Ok(store) = imports::open_store(&[path], Cache::Off) {
            let table = store.table(Table::Packets, Options::default()).unwrap();
            assert!(table.rows() <= 6);
        }
    }
}

/// Bound of the memory for reading any capture. A packet without data has 48 bytes in a file, and a row with 40 columns and
/// up to 256 characters of its interface's name.
#[cfg(target_os = "linux")]
const BOUND: Bound = Bound {
    base: 100 << 20,
    per_byte: 40,
};

#[cfg(target_os = "linux")]
#[test]
fn memory_grows_only_with_the_size_of_a_forged_capture() {
    let order = Order { is_big: false };
    let forged = |name, blocks: Vec<Vec<u8>>| Forged {
        name,
        file: "forged.pcapng",
        bytes: [vec![order.section()], blocks].concat().concat(),
        expanded: 0,
        opens: true,
    };
    let interfaces = |count: u32| (0..count).map(|id| order.interface(1, &id.to_string(), 6));
    let packets = |count: u64| (0..count).map(|time| order.packet(0, time, 0, 0, &[]));
    check(
        "packets::memory_grows_only_with_the_size_of_a_forged_capture",
        BOUND,
        |path| crate::memory::make(path, Table::ALL),
        || {
            let long_name = order.interface(1, &"x".repeat(60_000), 6);
            let length = (1_u32 << 30).to_le_bytes();
            vec![
                forged("interfaces", interfaces(400_000).collect()),
                forged("packets", interfaces(1).chain(packets(300_000)).collect()),
                forged(
                    "packets of an interface with a long name",
                    std::iter::once(long_name).chain(packets(300_000)).collect(),
                ),
                forged("sections", vec![order.section(); 400_000]),
                forged(
                    "length of a block",
                    vec![[&6_u32.to_le_bytes()[..], &length, &[0; 64]].concat()],
                ),
            ]
        },
    );
}
