//! A database whose views are plans that the naive model evaluates: what the engine is compared
//! with.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_datalog::Host;
use anabranch_engine::{Error, Options, RelationInfo, Rows, Session};
use anabranch_plan::Plan;
use anabranch_testing::model::{Inputs, evaluate};
use anabranch_testing::row::{Contents, Row, to_record_batch};
use arrow::array::RecordBatch;

/// Tables are those of a session, views are evaluated from scratch whenever they are read.
pub struct ModelHost {
    session: Session,
    views: BTreeMap<String, Arc<Plan>>,
}

impl ModelHost {
    pub fn new() -> ModelHost {
        ModelHost { session: session(), views: BTreeMap::new() }
    }

    fn contents(&mut self, relation: &str) -> Result<Contents, Error> {
        if let Some(plan) = self.views.get(relation).cloned() {
            return self.evaluated(&plan);
        }
        let rows = self.session.query(&format!("SELECT * FROM \"{relation}\""))?;
        let mut contents = Contents::new();
        for batch in &rows.batches {
            (0..batch.num_rows()).for_each(|row| contents.add(Row::of_columns(batch.columns(), row), 1));
        }
        Ok(contents)
    }

    fn evaluated(&mut self, plan: &Arc<Plan>) -> Result<Contents, Error> {
        let mut inputs = Inputs::new();
        for relation in plan.relations() {
            let contents = self.contents(&relation)?;
            inputs.insert(relation, contents);
        }
        let answer = evaluate(plan, &inputs);
        match answer.errors.keys().next() {
            Some(message) => Err(Error::data(message.clone())),
            None => Ok(answer.rows),
        }
    }
}

impl Host for ModelHost {
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        Ok(self.session.relations())
    }

    fn run_sql(&mut self, sql: &str) -> Result<(), Error> {
        match sql.strip_prefix("DROP MATERIALIZED VIEW \"") {
            Some(name) => {
                self.views.remove(name.trim_end_matches('"'));
                Ok(())
            }
            None => self.session.execute(sql).map(drop),
        }
    }

    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        self.session.insert(table, rows).map(drop)
    }

    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, _: &str) -> Result<(), Error> {
        self.views.insert(name.to_owned(), Arc::clone(plan));
        Ok(())
    }

    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        let contents = self.evaluated(plan)?;
        let rows: Vec<&Row> = contents.iter().map(|(row, _)| row).collect();
        let schema = plan.arrow_schema();
        let batch = to_record_batch(&schema, &rows);
        Ok(Rows::received(schema, vec![batch], vec![]))
    }
}

/// A database.
pub fn session() -> Session {
    Session::new(Options::default()).unwrap()
}
