//! The report of `powercfg /energy`, as XML (`/xml`) or HTML: who asked for which timer resolution,
//! and what else it noticed.
//!
//! <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>

use super::reading::{Reading, line};
use super::text::Text;
use super::xml::{self, Lines};
use super::{Format, InputError};

/// The root element of the XML.
pub(super) const ROOT: &str = "EnergyReport";

/// The command, as origin of what is found.
const COMMAND: &str = "powercfg /energy";

/// Details that tell of timers and of the machine, as the report names them in English.
const DETAILS: [&str; 5] = [
    "Current Timer Resolution (100ns units)",
    "Maximum Timer Period (100ns units)",
    "Requested Period",
    "Requesting Process Path",
    "Plan Type",
];

/// Whether the text is such a report in HTML.
pub(super) fn is_html(text: &str) -> bool {
    let start: String = text.chars().take(200_000).collect();
    start.contains("<html") && start.contains("Power Efficiency Diagnostics Report")
}

pub(super) fn read_xml(name: &str, text: &Text) -> Result<Reading, InputError> {
    let document = xml::parse(name, &text.text)?;
    let lines = Lines::of(&text.text);
    let mut reading = Reading::new(name, Format::EnergyReport);
    let entries = document.descendants();
    for entry in entries.filter(|node| node.tag_name().name() == "LogEntry") {
        let title = xml::text(entry, "Name").unwrap_or("").trim();
        let details = entry.descendants();
        let details: Vec<(&str, &str)> = details
            .filter(|node| node.tag_name().name() == "Detail")
            .filter_map(|detail| {
                Some((
                    xml::text(detail, "Name")?.trim(),
                    xml::text(detail, "Value")?.trim(),
                ))
            })
            .collect();
        // Who asked is the object that the period is of.
        let process = details
            .iter()
            .find(|(name, _)| *name == "Requesting Process Path");
        let object = process.map_or(title, |(_, path)| *path);
        for (detail, value) in &details {
            if DETAILS.contains(detail) {
                reading.answer(COMMAND, object, detail, value, lines.at(entry));
            }
        }
    }
    Ok(reading)
}

/// Reads the HTML as the texts between its tags: each detail's name is followed by its value.
pub(super) fn read_html(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::EnergyReport);
    let texts = texts(&text.text);
    let mut period = None;
    for (place, (index, detail)) in texts.iter().enumerate() {
        let Some((_, value)) = texts.get(place + 1) else {
            break;
        };
        match detail.as_str() {
            // The process is told after what it asked for.
            "Requested Period" => period = Some((value, *index)),
            "Requesting Process Path" => {
                if let Some((period, index)) = period.take() {
                    reading.answer(COMMAND, value, "Requested Period", period, line(index));
                }
            }
            detail if DETAILS.contains(&detail) => {
                reading.answer(COMMAND, "", detail, value, line(*index));
            }
            _ => {}
        }
    }
    reading
}

/// The texts between tags, each with the index of its line.
fn texts(html: &str) -> Vec<(usize, String)> {
    let mut texts = Vec::new();
    let mut index = 0;
    for piece in html.split('<') {
        let text = piece.split_once('>').map_or("", |(_, text)| text);
        let tag_lines = piece.len() - text.len();
        let at = index + piece[..tag_lines].matches('\n').count();
        let plain = text.trim();
        if !plain.is_empty() {
            texts.push((at, plain.replace("&amp;", "&")));
        }
        index += piece.matches('\n').count();
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    const PATH: &str = r"\Device\HarddiskVolume3\Games\game.exe";

    fn told(reading: &Reading) -> Vec<String> {
        let found = reading.input.found.iter();
        found
            .map(|found| format!("{} {}", found.place, found.value.as_ref().unwrap()))
            .collect()
    }

    #[test]
    fn who_asked_for_a_timer_is_read_from_both_forms() {
        let xml = format!(
            "<EnergyReport xmlns=\"http://schemas.microsoft.com/energy/2007\"><Troubleshooter>\
             <AnalysisLog><LogEntry><Name>Outstanding Timer Request</Name><Severity>Warning</Severity>\
             <Details><Detail><Name>Requested Period</Name><Value>5000</Value></Detail>\
             <Detail><Name>Requesting Process Path</Name><Value>{PATH}</Value></Detail></Details>\
             </LogEntry></AnalysisLog></Troubleshooter></EnergyReport>"
        );
        let html = format!(
            "<!DOCTYPE html><html><head><title>Power Efficiency Diagnostics Report</title></head>\
             <body><table><tr><td>Requested Period</td><td>5000</td></tr>\n<tr>\
             <td>Requesting Process Path</td><td>{PATH}</td></tr></table></body></html>"
        );
        let expected = format!("powercfg /energy \"{PATH}\" Requested Period \"5000\"");
        let xml = read_xml("energy.xml", &decode(xml.as_bytes())).unwrap();
        assert_eq!(told(&xml)[0], expected);
        assert!(is_html(&html));
        assert_eq!(
            told(&read_html("energy.html", &decode(html.as_bytes()))),
            [expected]
        );
    }
}
