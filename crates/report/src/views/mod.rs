//! Views that were on screen when the user requested the report. Each is shown as a picture, a table and a
//! query.

mod axes;
mod flame;
mod heat;
mod histogram;
mod lanes;
mod timeline;

use std::sync::atomic::AtomicBool;

use explore::{
    ColumnInfo, ColumnKind, ExploreError, Explorer, FlameAnswer, FlameRequest, GraphKind,
    GroupSort, HeatAnswer, HeatRequest, HistogramAnswer, HistogramRequest, Id, LanesAnswer,
    LanesRequest, Number, PivotAnswer, PivotRequest, TableInfo, TimelineAnswer, TimelineRequest,
    Value, View,
};
use maud::{Markup, html};
use serde::Deserialize;
use ts_rs::TS;
use wording::{Printable, duration, grouped, size};

/// Maximum number of groups in a table.
const GROUPS: u32 = 30;
/// Maximum number of series with a separate colour.
const SERIES: usize = 9;
/// Number of time buckets of a line chart.
const BUCKETS: u32 = 300;
/// Number of time buckets of a heat map.
const CELLS: u32 = 164;
/// Number of pixels for which lanes are requested.
const LANE_PIXELS: u32 = 410;
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
    view: View,
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
    panel: Panel,
    title: String,
    /// Name and unit of each column to the right of the golden bar. These columns have sums, counts and other
    /// aggregates.
    columns: Vec<(String, &'static str)>,
    /// Conditions that filter the rows, in words.
    conditions: Vec<String>,
    graph: Option<Graph>,
    table: Option<PivotAnswer>,
}

/// Graph of a view.
enum Graph {
    Timeline(TimelineAnswer),
    Heat(HeatAnswer),
    Histogram(HistogramAnswer),
    Flame(FlameAnswer),
    Lanes(LanesAnswer),
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
        let graph = match panel.show {
            Some(Shown::Table) => None,
            _ => Graph::ask(explorer, &panel, cancelled)?,
        };
        let table = match panel.show {
            Some(Shown::Graph) => None,
            _ => Some(groups(explorer, &panel, (keys, aggregates), cancelled)?),
        };
        let tables = explorer.tables()?;
        let of = tables.iter().find(|table| table.name == view.table);
        let about = |name: &str| column(of, name);
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
        let title = of.map_or(view.table.as_str(), |table| table.title);
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
            title,
            graph,
            table,
            panel,
        })
    }
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
    /// Returns the selected time range. If there is none, returns the visible range.
    fn focus(&self) -> Option<[i64; 2]> {
        self.selection.or(self.view.range)
    }
}

impl Graph {
    fn ask(
        explorer: &Explorer,
        panel: &Panel,
        cancelled: &AtomicBool,
    ) -> Result<Option<Graph>, ExploreError> {
        let view = &panel.view;
        let graph = &view.graph;
        let (table, filter) = (view.table.clone(), view.filter.clone());
        let tables = explorer.tables()?;
        let of = tables.iter().find(|of| of.name == view.table);
        // If the user chose no column, the page shows the first measure, so the report shows it, too.
        let value = || {
            let mut columns = of.into_iter().flat_map(|of| &of.columns);
            let first = columns.find(|column| column.kind == ColumnKind::Measure);
            let first = first.map_or_else(String::new, |column| column.name.clone());
            graph.measure.clone().unwrap_or(first)
        };
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
                    first: SERIES as u32,
                };
                Graph::Timeline(explorer.timeline(&request, cancelled)?)
            }
            GraphKind::Heat => {
                let request = HeatRequest {
                    table,
                    value: value(),
                    range: view.range,
                    filter,
                    buckets: CELLS,
                    rows: CLASSES,
                    values: None,
                };
                Graph::Heat(explorer.heat(&request, cancelled)?)
            }
            GraphKind::Histogram => {
                let request = HistogramRequest {
                    table,
                    value: value(),
                    by: graph.by.clone(),
                    range: panel.focus(),
                    filter,
                    classes: None,
                    first: Some(SERIES as u32),
                    values: None,
                };
                Graph::Histogram(explorer.histogram(&request, cancelled)?)
            }
            GraphKind::Flame => {
                let first = of.and_then(|of| of.stacks.first().copied());
                let first = first.unwrap_or("stack_id");
                let request = FlameRequest {
                    table,
                    stack: graph.stack.clone().unwrap_or_else(|| first.to_owned()),
                    weight: graph.measure.clone().unwrap_or_else(|| "rows".to_owned()),
                    range: panel.focus(),
                    filter,
                    inverted: panel.inverted,
                    root: None,
                    compare: panel.compare,
                    least_share: Some(LEAST_SHARE),
                };
                Graph::Flame(explorer.flame(&request, cancelled)?)
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
                Graph::Lanes(explorer.lanes(&request, cancelled)?)
            }
        }))
    }

    /// Returns the SQL query with the same result as the graph, if there is one.
    fn sql(&self) -> Option<&str> {
        match self {
            Graph::Timeline(answer) => Some(&answer.sql),
            Graph::Heat(answer) => Some(&answer.sql),
            Graph::Histogram(answer) => Some(&answer.sql),
            Graph::Flame(answer) => answer.sql.as_deref(),
            Graph::Lanes(_) => None,
        }
    }

    fn markup(&self, panel: &Panel) -> Markup {
        match self {
            Graph::Timeline(answer) => timeline::picture(answer, panel),
            Graph::Heat(answer) => heat::picture(answer, &panel.view.table),
            Graph::Histogram(answer) => histogram::picture(answer, &panel.view.table),
            Graph::Flame(answer) => flame::picture(answer, panel.inverted),
            Graph::Lanes(answer) => lanes::picture(answer),
        }
    }
}

/// Returns the section with all views. It is empty if there are no views.
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
            @if let Some(graph) = &shown.graph { (graph.markup(panel)) }
            @if let Some(table) = &shown.table { (groups_table(shown, table)) }
            @for (what, sql) in [
                ("Query of the graph", shown.graph.as_ref().and_then(Graph::sql)),
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

/// Returns a picture with its caption and the key of its colours.
fn figure(picture: Markup, caption: &str, colours: &[(String, String)]) -> Markup {
    html! {
        figure.picture {
            (picture)
            figcaption {
                (Printable(caption))
                @for (label, colour) in colours {
                    " " span.swatch style={ "color:" (colour) } aria-hidden="true" { "■" } " " (Printable(label))
                }
            }
        }
    }
}

/// Returns the colour of the series with an index. All series without their own colour share one colour.
fn colour(place: usize) -> String {
    if place < SERIES {
        format!("var(--one-{place})")
    } else {
        "var(--other)".to_owned()
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
        (condition.within.as_deref()).map(|of| format!("{title} is {}", ids(of))),
        (condition.not_in.as_deref()).map(|of| format!("{title} is not {}", ids(of))),
        (condition.is.as_ref()).map(|of| format!("{title} is {}", of.join(" or "))),
        (condition.is_not.as_ref()).map(|of| format!("{title} is not {}", of.join(" or "))),
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
