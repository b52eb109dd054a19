//! Declared types, as sets of values.
//!
//! A type is a set of *atomic sets*: primitives, subsets of others, records, data types. A union
//! has several. Two types have values in common where an atomic set of one lies within one of the
//! other.

use std::collections::{BTreeSet, HashMap};

use anabranch_engine::Error;

use crate::ast::{Attribute, Name, Span, TypeDeclaration, TypeKind};
use crate::near::unknown;
use crate::value::Base;

/// Position of an atomic set.
type SetId = usize;

/// The values that a variable or attribute may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub base: Base,
    sets: BTreeSet<SetId>,
}

struct AtomicSet {
    name: String,
    parent: Option<SetId>,
}

/// Fields of a record or a branch.
pub(crate) struct Shape {
    pub name: String,
    pub fields: Vec<Type>,
}

/// All types of a program.
pub(crate) struct Types {
    sets: Vec<AtomicSet>,
    names: HashMap<String, Type>,
    pub records: Vec<Shape>,
    /// The branches of each algebraic data type.
    pub branches: Vec<Vec<Shape>>,
    /// Data type and branch of each branch's name.
    branch_places: HashMap<String, (usize, usize)>,
    /// The data types' own types.
    branch_types: Vec<Type>,
}

const PRIMITIVES: [(&str, Base); 4] =
    [("symbol", Base::Symbol), ("number", Base::Number), ("unsigned", Base::Unsigned), ("float", Base::Float)];

impl Types {
    /// Resolves the declarations.
    pub fn new(declarations: &[TypeDeclaration]) -> Result<Types, Error> {
        let mut types = Types {
            sets: vec![],
            names: HashMap::new(),
            records: vec![],
            branches: vec![],
            branch_places: HashMap::new(),
            branch_types: vec![],
        };
        for (name, base) in PRIMITIVES {
            types.add_set(name, None, base);
        }
        types.add_structures(declarations)?;
        types.add_others(declarations)?;
        types.add_fields(declarations)?;
        Ok(types)
    }

    /// The whole primitive type.
    pub fn primitive(&self, base: Base) -> Type {
        let place = PRIMITIVES.iter().position(|(_, other)| *other == base);
        let set = place.expect("records and branches have types of their own");
        Type { base, sets: BTreeSet::from([set]) }
    }

    pub fn named(&self, name: &Name) -> Result<Type, Error> {
        self.names.get(&name.text).cloned().ok_or_else(|| {
            let known = self.names.keys().map(String::as_str);
            unknown("type", &name.text, known).at(name.at.start)
        })
    }

    /// The data type and the branch of that name.
    pub fn branch(&self, name: &Name) -> Result<(Type, &Shape), Error> {
        match self.branch_places.get(&name.text) {
            Some((place, branch)) => Ok((self.branch_types[*place].clone(), &self.branches[*place][*branch])),
            None => {
                let known = self.branch_places.keys().map(String::as_str);
                Err(unknown("branch", &name.text, known).at(name.at.start))
            }
        }
    }

    /// The values that both types have.
    pub fn meet(&self, left: &Type, right: &Type) -> Option<Type> {
        let within = |one: &SetId, others: &Type| self.lies_within(*one, others).then_some(*one);
        let sets: BTreeSet<SetId> = left
            .sets
            .iter()
            .filter_map(|set| within(set, right))
            .chain(right.sets.iter().filter_map(|set| within(set, left)))
            .collect();
        (left.base == right.base && !sets.is_empty()).then_some(Type { base: left.base, sets })
    }

    /// Whether every value of one type is one of the other.
    pub fn is_within(&self, inner: &Type, outer: &Type) -> bool {
        inner.sets.iter().all(|set| self.lies_within(*set, outer))
    }

    /// The type's name in messages.
    pub fn shown(&self, shown: &Type) -> String {
        let alias = self.names.iter().filter(|(_, named)| *named == shown).map(|(name, _)| name).min();
        let sets = || shown.sets.iter().map(|set| self.sets[*set].name.as_str()).collect::<Vec<_>>().join(" | ");
        match shown.sets.len() {
            1 => sets(),
            _ => alias.cloned().unwrap_or_else(sets),
        }
    }

    /// The name of a base in messages.
    pub fn base_shown(&self, base: Base) -> String {
        match base {
            Base::Record(place) => self.records[place].name.clone(),
            Base::Branches(place) => self.shown(&self.branch_types[place]),
            _ => self.shown(&self.primitive(base)),
        }
    }

    fn lies_within(&self, set: SetId, outer: &Type) -> bool {
        let mut up = Some(set);
        while let Some(set) = up {
            if outer.sets.contains(&set) {
                return true;
            }
            up = self.sets[set].parent;
        }
        false
    }

    fn add_set(&mut self, name: &str, parent: Option<SetId>, base: Base) -> Type {
        self.sets.push(AtomicSet { name: name.to_owned(), parent });
        let added = Type { base, sets: BTreeSet::from([self.sets.len() - 1]) };
        self.names.insert(name.to_owned(), added.clone());
        added
    }

    fn check_new(&self, name: &Name) -> Result<(), Error> {
        match self.names.contains_key(&name.text) {
            true => Err(Error::invalid(format!("type {} is declared twice", name.text))
                .at(name.at.start)
                .with_hint("Give one of the two another name.")),
            false => Ok(()),
        }
    }

    /// Records and data types, which may refer to all others, later.
    fn add_structures(&mut self, declarations: &[TypeDeclaration]) -> Result<(), Error> {
        for TypeDeclaration { name, kind } in declarations {
            match kind {
                TypeKind::Record(_) => {
                    self.check_new(name)?;
                    let base = Base::Record(self.records.len());
                    self.add_set(&name.text, None, base);
                    self.records.push(Shape { name: name.text.clone(), fields: vec![] });
                }
                TypeKind::Branches(branches) => {
                    self.check_new(name)?;
                    let place = self.branches.len();
                    let own = self.add_set(&name.text, None, Base::Branches(place));
                    self.branch_types.push(own);
                    self.branches.push(vec![]);
                    for (idx, branch) in branches.iter().enumerate() {
                        if self.branch_places.insert(branch.name.text.clone(), (place, idx)).is_some() {
                            return Err(Error::invalid(format!("branch {} is declared twice", branch.name.text))
                                .at(branch.name.at.start)
                                .with_hint("Branches of all types have names of their own."));
                        }
                    }
                }
                TypeKind::Subset(_) | TypeKind::Union(_) => {}
            }
        }
        Ok(())
    }

    /// Subsets and unions: in rounds, since a declaration may refer to a later one.
    fn add_others(&mut self, declarations: &[TypeDeclaration]) -> Result<(), Error> {
        let is_other = |kind: &TypeKind| matches!(kind, TypeKind::Subset(_) | TypeKind::Union(_));
        let mut open: Vec<&TypeDeclaration> = declarations.iter().filter(|each| is_other(&each.kind)).collect();
        for (idx, each) in open.iter().enumerate() {
            self.check_new(&each.name)?;
            if let Some(twice) = open[..idx].iter().find(|other| other.name.text == each.name.text) {
                return Err(Error::invalid(format!("type {} is declared twice", twice.name.text))
                    .at(each.name.at.start)
                    .with_hint("Give one of the two another name."));
            }
        }
        while !open.is_empty() {
            let before = open.len();
            let mut left = vec![];
            for each in open {
                if !self.add_other(each)? {
                    left.push(each);
                }
            }
            if left.len() == before {
                return Err(self.unresolved(&left));
            }
            open = left;
        }
        Ok(())
    }

    /// Whether all that the declaration refers to was known.
    fn add_other(&mut self, declaration: &TypeDeclaration) -> Result<bool, Error> {
        let name = &declaration.name;
        match &declaration.kind {
            TypeKind::Subset(of) => {
                let Some(parent) = self.names.get(&of.text).cloned() else { return Ok(false) };
                if parent.sets.len() > 1 {
                    return Err(Error::invalid(format!("type {} is a subset of the union {}", name.text, of.text))
                        .at(of.at.start)
                        .with_hint("A subset is of a primitive type or of another subset."));
                }
                self.add_set(&name.text, parent.sets.first().copied(), parent.base);
            }
            TypeKind::Union(parts) => {
                let known: Option<Vec<Type>> = parts.iter().map(|part| self.names.get(&part.text).cloned()).collect();
                let Some(known) = known else { return Ok(false) };
                let base = known[0].base;
                if let Some(other) = known.iter().position(|part| part.base != base) {
                    return Err(Error::invalid(format!(
                        "type {} unites {} and {}, which have no common primitive type",
                        name.text, parts[0].text, parts[other].text
                    ))
                    .at(parts[other].at.start)
                    .with_hint("For values of different types declare branches: A { x: .. } | B { y: .. }."));
                }
                let sets = known.into_iter().flat_map(|part| part.sets).collect();
                self.names.insert(name.text.clone(), Type { base, sets });
            }
            TypeKind::Record(_) | TypeKind::Branches(_) => {}
        }
        Ok(true)
    }

    fn unresolved(&self, left: &[&TypeDeclaration]) -> Error {
        let referred = |declaration: &&TypeDeclaration| match &declaration.kind {
            TypeKind::Subset(of) => vec![of.clone()],
            TypeKind::Union(parts) => parts.clone(),
            TypeKind::Record(_) | TypeKind::Branches(_) => vec![],
        };
        let is_declared =
            |name: &Name| self.names.contains_key(&name.text) || left.iter().any(|other| other.name.text == name.text);
        let missing = left.iter().flat_map(referred).find(|name| !is_declared(name));
        match missing {
            Some(name) => unknown("type", &name.text, self.names.keys().map(String::as_str)).at(name.at.start),
            None => Error::invalid(format!("type {} is defined by itself", left[0].name.text))
                .at(left[0].name.at.start)
                .with_hint("Only records and branches may contain their own type."),
        }
    }

    fn add_fields(&mut self, declarations: &[TypeDeclaration]) -> Result<(), Error> {
        let (mut record, mut data_type) = (0, 0);
        for declaration in declarations {
            match &declaration.kind {
                TypeKind::Record(attributes) => {
                    self.records[record].fields = self.fields(attributes)?;
                    record += 1;
                }
                TypeKind::Branches(branches) => {
                    for branch in branches {
                        let fields = self.fields(&branch.attributes)?;
                        self.branches[data_type].push(Shape { name: branch.name.text.clone(), fields });
                    }
                    data_type += 1;
                }
                TypeKind::Subset(_) | TypeKind::Union(_) => {}
            }
        }
        Ok(())
    }

    fn fields(&self, attributes: &[Attribute]) -> Result<Vec<Type>, Error> {
        check_names(attributes)?;
        attributes.iter().map(|attribute| self.named(&attribute.type_name)).collect()
    }
}

/// Attributes have names of their own.
pub(crate) fn check_names(attributes: &[Attribute]) -> Result<(), Error> {
    for (idx, attribute) in attributes.iter().enumerate() {
        if attributes[..idx].iter().any(|other| other.name.text == attribute.name.text) {
            let Span { start, .. } = attribute.name.at;
            return Err(Error::invalid(format!("attribute {} is declared twice", attribute.name.text))
                .at(start)
                .with_hint("Give one of the two another name."));
        }
    }
    Ok(())
}
