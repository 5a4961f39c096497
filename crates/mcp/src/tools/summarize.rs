//! Tool `summarize`: sums of a table's rows by the values of columns.

use explore::{
    Condition, Explorer, GroupSort, Id, PivotAnswer, PivotGroup, PivotRequest, TableInfo,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wording::counted;

use super::Session;
use crate::answer::{Answer, More, Next, Room};
use crate::arguments::{self, Time};
use crate::conditions::{self, Column, Where};
use crate::failure::Failure;
use crate::marks::Marks;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    trace: Option<String>,
    table: String,
    by: Option<Vec<String>>,
    measures: Option<Vec<String>>,
    #[serde(rename = "where")]
    filter: Option<Vec<Where>>,
    between: Option<[Time; 2]>,
    first: Option<u32>,
    #[serde(default)]
    after: u64,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    /// Sums of all rows that the conditions select.
    totals: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<More>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    from_trace: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<Next>,
    /// Query with the same result. If several columns group the rows, the groups come from several queries, and the
    /// field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
}

/// Maximum number of columns that group rows, and of measures.
const KEYS: usize = 3;
const MEASURES: usize = 8;

/// Maximum and default number of groups.
const MOST: u32 = 50;
const FIRST: u32 = 20;

/// Maximum number of values of a column that are searched for the closest values.
const LABELS: u32 = 1_000;

/// Minimum result of [`within`], the maximum number of groups of the next column within one group. It applies if
/// several columns group the rows.
const WITHIN: u32 = 5;

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let first = arguments::in_bounds("first", asked.first, 1..=MOST)?.unwrap_or(FIRST);
    let by = asked.by.unwrap_or_default();
    let measures = asked.measures.unwrap_or_else(|| vec!["rows".to_owned()]);
    if by.len() > KEYS || measures.is_empty() || measures.len() > MEASURES {
        return Err(Failure::arguments(format!(
            "`by` may have up to {KEYS} columns, and `measures` 1 to {MEASURES}"
        )));
    }
    let same_rows = json!({ "where": asked.filter, "between": asked.between });
    let filter = conditions::filter(asked.filter)?;
    let (trace, range, explorer) =
        session.explore(asked.trace.as_deref(), asked.between.as_ref(), &asked.table)?;
    let info = super::schema::info(&explorer, &asked.table)?;
    // A measure without a function, such as `duration_ns`, means the sum of the column.
    let measures: Vec<String> = measures.into_iter().map(|name| full(&info, name)).collect();
    let query = Query {
        explorer: &explorer,
        session,
        request: PivotRequest {
            table: asked.table.clone(),
            sort: measures.first().map(|by| GroupSort {
                by: by.clone(),
                descending: true,
            }),
            keys: by.clone(),
            path: Vec::new(),
            aggregates: measures.clone(),
            range: range.as_ref().map(|range| [range.start, range.end]),
            filter,
            offset: asked.after,
            first,
            search: None,
        },
        marks: Marks::new()?,
    };
    let groups = query.ask(&[], asked.after, first)?;
    let mut columns: Vec<Column> = by.iter().map(|name| Column::of_names(name)).collect();
    columns.extend(
        measures
            .iter()
            .map(|name| Column::of_numbers(name, unit(&info, name))),
    );
    let mut content = Content {
        answer: query.sentences(&groups, &info)?,
        columns,
        rows: Vec::new(),
        totals: query.cells(&groups.totals).collect(),
        more: None,
        missing: super::missing(&trace, info.name, info.rows)
            .into_iter()
            .collect(),
        from_trace: query.marks.note(),
        next: Vec::new(),
        sql: (by.len() < 2).then(|| one_line(&groups.sql)),
    };
    if groups.rows > 0
        && let Some(Value::Object(mut arguments)) = over_time(&measures[0])
    {
        arguments.insert("trace".to_owned(), json!(trace.file.handle));
        arguments.insert("table".to_owned(), json!(info.name));
        arguments.extend(by.first().map(|by| ("by".to_owned(), json!(by))));
        let same_rows = same_rows.as_object().into_iter().flatten();
        let same_rows = same_rows.filter(|(_, value)| !value.is_null());
        arguments.extend(same_rows.map(|(name, value)| (name.clone(), value.clone())));
        content.next.push(Next {
            tool: "timeline",
            arguments: Value::Object(arguments),
            why: "shows the same over time",
        });
    }
    let room = Room::of_rows(None).without(report::json_bytes(&content) + 40);
    let (page, shown) = query.page(&groups, room)?;
    content.rows = page.rows;
    if page.has_others {
        content.answer += " Groups of the next columns without room are summed up as `others`. To page through them, \
                           group only `by` the next column, and select the group with `where`.";
    }
    let shown = asked.after.saturating_add(shown);
    let all = groups.groups_total as u64;
    content.more = (shown < all && !by.is_empty()).then(|| More {
        after: shown,
        left: Some(all - shown),
    });
    Answer::new(&content)
}

/// Returns the maximum number of groups of the next column within each of `groups` groups, if an answer may have
/// `first` groups.
fn within(first: u32, groups: usize) -> u32 {
    let groups = u32::try_from(groups).unwrap_or(u32::MAX).max(1);
    (first / groups).clamp(WITHIN, FIRST)
}

/// Returns the label of the row that sums the groups without room. The label has no quotation marks, so a reader cannot
/// mistake it for a name from the trace.
fn others(count: usize) -> String {
    format!("others ({count})")
}

/// Returns the arguments with which `timeline` shows a measure; `None` if it cannot.
fn over_time(measure: &str) -> Option<Value> {
    match measure.split_once(':') {
        None => (measure == "rows").then(|| json!({})),
        Some((column, "sum")) => Some(json!({ "measure": column })),
        Some(("time", _)) => None,
        Some((column, function @ ("max" | "min" | "mean" | "count"))) => {
            Some(json!({ "measure": column, "function": function }))
        }
        Some(_) => None,
    }
}

/// Rows of a group and of the groups below it.
#[derive(Default)]
struct GroupRows {
    rows: Vec<Vec<Value>>,
    /// True if a row sums the groups for which the answer has no room.
    has_others: bool,
}

struct Query<'q> {
    explorer: &'q Explorer,
    session: &'q Session<'q>,
    request: PivotRequest,
    marks: Marks,
}

/// Returns true if a measure is a percentile, such as `ready_ns:p99`.
fn is_percentile(measure: &str) -> bool {
    let function = measure.split_once(':').map(|(_, function)| function);
    let digits = function.and_then(|function| function.strip_prefix('p'));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Query<'_> {
    /// Returns sentences about the selected rows and their groups.
    fn sentences(&self, groups: &PivotAnswer, info: &TableInfo) -> Result<String, Failure> {
        let PivotRequest {
            keys, aggregates, ..
        } = &self.request;
        let selected = counted(groups.rows, "row", "rows");
        let all = groups.groups_total as u64;
        let count = counted(all, "group", "groups");
        let mut text = if keys.is_empty() {
            format!("{selected} of `{}`.", info.name)
        } else if self.request.offset > 0 && self.request.offset >= all {
            format!("`after` is past the end: there are {count}.")
        } else {
            let first = &aggregates[0];
            let name = info.name;
            format!("{selected} of `{name}` in {count}, the largest `{first}` first.")
        };
        if self.request.range.is_some() {
            text += " `between` selects rows that overlap it or whose waits do. Durations are cut to it, and other values \
                     are whole (`timeline` counts these where their rows end).";
        }
        if !groups.exact && aggregates.iter().any(|measure| is_percentile(measure)) {
            text += " Percentiles of many rows have an error of up to 1 %; the query in `sql` computes them exactly.";
        }
        if groups.rows == 0 && info.rows != Some(0) {
            text += &self.hint()?;
        }
        Ok(text)
    }

    /// Returns the rows of the first groups, as many as fit into the room, and the number of these groups. The first group
    /// is always in the answer, so that each page makes progress. If this group does not fit, the number of groups below
    /// it is reduced.
    fn page(&self, groups: &PivotAnswer, mut room: Room) -> Result<(GroupRows, u64), Failure> {
        let mut within = within(self.request.first, groups.groups_total);
        let (mut page, mut shown) = (GroupRows::default(), 0);
        for group in &groups.groups {
            let mut of_group = self.rows_of(group, &[], &[], within)?;
            let mut fits = room.take(&of_group.rows);
            while !fits && shown == 0 && within > 1 {
                within /= 2;
                of_group = self.rows_of(group, &[], &[], within)?;
                fits = room.take(&of_group.rows);
            }
            if !fits && shown > 0 {
                break;
            }
            page.rows.extend(of_group.rows);
            page.has_others |= of_group.has_others;
            shown += 1;
            if !fits {
                break;
            }
        }
        Ok((page, shown))
    }

    /// Returns sentences for an answer without rows. A condition can name a value that no row has. For such a
    /// condition, the sentence names the closest values of the column.
    fn hint(&self) -> Result<String, Failure> {
        let mut hint = String::new();
        for condition in &self.request.filter {
            let Some(wrong) = condition.is.as_ref().and_then(|values| values.first()) else {
                continue;
            };
            let request = PivotRequest {
                keys: vec![condition.column.clone()],
                aggregates: vec!["rows".to_owned()],
                sort: None,
                filter: Vec::new(),
                range: None,
                offset: 0,
                first: LABELS,
                ..self.request.clone()
            };
            let all = self.explorer.pivot(&request, self.session.call.flag())?;
            let labels: Vec<&str> = all.groups.iter().map(|group| &*group.label).collect();
            if labels.contains(&wrong.as_str()) {
                continue;
            }
            let close = wording::closest(wrong, labels, 3).into_iter();
            let close: Vec<String> = close.map(|label| self.marks.cell(label)).collect();
            hint += &format!(
                " No row of `{}` has this `{}`; the closest values are {}.",
                self.request.table,
                condition.column,
                close.join(", ")
            );
        }
        Ok(hint)
    }

    /// Returns groups below an expanded group: `first` groups, beginning at index `offset`. `path` leads to the
    /// expanded group.
    fn ask(&self, path: &[Id], offset: u64, first: u32) -> Result<PivotAnswer, Failure> {
        self.ask_with(path, offset, first, None)
    }

    /// Returns the groups of [`Query::ask`]. If a condition is given, only rows that also satisfy this condition are in
    /// the groups.
    fn ask_with(
        &self,
        path: &[Id],
        offset: u64,
        first: u32,
        condition: Option<Condition>,
    ) -> Result<PivotAnswer, Failure> {
        let mut request = PivotRequest {
            path: path.to_vec(),
            offset,
            first,
            ..self.request.clone()
        };
        request.filter.extend(condition);
        Ok(self
            .explorer
            .pivot_cut(&request, self.session.call.flag())?)
    }

    /// Returns the rows of a group. If further columns group the rows, there is one row for each group below it. If
    /// there are more than `within` groups, the last row sums the rest of them.
    fn rows_of(
        &self,
        group: &PivotGroup,
        path: &[Id],
        labels: &[Value],
        within: u32,
    ) -> Result<GroupRows, Failure> {
        let mut labels = labels.to_vec();
        labels.push(json!(self.marks.label(group.id, &group.label)));
        if group.leaf {
            labels.extend(self.cells(&group.values));
            return Ok(GroupRows {
                rows: vec![labels],
                has_others: false,
            });
        }
        let path: Vec<Id> = path.iter().copied().chain([group.id]).collect();
        let below = self.ask(&path, 0, within)?;
        let of_next = self::within(within, below.groups_total).min(within);
        let mut found = GroupRows::default();
        for group in &below.groups {
            let of_group = self.rows_of(group, &path, &labels, of_next)?;
            found.rows.extend(of_group.rows);
            found.has_others |= of_group.has_others;
        }
        let left_out = below.groups_total.saturating_sub(below.groups.len());
        if left_out > 0 {
            let shown = below.groups.iter().map(|group| group.id);
            let condition = Condition {
                column: self.request.keys[path.len()].clone(),
                not_in: Some(shown.collect()),
                ..Condition::default()
            };
            let together = self.ask_with(&path, 0, 0, Some(condition))?;
            labels.push(json!(others(left_out)));
            labels.resize(self.request.keys.len(), Value::Null);
            labels.extend(self.cells(&together.totals));
            found.rows.push(labels);
            found.has_others = true;
        }
        Ok(found)
    }

    /// Returns values for an answer.
    fn cells<'v>(&'v self, values: &'v [explore::Value]) -> impl Iterator<Item = Value> + 'v {
        values
            .iter()
            .map(|cell| conditions::value(cell, &self.marks))
    }
}

/// Returns the full name of a measure: the sum of a column if no function is given.
fn full(info: &TableInfo, measure: String) -> String {
    let is_column = info.columns.iter().any(|column| {
        column.name == measure
            && (column.kind == explore::ColumnKind::Measure || column.numeric_key)
    });
    if is_column { measure + ":sum" } else { measure }
}

/// Returns the unit of a measure.
fn unit<'i>(info: &'i TableInfo, measure: &str) -> &'i str {
    let (column, function) = measure.split_once(':').unwrap_or((measure, ""));
    let column = info.columns.iter().find(|known| known.name == column);
    match function {
        "count" | "" => "count",
        _ => column.map_or("", |column| column.unit),
    }
}

/// Returns a query in one line. It may have names from the request, which are escaped.
pub(super) fn one_line(sql: &str) -> String {
    let lines: Vec<&str> = sql.lines().map(str::trim_start).collect();
    wording::Printable(&lines.join(" ")).to_string()
}
