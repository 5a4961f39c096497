//! SQL queries that return the same numbers as the answers.

pub(crate) use ::selection::{literal, quoted};
use views::TimeRange;

use crate::catalogue::{Code, ColumnDef, Source, TableDef};
use crate::durations::Durations;
use crate::names::Names;

/// Rule that decides whether a row is in a time range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RangeRule {
    /// The row overlaps the time range. If the rows of the table are moments, the time of the row is in the
    /// range.
    Overlap,
    /// The duration that the column contains overlaps the time range.
    Duration(Durations),
    /// The row, or a duration in one of its columns, overlaps the time range.
    Reach,
    /// The time of the row is in the time range.
    Moment,
}

impl ColumnDef {
    /// Returns an SQL expression for the column. For a key, it is an expression for the label.
    pub(crate) fn sql(&self) -> String {
        match self.source {
            Source::Number(name) | Source::Flag(name) | Source::Text(name) => name.to_owned(),
            Source::Code(name, Code::WaitReason) => format!("wait_reason({name})"),
            Source::Code(name, Code::ThreadState) => format!("thread_state({name})"),
            Source::Address(name) => format!("hex({name})"),
            Source::Process { row, id: None } => format!("process({row})"),
            Source::Process { row, id: Some(id) } => {
                format!("coalesce(process({row}), CASE {id} WHEN 0 THEN 'Idle (0)' END)")
            }
            Source::ProcessName { row, id: None } => format!("process_name({row})"),
            Source::ProcessName { row, id: Some(id) } => format!(
                "CASE WHEN {row} IS NULL AND {id} = 0 THEN 'Idle' ELSE process_name({row}) END"
            ),
            Source::Thread { row, id: None } => format!("thread_name({row})"),
            Source::Thread { row, id: Some(id) } => format!(
                "CASE WHEN {row} IS NOT NULL THEN coalesce(thread_name({row}) || ' (' || CAST({id} \
                 AS VARCHAR) || ')', CAST({id} AS VARCHAR)) WHEN {id} = 0 THEN 'idle' END"
            ),
            Source::ThreadName(row) => format!("thread_name({row})"),
            Source::Module(row) => format!("module({row})"),
            // These values need more than one column. `TimeInView::sql` and `Filter` create their SQL.
            Source::InView | Source::Doubtful => self.name.clone(),
            Source::Function {
                image,
                address,
                offset: true,
            } => format!("symbol({image}, {address})"),
            Source::Function {
                image,
                address,
                offset: false,
            } => format!("regexp_replace(symbol({image}, {address}), '\\+0x[0-9a-f]+$', '')"),
        }
    }

    /// Returns the stored column that distinguishes groups with the same label.
    fn own_row(&self) -> Option<&'static str> {
        match self.source {
            Source::Process { row, .. } | Source::Thread { row, .. } => Some(row),
            _ => None,
        }
    }

    /// Returns the stored column by which groups are ordered. Returns `None` if they are ordered by label.
    fn ordered(&self) -> Option<&'static str> {
        match self.source {
            Source::Number(name)
            | Source::Code(name, _)
            | Source::Address(name)
            | Source::Flag(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the expressions of a `GROUP BY` clause that creates one group for each id.
    pub(crate) fn group_by(&self) -> Vec<String> {
        let stored = self.own_row().or(self.ordered()).map(str::to_owned);
        let mut groups = vec![self.sql()];
        groups.extend(stored.filter(|stored| *stored != groups[0]));
        groups
    }

    /// Returns the name of the column in the result of a query. It differs from the column's own name if a stored
    /// column with other content has this name.
    pub(crate) fn alias(&self) -> String {
        match self.source {
            Source::Code(..) => format!("{}_name", self.name),
            Source::Address(_) => format!("{}_hex", self.name),
            _ => self.name.clone(),
        }
    }

    /// Returns an SQL expression for the label, with its name in the result.
    pub(crate) fn named(&self) -> String {
        let (sql, alias) = (self.sql(), self.alias());
        if sql == alias {
            sql
        } else {
            format!("{sql} AS {alias}")
        }
    }

    /// Returns the columns of a result by which its groups are ordered.
    pub(crate) fn order(&self) -> Vec<String> {
        if let Some(stored) = self.ordered() {
            return vec![stored.to_owned()];
        }
        let alias = self.alias();
        let row = self.own_row().map(str::to_owned);
        [format!("lower({alias})"), alias]
            .into_iter()
            .chain(row)
            .collect()
    }
}

impl ColumnDef {
    /// Returns the expressions by which rows are ordered.
    pub(crate) fn order_of_rows(&self) -> Vec<String> {
        match (self.ordered(), self.sql()) {
            (Some(stored), _) => vec![stored.to_owned()],
            (None, sql) => vec![format!("lower({sql})"), sql],
        }
    }
}

/// Returns the SQL condition that a row is in a time range.
pub(crate) fn within(table: &'static TableDef, within: RangeRule, range: TimeRange) -> String {
    match (&table.lasts, within) {
        (Some(_), RangeRule::Overlap) => overlaps(interval(table), range),
        (_, RangeRule::Duration(durations)) => overlaps(durations.sql(), range),
        (_, RangeRule::Reach) => {
            let durations = Durations::all(table).map(|durations| durations.sql());
            let any = std::iter::once(interval(table)).chain(durations);
            let any: Vec<String> = any
                .map(|any| format!("({})", overlaps(any, range)))
                .collect();
            format!("({})", any.join(" OR "))
        }
        _ => format!(
            "{0} >= {1} AND {0} < {2}",
            table.time,
            range.start(),
            range.end()
        ),
    }
}

/// Returns the SQL condition that an interval, given by SQL expressions for its start and end, overlaps a time range.
fn overlaps((start, end): (String, String), range: TimeRange) -> String {
    let (from, to) = (range.start(), range.end());
    // The second condition follows from the third, but it is simpler: it lets the query skip chunks without reading
    // them.
    format!("{start} < {to} AND {end} >= {from} AND ({end} > {from} OR {start} >= {from})")
}

/// Returns an SQL expression for the part of a duration in a time range, in nanoseconds. The part is null if the
/// duration does not overlap the range.
pub(crate) fn cut(durations: Durations, range: TimeRange) -> String {
    let (start, end) = durations.sql();
    let (from, to) = (range.start(), range.end());
    let overlaps = overlaps((start.clone(), end.clone()), range);
    format!("CASE WHEN {overlaps} THEN least({end}, {to}) - greatest({start}, {from}) END")
}

/// Returns SQL expressions for the start and the end of a row. If rows are moments, both are the time of the
/// row.
pub(crate) fn interval(table: &TableDef) -> (String, String) {
    let Some(lasts) = &table.lasts else {
        return (table.time.to_owned(), table.time.to_owned());
    };
    let schema = table.table.schema();
    let end_of = |name: &str, other: &str, boundless: i64| {
        let column = schema.columns.iter().find(|column| column.name == name);
        match column.is_some_and(|column| column.nullable) {
            false => name.to_owned(),
            true if lasts.is_life => format!("coalesce({name}, {boundless})"),
            true => format!("coalesce({name}, {other})"),
        }
    };
    (
        end_of(lasts.start, lasts.end, -i64::MAX),
        end_of(lasts.end, lasts.start, i64::MAX),
    )
}

/// Returns the SQL condition that the key has one of the ids. It compares numbers if the key has numbers,
/// and otherwise rows or labels.
pub(crate) fn is_one_of(column: &ColumnDef, names: &Names, ids: &[u32]) -> String {
    let (known, unknown): (Vec<u32>, Vec<u32>) =
        ids.iter().partition(|id| (**id as usize) < names.len());
    let mut any = Vec::new();
    if let Some(number) = column.number() {
        let numbers = known.iter().filter_map(|id| names.number(*id));
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        if !numbers.is_empty() {
            any.push(format!("{number} IN ({})", numbers.join(", ")));
        }
        if !unknown.is_empty() {
            any.push(format!("{number} IS NULL"));
        }
    } else {
        let mut labels: Vec<u32> = known;
        if let Some(row) = column.own_row() {
            // The last label belongs to idle rows. Idle rows have no row number, and their id is 0.
            let idle = names.len() as u32 - 1;
            let rows: Vec<String> = labels
                .extract_if(.., |id| *id != idle)
                .map(|id| id.to_string())
                .collect();
            if !rows.is_empty() {
                any.push(format!("{row} IN ({})", rows.join(", ")));
            }
            labels.dedup();
        }
        let sql = column.sql();
        let texts = labels.iter().map(|id| match column.source {
            Source::Flag(_) => names.label(*id).into_owned(),
            _ => literal(&names.label(*id)),
        });
        let texts: Vec<String> = texts.collect();
        match (column.own_row(), texts.is_empty()) {
            (_, true) => {}
            (Some(row), false) => {
                any.push(format!("{row} IS NULL AND {sql} IN ({})", texts.join(", ")))
            }
            (None, false) => any.push(format!("{sql} IN ({})", texts.join(", "))),
        }
        if !unknown.is_empty() {
            any.push(format!("{sql} IS NULL"));
        }
    }
    match any.len() {
        0 => "false".to_owned(),
        1 => any.swap_remove(0),
        _ => format!("({})", any.join(" OR ")),
    }
}

/// Returns the SQL condition that the key has none of the ids.
pub(crate) fn is_none_of(column: &ColumnDef, names: &Names, ids: &[u32]) -> String {
    if ids.is_empty() {
        return "true".to_owned();
    }
    format!("({}) IS NOT TRUE", is_one_of(column, names, ids))
}

/// Returns the SQL condition that the key has one of the labels.
pub(crate) fn is_label(column: &ColumnDef, labels: &[String]) -> String {
    if labels.is_empty() {
        return "false".to_owned();
    }
    let texts: Vec<String> = labels.iter().map(|label| literal(label)).collect();
    let sql = match column.source {
        Source::Number(_) | Source::Flag(_) => format!("CAST({} AS VARCHAR)", column.sql()),
        _ => column.sql(),
    };
    format!("{sql} IN ({})", texts.join(", "))
}

/// Returns the SQL condition that the key has none of the labels.
pub(crate) fn is_no_label(column: &ColumnDef, labels: &[String]) -> String {
    format!("({}) IS NOT TRUE", is_label(column, labels))
}

/// Returns the SQL condition that the label contains the text. Case is ignored.
pub(crate) fn contains(column: &ColumnDef, text: &str) -> String {
    format!(
        "strpos(lower(CAST({} AS VARCHAR)), {}) > 0",
        column.sql(),
        literal(&text.to_lowercase())
    )
}

/// Returns SQL conditions that the number is at least `from` and less than `to`.
pub(crate) fn bounds(column: &ColumnDef, from: Option<i64>, to: Option<i64>) -> Vec<String> {
    let number = column.number().unwrap_or(&column.name);
    let from = from.map(|from| format!("{number} >= {from}"));
    let to = to.map(|to| format!("{number} < {to}"));
    from.into_iter().chain(to).collect()
}

/// Returns a `WHERE` clause on a new line, or an empty text if there are no conditions.
pub(crate) fn filter(conditions: &[String]) -> String {
    if conditions.is_empty() {
        String::new()
    } else {
        format!("\nWHERE {}", conditions.join("\n  AND "))
    }
}

/// Returns the name of the stored column that contains the numbers of a column.
pub(crate) fn number(column: &ColumnDef) -> &str {
    column.number().unwrap_or(&column.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn text_of_a_trace_stays_text() {
        let path = catalogue::table("disk_io").unwrap().column("path").unwrap();
        let hostile = "x') OR 1 = 1 --".to_owned();
        assert_eq!(is_label(path, &[hostile]), "path IN ('x'') OR 1 = 1 --')");
        assert_eq!(
            contains(path, "O'Neil"),
            "strpos(lower(CAST(path AS VARCHAR)), 'o''neil') > 0"
        );
    }

    #[test]
    fn a_row_of_length_0_is_in_a_range_that_contains_its_start() {
        let interrupts = catalogue::table("interrupts").unwrap();
        let range = TimeRange::new(10, 20);
        assert_eq!(
            super::within(interrupts, RangeRule::Overlap, range),
            "coalesce(start_ns, end_ns) < 20 AND end_ns >= 10 AND (end_ns > 10 OR \
             coalesce(start_ns, end_ns) >= 10)"
        );
        assert_eq!(
            super::within(interrupts, RangeRule::Moment, range),
            "end_ns >= 10 AND end_ns < 20"
        );
    }
}
