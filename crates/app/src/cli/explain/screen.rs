//! First screen of `laglab explain`: the answer in 24 lines.

use std::io::{self, Write};
use std::ops::Range;

use explain::{Explanation, Finding, Judgement, Severity};
use report::ExplainedTrace;
use session::SEVERAL_SYSTEMS;
use wording::Sentence;

use crate::output::{self, Look, counted, duration};

/// Number of lines of the screen.
const LINES: usize = 24;
/// Maximum number of columns. It is also the number of columns if standard output is not a terminal. Longer
/// lines are hard to read.
const COLUMNS: usize = 100;
/// Number of columns before the text of a line.
const INDENT: usize = 12;
/// Maximum number of lines for the sentence of a finding.
const SENTENCE: usize = 3;
/// Maximum number of lines for the cause of a finding.
const WHY: usize = 4;
/// Maximum number of lines for the remedies of a finding.
const REMEDIES: usize = 3;
/// Maximum number of lines for the certainty of a finding.
const CERTAINTY: usize = 3;
/// Maximum number of lines that complete findings leave free for one-line findings.
const SHORT: usize = 4;

/// Writes the first screen.
pub(super) fn write(
    out: &mut dyn Write,
    explained: &ExplainedTrace,
    is_scoped: bool,
) -> io::Result<()> {
    let columns = output::width().map_or(COLUMNS, |width| width.min(COLUMNS));
    for (look, line) in lines(explained, is_scoped, columns) {
        output::line(out, look, &line)?;
    }
    Ok(())
}

type Lines = Vec<(Look, String)>;

fn lines(explained: &ExplainedTrace, is_scoped: bool, columns: usize) -> Lines {
    let screen = Screen { columns };
    let explanation = &explained.explanation;
    let mut lines = vec![(Look::Heading, screen.cut(&trace(explained)))];
    if !explained.info.one_system {
        screen.section(&mut lines, Look::Warning, "", SEVERAL_SYSTEMS, WHY);
    }
    screen.conclusion(&mut lines, explained, is_scoped);

    let mut main = Vec::new();
    let mut short = Vec::new();
    let least = least_severity(explanation, is_scoped);
    for (number, finding) in (1..).zip(&explanation.findings) {
        if finding.severity >= least && !finding.off_topic {
            main.push((number, finding))
        } else {
            short.push((number, finding))
        }
    }
    // Findings of severity information are not listed if there are more important findings.
    if is_scoped || !main.is_empty() {
        short.retain(|(_, finding)| finding.severity > Severity::Information);
    }

    // Number of lines at the end of the screen: the time line that `strip` draws and the line with more options,
    // each after an empty line.
    let end = 4;
    let mut shown = Vec::new();
    let mut rest = Vec::new();
    let mut left = main.len();
    for (number, finding) in main {
        left -= 1;
        let block = screen.finding(number, finding);
        let others = (left + short.len() + rest.len()).min(SHORT);
        let room = LINES.saturating_sub(lines.len() + end + others + usize::from(others > 0));
        if rest.is_empty() && (shown.is_empty() || block.len() < room) {
            lines.push((Look::Plain, String::new()));
            lines.extend(block);
            shown.push((number, finding));
        } else {
            rest.push((number, finding));
        }
    }
    rest.extend(short);
    screen.others(&mut lines, &rest, end);
    if let Some(strip) = screen.strip(explanation, &shown) {
        lines.push((Look::Plain, String::new()));
        lines.push((Look::Quiet, strip));
    }
    lines.push((Look::Plain, String::new()));
    lines.push((Look::Quiet, screen.cut(&more(explanation, &shown))));
    lines
}

/// Returns the minimum severity of the findings that are shown with their cause.
fn least_severity(explanation: &Explanation, is_scoped: bool) -> Severity {
    let has = |severity| {
        let mut findings = explanation.findings.iter();
        findings.any(|finding| finding.severity == severity && !finding.off_topic)
    };
    match is_scoped {
        true => Severity::Information,
        false if has(Severity::Problem) => Severity::Problem,
        false => Severity::Warning,
    }
}

/// Returns the line about the trace: name, length, system, losses.
fn trace(explained: &ExplainedTrace) -> String {
    let info = &explained.info;
    let mut files = info.trace.files.iter();
    let first = files.next().map_or("", |path| tables::file_name(path));
    let mut parts = vec![match files.count() {
        0 => first.to_owned(),
        more => format!(
            "{first} and {}",
            counted(more as u64, "more file", "more files")
        ),
    }];
    match &explained.instead {
        Some(instead) => parts.push(instead.clone()),
        None if !info.one_system => {
            parts.push(counted(info.sessions.len() as u64, "session", "sessions"));
        }
        None => parts.extend(info.trace.recorded_ns().map(duration)),
    }
    if info.is_simulated() {
        parts.push("simulated".to_owned());
    }
    if explained.instead.is_none() && info.one_system {
        let losses = match explained.damage().is_empty() {
            _ if explained.explanation.is_incomplete() => "capture incomplete",
            true => "nothing lost",
            // The kernel of Linux did not log single switches.
            false if info.damage.none => "single events missing",
            false => "events lost or damaged",
        };
        parts.push(losses.to_owned());
        // The system comes last, because its name can be long, and the end of the line may be cut.
        let release = info.system.release.map(str::to_owned);
        let system = release.unwrap_or_else(|| info.system.name());
        parts.push(format!("{}, {system}", info.cpus.counted()));
    }
    parts.join("   ")
}

/// Returns the last line: options that show more.
fn more(explanation: &Explanation, shown: &[(usize, &Finding)]) -> String {
    let mut parts = Vec::new();
    if let Some((number, finding)) = shown.first() {
        parts.push(match finding.weighed.len() {
            0 => format!("--why {number}"),
            causes => format!(
                "--why {number} ({})",
                counted(causes as u64, "examined cause", "examined causes")
            ),
        });
    }
    parts.push(match explanation.findings.len() {
        0 => "--all (the answer to each question)".to_owned(),
        findings => format!(
            "--all ({})",
            counted(findings as u64, "finding", "findings")
        ),
    });
    parts.push("--evidence".to_owned());
    format!("{:<INDENT$}{}", "MORE", parts.join("   "))
}

/// Returns sentences about the certainty of a finding: the causes that are ruled out, the causes
/// for which data is missing, and the first doubt.
fn certainty(finding: &Finding) -> Option<String> {
    let listed = |judgement, label| {
        let causes: Vec<&str> = finding.causes(judgement).collect();
        (!causes.is_empty()).then(|| format!("{label}: {}.", causes.join(", ")))
    };
    let ruled_out = listed(Judgement::Against, "Ruled out");
    let open = listed(Judgement::NotRecorded, "Not recorded");
    let doubts = finding.doubts.first();
    let doubt = doubts.map(|doubt| format!("Doubt: {}.", doubt.trim_end_matches('.')));
    let sentences: Vec<String> = ruled_out.into_iter().chain(open).chain(doubt).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

struct Screen {
    columns: usize,
}

impl Screen {
    /// Adds a labelled text of at most `most` lines.
    fn section(&self, lines: &mut Lines, look: Look, label: &str, text: &str, most: usize) {
        let text = output::wrapped(text, self.columns.saturating_sub(INDENT));
        let is_cut = text.len() > most;
        for (place, line) in text.into_iter().take(most).enumerate() {
            let label = if place == 0 { label } else { "" };
            let mut line = format!("{label:<INDENT$}{line}");
            if is_cut && place + 1 == most {
                line = self.cut(&format!("{line} …"));
            }
            lines.push((look, line));
        }
    }

    /// Returns the line, cut to the width of the screen. A line that was cut ends with an ellipsis.
    fn cut(&self, line: &str) -> String {
        let line = output::Printable(line).to_string();
        match line.char_indices().nth(self.columns) {
            None => line,
            Some(_) => {
                let start: String = line.chars().take(self.columns.saturating_sub(1)).collect();
                format!("{}…", start.trim_end_matches([' ', '…']))
            }
        }
    }

    fn conclusion(&self, lines: &mut Lines, explained: &ExplainedTrace, is_scoped: bool) {
        let explanation = &explained.explanation;
        let mut say = |text: &str| {
            lines.push((Look::Plain, String::new()));
            self.section(lines, Look::Warning, "RESULT", text, WHY);
        };
        let is_off_topic = explanation.findings.iter().all(|found| found.off_topic);
        match explained.conclusion() {
            _ if is_scoped && is_off_topic => {
                let because = explanation.theories.first().map(|v| v.because.as_str());
                say(&format!(
                    "Nothing found in scope: {}.",
                    because.unwrap_or_default()
                ));
            }
            // The findings in scope are the result, if the trace can show all main kinds of delays.
            Some(conclusion) if !is_scoped || explanation.main_record().is_some() => {
                say(&conclusion);
            }
            _ => return,
        }
        if let Some(record) = explanation.main_record() {
            self.section(
                lines,
                Look::Plain,
                "  Do",
                &format!("Record {record}."),
                WHY,
            );
        }
    }

    /// Returns the lines of a finding: the sentence, the cause, the delay, the remedies and the
    /// certainty.
    fn finding(&self, number: usize, finding: &Finding) -> Lines {
        let (look, word) = match finding.severity {
            Severity::Problem => (Look::Warning, "PROBLEM"),
            Severity::Warning => (Look::Warning, "WARNING"),
            Severity::Information => (Look::Plain, "NOTE"),
        };
        let mut lines = Vec::new();
        let label = format!("{word} {number}");
        self.section(&mut lines, look, &label, &finding.sentence, SENTENCE);
        if !finding.why.is_empty() {
            self.section(
                &mut lines,
                Look::Plain,
                "  Why",
                &Sentence::joined(&finding.why),
                WHY,
            );
        }
        if let Some(delay) = &finding.delay {
            let text = format!("{} {}", duration(delay.ns), delay.how);
            self.section(&mut lines, Look::Plain, "  Delay", &text, 1);
        }
        for (place, remedy) in finding.remedies.iter().take(REMEDIES).enumerate() {
            let label = if place == 0 { "  Do" } else { "" };
            self.section(&mut lines, Look::Plain, label, remedy, 2);
        }
        if let Some(certainty) = certainty(finding) {
            self.section(&mut lines, Look::Quiet, "  Sure", &certainty, CERTAINTY);
        }
        lines
    }

    /// Adds a line for each other finding while there is room. The last `end` lines of the screen stay free.
    fn others(&self, lines: &mut Lines, others: &[(usize, &Finding)], end: usize) {
        if others.is_empty() {
            return;
        }
        lines.push((Look::Plain, String::new()));
        let room = LINES.saturating_sub(lines.len() + end).max(1);
        let shown = if others.len() <= room {
            others.len()
        } else {
            room.saturating_sub(1)
        };
        for (place, (number, finding)) in others.iter().take(shown).enumerate() {
            let label = if place == 0 { "ALSO" } else { "" };
            let line = format!("{label:<8}{number:>2}  {}", finding.sentence);
            lines.push((Look::Plain, self.cut(&line)));
        }
        if shown < others.len() {
            let label = if shown == 0 { "ALSO" } else { "" };
            let left = counted(
                (others.len() - shown) as u64,
                "more finding",
                "more findings",
            );
            lines.push((Look::Quiet, format!("{label:<INDENT$}{left}: --all")));
        }
    }

    /// Draws the time of the trace as one line. A digit marks the time range of each of `findings`; the digit
    /// is the finding's number.
    fn strip(&self, explanation: &Explanation, findings: &[(usize, &Finding)]) -> Option<String> {
        const ASLEEP: char = 'z';
        let span = &explanation.span;
        let length = span.end.saturating_sub(span.start);
        if length <= 0 || findings.iter().all(|(_, finding)| finding.during.is_none()) {
            return None;
        }
        let gaps = &explanation.survey.suspend_gaps;
        let legend = match (gaps.ranges.is_empty(), gaps.may_be_lost) {
            (true, _) => "",
            (false, false) => "  z: suspended",
            (false, true) => "  z: not recorded",
        };
        let (from, to) = (output::moment(span.start), output::moment(span.end));
        let width = INDENT + from.len() + to.len() + legend.len() + 4;
        let cells = self.columns.saturating_sub(width);
        if cells < 10 {
            return None;
        }
        let mut picture = vec!['·'; cells];
        let cell = |ns: i64| {
            let place = i128::from(ns.saturating_sub(span.start)) * cells as i128;
            (place / i128::from(length)).clamp(0, cells as i128 - 1) as usize
        };
        let mut mark = |during: &Range<i64>, letter: char| {
            // The end is exclusive, but even a range without length marks one cell.
            let (first, last) = (cell(during.start), cell(during.end.saturating_sub(1)));
            if let Some(cells) = picture.get_mut(first..=last.max(first)) {
                cells.fill(letter);
            }
        };
        (gaps.ranges.iter()).for_each(|gap| mark(gap, ASLEEP));
        // The most important finding is drawn last, so that no other finding overwrites its digit.
        for (number, finding) in findings.iter().rev() {
            let digit = char::from_digit((number % 10) as u32, 10).unwrap_or('#');
            match finding.moments.as_slice() {
                [] => finding.during.iter().for_each(|during| mark(during, digit)),
                moments => moments.iter().for_each(|moment| mark(moment, digit)),
            }
        }
        let legend = if picture.contains(&ASLEEP) {
            legend
        } else {
            ""
        };
        let picture: String = picture.into_iter().collect();
        Some(format!(
            "{:<INDENT$}{from} |{picture}| {to}{legend}",
            "TIME"
        ))
    }
}
