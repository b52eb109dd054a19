//! What a connection does on its own thread: planning, and answering what is direct.
//!
//! Law: a statement means the same wherever it is planned: the plan is made with the catalog of the
//! version that the engine has noted ([`Latest`](crate::session::Latest)), and the engine takes it
//! only at that version. An answer is as of a commit that was the last one at some moment after the
//! statement began, and is given once that commit lasts; so every commit that a client was told of
//! before is in it.
//!
//! What is answered here: queries that are [direct](crate::direct), over relations that no source
//! and no clock stands behind, outside transactions, from arrangements that workers publish
//! ([`Publication`](crate::cluster::Publication)). Where a worker is behind, the connection waits
//! for [`WAIT_MAX`]; then the engine answers, as it answers everything else, and as it tells what
//! is wrong with a statement.
//!
//! Cost: a look-up takes no turn of the engine or of a worker.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_batch::Batch;
use anabranch_sql::output::shown_schema;
use anabranch_sql::statement::Statement;
use anabranch_sql::{Parsed, Planner};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::connection::Connection;
use crate::cluster::{ArrangementId, PeekResult, Shown, WantedKeys};
use crate::contained::contained;
use crate::direct::{Base, Direct, rows_or_error};
use crate::error::Error;
use crate::evaluate::Asked;
use crate::finish::{WantedRows, finish};
use crate::prepared::Prepared;
use crate::session::parameters::given_fields;
use crate::session::{
    BoundParameters, CatalogFacts, EngineMoment, Named, PlanContext, Plans, Role, Rows, command_tag, counted,
};

/// How long a read waits for workers to publish the last commit.
const WAIT_MAX: Duration = Duration::from_millis(2);
/// Rows read between two looks at the interrupt.
const ROWS_PER_LOOK: usize = 1 << 15;

/// What has become of a statement on this thread.
pub(super) enum Here {
    Answered(Rows),
    /// The engine is to run it, with the plan that was made, if one was.
    Planned(BoundParameters),
}

/// Arrangements at the time that is read.
struct PublishedShards {
    shards: Vec<Arc<Shown>>,
    moment: EngineMoment,
}

impl Connection {
    /// Plans a statement, and answers it if that can be done here.
    ///
    /// # Errors
    /// Those of the answer. What is wrong with the statement itself is left to the engine to tell.
    pub(super) fn begin_here(&mut self, statement: &Statement, bound: BoundParameters) -> Result<Here, Error> {
        let moment = self.engine.latest().moment();
        let reads_now = matches!(statement, Statement::Select { as_of: None, .. });
        if reads_now
            && let Some((named, key)) = bound.look_up(moment.version)
            && let Some(rows) = contained("the look-up", || self.look_up(&named, &key, &moment))?
        {
            self.answered_here += 1;
            return Ok(Here::Answered(rows));
        }
        let Some((facts, named)) = self.plan_here(statement, &bound, &moment)? else { return Ok(Here::Planned(bound)) };
        if reads_now && let Some(rows) = contained("the query", || self.answer_here(&facts, &named, &moment))? {
            self.answered_here += 1;
            return Ok(Here::Answered(rows));
        }
        Ok(Here::Planned(bound.given(moment.version, Arc::new(named))))
    }

    /// The answer of a look-up, if it can be had here.
    fn look_up(&self, named: &Named, key: &[ArrayRef], moment: &EngineMoment) -> Result<Option<Rows>, Error> {
        let Named { planned, visible, look_up: Some(look_up), .. } = named else { return Ok(None) };
        let account = {
            let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            if client.transaction.is_some() || client.temporary.is_some() || !client.files.is_empty() {
                return Ok(None);
            }
            client.account.clone()
        };
        let Some(found) = self.find_published(look_up.arrangement, moment)? else { return Ok(None) };
        let rows = rows_or_error(self.read(&found, &WantedKeys::Keys(key.to_vec()))?)?;
        let rows: Vec<Batch> = rows.iter().map(|batch| batch.project(&look_up.columns)).collect();
        let wanted =
            WantedRows { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        let rows = Rows::new(Arc::clone(visible), finish(visible, &rows, &wanted)?);
        let Ok(rows) = counted(&account, rows) else { return Ok(None) };
        found.moment.receipt.wait()?;
        Ok(Some(rows))
    }

    /// The plan of a statement's rows, with the catalog that it was made with; `None` where the
    /// client has something of its own that the statement may mean, and where planning fails.
    fn plan_here(
        &self,
        statement: &Statement,
        bound: &BoundParameters,
        moment: &EngineMoment,
    ) -> Result<Option<(Arc<CatalogFacts>, Named)>, Error> {
        let plan: &dyn Fn(&Planner<'_>) -> _ = match statement {
            Statement::Select { query, .. } => &|planner| planner.plan_query(query),
            Statement::Insert(insert) => &|planner| planner.plan_insert(insert),
            Statement::Update(update) => &|planner| planner.plan_update(update),
            Statement::Delete(delete) => &|planner| planner.plan_delete(delete),
            _ => return Ok(None),
        };
        let Some(facts) = self.facts(moment.version)? else { return Ok(None) };
        let Some(context) = self.context(&facts) else { return Ok(None) };
        let role = if let Statement::Insert(_) = statement { Role::Inserted } else { Role::Rows };
        let kept = bound.kept_plan(&context, role, plan)?;
        let named = kept.map_or_else(|| bound.plan_now(&context, plan).ok(), Some);
        Ok(named.map(|named| (Arc::clone(&facts), named)))
    }

    /// The catalog of a version; `None` if the engine has another by now.
    fn facts(&self, version: u64) -> Result<Option<Arc<CatalogFacts>>, Error> {
        let latest = self.engine.latest();
        let facts = match latest.facts(version) {
            Some(facts) => facts,
            None => self.engine.call(|session| session.share_catalog())?,
        };
        Ok((facts.catalog.version() == version).then_some(facts))
    }

    /// What this client's plans depend on; `None` where the client has relations of its own.
    fn context<'a>(&self, facts: &'a CatalogFacts) -> Option<PlanContext<'a>> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let has_written = client.transaction.as_ref().is_some_and(|transaction| transaction.has_staged());
        if has_written || client.temporary.is_some() || !client.files.is_empty() {
            return None;
        }
        Some(PlanContext {
            catalog: &facts.catalog,
            sharing: facts.sharing,
            own_schema: None,
            written: BTreeSet::new(),
            given: Arc::clone(&client.given),
            settings: client.settings(),
            locks: Arc::clone(&client.locks),
            recursion_limit: client.recursion_limit,
            now_micros: self.engine.latest().now_micros(),
        })
    }

    /// The answer of a plan, if it can be had here.
    fn answer_here(&self, facts: &CatalogFacts, named: &Named, moment: &EngineMoment) -> Result<Option<Rows>, Error> {
        let Named { planned, visible, .. } = named;
        let find = |name: &str| facts.catalog.find(name).filter(|object| object.is_readable());
        let Some(direct) = Direct::of(&planned.plan, find, |_| true) else { return Ok(None) };
        let Base::Arrangement(read) = &direct.base else { return Ok(None) };
        if !named.is_steady || self.is_in_transaction() {
            return Ok(None);
        }
        let Some(found) = self.find_published(read.arranged.arrangement, moment)? else { return Ok(None) };
        let account = self.client.lock().unwrap_or_else(PoisonError::into_inner).account.clone();
        let asked = Asked { account: &account, interrupt: &self.interrupt };
        let rows = self.timed(|| {
            let found = rows_or_error(self.read(&found, &read.rows)?)?;
            read.evaluate(&direct.stages, found, &asked)
        })?;
        let wanted =
            WantedRows { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        let rows = Rows::new(Arc::clone(visible), finish(visible, &rows, &wanted)?);
        // (Where there is no room, the engine says what holds it.)
        let Ok(rows) = counted(&account, rows) else { return Ok(None) };
        found.moment.receipt.wait()?;
        Ok(Some(rows))
    }

    /// What is published of an arrangement, all of it readable as of the last commit. One that is
    /// not published is from now on.
    fn find_published(
        &self,
        arrangement: ArrangementId,
        moment: &EngineMoment,
    ) -> Result<Option<PublishedShards>, Error> {
        let latest = self.engine.latest();
        let Some(publication) = latest.publication(arrangement) else {
            self.engine.tell(move |session| session.publish_arrangement(arrangement))?;
            return Ok(None);
        };
        let deadline = Instant::now() + WAIT_MAX;
        let mut moment = moment.clone();
        loop {
            let Some(shards) = publication.read(moment.time, deadline) else { return Ok(None) };
            if shards.iter().all(|shard| shard.since <= moment.time) {
                return Ok(Some(PublishedShards { shards, moment }));
            }
            // History went on while the shards were gathered, and so did the last commit.
            let later = latest.moment();
            if later.version != moment.version || later.time <= moment.time {
                return Ok(None);
            }
            moment = later;
        }
    }

    fn read(&self, found: &PublishedShards, wanted: &WantedKeys) -> Result<PeekResult, Error> {
        let at = found.moment.time;
        let parts = found.shards.iter().map(|shard| {
            let (mut rows, mut batches) = (shard.rows(wanted, at), Vec::new());
            while let Some(portion) = rows.next_portion(ROWS_PER_LOOK) {
                batches.extend(portion);
                self.interrupt.check()?;
            }
            Ok(PeekResult { batches, errors: shard.errors(at) })
        });
        Ok(PeekResult::of_parts(parts.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Works under the client's `statement_timeout`.
    fn timed<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let timeout = self.client.lock().unwrap_or_else(PoisonError::into_inner).variables.statement_timeout();
        let is_inner = self.interrupt.limit(timeout);
        let result = work();
        if !is_inner {
            self.interrupt.unlimit();
        }
        result
    }

    fn is_in_transaction(&self) -> bool {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).transaction.is_some()
    }

    /// Types and plans a query, for values that come later; `None` for what the engine is to
    /// prepare, which also tells what is wrong with it.
    pub(super) fn prepare_here(
        &self,
        text: &Arc<str>,
        statement: &Arc<Parsed>,
        given: &[Option<DataType>],
    ) -> Result<Option<(u64, Prepared)>, Error> {
        let Statement::Select { query, .. } = &statement.statement else { return Ok(None) };
        let version = self.engine.latest().moment().version;
        let Some(facts) = self.facts(version)? else { return Ok(None) };
        let Some(context) = self.context(&facts) else { return Ok(None) };
        let parameters = match given_fields(statement, given) {
            Some(fields) => fields,
            None => match context.planner(&context.catalog()).parameter_fields(statement, given) {
                Ok(fields) => fields,
                Err(_) => return Ok(None),
            },
        };
        let types: Arc<[DataType]> = parameters.iter().map(|field| field.data_type().clone()).collect();
        let plans = Arc::new(Mutex::new(Plans::default()));
        let bound = BoundParameters::of_types(Arc::clone(&types), Arc::clone(&plans));
        let plan = |planner: &Planner<'_>| planner.plan_query(query);
        let kept = bound.kept_plan(&context, Role::Rows, &plan)?;
        let Some(named) = kept.map_or_else(|| bound.plan_now(&context, &plan).ok(), Some) else { return Ok(None) };
        let columns = Some(shown_schema(&named.visible));
        let tag = command_tag(&statement.statement);
        let (text, statement) = (Arc::clone(text), Arc::clone(statement));
        Ok(Some((version, Prepared { parameters, columns, tag, text, statement, types, plans })))
    }
}
