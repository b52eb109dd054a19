//! `tests/slt/recursive.slt` answered by the naive model: what the planner makes of recursive
//! queries means what PostgreSQL says, whatever the engine makes of the plans.
//!
//! Views are planned where they are named, so each answer is computed from the tables' contents
//! alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_sql::statement::{ObjectKind, Statement, TransactionStatement};
use anabranch_sql::{Catalog, Planned, Planner, Relation, parse};
use anabranch_testing::model::order::compare_by;
use anabranch_testing::model::{Inputs, evaluate};
use anabranch_testing::row::{Contents, Row, to_record_batch};
use arrow::datatypes::Schema;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, parse_file};

use crate::slt::format::{rows_of, types_of};

/// Tables with their rows, and views.
#[derive(Default)]
struct Model {
    relations: BTreeMap<String, Relation>,
    rows: Inputs,
    /// What the tables held when the open transaction began.
    begun: Option<Inputs>,
}

impl Catalog for Model {
    fn relation(&self, name: &str) -> Option<Relation> {
        self.relations.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.relations.keys().cloned().collect()
    }
}

/// Why a statement has no answer.
#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<anabranch_sql::SqlError> for Failure {
    fn from(error: anabranch_sql::SqlError) -> Failure {
        Failure(error.message)
    }
}

impl Model {
    fn planner(&self) -> Planner<'_> {
        Planner::as_of(self, 0)
    }

    fn evaluated(&self, plan: &Plan) -> Result<Contents, Failure> {
        let answer = evaluate(plan, &self.rows);
        match answer.errors.keys().next() {
            Some(error) => Err(Failure(error.clone())),
            None => Ok(answer.rows),
        }
    }

    fn apply(&mut self, statement: Statement) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let mut n_rows = 0;
        match statement {
            Statement::CreateTable(table) => {
                self.add(&table.name, ObjectKind::Table, Schema::new(table.columns), table.primary_key, None);
            }
            Statement::CreateView(view) => {
                let planned = self.planner().plan_create_view(&view)?;
                let schema = planned.plan.arrow_schema().as_ref().clone();
                self.add(&view.name, ObjectKind::View, schema, vec![], Some(view.query_text));
            }
            Statement::Insert(insert) => {
                let rows = self.evaluated(&self.planner().plan_insert(&insert)?.plan)?;
                let table = self.rows.entry(insert.table).or_default();
                rows.iter().for_each(|(row, n)| table.add(row.clone(), n));
            }
            Statement::Update(update) => {
                let rows = self.evaluated(&self.planner().plan_update(&update)?.plan)?;
                let table = self.rows.entry(update.table).or_default();
                for (row, n) in rows.iter() {
                    let width = row.width() / 2;
                    table.add(row.project(&(0..width).collect::<Vec<_>>()), -n);
                    table.add(row.project(&(width..2 * width).collect::<Vec<_>>()), n);
                }
            }
            Statement::Delete(delete) => {
                let rows = self.evaluated(&self.planner().plan_delete(&delete)?.plan)?;
                let table = self.rows.entry(delete.table).or_default();
                rows.iter().for_each(|(row, n)| table.add(row.clone(), -n));
                n_rows = rows.iter().map(|(_, n)| n).sum();
            }
            Statement::Transaction(TransactionStatement::Begin { .. }) => self.begun = Some(self.rows.clone()),
            Statement::Transaction(TransactionStatement::Commit { .. }) => self.begun = None,
            Statement::Transaction(TransactionStatement::Rollback { .. }) => {
                self.rows = self.begun.take().unwrap_or_else(|| self.rows.clone());
            }
            Statement::Select { query, .. } => return self.answer(&self.planner().plan_query(&query)?),
            other => return Err(Failure(format!("not for the model: {other:?}"))),
        }
        Ok(DBOutput::StatementComplete(n_rows.unsigned_abs()))
    }

    fn add(&mut self, name: &str, kind: ObjectKind, schema: Schema, primary_key: Vec<usize>, query: Option<String>) {
        let relation = Relation {
            name: name.to_string(),
            kind,
            schema: Arc::new(schema),
            primary_key,
            watermark: None,
            watermark_relation: None,
            view_query: query,
        };
        self.relations.insert(name.to_string(), relation);
    }

    fn answer(&self, planned: &Planned) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let contents = self.evaluated(&planned.plan)?;
        let mut rows: Vec<&Row> =
            contents.iter().flat_map(|(row, n)| std::iter::repeat_n(row, usize::try_from(n).unwrap_or(0))).collect();
        rows.sort_by(|a, b| compare_by(&planned.finish.order, a, b));
        let rows: Vec<&Row> =
            rows.into_iter().skip(planned.finish.offset).take(planned.finish.limit.unwrap_or(usize::MAX)).collect();
        let batch = to_record_batch(&planned.plan.arrow_schema(), &rows);
        let batch = batch.project(&(0..planned.visible).collect::<Vec<_>>()).expect("the columns are there");
        Ok(DBOutput::Rows { types: types_of(&batch.schema()), rows: rows_of(&[batch]) })
    }
}

impl DB for Model {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let statement = parse(sql)?.pop().ok_or_else(|| Failure("no statement".to_string()))?;
        self.apply(statement.statement)
    }

    fn engine_name(&self) -> &str {
        "model"
    }
}

#[test]
fn plans_of_recursive_queries_mean_what_postgresql_says() {
    let path = Path::new("../../tests/slt/recursive.slt");
    let records = parse_file::<DefaultColumnType>(&path).expect("the file parses");
    let mut runner = Runner::new(|| async { Ok(Model::default()) });
    let (mut n_queries, mut failures) = (0, Vec::new());
    for record in records {
        n_queries += usize::from(matches!(record, Record::Query { .. }));
        if let Err(error) = runner.run(record) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(n_queries >= 60, "{n_queries} queries");
    assert!(failures.is_empty(), "{} records fail\n\n{}", failures.len(), failures.join("\n----------\n"));
}
