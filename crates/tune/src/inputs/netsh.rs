//! What `netsh int tcp show global` prints.
//!
//! <https://learn.microsoft.com/windows-server/administration/windows-commands/netsh-interface>

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;

/// The command, as origin of what is found.
const COMMAND: &str = "netsh int tcp show global";

/// What is in a label whatever the version, and the label in full. The last ones hold what is not
/// translated either.
const LABELS: [(&str, &str); 17] = [
    ("Receive-Side Scaling", "Receive-Side Scaling State"),
    ("Auto-Tuning Level", "Receive Window Auto-Tuning Level"),
    (
        "Congestion Control Provider",
        "Add-On Congestion Control Provider",
    ),
    (
        "Receive Segment Coalescing",
        "Receive Segment Coalescing State",
    ),
    ("Non Sack Rtt", "Non Sack Rtt Resiliency"),
    ("SYN Retransmissions", "Max SYN Retransmissions"),
    ("Fast Open Fallback", "Fast Open Fallback"),
    ("Fast Open", "Fast Open"),
    ("Proportional Rate Reduction", "Proportional Rate Reduction"),
    ("Pacing Profile", "Pacing Profile"),
    ("Chimney", "Chimney Offload State"),
    ("NetDMA", "NetDMA State"),
    ("DCA", "Direct Cache Access (DCA)"),
    ("HyStart", "HyStart"),
    ("ECN", "ECN Capability"),
    ("1323", "RFC 1323 Timestamps"),
    ("RTO", "Initial RTO"),
];

/// How many labels make a text such a listing.
const ENOUGH: usize = 3;

pub(super) fn starts(text: &str) -> bool {
    let known = text
        .lines()
        .take(80)
        .filter(|line| matches!(setting(line), Some((Some(_), _))));
    known.count() >= ENOUGH
}

/// The label and value of a line.
fn setting(line: &str) -> Option<(Option<&'static str>, &str)> {
    let (label, value) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
    let (label, value) = (label.to_lowercase(), value.trim());
    let mut known = LABELS.iter();
    let known = known.find(|(part, _)| label.contains(&part.to_lowercase()));
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    is_word.then_some((known.map(|(_, label)| *label), value))
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::Netsh);
    for (index, written) in text.text.lines().enumerate() {
        match setting(written) {
            Some((Some(label), value)) => {
                reading.answer(COMMAND, "", label, value, line(index));
            }
            Some((None, _)) => reading.complain(
                line(index),
                format!("this label is not known: {}", written.trim()),
            ),
            None => {}
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn labels_are_told_in_full() {
        let text = "Querying active state...\n\nTCP Global Parameters\n\
            ----------------------------------------------\n\
            Receive-Side Scaling State          : enabled\n\
            Receive Window Auto-Tuning Level    : disabled\n\
            Add-On Congestion Control Provider  : default\n\
            ECN Capability                      : disabled\n\
            RFC 1323 Timestamps                 : allowed\n\
            Fast Open Fallback                  : enabled\n\
            Something New                       : on\n";
        assert!(starts(text));
        let read = read("tcp.txt", &decode(text.as_bytes())).input;
        let found: Vec<String> = (read.found.iter())
            .map(|found| format!("{} {}", found.place, found.value.as_ref().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                "netsh int tcp show global Receive-Side Scaling State \"enabled\"",
                "netsh int tcp show global Receive Window Auto-Tuning Level \"disabled\"",
                "netsh int tcp show global Add-On Congestion Control Provider \"default\"",
                "netsh int tcp show global ECN Capability \"disabled\"",
                "netsh int tcp show global RFC 1323 Timestamps \"allowed\"",
                "netsh int tcp show global Fast Open Fallback \"enabled\"",
            ]
        );
        assert_eq!(read.complaints.count, 1);
    }
}
