//! The declared relations, as rules see them.

use std::collections::HashMap;

use anabranch_engine::Error;

use super::types::{Type, Types};
use crate::ast::{Name, Span};
use crate::core::RelationId;
use crate::near::unknown;

/// What rules have to know of relations.
pub(super) struct Signatures {
    pub types: Types,
    names: HashMap<String, RelationId>,
    columns: Vec<Vec<(String, Type)>>,
}

impl Signatures {
    pub fn new(types: Types) -> Signatures {
        Signatures { types, names: HashMap::new(), columns: vec![] }
    }

    pub fn is_declared(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Adds the next relation, with the names and types of its attributes.
    pub fn declare(&mut self, name: &str, attributes: Vec<(String, Type)>) {
        self.names.insert(name.to_owned(), self.columns.len());
        self.columns.push(attributes);
    }

    pub fn relation(&self, name: &Name) -> Result<RelationId, Error> {
        self.names
            .get(&name.text)
            .copied()
            .ok_or_else(|| unknown("relation", &name.text, self.names.keys().map(String::as_str)).at(name.at.start))
    }

    /// Names and types of the attributes, as declared.
    pub fn attributes(&self, relation: RelationId) -> &[(String, Type)] {
        &self.columns[relation]
    }
}

/// The error for a wrong number of arguments.
pub(super) fn wrong_count(what: &str, wanted: usize, given: usize, at: Span) -> Error {
    let s = if wanted == 1 { "" } else { "s" };
    Error::invalid(format!("{what} takes {wanted} argument{s}, but {given} are given")).at(at.start)
}
