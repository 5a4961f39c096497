//! Views with their answers: those that were on screen when the user requested the report, and the charts of the
//! report. Each is shown as a picture, a table and a query.

use std::sync::atomic::AtomicBool;

use explore::{
    ColumnInfo, ColumnKind, Drawn, ExploreError, Explorer, FlameAnswer, FlameRequest, GraphKind,
    GroupSort, HeatAnswer, HeatRequest, HistogramAnswer, HistogramRequest, Id, LanesAnswer,
    LanesRequest, Number, PivotAnswer, PivotRequest, TableInfo, TimelineAnswer, TimelineRequest,
    Value, View,
};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use wording::{Printable, duration, grouped, size};

/// Maximum number of groups in a table.
const GROUPS: u32 = 30;
/// Maximum number of series of a timeline, and of its lanes.
const SERIES: u32 = 9;
const LANES: u32 = 32;
/// Number of time buckets of a timeline. A screen can show about this many.
const BUCKETS: u32 = 480;
/// Number of time buckets of a heat map.
const CELLS: u32 = 240;
/// Number of pixels for which lanes are requested.
const LANE_PIXELS: u32 = 410;
/// Maximum number of CPUs whose lanes are drawn.
const MOST_CPUS: usize = 64;
/// Maximum number of classes of values in a heat map.
const CLASSES: u32 = 40;
/// Minimum share of the whole weight of a drawn call in a flame graph. Smaller calls would be too thin to
/// see.
const LEAST_SHARE: f64 = 0.001;

/// View on screen, with the choices that the user made in it.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "ReportPanel", optional_fields = nullable)]
pub struct Panel {
    pub(super) view: View,
    /// Title that the user gave the view.
    #[serde(default)]
    title: Option<String>,
    /// Groups whose series the user has hidden.
    #[serde(default)]
    #[ts(optional = nullable)]
    hidden: Vec<Id>,
    /// True if the user has hidden the series of all groups without their own line.
    #[serde(default)]
    #[ts(optional = nullable)]
    rest_hidden: bool,
    /// Visible part of the view: the graph or the table. `None` if both are visible.
    #[serde(default)]
    show: Option<Shown>,
    /// Selected time range, used by tables, flame graphs and histograms. `None` for the range of the view.
    #[serde(default)]
    selection: Option<[i64; 2]>,
    /// True to draw a flame graph with callers and callees exchanged.
    #[serde(default)]
    #[ts(optional = nullable)]
    inverted: bool,
    /// Time range with which the flame graph is compared.
    #[serde(default)]
    compare: Option<[i64; 2]>,
    /// True if the flame graph is compared with another trace.
    #[serde(default)]
    #[ts(optional = nullable)]
    other: bool,
}

/// Visible part of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ReportPart")]
enum Shown {
    Graph,
    Table,
}

/// View with the data that it shows.
pub struct ShownView {
    pub(super) panel: Panel,
    pub(super) title: String,
    /// Name and unit of each column to the right of the golden bar. These columns have sums, counts and other
    /// aggregates.
    columns: Vec<(String, &'static str)>,
    /// Conditions that filter the rows, in words.
    conditions: Vec<String>,
    pub(super) answer: Option<Answer>,
    /// Name of the column or measure whose values are drawn.
    value: String,
    /// Description of the columns that the graph shows.
    about: Option<TableInfo>,
    table: Option<PivotAnswer>,
}

/// Answer to the request for the graph of a view.
#[derive(Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ReportAnswer")]
pub(super) enum Answer {
    /// Series of values over time.
    Timeline(TimelineAnswer),
    /// Distribution of values over time.
    Heat(HeatAnswer),
    /// Distribution of values by group.
    Histogram(HistogramAnswer),
    /// Weights of stacks.
    Flame(FlameAnswer),
    /// Threads that ran on each CPU.
    Lanes(LanesAnswer),
}

/// Graph of a view, as the script of the page reads it.
#[derive(Serialize, TS)]
#[ts(rename = "ReportPicture")]
pub(super) struct Picture<'a> {
    view: &'a View,
    title: &'a str,
    /// Description of the drawn columns.
    table: Option<&'a TableInfo>,
    /// Name of the column or measure whose values are drawn.
    value: &'a str,
    /// Groups whose series are hidden.
    hidden: &'a [Id],
    /// True if the series of all groups without their own line is hidden.
    rest_hidden: bool,
    /// True if a flame graph has its callers and callees exchanged.
    inverted: bool,
    /// Time range of a flame graph or histogram; `None` for the whole trace.
    range: Option<[i64; 2]>,
    /// Time range with which a flame graph is compared.
    compare: Option<[i64; 2]>,
    answer: &'a Answer,
}

impl ShownView {
    /// Requests the data that the view shows.
    ///
    /// # Errors
    /// Returns an error if the view is invalid, or the request is cancelled.
    pub fn ask(
        explorer: &Explorer,
        panel: Panel,
        cancelled: &AtomicBool,
    ) -> Result<ShownView, ExploreError> {
        let view = &panel.view;
        let bar = view.columns.iter().position(|column| column == View::BAR);
        let (keys, aggregates) = match bar {
            Some(bar) => (&view.columns[..bar], &view.columns[bar + 1..]),
            None => (view.columns.as_slice(), &[][..]),
        };
        let tables = explorer.tables()?;
        let info = tables.iter().find(|table| table.name == view.table);
        let value = value(view, info);
        let answer = match panel.show {
            Some(Shown::Table) => None,
            _ => Answer::ask(explorer, &panel, &value, info, cancelled)?,
        };
        let table = match panel.show {
            Some(Shown::Graph) => None,
            _ => Some(groups(explorer, &panel, (keys, aggregates), cancelled)?),
        };
        let about = |name: &str| column(info, name);
        let columns = aggregates.iter().map(|aggregate| {
            let (name, function) = aggregate.split_once(':').unwrap_or((aggregate, ""));
            let title = about(name).map_or(name, |column| &column.title);
            // A count of values does not have the unit of their column.
            let unit = about(name).map_or("", |column| column.unit);
            let unit = if function == "count" { "" } else { unit };
            (format!("{title} {function}").trim().to_owned(), unit)
        });
        let by = keys
            .first()
            .map(|key| about(key).map_or(key.as_str(), |column| &column.title));
        let title = info.map_or(view.table.as_str(), |table| table.title);
        let title = panel.title.clone().unwrap_or_else(|| match by {
            Some(by) => format!("{title} by {by}"),
            None => title.to_owned(),
        });
        let conditions = view.filter.iter().map(|condition| {
            let column = about(&condition.column);
            let title = column.map_or(condition.column.as_str(), |column| &column.title);
            in_words(condition, title, column)
        });
        Ok(ShownView {
            conditions: conditions.collect(),
            columns: columns.collect(),
            about: info.map(|info| drawn_columns(info, view, &value)),
            title,
            answer,
            value,
            table,
            panel,
        })
    }

    /// Returns the picture for the script of the page. Returns `None` for a view without a graph.
    pub(super) fn picture(&self) -> Option<Picture<'_>> {
        let panel = &self.panel;
        Some(Picture {
            view: &panel.view,
            title: &self.title,
            table: self.about.as_ref(),
            value: &self.value,
            hidden: &panel.hidden,
            rest_hidden: panel.rest_hidden,
            inverted: panel.inverted,
            range: panel.focus(),
            compare: panel.compare,
            answer: self.answer.as_ref()?,
        })
    }
}

/// Returns the name of the column or measure that the graph of a view draws. If the user chose no column, the page
/// shows the first measure in heat maps and histograms, so the report shows it, too.
fn value(view: &View, table: Option<&TableInfo>) -> String {
    let first = || match view.graph.kind {
        GraphKind::Heat | GraphKind::Histogram => {
            let mut columns = table.into_iter().flat_map(|table| &table.columns);
            let first = columns.find(|column| column.kind == ColumnKind::Measure);
            first.map_or_else(String::new, |column| column.name.clone())
        }
        _ => "rows".to_owned(),
    };
    view.graph.measure.clone().unwrap_or_else(first)
}

/// Returns the description of a table with only the columns that the graph of a view shows.
fn drawn_columns(table: &TableInfo, view: &View, value: &str) -> TableInfo {
    let mut table = table.clone();
    let by = view.graph.by.as_deref();
    let is_drawn = |name: &str| name == value || Some(name) == by;
    table.columns.retain(|column| is_drawn(&column.name));
    // Pictures show no descriptions.
    table.about.clear();
    for column in &mut table.columns {
        column.about.clear();
    }
    table
}

/// Returns the column with a name.
fn column<'t>(table: Option<&'t TableInfo>, name: &str) -> Option<&'t ColumnInfo> {
    table?.columns.iter().find(|column| column.name == name)
}

/// Groups the rows by the first of `keys`.
fn groups(
    explorer: &Explorer,
    panel: &Panel,
    (keys, aggregates): (&[String], &[String]),
    cancelled: &AtomicBool,
) -> Result<PivotAnswer, ExploreError> {
    let view = &panel.view;
    let request = PivotRequest {
        table: view.table.clone(),
        keys: keys.iter().take(1).cloned().collect(),
        path: Vec::new(),
        aggregates: aggregates.to_vec(),
        range: panel.focus(),
        filter: view.filter.clone(),
        sort: view.sort.as_ref().map(|sort| GroupSort {
            by: if keys.contains(&sort.column) {
                "key".to_owned()
            } else {
                sort.column.clone()
            },
            descending: sort.descending,
        }),
        offset: 0,
        first: GROUPS,
        search: None,
    };
    explorer.pivot(&request, cancelled)
}

impl Panel {
    /// Creates a panel that shows only the graph of a view.
    pub(super) fn graph(view: View, title: String) -> Panel {
        Panel {
            view,
            title: Some(title),
            hidden: Vec::new(),
            rest_hidden: false,
            show: Some(Shown::Graph),
            selection: None,
            inverted: false,
            compare: None,
            other: false,
        }
    }

    /// Returns the selected time range. If there is none, returns the visible range.
    fn focus(&self) -> Option<[i64; 2]> {
        self.selection.or(self.view.range)
    }
}

impl Answer {
    fn ask(
        explorer: &Explorer,
        panel: &Panel,
        value: &str,
        info: Option<&TableInfo>,
        cancelled: &AtomicBool,
    ) -> Result<Option<Answer>, ExploreError> {
        let view = &panel.view;
        let graph = &view.graph;
        let (table, filter) = (view.table.clone(), view.filter.clone());
        Ok(Some(match graph.kind {
            GraphKind::None => return Ok(None),
            GraphKind::Timeline => {
                let request = TimelineRequest {
                    table,
                    by: graph.by.clone(),
                    measure: graph.measure.clone(),
                    function: graph.function,
                    range: view.range,
                    filter,
                    buckets: BUCKETS,
                    first: if graph.drawn == Some(Drawn::Lanes) {
                        LANES
                    } else {
                        SERIES
                    },
                };
                Answer::Timeline(explorer.timeline(&request, cancelled)?)
            }
            GraphKind::Heat => {
                let request = HeatRequest {
                    table,
                    value: value.to_owned(),
                    range: view.range,
                    filter,
                    buckets: CELLS,
                    rows: CLASSES,
                    values: None,
                };
                Answer::Heat(explorer.heat(&request, cancelled)?)
            }
            GraphKind::Histogram => {
                let request = HistogramRequest {
                    table,
                    value: value.to_owned(),
                    by: graph.by.clone(),
                    range: panel.focus(),
                    filter,
                    classes: None,
                    first: Some(SERIES),
                    values: None,
                };
                Answer::Histogram(explorer.histogram(&request, cancelled)?)
            }
            GraphKind::Flame => {
                let first = info.and_then(|info| info.stacks.first().copied());
                let first = first.unwrap_or("stack_id");
                let request = FlameRequest {
                    table,
                    stack: graph.stack.clone().unwrap_or_else(|| first.to_owned()),
                    weight: value.to_owned(),
                    range: panel.focus(),
                    filter,
                    inverted: panel.inverted,
                    root: None,
                    compare: panel.compare,
                    least_share: Some(LEAST_SHARE),
                };
                Answer::Flame(explorer.flame(&request, cancelled)?)
            }
            GraphKind::Lanes => {
                let of_cpu = filter.iter().find(|condition| condition.column == "cpu");
                let cpus = of_cpu.and_then(|condition| condition.is.as_ref());
                let request = LanesRequest {
                    range: view.range,
                    width: LANE_PIXELS,
                    cpus: cpus.map(|cpus| {
                        cpus.iter()
                            .flat_map(|cpu| cpu.parse::<u16>())
                            .collect::<Vec<_>>()
                    }),
                };
                let mut answer = explorer.lanes(&request, cancelled)?;
                answer.left_out += answer.cpus.len().saturating_sub(MOST_CPUS);
                answer.cpus.truncate(MOST_CPUS);
                Answer::Lanes(answer)
            }
        }))
    }

    /// Returns true if there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        let is_zero = |value: &Option<Number>| match value {
            Some(Number::Integer(integer)) => *integer == 0,
            Some(Number::Real(real)) => *real == 0.0,
            None => true,
        };
        match self {
            Answer::Timeline(answer) => {
                let mut values = answer.series.iter().flat_map(|series| &series.values);
                values.all(is_zero)
            }
            Answer::Heat(answer) => answer.counts.iter().flatten().all(|count| *count == 0),
            Answer::Histogram(answer) => answer.series.is_empty(),
            Answer::Flame(answer) => answer.nodes.parent.is_empty(),
            Answer::Lanes(answer) => answer.cpus.is_empty(),
        }
    }

    /// Returns the time range of a graph over time.
    pub(super) fn range(&self) -> Option<[i64; 2]> {
        match self {
            Answer::Timeline(answer) => Some([answer.start_ns, answer.end_ns]),
            Answer::Heat(answer) => Some([answer.start_ns, answer.end_ns]),
            Answer::Lanes(answer) => Some([answer.start_ns, answer.end_ns]),
            Answer::Histogram(_) | Answer::Flame(_) => None,
        }
    }

    /// Returns the SQL query with the same result as the graph, if there is one.
    fn sql(&self) -> Option<&str> {
        match self {
            Answer::Timeline(answer) => Some(&answer.sql),
            Answer::Heat(answer) => Some(&answer.sql),
            Answer::Histogram(answer) => Some(&answer.sql),
            Answer::Flame(answer) => answer.sql.as_deref(),
            Answer::Lanes(_) => None,
        }
    }
}

/// Returns the section with all views on screen. It is empty if there are no views. `place` counts the pictures.
pub(super) fn section(views: &[ShownView], place: &mut usize) -> Markup {
    html! {
        @if !views.is_empty() {
            section id="screen" {
                h2 { "On screen" }
                @for view in views { (shown(view, place)) }
            }
        }
    }
}

fn shown(shown: &ShownView, place: &mut usize) -> Markup {
    let panel = &shown.panel;
    let selected = panel
        .selection
        .filter(|selection| panel.view.range != Some(*selection));
    html! {
        section {
            h3 { (Printable(&shown.title)) }
            p.how {
                @match panel.view.range {
                    Some([from, to]) => { "From " (moment(from)) " to " (moment(to)) "." }
                    None => { "The whole trace." }
                }
                @if let Some([from, to]) = selected {
                    " Selected: " (moment(from)) " to " (moment(to))
                    " (for tables, flame graphs and histograms)."
                }
                @for condition in &shown.conditions {
                    " " (Printable(condition))
                }
                @if let Some([from, to]) = panel.compare {
                    " Compared with " (moment(from)) " to " (moment(to)) "."
                }
                @if panel.other {
                    " The comparison with another trace is not part of this report."
                }
            }
            @if shown.answer.is_some() {
                figure.picture { (drawn(place)) }
            }
            @if let Some(table) = &shown.table { (groups_table(shown, table)) }
            (queries(shown))
        }
    }
}

/// Returns the place where the script draws the next picture.
pub(super) fn drawn(place: &mut usize) -> Markup {
    let mine = *place;
    *place += 1;
    html! { div.plot data-picture=(mine) {} }
}

/// Returns the queries with the same results as the graph and the table.
pub(super) fn queries(shown: &ShownView) -> Markup {
    html! {
        @for (what, sql) in [
            ("Query of the graph", shown.answer.as_ref().and_then(Answer::sql)),
            ("Query of the table", shown.table.as_ref().map(|table| table.sql.as_str())),
        ] {
            @if let Some(sql) = sql {
                details.query {
                    summary { (what) }
                    pre { code { (Printable(sql)) } }
                }
            }
        }
    }
}

fn groups_table(shown: &ShownView, table: &PivotAnswer) -> Markup {
    let hidden = table.groups_total.saturating_sub(table.groups.len());
    html! {
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
                        @for group in &table.groups {
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
        }
    }
}

/// Returns a sentence about a condition on a column with the given title.
fn in_words(condition: &explore::Condition, title: &str, column: Option<&ColumnInfo>) -> String {
    let has = |labels: &Option<Vec<String>>, label: &str| {
        labels
            .as_ref()
            .is_some_and(|labels| labels.iter().any(|one| one == label))
    };
    if column.is_some_and(|column| column.kind == ColumnKind::Test) {
        let title = title.to_lowercase();
        return if has(&condition.is_not, "true") || has(&condition.is, "false") {
            format!("Without {title}.")
        } else {
            format!("Only {title}.")
        };
    }
    let unit = column.map_or("", |column| column.unit);
    let ids = |ids: &[Id]| {
        let called = |id: &Id| match id {
            None => "unknown".to_owned(),
            Some(id) => {
                let name = column.and_then(|column| column.names.get(id));
                name.map_or_else(|| id.to_string(), Clone::clone)
            }
        };
        ids.iter().map(called).collect::<Vec<_>>().join(" or ")
    };
    let number = |number: i64| measured(Number::Integer(number), unit);
    let tests = [
        (condition.within.as_deref()).map(|within| format!("{title} is {}", ids(within))),
        (condition.not_in.as_deref()).map(|not_in| format!("{title} is not {}", ids(not_in))),
        (condition.is.as_ref()).map(|texts| format!("{title} is {}", texts.join(" or "))),
        (condition.is_not.as_ref()).map(|texts| format!("{title} is not {}", texts.join(" or "))),
        (condition.contains.as_ref()).map(|part| format!("{title} contains “{part}”")),
        (condition.from).map(|from| format!("{title} is at least {}", number(from))),
        (condition.to).map(|to| format!("{title} is less than {}", number(to))),
    ];
    let tests: Vec<String> = tests.into_iter().flatten().collect();
    format!("Only where {}.", tests.join(" and "))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, kind: ColumnKind, unit: &'static str) -> ColumnInfo {
        ColumnInfo {
            name: name.to_owned(),
            title: String::new(),
            about: String::new(),
            kind,
            unit,
            numeric_key: false,
            names: std::collections::BTreeMap::from([(5, "WrExecutive".to_owned())]),
        }
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
            in_words(&condition, "CPU", None),
            "Only where CPU is 0 or unknown and CPU is at least 5."
        );
        let condition = explore::Condition {
            column: "ready_ns".to_owned(),
            to: Some(1_500_000),
            ..explore::Condition::default()
        };
        let ready = about("ready_ns", ColumnKind::Measure, "ns");
        assert_eq!(
            in_words(&condition, "Ready", Some(&ready)),
            "Only where Ready is less than 1.5 ms."
        );
    }

    #[test]
    fn numbers_that_have_names_are_said_by_them() {
        let condition = explore::Condition {
            column: "wait_reason_out".to_owned(),
            not_in: Some(vec![Some(5), Some(6)]),
            ..explore::Condition::default()
        };
        let reason = about("wait_reason_out", ColumnKind::Key, "");
        assert_eq!(
            in_words(&condition, "Reason", Some(&reason)),
            "Only where Reason is not WrExecutive or 6."
        );
    }

    #[test]
    fn a_test_is_no_column_to_those_who_read() {
        let condition = |is: Option<&str>, is_not: Option<&str>| explore::Condition {
            column: "doubtful".to_owned(),
            is: is.map(|is| vec![is.to_owned()]),
            is_not: is_not.map(|is_not| vec![is_not.to_owned()]),
            ..explore::Condition::default()
        };
        let test = about("doubtful", ColumnKind::Test, "");
        let words = |condition| in_words(&condition, "Doubtful runs", Some(&test));
        assert_eq!(
            words(condition(None, Some("true"))),
            "Without doubtful runs."
        );
        assert_eq!(words(condition(Some("true"), None)), "Only doubtful runs.");
    }
}
