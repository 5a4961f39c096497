//! Reader of TraceEvent's text dumps of traces ("baselines").
//!
//! `TraceEvent.Tests/Parsing/GeneralParsing.cs` of `github:microsoft/perfview` (MIT) writes the dumps. A dump
//! has up to five `EVENT` lines for each kind of event. After these lines, it has one `COUNT` line for each
//! kind. Texts longer than 20 characters are cut and end with three dots.

/// Text of a dump.
pub(crate) struct Baseline {
    text: String,
}

/// An `EVENT` line: one event with its fields.
pub(crate) struct Line<'a> {
    /// Whole line, for error messages of the tests.
    pub(crate) text: &'a str,
    /// Time of the event in microseconds since the trace's start.
    pub(crate) time_us: i64,
    /// Kind of the event: provider, task and opcode, such as `Windows Kernel/Process/Start`.
    pub(crate) kind: &'a str,
    /// Names and texts of all fields in the line's order. The fields `PID`, `TID`, `PName`, `ProceNum` and
    /// `DataLen` exist for all kinds of events. The other fields come from the payload.
    pub(crate) fields: Vec<(&'a str, &'a str)>,
}

impl Baseline {
    pub(crate) fn read(name: &str) -> Baseline {
        let bytes = testdata::bytes(&format!("etl/golden/{name}.baseline.txt"));
        let text = String::from_utf8(bytes).unwrap();
        Baseline { text }
    }

    /// Returns the `EVENT` lines in the dump's order.
    pub(crate) fn events(&self) -> Vec<Line<'_>> {
        let lines = self.starting_with("EVENT ");
        lines.map(|(text, rest)| Line::parse(text, rest)).collect()
    }

    /// Returns the kinds of events and the number of events of each kind.
    pub(crate) fn counts(&self) -> Vec<(&str, usize)> {
        let lines = self.starting_with("COUNT ");
        let counts = lines.map(|(_, rest)| rest.rsplit_once(':').unwrap());
        counts.map(|(kind, n)| (kind, n.parse().unwrap())).collect()
    }

    fn starting_with<'a>(&'a self, start: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let lines = self.text.trim_start_matches('\u{feff}').lines();
        lines.filter_map(move |line| Some((line, line.strip_prefix(start)?)))
    }
}

impl<'a> Line<'a> {
    fn parse(text: &'a str, rest: &'a str) -> Line<'a> {
        let (time, rest) = rest.split_once(": ").unwrap();
        let (kind, rest) = rest.split_once(" PID=").unwrap();
        let time: String = time.chars().filter(char::is_ascii_digit).collect();
        let mut fields = Vec::new();
        // `rest` starts with the value of the field `PID`. The split above removed the first name ` PID=`.
        let mut name = "PID";
        let mut from = 0;
        for (at, _) in rest.match_indices("; ") {
            // A value may contain `; `. So the value ends only if the name of the next field or the end of
            // the line comes after the `; `.
            let next = &rest[at + 2..];
            let is_name = |name: &str| {
                let first = name.starts_with(|c: char| c.is_ascii_alphabetic());
                first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            };
            let following = next.split_once('=').map(|(name, _)| name);
            if next.is_empty() || following.is_some_and(is_name) {
                fields.push((name, &rest[from..at]));
                let next_name = following.unwrap_or("");
                (name, from) = (next_name, at + 3 + next_name.len());
            }
        }
        Line {
            text,
            time_us: time.parse().unwrap(),
            kind,
            fields,
        }
    }
}
