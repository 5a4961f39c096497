//! Ranges of a table's sorted column, derived from the filters of a query.

use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator};
use datafusion::scalar::ScalarValue;

/// Values from `first` to `last`, inclusive. The range is empty if `first` is greater than `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Range of the sorted column, derived from a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Rows with a value outside this range do not pass the filter.
    pub(crate) range: TimeRange,
    /// True if all rows with a value in the range pass the filter.
    pub(crate) is_exact: bool,
}

impl TimeRange {
    pub(crate) const ALL: TimeRange = TimeRange {
        first: i64::MIN,
        last: i64::MAX,
    };

    const NONE: TimeRange = TimeRange {
        first: i64::MAX,
        last: i64::MIN,
    };

    /// Returns the intersection of two ranges.
    pub(crate) fn and(self, other: TimeRange) -> TimeRange {
        TimeRange {
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        }
    }

    /// Returns true if the range contains all values from `first` to `last`.
    pub(crate) fn covers(self, first: i64, last: i64) -> bool {
        self.first <= first && last <= self.last
    }

    /// Returns true if the range contains at least one value from `first` to `last`.
    pub(crate) fn overlaps(self, first: i64, last: i64) -> bool {
        self.first.max(first) <= self.last.min(last)
    }
}

impl Bound {
    /// Returns the range of the column outside of which the filter rejects all rows. Returns `None` if no
    /// range can be derived.
    pub(crate) fn from_filter(filter: &Expr, column: &str) -> Option<Bound> {
        match filter {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => match (
                Bound::from_filter(left, column),
                Bound::from_filter(right, column),
            ) {
                (Some(left), Some(right)) => Some(Bound {
                    range: left.range.and(right.range),
                    is_exact: left.is_exact && right.is_exact,
                }),
                (Some(one), None) | (None, Some(one)) => Some(Bound {
                    is_exact: false,
                    ..one
                }),
                (None, None) => None,
            },
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => ComparisonForm::find(left, column)
                .and_then(|compared| compared.bound(*op, right))
                .or_else(|| ComparisonForm::find(right, column)?.bound(op.swap()?, left)),
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                let compared = ComparisonForm::find(expr, column)?;
                let low = compared.bound(Operator::GtEq, low)?;
                let high = compared.bound(Operator::LtEq, high)?;
                Some(Bound {
                    range: low.range.and(high.range),
                    is_exact: low.is_exact && high.is_exact,
                })
            }
            _ => None,
        }
    }
}

/// Form in which a comparison uses the column.
#[derive(Clone, Copy)]
enum ComparisonForm {
    Integer,
    /// The column is cast to a floating-point number, as in a comparison with `1.5e9`.
    Float,
}

impl ComparisonForm {
    fn find(side: &Expr, column: &str) -> Option<ComparisonForm> {
        match side {
            Expr::Column(found) if found.name == column => Some(ComparisonForm::Integer),
            Expr::Cast(Cast { expr, field })
                if *field.data_type() == arrow_schema::DataType::Float64 =>
            {
                ComparisonForm::find(expr, column).map(|_| ComparisonForm::Float)
            }
            _ => None,
        }
    }

    fn bound(self, operator: Operator, value: &Expr) -> Option<Bound> {
        let Expr::Literal(value, _) = value else {
            return None;
        };
        match (self, value) {
            (ComparisonForm::Integer, ScalarValue::Int64(Some(value))) => Some(Bound {
                range: range(operator, *value, *value)?,
                is_exact: true,
            }),
            (ComparisonForm::Float, ScalarValue::Float64(Some(value))) if value.is_finite() => {
                // The cast of the column to a floating-point number rounds. The largest i64 values change by
                // at most 512.
                let slack = 1024;
                let value = *value as i64;
                let (low, high) = (value.saturating_sub(slack), value.saturating_add(slack));
                Some(Bound {
                    range: range(operator, low, high)?,
                    is_exact: false,
                })
            }
            _ => None,
        }
    }
}

/// Returns the column values for which the comparison can be true. The other operand is between `low` and
/// `high`.
fn range(operator: Operator, low: i64, high: i64) -> Option<TimeRange> {
    let from = |first| TimeRange {
        first,
        ..TimeRange::ALL
    };
    let to = |last| TimeRange {
        last,
        ..TimeRange::ALL
    };
    Some(match operator {
        Operator::Eq => from(low).and(to(high)),
        Operator::Lt => high.checked_sub(1).map_or(TimeRange::NONE, to),
        Operator::LtEq => to(high),
        Operator::Gt => low.checked_add(1).map_or(TimeRange::NONE, from),
        Operator::GtEq => from(low),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;
    use datafusion::prelude::{cast, col, lit};

    fn exact(first: i64, last: i64) -> Option<Bound> {
        let range = TimeRange { first, last };
        Some(Bound {
            range,
            is_exact: true,
        })
    }

    #[test]
    fn comparisons_bound_the_column() {
        let time = || col("time_ns");
        let bound = |filter: Expr| Bound::from_filter(&filter, "time_ns");
        assert_eq!(bound(time().lt(lit(5_i64))), exact(i64::MIN, 4));
        assert_eq!(bound(time().lt_eq(lit(5_i64))), exact(i64::MIN, 5));
        assert_eq!(bound(time().gt(lit(5_i64))), exact(6, i64::MAX));
        assert_eq!(bound(lit(5_i64).gt(time())), exact(i64::MIN, 4));
        assert_eq!(bound(time().eq(lit(5_i64))), exact(5, 5));
        assert_eq!(bound(time().between(lit(2_i64), lit(5_i64))), exact(2, 5));
        assert_eq!(
            bound(time().gt_eq(lit(2_i64)).and(time().lt(lit(5_i64)))),
            exact(2, 4)
        );
        assert_eq!(
            bound(time().gt(lit(i64::MAX))).unwrap().range,
            TimeRange::NONE
        );
    }

    #[test]
    fn other_filters_imply_no_range() {
        let bound = |filter: Expr| Bound::from_filter(&filter, "time_ns");
        assert_eq!(bound(col("cpu").lt(lit(5_i64))), None);
        assert_eq!(bound(col("time_ns").not_eq(lit(5_i64))), None);
        assert_eq!(bound(col("time_ns").lt(col("end_ns"))), None);
        assert_eq!(
            bound(col("time_ns").not_between(lit(2_i64), lit(5_i64))),
            None
        );
        assert_eq!(
            bound(col("time_ns").lt(lit(ScalarValue::Int64(None)))),
            None
        );
        let either = col("time_ns").lt(lit(5_i64)).or(col("cpu").eq(lit(1_i64)));
        assert_eq!(bound(either), None);
        let both = col("time_ns").lt(lit(5_i64)).and(col("cpu").eq(lit(1_i64)));
        let bound = bound(both).unwrap();
        assert_eq!(bound.range.last, 4);
        assert!(!bound.is_exact);
    }

    #[test]
    fn fractions_imply_an_inexact_range() {
        let time = cast(col("time_ns"), DataType::Float64);
        let bound = Bound::from_filter(&time.lt(lit(1.5e9)), "time_ns").unwrap();
        assert!(!bound.is_exact);
        assert!(bound.range.covers(i64::MIN, 1_500_000_000));
        assert!(!bound.range.overlaps(1_500_002_000, i64::MAX));
    }
}
