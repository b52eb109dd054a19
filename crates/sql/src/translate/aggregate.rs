//! Grouping and aggregates.
//!
//! Keys, arguments and filters become plain columns of a stage below. `GROUPING SETS` become a
//! union of aggregates, one for each set. A grouping without aggregates is a distinct.

use std::sync::Arc;

use anabranch_plan::{AggregateCall, AggregateFunction, Foreign, Fraction, Node, Plan, SortKey};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{AggregateFunction as Call, AggregateFunctionParams, NullTreatment};
use datafusion_expr::logical_plan::Aggregate;
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Expr, cast, lit};

use super::Translator;
use super::distinct;
use super::expr::{column, position, resolve, resolve_key};
use super::grouping_sets::{grouping_sets, is_sets};
use super::schema::{Draft, schema};
use super::stage::{Column, stage};
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::interval_percentile::IntervalPercentile;
use crate::functions::intervals::{INTERVAL, IntervalField, IntervalOf, IntervalPart};
use crate::functions::user::UserAggregateFunction;
use crate::passes::plan::unnest::grouping_sets::expanded;
use crate::resolve::type_names::canonical;
use crate::time::functions::interval_divide;

impl Translator {
    pub(super) fn aggregate(&self, aggregate: &Aggregate) -> Result<Arc<Plan>> {
        let input = self.node(&aggregate.input)?;
        let group: Vec<&Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?;
        let from = aggregate.input.schema();
        let keys = group.iter().map(|e| resolve(e, from, &input.schema)).collect::<Result<Vec<_>>>()?;
        let mut calls = Vec::new();
        let mut results = Vec::new();
        let grouping = usize::from(aggregate.group_expr.len() == 1 && is_sets(&aggregate.group_expr[0]));
        for (n, expr) in aggregate.aggr_expr.iter().enumerate() {
            let field = aggregate.schema.field(group.len() + grouping + n);
            let call = WantedAggregate::new(
                expr,
                field.data_type(),
                &Resolve { part: &|e| resolve(e, from, &input.schema), key: &|e| resolve_key(e, from, &input.schema) },
            )?;
            results.push(call.split(&mut calls)?);
        }
        let plan = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => {
                let id_type = aggregate.schema.field(group.len()).data_type();
                grouping_sets(input, &expanded(sets), &group, keys, calls, id_type)
            }
            _ => grouped(input, keys, calls),
        }?;
        put_together(plan, group.len() + grouping, &results)
    }
}

/// How the expressions of a call are written over the input's plan.
#[derive(Clone, Copy)]
pub(super) struct Resolve<'a> {
    /// What it reads.
    pub(super) part: &'a dyn Fn(&Expr) -> Result<Expr>,
    /// What puts its elements in order.
    pub(super) key: &'a dyn Fn(&Expr) -> Result<Expr>,
}

impl<'a> Resolve<'a> {
    /// For calls without an order.
    pub(super) fn parts(part: &'a dyn Fn(&Expr) -> Result<Expr>) -> Resolve<'a> {
        Resolve { part, key: part }
    }
}

/// What becomes of a call's results.
enum ResultOf {
    /// The result of that call.
    Call(usize),
    /// The interval whose parts begin at that call; its count follows if it is an average.
    Interval { first: usize, average: bool },
    /// The interval at a part of the way through the list of that call.
    Percentile { list: usize, part: f64 },
}

/// The results of the calls after the keys, with intervals made of their parts.
fn put_together(plan: Arc<Plan>, n_keys: usize, results: &[ResultOf]) -> Result<Arc<Plan>> {
    if results.iter().all(|result| matches!(result, ResultOf::Call(_))) {
        return Ok(plan);
    }
    let at = |call: usize| column(&plan.schema, n_keys + call);
    let result = |result: &ResultOf| match *result {
        ResultOf::Call(call) => at(call),
        ResultOf::Percentile { list, part } => IntervalPercentile::udf().call(vec![at(list), lit(part)]),
        ResultOf::Interval { first, average } => {
            let sum = IntervalOf::udf().call(vec![at(first), at(first + 1), at(first + 2)]);
            match average {
                true => interval_divide(sum, cast(at(first + 3), DataType::Float64)),
                false => sum,
            }
        }
    };
    let keys = (0..n_keys).map(|key| (column(&plan.schema, key), None));
    let columns = keys.chain(results.iter().map(|r| (result(r), None))).collect();
    stage(plan.clone(), vec![], columns)
}

/// An aggregate call over expressions of the input.
#[derive(Clone)]
pub(super) struct WantedAggregate {
    function: AggregateFunction,
    argument: Option<Expr>,
    /// Arguments behind the first one, of a user's aggregate.
    further: Vec<Expr>,
    distinct: bool,
    filter: Option<Expr>,
    order: Vec<(Expr, bool, bool)>,
    output_type: DataType,
}

impl WantedAggregate {
    /// Reads an aggregate expression; `resolve` writes its parts over the input's plan.
    pub(super) fn new(expr: &Expr, output_type: &DataType, resolve: &Resolve<'_>) -> Result<Self> {
        let Expr::AggregateFunction(Call { func, params }) = unaliased(expr) else {
            return Err(SqlError::internal(format!("{expr} is not an aggregate")));
        };
        if let Some(function) = UserAggregateFunction::function_of(func) {
            return Self::of_user(function, params, output_type, resolve);
        }
        Self::of(func.name(), params, output_type, resolve)
    }

    /// `count(*)`.
    pub(super) fn rows() -> Self {
        WantedAggregate {
            function: AggregateFunction::Count,
            argument: None,
            further: vec![],
            distinct: false,
            filter: None,
            order: vec![],
            output_type: DataType::Int64,
        }
    }

    /// Reads a call of a user's aggregate.
    fn of_user(
        function: &Foreign,
        params: &AggregateFunctionParams,
        output_type: &DataType,
        resolve: &Resolve<'_>,
    ) -> Result<Self> {
        let name = function.name();
        if params.distinct || !params.order_by.is_empty() {
            return Err(SqlError::unsupported(
                format!("{name}() with DISTINCT or ORDER BY"),
                "Aggregates of users take all rows, in any order: aggregate over SELECT DISTINCT in a subquery.",
            ));
        }
        let mut arguments = params.args.iter().map(resolve.part).collect::<Result<Vec<_>>>()?.into_iter();
        Ok(Self {
            function: AggregateFunction::Custom(function.clone(), vec![]),
            argument: arguments.next(),
            further: arguments.collect(),
            distinct: false,
            filter: params.filter.as_ref().map(|e| (resolve.part)(e)).transpose()?,
            order: vec![],
            output_type: canonical(output_type),
        })
    }

    /// Reads a call by the function's name and parameters.
    pub(super) fn of(
        name: &str,
        params: &AggregateFunctionParams,
        output_type: &DataType,
        resolve: &Resolve<'_>,
    ) -> Result<Self> {
        let name = name.to_lowercase();
        let (function, args) = match name.as_str() {
            "percentile_cont" | "percentile_disc" => percentile(&name, params, output_type)?,
            _ => function_of(&name, &params.args)?,
        };
        let distinct = params.distinct || name == "approx_distinct";
        if matches!(params.null_treatment, Some(NullTreatment::IgnoreNulls)) {
            return Err(SqlError::unsupported(format!("{name}() IGNORE NULLS"), "Write FILTER (WHERE x IS NOT NULL)."));
        }
        let argument = match args {
            [] => None,
            [Expr::Literal(value, _)] if function == AggregateFunction::Count && !value.is_null() && !distinct => None,
            [argument] => Some((resolve.part)(argument)?),
            _ => {
                return Err(SqlError::unsupported(
                    format!("{name}() of several arguments"),
                    "Aggregate one expression: concatenate the parts, or write ROW-wise conditions in FILTER.",
                ));
            }
        };
        let distinct = distinct && argument.is_some();
        let order = params
            .order_by
            .iter()
            .map(|key| Ok(((resolve.key)(&key.expr)?, !key.asc, key.nulls_first)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            order: if takes_order(&function) || is_from_greatest(&function, output_type, &order) {
                order
            } else {
                vec![]
            },
            function,
            argument,
            further: vec![],
            distinct,
            filter: params.filter.as_ref().map(|e| (resolve.part)(e)).transpose()?,
            output_type: canonical(output_type),
        })
    }

    /// Adds the calls that it is computed by; sums of intervals are sums of their parts.
    fn split(self, calls: &mut Vec<WantedAggregate>) -> Result<ResultOf> {
        let first = calls.len();
        if let (DataType::Interval(_), AggregateFunction::PercentileCont(part), Some(value)) =
            (&self.output_type, &self.function, &self.argument)
        {
            let part = part.get();
            let list = self.list_of(value.clone());
            calls.push(list);
            return Ok(ResultOf::Percentile { list: first, part });
        }
        let (DataType::Interval(_), AggregateFunction::Sum | AggregateFunction::Avg, Some(interval)) =
            (&self.output_type, &self.function, &self.argument)
        else {
            calls.push(self);
            return Ok(ResultOf::Call(first));
        };
        if self.distinct {
            let name = self.function.name();
            let hint = "Aggregate over SELECT DISTINCT in a subquery.";
            return Err(SqlError::unsupported(format!("{name}(DISTINCT) of intervals"), hint));
        }
        let average = self.function == AggregateFunction::Avg;
        let whole = |function: AggregateFunction, argument: Expr| WantedAggregate {
            function,
            argument: Some(argument),
            output_type: DataType::Int64,
            ..self.clone()
        };
        for part in IntervalField::ALL {
            let argument = IntervalPart::udf(part).call(vec![interval.clone()]);
            calls.push(whole(AggregateFunction::Sum, argument));
        }
        if average {
            calls.push(whole(AggregateFunction::Count, interval.clone()));
        }
        Ok(ResultOf::Interval { first, average })
    }

    /// The values that the call looks at, in order.
    fn list_of(&self, value: Expr) -> WantedAggregate {
        let is_known = value.clone().is_not_null();
        WantedAggregate {
            function: AggregateFunction::ArrayAgg,
            distinct: false,
            filter: Some(match &self.filter {
                Some(filter) => filter.clone().and(is_known),
                None => is_known,
            }),
            order: vec![(value, self.order.first().is_some_and(|(_, descending, _)| *descending), false)],
            output_type: DataType::new_list(INTERVAL, true),
            ..self.clone()
        }
    }

    /// The call, with `at` saying where its parts are.
    pub(super) fn into_call(self, at: &dyn Fn(&Expr) -> Result<usize>) -> Result<AggregateCall> {
        let order = self.order.iter().map(|(expr, descending, nulls_first)| {
            Ok(SortKey { column: at(expr)?, descending: *descending, nulls_first: *nulls_first })
        });
        let further = self.further.iter().map(at).collect::<Result<Vec<usize>>>()?;
        Ok(AggregateCall {
            argument: self.argument.as_ref().map(at).transpose()?,
            filter: self.filter.as_ref().map(at).transpose()?,
            order: order.collect::<Result<_>>()?,
            function: match self.function {
                AggregateFunction::Custom(function, _) => AggregateFunction::Custom(function, further),
                known => known,
            },
            distinct: self.distinct,
            output_type: self.output_type,
        })
    }

    /// The expressions it needs as columns.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Expr> {
        let order = self.order.iter().map(|(expr, ..)| expr);
        self.argument.iter().chain(&self.further).chain(&self.filter).chain(order)
    }

    pub(super) fn name(&self) -> String {
        let function = self.function.name();
        let arguments = self.argument.iter().chain(&self.further).map(anabranch_plan::explain::expression);
        let arguments = arguments.collect::<Vec<_>>();
        let argument = if arguments.is_empty() { "*".to_owned() } else { arguments.join(", ") };
        let distinct = if self.distinct { "distinct " } else { "" };
        format!("{function}({distinct}{argument})")
    }

    /// Whether the result is never null.
    pub(super) fn never_null(&self) -> bool {
        self.function == AggregateFunction::Count
    }
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// Whether values are looked at from the greatest on.
fn is_from_greatest(function: &AggregateFunction, output: &DataType, order: &[(Expr, bool, bool)]) -> bool {
    let has_ends = match function {
        AggregateFunction::PercentileDisc(_) | AggregateFunction::Mode => true,
        AggregateFunction::PercentileCont(_) => matches!(output, DataType::Interval(_)),
        _ => false,
    };
    has_ends && order.first().is_some_and(|(_, descending, _)| *descending)
}

fn takes_order(function: &AggregateFunction) -> bool {
    use AggregateFunction::*;
    matches!(function, StringAgg(_) | ArrayAgg | FirstValue | LastValue)
}

/// Our function for a name, and the arguments that are columns.
fn function_of<'e>(name: &str, args: &'e [Expr]) -> Result<(AggregateFunction, &'e [Expr])> {
    use AggregateFunction::*;
    let function = match name {
        "count" | "approx_distinct" => Count,
        "sum" => Sum,
        "avg" | "mean" => Avg,
        "min" | "any_value" => Min,
        "max" => Max,
        "bool_and" => BoolAnd,
        "bool_or" => BoolOr,
        "bit_and" => BitAnd,
        "bit_or" => BitOr,
        "bit_xor" => BitXor,
        "var" | "var_samp" | "var_sample" => VarianceSample,
        "var_pop" | "var_population" => VariancePopulation,
        "stddev" | "stddev_samp" => StddevSample,
        "stddev_pop" => StddevPopulation,
        "array_agg" => ArrayAgg,
        "first_value" => FirstValue,
        "last_value" => LastValue,
        "median" => Median,
        "mode" => Mode,
        "string_agg" => return Ok((StringAgg(separator(&args[1..])?), &args[..1])),
        _ => {
            let hint = match name {
                "corr" | "covar_samp" | "covar_pop" | "regr_slope" | "regr_intercept" | "regr_r2" => {
                    "Write it with sum(x * y), sum(x), sum(y) and count(*)."
                }
                "percentile_cont" | "approx_percentile_cont" | "approx_median" | "quantile_cont" => {
                    "median(x) gives the middle; other percentiles come with a later version."
                }
                _ => {
                    "The aggregates are count, sum, avg, min, max, bool_and, bool_or, bit_and, bit_or, bit_xor, variance, stddev, string_agg, array_agg, first_value, last_value, median, mode, percentile_cont, percentile_disc, max_by, min_by."
                }
            };
            return Err(SqlError::unsupported(format!("aggregate {name}()"), hint));
        }
    };
    Ok((function, args))
}

/// `percentile_cont(part) WITHIN GROUP (ORDER BY x)`, or `percentile_disc`, of which the arguments
/// are `x` and the part.
fn percentile<'e>(
    name: &str,
    params: &'e AggregateFunctionParams,
    output_type: &DataType,
) -> Result<(AggregateFunction, &'e [Expr])> {
    let number = |part: &Expr| match unaliased(part) {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(part)) => part,
            _ => None,
        },
        _ => None,
    };
    let part = params.args.get(1).and_then(number).ok_or_else(|| {
        let hint = format!("Write a number from 0 to 1: {name}(0.9) WITHIN GROUP (ORDER BY x).");
        SqlError::unsupported("a percentile of a computed part", hint)
    })?;
    let is_discrete = name == "percentile_disc";
    let is_descending = params.order_by.first().is_some_and(|key| !key.asc);
    // (Between two values it is as far from either end; a value itself has a rank from its own
    // end.)
    let is_number = *output_type == DataType::Float64;
    let from_first = if is_descending && !is_discrete && is_number { 1.0 - part } else { part };
    let fraction = Fraction::new(from_first)
        .ok_or_else(|| SqlError::new(ErrorKind::Invalid, format!("percentile value {part} is not between 0 and 1")))?;
    let function = match is_discrete {
        true => AggregateFunction::PercentileDisc(fraction),
        false if part == 0.5 && *output_type == DataType::Float64 => AggregateFunction::Median,
        false => AggregateFunction::PercentileCont(fraction),
    };
    Ok((function, &params.args[..1]))
}

fn separator(args: &[Expr]) -> Result<String> {
    match args.first().map(unaliased) {
        Some(Expr::Literal(value, _)) => match value {
            ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
                Ok(text.clone().unwrap_or_default())
            }
            ScalarValue::Null => Ok(String::new()),
            other => Ok(other.to_string()),
        },
        _ => Err(SqlError::unsupported("string_agg() with a computed separator", "Write the separator as a literal.")),
    }
}

/// One row per group of `keys`; a global aggregate without keys.
pub(super) fn grouped(input: Arc<Plan>, keys: Vec<Expr>, calls: Vec<WantedAggregate>) -> Result<Arc<Plan>> {
    let width = keys.len();
    let parts = keys.iter().chain(calls.iter().flat_map(WantedAggregate::parts));
    let columns = in_input_order(parts.cloned().collect(), &input.schema);
    let at = |expr: &Expr| {
        let found = columns.iter().position(|(e, _)| e == expr);
        found.ok_or_else(|| SqlError::internal("an aggregate's column was not computed"))
    };
    let all_keys = keys.iter().map(&at).collect::<Result<Vec<_>>>()?;
    let mut key_columns: Vec<usize> = Vec::new();
    for key in &all_keys {
        if !key_columns.contains(key) {
            key_columns.push(*key);
        }
    }
    let names: Vec<String> = calls.iter().map(WantedAggregate::name).collect();
    let nullable: Vec<bool> = calls.iter().map(|call| !call.never_null()).collect();
    let calls = calls.into_iter().map(|call| call.into_call(&at)).collect::<Result<Vec<_>>>()?;
    let input = stage(input, vec![], columns)?;
    if calls.is_empty() {
        return Ok(super::stage::take(distinct(input), &all_keys));
    }
    let mut drafts: Vec<Draft> = key_columns
        .iter()
        .map(|at| {
            let field = input.schema.field(*at);
            (field.name().clone(), field.data_type().clone(), field.is_nullable())
        })
        .collect();
    for ((name, nullable), call) in names.into_iter().zip(nullable).zip(&calls) {
        drafts.push((name, call.output_type.clone(), nullable));
    }
    let n_calls = calls.len();
    let n_keys = key_columns.len();
    let unique_keys = key_columns.clone();
    let plan = Arc::new(Plan { node: Node::Aggregate { input, keys: key_columns, calls }, schema: schema(drafts) });
    if n_keys == width {
        return Ok(plan);
    }
    // A key that was written twice is one key, shown twice.
    let shown = all_keys.iter().map(|key| unique_keys.iter().position(|k| k == key).unwrap_or(0));
    let positions: Vec<usize> = shown.chain((0..n_calls).map(|n| n_keys + n)).collect();
    Ok(super::stage::take(plan, &positions))
}

/// The distinct expressions, columns of the input first and in its order: then a choice of columns
/// is often no choice.
fn in_input_order(exprs: Vec<Expr>, input: &DFSchema) -> Vec<Column> {
    let mut distinct: Vec<Expr> = Vec::new();
    for expr in exprs {
        if !distinct.contains(&expr) {
            distinct.push(expr);
        }
    }
    distinct.sort_by_key(|expr| position(expr, input).unwrap_or(usize::MAX));
    distinct.into_iter().map(|expr| (expr, None)).collect()
}
