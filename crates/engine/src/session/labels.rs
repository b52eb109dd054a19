//! ALTER TYPE .. ADD VALUE and .. RENAME VALUE.
//!
//! Law: columns, tables and what is recorded have the labels of the type. Rows hold labels as
//! texts: those of a label that gets another name change with the type, as one commit. Views go on
//! over what changed; where the text of a view, a default or a condition names the label, or a
//! materialized view goes by the order of labels, the statement is refused.
//!
//! Cost: of another name, a scan of the tables with columns of the type, and writing their rows
//! with the label.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::{Batch, Times};
use anabranch_sql::statement::{
    AddLabel, AlterType, CreateType, LabelChange, Made, ObjectKind, Statement, TypeDefinition,
};
use anabranch_sql::type_marks::{EnumMark, type_within};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::durable::DEFINITION;
use super::index::quoted;
use super::outcome::Outcome;
use super::sealed::SealedFact;
use super::state::Session;
use super::user_types::{names_word, unknown_type};
use crate::catalog::{Object, Retain, TableRules, UserType, kind_name};
use crate::error::Error;

impl Session {
    /// `ALTER TYPE`.
    pub(super) fn alter_type(&mut self, alter: &AlterType) -> Result<Outcome, Error> {
        let Some(known) = self.catalog.types().get(&alter.name).cloned() else { return Err(unknown_type(&alter.name)) };
        match &alter.change {
            LabelChange::Add(add) => self.add_label(known, add),
            LabelChange::Rename { from, to } => self.rename_label(known, from, to),
        }
    }

    fn add_label(&mut self, known: UserType, add: &AddLabel) -> Result<Outcome, Error> {
        let mut made = known.made;
        if let (true, TypeDefinition::Enum(labels)) = (add.is_lenient, &made.definition)
            && labels.contains(&add.label)
        {
            let notice = format!("enum label \"{}\" already exists; nothing was done.", add.label);
            return Ok(Outcome::done_with("ALTER TYPE", notice));
        }
        made.add_label(&add.label, add.beside.as_ref().map(|(is_before, other)| (*is_before, other.as_str())))?;
        self.check_no_order(&made.name, "cannot get labels")?;
        let fact = definition_of(&known.id, &made);
        self.record_definition(vec![], vec![], vec![fact])?;
        self.relabel(made)?;
        Ok(Outcome::done("ALTER TYPE"))
    }

    fn rename_label(&mut self, known: UserType, from: &str, to: &str) -> Result<Outcome, Error> {
        let mut made = known.made;
        made.rename_label(from, to)?;
        let of_type = |object: &&Object| object.schema.fields().iter().any(|field| is_of(field, &made.name));
        let written = |object: &&Object| matches!(object.kind, ObjectKind::Table | ObjectKind::Source);
        let tables: Vec<Object> = self.catalog.objects().filter(of_type).filter(written).cloned().collect();
        self.check_not_named(&tables, &made.name, from)?;
        self.check_no_order(&made.name, "cannot be altered")?;
        let mut changes = Vec::new();
        for table in &tables {
            let (old, new) = self.relabelled_rows(table, &made.name, (from, to))?;
            changes.push((table.name.clone(), old.into_iter().map(|batch| batch.flatten().negate()).chain(new)));
        }
        let time = self.begin_commit();
        self.stage_fact(definition_of(&known.id, &made));
        for (table, batches) in changes {
            for batch in batches.filter(|batch| !batch.is_empty()) {
                let pushed = self.push(&table, batch.with_times(Times::Constant(time)));
                pushed.inspect_err(|_| self.abandon_commit())?;
            }
        }
        self.commit_pending()?;
        self.relabel(made)?;
        Ok(Outcome::done("ALTER TYPE"))
    }

    /// Gives the type, columns and checks the labels that it has now.
    fn relabel(&mut self, made: CreateType) -> Result<(), Error> {
        let TypeDefinition::Enum(labels) = &made.definition else { return Err(unknown_type(&made.name)) };
        let mark = EnumMark::new(&made.name, labels);
        self.catalog.add_type(made.clone(), made.definition());
        // (Transactions that are open have read the labels as they were.)
        self.catalog.touch();
        let names: Vec<String> = self.catalog.objects().map(|object| object.name.clone()).collect();
        for name in names {
            let Some(object) = self.catalog.find_mut(&name) else { continue };
            let Some(schema) = with_labels(&object.schema, &mark) else { continue };
            object.schema = schema;
            object.n_altered += 1;
            let mut declared = object.rules.declared.clone();
            let own = declared
                .checks
                .iter_mut()
                .filter(|check| check.of_type.as_ref().is_some_and(|(of, _)| of.name == made.name));
            own.for_each(|check| check.relabel(&made));
            let counters = object.rules.counters.clone();
            object.rules = TableRules { counters, ..TableRules::new(declared) };
            object.fitting = None;
            if self.catalog.table(&name).is_ok() {
                self.plan_rules(&name)?;
            }
        }
        Ok(())
    }

    /// The rows of a table that have a label, as they are and with its new name.
    fn relabelled_rows(
        &mut self,
        table: &Object,
        type_name: &str,
        (from, to): (&str, &str),
    ) -> Result<(Vec<Batch>, Vec<Batch>), Error> {
        if table.kind != ObjectKind::Table || table.watermark.is_some() || table.is_append_only {
            return Err(unwritable(table));
        }
        if table.retain != Retain::All {
            return Err(unwritable(table));
        }
        let literal = format!("'{}'", from.replace('\'', "''"));
        let columns = table.schema.fields().iter().enumerate().filter(|(_, field)| is_of(field, type_name));
        let columns: Vec<(usize, &Arc<Field>)> = columns.collect();
        let condition = |(_, field): &(usize, &Arc<Field>)| match field.data_type() {
            DataType::List(_) => format!("{literal} = ANY ({})", quoted(field.name())),
            _ => format!("{} = {literal}", quoted(field.name())),
        };
        let conditions: Vec<String> = columns.iter().map(condition).collect();
        let text = format!("SELECT * FROM {} WHERE {}", quoted(&table.name), conditions.join(" OR "));
        let planned = self.plan_constant(&*anabranch_sql::parse::parse_query(&text)?)?.planned;
        let old: Vec<Batch> = self.collect_finished(&planned)?.into_iter().map(Batch::flatten).collect();
        let relabelled = |batch: &Batch| {
            let mut values = batch.columns().to_vec();
            columns.iter().for_each(|(at, _)| values[*at] = relabelled(&values[*at], from, to));
            batch.clone().with_columns(values.into())
        };
        let new = old.iter().map(relabelled).collect();
        Ok((old, new))
    }

    /// Refuses another name for a label that a text names.
    fn check_not_named(&self, tables: &[Object], type_name: &str, label: &str) -> Result<(), Error> {
        let mut texts: Vec<(String, String)> = Vec::new();
        for table in tables {
            let named = |text| (format!("Table \"{}\"", table.name), text);
            texts.extend(texts_about(table, type_name).into_iter().map(named));
            let indexes = self.catalog.indexes_on(&table.name);
            texts.extend(indexes.map(|index| (format!("Index \"{}\"", index.name), index.definition.clone())));
            let readers = self.catalog.dependents(&table.name).into_iter();
            let readers = readers.filter_map(|reader| self.catalog.find(&reader));
            texts.extend(readers.map(|view| (format!("View \"{}\"", view.name), view.definition.clone())));
        }
        let names_type = |view: &&Object| view.query_text.as_ref().is_some_and(|text| names_word(text, type_name));
        let namers = self.catalog.objects().filter(names_type);
        texts.extend(namers.map(|view| (format!("View \"{}\"", view.name), view.definition.clone())));
        let is_domain = |made: &CreateType| matches!(made.definition, TypeDefinition::Domain(_));
        let domains = self.catalog.types().iter().filter(|(_, known)| is_domain(&known.made));
        texts.extend(domains.map(|(name, known)| (format!("Type \"{name}\""), known.made.definition())));
        match texts.into_iter().find(|(_, text)| quotes(text, label)) {
            None => Ok(()),
            Some((what, _)) => {
                let message =
                    format!("label \"{label}\" of type \"{type_name}\" cannot be renamed because it is named");
                Err(Error::invalid(message)
                    .with_sqlstate("2BP01")
                    .with_detail(format!("{what} has '{label}' in its text."))
                    .with_hint(
                        "DROP the view, or ALTER TABLE .. ALTER COLUMN .. DROP DEFAULT, first; \
                         make it anew with the new label.",
                    ))
            }
        }
    }

    /// Refuses where a materialized view goes by the order of the labels, which its plan has as it
    /// was.
    fn check_no_order(&self, name: &str, what: &str) -> Result<(), Error> {
        let of_type = |object: &&Object| object.schema.fields().iter().any(|field| type_within(field) == Some(name));
        let tables = self.catalog.objects().filter(of_type).map(|object| object.name.clone());
        let readers: BTreeSet<String> = tables.flat_map(|table| self.catalog.dependents(&table)).collect();
        let Some(known) = self.catalog.types().get(name) else { return Ok(()) };
        let TypeDefinition::Enum(labels) = &known.made.definition else { return Ok(()) };
        let labels = EnumMark::new(name, labels).labels;
        for view in readers.iter().filter_map(|reader| self.catalog.find(reader)) {
            let statement = anabranch_sql::parse(&view.definition)?.into_iter().next().map(|parsed| parsed.statement);
            let Some(Statement::CreateView(create)) = statement.filter(|_| view.maintained.is_some()) else { continue };
            // (A plan that is written out shows all of its expressions. A text that is the labels
            // by chance is refused as well, and no order is overlooked.)
            let plan = format!("{:?}", self.plan_created(&create)?.planned.plan);
            if plan.contains(&labels) || plan.contains(&labels.escape_debug().to_string()) {
                return Err(Error::invalid(format!("type \"{name}\" {what} because others depend on it"))
                    .with_sqlstate("2BP01")
                    .with_detail(format!("Materialized view \"{}\" goes by the order of its labels.", view.name))
                    .with_hint("DROP the view, alter the type, and CREATE the view anew."));
            }
        }
        Ok(())
    }
}

/// The type as it is recorded.
fn definition_of(id: &crate::catalog::ObjectId, made: &CreateType) -> SealedFact {
    SealedFact { object: *id, name: DEFINITION, value: made.definition().into_bytes() }
}

/// Whether a column, or the elements of its arrays, are of an enumeration.
fn is_of(field: &Field, type_name: &str) -> bool {
    EnumMark::of_elements(field).is_some_and(|known| known.name == type_name)
}

/// Defaults of a table's columns of a type, and what is checked and computed of them.
fn texts_about(table: &Object, type_name: &str) -> Vec<String> {
    let columns = table.schema.fields().iter().enumerate().filter(|(_, field)| is_of(field, type_name));
    let columns: Vec<(usize, &str)> = columns.map(|(at, field)| (at, field.name().as_str())).collect();
    let is_about = |text: &String| columns.iter().any(|(_, name)| names_word(text, name));
    let defaults = columns.iter().filter_map(|(at, _)| table.defaults.get(*at)?.as_ref()).map(ToString::to_string);
    let declared = &table.rules.declared;
    let checks =
        declared.checks.iter().filter(|check| check.of_type.as_ref().is_none_or(|(of, _)| of.name != type_name));
    let checks = checks.map(|check| check.expr.to_string());
    let computed = declared.made.iter().filter_map(|made| match made {
        Made::Computed(expr) => Some(expr.to_string()),
        _ => None,
    });
    defaults.chain(checks.chain(computed).filter(is_about)).collect()
}

/// The columns with the labels of a type, if a column is of it.
fn with_labels(schema: &SchemaRef, mark: &EnumMark) -> Option<SchemaRef> {
    if !schema.fields().iter().any(|field| is_of(field, &mark.name)) {
        return None;
    }
    let fields = schema.fields().iter().map(|field| match is_of(field, &mark.name) {
        true => mark.declare(field.as_ref().clone()),
        false => field.as_ref().clone(),
    });
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// A column of labels, or of arrays of labels, with another name for one.
fn relabelled(column: &ArrayRef, from: &str, to: &str) -> ArrayRef {
    match column.as_list_opt::<i32>() {
        Some(lists) => {
            let DataType::List(element) = column.data_type() else { return Arc::clone(column) };
            let values = relabelled(lists.values(), from, to);
            Arc::new(ListArray::new(element.clone(), lists.offsets().clone(), values, lists.nulls().cloned()))
        }
        None => {
            let labels = column.as_string_view().iter();
            let renamed = |label| if label == from { to } else { label };
            Arc::new(labels.map(|label| label.map(renamed)).collect::<StringViewArray>())
        }
    }
}

/// Whether a literal of a text is a label, or an array that may have the label in it.
fn quotes(text: &str, label: &str) -> bool {
    let label = label.replace('\'', "''");
    let whole = format!("'{label}'");
    let literals = text.split('\'').skip(1).step_by(2);
    text.contains(&whole) || literals.into_iter().any(|literal| literal.starts_with('{') && literal.contains(&label))
}

fn unwritable(table: &Object) -> Error {
    let kind = kind_name(table.kind);
    Error::invalid(format!(
        "the labels of {kind} \"{}\" cannot be renamed: its rows cannot be written anew",
        table.name
    ))
    .with_sqlstate("0A000")
    .with_detail("It is a source, has a watermark, is APPEND ONLY, or keeps no rows.")
    .with_hint("ALTER TYPE name ADD VALUE 'new', and write the new label from now on.")
}

#[cfg(test)]
mod tests {
    use super::quotes;

    #[test]
    fn a_label_is_named_by_a_literal() {
        assert!(quotes("SELECT * FROM t WHERE m = 'sad'", "sad"));
        assert!(quotes("SELECT * FROM t WHERE m = ANY ('{ok,sad}')", "sad"));
        assert!(quotes("m mood DEFAULT 'it''s'", "it's"));
        assert!(!quotes("SELECT sad FROM t WHERE s = 'sadly'", "sad"));
    }
}
