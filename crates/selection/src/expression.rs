//! Expressions for the values of shown columns.

use crate::Condition;

/// Expression for the value of a shown column, in each row or in each group of rows. The names in variants
/// are names of stored or computed columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Value of the column itself.
    Column(&'static str),
    /// Text of the column; empty if the text is unknown.
    TextOrEmpty(&'static str),
    /// Value of the first column whose value is known.
    FirstKnown(Vec<&'static str>),
    /// Greatest known value of these columns.
    Greatest(Vec<&'static str>),
    /// Name and id of a process. The column holds the row of the process in `processes`.
    Process(&'static str),
    /// File name of an image. The column holds the row of the image in `images`.
    Module(&'static str),
    /// Name of the function at an address.
    Function {
        /// Column with the row of the image in `images`.
        image_row: &'static str,
        /// Column with the address.
        address: &'static str,
    },
    /// Name of the wait reason whose code is in the column.
    WaitReason(&'static str),
    /// Number of rows of the group.
    Count,
    /// Number of rows of the group for which the condition holds.
    CountIf(Box<Condition>),
    /// Number of different values of the column.
    CountDistinct(&'static str),
    /// Sum of the column.
    Sum(&'static str),
    /// Sum of the column over the rows for which the condition holds; 0 if there are no such rows.
    SumIf(&'static str, Box<Condition>),
    /// Sum of the column. Each value above this number counts as this number.
    SumCapped(&'static str, i64),
    /// Minimum of the column.
    Min(&'static str),
    /// Maximum of the column.
    Max(&'static str),
    /// Total duration of the rows in nanoseconds. Only the time within the ranges of the selection
    /// counts.
    TimeWithin,
    /// Sum over all groups. Each group contributes the value that the expression has in the group.
    OverAll(Box<Expression>),
    /// Formula in SQL. The formula can be printed, but no view can be derived from it.
    Formula(String),
}

impl Expression {
    /// Returns the number of rows for which the condition holds.
    pub fn count_if(condition: Condition) -> Expression {
        Expression::CountIf(Box::new(condition))
    }

    /// Returns the sum of a column over the rows for which the condition holds.
    pub fn sum_if(column: &'static str, condition: Condition) -> Expression {
        Expression::SumIf(column, Box::new(condition))
    }

    /// Returns the sum of this value over all groups.
    #[must_use]
    pub fn over_all(self) -> Expression {
        Expression::OverAll(Box::new(self))
    }
}
