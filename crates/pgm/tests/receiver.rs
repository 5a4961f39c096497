//! Tests a receiver with constructed packets: its events and the packets that it sends.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use pgm::{
    Destination, Event, Order, Receiver, ReceiverConfig, Time,
    fec::Code,
    wire::{
        BackOffInterval, Body, CongestionData, Data, Dialect, Fragment, Gsi, Nak, NakList, Options,
        Packet, ParityParameters, Poll, Reset, Spm, Sqn, Tsi,
    },
};

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));
const TSI: Tsi = Tsi {
    gsi: Gsi([1, 2, 3, 4, 5, 6]),
    port: 40_000,
};
const TRAIL: Sqn = Sqn(1000);

fn packet(body: Body) -> Packet<'static> {
    let up = body.is_upstream();
    Packet {
        source_port: if up { 7500 } else { TSI.port },
        destination_port: if up { TSI.port } else { 7500 },
        gsi: TSI.gsi,
        parity: false,
        variable_length: false,
        body,
        options: Options::default(),
        payload: b"",
    }
}

fn data(sqn: u32) -> Data {
    Data {
        sqn: Sqn(sqn),
        trail: TRAIL,
    }
}

fn odata(sqn: u32) -> Packet<'static> {
    Packet {
        payload: b"data",
        ..packet(Body::Odata(data(sqn)))
    }
}

fn rdata(sqn: u32) -> Packet<'static> {
    Packet {
        payload: b"data",
        ..packet(Body::Rdata(data(sqn)))
    }
}

fn spm(sqn: u32, lead: u32) -> Packet<'static> {
    packet(Body::Spm(Spm {
        sqn: Sqn(sqn),
        trail: TRAIL,
        lead: Sqn(lead),
        path: SOURCE,
    }))
}

fn about(sqn: u32) -> Nak {
    Nak {
        sqn: Sqn(sqn),
        source: SOURCE,
        group: GROUP,
    }
}

fn ncf(sqn: u32) -> Packet<'static> {
    packet(Body::Ncf(about(sqn)))
}

fn parity_parameters(proactive: bool, on_demand: bool) -> Options<'static> {
    Options {
        parity: Some(ParityParameters {
            proactive,
            on_demand,
            group_size: 4,
        }),
        ..Options::default()
    }
}

/// Returns a configuration in which all times differ, so that tests can distinguish them.
fn config() -> ReceiverConfig {
    ReceiverConfig {
        back_off: Duration::from_millis(10),
        confirmation: Duration::from_millis(100),
        repair: Duration::from_millis(200),
        spm_back_off: Duration::from_millis(250),
        spm_repeat: Duration::from_millis(500),
        ..ReceiverConfig::new(OWN, GROUP)
    }
}

struct Script {
    receiver: Receiver,
    now: Time,
}

impl Script {
    fn new(config: ReceiverConfig) -> Script {
        Script {
            receiver: Receiver::new(config).unwrap(),
            now: Time(0),
        }
    }

    /// Returns a receiver that knows the source and misses no packet up to number 999.
    fn begun(config: ReceiverConfig, options: Options<'_>) -> Script {
        let mut script = Script::new(config);
        script.receive(Packet {
            options,
            ..spm(0, 999)
        });
        script
    }

    /// Receives old data packets, so that the limit on bytes sent to the source allows many
    /// requests.
    fn receive_much(&mut self) {
        for _ in 0..4 {
            self.receive(Packet {
                payload: &[0; 4_096],
                ..rdata(990)
            });
        }
    }

    fn receive(&mut self, packet: Packet<'_>) {
        // The packet is written and parsed again, as on a network.
        let mut bytes = Vec::new();
        packet.write(Dialect::Rfc3208, &mut bytes);
        let packet = Packet::parse(&bytes, Dialect::Rfc3208).unwrap();
        self.receiver.handle(self.now, SOURCE, &packet);
    }

    fn receive_all(&mut self, packets: impl IntoIterator<Item = Packet<'static>>) {
        for packet in packets {
            self.receive(packet);
        }
    }

    /// Advances the time. Returns the packets that the receiver sends, with their times in
    /// milliseconds.
    fn wait(&mut self, milliseconds: u64) -> Vec<(u64, String)> {
        let end = Time(self.now.0 + milliseconds * 1_000_000);
        let mut sent = Vec::new();
        loop {
            let mut bytes = Vec::new();
            while let Some(transmit) = self.receiver.poll_transmit(self.now, &mut bytes) {
                let packet = Packet::parse(&bytes, Dialect::Rfc3208).unwrap();
                sent.push((self.now.0 / 1_000_000, name(&packet, transmit.to)));
                bytes.clear();
            }
            match self.receiver.timeout() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
        }
        self.now = end;
        sent
    }

    /// Returns the names of the packets that the receiver sends in the next `milliseconds` milliseconds.
    fn sent_within(&mut self, milliseconds: u64) -> Vec<String> {
        let sent = self.wait(milliseconds).into_iter();
        sent.map(|(_, name)| name).collect()
    }

    fn events(&mut self) -> Vec<String> {
        let now = self.now;
        std::iter::from_fn(|| self.receiver.poll_event(now))
            .map(|event| match event {
                Event::Message { sqn, payload, .. } => {
                    format!("{} {}", sqn.0, String::from_utf8_lossy(&payload))
                }
                Event::Lost { first, packets, .. } => format!("lost {packets} from {}", first.0),
                Event::Reset { reset, .. } => format!("reset {}", reset.code),
                Event::Finished { .. } => "finished".to_owned(),
                Event::Expired { .. } => "expired".to_owned(),
            })
            .collect()
    }
}

fn name(packet: &Packet<'_>, to: Destination) -> String {
    assert_eq!(
        (packet.source_port, packet.destination_port),
        (7500, TSI.port)
    );
    let parity = if packet.parity { "parity " } else { "" };
    match packet.body {
        Body::Nak(nak) => {
            assert_eq!((nak.source, nak.group), (SOURCE, GROUP));
            assert_eq!(to, Destination::Unicast(SOURCE));
            let list = packet.options.nak_list.into_iter();
            let list: String = list
                .flat_map(|list| list.iter())
                .map(|sqn| format!("+{}", sqn.0))
                .collect();
            format!("{parity}NAK {}{list}", nak.sqn.0)
        }
        Body::Spmr => format!("SPMR {to:?}"),
        Body::Polr(answer) => format!("POLR {}", answer.sqn.0),
        ref other => format!("{other:?}"),
    }
}

#[test]
fn data_is_delivered_in_order() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_all([odata(1000), odata(1001)]);
    assert_eq!(script.events(), ["1000 data", "1001 data"]);
    script.receive_all([odata(1003), odata(1004)]);
    assert!(script.events().is_empty());
    script.receive(rdata(1002));
    assert_eq!(script.events(), ["1002 data", "1003 data", "1004 data"]);
    // Duplicates are not delivered.
    script.receive_all([odata(1003), rdata(1001)]);
    assert!(script.events().is_empty());
    assert_eq!(script.receiver.statistics(TSI).unwrap().duplicates, 2);
}

#[test]
fn a_session_can_begin_with_data() {
    for first in [odata(1007), rdata(1007)] {
        let mut script = Script::new(config());
        script.receive_all([first, odata(1008), odata(1003)]);
        assert_eq!(script.events(), ["1007 data", "1008 data"]);
    }
}

#[test]
fn gaps_are_requested_within_the_back_off() {
    for jump in [odata(1003), rdata(1003), spm(1, 1002)] {
        let mut script = Script::begun(config(), Options::default());
        script.receive(jump);
        let sent = script.wait(50);
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert!(sent[0].0 <= 10);
        assert_eq!(sent[0].1, "NAK 1000+1001+1002");
    }
}

#[test]
fn a_gap_longer_than_a_list_needs_several_naks() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_much();
    script.receive(odata(1130));
    let sent = script.sent_within(50);
    let numbers: Vec<usize> = sent
        .iter()
        .map(|name| 1 + name.matches('+').count())
        .collect();
    assert_eq!(numbers, [63, 63, 4]);
}

#[test]
fn originals_and_repairs_end_requests() {
    for repair in [odata(1000), rdata(1000)] {
        let mut script = Script::begun(config(), Options::default());
        script.receive(odata(1001));
        assert_eq!(script.sent_within(20), ["NAK 1000"]);
        script.receive(repair);
        assert!(script.sent_within(2_000).is_empty());
        assert_eq!(script.events(), ["1000 data", "1001 data"]);
    }
}

#[test]
fn a_late_original_cancels_the_request() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_all([odata(1001), odata(1000)]);
    assert!(script.sent_within(1_000).is_empty());
}

#[test]
fn a_confirmed_request_is_repeated_when_the_repair_is_overdue() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(odata(1001));
    assert_eq!(script.sent_within(20), ["NAK 1000"]);
    script.receive(ncf(1000));
    let sent = script.wait(400);
    // The request is repeated 200 ms after the confirmation, which arrived at 20 ms. A back-off of up to 10
    // ms is added.
    assert!((220..=230).contains(&sent[0].0), "{sent:?}");
}

#[test]
fn an_unconfirmed_request_is_repeated() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_much();
    script.receive(odata(1001));
    let sent = script.wait(7_000).into_iter();
    let times: Vec<u64> = sent.map(|(time, _)| time).collect();
    // The interval doubles from 100 ms up to 16 × 100 ms. A back-off of up to 10 ms is added each time.
    let waits = [100, 200, 400, 800, 1_600, 1_600, 1_600];
    assert_eq!(times.len(), 1 + waits.len(), "{times:?}");
    for (two, wait) in times.windows(2).zip(waits) {
        assert!((wait..=wait + 11).contains(&(two[1] - two[0])), "{times:?}");
    }
}

#[test]
fn requests_of_others_and_confirmations_suppress_own_ones() {
    for (heard, wait) in [(packet(Body::Nak(about(1000))), 100), (ncf(1000), 200)] {
        let mut script = Script::begun(config(), Options::default());
        script.receive(odata(1001));
        script.receive(heard);
        let sent = script.wait(400);
        assert!((wait..=wait + 11).contains(&sent[0].0), "{sent:?}");
    }
}

#[test]
fn a_nak_list_suppresses_all_its_numbers() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(odata(1004));
    let mut room = [0; 248];
    script.receive(Packet {
        options: Options {
            nak_list: Some(NakList::new(&[Sqn(1001), Sqn(1003)], &mut room)),
            ..Options::default()
        },
        ..ncf(1000)
    });
    assert_eq!(script.sent_within(50), ["NAK 1002"]);
}

#[test]
fn a_confirmation_reveals_unseen_data() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(ncf(1002));
    assert_eq!(script.sent_within(50), ["NAK 1000+1001"]);
}

#[test]
fn a_confirmation_outside_the_window_is_ignored() {
    let small = ReceiverConfig {
        window: 16,
        ..config()
    };
    let mut script = Script::begun(small, Options::default());
    script.receive_all([odata(1000), odata(1002)]);
    script.events();
    script.receive_all([ncf(900), ncf(1000), ncf(1001 + 16), ncf(0x8000_0000)]);
    assert_eq!(script.sent_within(50), ["NAK 1001"]);
}

#[test]
fn packets_are_lost_after_the_retries() {
    // The back-off is 5 s. A confirmation may take 10 s, with 15 retries. A repair may take 10 s, with 10
    // retries.
    let patient = ReceiverConfig {
        back_off: Duration::from_secs(5),
        confirmation: Duration::from_secs(10),
        repair: Duration::from_secs(10),
        confirmation_retries: 15,
        repair_retries: 10,
        expiry: Duration::from_secs(1_000_000),
        ..config()
    };
    let mut script = Script::begun(patient, Options::default());
    script.receive_much();
    script.receive(odata(1001));
    let sent = script.sent_within(3_000_000);
    assert_eq!(sent.len(), 15);
    assert_eq!(script.events(), ["lost 1 from 1000", "1001 data"]);

    // All requests are confirmed, but no repair follows.
    let mut script = Script::begun(patient, Options::default());
    script.receive(odata(1001));
    let mut asked = 0;
    for _ in 0..400 {
        if !script.sent_within(5_001).is_empty() {
            asked += 1;
            script.receive(ncf(1000));
        }
    }
    script.wait(200_000);
    assert_eq!(asked, 10);
    assert_eq!(script.events(), ["lost 1 from 1000", "1001 data"]);
}

#[test]
fn packets_before_the_trail_are_lost() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(odata(1003));
    let beyond = Data {
        sqn: Sqn(1004),
        trail: Sqn(1002),
    };
    script.receive(packet(Body::Odata(beyond)));
    assert_eq!(script.events(), ["lost 2 from 1000"]);
    script.receive(rdata(1002));
    assert_eq!(script.events(), ["1002 data", "1003 data", "1004 "]);
    // The trail of the next SPM is far beyond the known packets.
    script.receive(packet(Body::Spm(Spm {
        sqn: Sqn(1),
        trail: Sqn(1_001_005),
        lead: Sqn(1_001_004),
        path: SOURCE,
    })));
    assert_eq!(script.events(), ["lost 1000000 from 1005"]);
    script.receive(packet(Body::Odata(Data {
        sqn: Sqn(1_001_005),
        trail: Sqn(1_001_005),
    })));
    assert_eq!(script.events(), ["1001005 "]);
    // A trail that moves back is ignored.
    script.receive(spm(2, 1_001_007));
    assert_eq!(script.sent_within(50), ["NAK 1001006+1001007"]);
}

#[test]
fn an_unknown_source_is_asked_for_an_spm() {
    let mut script = Script::new(config());
    script.receive(odata(1000));
    let sent = script.wait(1_200);
    let names: Vec<&str> = sent.iter().map(|(_, name)| &name[..]).collect();
    let pair = ["SPMR GroupOneHop", "SPMR Unicast(10.77.0.1)"];
    assert_eq!(names[..2], pair);
    assert!(sent[0].0 <= 250, "{sent:?}");
    assert_eq!(sent[2].0 - sent[0].0, 500, "repeated without an answer");
}

#[test]
fn a_source_that_sent_an_spm_is_not_asked() {
    let mut script = Script::new(config());
    script.receive_all([odata(1000), spm(0, 1000)]);
    assert!(script.sent_within(1_000).is_empty());
    let mut script = Script::begun(config(), Options::default());
    script.receive(odata(1000));
    assert!(script.sent_within(1_000).is_empty());
}

#[test]
fn spm_requests_of_others_suppress_own_ones() {
    let mut script = Script::new(config());
    script.receive_all([odata(1000), packet(Body::Spmr)]);
    assert!(script.sent_within(499).is_empty());
    assert!(!script.sent_within(2).is_empty());
}

#[test]
fn gaps_before_the_first_spm_are_requested_after_it() {
    let mut script = Script::new(config());
    script.receive_all([odata(1000), odata(1002)]);
    script.wait(300);
    script.receive(spm(0, 1002));
    assert_eq!(script.sent_within(200)[0], "NAK 1001");
}

#[test]
fn without_an_spm_a_gap_longer_than_the_window_is_one_loss() {
    let mut script = Script::new(config());
    script.receive(odata(1_000));
    script.wait(1_000);
    script.receive(odata(1_001_000));
    // If no SPM arrives within 30 s after the first packet, missing packets are lost. At this time, the
    // source has been silent for only 29.5 s, so the source has not expired.
    script.wait(29_500);
    // The last packet has no room in the window, so this packet is lost too.
    assert_eq!(script.events(), ["1000 data", "lost 1000000 from 1001"]);
    script.receive(odata(1_001_001));
    assert_eq!(script.events(), ["1001001 data"]);
}

fn fragment(sqn: u32, first: u32, at: u32, length: u32, payload: &'static [u8]) -> Packet<'static> {
    Packet {
        payload,
        options: Options {
            fragment: Some(Fragment {
                first: Sqn(first),
                offset: at,
                length,
            }),
            ..Options::default()
        },
        ..odata(sqn)
    }
}

#[test]
fn fragments_are_reassembled() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut script = Script::begun(config(), Options::default());
        for at in order {
            assert!(script.events().is_empty());
            let parts = [b"one, ", &b"two, "[..], b"three"];
            let part = fragment(1000 + at, 1000, 5 * at, 15, parts[at as usize]);
            script.receive(part);
        }
        assert_eq!(script.events(), ["1000 one, two, three"]);
    }
}

#[test]
fn a_message_with_a_lost_fragment_is_lost() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_all([
        fragment(1000, 1000, 0, 15, b"one, "),
        fragment(1002, 1000, 10, 15, b"three"),
        odata(1003),
    ]);
    let gone = Data {
        sqn: Sqn(1004),
        trail: Sqn(1002),
    };
    script.receive(packet(Body::Odata(gone)));
    assert_eq!(script.events(), ["lost 3 from 1000", "1003 data", "1004 "]);
}

#[test]
fn contradictory_fragments_are_lost() {
    for wrong in [
        fragment(1001, 1000, 4, 10, b"wrong"),
        fragment(1001, 1000, 5, 11, b"wrong"),
        fragment(1001, 1002, 5, 10, b"wrong"),
        fragment(1001, 1000, 5, 10, b"too long"),
        fragment(1001, 1001, 0, u32::MAX, b"wrong"),
    ] {
        let mut script = Script::begun(config(), Options::default());
        script.receive_all([fragment(1000, 1000, 0, 10, b"right"), wrong, odata(1002)]);
        assert_eq!(script.events(), ["lost 2 from 1000", "1002 data"]);
    }
}

#[test]
fn joining_within_a_message_skips_its_rest() {
    let mut script = Script::new(config());
    script.receive_all([fragment(1001, 1000, 5, 10, b"part"), odata(1002)]);
    assert_eq!(script.events(), ["1002 data"]);
    assert_eq!(script.receiver.statistics(TSI).unwrap().skipped, 1);
}

/// Returns the payloads of the group 1000 to 1003, and two parity payloads for the group. If
/// `is_variable` is true, the payload of 1001 is shorter.
fn group(is_variable: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let data: Vec<Vec<u8>> = [b"zero", b"one.", b"two.", b"tre."]
        .iter()
        .map(|data| data.to_vec())
        .collect();
    let mut data = data;
    if is_variable {
        data[1] = b"1".to_vec();
    }
    let code = Code::for_group_size(4).unwrap();
    let parity = (0..2)
        .map(|index| {
            let mut parity = code.encode(index, data.iter().map(|data| &data[..]), 4);
            if is_variable {
                let lengths: Vec<[u8; 2]> = data
                    .iter()
                    .map(|data| (data.len() as u16).to_be_bytes())
                    .collect();
                parity.extend(code.encode(index, lengths.iter().map(|l| &l[..]), 2));
            }
            parity
        })
        .collect();
    (data, parity)
}

fn parity(sqn: u32, payload: &[u8], is_variable: bool) -> Packet<'_> {
    Packet {
        parity: true,
        variable_length: is_variable,
        payload,
        ..rdata(sqn)
    }
}

#[test]
fn incomplete_groups_request_parity_not_packets() {
    for end in [
        odata(1003),              // the last packet of the group
        odata(1004),              // a packet of the next group
        parity(1000, b"", false), // parity on request, which shows that the source has sent the whole group
    ] {
        let mut script = Script::begun(config(), parity_parameters(false, true));
        script.receive(odata(1001));
        assert!(script.sent_within(50).is_empty(), "the group is not closed");
        script.receive(end);
        let missing = match end.body {
            Body::Odata(data) if data.sqn == Sqn(1004) => 3,
            _ => 2,
        };
        // The number in the request is: first number of the group + number of missing packets − 1.
        let expected = format!("parity NAK {}", 1000 + missing - 1);
        assert_eq!(script.sent_within(50), [expected]);
    }
}

#[test]
fn a_parity_confirmation_suppresses_smaller_requests_only() {
    for (count, is_suppressed) in [(1, false), (2, true), (4, true)] {
        let mut script = Script::begun(config(), parity_parameters(false, true));
        script.receive_all([odata(1000), odata(1003)]);
        script.receive(Packet {
            parity: true,
            ..ncf(1000 + count - 1)
        });
        assert_eq!(
            script.sent_within(50).is_empty(),
            is_suppressed,
            "count {count}"
        );
    }
}

#[test]
fn packets_are_recovered_from_parity() {
    for is_variable in [false, true] {
        let (data, parities) = group(is_variable);
        let mut script = Script::begun(config(), parity_parameters(false, true));
        for at in [0, 3] {
            script.receive(Packet {
                payload: &data[at as usize],
                ..odata(1000 + at)
            });
        }
        assert_eq!(script.sent_within(50), ["parity NAK 1001"]);
        script.receive(parity(1001, &parities[1], is_variable));
        assert_eq!(script.events(), ["1000 zero"]);
        script.receive(parity(1000, &parities[0], is_variable));
        let one = if is_variable { "1001 1" } else { "1001 one." };
        assert_eq!(script.events(), [one, "1002 two.", "1003 tre."]);
        assert!(script.sent_within(2_000).is_empty());
        assert_eq!(script.receiver.statistics(TSI).unwrap().recovered, 2);
    }
}

#[test]
fn proactive_parity_repairs_without_a_request() {
    let (data, parities) = group(false);
    let mut script = Script::begun(config(), parity_parameters(true, false));
    for at in [0, 1, 3] {
        script.receive(Packet {
            payload: &data[at as usize],
            ..odata(1000 + at)
        });
    }
    assert!(script.sent_within(500).is_empty(), "parity may follow");
    script.receive(parity(1000, &parities[0], false));
    assert_eq!(script.events().len(), 4);
    // If the parity does not suffice, the receiver requests packets after the group is closed.
    script.receive_all([odata(1004), odata(1007), odata(1008)]);
    assert_eq!(script.sent_within(50), ["NAK 1005+1006"]);
}

#[test]
fn packets_of_an_incomplete_last_group_are_requested() {
    let mut script = Script::begun(config(), parity_parameters(false, true));
    script.receive_all([odata(1000), odata(1002), spm(1, 1002)]);
    assert_eq!(script.sent_within(50), ["NAK 1001"]);
}

#[test]
fn a_shortened_group_is_complete_with_fewer() {
    let (data, _) = group(false);
    let code = Code::for_group_size(4).unwrap();
    let bytes = code.encode(0, data[..2].iter().map(|data| &data[..]), 4);
    let mut script = Script::begun(config(), parity_parameters(false, true));
    script.receive(Packet {
        payload: &data[0],
        ..odata(1000)
    });
    script.receive(Packet {
        options: Options {
            current_group_size: Some(2),
            ..Options::default()
        },
        ..parity(1000, &bytes, false)
    });
    script.receive(odata(1004));
    assert_eq!(script.events(), ["1000 zero", "1001 one.", "1004 data"]);
    assert!(script.sent_within(500).is_empty());
}

#[test]
fn fragments_are_recovered_from_parity() {
    let parts = [b"one, ", b"two, ", b"tre, ", b"four."];
    let option = |at: u32| Fragment {
        first: Sqn(1000),
        offset: 5 * at,
        length: 20,
    };
    let code = Code::for_group_size(4).unwrap();
    let payload = code.encode(0, parts.iter().map(|part| &part[..]), 5);
    // The encoded bytes of an option start at its fourth byte: a zero, then the three numbers.
    let options: Vec<Vec<u8>> = (0..4)
        .map(|at| {
            [
                [0].as_slice(),
                &1000u32.to_be_bytes(),
                &(5 * at as u32).to_be_bytes(),
                &20u32.to_be_bytes(),
            ]
            .concat()
        })
        .collect();
    let encoded = code.encode(0, options.iter().map(|option| &option[..]), 13);
    let mut script = Script::begun(config(), parity_parameters(false, true));
    for at in [0, 1, 3] {
        script.receive(Packet {
            payload: parts[at as usize],
            options: Options {
                fragment: Some(option(at)),
                ..Options::default()
            },
            ..odata(1000 + at)
        });
    }
    script.receive(Packet {
        options: Options {
            encoded_fragment: Some(encoded.try_into().unwrap()),
            ..Options::default()
        },
        ..parity(1000, &payload, false)
    });
    assert_eq!(script.events(), ["1000 one, two, tre, four."]);
}

#[test]
fn messages_are_delivered_as_received() {
    let any = ReceiverConfig {
        order: Order::AsReceived,
        ..config()
    };
    let mut script = Script::begun(any, Options::default());
    script.receive_all([
        odata(1001),
        fragment(1004, 1003, 5, 10, b"after"),
        fragment(1003, 1003, 0, 10, b"first"),
    ]);
    assert_eq!(script.events(), ["1001 data", "1003 firstafter"]);
    script.receive_all([odata(1000), odata(1002)]);
    assert_eq!(script.events(), ["1000 data", "1002 data"]);
}

#[test]
fn late_joiners_request_earlier_packets() {
    for (late_join, asked) in [(true, vec!["NAK 1005+1006"]), (false, vec![])] {
        let mut script = Script::new(ReceiverConfig {
            late_join,
            ..config()
        });
        script.receive(Packet {
            options: Options {
                join: Some(Sqn(1005)),
                ..Options::default()
            },
            ..spm(0, 1006)
        });
        assert_eq!(script.sent_within(50), asked);
        script.receive(odata(1007));
        assert_eq!(script.events().is_empty(), late_join);
    }
}

#[test]
fn late_joiners_start_where_the_spm_says() {
    let mut script = Script::new(ReceiverConfig {
        late_join: true,
        ..config()
    });
    script.receive(odata(1007));
    assert!(script.events().is_empty());
    assert_eq!(script.sent_within(250)[0], "SPMR GroupOneHop");
    script.receive(Packet {
        options: Options {
            join: Some(Sqn(1006)),
            ..Options::default()
        },
        ..spm(0, 1007)
    });
    assert_eq!(script.sent_within(50), ["NAK 1006+1007"]);
}

#[test]
fn the_end_is_reported_after_all_data() {
    let mut script = Script::begun(config(), Options::default());
    let end = Packet {
        options: Options {
            fin: true,
            ..Options::default()
        },
        ..spm(1, 1001)
    };
    script.receive_all([odata(1001), end]);
    assert!(script.events().is_empty());
    script.receive(rdata(1000));
    assert_eq!(script.events(), ["1000 data", "1001 data", "finished"]);
    // The source repeats its SPM. After the expiry time, the receiver drops the source without an event.
    script.receive(Packet {
        options: end.options,
        ..spm(2, 1001)
    });
    script.wait(40_000);
    assert!(script.events().is_empty());
    assert_eq!(script.receiver.sources().count(), 0);
}

#[test]
fn a_reset_is_reported_and_loses_gaps_without_repairs() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(odata(1001));
    script.receive(Packet {
        options: Options {
            reset: Some(Reset {
                no_repairs: true,
                code: 5,
            }),
            ..Options::default()
        },
        ..spm(1, 1001)
    });
    assert_eq!(
        script.events(),
        ["lost 1 from 1000", "1001 data", "reset 5"]
    );
    assert!(script.sent_within(1_000).is_empty());
}

#[test]
fn a_silent_source_expires() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_all([odata(1000), odata(1002)]);
    assert_eq!(script.events(), ["1000 data"]);
    script.wait(31_000);
    assert_eq!(
        script.events(),
        ["lost 1 from 1001", "1002 data", "expired"]
    );
    assert_eq!(script.receiver.timeout(), None);
}

#[test]
fn old_spms_are_ignored() {
    let mut script = Script::new(config());
    script.receive_all([spm(5, 999), spm(4, 1001), spm(5, 1001)]);
    assert!(script.sent_within(100).is_empty());
    script.receive(spm(6, 1001));
    assert_eq!(script.sent_within(100), ["NAK 1000+1001"]);
}

#[test]
fn a_full_window_refuses_packets_until_there_is_room() {
    let small = ReceiverConfig {
        window: 4,
        ..config()
    };
    let mut script = Script::begun(small, Options::default());
    script.receive_all((1000..1006).map(odata));
    assert!(
        script.sent_within(500).is_empty(),
        "a request would not help"
    );
    assert_eq!(script.events().len(), 4);
    assert_eq!(script.sent_within(50), ["NAK 1004+1005"]);
    assert_eq!(script.receiver.statistics(TSI).unwrap().refused, 2);
}

#[test]
fn memory_is_bounded_in_bytes_and_sources() {
    let mut script = Script::begun(
        ReceiverConfig {
            bytes: 1 << 16,
            sources: 2,
            ..config()
        },
        Options::default(),
    );
    let large = vec![7; 60_000];
    for sqn in 1001..1100 {
        script.receive(Packet {
            payload: &large,
            ..odata(sqn)
        });
    }
    // After two packets, the memory limit is reached. The following packets must wait and are not requested.
    assert_eq!(script.receiver.statistics(TSI).unwrap().packets, 2);
    assert_eq!(script.sent_within(50), ["NAK 1000"]);
    script.receive(rdata(1000));
    assert_eq!(script.events().len(), 3);

    for port in 1..100 {
        script.receive(Packet {
            source_port: port,
            ..odata(1000)
        });
    }
    assert_eq!(script.receiver.sources().count(), 2);
    assert_eq!(script.receiver.ignored(), 98);
}

#[test]
fn a_passive_receiver_never_sends() {
    let mut script = Script::new(ReceiverConfig {
        passive: true,
        ..config()
    });
    script.receive_all([odata(1000), odata(1002)]);
    script.receive(spm(0, 1003));
    assert!(script.sent_within(20_000).is_empty());
    script.receive_all([rdata(1001), rdata(1003)]);
    assert_eq!(script.events().len(), 4);
    // Congestion control requests acknowledgements from all receivers.
    script.receive(Packet {
        options: Options {
            congestion_data: Some(CongestionData {
                timestamp: 0,
                acker: Ipv4Addr::UNSPECIFIED.into(),
            }),
            ..Options::default()
        },
        ..odata(1004)
    });
    assert!(script.sent_within(20_000).is_empty());
    assert_eq!(script.events().len(), 1);
}

#[test]
fn polls_are_answered_by_selected_receivers() {
    let poll = |random, mask| {
        packet(Body::Poll(Poll {
            sqn: Sqn(3),
            round: 0,
            sub_type: 0,
            path: SOURCE,
            back_off: 10_000,
            random,
            mask,
        }))
    };
    let mut script = Script::begun(config(), Options::default());
    script.receive(poll(0, 0));
    assert_eq!(script.sent_within(10), ["POLR 3"]);
    // The two polls differ in one bit, so exactly one of them selects this receiver.
    let answers: usize = [0, 1]
        .map(|random| {
            script.receive(poll(random, 1));
            script.sent_within(10).len()
        })
        .iter()
        .sum();
    assert_eq!(answers, 1);
}

#[test]
fn the_back_off_of_the_source_applies() {
    let mut script = Script::begun(config(), Options::default());
    script.receive(Packet {
        options: Options {
            back_off_interval: Some(BackOffInterval {
                interval: 5_000_000,
                poll: Sqn(0),
            }),
            ..Options::default()
        },
        ..spm(1, 999)
    });
    script.receive(odata(1050));
    let sent = script.wait(5_001);
    assert!(
        sent[0].0 > 10,
        "the chance of an earlier request is 1 in 500: {sent:?}"
    );
}

#[test]
fn spms_with_too_long_a_window_are_ignored() {
    let mut script = Script::begun(config(), Options::default());
    script.receive_all([spm(1, 999 + 0x7fff_fffe), spm(2, 998), spm(3, 0x8000_0000)]);
    script.receive(packet(Body::Spm(Spm {
        sqn: Sqn(4),
        trail: Sqn(0),
        lead: Sqn(0x8000_0000),
        path: SOURCE,
    })));
    assert!(script.events().is_empty());
    script.receive(odata(1000));
    assert_eq!(script.events(), ["1000 data"]);
}

/// Address that forged packets name as the destination for requests.
const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 255));

/// Sends packets of 16 spoofed sources to a receiver. Returns two numbers for each source: the bytes that the
/// receiver sent to the source, and the bytes that it received from the source.
fn attack(seed: u64, config: ReceiverConfig, packets: usize) -> Vec<(usize, usize)> {
    const SOURCES: usize = 16;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut receiver = Receiver::new(config).unwrap();
    let mut now = Time(0);
    let mut bytes = vec![(0, 0); SOURCES];
    for number in 0..packets {
        let from = rng.usize(..SOURCES);
        let near = Sqn(rng.u32(..40));
        let far = Sqn(rng.u32(..20_000));
        let trail = Sqn(0);
        let body = match rng.u8(..6) {
            0 => Body::Spm(Spm {
                sqn: Sqn(number as u32),
                trail,
                lead: far,
                path: VICTIM,
            }),
            1 => Body::Ncf(about(far.0)),
            2 => Body::Poll(Poll {
                sqn: near,
                round: 0,
                sub_type: 0,
                path: VICTIM,
                back_off: 1,
                random: 0,
                mask: 0,
            }),
            3 => Body::Rdata(Data { sqn: far, trail }),
            _ => Body::Odata(Data { sqn: near, trail }),
        };
        let packet = Packet {
            source_port: 1 + from as u16,
            payload: &[0; 100][..rng.usize(..100)],
            ..packet(body)
        };
        let packet = Packet {
            payload: if packet.body.is_data() {
                packet.payload
            } else {
                b""
            },
            ..packet
        };
        let mut written = Vec::new();
        packet.write(Dialect::Rfc3208, &mut written);
        let (_, received) = &mut bytes[from];
        *received += written.len();
        receiver.handle(
            now,
            SOURCE,
            &Packet::parse(&written, Dialect::Rfc3208).unwrap(),
        );
        // Most packets come in bursts. After the last packet, the sources are silent for 60 s.
        let pause = [0, 1_000_000, 100_000_000][rng.usize(..3)];
        let end = Time(
            now.0
                + if number + 1 == packets {
                    60_000_000_000
                } else {
                    pause
                },
        );
        loop {
            let mut out = Vec::new();
            while let Some(transmit) = receiver.poll_transmit(now, &mut out) {
                assert_ne!(transmit.to, Destination::Unicast(VICTIM));
                let answered = Packet::parse(&out, Dialect::Rfc3208).unwrap().tsi();
                bytes[usize::from(answered.port) - 1].0 += out.len();
                out.clear();
            }
            while receiver.poll_event(now).is_some() {}
            match receiver.timeout() {
                Some(next) if next <= end => now = now.max(next),
                _ => break,
            }
        }
        now = end;
    }
    bytes
}

#[test]
fn a_spoofed_source_is_sent_at_most_twice_its_bytes() {
    for seed in 0..20 {
        for late_join in [false, true] {
            let config = ReceiverConfig {
                late_join,
                ..ReceiverConfig::new(OWN, GROUP)
            };
            let bytes = attack(seed, config, 300);
            assert!(bytes.iter().any(|(sent, _)| *sent > 0));
            for (sent, received) in bytes {
                assert!(sent <= 2 * received, "{sent} bytes for {received}");
            }
        }
    }
}

#[test]
fn a_source_that_dies_after_an_spm_is_sent_a_bounded_number_of_bytes() {
    let config = ReceiverConfig::new(OWN, GROUP);
    let mut script = Script::begun(config, Options::default());
    for number in 0..1_000 {
        script.receive(Packet {
            payload: &[0; 1_000],
            ..odata(1_000 + number)
        });
    }
    script.events();
    script.receive(spm(1, 15_000));
    let sent = script.wait(60_000);
    // The shortest request has 36 bytes, so the limit on bytes also limits the number of requests.
    assert!(
        (1..=config.request_bytes / 36).contains(&sent.len()),
        "{}",
        sent.len()
    );
    assert!(script.events().contains(&"lost 13001 from 2000".to_owned()));
}

#[test]
fn requests_go_to_another_address_only_if_it_is_trusted() {
    for (trusts_path, expected) in [(false, SOURCE), (true, VICTIM)] {
        let mut receiver = Receiver::new(ReceiverConfig {
            trusts_path,
            ..config()
        })
        .unwrap();
        let body = Body::Spm(Spm {
            sqn: Sqn(1),
            trail: TRAIL,
            lead: Sqn(999),
            path: VICTIM,
        });
        receiver.handle(Time(0), SOURCE, &packet(body));
        receiver.handle(Time(0), SOURCE, &odata(1_001));
        let due = Time(20_000_000);
        let transmit = receiver.poll_transmit(due, &mut Vec::new()).unwrap();
        assert_eq!(transmit.to, Destination::Unicast(expected));
        assert_eq!(receiver.statistics(TSI).unwrap().foreign_paths, 1);
    }
}

#[test]
fn all_sources_together_are_sent_a_limited_number_of_packets() {
    let mut receiver = Receiver::new(ReceiverConfig {
        packets_per_second: 1_000,
        ..ReceiverConfig::new(OWN, GROUP)
    })
    .unwrap();
    let mut now = Time(0);
    let mut sent = 0;
    // Each of 200 sources loses every second packet. Together, 20,000 packets per second are lost.
    for round in 0..1_000 {
        for source in 0..200 {
            let packet = Packet {
                source_port: 1 + source,
                ..odata(1_000 + 2 * round)
            };
            receiver.handle(now, SOURCE, &packet);
            receiver.handle(
                now,
                SOURCE,
                &Packet {
                    source_port: 1 + source,
                    ..spm(round, 1_000 + 2 * round)
                },
            );
        }
        now = Time(now.0 + 10_000_000);
        while receiver.poll_transmit(now, &mut Vec::new()).is_some() {
            sent += 1;
        }
    }
    // The test takes 10 s at 1,000 packets per second, and starts with a burst of up to 50 packets.
    assert!((9_000..=10_060).contains(&sent), "{sent}");
}
