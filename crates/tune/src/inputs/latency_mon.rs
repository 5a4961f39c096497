//! Reader of LatencyMon reports: machine and longest delays.
//!
//! <https://www.resplendence.com/latencymon>

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::machine::Edition;

/// Tool that prints the values. It becomes the `command` of each `Place::Answer`.
const TOOL: &str = "LatencyMon";

/// Labels of the figures that are read, without the unit. Saved reports often misspell the unit.
const FIGURES: [&str; 12] = [
    "Highest measured interrupt to process latency",
    "Average measured interrupt to process latency",
    "Highest measured interrupt to DPC latency",
    "Average measured interrupt to DPC latency",
    "Highest ISR routine execution time",
    "Driver with highest ISR routine execution time",
    "Total time spent in ISRs",
    "Highest DPC routine execution time",
    "Driver with highest DPC routine execution time",
    "Total time spent in DPCs",
    "Process with highest pagefault count",
    "Total number of hard pagefaults",
];

pub(super) fn starts(text: &str) -> bool {
    (text.lines().take(60)).any(|line| line.starts_with("LatencyMon has been analyzing"))
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::LatencyMon);
    for (index, written) in text.text.lines().enumerate() {
        if let Some(value) = written.strip_prefix("Computer name:") {
            reading.input.machine.name = Some(value.trim().to_owned());
        } else if let Some(value) = written.strip_prefix("OS version:") {
            os_version(&mut reading, value);
        } else if let Some((label, value)) = figure(written) {
            // In some languages, reports have a decimal comma.
            let value = match value.replace(',', ".").parse::<f64>() {
                Ok(_) => value.replace(',', "."),
                Err(_) => value.to_owned(),
            };
            reading.answer(TOOL, "", label, &value, line(index));
        }
    }
    reading
}

/// Reads the build in a value such as `Windows 10, 10.0, version 2009, build: 19043 (x64)`.
fn os_version(reading: &mut Reading, value: &str) {
    let build = value.split_once("build: ").map(|(_, build)| build);
    let build = build.and_then(|build| build.split_whitespace().next());
    let machine = &mut reading.input.machine;
    machine.build = build.and_then(|build| build.parse().ok());
    machine.edition = value.contains("Server").then_some(Edition::Server);
}

/// Splits a line into its label and value.
fn figure(written: &str) -> Option<(&'static str, &str)> {
    let label = FIGURES.iter().find(|label| written.starts_with(**label))?;
    let rest = written[label.len()..].trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(unit) => unit.split_once(')')?.1,
        None => rest,
    };
    Some((label, rest.trim_start_matches(':').trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn the_machine_and_its_delays_are_read() {
        let text = "CONCLUSION\n\
            LatencyMon has been analyzing your system for  0:01:00  (h:mm:ss) on all processors.\n\
            Computer name:                                        GAMER\n\
            OS version:                                           Windows 10, 10.0, version 2009, build: 19043 (x64)\n\
            Highest DPC routine execution time (\u{b5}s):              682,5\n\
            Driver with highest DPC routine execution time:       ndis.sys - Network Driver Interface\n\
            Total time spent in DPCs (%)                          0,019358\n";
        assert!(starts(text));
        let read = read("report.txt", &decode(text.as_bytes())).input;
        let lines: Vec<String> = (read.found.iter())
            .map(|found| format!("{} {}", found.place, found.value.as_ref().unwrap()))
            .collect();
        assert_eq!(
            lines,
            [
                "LatencyMon Highest DPC routine execution time \"682.5\"",
                "LatencyMon Driver with highest DPC routine execution time \"ndis.sys - Network Driver Interface\"",
                "LatencyMon Total time spent in DPCs \"0.019358\"",
            ]
        );
        assert_eq!(read.machine.build, Some(19043));
        assert_eq!(read.machine.name.as_deref(), Some("GAMER"));
    }
}
