//! Integer arithmetic that reports an overflow as an error, and joined texts of limited size. DataFusion's own arithmetic
//! wraps around, and its `||` has no limit.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{Decimal128Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Decimal128Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use datafusion::arrow::compute::kernels::cast::CastOptions;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::compute::{cast, cast_with_options};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, Expr, ExprSchemable,
    GroupsAccumulator, Operator, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::functions::bounded::{check_bytes, limit};

/// Query rewriter that replaces operators of integers and `||` of texts by [`CheckedOperator`].
#[derive(Debug)]
pub(crate) struct CheckArithmetic {
    functions: [Arc<ScalarUDF>; 6],
}

impl CheckArithmetic {
    pub(crate) fn new() -> CheckArithmetic {
        let operators = [
            Operator::Plus,
            Operator::Minus,
            Operator::Multiply,
            Operator::BitwiseShiftLeft,
            Operator::BitwiseShiftRight,
            Operator::StringConcat,
        ];
        CheckArithmetic {
            functions: operators.map(|operator| {
                Arc::new(ScalarUDF::from(CheckedOperator {
                    operator,
                    name: operator.to_string(),
                    signature: Signature::user_defined(Volatility::Immutable),
                }))
            }),
        }
    }
}

impl FunctionRewrite for CheckArithmetic {
    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn rewrite(
        &self,
        expression: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expression else {
            return Ok(Transformed::no(expression));
        };
        let symbol = op.to_string();
        let function = self.functions.iter().find(|f| f.name() == symbol);
        let is_checked = |side: &Expr| {
            side.get_type(schema).is_ok_and(|found| match op {
                Operator::StringConcat => found.is_string(),
                _ => found.is_integer(),
            })
        };
        Ok(match function {
            Some(function) if is_checked(&left) && is_checked(&right) => {
                Transformed::yes(function.call(vec![*left, *right]))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    }
}

/// Operator of integers that fails on overflow, or `||` of texts that fails if the result would be too large.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    operator: Operator,
    name: String,
    signature: Signature,
}

impl CheckedOperator {
    /// Appends the name of a call to `name`. DataFusion requests the names of all levels of an expression in each step
    /// of its planning. If each level copied its name, planning would take cubic time.
    fn write_name(&self, name: &mut String, sides: &[Expr]) -> Result<()> {
        name.push('(');
        for (index, side) in sides.iter().enumerate() {
            if index > 0 {
                write!(name, " {} ", self.name)?;
            }
            let call = match side {
                Expr::ScalarFunction(call) => {
                    call.func.inner().downcast_ref().zip(Some(&call.args))
                }
                _ => None,
            };
            match call {
                Some((inner, sides)) => CheckedOperator::write_name(inner, name, sides)?,
                None => write!(name, "{}", side.schema_name())?,
            }
        }
        name.push(')');
        Ok(())
    }
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = given else {
            return Err(DataFusionError::Plan(
                "an operator has two sides".to_owned(),
            ));
        };
        let (left, right) =
            BinaryTypeCoercer::new(left, &self.operator, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let [left, right] = given else {
            return Err(DataFusionError::Plan(
                "an operator has two sides".to_owned(),
            ));
        };
        BinaryTypeCoercer::new(left, &self.operator, right).get_result_type()
    }

    fn schema_name(&self, sides: &[Expr]) -> Result<String> {
        let mut name = String::new();
        self.write_name(&mut name, sides)?;
        Ok(name)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = arguments.args.as_slice() else {
            return Err(DataFusionError::Plan(
                "an operator has two sides".to_owned(),
            ));
        };
        let kernel = match self.operator {
            Operator::Plus => add,
            Operator::Minus => sub,
            Operator::BitwiseShiftLeft => shift_left,
            Operator::BitwiseShiftRight => shift_right,
            Operator::StringConcat => join,
            _ => mul,
        };
        apply(left, right, kernel)
    }
}

/// Values of both sides of an operator, row by row. `values` converts a column to an iterator of values.
fn rows<A: Array + Clone, T>(
    (left, right): (&dyn Datum, &dyn Datum),
    convert: impl Fn(&dyn Array) -> Result<A, ArrowError>,
    value: impl Fn(&A, usize) -> T,
    mut each: impl FnMut(Option<(T, T)>) -> Result<(), ArrowError>,
) -> Result<(), ArrowError> {
    let ((left, left_is_one), (right, right_is_one)) = (left.get(), right.get());
    let count = if left_is_one { right.len() } else { left.len() };
    let (left, right) = (convert(left)?, convert(right)?);
    for row in 0..count {
        let at = [(left_is_one, &left), (right_is_one, &right)].map(|(is_one, side)| {
            let at = if is_one { 0 } else { row };
            side.is_valid(at).then(|| value(side, at))
        });
        let [left, right] = at;
        each(left.zip(right))?;
    }
    Ok(())
}

fn shift_left(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    shift((left, right), "<<", |value, by| value << by)
}

fn shift_right(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    shift((left, right), ">>", |value, by| value >> by)
}

/// Shifts integers of up to 64 bits in 128 bits, so that no bit is lost before the result is checked.
fn shift(
    sides: (&dyn Datum, &dyn Datum),
    symbol: &str,
    by: fn(i128, u32) -> i128,
) -> Result<ArrayRef, ArrowError> {
    let to = sides.0.get().0.data_type().clone();
    let bits = to.primitive_width().map_or(64, |bytes| bytes as i128 * 8);
    let overflow = |_| ArrowError::ArithmeticOverflow(format!("integer overflow in {symbol}"));
    let wide = |side: &dyn Array| Ok(cast(side, &WIDE)?.as_primitive::<Decimal128Type>().clone());
    let mut shifted = Decimal128Builder::new().with_data_type(WIDE);
    rows(sides, wide, Decimal128Array::value, |pair| {
        let Some((value, count)) = pair else {
            shifted.append_null();
            return Ok(());
        };
        if !(0..bits).contains(&count) {
            let message = format!("cannot shift by {count} bits: give 0 to {}", bits - 1);
            return Err(ArrowError::InvalidArgumentError(message));
        }
        shifted.append_value(by(value, count as u32));
        Ok(())
    })?;
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(&shifted.finish(), &to, &strict).map_err(overflow)
}

/// Joins texts.
fn join(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let to = left.get().0.data_type().clone();
    let texts = |side: &dyn Array| Ok(cast(side, &DataType::Utf8)?.as_string::<i32>().clone());
    let mut joined = StringBuilder::new();
    let limit = limit(left.get().1 && right.get().1);
    let mut bytes = 0;
    rows(
        (left, right),
        texts,
        |side, at| side.value(at).to_owned(),
        |pair| {
            let Some((left, right)) = pair else {
                joined.append_null();
                return Ok(());
            };
            bytes += (left.len() + right.len()) as i64;
            check_bytes("||", bytes, limit).map_err(ArrowError::ComputeError)?;
            joined.append_value(left + &right);
            Ok(())
        },
    )?;
    cast(&joined.finish(), &to)
}

/// Aggregate function `sum` that adds integers in 128 bits, and fails if the result does not fit its type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedSum {
    inner: Arc<AggregateUDF>,
}

/// Type in which integers are added.
const WIDE: DataType = DataType::Decimal128(38, 0);

impl CheckedSum {
    pub(crate) fn new(inner: Arc<AggregateUDF>) -> CheckedSum {
        CheckedSum { inner }
    }
}

/// Returns the arguments for an inner function that adds numbers of the type `WIDE`.
fn widened<'a>(arguments: &AccumulatorArgs<'a>, field: &FieldRef) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: Arc::clone(field),
        ..arguments.clone()
    }
}

fn wide_field(name: &str) -> FieldRef {
    Arc::new(Field::new(name, WIDE, true))
}

fn widen(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let wide = values.iter();
    let wide = wide.map(|array| cast_with_options(array, &WIDE, &strict));
    Ok(wide.collect::<Result<_, _>>()?)
}

fn narrow(sum: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(sum, to, &strict).map_err(|_| {
        DataFusionError::Execution("integer overflow in sum; use sum(CAST(… AS DOUBLE))".to_owned())
    })
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.return_type(given)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let to = arguments.return_field.data_type().clone();
        if !to.is_integer() {
            return self.inner.accumulator(arguments);
        }
        let field = wide_field(arguments.return_field.name());
        let inner = self.inner.accumulator(widened(&arguments, &field))?;
        Ok(Box::new(Narrowing { inner, to }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !arguments.return_field.data_type().is_integer() {
            return self.inner.state_fields(arguments);
        }
        let return_field = wide_field(arguments.return_field.name());
        self.inner.state_fields(StateFieldsArgs {
            return_field,
            ..arguments
        })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let to = arguments.return_field.data_type().clone();
        if !to.is_integer() {
            return self.inner.create_groups_accumulator(arguments);
        }
        let field = wide_field(arguments.return_field.name());
        let inner = self
            .inner
            .create_groups_accumulator(widened(&arguments, &field))?;
        Ok(Box::new(Narrowing { inner, to }))
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let to = arguments.return_field.data_type().clone();
        // DataFusion's sliding sum of distinct values does not support the wide type.
        if !to.is_integer() || arguments.is_distinct {
            return self.inner.create_sliding_accumulator(arguments);
        }
        let field = wide_field(arguments.return_field.name());
        let inner = self
            .inner
            .create_sliding_accumulator(widened(&arguments, &field))?;
        Ok(Box::new(Narrowing { inner, to }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Accumulator that converts its input to the type `WIDE` for an inner accumulator, and the result back to
/// `to`.
#[derive(Debug)]
struct Narrowing<A: ?Sized> {
    to: DataType,
    inner: Box<A>,
}

impl Accumulator for Narrowing<dyn Accumulator> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrow(&sum, &self.to)?, 0)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Narrowing<dyn GroupsAccumulator> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let values = widen(values)?;
        self.inner.update_batch(&values, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        narrow(&self.inner.evaluate(emit)?, &self.to)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&widen(values)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
