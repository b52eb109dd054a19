//! Forms of the columns of an answer: which of its texts are `varchar(n)`, `char(n)`, documents,
//! and how many digits its times and its rounded numerics have.
//!
//! Law: a column has the form that its values have in PostgreSQL; where branches differ it has none
//! and is told as `text`. Marks of fields say most of it (see [`documents`](super::documents)), but
//! aggregates, CASE, and functions of alternatives drop them: `max(c)` has the form of `c`.
//!
//! Cost: one walk over the plan's upper nodes, once a query.

use anabranch_batch::{TextLimit, TimePrecision};
use arrow::datatypes::Field;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Case, ScalarFunction, WindowFunction};
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::{Expr, ExprSchemable, WindowFunctionDefinition};

use crate::functions::placed_text::places_of;
use crate::passes::plan::recursion::LoopNode;
use crate::passes::plan::set_operations::SetNode;
use crate::planned::ColumnForm;
use crate::resolve::documents::{elements_limit_of, marked_places, marked_precision, shown_form_of};

/// Functions whose answers are among the values of their first argument, or have its places.
const CHOOSE_OF_FIRST: [&str; 12] = [
    MIN,
    MAX,
    SUM,
    "first_value",
    "last_value",
    "nth_value",
    "lag",
    "lead",
    "any_value",
    "nullif",
    "mode",
    "percentile_disc",
];

/// What a subquery that stands for a value is called by.
const ONE_ROW: &str = "one_row";

/// Functions of `text` and of `char(n)`: of the other types they give `text`.
const MIN: &str = "min";
const MAX: &str = "max";

/// A sum of numbers has their places.
const SUM: &str = "sum";

/// Functions whose answer is one of their arguments.
const CHOOSE: [&str; 3] = ["coalesce", "greatest", "least"];

type Forms = Vec<Option<ColumnForm>>;

/// The form that the mark of a field tells.
pub(crate) fn form_told(field: &Field) -> Option<ColumnForm> {
    let told = shown_form_of(field).map(ColumnForm::Text).or_else(|| marked_precision(field).map(ColumnForm::Time));
    let told = told.or_else(|| marked_places(field).map(ColumnForm::Number));
    told.or_else(|| elements_limit_of(field).map(ColumnForm::Elements))
}

/// Forms of the columns of a plan.
pub(crate) fn forms_of(plan: &LogicalPlan) -> Forms {
    let told = plan.schema().fields().iter().map(|field| form_told(field));
    let found = match plan {
        LogicalPlan::Projection(node) => of_each(&node.expr, &node.input),
        LogicalPlan::Aggregate(node) if node.schema.fields().len() == node.group_expr.len() + node.aggr_expr.len() => {
            of_each(node.group_expr.iter().chain(&node.aggr_expr), &node.input)
        }
        LogicalPlan::Window(node) => {
            let mut forms = forms_of(&node.input);
            forms.extend(of_each(&node.window_expr, &node.input));
            forms
        }
        LogicalPlan::Union(node) => in_both(node.inputs.iter().map(|input| forms_of(input))),
        LogicalPlan::Subquery(node) => forms_of(&node.subquery),
        LogicalPlan::Extension(node) => match node.node.as_any() {
            set if set.is::<SetNode>() => in_both(node.node.inputs().into_iter().map(forms_of)),
            of_loop if of_loop.is::<LoopNode>() => node.node.inputs().first().map_or(vec![], |first| forms_of(first)),
            _ => vec![],
        },
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_) => match plan.inputs().as_slice() {
            [input] if input.schema().fields().len() == plan.schema().fields().len() => forms_of(input),
            _ => vec![],
        },
        _ => vec![],
    };
    // (A union has the mark of its first branch, and so has what stands above it; its places are
    // those of all.)
    let is_leaf = found.is_empty();
    let told = told.map(|told| told.filter(|form| is_leaf || !matches!(form, ColumnForm::Number(_))));
    told.enumerate().map(|(at, told)| told.or_else(|| found.get(at).copied().flatten())).collect()
}

/// The forms that all branches have.
fn in_both(mut branches: impl Iterator<Item = Forms>) -> Forms {
    let first = branches.next().unwrap_or_default();
    branches.fold(first, |forms, branch| {
        forms.into_iter().zip(branch).map(|(one, other)| one.filter(|_| one == other)).collect()
    })
}

fn of_each<'a>(exprs: impl IntoIterator<Item = &'a Expr>, input: &LogicalPlan) -> Forms {
    let below = forms_of(input);
    exprs.into_iter().map(|expr| of_expr(expr, input.schema(), &below)).collect()
}

fn of_expr(expr: &Expr, schema: &DFSchema, below: &[Option<ColumnForm>]) -> Option<ColumnForm> {
    let of = |expr: &Expr| of_expr(expr, schema, below);
    match expr {
        Expr::Column(column) => below.get(schema.maybe_index_of_column(column)?).copied()?,
        Expr::Alias(alias) => of(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, params }) if CHOOSE_OF_FIRST.contains(&func.name()) => {
            of_chosen(func.name(), of(params.args.first()?))
        }
        Expr::WindowFunction(call) => {
            let WindowFunction { fun, params, .. } = call.as_ref();
            let name = match fun {
                WindowFunctionDefinition::AggregateUDF(of) => of.name(),
                WindowFunctionDefinition::WindowUDF(of) => of.name(),
            };
            of_chosen(name, of(params.args.first().filter(|_| CHOOSE_OF_FIRST.contains(&name))?))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if matches!(func.name(), "nullif" | ONE_ROW) => {
            of(args.first()?)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if CHOOSE.contains(&func.name()) => common(args, of),
        Expr::Case(Case { when_then_expr, else_expr, .. }) => {
            common(when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(else_expr.as_deref()), of)
        }
        Expr::ScalarSubquery(query) => forms_of(&query.subquery).first().copied().flatten(),
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "round_time" => match args.get(1) {
            Some(Expr::Literal(ScalarValue::Int64(Some(digits)), _)) => {
                Some(ColumnForm::Time(TimePrecision(u8::try_from(*digits).ok()?)))
            }
            _ => None,
        },
        Expr::ScalarFunction(call) if let Some(places) = places_of(call, schema) => Some(ColumnForm::Number(places)),
        other => form_told(other.to_field(schema).ok()?.1.as_ref()),
    }
}

/// The form of what a function chooses among values of a form.
fn of_chosen(function: &str, form: Option<ColumnForm>) -> Option<ColumnForm> {
    match form {
        Some(ColumnForm::Text(TextLimit::Varchar(_) | TextLimit::Name | TextLimit::Letter) | ColumnForm::Time(_))
            if matches!(function, MIN | MAX | SUM) =>
        {
            None
        }
        _ => form,
    }
}

/// The form of all values but NULL, and literals beside texts.
fn common<'a>(
    values: impl IntoIterator<Item = &'a Expr>,
    of: impl Fn(&Expr) -> Option<ColumnForm>,
) -> Option<ColumnForm> {
    let is_open = |value: &Expr| matches!(value, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Utf8View(_), _));
    let is_null = |value: &Expr| matches!(value, Expr::Literal(literal, _) if literal.is_null());
    let (mut found, mut is_beside_literal) = (None, false);
    for value in values.into_iter().filter(|value| !is_null(value)) {
        if is_open(value) {
            is_beside_literal = true;
            continue;
        }
        let form = of(value)?;
        found = Some(found.map_or(Some(form), |found| in_common(found, form))?);
    }
    match found? {
        ColumnForm::Text(TextLimit::Varchar(_)) if is_beside_literal => in_common(VARYING, found?),
        found => Some(found),
    }
}

const VARYING: ColumnForm = ColumnForm::Text(TextLimit::Varchar(TextLimit::UNBOUNDED));

/// The form of values of two forms.
fn in_common(one: ColumnForm, other: ColumnForm) -> Option<ColumnForm> {
    match (one, other) {
        _ if one == other => Some(one),
        (ColumnForm::Text(TextLimit::Varchar(_)), ColumnForm::Text(TextLimit::Varchar(_))) => Some(VARYING),
        _ => None,
    }
}
