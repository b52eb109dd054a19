//! ALTER .. RENAME TO.
//!
//! Law: an object keeps its id and its rows; its definition, and those of its indexes, say the new
//! name.

use anabranch_sql::statement::{CreateTable, EmitClause, ObjectKind, Statement};
use anabranch_sql::table::quoted_path;

use super::alter::fields;
use super::durable::DEFINITION;
use super::index::{index_definition, listed_anew, quoted};
use super::sealed::SealedFact;
use super::state::Session;
use crate::catalog::{Index, Object, kind_name};
use crate::error::Error;

impl Session {
    /// Gives an object another name.
    pub(super) fn rename(&mut self, name: &str, to: &str, kind: ObjectKind) -> Result<(), Error> {
        let to = match (name.rsplit_once('.'), to.contains('.')) {
            (Some((schema, _)), false) if self.catalog.is_in_schema(name) => format!("{schema}.{to}"),
            _ => to.to_string(),
        };
        if let Some(taken) = self.catalog.kind_of(&to) {
            return Err(Error::invalid(format!("{} \"{to}\" already exists", kind_name(taken))).with_sqlstate("42P07"));
        }
        if kind == ObjectKind::Sequence {
            return self.rename_sequence(name, &to);
        }
        if kind == ObjectKind::Index {
            return self.rename_index(name, &to);
        }
        self.refuse_used(name, &format!("{} \"{name}\"", kind_name(kind)))?;
        self.check_not_referred(name, None, &format!("the name of table \"{name}\""))?;
        let object = self.catalog.get(name)?.clone();
        if object.watermark.is_some() || kind == ObjectKind::Source {
            return Err(Error::invalid(format!("{} \"{name}\" cannot be renamed", kind_name(kind)))
                .with_sqlstate("0A000")
                .with_detail("It is a source, or has a watermark.")
                .with_hint("CREATE VIEW with the new name over the old."));
        }
        let definition = renamed_definition(&object, &to)?;
        let mut facts =
            vec![SealedFact { object: object.id, name: DEFINITION, value: definition.clone().into_bytes() }];
        let indexes: Vec<Index> = self.catalog.indexes_on(name).cloned().collect();
        let mut redefined = Vec::new();
        for index in &indexes {
            let listed = listed_anew(index, &object.schema);
            let text = index_definition(&index.name, &to, &listed, index.form());
            facts.push(SealedFact { object: index.id, name: DEFINITION, value: text.clone().into_bytes() });
            redefined.push((index.name.clone(), text));
        }
        self.record_definition(vec![], vec![], facts)?;
        self.dataflows.registry_mut().forget_relation(name);
        self.catalog.rename(name, &to);
        self.subscriptions.rename(name, &to);
        if let Some(object) = self.catalog.find_mut(&to) {
            object.definition = definition;
        }
        redefined.into_iter().for_each(|(index, text)| self.catalog.define_index(&index, text));
        if kind == ObjectKind::Table { self.plan_rules(&to) } else { Ok(()) }
    }

    fn rename_index(&mut self, name: &str, to: &str) -> Result<(), Error> {
        let index = self.catalog.indexes().find(|index| index.name == name).cloned();
        let index = index.ok_or_else(|| Error::internal("an index that has a kind is there"))?;
        let relation = self.catalog.get(&index.relation)?;
        let listed = listed_anew(&index, &relation.schema);
        let definition = index_definition(to, &index.relation, &listed, index.form());
        let fact = SealedFact { object: index.id, name: DEFINITION, value: definition.clone().into_bytes() };
        self.record_definition(vec![], vec![], vec![fact])?;
        self.catalog.rename_index(name, to, definition);
        Ok(())
    }
}

fn renamed_definition(object: &Object, to: &str) -> Result<String, Error> {
    let statement = anabranch_sql::parse(&object.definition)?.into_iter().next().map(|parsed| parsed.statement);
    match statement {
        Some(Statement::CreateTable(create)) => {
            Ok(CreateTable { name: to.to_string(), columns: fields(object), ..create }.definition())
        }
        Some(Statement::CreateView(create)) => {
            let kind = if create.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
            let names: Vec<String> = create.column_names.iter().map(|name| quoted(name)).collect();
            let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            let emit = if create.emit == EmitClause::OnWindowClose { " EMIT ON WINDOW CLOSE" } else { "" };
            Ok(format!("CREATE {kind} {}{names} AS {}{emit}", quoted_path(to), create.query_text))
        }
        _ => Err(Error::invalid(format!("{} \"{}\" is made of a plan", kind_name(object.kind), object.name))
            .with_hint("Make it anew under another name.")),
    }
}
