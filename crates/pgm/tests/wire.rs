//! Checks that packets are parsed and written in the layout of RFC 3208, and that all other input
//! is rejected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pgm::wire::{
    Ack, BackOffInterval, BackOffRange, Body, CongestionData, CongestionFeedback, CongestionReport,
    Data, Dialect, Fragment, Gsi, Nak, NakList, Options, Packet, ParityParameters, Poll, Polr,
    Reset, Spm, Sqn, Tsi, WireError, checksum,
};
use testdata::Rng;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));

fn packet<'a>(body: Body, options: Options<'a>, payload: &'a [u8]) -> Packet<'a> {
    let (data_source, data_destination) = (0xabcd, 7500);
    let up = body.is_upstream();
    Packet {
        source_port: if up { data_destination } else { data_source },
        destination_port: if up { data_source } else { data_destination },
        gsi: Gsi([1, 2, 3, 4, 5, 6]),
        parity: false,
        variable_length: false,
        body,
        options,
        payload,
    }
}

fn write(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.write(Dialect::Rfc3208, &mut bytes);
    bytes
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|two| digit(two[0]) << 4 | digit(two[1]))
        .collect()
}

/// Returns the bytes of a packet with its checksum set to zero. Separate tests check the checksum.
fn written(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = write(packet);
    assert_eq!(&Packet::parse(&bytes, Dialect::Rfc3208).unwrap(), packet);
    bytes[6..8].fill(0);
    bytes
}

/// Checks packets against bytes that were written by hand from the tables of RFC 3208 section 8.
#[test]
fn layouts() {
    let spm = Body::Spm(Spm {
        sqn: Sqn(3),
        trail: Sqn(0),
        lead: Sqn(0xffff_ffff),
        path: SOURCE,
    });
    assert_eq!(
        written(&packet(spm, Options::default(), b"")),
        hex("abcd 1d4c 00 00 0000 010203040506 0000
             00000003 00000000 ffffffff 0001 0000 0a4d0001")
    );
    let odata = Body::Odata(Data {
        sqn: Sqn(0x0102_0304),
        trail: Sqn(0x0102_0300),
    });
    let options = Options {
        fragment: Some(Fragment {
            first: Sqn(0x0102_0303),
            offset: 1428,
            length: 2000,
        }),
        syn: true,
        ..Options::default()
    };
    assert_eq!(
        written(&packet(odata, options, b"hello")),
        hex("abcd 1d4c 04 01 0000 010203040506 0005
             01020304 01020300
             00 04 0018  01 10 00 00 01020303 00000594 000007d0  8d 04 00 00  68656c6c6f")
    );
    let mut room = [0; 248];
    let nak = Body::Nak(Nak {
        sqn: Sqn(7),
        source: SOURCE,
        group: GROUP,
    });
    let options = Options {
        nak_list: Some(NakList::new(&[Sqn(8), Sqn(10)], &mut room)),
        ..Options::default()
    };
    assert_eq!(
        written(&packet(nak, options, b"")),
        hex("1d4c abcd 08 03 0000 010203040506 0000
             00000007 0001 0000 0a4d0001 0001 0000 efc00001
             00 04 0010  82 0c 00 00 00000008 0000000a")
    );
    let ack = Body::Ack(Ack {
        highest: Sqn(9),
        bitmap: 0xffff_fffd,
    });
    let options = Options {
        congestion_feedback: Some(CongestionFeedback {
            timestamp: 0x11,
            loss: 0x22,
            receiver: SOURCE,
        }),
        ..Options::default()
    };
    assert_eq!(
        written(&packet(ack, options, b"")),
        hex("1d4c abcd 0d 01 0000 010203040506 0000 00000009 fffffffd
             00 04 0014  93 10 00 00 00000011 0001 0022 0a4d0001")
    );
}

/// Checks the size in bytes of each packet type, over IPv4 and over IPv6.
#[test]
fn sizes() {
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    for (address, sizes) in [
        (SOURCE, [36, 24, 24, 36, 36, 36, 16, 44, 24, 24]),
        (v6, [48, 24, 24, 60, 60, 60, 16, 56, 24, 24]),
    ] {
        let mut rng = Rng(1);
        for (code, size) in [0, 4, 5, 8, 9, 10, 12, 1, 2, 13].into_iter().zip(sizes) {
            let body = body(&mut rng, code, address);
            assert_eq!(body.code(), code);
            let bytes = write(&packet(body, Options::default(), b""));
            assert_eq!(bytes.len(), size, "of {body:?}");
        }
    }
}

#[test]
fn the_session_of_a_packet_is_that_of_its_source() {
    let tsi = Tsi {
        gsi: Gsi([1, 2, 3, 4, 5, 6]),
        port: 0xabcd,
    };
    let mut rng = Rng(1);
    for code in CODES {
        let body = body(&mut rng, code, SOURCE);
        assert_eq!(packet(body, Options::default(), b"").tsi(), tsi);
    }
    assert_eq!(tsi.to_string(), "1.2.3.4.5.6.43981");
}

const CODES: [u8; 10] = [0, 1, 2, 4, 5, 8, 9, 10, 12, 13];

fn body(rng: &mut Rng, code: u8, address: IpAddr) -> Body {
    let sqn = Sqn(rng.bits() as u32);
    let data = Data {
        sqn,
        trail: Sqn(rng.bits() as u32),
    };
    let nak = Nak {
        sqn,
        source: address,
        group: address,
    };
    match code {
        0 => Body::Spm(Spm {
            sqn,
            trail: data.trail,
            lead: Sqn(rng.bits() as u32),
            path: address,
        }),
        1 => Body::Poll(Poll {
            sqn,
            round: rng.bits() as u16,
            sub_type: rng.bits() as u16,
            path: address,
            back_off: rng.bits() as u32,
            random: rng.bits() as u32,
            mask: rng.bits() as u32,
        }),
        2 => Body::Polr(Polr {
            sqn,
            round: rng.bits() as u16,
        }),
        4 => Body::Odata(data),
        5 => Body::Rdata(data),
        8 => Body::Nak(nak),
        9 => Body::Nnak(nak),
        10 => Body::Ncf(nak),
        12 => Body::Spmr,
        _ => Body::Ack(Ack {
            highest: sqn,
            bitmap: rng.bits() as u32,
        }),
    }
}

fn address(rng: &mut Rng) -> IpAddr {
    if rng.bits() & 1 == 0 {
        IpAddr::from((rng.bits() as u32).to_be_bytes())
    } else {
        IpAddr::from((u128::from(rng.bits()) << 64 | u128::from(rng.bits())).to_be_bytes())
    }
}

/// Returns random options. Each option is included with a probability of 1/8, so that more than
/// sixteen options are very unlikely.
fn options<'a>(
    rng: &mut Rng,
    parity_data: bool,
    list: &'a [Sqn],
    room: &'a mut [u8; 248],
) -> Options<'a> {
    fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
        rng.below(8).eq(&0).then(|| make(rng))
    }
    let word = |rng: &mut Rng| rng.bits() as u32;
    Options {
        fragment: maybe(rng, |rng| Fragment {
            first: Sqn(word(rng)),
            offset: word(rng),
            length: word(rng),
        })
        .filter(|_| !parity_data),
        encoded_fragment: maybe(rng, |rng| [rng.bits() as u8; 13]).filter(|_| parity_data),
        nak_list: maybe(rng, |_| NakList::new(list, room)),
        join: maybe(rng, |rng| Sqn(word(rng))),
        back_off_interval: maybe(rng, |rng| BackOffInterval {
            interval: word(rng),
            poll: Sqn(word(rng)),
        }),
        back_off_range: maybe(rng, |rng| BackOffRange {
            max: word(rng),
            min: word(rng),
        }),
        redirect: maybe(rng, address),
        parity: maybe(rng, |rng| ParityParameters {
            proactive: rng.bits() & 1 == 0,
            on_demand: rng.bits() & 1 == 0,
            group_size: 2 << rng.below(7),
        }),
        parity_group: maybe(rng, word),
        current_group_size: maybe(rng, word),
        neighbour_unreachable: rng.below(8) == 0,
        path: maybe(rng, address),
        syn: rng.below(8) == 0,
        fin: rng.below(8) == 0,
        reset: maybe(rng, |rng| Reset {
            no_repairs: rng.bits() & 1 == 0,
            code: rng.below(64) as u8,
        }),
        congestion_report: maybe(rng, |rng| CongestionReport {
            kinds: rng.below(8) as u8,
            reference: Sqn(word(rng)),
            worst_link: rng.bits() as u16,
            worst_path: rng.bits() as u16,
            worst_receiver: rng.bits() as u16,
            receiver: address(rng),
        }),
        congestion_request: maybe(rng, |rng| rng.below(8) as u8),
        congestion_data: maybe(rng, |rng| CongestionData {
            timestamp: word(rng),
            acker: address(rng),
        }),
        congestion_feedback: maybe(rng, |rng| CongestionFeedback {
            timestamp: word(rng),
            loss: rng.bits() as u16,
            receiver: address(rng),
        }),
    }
}

/// Calls `check` with each of 20,000 random packets.
fn each_random_packet(check: impl Fn(&mut Rng, &Packet<'_>, Dialect)) {
    let mut rng = Rng(3208);
    for _ in 0..20_000 {
        let address = address(&mut rng);
        let code = CODES[rng.below(CODES.len())];
        let body = body(&mut rng, code, address);
        let parity = rng.bits() & 1 == 0;
        let list: Vec<Sqn> = (0..rng.below(63)).map(|_| Sqn(rng.bits() as u32)).collect();
        let mut room = [0; 248];
        let options = options(&mut rng, parity && body.is_data(), &list, &mut room);
        let payload: Vec<u8> = (0..rng.below(40)).map(|_| rng.bits() as u8).collect();
        let dialect = [Dialect::Rfc3208, Dialect::OpenPgm][rng.below(2)];
        let packet = Packet {
            parity,
            variable_length: rng.bits() & 1 == 0,
            ..packet(body, options, &payload)
        };
        check(&mut rng, &packet, dialect);
    }
}

#[test]
fn written_packets_parse_to_the_same() {
    each_random_packet(|_, packet, dialect| {
        let mut bytes = vec![0xee; 3];
        packet.write(dialect, &mut bytes);
        assert_eq!(Packet::parse(&bytes[3..], dialect).as_ref(), Ok(packet));
    });
}

#[test]
fn truncated_packets_are_rejected() {
    each_random_packet(|rng, packet, dialect| {
        let mut bytes = Vec::new();
        packet.write(dialect, &mut bytes);
        bytes.truncate(rng.below(bytes.len()));
        assert!(Packet::parse(&bytes, dialect).is_err());
    });
}

/// Damages packets and corrects their checksums. If a damaged packet can still be parsed, checks that writing
/// it and parsing it again gives the same result.
#[test]
fn damaged_packets_round_trip() {
    each_random_packet(|rng, packet, dialect| {
        let mut bytes = Vec::new();
        packet.write(dialect, &mut bytes);
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.bits() as u8;
        }
        bytes[6..8].fill(0);
        let sum = checksum(&bytes);
        bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        if let Ok(read) = Packet::parse(&bytes, dialect) {
            let mut again = Vec::new();
            read.write(dialect, &mut again);
            assert_eq!(Packet::parse(&again, dialect), Ok(read));
        }
    });
}

#[test]
fn the_checksum_detects_any_single_bit_error() {
    let data = Body::Odata(Data {
        sqn: Sqn(5),
        trail: Sqn(1),
    });
    let bytes = write(&packet(data, Options::default(), b"payload"));
    for bit in 0..8 * bytes.len() {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(
            Packet::parse(&wrong, Dialect::Rfc3208).is_err(),
            "bit {bit}"
        );
    }
}

#[test]
fn only_data_needs_a_checksum() {
    let data = Body::Rdata(Data {
        sqn: Sqn(5),
        trail: Sqn(1),
    });
    for (body, result) in [(data, Err(WireError::NoChecksum)), (Body::Spmr, Ok(()))] {
        let mut bytes = write(&packet(body, Options::default(), b""));
        bytes[6..8].fill(0);
        assert_eq!(Packet::parse(&bytes, Dialect::Rfc3208).map(|_| ()), result);
    }
}

/// Checks the two bits in which OpenPGM differs from RFC 3208. In the parity option, the bit 0x02 means
/// proactive parity in RFC 3208, but parity on demand in OpenPGM. The bit that marks an option as FEC-encoded
/// is 0x04 in RFC 3208, but 0x08 in OpenPGM.
#[test]
fn openpgm_differs_in_two_bits() {
    let spm = hex("abcd 1d4c 00 03 0000 010203040506 0000
                   00000003 00000000 ffffffff 0001 0000 0a4d0001
                   00 04 000c  88 08 2e 02 00000008");
    let parity = |dialect| {
        let parameters = Packet::parse(&spm, dialect)
            .unwrap()
            .options
            .parity
            .unwrap();
        (
            parameters.proactive,
            parameters.on_demand,
            parameters.group_size,
        )
    };
    assert_eq!(parity(Dialect::Rfc3208), (true, false, 8));
    assert_eq!(parity(Dialect::OpenPgm), (false, true, 8));

    let encoded = Packet {
        parity: true,
        ..packet(
            Body::Rdata(Data {
                sqn: Sqn(8),
                trail: Sqn(0),
            }),
            Options {
                encoded_fragment: Some([0x80; 13]),
                ..Options::default()
            },
            b"",
        )
    };
    for (dialect, bit) in [(Dialect::Rfc3208, 0x04), (Dialect::OpenPgm, 0x08)] {
        let mut bytes = Vec::new();
        encoded.write(dialect, &mut bytes);
        assert_eq!(bytes[24 + 4 + 2], bit);
    }
}

#[test]
fn errors_describe_the_problem() {
    let cases = [
        (
            "abcd 1d4c 40 00 0000 010203040506 0000",
            WireError::Version(1),
        ),
        ("abcd 1d4c 07 00 0000 010203040506 0000", WireError::Type(7)),
        (
            "abcd 1d4c 0c 00 0000 010203040506 0001",
            WireError::PayloadLength {
                announced: 1,
                found: 0,
            },
        ),
        (
            "abcd 1d4c 0c 01 0000 010203040506 0000  8d 04 0000",
            WireError::NoOptionsLength {
                offset: 16,
                found: 0x0d,
            },
        ),
        (
            "abcd 1d4c 0c 01 0000 010203040506 0000  00 04 0008  0d 04 0000",
            WireError::Short {
                what: "an option",
                offset: 24,
                needed: 1,
                found: 0,
            },
        ),
        (
            "abcd 1d4c 0c 01 0000 010203040506 0000  00 04 0008  83 04 0000",
            WireError::Short {
                what: "a join option",
                offset: 24,
                needed: 4,
                found: 0,
            },
        ),
        (
            "abcd 1d4c 0c 01 0000 010203040506 0000  00 04 000c  88 08 0000 00000003",
            WireError::GroupSize(3),
        ),
        (
            "abcd 1d4c 00 00 0000 010203040506 0000
             00000003 00000000 ffffffff 0003 0000 0a4d0001",
            WireError::AddressFamily {
                offset: 28,
                found: 3,
            },
        ),
    ];
    for (bytes, error) in cases {
        assert_eq!(Packet::parse(&hex(bytes), Dialect::Rfc3208), Err(error));
    }
}
