//! Reader of the output of `netsh int tcp show global`.
//!
//! <https://learn.microsoft.com/windows-server/administration/windows-commands/netsh-interface>

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;

/// Command that prints the values. It becomes the `command` of each `Place::Answer`.
const COMMAND: &str = "netsh int tcp show global";

/// Part of a label that is the same in all versions of Windows, and the full label. The last labels are
/// not translated in any language.
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

/// Known values in English. Newer versions no longer translate values. The congestion control provider
/// has other values.
const WORDS: [&str; 13] = [
    "allowed",
    "application",
    "automatic",
    "default",
    "disabled",
    "enabled",
    "experimental",
    "highlyrestricted",
    "none",
    "normal",
    "off",
    "on",
    "restricted",
];

/// First labels in the order of the output: Windows 7 to 10 (1607), and later versions. The label RFC 1323
/// contains its number in every language. The number of lines before this label shows which of the two lists
/// applies.
const ORDERS: [&[&str]; 2] = [
    &[
        "Receive-Side Scaling State",
        "Chimney Offload State",
        "NetDMA State",
        "Direct Cache Access (DCA)",
        "Receive Window Auto-Tuning Level",
        "Add-On Congestion Control Provider",
        "ECN Capability",
    ],
    &[
        "Receive-Side Scaling State",
        "Receive Window Auto-Tuning Level",
        "Add-On Congestion Control Provider",
        "ECN Capability",
    ],
];

/// Minimum number of known labels that identify the output.
const ENOUGH: usize = 3;

pub(super) fn starts(text: &str) -> bool {
    let lines = text.lines().take(80).filter_map(setting);
    let known = lines.filter(|(label, _)| full_label(label).is_some());
    known.count() >= ENOUGH
}

/// Splits a line into label and value.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (label, value) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
    let value = value.trim();
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    is_word.then_some((label.trim(), value))
}

/// Returns the full English label for a label of any version.
fn full_label(label: &str) -> Option<&'static str> {
    let label = label.to_lowercase();
    let words: Vec<&str> = label
        .split(|letter: char| !letter.is_alphanumeric())
        .collect();
    let mut labels = LABELS.iter();
    let label = labels.find(|(part, _)| {
        let part = part.to_lowercase();
        // Short parts are abbreviations. In other languages, words can contain the same letters by chance, so a short
        // part must match a whole word.
        match part.len() {
            ..=4 => words.contains(&part.as_str()),
            _ => label.contains(&part),
        }
    });
    label.map(|(_, label)| *label)
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::Netsh);
    let settings: Vec<(usize, &str, &str)> = (text.text.lines().enumerate())
        .filter_map(|(index, written)| {
            let (label, value) = setting(written)?;
            Some((index, label, value))
        })
        .collect();
    let stamps = settings
        .iter()
        .position(|(_, label, _)| label.contains("1323"));
    let order = ORDERS.iter().find(|order| Some(order.len()) == stamps);
    let mut foreign = Vec::new();
    for (place, (index, label, value)) in settings.iter().enumerate() {
        let by_order = order.and_then(|order| order.get(place).copied());
        let label_in_full = full_label(label).or(by_order);
        let is_known_word = WORDS.contains(&value.to_ascii_lowercase().as_str())
            || value.bytes().all(|byte| byte.is_ascii_digit())
            || label_in_full == Some("Add-On Congestion Control Provider");
        match label_in_full.filter(|_| is_known_word) {
            Some(label) => reading.answer(COMMAND, "", label, value, line(*index)),
            None => foreign.push((*index, format!("{label}: {value}"))),
        }
    }
    if let Some((index, first)) = foreign.first() {
        reading.complain(
            line(*index),
            format!(
                "unknown text in {} of {} lines, such as \"{first}\": netsh translates its output; use \
                 Get-NetTCPSetting and Get-NetOffloadGlobalSetting with ConvertTo-Json",
                foreign.len(),
                settings.len()
            ),
        );
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn full_labels_are_reported() {
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
        let values: Vec<String> = (read.found.iter())
            .map(|values| format!("{} {}", values.place, values.value.as_ref().unwrap()))
            .collect();
        assert_eq!(
            values,
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

    /// Checks the labels of a German Windows 10. The test has values with and without translation.
    #[test]
    fn the_order_of_translated_labels_identifies_them_and_translated_values_are_refused() {
        let text = "Der aktive Status wird abgefragt...\n\nGlobale TCP-Parameter\n\
            ----------------------------------------------\n\
            Zustand der empfangsseitigen Skalierung : disabled\n\
            Autom. Abstimmungsgrad Empfangsfenster  : disabled\n\
            Add-On \"\u{dc}berlastungssteuerungsanbieter\" : default\n\
            ECN-Funktion                            : enabled\n\
            RFC 1323-Zeitstempel                    : allowed\n\
            RTO (anf\u{e4}nglich)                       : 1000\n\
            HyStart                                 : enabled\n";
        assert!(starts(text));
        let read_it = |text: &str| read("tcp.txt", &decode(text.as_bytes())).input;
        let input = read_it(text);
        let values: Vec<String> = (input.found.iter())
            .map(|values| format!("{} {}", values.place, values.value.as_ref().unwrap()))
            .collect();
        assert_eq!(
            values[..5],
            [
                "netsh int tcp show global Receive-Side Scaling State \"disabled\"",
                "netsh int tcp show global Receive Window Auto-Tuning Level \"disabled\"",
                "netsh int tcp show global Add-On Congestion Control Provider \"default\"",
                "netsh int tcp show global ECN Capability \"enabled\"",
                "netsh int tcp show global RFC 1323 Timestamps \"allowed\"",
            ]
        );
        assert_eq!(input.complaints.count, 0);
        let translated = read_it(&text.replace("disabled", "deaktiviert"));
        assert_eq!(translated.found.len(), 5);
        let complaint = &translated.complaints.first[0].what;
        assert!(complaint.contains("2 of 7 lines"), "{complaint}");
        assert!(complaint.contains("ConvertTo-Json"), "{complaint}");
    }
}
