//! Tests of events of complete scenarios.

use crate::program;

use program::rows;
use simulated::{Simulated, list, number};

/// Checks figures of "Low throughput when copying files": 400 Mb/s without signing, 80 Mb/s with it.
#[test]
fn signing_limits_the_throughput() {
    for (scenario, megabits) in [("smb-signing-off", 400.0), ("smb-signing-on", 80.0)] {
        let copy = Simulated::new(scenario, &[]);
        let truth = &copy.truth;
        let blocks = rows(&["events", "--event", "TcpIp/RecvIPV4"], &copy.trace);
        let bytes: i64 = blocks
            .iter()
            .map(|block| number(&block["fields"], "size"))
            .sum();
        assert_eq!(bytes, number(&list(truth, "flows")[0], "received_bytes"));
        let seconds = number(truth, "duration_ns") as f64 / 1e9;
        let found = bytes as f64 * 8.0 / 1e6 / seconds;
        assert!((found - megabits).abs() <= 0.02 * megabits, "{found}");
    }
}
