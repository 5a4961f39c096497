//! Conditions on rows.

use std::ops::{Range, RangeInclusive};

use tables::DoubtfulRuns;

use crate::Expression;

/// Condition on a row of a table. In most variants, the first value is the name of a stored or
/// computed column. Unless stated otherwise, a row does not pass if its value in the column is
/// unknown (null).
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The number in the column is one of these numbers.
    IsOneOf(&'static str, Vec<i64>),
    /// The number in the column is none of these numbers.
    IsNoneOf(&'static str, Vec<i64>),
    /// The text in the column is one of these texts.
    IsText(&'static str, Vec<String>),
    /// The text in the column is none of these texts. A row with unknown text passes.
    IsNotText(&'static str, Vec<String>),
    /// The label (display name) of a process, module or function is one of these texts.
    HasLabel(Expression, Vec<String>),
    /// The process, module or function has a label (its name is known).
    IsNamed(Expression),
    /// The value in the column is known.
    IsKnown(&'static str),
    /// The value in the column is unknown.
    IsUnknown(&'static str),
    /// The flag in the column is set.
    IsTrue(&'static str),
    /// The flag in the column is known and not set.
    IsFalse(&'static str),
    /// The number in the column is at least this number.
    AtLeast(&'static str, i64),
    /// The number in the column is less than this number.
    Below(&'static str, i64),
    /// The address in the column lies in one of these ranges.
    AddressIn(&'static str, Vec<RangeInclusive<u64>>),
    /// At least one of these conditions holds.
    Any(Vec<Condition>),
    /// All these conditions hold.
    All(Vec<Condition>),
    /// The inner condition is false or unknown.
    Not(Box<Condition>),
    /// The run in the row of `cpu_runs` is doubtful.
    IsDoubtful(DoubtfulRuns),
    /// The stack in the column `stack_id` has a frame whose address lies in one of these ranges.
    StackReaches(Vec<Range<u64>>),
}

impl Condition {
    /// Returns the condition that the number in the column equals `number`.
    pub fn is(column: &'static str, number: impl Into<i64>) -> Condition {
        Condition::IsOneOf(column, vec![number.into()])
    }

    /// Returns the condition that the number in the column differs from `number`.
    pub fn is_not(column: &'static str, number: impl Into<i64>) -> Condition {
        Condition::IsNoneOf(column, vec![number.into()])
    }

    /// Returns the condition that the number in the column is one of `numbers`.
    pub fn is_one_of<N: Copy + Into<i64>>(column: &'static str, numbers: &[N]) -> Condition {
        let numbers = numbers.iter().map(|number| (*number).into());
        Condition::IsOneOf(column, numbers.collect())
    }

    /// Returns the condition that the number in the column is none of `numbers`.
    pub fn is_none_of<N: Copy + Into<i64>>(column: &'static str, numbers: &[N]) -> Condition {
        let numbers = numbers.iter().map(|number| (*number).into());
        Condition::IsNoneOf(column, numbers.collect())
    }

    /// Returns the condition that the number in the column equals `number`. If `number` is `None`,
    /// the number in the column must be unknown.
    pub fn is_or_unknown<N: Into<i64>>(column: &'static str, number: Option<N>) -> Condition {
        match number {
            Some(number) => Condition::is(column, number),
            None => Condition::IsUnknown(column),
        }
    }

    /// Returns the condition that the text in the column is one of `texts`.
    pub fn is_text(column: &'static str, texts: &[&str]) -> Condition {
        let texts = texts.iter().map(|text| (*text).to_owned());
        Condition::IsText(column, texts.collect())
    }

    /// Returns the condition that a row belongs to a process. `row` is the row of the process in
    /// `processes`. If the process has no row there, it is identified by `id`.
    pub fn of_process(row: Option<u32>, id: Option<u32>) -> Condition {
        match row {
            Some(row) => Condition::is("process_row", row),
            None => Condition::All(vec![
                Condition::IsUnknown("process_row"),
                Condition::is_or_unknown("process_id", id),
            ]),
        }
    }

    /// Returns the opposite condition. It holds for each row that does not pass this condition.
    #[must_use]
    pub fn negated(self) -> Condition {
        Condition::Not(Box::new(self))
    }
}
