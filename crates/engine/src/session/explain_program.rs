//! EXPLAIN (FORMAT python) and (FORMAT rust): a query as a sharded program.
//!
//! The program is cut from the plan as it was written, before rewrites for this session. Sizes that
//! choose what moves are those of relations as they are now.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use anabranch_plan::program::{Cut, cut, text};
use anabranch_plan::{Node, Plan, RankedBy, TopK};
use anabranch_sql::ast;
use anabranch_sql::planned_columns;
use anabranch_sql::statement::ProgramLanguage;
use anabranch_sql::{Finish, Planned, volatile_call};
use arrow::datatypes::{Schema, SchemaRef};

use super::outcome::Rows;
use super::show::text_rows;
use super::state::Session;
use crate::cluster::ArrangementId;
use crate::error::Error;

/// Shards for which sizes are weighed: more of them make copies dearer.
const SHARDS: f64 = 4.0;

/// Rows that a relation is taken to have if it keeps none.
const ROWS_UNKNOWN: f64 = 1_000_000.0;

impl Session {
    pub(super) fn explain_program(&mut self, query: &ast::Query, language: ProgramLanguage) -> Result<Rows, Error> {
        check_is_fixed(query)?;
        let planned = self.plan_unrewritten(query)?;
        let names: Vec<String> =
            planned.plan.schema.fields().iter().take(planned.visible).map(|field| field.name().clone()).collect();
        let ordered = super::explain::finish_line(&planned);
        let plan = first_rows(&planned);
        // (Rows that a worker has not taken in are not counted.)
        self.await_dataflows_shortly()?;
        let kept: BTreeMap<ArrangementId, usize> =
            self.cluster.stats().into_iter().map(|stats| (stats.arrangement, stats.rows)).collect();
        let rows = |relation: &str| {
            let arrangements = self.catalog.find(relation).and_then(|object| object.maintained.as_ref());
            let first = arrangements.and_then(|kept| kept.arrangements.first());
            first.and_then(|first| kept.get(&first.arrangement)).map_or(ROWS_UNKNOWN, |rows| *rows as f64)
        };
        let columns = |relation: &str| {
            let object = self.catalog.find(relation);
            object
                .map(|object| object.schema.fields().iter().map(|field| field.name().clone()).collect())
                .unwrap_or_default()
        };
        let how = Cut { columns: &columns, rows: &rows, shards: SHARDS };
        let program = cut(&plan, &names, &how).map_err(|what| {
            Error::invalid(format!("no sharded program has this step: {what}"))
                .with_sqlstate("0A000")
                .with_hint("EXPLAIN without FORMAT shows the plan.")
        })?;
        let mut heading = query.to_string();
        if let Some(finish) = ordered {
            heading.push_str(&format!(
                "\n(Rows come in no order: {} is for the reader.)",
                finish.replacen("Finish ", "", 1)
            ));
        }
        let schemas = |relation: &str, columns: &[String]| self.program_columns(relation, columns);
        let text = match language {
            ProgramLanguage::Python => text::python(&program, &heading),
            ProgramLanguage::Rust => text::rust(&program, &heading, &schemas),
        };
        text_rows("program", text.lines().map(str::to_owned))
    }

    /// Columns of a relation as a program reads them.
    fn program_columns(&self, relation: &str, columns: &[String]) -> Option<SchemaRef> {
        let object = self.catalog.find(relation)?;
        let schema = planned_columns(&object.schema);
        let fields = columns.iter().map(|column| schema.field_with_name(column).ok().cloned());
        Some(Arc::new(Schema::new(fields.collect::<Option<Vec<_>>>()?)))
    }
}

/// Refuses what a text that is run later, and in several shards, cannot mean: values that are given
/// beside it, and functions of chance.
fn check_is_fixed(query: &ast::Query) -> Result<(), Error> {
    let parameter = ast::visit_expressions(query, |expr| match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(name), .. }) => {
            ControlFlow::Break(name.clone())
        }
        _ => ControlFlow::Continue(()),
    });
    if let ControlFlow::Break(name) = parameter {
        return Err(Error::invalid(format!("there is no parameter {name} in a sharded program"))
            .with_sqlstate("42P02")
            .with_hint("A program is a text that is run without values: write the value itself."));
    }
    match volatile_call(query) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!("no sharded program has the function {name}()"))
            .with_sqlstate("0A000")
            .with_hint("A program's rows are a function of its relations: keep the value in a column of a table.")),
    }
}

/// The plan with what its reader would cut off, and the columns asked for.
fn first_rows(planned: &Planned) -> Arc<Plan> {
    let Finish { order, offset, limit } = &planned.finish;
    if limit.is_none() && *offset == 0 {
        return Arc::clone(&planned.plan);
    }
    let top = TopK {
        group: vec![],
        order: order.clone(),
        offset: *offset,
        limit: *limit,
        ranked: RankedBy::Row,
        numbered: false,
    };
    let schema = planned.plan.schema.clone();
    Arc::new(Plan { node: Node::TopK { input: Arc::clone(&planned.plan), top }, schema })
}
