//! Which relations are tables and views of the database.

use anabranch_engine::{Error, RelationInfo};
use arrow::datatypes::DataType;

use crate::core::{Core, Relation, RelationId};
use crate::plan::{Planner, Stored};
use crate::value::Base;

/// Relations that are planned within each other, at most, before one gets a view of its own.
const INLINE_MAX: usize = 8;

/// Which relations get views.
pub(super) fn wanted_views(core: &Core, planner: &Planner<'_>) -> Vec<bool> {
    let all = !core.relations.iter().any(|relation| relation.is_output);
    let derived = |id: RelationId| core.is_derived(id);
    let mut wanted: Vec<bool> =
        (0..core.relations.len()).map(|id| derived(id) && (all || core.relations[id].is_output)).collect();
    for id in 0..core.relations.len() {
        for read in planner.reads(id) {
            if derived(*read) && planner.is_recursive(*read) && !planner.component(*read).contains(&id) {
                wanted[*read] = true;
            }
        }
    }
    // Plans within plans get no deeper than a few levels.
    let mut depth = vec![0; core.relations.len()];
    for component in planner.components() {
        let below = component.iter().flat_map(|id| planner.reads(*id)).filter(|read| !component.contains(read));
        let level = 1 + below.map(|read| depth[*read]).max().unwrap_or(0);
        for id in component.iter().filter(|id| derived(**id)) {
            wanted[*id] |= level > INLINE_MAX;
            depth[*id] = if wanted[*id] { 0 } else { level };
        }
    }
    wanted
}

/// A relation's table or view, made by the program.
pub(super) fn stored(relation: &Relation, name: String, is_bag: bool) -> Stored {
    let columns = relation.columns.iter().map(|column| column.name.clone()).collect();
    let types = relation.columns.iter().map(|column| column.base.data_type()).collect();
    Stored { name, columns, types, is_bag, has_nulls: false }
}

/// A relation of the database that a program reads as its own.
pub(super) fn existing_relation(relation: &Relation, info: &RelationInfo) -> Result<Stored, Error> {
    let fields = info.schema.fields();
    let name = &info.name;
    if fields.len() != relation.columns.len() {
        let (has, wants) = (fields.len(), relation.columns.len());
        return Err(Error::invalid(format!("\"{name}\" exists with {has} columns, but the program's has {wants}"))
            .at(relation.at.start)
            .with_hint("Give the program's relation another name, or as many attributes."));
    }
    for (field, column) in fields.iter().zip(&relation.columns) {
        if !fits(field.data_type(), column.base) {
            return Err(Error::invalid(format!(
                "column \"{}\" of \"{name}\" has not the type of attribute {}",
                field.name(),
                column.name
            ))
            .at(relation.at.start)
            .with_hint("Symbols are text, numbers are integers, floats are double precision."));
        }
    }
    Ok(Stored {
        name: name.clone(),
        columns: fields.iter().map(|field| field.name().clone()).collect(),
        types: fields.iter().map(|field| field.data_type().clone()).collect(),
        is_bag: true,
        has_nulls: fields.iter().any(|field| field.is_nullable()),
    })
}

fn fits(of: &DataType, base: Base) -> bool {
    match base {
        Base::Symbol | Base::Record(_) | Base::Branches(_) => *of == DataType::Utf8View,
        Base::Number | Base::Unsigned => of.is_signed_integer(),
        Base::Float => matches!(of, DataType::Float32 | DataType::Float64),
    }
}
