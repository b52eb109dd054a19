//! COPY .. FROM .. WHERE: the rows of the input that enter the table.
//!
//! Law: a row that does not pass is as if the input lacked it: no constraint sees it, and no count.
//! Its values must be of the columns' types all the same.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times, gather};
use anabranch_plan::Plan;
use anabranch_sql::statement::CopyFrom;
use anabranch_sql::table::has_query;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};

use super::commit::target;
use super::state::Session;
use crate::catalog::Object;
use crate::coerce::{Target, check_not_null, coerce};
use crate::direct::evaluate_over;
use crate::error::Error;

/// Rows of the input as the table has them.
pub(super) struct CopiedRows {
    pub rows: Batch,
    /// Their places in the input's block; `None` if all of it passed.
    pub places: Option<Vec<u32>>,
}

impl CopiedRows {
    /// The numbers of the rows in the input, from 1, of a block with `n_before` rows before it.
    pub fn numbers(&self, n_before: usize) -> Vec<u64> {
        let number = |place: usize| (n_before + place) as u64 + 1;
        match &self.places {
            Some(places) => places.iter().map(|place| number(*place as usize)).collect(),
            None => (0..self.rows.len()).map(number).collect(),
        }
    }

    /// The lines of the rows, of a block with those.
    pub fn lines(&self, block: &[u64]) -> Vec<u64> {
        match &self.places {
            Some(places) => places.iter().filter_map(|place| block.get(*place as usize).copied()).collect(),
            None => block.to_vec(),
        }
    }
}

impl Session {
    /// The plan of the condition of a COPY over one row of its table.
    pub(super) fn plan_copied(&self, copy: &CopyFrom) -> Result<Option<Arc<Plan>>, Error> {
        let Some(condition) = &copy.condition else { return Ok(None) };
        if has_query(condition) {
            return Err(Error::invalid("cannot use subquery in COPY FROM WHERE condition")
                .with_sqlstate("0A000")
                .with_hint("Copy into another table, and INSERT what a query finds there."));
        }
        let plan = self.plan_row("COPY FROM WHERE condition", &copy.table, &[format!("({condition})")])?;
        let of_type = plan.as_ref().map(|plan| plan.schema.field(0).data_type());
        match of_type.filter(|of_type| !matches!(of_type, DataType::Boolean | DataType::Null)) {
            Some(of_type) => {
                let of_type = anabranch_sql::sql_name(of_type);
                let message = format!("argument of COPY FROM WHERE must be type boolean, not type {of_type}");
                Err(Error::invalid(message).with_sqlstate("42804"))
            }
            None => Ok(plan),
        }
    }

    /// The rows of a block that pass, as the table has them.
    pub(super) fn fit_passing(
        &self,
        object: &Object,
        fields: &[Field],
        condition: Option<&Arc<Plan>>,
        block: RecordBatch,
    ) -> Result<CopiedRows, Error> {
        let Some(condition) = condition else {
            return Ok(CopiedRows { rows: self.fit_copied(object, fields, block)?, places: None });
        };
        let named = super::copy::named(fields, block)?;
        // (A row that does not pass may have NULL anywhere.)
        let nullable = object.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let nullable = Schema::new(nullable.collect::<Vec<_>>());
        let lenient = Target { schema: &nullable, ..target(object) };
        let columns = coerce(lenient, &named, |idx, n_rows| self.default_column(object, idx, n_rows))?;
        let of = |columns: Vec<_>, n| Batch::with_len(columns.into(), n, Times::Constant(0), Diffs::Constant(1));
        let answers = evaluate_over(condition, vec![of(columns.clone(), named.num_rows())])?;
        let mut places: Vec<u32> = Vec::new();
        if let Some(passes) = Batch::concat(&answers).as_ref().and_then(|answers| answers.column(0).as_boolean_opt()) {
            places.extend((0..).zip(passes.iter()).filter(|(_, passes)| *passes == Some(true)).map(|(row, _)| row));
        }
        let columns = gather::take(&columns, &places).to_vec();
        check_not_null(target(object), &columns)?;
        let columns = self.complete_columns(object, columns, places.len())?;
        Ok(CopiedRows { rows: of(columns, places.len()), places: Some(places) })
    }
}
