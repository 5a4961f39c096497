//! Reader of the report of `powercfg /energy`, as XML (`/xml`) or HTML: periods of the timer, and the
//! requests for them.
//!
//! A report is written in the language of the system. So the values are found by the structure of its
//! entries: their group, and the number and form of their details.
//!
//! <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>

use super::reading::{Reading, line};
use super::text::Text;
use super::xml::{self, Lines};
use super::{Format, InputError};
use crate::observation::{Quantity, Subject};
use crate::placed_value::InputPosition;

/// Root element of the XML.
pub(super) const ROOT: &str = "EnergyReport";

/// Namespace of the XML. The HTML is made from the XML and declares it too.
const NAMESPACE: &str = "schemas.microsoft.com/energy/";

/// English names of the values.
const CURRENT: &str = "Current Timer Resolution";
const MAXIMUM: &str = "Maximum Timer Period";
const REQUESTED: &str = "Requested Period";

/// An entry of a report. Its group is a text or an element that all entries about the timer share.
struct Entry<G> {
    group: G,
    /// Names and values.
    details: Vec<(String, String)>,
    at: InputPosition,
}

/// Returns true if the text is a report of `powercfg /energy` in HTML.
pub(super) fn is_html(text: &str) -> bool {
    let start: String = text.chars().take(200_000).collect();
    start.contains("<html")
        && (start.contains(NAMESPACE) || start.contains("Power Efficiency Diagnostics Report"))
}

pub(super) fn read_xml(name: &str, text: &Text) -> Result<Reading, InputError> {
    let document = xml::parse(name, &text.text)?;
    let lines = Lines::new(&text.text);
    let entries = document.descendants();
    let entries = entries.filter(|node| node.tag_name().name() == "LogEntry");
    let entries: Vec<_> = entries
        .map(|entry| Entry {
            group: entry.parent().map(|parent| parent.id()),
            details: (entry.descendants())
                .filter(|node| node.tag_name().name() == "Detail")
                .map(|detail| {
                    let text = |name| xml::text(detail, name).unwrap_or("").trim().to_owned();
                    (text("Name"), text("Value"))
                })
                .collect(),
            at: lines.at(entry),
        })
        .collect();
    read_entries(name, Format::EnergyReport, &entries)
}

pub(super) fn read_html(name: &str, text: &Text) -> Result<Reading, InputError> {
    read_entries(name, Format::EnergyReportHtml, &html_entries(&text.text))
}

/// Returns the entries of the HTML. An entry begins with a header, such as `Group:Title`.
fn html_entries(html: &str) -> Vec<Entry<String>> {
    let mut entries: Vec<Entry<String>> = Vec::new();
    // A detail is a name and the cell of the table after it.
    let mut name = None;
    let mut index = 0;
    for piece in html.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        let text = plain(text);
        if tag.contains("\"log-entry-header\"") {
            let group = text.split(':').next().unwrap_or("").to_owned();
            entries.push(Entry {
                group,
                details: Vec::new(),
                at: line(index),
            });
            name = None;
        } else if tag.contains("\"detail-name\"") {
            name = Some(text);
        } else if tag.starts_with("td")
            && let Some((name, entry)) = name.take().zip(entries.last_mut())
        {
            entry.details.push((name, text));
        }
        index += piece.matches('\n').count();
    }
    entries
}

/// Returns the text of an element without the escapes of HTML.
fn plain(text: &str) -> String {
    let text = text.trim().replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// Returns true if a detail is a period of the timer. In every language, only the names of these details contain
/// their unit of 100 ns, with `ns` translated or not.
fn is_period((name, value): &(String, String)) -> bool {
    name.contains("100") && value.parse::<u32>().is_ok()
}

fn read_entries<G: PartialEq>(
    name: &str,
    format: Format,
    entries: &[Entry<G>],
) -> Result<Reading, InputError> {
    let has_periods = |entry: &Entry<G>| entry.details.first().is_some_and(is_period);
    let Some(periods) = entries.iter().find(|entry| has_periods(entry)) else {
        return Err(InputError::Unusable {
            name: name.to_owned(),
            found: "a powercfg /energy report without a period of the timer",
            advice: "give the report of `powercfg /energy /xml`",
        });
    };
    let mut reading = Reading::new(name, format);
    for entry in (entries.iter()).filter(|entry| entry.group == periods.group) {
        let at = entry.at;
        let details = entry.details.iter();
        let values: Vec<&str> = details.map(|(_, value)| value.as_str()).collect();
        match values[..] {
            _ if has_periods(entry) => {
                for (name, value) in [CURRENT, MAXIMUM].into_iter().zip(values) {
                    period(&mut reading, name, None, value, at);
                }
            }
            // The second value is the number of requests.
            [requested, _] => {
                let subject = Some(Subject::Kernel);
                period(&mut reading, REQUESTED, subject, requested, at);
            }
            [requested, id, program] => {
                let subject = Some(Subject::Process {
                    program: program.to_owned(),
                    id: id.parse().ok(),
                });
                period(&mut reading, REQUESTED, subject, requested, at);
            }
            // Other entries repeat a request with the modules that made it.
            _ => {}
        }
    }
    Ok(reading)
}

/// Adds a period in units of 100 ns.
fn period(
    reading: &mut Reading,
    name: &'static str,
    subject: Option<Subject>,
    value: &str,
    at: InputPosition,
) {
    match value.parse() {
        Ok(units) => reading.observed(name, subject, Quantity::TimerPeriod(units), at),
        Err(_) => reading.complain(at, format!("not a period in units of 100 ns: {value:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    /// Returns the values as lines of text.
    fn lines(reading: Result<Reading, InputError>) -> Vec<String> {
        let input = reading.unwrap().input;
        assert_eq!(input.complaints.count, 0);
        assert!(input.found.is_empty(), "values of reports are no settings");
        let observed = input.observed.iter();
        observed
            .map(|observed| {
                let Quantity::TimerPeriod(units) = observed.quantity else {
                    panic!("{observed:?}");
                };
                let subject = observed.subject.as_ref().map(ToString::to_string);
                format!("{} {units} {}", observed.name, subject.unwrap_or_default())
            })
            .collect()
    }

    const EXPECTED: [&str; 6] = [
        "Current Timer Resolution 9900 ",
        "Maximum Timer Period 156250 ",
        "Requested Period 10000 kernel or driver",
        r"Requested Period 10000 \Device\HarddiskVolume4\Apps\browser.exe (process 100)",
        r"Requested Period 10000 \Device\HarddiskVolume4\Apps\browser.exe (process 104)",
        r"Requested Period 9900 \Device\HarddiskVolume4\Apps\mouse.exe (process 200)",
    ];

    fn report() -> String {
        let bytes = testdata::bytes("settings/english_19041_stack_entries.html");
        decode(bytes).text
    }

    #[test]
    fn each_request_is_read_and_no_stack_replaces_one() {
        assert!(is_html(&report()));
        assert_eq!(lines(read_html("energy.html", &decode(report()))), EXPECTED);
    }

    /// The labels in other languages come from published reports.
    #[test]
    fn reports_in_other_languages_are_read() {
        const GERMAN: [(&str, &str); 6] = [
            (
                "Power Efficiency Diagnostics Report",
                "Energieeffizienzdiagnose-Bericht",
            ),
            ("Platform Timer Resolution", "Plattform-Zeitgeberauflösung"),
            (
                "Current Timer Resolution (100 ns units)",
                "Aktuelle Zeitgeberauflösung (100-ns-Einheiten)",
            ),
            ("Requested Period", "Angeforderter Zeitraum"),
            ("Requesting Process ID", "ID des anfordernden Prozesses"),
            ("Requesting Process Path", "Pfad des anfordernden Prozesses"),
        ];
        const SPANISH: [(&str, &str); 3] = [
            (
                "Power Efficiency Diagnostics Report",
                "Informe de Diagnósticos de eficiencia energética",
            ),
            (
                "Platform Timer Resolution",
                "Resolución de temporizador de plataforma",
            ),
            (
                "Current Timer Resolution (100 ns units)",
                "Resolución de temporizador actual (unidades de 100 ns)",
            ),
        ];
        const JAPANESE: [(&str, &str); 4] = [
            (
                "Power Efficiency Diagnostics Report",
                "電源効率の診断レポート",
            ),
            ("Platform Timer Resolution", "プラットフォーム タイマー精度"),
            (
                "Current Timer Resolution (100 ns units)",
                "現在のタイマー精度 (100 ナノ秒単位)",
            ),
            (
                "Maximum Timer Period (100 ns units)",
                "最大タイマー期間 (100 ナノ秒単位)",
            ),
        ];
        for language in [&GERMAN[..], &SPANISH, &JAPANESE] {
            let translate = |text: String, (english, other): &(&str, &str)| {
                assert!(text.contains(english), "{english}");
                text.replace(english, other)
            };
            let text = language.iter().fold(report(), translate);
            assert!(is_html(&text));
            assert_eq!(lines(read_html("energy.html", &decode(text))), EXPECTED);
        }
    }

    #[test]
    fn a_report_without_a_period_is_refused_with_advice() {
        let text = "<html xmlns:eew=\"http://schemas.microsoft.com/energy/2007\"></html>";
        let error = read_html("e.html", &decode(text)).err().unwrap();
        assert!(
            error.to_string().ends_with("`powercfg /energy /xml`"),
            "{error}"
        );
    }

    #[test]
    fn the_xml_is_read_like_the_html() {
        let browser = r"\Device\HarddiskVolume4\Apps\browser.exe";
        let mouse = r"\Device\HarddiskVolume4\Apps\mouse.exe";
        let requests: [&[&str]; 7] = [
            // An entry of another group has two numbers, like a request of the kernel.
            &["7", "8"],
            &["9900", "156250"],
            &["10000", "1"],
            &["10000", "100", browser],
            &["10000", "104", browser],
            &["9900", "200", mouse],
            &[
                "5000",
                "200",
                mouse,
                r"\Device\HarddiskVolume4\Windows\System32\ntdll.dll",
            ],
        ];
        let mut text = format!("<{ROOT} xmlns=\"http://{NAMESPACE}2007\">");
        for (number, values) in requests.into_iter().enumerate() {
            if number < 2 {
                text += "<Troubleshooter><AnalysisLog>";
            }
            text += "<LogEntry><Name>Title</Name><Details>";
            for value in values {
                let unit = if number == 1 {
                    "Period (100ns units)"
                } else {
                    "Name"
                };
                text += &format!("<Detail><Name>{unit}</Name><Value>{value}</Value></Detail>");
            }
            text += "</Details></LogEntry>";
            if number == 0 || number == 6 {
                text += "</AnalysisLog></Troubleshooter>";
            }
        }
        text += &format!("</{ROOT}>");
        assert_eq!(lines(read_xml("energy.xml", &decode(text))), EXPECTED);
    }
}
