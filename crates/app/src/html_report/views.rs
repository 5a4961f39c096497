//! What was on screen when the report was asked for: views, each as a picture, a table and a query.

use std::fmt::Write;

use explore::{
    Explorer, GraphKind, GroupSort, Number, PivotAnswer, PivotRequest, TimelineAnswer,
    TimelineRequest, Value, View,
};
use maud::{Markup, html};

use crate::output::{Printable, duration, grouped, size};

/// Groups that are listed.
const GROUPS: u32 = 30;
/// Series with a colour of their own: as many as there are colours.
const SERIES: u32 = 9;
/// Slices of time.
const BUCKETS: u32 = 300;
/// Size of a picture in its own units, which the page scales.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 160.0;

/// A view, answered.
pub(crate) struct ShownView {
    view: View,
    title: String,
    /// Name and unit of each column right of the golden bar.
    columns: Vec<(String, &'static str)>,
    /// Which rows count, in words.
    conditions: Vec<String>,
    timeline: Option<TimelineAnswer>,
    pivot: PivotAnswer,
}

impl ShownView {
    /// Asks what the view shows.
    ///
    /// # Errors
    /// If the view makes no sense, or nobody waits for it any more.
    pub(crate) fn ask(
        explorer: &Explorer,
        view: &View,
        cancelled: &std::sync::atomic::AtomicBool,
    ) -> Result<ShownView, explore::ExploreError> {
        let bar = view.columns.iter().position(|column| column == View::BAR);
        let (keys, aggregates) = match bar {
            Some(bar) => (&view.columns[..bar], &view.columns[bar + 1..]),
            None => (view.columns.as_slice(), &[][..]),
        };
        let pivot = explorer.pivot(
            &PivotRequest {
                table: view.table.clone(),
                keys: keys.iter().take(1).cloned().collect(),
                path: Vec::new(),
                aggregates: aggregates.to_vec(),
                range: view.range,
                filter: view.filter.clone(),
                sort: view.sort.as_ref().map(|sort| GroupSort {
                    by: match keys.contains(&sort.column) {
                        true => "key".to_owned(),
                        false => sort.column.clone(),
                    },
                    descending: sort.descending,
                }),
                offset: 0,
                first: GROUPS,
                search: None,
            },
            cancelled,
        )?;
        let graph = &view.graph;
        let timeline = match graph.kind {
            GraphKind::Timeline => Some(explorer.timeline(
                &TimelineRequest {
                    table: view.table.clone(),
                    by: graph.by.clone(),
                    measure: graph.measure.clone(),
                    function: graph.function,
                    range: view.range,
                    filter: view.filter.clone(),
                    buckets: BUCKETS,
                    first: SERIES,
                },
                cancelled,
            )?),
            _ => None,
        };
        let tables = explorer.tables()?;
        let table = tables.iter().find(|table| table.name == view.table);
        let about = |name: &str| {
            let columns = table.map_or(&[][..], |table| &table.columns);
            columns.iter().find(|column| column.name == name)
        };
        let columns = aggregates.iter().map(|aggregate| {
            let (name, function) = aggregate.split_once(':').unwrap_or((aggregate, ""));
            let title = about(name).map_or(name, |column| &column.title);
            // A count has not the unit of what is counted.
            let unit = about(name).map_or("", |column| column.unit);
            let unit = if function == "count" { "" } else { unit };
            (format!("{title} {function}").trim().to_owned(), unit)
        });
        let by = keys
            .first()
            .map(|key| about(key).map_or(key.as_str(), |column| &column.title));
        let title = table.map_or(view.table.as_str(), |table| table.title);
        let conditions = view.filter.iter().map(|condition| {
            let column = about(&condition.column);
            let title = column.map_or(condition.column.as_str(), |column| &column.title);
            in_words(condition, title, column.map_or("", |column| column.unit))
        });
        Ok(ShownView {
            conditions: conditions.collect(),
            columns: columns.collect(),
            title: by.map_or(title.to_owned(), |by| format!("{title} by {by}")),
            view: view.clone(),
            timeline,
            pivot,
        })
    }
}

/// The views, if there are any.
pub(super) fn section(views: &[ShownView]) -> Markup {
    html! {
        @if !views.is_empty() {
            section id="screen" {
                h2 { "On screen" }
                @for view in views { (shown(view)) }
            }
        }
    }
}

fn shown(shown: &ShownView) -> Markup {
    let view = &shown.view;
    let stacked = view.graph.drawn != Some(explore::Drawn::Lines);
    let hidden = shown
        .pivot
        .groups_total
        .saturating_sub(shown.pivot.groups.len());
    html! {
        section {
            h3 { (Printable(&shown.title)) }
            p.how {
                @match view.range {
                    Some([from, to]) => { "From " (moment(from)) " to " (moment(to)) "." }
                    None => { "The whole trace." }
                }
                @for condition in &shown.conditions {
                    " Only where " (Printable(condition)) "."
                }
                @if let Some(kind) = undrawn(view.graph.kind) {
                    " On screen it had " (kind) ", which a report does not draw."
                }
            }
            @if let Some(timeline) = &shown.timeline { (picture(timeline, stacked)) }
            div.evidence {
                div.scroll tabindex="0" role="region" aria-label=(Printable(&shown.title)) {
                    table {
                        thead {
                            tr {
                                th.text scope="col" { "" }
                                @for (title, _) in &shown.columns {
                                    th.figure scope="col" { (Printable(title)) }
                                }
                            }
                        }
                        tbody {
                            @for group in &shown.pivot.groups {
                                tr {
                                    td.text { (Printable(&group.label)) }
                                    @for (value, (_, unit)) in group.values.iter().zip(&shown.columns) {
                                        td.figure { (Printable(&cell(value, unit))) }
                                    }
                                }
                            }
                        }
                    }
                }
                @if hidden > 0 { p.note { (grouped(hidden as u64)) " more are not shown." } }
                details.query {
                    summary { "Query" }
                    pre { code { (Printable(&shown.pivot.sql)) } }
                }
            }
        }
    }
}

/// A graph that is on the page alone.
fn undrawn(kind: GraphKind) -> Option<&'static str> {
    match kind {
        GraphKind::Timeline | GraphKind::None => None,
        GraphKind::Heat => Some("a heat map"),
        GraphKind::Lanes => Some("a lane for each CPU"),
        GraphKind::Flame => Some("a flame graph"),
        GraphKind::Histogram => Some("a histogram"),
    }
}

/// A condition in words, of a column with that title and unit.
fn in_words(condition: &explore::Condition, title: &str, unit: &str) -> String {
    let ids = |ids: &[explore::Id]| {
        let ids = ids
            .iter()
            .map(|id| id.map_or("unknown".to_owned(), |id| id.to_string()));
        ids.collect::<Vec<_>>().join(" or ")
    };
    let number = |number: i64| measured(Number::Integer(number), unit);
    let tests = [
        (condition.within.as_deref()).map(|of| format!("{title} is {}", ids(of))),
        (condition.not_in.as_deref()).map(|of| format!("{title} is not {}", ids(of))),
        (condition.is.as_ref()).map(|of| format!("{title} is {}", of.join(" or "))),
        (condition.is_not.as_ref()).map(|of| format!("{title} is not {}", of.join(" or "))),
        (condition.contains.as_ref()).map(|part| format!("{title} contains “{part}”")),
        (condition.from).map(|from| format!("{title} is at least {}", number(from))),
        (condition.to).map(|to| format!("{title} is less than {}", number(to))),
    ];
    tests
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" and ")
}

fn cell(value: &Value, unit: &str) -> String {
    match value {
        Value::Unknown => "?".to_owned(),
        Value::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => measured(*number, unit),
        Value::Text(text) => text.clone(),
        Value::Different { different } => format!("{different} different"),
    }
}

fn measured(number: Number, unit: &str) -> String {
    let integer = match number {
        Number::Integer(integer) => integer,
        Number::Real(real) => real.round() as i64,
    };
    match (unit, number) {
        ("ns", _) => duration(integer),
        ("bytes", _) if integer >= 0 => size(integer.unsigned_abs()),
        (_, Number::Real(real)) => format!("{real:.3}"),
        _ if integer >= 0 => grouped(integer.unsigned_abs()),
        _ => integer.to_string(),
    }
}

fn moment(ns: i64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}

/// A timeline, with a legend.
fn picture(timeline: &TimelineAnswer, stacked: bool) -> Markup {
    let numbers = |values: &[Option<Number>]| -> Vec<f64> {
        let number = |value: &Option<Number>| match value {
            Some(Number::Integer(integer)) => *integer as f64,
            Some(Number::Real(real)) => *real,
            None => 0.0,
        };
        values.iter().map(number).collect()
    };
    let mut series: Vec<(String, String, Vec<f64>)> = Vec::new();
    for (place, one) in timeline.series.iter().enumerate() {
        let colour = format!("var(--one-{})", place % SERIES as usize);
        series.push((one.label.clone(), colour, numbers(&one.values)));
    }
    if let Some(rest) = &timeline.rest {
        let label = format!("{} others", grouped(rest.count as u64));
        series.push((label, "var(--other)".to_owned(), numbers(&rest.values)));
    }
    let tops = tops(&series, stacked);
    let most = tops.iter().flatten().copied().fold(0.0, f64::max);
    let y = |value: f64| HEIGHT - HEIGHT * value / if most > 0.0 { most } else { 1.0 };
    let x = |bucket: usize| WIDTH * bucket as f64 / timeline.buckets.max(1) as f64;
    let path = |place: usize| {
        let mut path = String::new();
        for (bucket, top) in tops[place].iter().enumerate() {
            let step = if bucket == 0 { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{step}{:.1},{:.1}H{:.1}",
                x(bucket),
                y(*top),
                x(bucket + 1)
            );
        }
        if stacked {
            let below = place.checked_sub(1).map(|below| &tops[below]);
            for bucket in (0..tops[place].len()).rev() {
                let bottom = below.map_or(0.0, |below| below[bucket]);
                let _ = write!(
                    path,
                    "L{:.1},{:.1}H{:.1}",
                    x(bucket + 1),
                    y(bottom),
                    x(bucket)
                );
            }
            path.push('Z');
        }
        path
    };
    let height = match timeline.spread {
        // How many stretches of time there were at once.
        true => format!("{:.2} at once", most / timeline.bucket_ns.max(1) as f64),
        false => measured(Number::Real(most), &timeline.unit),
    };
    html! {
        figure {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width="100%" height=(HEIGHT)
                preserveAspectRatio="none" role="img" aria-label={ "At most " (height) } {
                @for (place, (_, colour, _)) in series.iter().enumerate() {
                    @if stacked {
                        path d=(path(place)) style={ "fill:" (colour) } {}
                    } @else {
                        path d=(path(place)) vector-effect="non-scaling-stroke"
                            style={ "fill:none;stroke:" (colour) } {}
                    }
                }
            }
            figcaption {
                (moment(timeline.start_ns)) " to " (moment(timeline.end_ns)) "; at most " (height)
                @for (label, colour, _) in &series {
                    " " span style={ "color:" (colour) } { "■" } " " (Printable(label))
                }
            }
        }
    }
}

/// The upper edge of each series by slice of time.
fn tops(series: &[(String, String, Vec<f64>)], stacked: bool) -> Vec<Vec<f64>> {
    let mut tops: Vec<Vec<f64>> = Vec::new();
    for (_, _, values) in series {
        let below = tops.last().filter(|_| stacked);
        let top = values.iter().enumerate();
        let top = top.map(|(bucket, value)| value + below.map_or(0.0, |below| below[bucket]));
        let top = top.collect();
        tops.push(top);
    }
    tops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_series_lie_on_each_other() {
        let series = [vec![1.0, 2.0], vec![10.0, 0.0]];
        let series = series.map(|values| (String::new(), String::new(), values));
        assert_eq!(tops(&series, true), [[1.0, 2.0], [11.0, 2.0]]);
        assert_eq!(tops(&series, false), [[1.0, 2.0], [10.0, 0.0]]);
    }

    #[test]
    fn conditions_are_said_in_words() {
        let condition = explore::Condition {
            column: "cpu".to_owned(),
            within: Some(vec![Some(0), None]),
            from: Some(5),
            ..explore::Condition::default()
        };
        assert_eq!(
            in_words(&condition, "CPU", ""),
            "CPU is 0 or unknown and CPU is at least 5"
        );
        let condition = explore::Condition {
            column: "ready_ns".to_owned(),
            to: Some(1_500_000),
            ..explore::Condition::default()
        };
        assert_eq!(
            in_words(&condition, "Ready", "ns"),
            "Ready is less than 1.5 ms"
        );
    }
}
