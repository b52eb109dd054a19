//! Queries of SQL over frames: what is in force is a relation.
//!
//! The rows of a frame that are in force at a time are the contents of a table at that time; the
//! query's answer is kept current, and its rows are events that last as long as they are in it.
//! Law: at every time the events in force are the query's answer over the events in force. Cost:
//! that of the query as a view, and the rows of its answer once more (their starts).

use std::sync::Arc;

use anabranch_plan::rewrite::with_inputs;
use anabranch_plan::temporal::Verb;
use anabranch_plan::{Node, Plan};
use anabranch_sql::Planner;
use anabranch_sql::catalog::{Catalog, Relation};
use anabranch_sql::statement::{ObjectKind, Statement};
use arrow::datatypes::SchemaRef;
use datafusion_expr::Expr;

use super::expression::col;
use super::query::{Frame, columns_of, schema_of, temporal};
use crate::error::Error;

impl Frame {
    /// The answer of a query over the rows in force, which are the table `rows`.
    ///
    /// ```
    /// use anabranch_engine::frame::{Event, Events};
    /// use anabranch_engine::{Options, Session};
    /// use arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    /// let input = Events::input("in", schema).frame();
    /// let mut session = Session::new(Options::default())?;
    /// let mut run = session.start(&input.sql("SELECT count(*) AS n FROM rows WHERE x > 1"))?;
    /// run.push("in", vec![Event::interval(3, 5, [7i64.into()])])?;
    /// run.finish()?;
    /// let events: Vec<String> = run.lifetimes()?.iter().map(ToString::to_string).collect();
    /// assert_eq!(events[1..], ["[3, 5) 1", "[5, ∞) 0"]);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    #[must_use]
    pub fn sql(&self, query: &str) -> Frame {
        Frame::sql_over(&[("rows", self)], query)
    }

    /// The answer of a query over the rows in force of several frames, each a table of that name.
    ///
    /// Errors of building: those of the query; `Invalid` within groups, and without a frame.
    #[must_use]
    pub fn sql_over(tables: &[(&str, &Frame)], query: &str) -> Frame {
        Frame::asked_over(tables, query, |planner| planner)
    }

    /// As [`sql_over`](Frame::sql_over), over the rows of one of several shards: the plan has the
    /// steps that the query names, of which it is derived where rows lie.
    #[must_use]
    pub fn sql_over_shard(tables: &[(&str, &Frame)], query: &str) -> Frame {
        Frame::asked_over(tables, query, |planner| planner.spread())
    }

    fn asked_over(tables: &[(&str, &Frame)], query: &str, plans_by: fn(Planner<'_>) -> Planner<'_>) -> Frame {
        let Some(((_, first), others)) = tables.split_first() else {
            return Frame::failed(Error::invalid("a query over no frames"));
        };
        // (Inputs of all are gathered pair by pair.)
        let gathered = others
            .iter()
            .fold((*first).clone(), |all, (_, frame)| all.then_with(frame, |left, _| Ok(left.plan.clone())));
        gathered.then(|state| {
            if !state.group.is_empty() {
                return Err(Error::invalid("a query of SQL within groups")
                    .with_hint("Outside of group_apply, GROUP BY says the groups."));
            }
            let plans =
                tables.iter().map(|(name, frame)| Ok((*name, frame.plan()?))).collect::<Result<Vec<_>, Error>>()?;
            answer(&plans, query, plans_by)
        })
    }
}

/// The plan of a query over events.
fn answer(
    tables: &[(&str, Arc<Plan>)],
    query: &str,
    plans_by: fn(Planner<'_>) -> Planner<'_>,
) -> Result<Arc<Plan>, Error> {
    let parsed = anabranch_sql::parse(query)?;
    let select = match parsed.as_slice() {
        [parsed] => match &parsed.statement {
            Statement::Select { as_of: Some(time), .. } => {
                return Err(Error::invalid(format!("AS OF {time} in a query over events"))
                    .with_hint("Leave it out: events say themselves when they are in force."));
            }
            Statement::Select { query, .. } => Some(query),
            _ => None,
        },
        _ => None,
    };
    let Some(select) = select else {
        return Err(Error::invalid(format!("\"{query}\" is no query")).with_hint("Write one SELECT."));
    };
    let tables_by_name = Tables(tables);
    let planned = plans_by(Planner::new(&tables_by_name)).plan_view(select)?;
    let rows = over_events(&planned.plan, tables);
    let mut columns = columns_of(&rows.schema);
    columns.truncate(planned.visible);
    let schema = schema_of(&columns)?;
    let rows = match planned.visible == rows.schema.fields().len() {
        true => Arc::new(Plan { node: rows.node.clone(), schema: schema.clone() }),
        false => {
            let project = columns.iter().map(|(name, _)| col(name)).collect();
            Arc::new(Plan { node: Node::Stage { input: rows, filter: vec![], project }, schema: schema.clone() })
        }
    };
    Ok(temporal(Verb::OfChanges, vec![rows], schema))
}

/// The plan with frames in the place of tables.
fn over_events(plan: &Arc<Plan>, tables: &[(&str, Arc<Plan>)]) -> Arc<Plan> {
    let Node::Scan { relation, columns } = &plan.node else {
        return with_inputs(plan, |input| over_events(input, tables));
    };
    let Some((_, events)) = tables.iter().find(|(name, _)| name == relation) else { return Arc::clone(plan) };
    let project: Vec<Expr> = columns.iter().map(|at| col(events.schema.field(*at).name())).collect();
    let node = Node::Stage { input: Arc::clone(events), filter: vec![], project };
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

/// Frames as relations.
struct Tables<'a>(&'a [(&'a str, Arc<Plan>)]);

impl Catalog for Tables<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        let (_, plan) = self.0.iter().find(|(table, _)| *table == name)?;
        let schema: SchemaRef = plan.arrow_schema();
        Some(Relation {
            name: name.to_owned(),
            kind: ObjectKind::MaterializedView,
            schema,
            primary_key: vec![],
            watermark: None,
            watermark_relation: None,
            view_query: None,
        })
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}
