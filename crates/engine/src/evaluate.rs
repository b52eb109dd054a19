//! Stages evaluated by the session itself, on rows read from an arrangement or written in the
//! statement.
//!
//! The same expressions as in a dataflow, so a SELECT and a view agree; only a row error is at once
//! the statement's.
//!
//! Texts and lists that are computed are counted as the memory of a query of its client while they
//! grow, so that `memory_limit` ends it, and not when all of them are there. Cost: of columns that
//! are repeated, nothing; else an account a stage, and a look every few thousand rows.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::Batch;
use anabranch_flow::account::{Account, Cause};
use anabranch_flow::tactic::Output;
use anabranch_operators::expression::{Column as PlainColumn, ExpressionRef};
use anabranch_operators::stateless::filter_project::Stage;
use anabranch_plan::Plan;
use arrow::array::AsArray;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::TableReference;
use datafusion_expr::Expr;

use crate::cluster::failed;
use crate::contained::panicked;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::render::expression::Compiled;

/// Rows that are computed between two looks at the limits of a question.
const ROWS_PER_LOOK: usize = 4096;

/// What ends a question of a client before its answer.
pub(crate) struct Asked<'a> {
    /// Of the client: more than its limit is held.
    pub account: &'a Account,
    /// It is cancelled, or its time is over.
    pub interrupt: &'a Interrupt,
}

impl Asked<'_> {
    /// What is computed, unless it holds too much.
    ///
    /// # Errors
    /// Those of the computation; `Unavailable` when the limit of memory ends it.
    pub fn within_limits<T>(&self, compute: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let question = self.account.question();
        let computed = question.turn(compute);
        computed.unwrap_or_else(|| match question.failure() {
            Some(failure) if failure.cause == Cause::Panic => Err(panicked("computing the answer", &failure.message)),
            Some(failure) => Err(failed("the query", failure)),
            None => Err(Error::internal("a question ends with an answer or a failure")),
        })
    }
}

/// The rows that pass `filter`, projected. `input` is the plan that the expressions are over,
/// `output` has the types of the projected columns.
///
/// # Errors
/// `Data` with the message of a row that cannot be evaluated; `Invalid` for an expression that has
/// no vectorised form.
pub(crate) fn evaluate_stage(
    input: &Plan,
    filter: &[Expr],
    project: &[Expr],
    output: &Plan,
    batches: Vec<Batch>,
    asked: Option<&Asked>,
) -> Result<Vec<Batch>, Error> {
    let stage = compile_stage(input, filter, project, output)?;
    let mut out = Output::default();
    for batch in batches {
        let Some(asked) = asked else {
            stage.apply(batch.flatten(), &mut out);
            continue;
        };
        for start in (0..batch.len()).step_by(ROWS_PER_LOOK) {
            asked.interrupt.check()?;
            // (What is made is counted where it is evaluated. May not return.)
            stage.apply(batch.slice(start, ROWS_PER_LOOK.min(batch.len() - start)).flatten(), &mut out);
        }
    }
    match first_error(&out.errors) {
        Some(error) => Err(error),
        None => Ok(out.rows.into_iter().map(Batch::compact).collect()),
    }
}

/// A filter and a projection over the rows of `input`, compiled.
///
/// # Errors
/// `Invalid` for an expression that has no vectorised form.
pub(crate) fn compile_stage(input: &Plan, filter: &[Expr], project: &[Expr], output: &Plan) -> Result<Stage, Error> {
    let predicate =
        |expr: &Expr| -> Result<ExpressionRef, Error> { Ok(Compiled::new(expr, &input.schema)?.into_ref()) };
    let places = Places::of(project, input);
    let column = |(expr, field): (&Expr, &FieldRef)| -> Result<ExpressionRef, Error> {
        match places.plain(expr, field.data_type()) {
            Some(column) => Ok(Arc::new(PlainColumn(column))),
            None => Ok(Compiled::new(expr, &input.schema)?.typed(field.data_type()).into_ref()),
        }
    };
    Ok(Stage {
        filter: filter.iter().map(predicate).collect::<Result<_, _>>()?,
        kept: None,
        project: Some(project.iter().zip(output.schema.fields()).map(column).collect::<Result<_, _>>()?),
    })
}

/// Where columns are that are merely repeated: to compile an expression costs the columns of its
/// input, so a wide row that is passed on would cost their square.
struct Places<'a> {
    input: &'a Plan,
    of_names: HashMap<(Option<&'a TableReference>, &'a str), usize>,
}

/// So many expressions are compiled one by one.
const COMPILED_MAX: usize = 32;

impl<'a> Places<'a> {
    fn of(project: &[Expr], input: &'a Plan) -> Places<'a> {
        let fields = if project.len() > COMPILED_MAX { input.schema.fields().len() } else { 0 };
        let fields = (0..fields).map(|place| {
            let (qualifier, field) = input.schema.qualified_field(place);
            ((qualifier, field.name().as_str()), place)
        });
        Places { input, of_names: fields.collect() }
    }

    /// The place of the column that an expression is, if it has that type as it is.
    fn plain(&self, expr: &Expr, data_type: &DataType) -> Option<usize> {
        let expr = match expr {
            Expr::Alias(alias) => &alias.expr,
            expr => expr,
        };
        let Expr::Column(column) = expr else { return None };
        let place = *self.of_names.get(&(column.relation.as_ref(), column.name.as_str()))?;
        (self.input.schema.field(place).data_type() == data_type).then_some(place)
    }
}

/// The first message in the order of texts.
fn first_error(errors: &[Batch]) -> Option<Error> {
    let texts = errors.iter().flat_map(|batch| batch.column(0).as_string_view().iter().flatten());
    let n_rows: usize = errors.iter().map(Batch::len).sum();
    let error = Error::data(texts.min()?);
    Some(if n_rows > 1 { error.with_detail(format!("{n_rows} rows have errors.")) } else { error })
}
