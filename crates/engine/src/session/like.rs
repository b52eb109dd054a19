//! `CREATE TABLE t (LIKE u ..)`: the columns of another relation, as they are now.

use anabranch_batch::numeric::NumericPlaces;
use anabranch_sql::statement::{CreateTable, LikeClause, Made, NumberingForm, Rules, UniqueClause};
use arrow::datatypes::Field;

use super::state::Session;
use crate::error::Error;

impl Session {
    /// The table with the columns of another before its own.
    pub(super) fn with_columns_of(&self, create: &CreateTable, like: &LikeClause) -> Result<CreateTable, Error> {
        let object = self.catalog.get(&like.table)?;
        let declared = &object.rules.declared;
        let mut columns: Vec<Field> =
            object.schema.fields().iter().map(|field| NumericPlaces::taken_off(field.as_ref().clone())).collect();
        let n_columns = columns.len();
        for field in &create.columns {
            if columns.iter().any(|column| column.name() == field.name()) {
                let message = format!("column \"{}\" specified more than once", field.name());
                return Err(Error::invalid(message).with_sqlstate("42701"));
            }
        }
        columns.extend(create.columns.iter().cloned());
        let default = |at: usize| object.defaults.get(at).cloned().flatten().filter(|_| like.defaults);
        let made = |at: usize| match declared.made(at) {
            made @ Made::Computed(_) if like.generated => made.clone(),
            // (A serial column's default is its counter; the new table has one of its own.)
            made @ Made::Numbered(numbering) => match numbering.form {
                NumberingForm::Serial if like.defaults => made.clone(),
                NumberingForm::ByDefault | NumberingForm::Always if like.identity => made.clone(),
                _ => Made::Given,
            },
            _ => Made::Given,
        };
        let own = |at: &usize| at + n_columns;
        let own_made = (0..create.columns.len()).map(|at| create.rules.made(at).clone());
        let checks = declared.checks.iter().filter(|check| like.checks || check.of_type.is_some()).cloned();
        let keys = self.catalog.indexes_on(&object.name).filter(|index| index.is_unique && like.keys);
        let unique = |key: &Vec<usize>| {
            let columns = key.iter().map(|at| object.schema.field(*at).name().clone()).collect();
            UniqueClause { name: None, columns }
        };
        let primary_key = match (like.keys, create.primary_key.as_slice()) {
            (true, []) => object.primary_key.clone(),
            (true, _) if !object.primary_key.is_empty() => {
                let message = format!("multiple primary keys for table \"{}\" are not allowed", create.name);
                return Err(Error::invalid(message).with_sqlstate("42P16"));
            }
            (_, own_key) => own_key.iter().map(own).collect(),
        };
        Ok(CreateTable {
            like: None,
            defaults: (0..n_columns).map(default).chain(create.defaults.iter().cloned()).collect(),
            primary_key,
            uniques: keys.map(|index| unique(&index.key)).chain(create.uniques.iter().cloned()).collect(),
            rules: Rules {
                checks: checks.chain(create.rules.checks.iter().cloned()).collect(),
                made: (0..n_columns).map(made).chain(own_made).collect(),
                references: create.rules.references.clone(),
            },
            columns,
            ..create.clone()
        })
    }
}
