//! Our side of queries that stand over tables of pairs: one session, on the caller's thread.

use std::sync::Arc;

use anabranch_engine::{Error, Options, Session};
use anabranch_peer::standing::{CHECK_MODULUS, Pair, Standing};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// Tables of pairs `(a, b)`, and views that are kept current over them.
pub struct Tables {
    pub session: Session,
    relations: Vec<&'static str>,
    views: Vec<String>,
    schema: SchemaRef,
}

/// A failure of the engine ends the run.
const ACCEPTED: &str = "the engine takes rows of the declared types";

impl Tables {
    /// Makes the tables.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn new(relations: &[&'static str]) -> Result<Tables, Error> {
        let mut session = Session::new(Options { workers: 0, ..Options::default() })?;
        for relation in relations {
            session.execute(&format!("CREATE TABLE {relation} (a bigint NOT NULL, b bigint NOT NULL)"))?;
        }
        let field = |name: &str| Field::new(name, DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
        Ok(Tables { session, relations: relations.to_vec(), views: Vec::new(), schema })
    }

    /// Makes a view.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn keep(&mut self, name: &str, query: &str) -> Result<(), Error> {
        self.session.execute(&format!("CREATE MATERIALIZED VIEW {name} AS {query}"))?;
        self.views.push(name.to_owned());
        Ok(())
    }
}

impl Standing for Tables {
    fn change(&mut self, relation: usize, rows: &[Pair], diff: i64) {
        let column = |cell: fn(&Pair) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| cell(row) as i64)))
        };
        let columns = vec![column(|row| row.0), column(|row| row.1)];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("columns fit their schema");
        let diffs = (diff != 1).then(|| vec![diff; rows.len()]);
        self.session.ingest(self.relations[relation], &batch, None, diffs.as_deref()).expect(ACCEPTED);
    }

    fn commit(&mut self) {
        self.session.commit().expect(ACCEPTED);
        self.session.wait().expect(ACCEPTED);
    }

    fn rows(&mut self) -> i64 {
        self.sum_of("count(*)")
    }

    fn checksum(&mut self) -> i64 {
        self.sum_of(&format!("coalesce(sum(a % {CHECK_MODULUS} * 31 + b % {CHECK_MODULUS}), 0)::bigint"))
    }
}

impl Tables {
    /// The sum of an aggregate over all views.
    fn sum_of(&mut self, aggregate: &str) -> i64 {
        let of_view = |view: &String| {
            let rows = self.session.query(&format!("SELECT {aggregate} FROM {view}")).expect("the view has no errors");
            let sums = rows.batches[0].column(0);
            sums.as_any().downcast_ref::<Int64Array>().expect("the aggregate is a bigint").value(0)
        };
        self.views.iter().map(of_view).sum()
    }
}
