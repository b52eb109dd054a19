//! Statements planned against the session's catalog.

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_sql::statement::{CreateView, Delete, Explain, Insert, Update};
use anabranch_sql::{Parameters, Planner, Returning};
use datafusion_expr::sqlparser::ast;

use super::context::{Named, PlanContext, Planning};
use super::state::Session;
use super::state::bound::Role;
use super::system::check_standing;
use crate::error::Error;

impl Session {
    /// Plans a query whose answer is wanted once.
    pub(super) fn plan_query(&mut self, query: &ast::Query) -> Result<Named, Error> {
        self.plan_read(Role::Rows, &|planner| planner.plan_query(query))
    }

    /// Plans what EXPLAIN shows.
    pub(super) fn plan_explained(&mut self, explain: &Explain) -> Result<Named, Error> {
        self.plan_read(Role::Rows, &|planner| planner.plan_explained(explain))
    }

    /// Plans a query that stands: a top-level LIMIT is part of it.
    pub(super) fn plan_view(&self, query: &ast::Query) -> Result<Named, Error> {
        standing(self.plan_now(&|planner| planner.plan_view(query))?)
    }

    /// Plans the query of a view that is being created.
    pub(super) fn plan_created(&self, create: &CreateView) -> Result<Named, Error> {
        standing(self.plan(Parameters::None, &|planner| planner.plan_create_view(create))?)
    }

    /// The plan of a query before and after each rewrite.
    pub(super) fn plan_in_steps(&self, explain: &Explain) -> Result<Vec<(&'static str, Arc<Plan>)>, Error> {
        let context = self.plan_context();
        let catalog = context.catalog();
        Ok(context.planner(&catalog).plan_in_steps(explain)?)
    }

    /// The plan of a query before rewrites.
    pub(super) fn plan_unrewritten(&self, query: &ast::Query) -> Result<anabranch_sql::Planned, Error> {
        let context = self.plan_context();
        let catalog = context.catalog();
        Ok(context.planner(&catalog).plan_unrewritten(query)?)
    }

    /// Plans the rows of an INSERT, as the table's columns.
    pub(super) fn plan_insert(&mut self, insert: &Insert) -> Result<Named, Error> {
        self.plan_read(Role::Inserted, &|planner| planner.plan_insert(insert))
    }

    /// Plans the rows that an UPDATE changes: old columns, then new ones.
    pub(super) fn plan_update(&mut self, update: &Update) -> Result<Named, Error> {
        self.plan_read(Role::Rows, &|planner| planner.plan_update(update))
    }

    /// Plans the rows that a DELETE takes away.
    pub(super) fn plan_delete(&mut self, delete: &Delete) -> Result<Named, Error> {
        self.plan_read(Role::Rows, &|planner| planner.plan_delete(delete))
    }

    /// Plans the rows that a DELETE takes away, joined with those of USING.
    pub(super) fn plan_delete_joined(&mut self, delete: &Delete) -> Result<Named, Error> {
        self.plan_read(Role::Joined, &|planner| planner.plan_delete_joined(delete))
    }

    /// Plans the rows that ON CONFLICT DO UPDATE changes: old columns, then new ones. Rows of the
    /// open transaction have to come into it.
    pub(super) fn plan_conflict(&mut self, insert: &Insert) -> Result<Named, Error> {
        self.plan_unstaged(Role::Conflict, &|planner| planner.plan_conflict(insert))
    }

    /// Plans the items of RETURNING.
    pub(super) fn plan_returned(&self, returning: &Returning<'_>) -> Result<Named, Error> {
        let plan = |planner: &Planner<'_>| planner.plan_returning(returning);
        match self.kept_plan(Role::Returned, &plan)? {
            Some(named) => Ok(named),
            None => self.plan_now(&plan),
        }
    }

    /// Plans the value of an expression without relations.
    pub(super) fn plan_constant(&self, query: &ast::Query) -> Result<Named, Error> {
        self.plan_now(&|planner| planner.plan_query(query))
    }

    /// Plans what is read at once: over what the open transaction has written, too.
    fn plan_read(&mut self, role: Role, plan: Planning<'_>) -> Result<Named, Error> {
        let mut named = self.plan_unstaged(role, plan)?;
        named.planned.plan = self.over_staged(&named.planned.plan)?;
        Ok(named)
    }

    fn plan_unstaged(&mut self, role: Role, plan: Planning<'_>) -> Result<Named, Error> {
        let kept = self.kept_plan(role, plan)?;
        let mut named = kept.map_or_else(|| self.plan_now(plan), Ok)?;
        named.planned.plan = self.with_system_rows(&named.planned.plan)?;
        self.check_behind(&named.names)?;
        Ok(named)
    }

    /// A plan with these parameters, as of now.
    pub(super) fn plan(&self, parameters: Parameters, plan: Planning<'_>) -> Result<Named, Error> {
        self.plan_context().plan(parameters, plan)
    }

    /// A plan with these parameters that holds at any moment.
    pub(super) fn plan_steady(&self, parameters: Parameters, plan: Planning<'_>) -> Result<Named, Error> {
        self.plan_context().plan_steady(parameters, plan)
    }

    /// What the plan of a statement of the open transaction depends on.
    pub(super) fn plan_context(&self) -> PlanContext<'_> {
        let transaction = self.client.transaction.as_ref().filter(|transaction| transaction.has_staged());
        PlanContext {
            catalog: &self.catalog,
            sharing: self.settings.sharing,
            own_schema: self.client.temporary_schema(),
            written: transaction.map(|transaction| transaction.written()).unwrap_or_default(),
            given: Arc::clone(&self.client.given),
            settings: self.client.settings(),
            locks: Arc::clone(&self.client.locks),
            recursion_limit: self.client.recursion_limit,
            now_micros: self.options.clock.now_micros(),
        }
    }
}

/// A plan of what stands: over relations whose changes are followed.
fn standing(named: Named) -> Result<Named, Error> {
    check_standing(&named.planned.plan)?;
    Ok(named)
}
