//! Expressions of frames that are written as SQL.
//!
//! The planner of SQL reads them as the columns of a query over the frame, so they mean what SQL
//! means by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use anabranch_sql::Planner;
use anabranch_sql::catalog::{Catalog, Relation};
use anabranch_sql::statement::{ObjectKind, Statement};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_expr::{AggregateUDF, Expr, ScalarUDF};

use super::expression::{self, END, START, WINDOW_END, WINDOW_START, col};
use super::query::Frame;
use crate::error::Error;
use crate::functions::Function;

/// What the frame is called in the query.
const FRAME: &str = "_events";

impl Frame {
    /// The expressions that these texts write, over the frame's columns, `"@start"` and `"@end"`,
    /// `"@window_start"` and `"@window_end"`, and the columns `more`. They may call `functions`.
    ///
    /// ```
    /// use anabranch_engine::frame::{Event, Events};
    /// use anabranch_engine::{Options, Session};
    /// use arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    /// let input = Events::input("in", schema).frame();
    /// let exprs = input.expressions(&["x * 2 + \"@start\"".to_owned()], &[], &Default::default())?;
    /// let mut session = Session::new(Options::default())?;
    /// let mut run = session.start(&input.select([exprs[0].clone().alias("y")]))?;
    /// run.push("in", vec![Event::point(5, [10i64.into()])])?;
    /// run.finish()?;
    /// assert_eq!(run.lifetimes()?[0].to_string(), "[5, 6) 25");
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// The frame's error of building; `Invalid` for a text that is no expression over these
    /// columns.
    pub fn expressions(
        &self,
        texts: &[String],
        more: &[(String, DataType)],
        functions: &BTreeMap<String, Function>,
    ) -> Result<Vec<Expr>, Error> {
        let own = self.schema()?;
        let catalog = Columns { schema: columns(&own, more), functions };
        let items: Vec<String> = texts.iter().enumerate().map(|(at, text)| format!("({text}) AS \"{at}\"")).collect();
        let query = format!("SELECT {} FROM {FRAME}", items.join(", "));
        let parsed = anabranch_sql::parse(&query)?;
        let [statement] = parsed.as_slice() else { return Err(no_expression(&texts.join(", "))) };
        let Statement::Select { query, .. } = &statement.statement else {
            return Err(no_expression(&texts.join(", ")));
        };
        let planned = Planner::new(&catalog).plan_view(query)?;
        let exprs = computed(&planned.plan, &catalog.schema).ok_or_else(|| no_expression(&texts.join(", ")))?;
        Ok(exprs.into_iter().take(texts.len()).collect())
    }
}

fn no_expression(text: &str) -> Error {
    Error::invalid(format!("\"{text}\" is no expression over the columns of events"))
        .with_hint("Subqueries, aggregates and window functions are verbs of their own.")
}

/// The frame's columns, and what expressions may read beside them.
fn columns(schema: &Schema, more: &[(String, DataType)]) -> SchemaRef {
    let own = schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
    let bounds = [START, END, WINDOW_START, WINDOW_END].map(|name| (name.to_owned(), DataType::Int64));
    let fields = own.chain(bounds).chain(more.iter().cloned());
    Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).collect::<Vec<_>>()))
}

/// The columns of a plan as expressions over the frame, if no more than expressions is in it.
fn computed(plan: &Plan, schema: &Schema) -> Option<Vec<Expr>> {
    match &plan.node {
        Node::Scan { columns, .. } => Some(columns.iter().map(|at| col(schema.field(*at).name())).collect()),
        Node::Stage { input, filter, project } if filter.is_empty() => {
            let below = computed(input, schema)?;
            project.iter().map(|expr| over(expr, input, &below)).collect()
        }
        _ => None,
    }
}

/// The expression with these in the place of the input's columns.
fn over(expr: &Expr, input: &Plan, below: &[Expr]) -> Option<Expr> {
    let replaced = expr.clone().transform(|part| {
        Ok(match &part {
            Expr::Column(column) => match expression::position(&input.schema, &column.name) {
                Ok(at) => Transformed::yes(below[at].clone()),
                Err(_) => Transformed::no(part),
            },
            _ => Transformed::no(part),
        })
    });
    replaced.data().ok()
}

/// One relation: the events.
struct Columns<'a> {
    schema: SchemaRef,
    functions: &'a BTreeMap<String, Function>,
}

impl Catalog for Columns<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        (name == FRAME).then(|| Relation {
            name: name.to_owned(),
            kind: ObjectKind::MaterializedView,
            schema: self.schema.clone(),
            primary_key: vec![],
            watermark: None,
            watermark_relation: None,
            view_query: None,
        })
    }

    fn names(&self) -> Vec<String> {
        vec![]
    }

    fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.get(name).and_then(Function::as_scalar).cloned()
    }

    fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.get(name).and_then(Function::as_aggregate).cloned()
    }
}
