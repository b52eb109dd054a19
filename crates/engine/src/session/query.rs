//! SELECT: reading what is maintained, and computing what is not.
//!
//! What is [direct](crate::direct) is answered from an arrangement or from literal rows. Everything
//! else becomes a dataflow for the length of the statement, which shares the arrangements that are
//! there.
//!
//! Law: the answer is as of the last commit, or of the time that AS OF names. A row error in the
//! relation read, or in evaluating the query on a row that takes part in the answer, is the
//! statement's error.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::{Batch, Time, types};
use anabranch_plan::Plan;
use arrow::array::ArrayRef;
use datafusion_expr::sqlparser::ast;

use super::context::Named;
use super::dataflows::Sink;
use super::outcome::{Rows, SourceState};
use super::past::Past;
use super::state::Session;
use crate::catalog::{Arranged, Retain, kind_name};
use crate::cluster::{Peek, WantedKeys};
use crate::direct::{Base, Direct, constant, evaluate_stages, rows_or_error};
use crate::error::Error;
use crate::evaluate::Asked;
use crate::finish::{WantedRows, finish};
use crate::transaction::as_of_after_writes;

impl Session {
    /// Runs a query and returns its answer, as of a past time if one is given.
    pub(super) fn select(&mut self, query: &ast::Query, as_of: Option<&ast::Expr>) -> Result<Rows, Error> {
        let Named { mut planned, names, .. } = self.plan_query(query)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        let notices = self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let past = match as_of.is_some() && self.has_staged() {
            true => return Err(as_of_after_writes()),
            false => self.past(as_of, &planned.plan)?,
        };
        let batches = self.collect_as_of(&planned.plan, past.as_ref())?;
        let schema = planned.columns();
        let wanted =
            WantedRows { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        let mut rows = Rows::new(schema.clone(), finish(&schema, &batches, &wanted)?);
        rows.notices = notices;
        self.count_results(rows)
    }

    /// The plan's rows with their multiplicities, as of the last commit.
    pub(super) fn collect(&mut self, plan: &Arc<Plan>) -> Result<Vec<Batch>, Error> {
        self.collect_as_of(plan, None)
    }

    fn collect_as_of(&mut self, plan: &Arc<Plan>, past: Option<&Past>) -> Result<Vec<Batch>, Error> {
        let behind = match past {
            Some(_) => None,
            None => {
                self.note_plan(plan)?;
                self.past_of_transaction(plan)?
            }
        };
        let past = past.or(behind.as_ref());
        if past.is_none() {
            self.tick_before_reading(&plan.relations())?;
        }
        let at = past.map_or(self.timeline.last(), |past| past.at);
        match self.direct(plan, past) {
            Some(direct) => self.collect_direct(direct, at),
            None => self.collect_by_dataflow(plan, past, at),
        }
    }

    /// The way to answer `plan` without a dataflow, if there is one.
    pub(super) fn direct<'a>(&self, plan: &'a Arc<Plan>, past: Option<&Past>) -> Option<Direct<'a>> {
        let is_readable = |arranged: &Arranged| past.is_none_or(|past| past.is_readable(arranged.arrangement));
        Direct::of(plan, |name| self.catalog.find(name), is_readable)
    }

    fn collect_direct(&mut self, direct: Direct<'_>, at: Time) -> Result<Vec<Batch>, Error> {
        let read = match direct.base {
            Base::Constant(plan, rows) => {
                return evaluate_stages(&direct.stages, vec![constant(plan, rows)?], Some(&self.asked()));
            }
            Base::Arrangement(read) => read,
        };
        let peek = Peek { arrangement: read.arranged.arrangement, at, rows: read.rows.clone() };
        let result = match self.answered() {
            Some(result) => result,
            None => self.ask(peek, vec![read.relation.clone()], None)?,
        };
        let rows = rows_or_error(result)?;
        self.interrupt.check()?;
        read.evaluate(&direct.stages, rows, &self.asked())
    }

    /// The limits of the client's questions.
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked { account: &self.client.account, interrupt: &self.interrupt }
    }

    fn collect_by_dataflow(&mut self, plan: &Arc<Plan>, past: Option<&Past>, at: Time) -> Result<Vec<Batch>, Error> {
        if let Some(result) = self.answered() {
            return rows_or_error(result);
        }
        let all_columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
        let (dataflow, arrangements) = self.install_as_of("a select", plan, &[all_columns], Sink::Answer, past)?;
        let peek = Peek { arrangement: arrangements[0], at, rows: WantedKeys::All };
        rows_or_error(self.ask(peek, plan.relations(), Some(dataflow))?)
    }

    /// The single value of a query without relations.
    pub(super) fn evaluate_constant(&self, text: &str) -> Result<ArrayRef, Error> {
        let query = anabranch_sql::parse::parse_query(text)?;
        let plan = self.plan_constant(&query)?.planned.plan;
        let Some(Direct { stages, base: Base::Constant(literal, rows) }) = self.direct(&plan, None) else {
            return Err(Error::invalid(format!("a value without relations is expected, not {text}")));
        };
        let batches = evaluate_stages(&stages, vec![constant(literal, rows)?], Some(&self.asked()))?;
        let batch = batches.first().ok_or_else(|| Error::internal(format!("{text} has no row")))?;
        Ok(types::widened(batch.column(0)))
    }

    /// Refuses to read relations that keep no rows.
    pub(super) fn check_kept(&self, plan: &Plan) -> Result<(), Error> {
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            if object.retain != Retain::All && !object.is_readable() {
                let kind = kind_name(object.kind);
                return Err(Error::invalid(format!("{kind} \"{name}\" keeps no rows to read (retain = 'none')"))
                    .with_hint("Read a materialized view over it, or create an index on it before its rows come."));
            }
        }
        Ok(())
    }

    /// Waits for the bounded, unpaced sources behind the relations, if the session is set to, and
    /// tells which failed.
    ///
    /// # Errors
    /// When the session waits for sources, a failed one is an error: the answer cannot be had.
    pub(super) fn settle_sources(&mut self, names: &BTreeSet<String>) -> Result<Vec<String>, Error> {
        self.keep_sources(names)?;
        let sources = self.catalog.sources_behind(names);
        if self.client.wait_for_sources {
            self.read_to_end(&sources)?;
        }
        let mut notices = Vec::new();
        for status in self.pump.statuses().into_iter().filter(|status| sources.contains(&status.name)) {
            let SourceState::Failed(message) = &status.state else { continue };
            let text = format!("source \"{}\" failed: {message}", status.name);
            if self.client.wait_for_sources {
                return Err(Error::data(text)
                    .with_detail(format!("{} rows were read before.", status.rows))
                    .with_hint(
                        "Repair the source and create it again, or SET wait_for_sources = off to query what was read.",
                    ));
            }
            notices.push(text);
        }
        Ok(notices)
    }
}
