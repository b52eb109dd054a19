//! The catalog as the planner sees it, taking note of what it looks up.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_sql::catalog::Relation;
use anabranch_sql::planned_columns;
use anabranch_sql::statement::{CreateType, Made, ObjectKind};
use datafusion_expr::sqlparser::ast;
use datafusion_expr::{AggregateUDF, ScalarUDF};

use super::{CLOCK, Catalog, Given, Object, Watermark, clock_schema, sequence_functions, system};
use crate::functions::Function;
use crate::sharing::Sharing;
use anabranch_plan::bounds::{Bound, Promises};

/// One planning's view of the catalog. After planning, [`Planning::names`] are the relations that
/// the query names, those inside plain views included.
///
/// A plain view that has an index is shown as materialized, so that queries read its arrangement.
pub(crate) struct Planning<'a> {
    catalog: &'a Catalog,
    /// Whether plans may rely on indexes.
    sharing: Sharing,
    looked_up: Mutex<BTreeSet<String>>,
    /// Functions of the embedding program, looked up so far.
    functions: Mutex<BTreeSet<String>>,
    /// Tables that are read with rows beside those that views have seen: views over them are
    /// planned where they are named.
    written: BTreeSet<String>,
    /// What functions tell of, once one is asked for.
    snapshot: OnceLock<Arc<system::Snapshot>>,
    /// The schema of the client's temporary tables.
    own_schema: Option<String>,
    /// The numbers that the client was given.
    given: Arc<Mutex<Given>>,
    /// Whether a function of sequences was looked up.
    asks_sequences: AtomicBool,
    /// Functions that tell of the client.
    client_functions: Option<ClientFunctions>,
}

/// Finds functions that tell of a client.
pub(crate) type ClientFunctions = Box<dyn Fn(&str) -> Option<Arc<ScalarUDF>> + Send + Sync>;

impl<'a> Planning<'a> {
    pub fn new(catalog: &'a Catalog, sharing: Sharing) -> Planning<'a> {
        let (looked_up, functions) = (Mutex::default(), Mutex::default());
        let (written, snapshot) = (BTreeSet::new(), OnceLock::new());
        Planning {
            catalog,
            sharing,
            looked_up,
            functions,
            written,
            snapshot,
            own_schema: None,
            given: Arc::default(),
            asks_sequences: AtomicBool::new(false),
            client_functions: None,
        }
    }

    /// The same, with functions that tell of a client.
    pub fn with_client_functions(mut self, functions: ClientFunctions) -> Planning<'a> {
        self.client_functions = Some(functions);
        self
    }

    /// The same, for the client that was given these numbers of sequences.
    pub fn with_given(mut self, given: Arc<Mutex<Given>>) -> Planning<'a> {
        self.given = given;
        self
    }

    /// Whether what was planned may ask or move sequences.
    pub fn asks_sequences(&self) -> bool {
        self.asks_sequences.load(Ordering::Relaxed)
    }

    /// The same, for the client that has its temporary tables in this schema.
    pub fn with_own_schema(mut self, schema: Option<String>) -> Planning<'a> {
        self.own_schema = schema;
        self
    }

    /// The relation that a client means by a name.
    fn find(&self, name: &str) -> Option<&'a Object> {
        if let Some(name) = name.strip_prefix("public.") {
            return self.catalog.find(name);
        }
        let own = self.own_schema.as_ref().and_then(|schema| self.catalog.find(&format!("{schema}.{name}")));
        own.or_else(|| self.catalog.find(name))
    }

    /// The same, with rows of these tables that their views have not seen.
    pub fn with_written(mut self, written: BTreeSet<String>) -> Planning<'a> {
        self.written = written;
        self
    }

    /// Whether a view has not seen all rows that it shall be read with.
    fn is_behind(&self, object: &Object) -> bool {
        object.query_text.is_some()
            && !self.written.is_empty()
            && !self.catalog.inputs_behind([&object.name]).is_disjoint(&self.written)
    }

    /// Functions of the embedding program that were looked up so far.
    pub fn functions(&self) -> BTreeSet<String> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn user_function(&self, name: &str) -> Option<&Function> {
        let function = self.catalog.function(name)?;
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        Some(function)
    }

    /// Relations looked up so far.
    pub fn names(&self) -> BTreeSet<String> {
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl anabranch_sql::catalog::Catalog for Planning<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        let Some(object) = self.find(name) else {
            return system::relation(name).map(|relation| Relation {
                name: name.to_string(),
                kind: ObjectKind::MaterializedView,
                schema: relation.schema.clone(),
                primary_key: vec![],
                watermark: None,
                watermark_relation: None,
                view_query: None,
            });
        };
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner).insert(object.name.clone());
        let inline = (object.kind == ObjectKind::View && object.maintained.is_none()) || self.is_behind(object);
        let kind = match object.kind {
            ObjectKind::View | ObjectKind::MaterializedView if inline => ObjectKind::View,
            ObjectKind::View => ObjectKind::MaterializedView,
            kind => kind,
        };
        Some(Relation {
            name: object.name.clone(),
            kind,
            schema: planned_columns(&object.schema),
            primary_key: object.primary_key.clone(),
            watermark: object.watermark.as_ref().map(|watermark| watermark.declared.clone()),
            watermark_relation: object.watermark.as_ref().map(|_| Watermark::relation_of(&object.name)),
            view_query: object.query_text.clone().filter(|_| inline),
        })
    }

    fn defaults(&self, table: &str) -> Vec<Option<ast::Expr>> {
        self.find(table).map(|object| object.defaults.clone()).unwrap_or_default()
    }

    fn made(&self, table: &str) -> Vec<Made> {
        self.find(table).map(|object| object.rules.declared.made.clone()).unwrap_or_default()
    }

    fn unique_keys(&self, table: &str) -> Vec<Vec<usize>> {
        let Some(object) = self.find(table) else { return vec![] };
        let unique = self.catalog.indexes_on(&object.name).filter(|index| index.is_unique);
        unique.map(|index| index.key.clone()).collect()
    }

    fn promises(&self, relation: &str) -> Option<Promises> {
        let object = self.find(relation)?;
        let Some(watermark) = &object.watermark else { return Some(object.maintained.as_ref()?.promises.clone()) };
        let mark = Bound::Mark { id: 0, relation: object.name.clone() };
        Some(Promises { bounds: [(watermark.column(), mark)].into(), ..Promises::default() })
    }

    fn own(&self, name: &str) -> Option<String> {
        let known = self.find(name).map(|object| object.name.clone());
        known.filter(|known| known != name && !name.starts_with("public."))
    }

    fn names(&self) -> Vec<String> {
        self.catalog.objects().map(|object| object.name.clone()).collect()
    }

    fn clock(&self) -> Option<Relation> {
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner).insert(CLOCK.to_owned());
        Some(Relation {
            name: CLOCK.to_owned(),
            kind: ObjectKind::Table,
            schema: planned_columns(&clock_schema()),
            primary_key: vec![],
            watermark: None,
            watermark_relation: None,
            view_query: None,
        })
    }

    fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.user_function(name).and_then(Function::as_aggregate).cloned()
    }

    fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if let Some(function) = self.user_function(name) {
            return function.as_scalar().cloned();
        }
        if let Some(function) = sequence_functions::find(name, self.catalog, &self.given) {
            self.asks_sequences.store(true, Ordering::Relaxed);
            return Some(function);
        }
        if let Some(function) = self.client_functions.as_ref().and_then(|functions| functions(name)) {
            self.asks_sequences.store(true, Ordering::Relaxed);
            return Some(function);
        }
        let snapshot = || Arc::clone(self.snapshot.get_or_init(|| Arc::new(self.catalog.snapshot())));
        system::function(name, snapshot)
    }

    fn is_sequence(&self, name: &str) -> bool {
        self.catalog.sequences().contains_key(name)
    }

    fn user_type(&self, name: &str) -> Option<CreateType> {
        self.catalog.types().get(name).map(|known| known.made.clone())
    }

    fn never_has_rows(&self, name: &str) -> bool {
        self.catalog.find(name).is_none() && system::never_has_rows(name)
    }

    fn is_indexed(&self, relation: &str, columns: &[usize]) -> bool {
        if self.sharing == Sharing::Off {
            return false;
        }
        let sorted = |key: &[usize]| {
            let mut key = key.to_vec();
            key.sort_unstable();
            key
        };
        let maintained = self.catalog.find(relation).and_then(|object| object.maintained.as_ref());
        let arrangements = maintained.map_or(&[][..], |maintained| maintained.arrangements.as_slice());
        arrangements.iter().any(|arranged| sorted(&arranged.key) == sorted(columns))
    }
}
