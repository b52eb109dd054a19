//! Statements planned against the session's catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_sql::statement::{CreateView, Delete, Emit, Insert, Update};
use anabranch_sql::{Planned, Planner};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_expr::sqlparser::ast;

use super::Session;
use crate::catalog::Planning;
use crate::error::Error;

/// A plan and the relations that its text names, those inside plain views included.
pub(super) struct Named {
    pub planned: Planned,
    pub names: BTreeSet<String>,
}

impl Session {
    /// Plans a query whose answer is wanted once.
    pub(super) fn plan_query(&self, query: &ast::Query) -> Result<Named, Error> {
        self.plan_read(|planner| planner.plan_query(query))
    }

    /// Plans a query that stands: a top-level LIMIT is part of it.
    pub(super) fn plan_view(&self, query: &ast::Query) -> Result<Named, Error> {
        self.plan(|planner| planner.plan_view(query))
    }

    /// Plans the query of a view that is being created.
    pub(super) fn plan_created(&self, create: &CreateView) -> Result<Named, Error> {
        self.plan(|planner| match create.emit {
            Emit::Changes => planner.plan_view(&create.query),
            Emit::OnWindowClose => planner.plan_closed(&create.query),
        })
    }

    /// The plan of a query before and after each rewrite.
    pub(super) fn plan_in_steps(&self, query: &ast::Query) -> Result<Vec<(&'static str, Arc<Plan>)>, Error> {
        let catalog = Planning::new(&self.catalog, self.settings.sharing);
        Ok(Planner::as_of(&catalog, self.options.clock.now_micros()).plan_in_steps(query)?)
    }

    /// Plans the rows of an INSERT, as the table's columns.
    pub(super) fn plan_insert(&self, insert: &Insert) -> Result<Named, Error> {
        self.plan_read(|planner| planner.plan_insert(insert))
    }

    /// Plans the rows that an UPDATE changes: old columns, then new ones.
    pub(super) fn plan_update(&self, update: &Update) -> Result<Named, Error> {
        self.plan_read(|planner| planner.plan_update(update))
    }

    /// Plans the rows that a DELETE takes away.
    pub(super) fn plan_delete(&self, delete: &Delete) -> Result<Named, Error> {
        self.plan_read(|planner| planner.plan_delete(delete))
    }

    /// Plans the rows that ON CONFLICT DO UPDATE changes: old columns, then new ones.
    pub(super) fn plan_conflict(&self, insert: &Insert) -> Result<Named, Error> {
        self.plan_read(|planner| planner.plan_conflict(insert))
    }

    /// Plans the items of RETURNING.
    pub(super) fn plan_returned(
        &self,
        table: &str,
        alias: Option<&str>,
        items: &[ast::SelectItem],
    ) -> Result<Named, Error> {
        self.plan(|planner| planner.plan_returning(table, alias, items))
    }

    /// Plans what is read at once: over what the open transaction has written, too.
    fn plan_read(&self, plan: impl FnOnce(&Planner<'_>) -> anabranch_sql::Result<Planned>) -> Result<Named, Error> {
        let mut named = self.plan(plan)?;
        self.check_behind(&named.names)?;
        named.planned.plan = self.over_staged(&named.planned.plan)?;
        Ok(named)
    }

    fn plan(&self, plan: impl FnOnce(&Planner<'_>) -> anabranch_sql::Result<Planned>) -> Result<Named, Error> {
        let mut catalog = Planning::new(&self.catalog, self.settings.sharing);
        if let Some(transaction) = self.transaction.as_ref().filter(|transaction| transaction.has_staged()) {
            catalog = catalog.with_written(transaction.written());
        }
        let planned = plan(&Planner::as_of(&catalog, self.options.clock.now_micros()))?;
        Ok(Named { planned, names: catalog.names() })
    }
}

/// The columns that the query's user asked for.
pub(super) fn visible_schema(planned: &Planned) -> SchemaRef {
    let fields = planned.plan.schema.fields().iter().take(planned.visible);
    Arc::new(Schema::new(fields.map(|field| field.as_ref().clone()).collect::<Vec<Field>>()))
}
