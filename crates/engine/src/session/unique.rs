//! What keeps the rows of a table distinct: its primary key, and indexes that are UNIQUE.

use anabranch_batch::{Batch, TextLimit, Times};
use anabranch_sql::statement::ObjectKind;
use anabranch_sql::table::quoted_path;

use super::index::quoted;
use super::keys::{UniqueKey, check_sums};
use super::state::Session;
use crate::catalog::{Object, Retain};
use crate::coerce::row_text;
use crate::error::Error;

impl Session {
    /// The keys of a table, the primary key first.
    pub(crate) fn unique_keys(&self, object: &Object) -> Vec<UniqueKey> {
        let primary = std::iter::once(UniqueKey::primary(object)).filter(|key| !key.columns.is_empty());
        let unique = self.catalog.indexes_on(&object.name).filter(|index| index.is_unique);
        primary
            .chain(unique.map(|index| UniqueKey { columns: index.key.clone(), index: Some(index.name.clone()) }))
            .collect()
    }

    /// Refuses rows whose keys have several spellings.
    pub(super) fn check_spellings(&self, object: &Object, rows: &Batch) -> Result<(), Error> {
        self.unique_keys(object).iter().try_for_each(|key| key.check_spellings(object, rows))
    }

    /// Refuses changes that leave two rows with one key.
    pub(super) fn check_keys(&mut self, object: &Object, changes: &[Batch]) -> Result<(), Error> {
        for key in self.unique_keys(object) {
            let keys: Vec<Batch> = changes.iter().map(|batch| key.of_rows(batch)).collect();
            let Some(keys) = Batch::concat(&keys).filter(|keys| !keys.is_empty()) else { continue };
            let there = self.rows_with_keys(object, &key.columns, keys.columns().to_vec())?;
            let there = there.iter().map(|batch| key.of_rows(batch).with_times(Times::Constant(0)).flatten());
            check_sums(object, &key, &there.chain([keys]).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Refuses a key that rows which are there do not have.
    pub(super) fn check_unique(&mut self, object: &Object, index: &str, columns: &[usize]) -> Result<(), Error> {
        if object.kind != ObjectKind::Table || object.retain != Retain::All {
            let message = format!("\"{}\" cannot have a UNIQUE index: it is no table that keeps its rows", object.name);
            return Err(Error::invalid(message)
                .with_sqlstate("42809")
                .with_hint("Write CREATE INDEX for look-ups; GROUP BY .. HAVING count(*) > 1 finds duplicates."));
        }
        let key = UniqueKey { columns: columns.to_vec(), index: Some(index.to_owned()) };
        self.check_kept_spellings(object, &key)?;
        let names: Vec<String> = columns.iter().map(|at| quoted(object.schema.field(*at).name())).collect();
        let text = format!(
            "SELECT {list} FROM {table} WHERE {known} GROUP BY {list} HAVING count(*) > 1 LIMIT 1",
            list = names.join(", "),
            table = quoted_path(&object.name),
            known = names.iter().map(|name| format!("{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND "),
        );
        let query = anabranch_sql::parse::parse_query(&text)?;
        // (A transaction's own rows count.)
        let planned = match self.has_staged() {
            true => self.plan_query(&query)?.planned,
            false => self.plan_constant(&query)?.planned,
        };
        match self.collect(&planned.plan)?.iter().find(|batch| !batch.is_empty()) {
            Some(batch) => Err(Error::data(format!("could not create unique index \"{index}\""))
                .with_sqlstate("23505")
                .with_detail(format!("{} is duplicated.", key.shown(object, &row_text(batch.columns(), 0))))
                .about_constraint(&object.name, index)),
            None => Ok(()),
        }
    }

    /// Refuses a key of rows that are there if it has several spellings.
    fn check_kept_spellings(&mut self, object: &Object, key: &UniqueKey) -> Result<(), Error> {
        let is_jsonb = |at: &usize| TextLimit::of(object.schema.field(*at)) == Some(TextLimit::Jsonb);
        if !key.columns.iter().any(is_jsonb) {
            return Ok(());
        }
        let query = anabranch_sql::parse::parse_query(&format!("SELECT * FROM {}", quoted_path(&object.name)))?;
        let planned = self.plan_query(&query)?.planned;
        self.collect(&planned.plan)?.iter().try_for_each(|rows| key.check_spellings(object, rows))
    }
}
