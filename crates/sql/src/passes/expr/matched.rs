//! Types that have none in common, where one value of several is chosen.
//!
//! ```text
//! CASE WHEN c THEN date '2024-01-01' ELSE 1 END    CASE types integer and date cannot be matched
//! greatest(now(), 'x'::text)                       GREATEST types timestamp with time zone and text cannot be matched
//! ```
//!
//! Law: as in PostgreSQL, the first value that is no literal in quotes says the kind of all; the
//! ELSE of a CASE comes first. Documents and uuids may have lost their marks: beside texts they are
//! texts here.

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::choosing::MAKE_ARRAY;
use crate::passes::expr::kinds::Kind;
use crate::resolve::operands::marked_name;
use crate::resolve::type_names::{is_text, sql_name};

/// A value among those of which one is chosen.
pub(crate) struct Choice {
    is: DataType,
    /// The name of a type beside those of Arrow.
    marked: Option<String>,
    /// A whole number that is written out.
    is_short: bool,
}

impl Choice {
    /// `None` for NULL and a literal in quotes, which have any type.
    pub(crate) fn of(value: &Expr, field: &Field) -> Option<Choice> {
        let is = field.data_type().clone();
        let bare = value.clone().unalias();
        let is_open = matches!(&bare, Expr::Literal(literal, _) if is_text(&literal.data_type()));
        if is.is_null() || is_open || matches!(bare, Expr::Placeholder(_)) {
            return None;
        }
        let is_short = matches!(bare, Expr::Literal(ScalarValue::Int64(Some(n)), _) if i32::try_from(n).is_ok());
        Some(Choice { is, marked: marked_name(field), is_short })
    }

    /// The column of a branch.
    pub(crate) fn of_column(plan: &LogicalPlan, at: usize) -> Option<Choice> {
        let field = plan.schema().field(at);
        match plan {
            LogicalPlan::Projection(projection) => Choice::of(&projection.expr[at], field),
            LogicalPlan::SubqueryAlias(alias) => Choice::of_column(&alias.input, at),
            _ => Choice::of(&Expr::Column(field.name().as_str().into()), field),
        }
    }

    pub(super) fn is_apart(&self, other: &Choice) -> bool {
        match (Kind::of(&self.is), Kind::of(&other.is)) {
            (Some(one), Some(other)) => one != other,
            (None, None) if is_text(&self.is) && is_text(&other.is) => {
                matches!((&self.marked, &other.marked), (Some(one), Some(other)) if one != other)
            }
            (None, None) => {
                is_text(&self.is) && is_untextual(&other.is) || is_untextual(&self.is) && is_text(&other.is)
            }
            (Some(_), None) => is_text(&other.is) || is_list(&other.is),
            (None, Some(_)) => is_text(&self.is) || is_list(&self.is),
        }
    }

    /// Whether this is a document, a uuid or a label.
    pub(super) fn is_marked(&self) -> bool {
        self.marked.is_some()
    }

    pub(super) fn name(&self) -> String {
        match (&self.marked, &self.is) {
            (Some(name), _) => name.clone(),
            (None, DataType::Int64) if self.is_short => "integer".into(),
            (None, DataType::Decimal128(..) | DataType::Decimal256(..)) => "numeric".into(),
            (None, DataType::Timestamp(_, None)) => "timestamp without time zone".into(),
            (None, DataType::Timestamp(_, Some(_))) => "timestamp with time zone".into(),
            (None, DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)) => "time without time zone".into(),
            (None, is) => sql_name(is),
        }
    }
}

/// Whether a type is one of arrays or bytes.
fn is_untextual(is: &DataType) -> bool {
    is_list(is) || matches!(is, DataType::Binary | DataType::BinaryView)
}

fn is_list(is: &DataType) -> bool {
    matches!(is, DataType::List(_))
}

/// What is wrong with values of which `what` chooses one.
pub(crate) fn misfit(what: &str, values: impl IntoIterator<Item = Option<Choice>>) -> Option<String> {
    let mut values = values.into_iter().flatten();
    let first = values.next()?;
    let other = values.find(|other| first.is_apart(other))?;
    Some(format!("{what} types {} and {} cannot be matched", first.name(), other.name()))
}

/// What is wrong with values of these types; of texts, which may be literals, nothing is said.
pub(crate) fn misfit_of_types(what: &str, types: &[DataType]) -> Option<String> {
    let firm = types.iter().filter(|is| !is_text(is) && !is.is_null());
    misfit(what, firm.map(|is| Some(Choice { is: is.clone(), marked: None, is_short: false })))
}

/// Refuses choices among values of types that have none in common.
pub(super) fn check(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (what, values): (&str, Vec<&Expr>) = match expr {
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            ("CASE", case.else_expr.as_deref().into_iter().chain(branches).collect())
        }
        Expr::ScalarFunction(call) => match call.func.name() {
            "coalesce" => ("COALESCE", call.args.iter().collect()),
            "greatest" => ("GREATEST", call.args.iter().collect()),
            "least" => ("LEAST", call.args.iter().collect()),
            MAKE_ARRAY => ("ARRAY", call.args.iter().collect()),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let choices = values.into_iter().map(|value| Choice::of(value, value.to_field(schema).ok()?.1.as_ref()));
    match misfit(what, choices) {
        Some(problem) => plan_err!("{problem}"),
        None => Ok(()),
    }
}
