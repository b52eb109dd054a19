//! Schemas and types that users make, and the schema in a name.

use anabranch_sql::statement::CreateType;

use super::created::ObjectId;
use super::watermark::Watermark;

/// A schema that a user has made.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub id: ObjectId,
    /// The statement that made it.
    pub definition: String,
}

/// A domain or an enumeration that a user has made.
#[derive(Clone, Debug)]
pub(crate) struct UserType {
    pub id: ObjectId,
    pub made: CreateType,
    /// The statement that makes it.
    pub definition: String,
}

/// The schema in a catalog name; that of plain names is `public`, and not told.
pub(crate) fn schema_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(schema, _)| schema)
}

/// Whether a relation is a client's own, and goes with it.
pub(crate) fn is_temporary(name: &str) -> bool {
    Watermark::relation_held(name).unwrap_or(name).starts_with("pg_temp_")
}
