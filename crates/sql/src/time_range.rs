//! What a filter says about the column that a table is sorted by.

use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator};
use datafusion::scalar::ScalarValue;

/// The values from the first to the second, both included; none if the first is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// What a filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// No other value of the sorted column passes.
    pub(crate) range: TimeRange,
    /// Every row whose value is in the range passes.
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

    /// What is in both.
    pub(crate) fn and(self, other: TimeRange) -> TimeRange {
        TimeRange {
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        }
    }

    /// Whether all values from `first` to `last` are in it.
    pub(crate) fn covers(self, first: i64, last: i64) -> bool {
        self.first <= first && last <= self.last
    }

    /// Whether some value from `first` to `last` is in it.
    pub(crate) fn meets(self, first: i64, last: i64) -> bool {
        self.first.max(first) <= self.last.min(last)
    }
}

impl Bound {
    /// Reads a filter; nothing if it says nothing of the column.
    pub(crate) fn of(filter: &Expr, column: &str) -> Option<Bound> {
        match filter {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => match (Bound::of(left, column), Bound::of(right, column)) {
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
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => Compared::of(left, column)
                .and_then(|compared| compared.bound(*op, right))
                .or_else(|| Compared::of(right, column)?.bound(op.swap()?, left)),
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                let compared = Compared::of(expr, column)?;
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

/// How the column stands in a comparison.
#[derive(Clone, Copy)]
enum Compared {
    AsItIs,
    /// Cast to a floating-point number, as against `1.5e9`.
    AsFloat,
}

impl Compared {
    fn of(side: &Expr, column: &str) -> Option<Compared> {
        match side {
            Expr::Column(found) if found.name == column => Some(Compared::AsItIs),
            Expr::Cast(Cast { expr, field })
                if *field.data_type() == arrow_schema::DataType::Float64 =>
            {
                Compared::of(expr, column).map(|_| Compared::AsFloat)
            }
            _ => None,
        }
    }

    fn bound(self, operator: Operator, value: &Expr) -> Option<Bound> {
        let Expr::Literal(value, _) = value else {
            return None;
        };
        match (self, value) {
            (Compared::AsItIs, ScalarValue::Int64(Some(value))) => Some(Bound {
                range: range(operator, *value, *value)?,
                is_exact: true,
            }),
            (Compared::AsFloat, ScalarValue::Float64(Some(value))) if value.is_finite() => {
                // The column's cast rounds, by at most 512 of i64's greatest values.
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

/// The values that may compare so with one that is known to be from `low` to `high`.
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
        let of = |filter: Expr| Bound::of(&filter, "time_ns");
        assert_eq!(of(time().lt(lit(5_i64))), exact(i64::MIN, 4));
        assert_eq!(of(time().lt_eq(lit(5_i64))), exact(i64::MIN, 5));
        assert_eq!(of(time().gt(lit(5_i64))), exact(6, i64::MAX));
        assert_eq!(of(lit(5_i64).gt(time())), exact(i64::MIN, 4));
        assert_eq!(of(time().eq(lit(5_i64))), exact(5, 5));
        assert_eq!(of(time().between(lit(2_i64), lit(5_i64))), exact(2, 5));
        assert_eq!(
            of(time().gt_eq(lit(2_i64)).and(time().lt(lit(5_i64)))),
            exact(2, 4)
        );
        assert_eq!(of(time().gt(lit(i64::MAX))).unwrap().range, TimeRange::NONE);
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_engine() {
        let of = |filter: Expr| Bound::of(&filter, "time_ns");
        assert_eq!(of(col("cpu").lt(lit(5_i64))), None);
        assert_eq!(of(col("time_ns").not_eq(lit(5_i64))), None);
        assert_eq!(of(col("time_ns").lt(col("end_ns"))), None);
        assert_eq!(of(col("time_ns").not_between(lit(2_i64), lit(5_i64))), None);
        assert_eq!(of(col("time_ns").lt(lit(ScalarValue::Int64(None)))), None);
        let either = col("time_ns").lt(lit(5_i64)).or(col("cpu").eq(lit(1_i64)));
        assert_eq!(of(either), None);
        let both = col("time_ns").lt(lit(5_i64)).and(col("cpu").eq(lit(1_i64)));
        let bound = of(both).unwrap();
        assert_eq!(bound.range.last, 4);
        assert!(!bound.is_exact);
    }

    #[test]
    fn fractions_bound_it_loosely() {
        let time = cast(col("time_ns"), DataType::Float64);
        let bound = Bound::of(&time.lt(lit(1.5e9)), "time_ns").unwrap();
        assert!(!bound.is_exact);
        assert!(bound.range.covers(i64::MIN, 1_500_000_000));
        assert!(!bound.range.meets(1_500_002_000, i64::MAX));
    }
}
