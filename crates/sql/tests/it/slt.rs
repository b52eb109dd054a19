//! Every statement of `tests/slt` that shall succeed can be planned. (What it yields is checked
//! there.)

use std::path::Path;
use std::sync::Arc;

use anabranch_sql::statement::{CreateTable, LifetimeClause, Rules, Statement};
use anabranch_sql::{Catalog, Planner, SqlError, parse};
use arrow::datatypes::Field;

use crate::support::{NOW, TestCatalog};

/// A record of a sqllogictest file.
struct Record<'a> {
    line_no: usize,
    /// `statement ok`, `query IT rowsort` ..
    head: &'a str,
    sql: String,
}

fn records(text: &str) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((line_no, line)) = lines.next() {
        if !(line.starts_with("statement ") || line.starts_with("query ")) {
            continue;
        }
        let mut sql = String::new();
        while let Some((_, body)) = lines.next_if(|(_, l)| !l.is_empty() && *l != "----") {
            sql.push_str(body);
            sql.push('\n');
        }
        records.push(Record { line_no: line_no + 1, head: line, sql });
    }
    records
}

/// Plans a statement against the catalog, and lets it change the catalog.
fn run(catalog: &mut TestCatalog, sql: &str, shall_fail: bool) -> Result<(), SqlError> {
    for parsed in parse(sql)? {
        let planner = Planner::as_of(catalog, NOW);
        match &parsed.statement {
            Statement::Select { query, .. } => drop(planner.plan_query(query)?),
            Statement::Insert(insert) => drop(planner.plan_insert(insert)?),
            Statement::Delete(delete) => drop(planner.plan_delete(delete)?),
            Statement::Update(update) => drop(planner.plan_update(update)?),
            Statement::Explain(explain) => drop(planner.plan_query(&explain.query)?),
            Statement::Subscribe(subscribe) => drop(planner.plan_view(&subscribe.query)?),
            Statement::CreateView(view) => {
                planner.plan_create_view(view)?;
                catalog.apply(parsed.statement);
            }
            Statement::CreateTable(table) if catalog.relation(&table.name).is_none() => catalog.apply(parsed.statement),
            Statement::CreateTableAs(create) => {
                let planned = planner.plan_query(&create.query)?;
                let fields = planned.plan.arrow_schema();
                let column = |(at, field): (usize, &Arc<Field>)| {
                    let name = create.column_names.get(at).unwrap_or_else(|| field.name());
                    Field::new(name, field.data_type().clone(), true)
                };
                let columns: Vec<Field> =
                    fields.fields().iter().take(planned.visible).enumerate().map(column).collect();
                if !shall_fail {
                    catalog.apply(Statement::CreateTable(CreateTable {
                        like: None,
                        uniques: vec![],
                        name: create.name.clone(),
                        if_not_exists: false,
                        defaults: vec![None; columns.len()],
                        columns,
                        primary_key: vec![],
                        watermark: None,
                        is_append_only: false,
                        options: vec![],
                        rules: Rules::default(),
                        lifetime: LifetimeClause::Lasting,
                    }));
                }
            }
            Statement::Drop(drop) if !shall_fail => drop.names.iter().for_each(|name| catalog.remove(name)),
            _ => {}
        }
    }
    Ok(())
}

/// Files about relations of the system, schemas, altered tables and sequences, which are the
/// engine's.
const LEFT_OUT: [&str; 21] = [
    "advisory_locks.slt",
    "system.slt",
    "closing_windows.slt",
    "compared.slt",
    "definitions.slt",
    "documents.slt",
    "documents_kept.slt",
    "domains.slt",
    "everyday_more.slt",
    "everyday_statements.slt",
    "expression_indexes.slt",
    "kept_types.slt",
    "label_lists.slt",
    "labels.slt",
    "references.slt",
    "refused_before.slt",
    "renamed_labels.slt",
    "sequences.slt",
    "texts_apart.slt",
    "transactional_definitions.slt",
    "types_told.slt",
];

#[test]
fn what_shall_succeed_can_be_planned() {
    let folder = Path::new("../../tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .filter(|path| LEFT_OUT.iter().all(|left| !path.ends_with(left)))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut failures = String::new();
    let mut n_planned = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut catalog = TestCatalog::default();
        for record in records(&text) {
            let shall_fail = record.head.starts_with("statement error") || record.head.starts_with("query error");
            match run(&mut catalog, &record.sql, shall_fail) {
                Err(error) if !shall_fail => {
                    let name = file.file_name().unwrap().to_string_lossy();
                    failures += &format!("{name}:{}: {}{}\n\n", record.line_no, record.sql, error.render(&record.sql));
                }
                _ => n_planned += 1,
            }
        }
    }
    assert!(failures.is_empty(), "{n_planned} were planned, but not:\n{failures}");
}
