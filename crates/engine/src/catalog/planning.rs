//! The catalog as the planner sees it, taking note of what it looks up.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use anabranch_batch::without_limits;
use anabranch_sql::catalog::Relation;
use anabranch_sql::statement::ObjectKind;
use datafusion_expr::sqlparser::ast;

use super::{Catalog, Watermark};

/// One planning's view of the catalog. After planning, [`Planning::names`] are the relations that the query names,
/// those inside plain views included.
///
/// A plain view that has an index is shown as materialized, so that queries read its arrangement.
pub(crate) struct Planning<'a> {
    catalog: &'a Catalog,
    looked_up: Mutex<BTreeSet<String>>,
}

impl<'a> Planning<'a> {
    pub fn new(catalog: &'a Catalog) -> Planning<'a> {
        Planning { catalog, looked_up: Mutex::default() }
    }

    /// Relations looked up so far.
    pub fn names(&self) -> BTreeSet<String> {
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl anabranch_sql::catalog::Catalog for Planning<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        let object = self.catalog.find(name)?;
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_string());
        let inline = object.kind == ObjectKind::View && object.maintained.is_none();
        Some(Relation {
            name: object.name.clone(),
            kind: if object.kind == ObjectKind::View && !inline { ObjectKind::MaterializedView } else { object.kind },
            schema: without_limits(&object.schema),
            primary_key: object.primary_key.clone(),
            watermark: object.watermark.as_ref().map(|watermark| watermark.declared.clone()),
            watermark_relation: object.watermark.as_ref().map(|_| Watermark::relation_of(&object.name)),
            view_query: object.query_text.clone().filter(|_| inline),
        })
    }

    fn defaults(&self, table: &str) -> Vec<Option<ast::Expr>> {
        self.catalog.find(table).map(|object| object.defaults.clone()).unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        self.catalog.objects().map(|object| object.name.clone()).collect()
    }
}
