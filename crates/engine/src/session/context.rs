//! What a plan depends on beside its text, so that it can be made on any thread.
//!
//! Law: two plans of one text in equal contexts are equal, but for what `now()` means.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use anabranch_batch::Batch;
use anabranch_sql::statement::ObjectKind;
use anabranch_sql::{Parameters, Planned, Planner};
use arrow::datatypes::SchemaRef;

use super::lock_functions::lock_function;
use super::setting_functions::ClientSettings;
use super::state::advisory::ClientLocks;
use crate::catalog::{CLOCK, Catalog, Given, Object, Planning as PlanningCatalog};
use crate::error::Error;
use crate::look_up::LookUp;
use crate::row_maker::RowMaker;
use crate::sharing::Sharing;

/// A plan and the relations that its text names, those inside plain views included. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub planned: Planned,
    /// The columns that the query's user asked for.
    pub visible: SchemaRef,
    pub names: Arc<BTreeSet<String>>,
    /// Whether they change by commits of tables only: no source has to be read first, and no clock
    /// has to go on.
    pub is_steady: bool,
    /// The look-up that it is, if it is one and steady.
    pub look_up: Option<Arc<LookUp>>,
    /// What makes its rows of the values of parameters alone, if anything does.
    pub maker: Option<Arc<RowMaker>>,
    /// The rows, where the maker has made them: the plan is not bound to values then.
    pub rows: Option<Vec<Batch>>,
    /// Functions of the embedding program that it calls.
    pub functions: Arc<BTreeSet<String>>,
}

impl Named {
    fn new(planned: Planned, looked_up: &PlanningCatalog<'_>, catalog: &Catalog) -> Named {
        let (names, functions) = (Arc::new(looked_up.names()), Arc::new(looked_up.functions()));
        let is_table = |object: &Object| object.kind == ObjectKind::Table;
        let changes_by_commits = |name: &String| name != CLOCK && catalog.find(name).is_some_and(is_table);
        let is_steady =
            !looked_up.asks_sequences() && catalog.inputs_behind(names.iter()).iter().all(changes_by_commits);
        let look_up = is_steady.then(|| LookUp::of(&planned.plan, catalog)).flatten().map(Arc::new);
        let visible = planned.columns();
        Named { visible, planned, names, is_steady, look_up, maker: None, rows: None, functions }
    }
}

/// What a plan is made by.
pub(crate) type Planning<'a> = &'a dyn Fn(&Planner<'_>) -> anabranch_sql::Result<Planned>;

/// What plans depend on.
#[derive(Clone, Debug)]
pub(crate) struct PlanContext<'a> {
    pub catalog: &'a Catalog,
    /// Whether plans may rely on indexes.
    pub sharing: Sharing,
    /// The schema of the client's temporary tables.
    pub own_schema: Option<String>,
    /// Tables that the open transaction has written.
    pub written: BTreeSet<String>,
    /// Numbers of sequences that the client was given.
    pub given: Arc<Mutex<Given>>,
    /// The client's settings.
    pub settings: ClientSettings,
    /// The client's part in the advisory locks.
    pub locks: Arc<ClientLocks>,
    pub recursion_limit: Option<NonZeroU64>,
    /// What `now()` means, in microseconds since the epoch.
    pub now_micros: i64,
}

impl PlanContext<'_> {
    /// The catalog as the planner sees it.
    pub fn catalog(&self) -> PlanningCatalog<'_> {
        let catalog = PlanningCatalog::new(self.catalog, self.sharing)
            .with_own_schema(self.own_schema.clone())
            .with_given(Arc::clone(&self.given))
            .with_client_functions({
                let (settings, locks) = (self.settings.clone(), Arc::clone(&self.locks));
                Box::new(move |name| settings.function(name).or_else(|| lock_function(name, &locks)))
            });
        match self.written.is_empty() {
            true => catalog,
            false => catalog.with_written(self.written.clone()),
        }
    }

    /// A planner over that catalog.
    pub fn planner<'a>(&self, catalog: &'a PlanningCatalog<'_>) -> Planner<'a> {
        Planner::as_of(catalog, self.now_micros).with_recursion_limit(self.recursion_limit)
    }

    /// A plan with these parameters, as of now.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn plan(&self, parameters: Parameters, plan: Planning<'_>) -> Result<Named, Error> {
        let catalog = self.catalog();
        let planner = self.planner(&catalog).with_parameters(parameters);
        Ok(Named::new(plan(&planner)?, &catalog, self.catalog))
    }

    /// A plan with these parameters that holds at any moment.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_steady(&self, parameters: Parameters, plan: Planning<'_>) -> Result<Named, Error> {
        let catalog = self.catalog();
        let planner = self.planner(&catalog).with_parameters(parameters).steady();
        Ok(Named::new(plan(&planner)?, &catalog, self.catalog))
    }
}
