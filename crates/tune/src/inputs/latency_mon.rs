//! Reader of LatencyMon reports: machine and longest delays.
//!
//! <https://www.resplendence.com/latencymon>

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::machine::Edition;
use crate::observation::{Decimal, Observation, Quantity, Subject};

/// Names of the values that are read, without the unit. Saved reports often misspell the unit.
const FIGURES: [(&str, Unit); 10] = [
    (
        "Highest measured interrupt to process latency",
        Unit::Microseconds,
    ),
    (
        "Average measured interrupt to process latency",
        Unit::Microseconds,
    ),
    (
        "Highest measured interrupt to DPC latency",
        Unit::Microseconds,
    ),
    (
        "Average measured interrupt to DPC latency",
        Unit::Microseconds,
    ),
    ("Highest ISR routine execution time", Unit::Microseconds),
    ("Total time spent in ISRs", Unit::Percent),
    ("Highest DPC routine execution time", Unit::Microseconds),
    ("Total time spent in DPCs", Unit::Percent),
    ("Total number of hard pagefaults", Unit::Count),
    (HARDEST_HIT, Unit::Count),
];

/// Start of a line that names the driver of the value before it.
const DRIVER: &str = "Driver with ";

/// Label of the process to which [`HARDEST_HIT`] belongs.
const PROCESS: &str = "Process with highest pagefault count";

/// Name of a number of page faults.
const HARDEST_HIT: &str = "Hard pagefault count of hardest hit process";

/// Unit of a value.
#[derive(Clone, Copy)]
enum Unit {
    Microseconds,
    Percent,
    Count,
}

impl Unit {
    fn parse(self, value: &str) -> Option<Quantity> {
        Some(match self {
            Unit::Microseconds => Quantity::Microseconds(Decimal::parse(value)?),
            Unit::Percent => Quantity::Percent(Decimal::parse(value)?),
            Unit::Count => Quantity::Count(value.parse().ok()?),
        })
    }
}

pub(super) fn starts(text: &str) -> bool {
    (text.lines().take(60)).any(|line| line.starts_with("LatencyMon has been analyzing"))
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::LatencyMon);
    let mut process = None;
    for (index, written) in text.text.lines().enumerate() {
        if let Some(value) = written.strip_prefix("Computer name:") {
            reading.input.machine.name = Some(value.trim().to_owned());
        } else if let Some(value) = written.strip_prefix("OS version:") {
            os_version(&mut reading, value);
        } else if let Some(value) = value_of(written, PROCESS) {
            process = Some(value.to_owned());
        } else if let Some(label) = written.strip_prefix(DRIVER) {
            name_driver(&mut reading.input.observed, label);
        } else if let Some((name, unit, value)) = figure(written) {
            let subject = process.take_if(|_| name == HARDEST_HIT);
            let subject = subject.map(|program| Subject::Process { program, id: None });
            match unit.parse(value) {
                Some(quantity) => reading.observed(name, subject, quantity, line(index)),
                None => reading.complain(line(index), format!("not a number: {value:?}")),
            }
        }
    }
    reading
}

/// Sets the driver of the last value. `label` is the name of this value and the driver, such as `highest DPC routine
/// execution time: ndis.sys - Network Driver Interface`.
fn name_driver(observed: &mut [Observation], label: &str) {
    if let Some(last) = observed.last_mut()
        && let Some((name, rest)) = label.split_at_checked(last.name.len())
        && name.eq_ignore_ascii_case(last.name)
        && let Some(driver) = value_of(rest, "")
    {
        let (file, description) = match driver.split_once(" - ") {
            Some((file, description)) => (file, Some(description.to_owned())),
            None => (driver, None),
        };
        let file = file.to_owned();
        last.subject = Some(Subject::Driver { file, description });
    }
}

/// Reads the build in a value such as `Windows 10, 10.0, version 2009, build: 19043 (x64)`.
fn os_version(reading: &mut Reading, value: &str) {
    let build = value.split_once("build: ").map(|(_, build)| build);
    let build = build.and_then(|build| build.split_whitespace().next());
    let machine = &mut reading.input.machine;
    machine.build = build.and_then(|build| build.parse().ok());
    machine.edition = value.contains("Server").then_some(Edition::Server);
}

/// Returns the name, the unit and the value in a line.
fn figure(written: &str) -> Option<(&'static str, Unit, &str)> {
    let values = FIGURES.iter().map(|(name, unit)| (*name, *unit));
    let mut values = values.filter_map(|(name, unit)| Some((name, unit, value_of(written, name)?)));
    values.next()
}

/// Returns the text after a label and its unit. Returns `None` if the line has another label, or no text after it.
fn value_of<'a>(written: &'a str, label: &str) -> Option<&'a str> {
    let rest = written.strip_prefix(label)?.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(unit) => unit.split_once(')')?.1,
        None => rest,
    };
    let value = rest.trim_start_matches(':').trim();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Input;
    use crate::inputs::text::decode;

    /// Returns the values as lines of text.
    fn lines(input: &Input) -> Vec<String> {
        assert_eq!(input.complaints.count, 0);
        assert!(input.found.is_empty(), "values of reports are no settings");
        let observed = input.observed.iter();
        observed
            .map(|observed| {
                let subject = observed.subject.as_ref().map(ToString::to_string);
                let subject = subject.unwrap_or_default();
                format!("{}: {} {subject}", observed.name, observed.quantity)
            })
            .collect()
    }

    #[test]
    fn the_machine_and_its_delays_are_read_with_their_drivers() {
        let bytes = testdata::bytes("settings/latencymon_decimal_comma.txt");
        let text = decode(bytes);
        assert!(starts(&text.text));
        let input = read("report.txt", &text).input;
        assert_eq!(
            lines(&input),
            [
                "Highest measured interrupt to process latency: 8,433.70 µs ",
                "Average measured interrupt to process latency: 5.118362 µs ",
                "Highest measured interrupt to DPC latency: 8,012.740 µs ",
                "Average measured interrupt to DPC latency: 1.703222 µs ",
                "Highest ISR routine execution time: 178.263021 µs HDAudBus.sys",
                "Total time spent in ISRs: 0.000087 % ",
                "Highest DPC routine execution time: 8,012.740 µs ACPI.sys",
                "Total time spent in DPCs: 0.087163 % ",
            ]
        );
        assert_eq!(
            input.observed[6].subject,
            Some(Subject::Driver {
                file: "ACPI.sys".to_owned(),
                description: Some("ACPI Driver for NT, Microsoft Corporation".to_owned()),
            })
        );
        assert_eq!(input.machine.name.as_deref(), Some("LAPTOP-1"));
        assert_eq!(input.machine.build, Some(26100));
    }

    #[test]
    fn the_process_with_the_most_page_faults_is_read() {
        let text = "LatencyMon has been analyzing your system for  0:01:00  (h:mm:ss) on all processors.\n\
            Process with highest pagefault count:                 msmpeng.exe\n\
            \n\
            Total number of hard pagefaults                       1155\n\
            Hard pagefault count of hardest hit process:          425\n\
            Highest DPC routine execution time (\u{b5}s):             0.0\n\
            Driver with highest DPC routine execution time:       \n";
        assert_eq!(
            lines(&read("report.txt", &decode(text)).input),
            [
                "Total number of hard pagefaults: 1,155 ",
                "Hard pagefault count of hardest hit process: 425 msmpeng.exe",
                "Highest DPC routine execution time: 0.0 µs ",
            ]
        );
    }
}
