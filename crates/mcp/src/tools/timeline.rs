//! Tool `timeline`: numbers over time.

use explore::{Function, Number, TimelineAnswer, TimelineRequest};
use serde::{Deserialize, Serialize};

use super::Session;
use super::summarize::one_line;
use crate::answer::{Answer, Room};
use crate::arguments::{self, Time};
use crate::conditions::{self, Where};
use crate::failure::Failure;
use crate::marks::Marks;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    trace: Option<String>,
    table: String,
    by: Option<String>,
    measure: Option<String>,
    function: Option<Function>,
    #[serde(rename = "where")]
    filter: Option<Vec<Where>>,
    between: Option<[Time; 2]>,
    buckets: Option<u32>,
    first: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    start_ns: i64,
    bucket_ns: i64,
    unit: String,
    series: Vec<Series>,
    /// Groups without a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<Others>,
    /// Advice if the table has no rows in this trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    from_trace: String,
    sql: String,
}

/// Values of a group, one for each bucket.
#[derive(Debug, Serialize)]
struct Series {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Values drawn as a line of block characters.
    line: String,
    total: Option<Number>,
    values: Vec<Option<Number>>,
}

/// Combined values of the groups without a series.
#[derive(Debug, Serialize)]
struct Others {
    /// Number of these groups.
    groups: usize,
    #[serde(flatten)]
    series: Series,
}

const MOST_BUCKETS: u32 = 60;
const BUCKETS: u32 = 30;
const MOST_SERIES: u32 = 20;
const SERIES: u32 = 5;

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let buckets = arguments::in_bounds("buckets", asked.buckets, 1..=MOST_BUCKETS)?;
    let first = arguments::in_bounds("first", asked.first, 1..=MOST_SERIES)?;
    let filter = conditions::filter(asked.filter)?;
    let (trace, range, explorer) =
        session.explore(asked.trace.as_deref(), asked.between.as_ref(), &asked.table)?;
    let mut request = TimelineRequest {
        table: asked.table,
        by: asked.by,
        measure: asked.measure,
        function: asked.function,
        range: range.map(|range| [range.start, range.end]),
        filter,
        buckets: buckets.unwrap_or(BUCKETS),
        first: first.unwrap_or(SERIES),
    };
    let info = super::schema::info(&explorer, &request.table)?;
    let missing: Vec<String> = super::missing(&trace, info.name, info.rows)
        .into_iter()
        .collect();
    let marks = Marks::new()?;
    loop {
        let answer = explorer.timeline(&request, session.call.flag())?;
        let (content, fitting) = content(answer, request.by.is_some(), missing.clone(), &marks);
        let shown = content.series.len();
        if fitting == shown || request.first == 0 {
            return Answer::new(&content);
        }
        // Groups without room get no series, so `others` contains their values. The series of unknown values is never a
        // part of `others`. It can therefore take the room of another series.
        let [shown, left_out] =
            [shown, shown - fitting].map(|count| u32::try_from(count).unwrap_or(MOST_SERIES));
        request.first = request.first.min(shown).saturating_sub(left_out);
    }
}

/// Returns the answer with all series, and the number of series that have room in it.
fn content(
    found: TimelineAnswer,
    is_split: bool,
    missing: Vec<String>,
    marks: &Marks,
) -> (Content, usize) {
    let mut answer = format!(
        "{} buckets of {} from {} s.",
        found.buckets,
        wording::duration(found.bucket_ns),
        found.start_ns as f64 / 1e9
    );
    if let Some(rest) = &found.rest {
        answer += &format!(
            " `others` has the values of {} that {} no series here.",
            wording::counted(rest.count as u64, "further group", "further groups"),
            if rest.count == 1 { "has" } else { "have" }
        );
    }
    let mut content = Content {
        answer,
        start_ns: found.start_ns,
        bucket_ns: found.bucket_ns,
        unit: found.unit,
        series: Vec::new(),
        others: found.rest.map(|rest| Others {
            groups: rest.count,
            series: Series::new(None, rest.total, rest.values),
        }),
        missing,
        from_trace: marks.note(),
        sql: one_line(&found.sql),
    };
    let mut room = Room::of_rows(None).without(report::json_bytes(&content));
    content
        .series
        .extend(found.series.into_iter().map(|series| {
            let name = is_split.then(|| marks.label(series.id, &series.label));
            Series::new(name, series.total, series.values)
        }));
    let fitting = (content.series.iter())
        .take_while(|series| room.take(series))
        .count();
    (content, fitting)
}

impl Series {
    fn new(name: Option<String>, total: Option<Number>, values: Vec<Option<Number>>) -> Series {
        Series {
            name,
            line: line(&values),
            total,
            values,
        }
    }
}

/// Returns a line of blocks whose heights are the values.
fn line(values: &[Option<Number>]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let real = |number: &Number| match number {
        Number::Integer(integer) => *integer as f64,
        Number::Real(real) => *real,
    };
    let most = values.iter().flatten().map(real).fold(0.0, f64::max);
    let block = |value: &Option<Number>| match value {
        Some(value) if most > 0.0 => {
            let height = (real(value) / most * 7.0).round().clamp(0.0, 7.0);
            BLOCKS[height as usize]
        }
        Some(_) => BLOCKS[0],
        None => ' ',
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_shares_of_the_maximum() {
        let values = [Some(0), Some(7), None, Some(3), Some(-5)];
        let values = values.map(|value| value.map(Number::Integer));
        assert_eq!(line(&values), "▁█ ▄▁");
        assert_eq!(line(&[Some(Number::Integer(0))]), "▁");
        assert_eq!(line(&[]), "");
    }
}
