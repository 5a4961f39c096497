//! Typed queries of one table.
//!
//! A [`Selection`] states which rows of a table support a finding, how the rows are grouped and which columns
//! are shown. [`Selection::sql`] prints the selection as SQL. The crate `explore` makes a view of the same
//! selection, so that it does not have to parse SQL.
//!
//! ```
//! use selection::{Condition, Expression, Order, Selection};
//! use tables::Table;
//!
//! let longest = Selection::new(Table::CpuRuns)
//!     .column("process", Expression::Process("process_row"))
//!     .column("longest_ns", Expression::Max("ready_ns"))
//!     .filter(Condition::is_not("thread_id", 0))
//!     .group_by(&["process_row"])
//!     .order(&[Order::descending("longest_ns"), Order::ascending("process_row")])
//!     .limit(10);
//! assert_eq!(
//!     longest.sql(),
//!     "SELECT process(process_row) AS process, max(ready_ns) AS longest_ns FROM cpu_runs WHERE \
//!      thread_id <> 0 GROUP BY process_row ORDER BY longest_ns DESC NULLS LAST, process_row LIMIT 10"
//! );
//! ```

mod condition;
mod expression;
mod sql;

use std::ops::Range;

use tables::Table;

pub use condition::Condition;
pub use expression::Expression;
pub use sql::{literal, quoted};

/// Query of one table: the selected rows and the shown columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Table that is queried.
    pub table: Table,
    /// Names and SQL formulas of columns that are computed before rows are filtered.
    pub computed: Vec<(&'static str, String)>,
    /// Time ranges of the selection: the rows overlap one of several ranges, or their times are in one range.
    /// `None` for the whole trace.
    pub during: Option<During>,
    /// Conditions on the rows. A row is selected if all conditions hold.
    pub filter: Vec<Condition>,
    /// Names and values of the shown columns.
    pub columns: Vec<(&'static str, Expression)>,
    /// Columns by which rows are grouped. An entry is the name of a stored or shown column. If a stored and a
    /// shown column have the same name, the position of the shown column, counted from 1, selects the shown
    /// column. The list is empty if each row is shown, or if all rows form one group.
    pub group_by: Vec<&'static str>,
    /// Order of the rows or groups.
    pub order: Vec<Order>,
    /// Maximum number of rows or groups.
    pub limit: Option<usize>,
}

/// Time range of a selection, in nanoseconds since the trace's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum During {
    /// Rows that overlap one of the ranges. A row lasts from `start_ns` to `end_ns`. Rows without duration
    /// are not selected. The ranges are disjoint.
    Overlapping(Vec<Range<i64>>),
    /// Rows whose time in the column lies in the range.
    Within(&'static str, Range<i64>),
}

/// Sort key of a selection. Unknown values come last, unless `unknown_first` is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Name of a stored or shown column, position of a shown column (counted from 1), or SQL of an aggregate.
    pub by: &'static str,
    /// True if the maximum comes first.
    pub descending: bool,
    /// True if unknown values come first.
    pub unknown_first: bool,
}

impl Order {
    /// Returns a sort key with ascending values.
    pub const fn ascending(by: &'static str) -> Order {
        Order {
            by,
            descending: false,
            unknown_first: false,
        }
    }

    /// Returns a sort key with descending values.
    pub const fn descending(by: &'static str) -> Order {
        Order {
            by,
            descending: true,
            unknown_first: false,
        }
    }

    /// Returns this sort key with unknown values first.
    #[must_use]
    pub const fn unknown_first(self) -> Order {
        Order {
            unknown_first: true,
            ..self
        }
    }
}

impl Selection {
    /// Selects all rows of a table, with no columns yet.
    pub fn new(table: Table) -> Selection {
        Selection {
            table,
            computed: Vec::new(),
            during: None,
            filter: Vec::new(),
            columns: Vec::new(),
            group_by: Vec::new(),
            order: Vec::new(),
            limit: None,
        }
    }

    /// Adds a computed column. Conditions and expressions can then use its name.
    #[must_use]
    pub fn computed(mut self, name: &'static str, formula: impl Into<String>) -> Selection {
        self.computed.push((name, formula.into()));
        self
    }

    /// Keeps rows that have a duration and overlap one of the ranges. The ranges must be disjoint.
    #[must_use]
    pub fn overlapping(mut self, ranges: &[Range<i64>]) -> Selection {
        self.during = Some(During::Overlapping(ranges.to_vec()));
        self
    }

    /// Keeps rows whose time in the column lies in the range.
    #[must_use]
    pub fn within(mut self, column: &'static str, range: Range<i64>) -> Selection {
        self.during = Some(During::Within(column, range));
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn filter(mut self, condition: Condition) -> Selection {
        self.filter.push(condition);
        self
    }

    /// Adds conditions.
    #[must_use]
    pub fn filters(mut self, conditions: impl IntoIterator<Item = Condition>) -> Selection {
        self.filter.extend(conditions);
        self
    }

    /// Adds a shown column.
    #[must_use]
    pub fn column(mut self, name: &'static str, expression: Expression) -> Selection {
        self.columns.push((name, expression));
        self
    }

    /// Groups rows by stored or shown columns.
    #[must_use]
    pub fn group_by(mut self, columns: &[&'static str]) -> Selection {
        self.group_by = columns.to_vec();
        self
    }

    /// Sorts the rows or groups.
    #[must_use]
    pub fn order(mut self, order: &[Order]) -> Selection {
        self.order = order.to_vec();
        self
    }

    /// Shows at most this many rows or groups.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Selection {
        self.limit = Some(limit);
        self
    }
}
