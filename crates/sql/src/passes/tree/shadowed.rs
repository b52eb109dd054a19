//! Queries of an inner WITH that are named like one of an outer WITH: they get names of their own.
//!
//! ```text
//! WITH a AS (..) SELECT .. FROM (WITH a AS (..) SELECT * FROM a) AS q, a
//! WITH a AS (..) SELECT .. FROM (WITH __a_1 AS (..) SELECT * FROM __a_1 AS a) AS q, a
//! ```
//!
//! In a WITH that is not recursive a query reads those before it: its own name in it is the outer
//! one's.

use datafusion_expr::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor};

use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::walk::{Changing, change};

/// Renames what hides a named query.
pub(super) fn rename(query: &mut Query) {
    // (Neither walk fails.)
    let _ = change(query, &mut Shadows { open: vec![], n_renamed: 0 });
}

/// Finds queries that hide others.
struct Shadows {
    /// The names of each open query's WITH.
    open: Vec<Vec<String>>,
    n_renamed: usize,
}

impl Changing for Shadows {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let names: Vec<String> =
            query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)).collect();
        for (at, name) in names.iter().enumerate() {
            // (Names of our own mark forms of WITH, such as that of mutual recursion.)
            if name.starts_with("__") || !self.open.iter().flatten().any(|open| open == name) {
                continue;
            }
            self.n_renamed += 1;
            rename_one(query, at, name, &format!("__{name}_{}", self.n_renamed))?;
        }
        self.open.push(names);
        Ok(())
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.open.pop();
        Ok(())
    }
}

/// Renames a query of a WITH, and the tables that mean it.
fn rename_one(query: &mut Query, at: usize, name: &str, to: &str) -> Result<()> {
    let mut renaming = Renaming { name, to, hidden: vec![] };
    let Some(with) = &mut query.with else { return Ok(()) };
    with.cte_tables[at].alias.name = Ident::with_quote('"', to);
    let first = if with.recursive { 0 } else { at + 1 };
    with.cte_tables[first..].iter_mut().try_for_each(|cte| change(&mut cte.query, &mut renaming))?;
    change(&mut query.body, &mut renaming)?;
    match &mut query.order_by {
        Some(order_by) => change(order_by, &mut renaming),
        None => Ok(()),
    }
}

struct Renaming<'a> {
    name: &'a str,
    to: &'a str,
    /// For each open query, whether its WITH has the name again.
    hidden: Vec<bool>,
}

impl Changing for Renaming<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let mut names = query.with.iter().flat_map(|with| &with.cte_tables);
        self.hidden.push(names.any(|cte| fold(&cte.alias.name) == self.name));
        Ok(())
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.hidden.pop();
        Ok(())
    }

    fn table_factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(()) };
        let [ObjectNamePart::Identifier(part)] = name.0.as_slice() else { return Ok(()) };
        if fold(part) != self.name || self.hidden.contains(&true) {
            return Ok(());
        }
        let shown = part.clone();
        alias.get_or_insert(TableAlias { explicit: true, name: shown, columns: vec![], at: None });
        *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', self.to))]);
        Ok(())
    }
}
