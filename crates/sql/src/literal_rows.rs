//! `VALUES` of plain literals as columns, without an expression a value.
//!
//! Law: the columns are what the expressions of the values yield, converted to the types of their
//! columns. Where that is not certain (expressions, literals of two kinds in one column, fractions
//! for whole numbers, a value that does not fit) there are no columns, and the values are planned
//! one by one, errors included.
//!
//! Cost: some 50 ns a value. An expression a value costs a hundred times as much to plan.

use std::sync::Arc;

use anabranch_batch::numeric;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringViewArray, new_null_array};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_expr::sqlparser::ast::{Expr, UnaryOperator, Value, Values};

use crate::functions::input::convert;

/// Digits of numbers that a double holds exactly, with or without a point;
const DOUBLE_DIGITS: usize = 15;
/// that a single one holds;
const SINGLE_DIGITS: usize = 6;
/// and that a plain numeric has, at most, if it is read here.
const NUMERIC_DIGITS: usize = 1000;

/// A literal.
#[derive(Clone, Copy, PartialEq)]
enum Literal<'a> {
    Null,
    Boolean(bool),
    Text(&'a str),
    Number { is_negative: bool, digits: &'a str },
}

/// One column for each of `types`, if every row has as many plain literals that surely fit.
pub(crate) fn literal_columns(values: &Values, types: &[DataType]) -> Option<Vec<ArrayRef>> {
    if values.rows.iter().any(|row| row.content.len() != types.len()) {
        return None;
    }
    let column = |(at, data_type): (usize, &DataType)| {
        let cells = values.rows.iter().map(|row| literal(&row.content[at]));
        literal_column(&cells.collect::<Option<Vec<_>>>()?, data_type)
    };
    types.iter().enumerate().map(column).collect()
}

fn literal(expr: &Expr) -> Option<Literal<'_>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Literal::Null),
            Value::Boolean(is) => Some(Literal::Boolean(*is)),
            Value::SingleQuotedString(text) => Some(Literal::Text(text)),
            Value::Number(digits, false) => Some(Literal::Number { is_negative: false, digits }),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            Literal::Number { is_negative: false, digits } => Some(Literal::Number { is_negative: true, digits }),
            _ => None,
        },
        _ => None,
    }
}

fn literal_column(cells: &[Literal<'_>], data_type: &DataType) -> Option<ArrayRef> {
    let first = cells.iter().find(|cell| **cell != Literal::Null);
    match first {
        None => Some(new_null_array(data_type, cells.len())),
        Some(Literal::Boolean(_)) => booleans(cells).filter(|_| *data_type == DataType::Boolean),
        Some(Literal::Text(_)) => texts(cells, data_type),
        Some(_) if data_type.is_integer() => whole_numbers(cells, data_type),
        Some(_) => numbers(cells, data_type),
    }
}

fn booleans(cells: &[Literal<'_>]) -> Option<ArrayRef> {
    let cell = |cell: &Literal<'_>| match cell {
        Literal::Null => Some(None),
        Literal::Boolean(is) => Some(Some(*is)),
        _ => None,
    };
    let column: BooleanArray = cells.iter().map(cell).collect::<Option<Vec<_>>>()?.into();
    Some(Arc::new(column))
}

fn texts<'a>(cells: &[Literal<'a>], data_type: &DataType) -> Option<ArrayRef> {
    let is_known = match data_type {
        DataType::Utf8View | DataType::Date32 | DataType::Boolean | DataType::Float64 => true,
        DataType::Timestamp(TimeUnit::Microsecond, None) | DataType::Time64(TimeUnit::Microsecond) => true,
        of => of.is_integer() || *of == numeric::TYPE,
    };
    let cell = |cell: &Literal<'a>| match *cell {
        Literal::Null => Some(None),
        Literal::Text(text) => Some(Some(text)),
        _ => None,
    };
    let column: StringViewArray = cells.iter().map(cell).collect::<Option<Vec<_>>>().filter(|_| is_known)?.into();
    converted(column, data_type)
}

fn whole_numbers(cells: &[Literal<'_>], data_type: &DataType) -> Option<ArrayRef> {
    let cell = |cell: &Literal<'_>| match cell {
        Literal::Null => Some(None),
        Literal::Number { is_negative, digits } => {
            // (The least number has one more value than the greatest: its digits alone do not fit.)
            let value: i64 = digits.parse().ok()?;
            Some(Some(if *is_negative { -value } else { value }))
        }
        _ => None,
    };
    let column: Int64Array = cells.iter().map(cell).collect::<Option<Vec<_>>>()?.into();
    let column: ArrayRef = Arc::new(column);
    if *data_type == DataType::Int64 { Some(column) } else { convert(&column, data_type).ok() }
}

/// Numbers with a point, of no more digits than the type holds.
fn numbers(cells: &[Literal<'_>], data_type: &DataType) -> Option<ArrayRef> {
    let fits = |digits: &str| {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_plain = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        let n_digits = whole.len() + fraction.len();
        let n = match data_type {
            DataType::Float64 => n_digits <= DOUBLE_DIGITS,
            DataType::Float32 => n_digits <= SINGLE_DIGITS,
            of if *of == numeric::TYPE => n_digits <= NUMERIC_DIGITS,
            DataType::Decimal128(_, scale) => usize::try_from(*scale).is_ok_and(|scale| fraction.len() <= scale),
            _ => false,
        };
        is_plain && !whole.is_empty() && n
    };
    let cell = |cell: &Literal<'_>| match *cell {
        Literal::Null => Some(None),
        Literal::Number { is_negative, digits } if fits(digits) => {
            Some(Some(if is_negative { format!("-{digits}") } else { digits.to_owned() }))
        }
        _ => None,
    };
    let column: StringViewArray =
        cells.iter().map(cell).collect::<Option<Vec<Option<String>>>>()?.into_iter().collect();
    converted(column, data_type)
}

fn converted(column: StringViewArray, data_type: &DataType) -> Option<ArrayRef> {
    let column: ArrayRef = Arc::new(column);
    if *data_type == DataType::Utf8View { Some(column) } else { convert(&column, data_type).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse::parse_query;
    use arrow::array::{Array, AsArray};
    use arrow::util::display::array_value_to_string;
    use datafusion_expr::sqlparser::ast::SetExpr;

    fn columns(text: &str, types: &[DataType]) -> Option<Vec<Vec<String>>> {
        let query = parse_query(text).unwrap();
        let SetExpr::Values(values) = query.body.as_ref() else { panic!("{text} is no VALUES") };
        let columns = literal_columns(values, types)?;
        let cells = |column: &ArrayRef| {
            (0..column.len()).map(|row| array_value_to_string(column, row).unwrap()).collect::<Vec<_>>()
        };
        Some(columns.iter().map(cells).collect())
    }

    #[test]
    fn literals_are_read_as_columns() {
        use DataType::{Boolean, Date32, Decimal128, Float64, Int32, Int64, Utf8View};
        let types = [Int64, Int32, Utf8View, Date32, Boolean, Decimal128(9, 2), Float64];
        let read =
            columns("VALUES (1, -2, 'a', '2024-01-31', true, 1.5, 0.25), (NULL, 3, '', NULL, false, -7, NULL)", &types);
        let expected =
            [["1", ""], ["-2", "3"], ["a", ""], ["2024-01-31", ""], ["true", "false"], ["1.50", "-7.00"], ["0.25", ""]];
        assert_eq!(read.unwrap(), expected);
    }

    #[test]
    fn plain_numerics_and_single_floats_are_read() {
        let types = [numeric::TYPE, DataType::Float32, numeric::TYPE];
        let query = parse_query("VALUES (1.50, -0.25, '12345678901234567890123456789012345678901.5'), (-7, 3, NULL)");
        let SetExpr::Values(values) = query.unwrap().body.as_ref().clone() else { panic!("it is VALUES") };
        let columns = literal_columns(&values, &types).unwrap();
        let text =
            |column: usize, row: usize| numeric::number_of(columns[column].as_binary::<i64>().value(row)).to_string();
        assert_eq!((text(0, 0).as_str(), text(0, 1).as_str()), ("1.5", "-7"));
        assert_eq!(text(2, 0), "12345678901234567890123456789012345678901.5");
        assert!(columns[2].is_null(1));
        assert_eq!(array_value_to_string(&columns[1], 0).unwrap(), "-0.25");
    }

    #[test]
    fn what_is_not_certain_is_left_to_expressions() {
        use DataType::{Decimal128, Float64, Int32, Int64, Utf8View};
        for (text, of) in [
            ("VALUES (1.5)", Int64),
            ("VALUES (3000000000)", Int32),
            ("VALUES (-9223372036854775808)", Int64),
            ("VALUES (1 + 1)", Int64),
            ("VALUES (1), ('2')", Int64),
            ("VALUES (5)", Utf8View),
            ("VALUES (1.005)", Decimal128(9, 2)),
            ("VALUES (12345678901.25)", Decimal128(9, 2)),
            ("VALUES (1e5)", Float64),
            ("VALUES (DEFAULT)", Int64),
            ("VALUES ('x')", Int64),
            ("VALUES ('x')", numeric::TYPE),
            ("VALUES (1e5)", numeric::TYPE),
            ("VALUES (1.2345678)", DataType::Float32),
        ] {
            assert_eq!(columns(text, &[of]), None, "{text}");
        }
    }
}
