//! Conversion of selections to SQL.

use std::fmt::Display;
use std::ops::Range;

use crate::{Condition, During, Expression, Order, Selection};

/// Returns a name as an SQL identifier, in double quotes if needed. The name may have any
/// characters.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Returns a text as an SQL string in single quotes. The text may have any characters.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Selection {
    /// Returns the selection as one SQL statement on one line.
    pub fn sql(&self) -> String {
        let columns = self.columns.iter().map(|(name, expression)| {
            let sql = self.value(expression);
            if sql == *name {
                sql
            } else {
                format!("{sql} AS {name}")
            }
        });
        let mut sql = format!("SELECT {} FROM {}", joined(columns), self.source());
        let conditions = self.conditions();
        if !conditions.is_empty() {
            sql += &format!(" WHERE {}", conditions.join(" AND "));
        }
        if !self.group_by.is_empty() {
            sql += &format!(" GROUP BY {}", self.group_by.join(", "));
        }
        if !self.order.is_empty() {
            sql += &format!(" ORDER BY {}", joined(self.order.iter().map(Order::sql)));
        }
        if let Some(limit) = self.limit {
            sql += &format!(" LIMIT {limit}");
        }
        sql
    }

    fn source(&self) -> String {
        let table = self.table.name();
        let computed = self.computed.iter();
        let computed = computed.map(|(name, formula)| format!(", {formula} AS {name}"));
        let mut source = if self.computed.is_empty() {
            table.to_owned()
        } else {
            format!("(SELECT *{} FROM {table})", computed.collect::<String>())
        };
        if let Some(During::Overlapping(ranges)) = &self.during
            && ranges.len() != 1
        {
            let ranges = ranges.iter();
            let ranges = ranges.map(|range| format!("({}, {})", range.start, range.end));
            source += &format!(
                " JOIN (VALUES {}) AS ranges (from_ns, to_ns) ON end_ns > from_ns AND start_ns < to_ns",
                joined(ranges)
            );
        }
        source
    }

    /// Returns the conditions on rows as SQL. Each condition has parentheses if needed, so that the caller can join the
    /// conditions with `AND`.
    pub fn conditions(&self) -> Vec<String> {
        let mut conditions = match &self.during {
            None => Vec::new(),
            Some(During::Within(column, Range { start, end })) => {
                vec![format!("{column} >= {start} AND {column} < {end}")]
            }
            Some(During::Overlapping(ranges)) => match ranges.as_slice() {
                [Range { start, end }] => vec![format!(
                    "end_ns > {start} AND start_ns < {end} AND end_ns > start_ns"
                )],
                // The join in the `FROM` clause compares the rows with the ranges.
                _ => vec!["end_ns > start_ns".to_owned()],
            },
        };
        conditions.extend(self.filter.iter().map(Condition::as_operand));
        conditions
    }

    fn value(&self, expression: &Expression) -> String {
        match expression {
            Expression::TimeWithin => self.time_within(),
            Expression::OverAll(value) => format!("sum({}) OVER ()", self.value(value)),
            other => other.sql(),
        }
    }

    /// Returns the SQL of the total duration of the rows within the ranges.
    fn time_within(&self) -> String {
        match &self.during {
            Some(During::Overlapping(ranges)) => match ranges.as_slice() {
                [Range { start, end }] => {
                    format!("sum(least(end_ns, {end}) - greatest(start_ns, {start}))")
                }
                _ => "sum(least(end_ns, to_ns) - greatest(start_ns, from_ns))".to_owned(),
            },
            _ => "sum(end_ns - start_ns)".to_owned(),
        }
    }
}

impl Order {
    fn sql(&self) -> String {
        // By default, SQL puts unknown values last in ascending order and first in descending
        // order.
        match (self.descending, self.unknown_first) {
            (false, false) => self.by.to_owned(),
            (false, true) => format!("{} NULLS FIRST", self.by),
            (true, false) => format!("{} DESC NULLS LAST", self.by),
            (true, true) => format!("{} DESC", self.by),
        }
    }
}

impl Expression {
    /// Returns the expression as SQL. [`Expression::TimeWithin`] becomes the whole duration of the rows, because an
    /// expression does not contain the time ranges of the selection.
    fn sql(&self) -> String {
        match self {
            Expression::Column(name) => (*name).to_owned(),
            Expression::TextOrEmpty(name) => format!("coalesce({name}, '')"),
            Expression::FirstKnown(names) => format!("coalesce({})", names.join(", ")),
            Expression::Greatest(names) => format!("greatest({})", names.join(", ")),
            Expression::Process(row) => format!("process({row})"),
            Expression::Module(row) => format!("module({row})"),
            Expression::Function { image_row, address } => {
                format!("symbol({image_row}, {address})")
            }
            Expression::WaitReason(name) => format!("wait_reason({name})"),
            Expression::Count => "count(*)".to_owned(),
            Expression::CountIf(condition) => {
                format!("count(*) FILTER (WHERE {})", condition.sql())
            }
            Expression::CountDistinct(name) => format!("count(DISTINCT {name})"),
            Expression::Sum(name) => format!("sum({name})"),
            Expression::SumIf(name, condition) => {
                format!(
                    "coalesce(sum({name}) FILTER (WHERE {}), 0)",
                    condition.sql()
                )
            }
            Expression::SumCapped(name, cap) => {
                format!("sum(CASE WHEN {name} > {cap} THEN {cap} ELSE {name} END)")
            }
            Expression::Min(name) => format!("min({name})"),
            Expression::Max(name) => format!("max({name})"),
            Expression::TimeWithin => "sum(end_ns - start_ns)".to_owned(),
            Expression::OverAll(value) => format!("sum({}) OVER ()", value.sql()),
            Expression::Formula(sql) => sql.clone(),
        }
    }
}

impl Condition {
    /// Returns the condition as SQL.
    pub fn sql(&self) -> String {
        match self {
            Condition::IsOneOf(column, numbers) => match numbers.as_slice() {
                [] => "false".to_owned(),
                [one] => format!("{column} = {one}"),
                _ => format!("{column} IN ({})", joined(numbers)),
            },
            Condition::IsNoneOf(column, numbers) => match numbers.as_slice() {
                [] => "true".to_owned(),
                [one] => format!("{column} <> {one}"),
                _ => format!("{column} NOT IN ({})", joined(numbers)),
            },
            Condition::IsText(column, texts) => is_text(column, texts),
            Condition::IsNotText(column, texts) => {
                let texts = texts.iter().map(|text| literal(text));
                format!("coalesce({column}, '') NOT IN ({})", joined(texts))
            }
            Condition::HasLabel(expression, labels) => is_text(&expression.sql(), labels),
            Condition::IsNamed(expression) => format!("{} IS NOT NULL", expression.sql()),
            Condition::IsKnown(column) => format!("{column} IS NOT NULL"),
            Condition::IsUnknown(column) => format!("{column} IS NULL"),
            Condition::IsTrue(column) => (*column).to_owned(),
            Condition::IsFalse(column) => format!("NOT {column}"),
            Condition::AtLeast(column, least) => format!("{column} >= {least}"),
            Condition::Below(column, bound) => format!("{column} < {bound}"),
            Condition::AddressIn(column, ranges) => {
                let ranges = ranges
                    .iter()
                    .map(|range| match (range.start(), range.end()) {
                        (from, to) if from == to => format!("{column} = {from}"),
                        (from, to) => format!("{column} BETWEEN {from} AND {to}"),
                    });
                match ranges.len() {
                    0 => "false".to_owned(),
                    _ => ranges.collect::<Vec<_>>().join(" OR "),
                }
            }
            Condition::Any(conditions) => {
                if conditions.is_empty() {
                    "false".to_owned()
                } else {
                    listed(conditions, " OR ")
                }
            }
            Condition::All(conditions) => {
                if conditions.is_empty() {
                    "true".to_owned()
                } else {
                    listed(conditions, " AND ")
                }
            }
            Condition::Not(condition) => format!("({}) IS NOT TRUE", condition.sql()),
            Condition::IsDoubtful(runs) => runs.condition(),
            Condition::StackReaches(ranges) => {
                let ranges = ranges
                    .iter()
                    .map(|range| format!("address >= {} AND address < {}", range.start, range.end));
                format!(
                    "stack_id IN (SELECT stack_id FROM (SELECT stack_id, unnest(addresses) AS address \
                     FROM stacks) WHERE {})",
                    ranges.collect::<Vec<_>>().join(" OR ")
                )
            }
        }
    }

    /// Returns the condition as SQL, in parentheses if needed to join it with `AND` or `OR`.
    fn as_operand(&self) -> String {
        match self {
            Condition::Any(conditions) if conditions.len() > 1 => format!("({})", self.sql()),
            Condition::All(conditions) if conditions.len() > 1 => format!("({})", self.sql()),
            Condition::AddressIn(_, ranges) if ranges.len() > 1 => format!("({})", self.sql()),
            Condition::IsDoubtful(_) => format!("({})", self.sql()),
            _ => self.sql(),
        }
    }
}

fn listed(conditions: &[Condition], between: &str) -> String {
    let conditions: Vec<String> = conditions.iter().map(Condition::as_operand).collect();
    conditions.join(between)
}

fn is_text(value: &str, texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    match texts.as_slice() {
        [] => "false".to_owned(),
        [one] => format!("{value} = {one}"),
        _ => format!("{value} IN ({})", texts.join(", ")),
    }
}

fn joined(parts: impl IntoIterator<Item = impl Display>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use tables::Table;

    use super::*;

    #[test]
    fn text_of_a_trace_stays_text() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(quoted("a\"; DROP"), "\"a\"\"; DROP\"");
        assert_eq!(quoted("cpu_ns"), "cpu_ns");
        let hostile = Condition::is_text("path", &["x') OR 1 = 1 --"]);
        assert_eq!(hostile.sql(), "path = 'x'') OR 1 = 1 --'");
    }

    #[test]
    fn alternatives_do_not_leak_into_other_conditions() {
        let either = Condition::Any(vec![
            Condition::is("cpu", 3),
            Condition::All(vec![
                Condition::IsTrue("in_dpc"),
                Condition::AtLeast("count", 2),
            ]),
        ]);
        let selection = Selection::new(Table::Samples)
            .column("samples", Expression::count_if(either.clone()))
            .filter(either)
            .filter(Condition::is_not("thread_id", 0));
        assert_eq!(
            selection.sql(),
            "SELECT count(*) FILTER (WHERE cpu = 3 OR (in_dpc AND count >= 2)) AS samples FROM samples \
             WHERE (cpu = 3 OR (in_dpc AND count >= 2)) AND thread_id <> 0"
        );
    }

    #[test]
    fn time_within_ranges_is_cut_at_their_ends() {
        let runs = |ranges: &[Range<i64>]| {
            Selection::new(Table::CpuRuns)
                .overlapping(ranges)
                .column("ns", Expression::TimeWithin)
                .sql()
        };
        assert_eq!(
            runs(std::slice::from_ref(&(10..20))),
            "SELECT sum(least(end_ns, 20) - greatest(start_ns, 10)) AS ns FROM cpu_runs WHERE end_ns > \
             10 AND start_ns < 20 AND end_ns > start_ns"
        );
        assert_eq!(
            runs(&[10..20, 30..40]),
            "SELECT sum(least(end_ns, to_ns) - greatest(start_ns, from_ns)) AS ns FROM cpu_runs JOIN \
             (VALUES (10, 20), (30, 40)) AS ranges (from_ns, to_ns) ON end_ns > from_ns AND start_ns < \
             to_ns WHERE end_ns > start_ns"
        );
    }

    #[test]
    fn rows_are_filtered_by_computed_columns() {
        let selection = Selection::new(Table::CpuRuns)
            .computed("awake_ns", "waits_ns - 5")
            .within("readied_ns", 3..9)
            .filter(Condition::AtLeast("awake_ns", 20))
            .column("awake_ns", Expression::Column("awake_ns"))
            .order(&[Order::ascending("readied_ns").unknown_first()])
            .limit(2);
        assert_eq!(
            selection.sql(),
            "SELECT awake_ns FROM (SELECT *, waits_ns - 5 AS awake_ns FROM cpu_runs) WHERE readied_ns \
             >= 3 AND readied_ns < 9 AND awake_ns >= 20 ORDER BY readied_ns NULLS FIRST LIMIT 2"
        );
    }
}
