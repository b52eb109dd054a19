//! Expressions, literals and types as SQL, with only the parentheses they need.
//!
//! For people ([`expression`]) types of literals are left out. For the planner ([`ExpressionText`])
//! they are said, so that it reads the same expression again.

use std::fmt::Write as _;

use anabranch_batch::numeric;
use arrow::array::types::IntervalMonthDayNano;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::{Column, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{BinaryExpr, Expr, Operator};

/// A text, and how tightly its outermost operator binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundText {
    /// SQL.
    pub text: String,
    /// [`TIGHT`] for what needs no parentheses.
    pub level: u8,
}

/// How an expression becomes text.
pub struct ExpressionText<'a> {
    /// What stands for a column.
    pub column: &'a dyn Fn(&Column) -> BoundText,
    /// Whether types of literals are said.
    pub is_exact: bool,
}

/// An expression as SQL for people.
pub fn expression(expr: &Expr) -> String {
    let column = |column: &Column| {
        BoundText::tight(match &column.relation {
            Some(side) => format!("{side}.{}", column.name),
            None => column.name.clone(),
        })
    };
    ExpressionText { column: &column, is_exact: false }.write(expr)
}

impl BoundText {
    /// A text that needs no parentheses.
    pub fn tight(text: impl Into<String>) -> BoundText {
        BoundText { text: text.into(), level: TIGHT }
    }

    /// The text, in parentheses if it binds less tightly than `level`.
    pub fn within(&self, level: u8) -> String {
        match self.level < level {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }
}

impl ExpressionText<'_> {
    /// The expression, and how tightly it binds.
    pub fn bound(&self, expr: &Expr) -> BoundText {
        match expr {
            Expr::Column(column) => (self.column)(column),
            Expr::Alias(alias) => self.bound(&alias.expr),
            Expr::ScalarFunction(call)
                if self.is_exact
                    && let Some(text) = self.stood_for(call) =>
            {
                text
            }
            other => BoundText { text: self.write(other), level: level_of(other) },
        }
    }

    /// The expression.
    pub fn write(&self, expr: &Expr) -> String {
        match expr {
            Expr::Column(column) => (self.column)(column).text,
            Expr::Literal(value, _) if self.is_exact => exact_literal(value),
            Expr::Literal(value, _) => literal(value),
            Expr::Alias(alias) => self.write(&alias.expr),
            Expr::BinaryExpr(binary) => self.binary_expr(binary),
            Expr::Not(inner) => format!("not {}", self.operand(inner, NOT)),
            Expr::Negative(inner) => format!("-{}", self.operand(inner, TIGHT)),
            Expr::IsNull(inner) => format!("{} is null", self.operand(inner, IS)),
            Expr::IsNotNull(inner) => format!("{} is not null", self.operand(inner, IS)),
            Expr::IsTrue(inner) => format!("{} is true", self.operand(inner, IS)),
            Expr::IsFalse(inner) => format!("{} is false", self.operand(inner, IS)),
            Expr::IsUnknown(inner) => format!("{} is unknown", self.operand(inner, IS)),
            Expr::IsNotTrue(inner) => format!("{} is not true", self.operand(inner, IS)),
            Expr::IsNotFalse(inner) => format!("{} is not false", self.operand(inner, IS)),
            Expr::IsNotUnknown(inner) => format!("{} is not unknown", self.operand(inner, IS)),
            Expr::Like(like) | Expr::SimilarTo(like) => {
                let not = if like.negated { "not " } else { "" };
                let word = match (expr, like.case_insensitive) {
                    (Expr::SimilarTo(_), _) => "similar to",
                    (_, true) => "ilike",
                    _ => "like",
                };
                format!("{} {not}{word} {}", self.operand(&like.expr, IS), self.operand(&like.pattern, IS))
            }
            Expr::Between(between) => {
                let not = if between.negated { "not " } else { "" };
                format!(
                    "{} {not}between {} and {}",
                    self.operand(&between.expr, IS),
                    self.operand(&between.low, IS),
                    self.operand(&between.high, IS)
                )
            }
            Expr::InList(in_list) => {
                let not = if in_list.negated { "not " } else { "" };
                format!(
                    "{} {not}in ({})",
                    self.operand(&in_list.expr, IS),
                    list(in_list.list.iter().map(|part| self.write(part)))
                )
            }
            Expr::Case(case) => {
                let mut out = String::from("case");
                if let Some(base) = &case.expr {
                    let _ = write!(out, " {}", self.write(base));
                }
                for (when, then) in &case.when_then_expr {
                    let _ = write!(out, " when {} then {}", self.write(when), self.write(then));
                }
                if let Some(other) = &case.else_expr {
                    let _ = write!(out, " else {}", self.write(other));
                }
                out + " end"
            }
            Expr::Cast(cast) => {
                format!("{}::{}", self.operand(&cast.expr, TIGHT), self.type_name(cast.field.data_type()))
            }
            Expr::TryCast(cast) => {
                format!("try_cast({} as {})", self.write(&cast.expr), self.type_name(cast.field.data_type()))
            }
            Expr::ScalarFunction(call)
                if self.is_exact
                    && let Some(text) = self.stood_for(call) =>
            {
                text.text
            }
            Expr::ScalarFunction(call)
                if let Some(op) = float_operator(call.name()).filter(|_| call.args.len() == 2) =>
            {
                let level = precedence(op);
                format!("{} {op} {}", self.operand(&call.args[0], level), self.operand(&call.args[1], level + 1))
            }
            Expr::ScalarFunction(call) => {
                format!("{}({})", call.name(), list(call.args.iter().map(|part| self.write(part))))
            }
            other => other.to_string(),
        }
    }

    fn binary_expr(&self, binary: &BinaryExpr) -> String {
        let level = precedence(binary.op);
        let word = match binary.op {
            Operator::And => "and".to_string(),
            Operator::Or => "or".to_string(),
            Operator::NotEq => "<>".to_string(),
            Operator::IsDistinctFrom => "is distinct from".to_string(),
            Operator::IsNotDistinctFrom => "is not distinct from".to_string(),
            Operator::BitwiseXor => "#".to_string(),
            other => other.to_string().to_lowercase(),
        };
        // (Operators of one level associate to the left; comparisons do not.)
        let is_comparison = level == precedence(Operator::Eq);
        let left = level + u8::from(self.is_exact && is_comparison);
        format!("{} {word} {}", self.operand(&binary.left, left), self.operand(&binary.right, level + 1))
    }

    /// An operand, in parentheses if it binds less tightly than `level`.
    fn operand(&self, expr: &Expr, level: u8) -> String {
        self.bound(expr).within(level)
    }

    /// The operator, cast or EXTRACT that a function of the planner's stands for.
    fn stood_for(&self, call: &ScalarFunction) -> Option<BoundText> {
        let (name, level) = (call.name(), TIGHT);
        match call.args.as_slice() {
            values if let "interval_greatest" | "interval_least" = name => {
                let word = name.trim_start_matches("interval_");
                Some(BoundText { text: format!("{word}({})", list(values.iter().map(|part| self.write(part)))), level })
            }
            [left, right] => {
                let (word, level) = operator(name)?;
                let text = format!("{} {word} {}", self.operand(left, level), self.operand(right, level + 1));
                Some(BoundText { text, level })
            }
            [value] if matches!(name, "numeric_negate" | "interval_negate" | "__negative") => {
                Some(BoundText { text: format!("-{}", self.operand(value, TIGHT)), level: NEGATIVE })
            }
            [value] if let Some(part) = name.strip_prefix("extract_") => {
                Some(BoundText { text: format!("extract({part} FROM {})", self.write(value)), level })
            }
            [value] if let Some(part) = name.strip_prefix("date_part_") => {
                Some(BoundText { text: format!("date_part('{part}', {})", self.write(value)), level })
            }
            [value] if name == "rint" => Some(BoundText { text: format!("round({})", self.write(value)), level }),
            [value] if is_cast(name) => {
                let to = call.func.return_type(&[DataType::Null]).ok()?;
                Some(BoundText { text: format!("{}::{}", self.operand(value, TIGHT), exact_type(&to)), level })
            }
            _ => None,
        }
    }

    fn type_name(&self, data_type: &DataType) -> String {
        match self.is_exact {
            true => exact_type(data_type),
            false => type_name(data_type),
        }
    }
}

/// The operator that a function of two arguments is, and how tightly it binds.
fn operator(name: &str) -> Option<(&'static str, u8)> {
    const OTHER: u8 = 30;
    let kinds = ["float_", "checked_", "numeric_", "interval_"];
    let verb = kinds.iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name);
    let (sum, product) = (precedence(Operator::Plus), precedence(Operator::Multiply));
    Some(match verb {
        "add" | "date_add_days" => ("+", sum),
        "subtract" | "date_subtract_days" | "date_subtract" | "timestamp_difference" => ("-", sum),
        "multiply" | "times" => ("*", product),
        "divide" => ("/", product),
        "remainder" => ("%", product),
        "shift_left" => ("<<", OTHER),
        "shift_right" => (">>", OTHER),
        _ => return None,
    })
}

/// Whether a function of one argument is a cast, to the type that it yields.
fn is_cast(name: &str) -> bool {
    const NUMBERS: [&str; 7] =
        ["to_numeric", "to_smallint", "to_integer", "to_bigint", "to_real", "to_double_precision", "float_to_numeric"];
    let is_named = ["numeric_to_", "text_to_", "moment_to_"].iter().any(|kind| name.starts_with(kind));
    let is_of_lists = name.starts_with("to_") && name.ends_with("[]");
    is_named
        || is_of_lists
        || NUMBERS.contains(&name)
        || matches!(name, "value_to_text" | "value_out" | "bytea_in" | "time_to_interval" | "interval_to_time")
}

/// How tightly an expression's outermost operator binds.
pub(crate) fn level_of(expr: &Expr) -> u8 {
    match expr {
        Expr::BinaryExpr(binary) => precedence(binary.op),
        Expr::ScalarFunction(call) if let Some(op) = float_operator(call.name()) => precedence(op),
        Expr::Not(_) => NOT,
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Between(_)
        | Expr::InList(_) => IS,
        Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => IS,
        _ => TIGHT,
    }
}

/// The operator that a function of floats is, which minds zero and the end of the type.
fn float_operator(name: &str) -> Option<Operator> {
    Some(match name {
        "float_add" => Operator::Plus,
        "float_subtract" => Operator::Minus,
        "float_multiply" => Operator::Multiply,
        "float_divide" => Operator::Divide,
        _ => return None,
    })
}

/// How tightly NOT binds.
pub const NOT: u8 = 15;
/// How tightly IS, IN, LIKE and BETWEEN bind.
pub const IS: u8 = 25;
/// How tightly a sign binds.
const NEGATIVE: u8 = 50;

/// What needs no parentheses.
pub(crate) const TIGHT: u8 = 100;

/// How tightly an operator binds, as in PostgreSQL.
pub(crate) fn precedence(operator: Operator) -> u8 {
    match operator {
        Operator::Or => 5,
        Operator::And => 10,
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => 20,
        Operator::Plus | Operator::Minus => 40,
        Operator::Multiply | Operator::Divide | Operator::Modulo => 45,
        _ => 30,
    }
}

pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A literal as SQL writes it.
pub fn literal(value: &ScalarValue) -> String {
    if value.is_null() {
        return "null".into();
    }
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            quoted(text)
        }
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Decimal128(Some(value), _, scale) => decimal(*value, *scale),
        ScalarValue::LargeBinary(Some(bytes)) => {
            numeric::decode(bytes).map_or_else(|| shown(value), |number| number.to_string())
        }
        ScalarValue::Date32(Some(days))
            if let Some(end) = end_of(i64::from(*days), i32::MIN.into(), i32::MAX.into()) =>
        {
            format!("date '{end}'")
        }
        ScalarValue::TimestampMicrosecond(Some(micros), zone)
            if let Some(end) = end_of(*micros, i64::MIN, i64::MAX) =>
        {
            format!("{} '{end}'", if zone.is_some() { "timestamptz" } else { "timestamp" })
        }
        ScalarValue::Date32(_) => format!("date '{value}'"),
        ScalarValue::TimestampMicrosecond(_, None) => format!("timestamp '{}'", shown(value)),
        ScalarValue::TimestampMicrosecond(_, Some(_)) => format!("timestamptz '{}'", shown(value)),
        ScalarValue::IntervalMonthDayNano(_) | ScalarValue::IntervalDayTime(_) | ScalarValue::IntervalYearMonth(_) => {
            format!("interval '{}'", shown(value))
        }
        other => shown(other),
    }
}

/// The end of time that a value is, which is the least or the greatest of its type.
fn end_of(value: i64, least: i64, greatest: i64) -> Option<&'static str> {
    match value {
        value if value == greatest => Some("infinity"),
        value if value == least => Some("-infinity"),
        _ => None,
    }
}

fn shown(value: &ScalarValue) -> String {
    let printed = value.to_array().ok().and_then(|array| arrow::util::display::array_value_to_string(&array, 0).ok());
    printed.unwrap_or_else(|| value.to_string())
}

fn decimal(value: i128, scale: i8) -> String {
    let Ok(places) = usize::try_from(scale) else {
        return value.to_string();
    };
    if places == 0 {
        return value.to_string();
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

/// A literal that is read as a value of its type again.
pub(crate) fn exact_literal(value: &ScalarValue) -> String {
    let data_type = exact_type(&value.data_type());
    match value {
        _ if value.is_null() => format!("null::{data_type}"),
        ScalarValue::Int64(Some(number)) if *number >= 0 => number.to_string(),
        ScalarValue::Int64(Some(number)) => format!("({number})"),
        ScalarValue::UInt64(Some(number)) => number.to_string(),
        ScalarValue::Boolean(_) | ScalarValue::Date32(_) => literal(value),
        ScalarValue::Utf8(_) | ScalarValue::Utf8View(_) | ScalarValue::LargeUtf8(_) => literal(value),
        ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })) => {
            format!("interval '{months} months {days} days {} microseconds'", nanoseconds / 1000)
        }
        ScalarValue::List(list) => {
            let values = list.value(0);
            let element = |at| {
                ScalarValue::try_from_array(&values, at)
                    .map_or_else(|_| "null".to_owned(), |value| exact_literal(&value))
            };
            let elements: Vec<String> = (0..values.len()).map(element).collect();
            format!("array[{}]::{data_type}", elements.join(", "))
        }
        ScalarValue::TimestampMicrosecond(..) => literal(value),
        ScalarValue::BinaryView(Some(bytes)) | ScalarValue::Binary(Some(bytes)) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("'\\x{digits}'::{data_type}")
        }
        _ => format!("{}::{data_type}", quoted(literal(value).trim_matches('\''))),
    }
}

/// The SQL name of a type, which is read as that type again.
pub(crate) fn exact_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Float64 => "double precision".into(),
        DataType::List(element) => format!("{}[]", exact_type(element.data_type())),
        other => type_name(other),
    }
}

/// The SQL name of a type for people.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => "text".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Date32 => "date".into(),
        DataType::BinaryView | DataType::Binary => "bytea".into(),
        DataType::LargeBinary => "numeric".into(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::Time64(TimeUnit::Microsecond) => "time".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz".into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval".into(),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{col, lit};

    use super::*;

    #[test]
    fn parentheses_stand_where_precedence_asks_for_them() {
        let sum = (col("a") + col("b")) * col("c");
        assert_eq!(expression(&sum), "(a + b) * c");
        let difference = col("a") - (col("b") - col("c"));
        assert_eq!(expression(&difference), "a - (b - c)");
        let logic = col("a").or(col("b")).and(col("c").eq(lit(1i64)));
        assert_eq!(expression(&logic), "(a or b) and c = 1");
    }

    #[test]
    fn literals_are_sql() {
        assert_eq!(literal(&ScalarValue::Decimal128(Some(-5), 3, 2)), "-0.05");
        assert_eq!(literal(&ScalarValue::Utf8View(Some("it's".into()))), "'it''s'");
        assert_eq!(literal(&ScalarValue::Int64(None)), "null");
        assert_eq!(literal(&ScalarValue::Date32(Some(0))), "date '1970-01-01'");
        assert_eq!(literal(&ScalarValue::Date32(Some(i32::MAX))), "date 'infinity'");
        assert_eq!(literal(&ScalarValue::TimestampMicrosecond(Some(i64::MIN), None)), "timestamp '-infinity'");
    }
}
