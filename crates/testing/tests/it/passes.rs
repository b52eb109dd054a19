//! Every rewrite of the planner is needed: its example goes wrong when the rewrite is left out.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anabranch_plan::explain::explain;
use anabranch_sql::passes::{Loss, PassEntry, TABLES, described};
use anabranch_sql::statement::{ObjectKind, Statement};
use anabranch_sql::{Catalog, Planned, Planner, Relation, parse, planned_columns};
use anabranch_testing::model::{Inputs, evaluate};
use arrow::datatypes::Schema;

/// The tables of the examples.
struct Tables {
    relations: BTreeMap<String, Relation>,
    rows: Inputs,
}

impl Catalog for Tables {
    fn relation(&self, name: &str) -> Option<Relation> {
        self.relations.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.relations.keys().cloned().collect()
    }
}

impl Tables {
    fn new() -> Tables {
        let mut tables = Tables { relations: BTreeMap::new(), rows: Inputs::new() };
        for parsed in parse(TABLES).expect("the script is SQL") {
            match parsed.statement {
                Statement::CreateTable(table) => {
                    let relation = Relation {
                        name: table.name.clone(),
                        kind: ObjectKind::Table,
                        schema: planned_columns(&Arc::new(Schema::new(table.columns))),
                        primary_key: table.primary_key,
                        watermark: None,
                        watermark_relation: None,
                        view_query: None,
                    };
                    tables.relations.insert(table.name, relation);
                }
                Statement::Insert(insert) => {
                    let planned = Planner::as_of(&tables, 0).plan_insert(&insert).expect("the rows fit the table");
                    let inserted = evaluate(&planned.plan, &Inputs::new());
                    assert!(inserted.errors.is_empty(), "{:?}", inserted.errors);
                    tables.rows.insert(insert.table, inserted.rows);
                }
                other => panic!("not for a catalog: {other:?}"),
            }
        }
        tables
    }

    fn plan(&self, text: &str, without: Option<&'static str>) -> Result<Planned, String> {
        let Some(Statement::Select { query, .. }) =
            parse(text).map_err(|error| error.to_string())?.pop().map(|p| p.statement)
        else {
            panic!("not a query: {text}");
        };
        let planner = Planner::as_of(self, 0);
        let planner = match without {
            Some(pass) => planner.without(pass),
            None => planner,
        };
        planner.plan_query(&query).map_err(|error| error.to_string())
    }

    /// The answer of a query: its rows with their types and order, or why there is none.
    fn answer(&self, planned: &Planned) -> Result<String, String> {
        let answer = catch_unwind(AssertUnwindSafe(|| evaluate(&planned.plan, &self.rows)));
        let answer = answer.map_err(|_| "the plan cannot be evaluated".to_string())?;
        if !answer.errors.is_empty() {
            return Err(format!("{:?}", answer.errors));
        }
        let types: Vec<String> =
            planned.plan.schema.fields().iter().map(|field| field.data_type().to_string()).collect();
        let rows: Vec<String> = answer.rows.iter().map(|(row, n)| format!("{n} x {row:?}")).collect();
        Ok(format!("{}\n{}\n{:?}", types.join(", "), rows.join("\n"), planned.finish))
    }

    /// What is wrong with an entry; nothing if its example fails without it as the entry says.
    fn problem(&self, pass: &PassEntry) -> Option<String> {
        let answer = |without| self.plan(pass.example, without).and_then(|planned| self.answer(&planned));
        let (with, without) = (answer(None), answer(Some(pass.name)));
        let is_shown = match pass.without {
            Loss::WrongAnswer => with.is_ok() && without.is_ok() && with != without,
            Loss::Failure => with.is_ok() && without.is_err(),
            Loss::Refusal => with.is_err() && with != without,
            Loss::Cost => {
                with.is_ok() && with == without && self.explained(pass, None) != self.explained(pass, Some(pass.name))
            }
        };
        let shown = |answer| match answer {
            Ok(rows) => rows,
            Err(error) => format!("error: {error}"),
        };
        (!is_shown).then(|| {
            format!(
                "{} ({:?})\n  {}\n-- with it:\n{}\n-- without it:\n{}\n",
                pass.name,
                pass.without,
                pass.example,
                shown(with),
                shown(without)
            )
        })
    }

    fn explained(&self, pass: &PassEntry, without: Option<&'static str>) -> Option<String> {
        self.plan(pass.example, without).ok().map(|planned| explain(&planned.plan, &|_| None))
    }
}

#[test]
fn every_rewrite_has_an_example_that_fails_without_it() {
    let tables = Tables::new();
    let problems: Vec<String> = described().iter().filter_map(|pass| tables.problem(pass)).collect();
    assert!(
        problems.is_empty(),
        "{} entries are not needed by their examples:\n\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn every_rewrite_has_a_name_of_its_own() {
    let mut names: Vec<&str> = described().iter().map(|pass| pass.name).collect();
    names.sort_unstable();
    let n_names = names.len();
    names.dedup();
    assert_eq!(names.len(), n_names);
}
