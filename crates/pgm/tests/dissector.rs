//! Checks that Wireshark accepts every packet that this crate sends. If `tshark` is not installed,
//! the test is skipped.

use crate::simulation;

use std::{fs, process::Command, time::Duration};

use pgm::{
    BackOffTuning, CongestionConfig, ParityConfig, ReceiverConfig, SourceConfig, wire::Body,
};
use simulation::{Network, microseconds, milliseconds, receiver_config, source_config};

/// Returns a capture file in the pcap format that contains the packets as raw IP packets.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    const RAW_IP: u32 = 101;
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, RAW_IP] {
        file.extend(word.to_le_bytes());
    }
    // The version of the format, 2.4, consists of two 16-bit numbers.
    file[4..8].copy_from_slice(&[2, 0, 4, 0]);
    for packet in packets {
        let length = 20 + packet.len() as u32;
        for word in [0, 0, length, length] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend([
            0x45,
            0,
            (length >> 8) as u8,
            length as u8,
            0,
            0,
            0,
            0,
            16,
            113,
            0,
            0,
        ]);
        file.extend([10, 77, 0, 1, 239, 192, 0, 1]);
        file.extend(packet);
    }
    file
}

/// Returns the packets of sessions that together use all features.
fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (parity, congestion) in [(true, false), (false, true), (false, false)] {
        let source = SourceConfig {
            parity: parity.then_some(ParityConfig {
                group_size: 4,
                proactive: 1,
                on_demand: true,
                shorten_groups: true,
            }),
            congestion: congestion.then(CongestionConfig::default),
            back_off: Some(BackOffTuning {
                min: Duration::from_micros(100),
                max: Duration::from_millis(1),
                probes: 3,
            }),
            late_join: true,
            loss_reports: true,
            ..source_config(0)
        };
        let receivers = (1..=3).map(|node| ReceiverConfig {
            late_join: true,
            spm_back_off: Duration::from_micros(10),
            ..receiver_config(node)
        });
        let mut network = Network::star(5, source, receivers);
        // The first SPMs are dropped, so that receivers must request an SPM.
        let mut spms = 0;
        network.filter = Box::new(move |packet, _, _| {
            spms += usize::from(matches!(packet.body, Body::Spm(_)));
            matches!(packet.body, Body::Spm(_)) && spms < 20
        });
        for length in (0..4_000).step_by(50) {
            while network.source().send(&vec![7; length]).is_err() {
                network.run_for(milliseconds(1));
            }
            network.run_for(microseconds(300));
            network.weather.lost = 200;
        }
        network.source().poll_receivers(Duration::from_millis(1), 0);
        network.run_for(milliseconds(10));
        if parity {
            network.source().reset(3, false);
        } else {
            network.source().close();
        }
        network.run_for(milliseconds(500));
        all.extend(network.sent.into_iter().map(|sent| sent.bytes));
    }
    all
}

#[test]
fn wireshark_accepts_all_packets() {
    let packets = packets();
    let mut sorts: Vec<u8> = packets.iter().map(|packet| packet[4]).collect();
    sorts.sort_unstable();
    sorts.dedup();
    assert_eq!(
        sorts,
        [0, 1, 2, 4, 5, 8, 10, 12, 13],
        "not all kinds of packets were sent"
    );

    let file = std::env::temp_dir().join(format!("pgm-{}.pcap", std::process::id()));
    fs::write(&file, capture(&packets)).unwrap();
    let fields = [
        "frame.number",
        "pgm.hdr.cksum.status",
        "_ws.expert.message",
        "_ws.malformed",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output();
    let _ = fs::remove_file(&file);
    let Ok(output) = output else {
        return testdata::skip("tshark is not installed");
    };
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), packets.len());
    for (line, packet) in lines.lines().zip(&packets) {
        let columns: Vec<&str> = line.split('\t').collect();
        // Several options may have a field with the same name. The last value belongs to the packet itself.
        let status = columns[1].rsplit(',').next();
        // Wireshark considers packets of 16 bytes (SPMRs) too short for PGM, and shows no status
        // for them.
        let good = if packet.len() == 16 { "" } else { "1" };
        assert_eq!(status, Some(good), "checksum of {packet:02x?}");
        assert_eq!(columns[2..], ["", ""], "{packet:02x?}");
    }
}
