//! Views and answers of plans that another front end has made.
//!
//! A plan names relations of the catalog and is closed: it has no variable of a loop around it. Its
//! author has put its joins in order, so of the rewrites those are made that look at indexes.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::rewrite::{Facts, REWRITES};
use anabranch_sql::catalog::Catalog as _;
use anabranch_sql::statement::ObjectKind;

use super::outcome::{Outcome, Rows};
use super::state::Session;
use crate::catalog::{Object, Planning, kind_name};
use crate::coerce::planned_schema;
use crate::error::Error;
use crate::finish::{WantedRows, finish};

/// Rewrites that would order joins anew.
const LEFT_OUT: &str = "join order";

impl Session {
    /// Creates a materialized view of a plan. Its columns are those of the plan's schema, which
    /// have names of their own. `definition` says for people what the view is.
    ///
    /// # Errors
    /// `Invalid` when the name is taken, when a relation that the plan scans does not exist or is a
    /// plain view, and in a session whose changes are recorded: a plan has no text to record.
    pub fn create_plan_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.begin_statement()?;
        self.check_made_here(name, "a plan")?;
        let reads = self.check_scans(plan)?;
        let schema = planned_schema("materialized view", name, &fields(plan))?;
        let plan = self.with_indexes(plan, true);
        let mut object =
            Object { reads, ..Object::new(name, ObjectKind::MaterializedView, schema, definition.to_owned()) };
        let key = (0..object.schema.fields().len()).collect();
        object.maintained = Some(self.maintain(&object, &plan, key)?);
        self.catalog.add(object);
        Ok(())
    }

    /// Refuses to make a view that has no text where that cannot be.
    pub(super) fn check_made_here(&self, name: &str, of: &str) -> Result<(), Error> {
        if self.client.transaction.is_some() {
            return Err(Error::invalid(format!("a view of {of} cannot be created inside a transaction"))
                .with_sqlstate("25001")
                .with_hint("COMMIT or ROLLBACK first; the view commits by itself."));
        }
        if self.recorder.is_some() {
            return Err(Error::invalid(format!("materialized view \"{name}\" of {of} cannot be kept"))
                .with_detail("Databases with a data directory keep the statements that views are made of.")
                .with_hint("Create the view in a database without one."));
        }
        if let Some(kind) = self.catalog.kind_of(name) {
            return Err(Error::invalid(format!("{} \"{name}\" already exists", kind_name(kind)))
                .with_hint("Choose another name, or DROP it first."));
        }
        Ok(())
    }

    /// The rows of a plan, as of the last commit.
    ///
    /// # Errors
    /// As [`create_plan_view`](Self::create_plan_view) for what the plan scans; `Data` when a row
    /// of the answer cannot be computed.
    pub fn query_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.begin_statement()?;
        let names = self.check_scans(plan)?;
        let notices = self.settle_sources(&names)?;
        self.check_kept(plan)?;
        self.check_behind(&names)?;
        let plan = self.over_staged(&self.with_indexes(plan, false))?;
        let batches = self.collect(&plan)?;
        let schema = plan.arrow_schema();
        let mut rows =
            Rows::new(schema.clone(), finish(&schema, &batches, &WantedRows { order: &[], offset: 0, limit: None })?);
        rows.notices = notices;
        Ok(rows)
    }

    /// Drops a view that [`create_plan_view`](Self::create_plan_view) has made, if there is one.
    ///
    /// # Errors
    /// `Invalid` when others depend on it.
    pub fn drop_plan_view(&mut self, name: &str) -> Result<(), Error> {
        let quoted = name.replace('"', "\"\"");
        let dropped = self.execute(&format!("DROP MATERIALIZED VIEW IF EXISTS \"{quoted}\""));
        dropped.map(|_: Vec<Outcome>| ())
    }

    /// The relations that a plan scans: each has rows to read.
    fn check_scans(&self, plan: &Plan) -> Result<BTreeSet<String>, Error> {
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            if object.maintained.is_none() {
                return Err(Error::invalid(format!("{} \"{name}\" keeps no rows", kind_name(object.kind)))
                    .with_hint("Make it a materialized view."));
            }
        }
        Ok(plan.relations().into_iter().collect())
    }

    fn with_indexes(&self, plan: &Arc<Plan>, is_standing: bool) -> Arc<Plan> {
        let catalog = Planning::new(&self.catalog, self.settings.sharing);
        let facts = Facts {
            indexes: &|relation, columns| catalog.is_indexed(relation, columns),
            has_key: &|relation, columns| catalog.has_key(relation, columns),
            is_standing,
            is_spread: false,
        };
        let kept = REWRITES.iter().filter(|rewrite| rewrite.name != LEFT_OUT);
        kept.fold(Arc::clone(plan), |plan, rewrite| (rewrite.apply)(&plan, &facts))
    }
}

fn fields(plan: &Plan) -> Vec<arrow::datatypes::Field> {
    plan.schema.fields().iter().map(|field| field.as_ref().clone()).collect()
}
