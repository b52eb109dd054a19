//! Where columns are that expressions name.
//!
//! Cost: a column that stands where it is looked for first is found at once, any other by a search
//! for its name. So lists of all columns, in their order, cost the columns and not their square.

use arrow::datatypes::FieldRef;
use datafusion_common::{DFSchema, TableReference};
use datafusion_expr::Expr;

/// The position of an expression that is a plain column.
pub fn position(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    position_near(expr, schema, 0)
}

/// The positions that a list of plain columns stands for.
pub fn positions(exprs: &[Expr], schema: &DFSchema) -> Option<Vec<usize>> {
    exprs.iter().enumerate().map(|(at, expr)| position_near(expr, schema, at)).collect()
}

/// As `position`, where it is likely `near`: of as many columns as there are, one after the other,
/// each is found at once.
pub fn position_near(expr: &Expr, schema: &DFSchema, near: usize) -> Option<usize> {
    let Expr::Column(column) = expr else { return None };
    // (A schema has no other column of that name: repeated ones are numbered apart.)
    let is_there = |(table, field): (Option<&TableReference>, &FieldRef)| {
        column.relation.is_none() && table.is_none() && *field.name() == column.name
    };
    if near < schema.fields().len() && is_there(schema.qualified_field(near)) {
        return Some(near);
    }
    schema.index_of_column_by_name(column.relation.as_ref(), &column.name)
}
