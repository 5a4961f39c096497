//! Checks that the packets of scenarios are in the table `packets`, with the DSCP marks that the
//! truth counts.

use std::collections::BTreeMap;

use crate::read_back::run;

#[test]
fn marks_on_sent_packets_are_those_of_the_truth() {
    for name in ["dscp-marked", "dscp-bleached"] {
        let run = run(name, None);
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        let (mut sent, mut received) = (0, 0);
        for flow in run.truth["flows"].as_array().expect("flows") {
            sent += flow["sent_packets"].as_u64().expect("a count");
            received += flow["received_packets"].as_u64().expect("a count");
            for (dscp, count) in flow["sent_by_dscp"].as_object().expect("counts") {
                *expected.entry(dscp.clone()).or_default() += count.as_u64().expect("a count");
            }
        }
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let mut found_received = 0;
        for packets in &run.tables.packets {
            for row in 0..packets.len() {
                assert!(packets.payload_bytes.get(row).is_some());
                assert!(packets.length_bytes[row] >= packets.captured_bytes[row]);
                if packets.direction.get(row) == Some("send") {
                    let dscp = packets.dscp.get(row).expect("IP");
                    *found.entry(dscp.to_string()).or_default() += 1;
                } else {
                    found_received += 1;
                }
            }
        }
        assert!(sent > 0 && expected.values().sum::<u64>() == sent, "{name}");
        assert_eq!(found, expected, "{name}");
        assert_eq!(found_received, received, "{name}");
    }
}
