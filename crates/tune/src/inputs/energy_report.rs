//! Reader of the report of `powercfg /energy`, as XML (`/xml`) or HTML. It contains timer requests by
//! process, and the power plan.
//!
//! <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>

use super::reading::{Reading, line};
use super::text::Text;
use super::xml::{self, Lines};
use super::{Format, InputError};

/// Root element of the XML.
pub(super) const ROOT: &str = "EnergyReport";

/// Command that prints the values. It becomes the `command` of each `Place::Answer`.
const COMMAND: &str = "powercfg /energy";

/// English names of details about timers and the power plan.
const DETAILS: [&str; 5] = [
    "Current Timer Resolution (100ns units)",
    "Maximum Timer Period (100ns units)",
    "Requested Period",
    "Requesting Process Path",
    "Plan Type",
];

/// Returns true if the text is a report of `powercfg /energy` in HTML.
pub(super) fn is_html(text: &str) -> bool {
    let start: String = text.chars().take(200_000).collect();
    start.contains("<html") && start.contains("Power Efficiency Diagnostics Report")
}

pub(super) fn read_xml(name: &str, text: &Text) -> Result<Reading, InputError> {
    let document = xml::parse(name, &text.text)?;
    let lines = Lines::new(&text.text);
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
        // The object of a requested period is the process that requested it.
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

/// Reads the texts between the tags of the HTML. The name of a detail is the text before its value.
pub(super) fn read_html(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::EnergyReport);
    let texts = texts(&text.text);
    let mut period = None;
    for (place, (index, detail)) in texts.iter().enumerate() {
        let Some((_, value)) = texts.get(place + 1) else {
            break;
        };
        match detail.as_str() {
            // The path of the process follows the period that the process requested.
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

/// Returns the texts between tags, with the indexes of their lines.
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

    fn lines(reading: &Reading) -> Vec<String> {
        let found = reading.input.found.iter();
        found
            .map(|found| format!("{} {}", found.place, found.value.as_ref().unwrap()))
            .collect()
    }

    #[test]
    fn timer_requests_are_read_from_both_forms() {
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
        assert_eq!(lines(&xml)[0], expected);
        assert!(is_html(&html));
        assert_eq!(
            lines(&read_html("energy.html", &decode(html.as_bytes()))),
            [expected]
        );
    }
}
