//! Which expressions need no planner's form: simple conditions, and arithmetic on decimals.
//!
//! Law: what is found here means what the planner's form means (for conditions: where they are
//! true), on every row. Anything else is left to the planner's form. Cost: once a query, a walk
//! over the expression.

use std::sync::Arc;

use anabranch_operators::expression::arithmetic::{Arithmetic, Term};
use anabranch_operators::expression::condition::{Condition, Like, Question, Test};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, LikeExpr, Literal, NotExpr,
};

type Physical = Arc<dyn PhysicalExpr>;

/// The tests that a condition consists of; `None` if there is more to it.
pub(super) fn tests(expr: &Physical, input: &Schema) -> Option<Vec<Test>> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>()
        && *binary.op() == Operator::And
    {
        let mut all = tests(binary.left(), input)?;
        all.extend(tests(binary.right(), input)?);
        return Some(all);
    }
    test(expr, input).map(|test| vec![test])
}

fn test(expr: &Physical, input: &Schema) -> Option<Test> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::Or => either(test(binary.left(), input)?, test(binary.right(), input)?),
            op => comparison(binary.left(), *op, binary.right(), input),
        };
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        // (Where there is no value a test fails, and so does its opposite; but not the opposite of
        // this one.)
        if not.arg().downcast_ref::<IsNotNullExpr>().is_some() {
            return None;
        }
        let inner = test(not.arg(), input)?;
        return Some(Test { negated: !inner.negated, ..inner });
    }
    if let Some(is_there) = expr.downcast_ref::<IsNotNullExpr>() {
        let column = ordered_column(is_there.arg(), input)?;
        return Some(Test {
            column,
            question: Question::Range { least: i128::MIN, greatest: i128::MAX },
            negated: false,
        });
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let texts = list.list().iter().map(text).collect::<Option<Vec<_>>>()?;
        let column = text_column(list.expr(), input)?;
        return Some(Test { column, question: Question::OneOf(texts), negated: list.negated() });
    }
    let like = expr.downcast_ref::<LikeExpr>().filter(|like| !like.case_insensitive())?;
    let question = Question::Like(Like::new(&text(like.pattern())?)?);
    Some(Test { column: text_column(like.expr(), input)?, question, negated: like.negated() })
}

/// One of two sets of texts.
fn either(left: Test, right: Test) -> Option<Test> {
    match (left.question, right.question) {
        (Question::OneOf(mut texts), Question::OneOf(more))
            if left.column == right.column && !left.negated && !right.negated =>
        {
            texts.extend(more);
            Some(Test { column: left.column, question: Question::OneOf(texts), negated: false })
        }
        _ => None,
    }
}

fn comparison(left: &Physical, op: Operator, right: &Physical, input: &Schema) -> Option<Test> {
    if left.downcast_ref::<Literal>().is_some() {
        return literal_comparison(right, op.swap()?, left, input);
    }
    if right.downcast_ref::<Literal>().is_some() {
        return literal_comparison(left, op, right, input);
    }
    let (left, right) = (ordered_column(left, input)?, ordered_column(right, input)?);
    if input.field(left).data_type() != input.field(right).data_type() {
        return None;
    }
    let (column, other, or_equal) = match op {
        Operator::Lt => (left, right, false),
        Operator::LtEq => (left, right, true),
        Operator::Gt => (right, left, false),
        Operator::GtEq => (right, left, true),
        _ => return None,
    };
    Some(Test { column, question: Question::Below { other, or_equal }, negated: false })
}

fn literal_comparison(column: &Physical, op: Operator, literal: &Physical, input: &Schema) -> Option<Test> {
    let negated = op == Operator::NotEq;
    if let Some(column) = text_column(column, input) {
        let is_equality = matches!(op, Operator::Eq | Operator::NotEq);
        return is_equality.then_some(Test { column, question: Question::OneOf(vec![text(literal)?]), negated });
    }
    let column = ordered_column(column, input)?;
    let value = ordered_value(literal, input.field(column).data_type())?;
    let (least, greatest) = match op {
        Operator::Eq | Operator::NotEq => (value, value),
        Operator::Lt => (i128::MIN, value.checked_sub(1)?),
        Operator::LtEq => (i128::MIN, value),
        Operator::Gt => (value.checked_add(1)?, i128::MAX),
        Operator::GtEq => (value, i128::MAX),
        _ => return None,
    };
    Some(Test { column, question: Question::Range { least, greatest }, negated })
}

fn ordered_column(expr: &Physical, input: &Schema) -> Option<usize> {
    let column = expr.downcast_ref::<Column>()?.index();
    Condition::is_ordered(input.field(column).data_type()).then_some(column)
}

fn text_column(expr: &Physical, input: &Schema) -> Option<usize> {
    let column = expr.downcast_ref::<Column>()?.index();
    (*input.field(column).data_type() == DataType::Utf8View).then_some(column)
}

fn text(expr: &Physical) -> Option<String> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => text.clone(),
        _ => None,
    }
}

/// A literal as the integer that a column of this type holds.
fn ordered_value(expr: &Physical, data_type: &DataType) -> Option<i128> {
    let value = expr.downcast_ref::<Literal>()?.value();
    if let (ScalarValue::Decimal128(value, _, scale), DataType::Decimal128(_, column_scale)) = (value, data_type) {
        return value.filter(|_| scale == column_scale);
    }
    if value.data_type() != *data_type {
        return None;
    }
    Some(match value {
        ScalarValue::Int16(Some(value)) => i128::from(*value),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => i128::from(*value),
        ScalarValue::Int64(Some(value))
        | ScalarValue::Date64(Some(value))
        | ScalarValue::TimestampSecond(Some(value), _)
        | ScalarValue::TimestampMillisecond(Some(value), _)
        | ScalarValue::TimestampMicrosecond(Some(value), _)
        | ScalarValue::TimestampNanosecond(Some(value), _) => i128::from(*value),
        ScalarValue::UInt64(Some(value)) => i128::from(*value),
        _ => return None,
    })
}

/// The term that an expression is, whose value has this type.
pub(super) fn term(expr: &Physical, input: &Schema, data_type: &DataType) -> Option<Term> {
    let DataType::Decimal128(_, scale) = data_type else { return None };
    let scaled = scaled(expr, input)?;
    (expr.data_type(input).ok()? == *data_type && scaled.scale == *scale).then_some(scaled.term)
}

/// A term of unscaled values.
struct Scaled {
    term: Term,
    scale: i8,
}

impl Scaled {
    /// With more digits after the point.
    fn at(self, scale: i8) -> Option<Scaled> {
        let digits = u32::try_from(scale.checked_sub(self.scale)?).ok()?;
        if digits == 0 {
            return Some(self);
        }
        let factor = 10_i64.checked_pow(digits)?;
        let term = match self.term {
            Term::Constant(value) => Term::Constant(value.checked_mul(factor)?),
            term => Term::Product(Box::new(term), Box::new(Term::Constant(factor))),
        };
        Some(Scaled { term, scale })
    }
}

fn scaled(expr: &Physical, input: &Schema) -> Option<Scaled> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        let data_type = input.field(column.index()).data_type();
        let term = Term::Column(column.index());
        return Arithmetic::reads(data_type).then_some(Scaled { term, scale: scale_of(data_type) });
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let (value, scale) = match literal.value() {
            ScalarValue::Decimal128(Some(value), _, scale) => (i64::try_from(*value).ok()?, *scale),
            ScalarValue::Int64(Some(value)) => (*value, 0),
            ScalarValue::Int32(Some(value)) => (i64::from(*value), 0),
            _ => return None,
        };
        return (scale >= 0).then_some(Scaled { term: Term::Constant(value), scale });
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let DataType::Decimal128(precision, scale) = *cast.cast_type() else { return None };
        let from = cast.expr().data_type(input).ok()?;
        let has_room = i16::from(precision) - i16::from(scale) >= i16::from(whole_digits(&from)?);
        return scaled(cast.expr(), input)?.at(scale).filter(|_| has_room);
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let DataType::Decimal128(..) = expr.data_type(input).ok()? else { return None };
    let (left, right) = (scaled(binary.left(), input)?, scaled(binary.right(), input)?);
    let scale = left.scale.max(right.scale);
    Some(match binary.op() {
        Operator::Multiply => {
            let scale = left.scale.checked_add(right.scale)?;
            Scaled { term: Term::Product(Box::new(left.term), Box::new(right.term)), scale }
        }
        Operator::Plus => {
            let (left, right) = (left.at(scale)?, right.at(scale)?);
            Scaled { term: Term::Sum(Box::new(left.term), Box::new(right.term)), scale }
        }
        Operator::Minus => {
            let (left, right) = (left.at(scale)?, right.at(scale)?);
            Scaled { term: Term::Difference(Box::new(left.term), Box::new(right.term)), scale }
        }
        _ => return None,
    })
}

fn scale_of(data_type: &DataType) -> i8 {
    if let DataType::Decimal128(_, scale) = data_type { *scale } else { 0 }
}

/// Digits before the point of the values of a type; `None` if it is no number that is computed with
/// here.
fn whole_digits(data_type: &DataType) -> Option<i8> {
    Some(match data_type {
        DataType::Decimal128(precision, scale) => i8::try_from(*precision).ok()?.checked_sub(*scale)?,
        DataType::Int64 => 19,
        DataType::Int32 => 10,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use datafusion_physical_expr::expressions::{col, is_not_null, not};

    #[test]
    fn a_test_is_negated_only_where_both_fail_on_null() {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let x = || col("x", &schema).unwrap();
        let below =
            || -> Physical { Arc::new(BinaryExpr::new(x(), Operator::Lt, Arc::new(Literal::new(5i64.into())))) };
        assert!(tests(&not(below()).unwrap(), &schema).is_some_and(|tests| tests[0].negated));
        assert!(tests(&is_not_null(x()).unwrap(), &schema).is_some());
        let missing = not(is_not_null(x()).unwrap()).unwrap();
        assert!(tests(&missing, &schema).is_none());
        assert!(tests(&not(not(is_not_null(x()).unwrap()).unwrap()).unwrap(), &schema).is_none());
        let both = BinaryExpr::new(below(), Operator::And, missing);
        assert!(tests(&(Arc::new(both) as Physical), &schema).is_none());
    }
}
