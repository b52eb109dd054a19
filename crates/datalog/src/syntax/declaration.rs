//! Declarations and directives: what begins with a dot.

use anabranch_engine::Error;

use super::parser::Parser;
use super::token::Token;
use crate::ast::{
    Attribute, Branch, Directive, DirectiveKind, Name, Program, RelationDeclaration, Span, TypeDeclaration, TypeKind,
};

impl Parser {
    /// The declaration that the directive `word` begins.
    pub(super) fn declaration(&mut self, word: &str, program: &mut Program) -> Result<(), Error> {
        let at = self.here();
        self.next();
        match word {
            "decl" => self.relations(program),
            "type" => self.type_declaration(program, "symbol"),
            "symbol_type" => self.type_declaration(program, "symbol"),
            "number_type" => self.type_declaration(program, "number"),
            "input" => self.directive(DirectiveKind::Input, at, program),
            "output" => self.directive(DirectiveKind::Output, at, program),
            "printsize" => self.directive(DirectiveKind::PrintSize, at, program),
            other => Err(refused(other, at)),
        }
    }

    fn relations(&mut self, program: &mut Program) -> Result<(), Error> {
        let mut names = vec![self.name("the name of a relation")?];
        while self.take(",") {
            names.push(self.name("the name of a relation")?);
        }
        if self.is_sign("=") {
            return Err(Error::invalid("a relation that copies the changes of another is not supported")
                .at(self.here().start)
                .with_hint("Declare the relation with its attributes."));
        }
        self.expect("(", "before the attributes")?;
        let attributes = self.attributes(")")?;
        let mut is_equivalence = false;
        while let Token::Name(qualifier) = self.peek().clone() {
            let at = self.here();
            match qualifier.as_str() {
                // They choose data structures and transformations, and do not change the answer.
                "brie" | "btree" | "btree_delete" | "inline" | "no_inline" | "magic" | "no_magic" => {}
                "eqrel" => is_equivalence = true,
                "input" => self.of_qualifier(DirectiveKind::Input, &names, at, program),
                "output" => self.of_qualifier(DirectiveKind::Output, &names, at, program),
                "printsize" => self.of_qualifier(DirectiveKind::PrintSize, &names, at, program),
                "overridable" => return Err(components(at, "overridable")),
                "choice" => return Err(choice(at)),
                // The next clause begins here.
                _ if matches!(self.peek_at(1), Token::Sign("(")) => break,
                other => return Err(Error::invalid(format!("'{other}' is no qualifier of a relation")).at(at.start)),
            }
            self.next();
        }
        for name in names {
            program.relations.push(RelationDeclaration { name, attributes: attributes.clone(), is_equivalence });
        }
        Ok(())
    }

    fn of_qualifier(&self, kind: DirectiveKind, names: &[Name], at: Span, program: &mut Program) {
        program.directives.push(Directive { kind, relations: names.to_vec(), parameters: vec![], at });
    }

    /// Attributes up to the closing sign, which is taken.
    fn attributes(&mut self, close: &str) -> Result<Vec<Attribute>, Error> {
        let mut attributes = vec![];
        if self.take(close) {
            return Ok(attributes);
        }
        loop {
            let name = self.name("the name of an attribute")?;
            self.expect(":", "and a type after the attribute's name")?;
            let type_name = self.plain_name("the name of a type")?;
            if self.is_sign("<") {
                return Err(lattices(self.here()));
            }
            attributes.push(Attribute { name, type_name });
            if !self.take(",") {
                self.expect(close, "after the attributes")?;
                return Ok(attributes);
            }
        }
    }

    fn type_declaration(&mut self, program: &mut Program, legacy_base: &str) -> Result<(), Error> {
        let name = self.name("the name of a type")?;
        let kind = if self.take("<:") {
            TypeKind::Subset(self.plain_name("the name of a type")?)
        } else if self.take("=") {
            self.type_definition()?
        } else {
            TypeKind::Subset(Name { text: legacy_base.to_owned(), at: name.at })
        };
        program.types.push(TypeDeclaration { name, kind });
        Ok(())
    }

    fn type_definition(&mut self) -> Result<TypeKind, Error> {
        if self.take("[") {
            return Ok(TypeKind::Record(self.attributes("]")?));
        }
        if matches!(self.peek_at(1), Token::Sign("{")) {
            let mut branches = vec![];
            loop {
                let name = self.name("the name of a branch")?;
                self.expect("{", "before the branch's attributes")?;
                branches.push(Branch { name, attributes: self.attributes("}")? });
                if !self.take("|") {
                    return Ok(TypeKind::Branches(branches));
                }
            }
        }
        let mut parts = vec![self.plain_name("the name of a type")?];
        while self.take("|") {
            parts.push(self.plain_name("the name of a type")?);
        }
        Ok(TypeKind::Union(parts))
    }

    fn directive(&mut self, kind: DirectiveKind, at: Span, program: &mut Program) -> Result<(), Error> {
        let mut relations = vec![self.plain_name("the name of a relation")?];
        while self.take(",") {
            relations.push(self.plain_name("the name of a relation")?);
        }
        let mut parameters = vec![];
        if self.take("(") && !self.take(")") {
            loop {
                let name = self.name("the name of a parameter")?;
                self.expect("=", "after the parameter's name")?;
                parameters.push((name, self.parameter_value()?));
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")", "after the parameters")?;
        }
        program.directives.push(Directive { kind, relations, parameters, at: at.to(self.before()) });
        Ok(())
    }

    fn parameter_value(&mut self) -> Result<String, Error> {
        let value = match self.peek().clone() {
            Token::Text(text) | Token::Name(text) => text,
            Token::Integer(number) => number.to_string(),
            other => return Err(self.expected("the value of a parameter", &other)),
        };
        self.next();
        Ok(value)
    }

    /// `.plan 0:(1,2)` and `.strict` after a rule: joins are ordered here, so nothing changes.
    pub(super) fn skip_plans(&mut self) {
        while let Token::Directive(word) = self.peek() {
            match word.as_str() {
                "strict" => drop(self.next()),
                "plan" => {
                    self.next();
                    while let Token::Integer(_) | Token::Sign(":" | "(" | ")" | ",") = self.peek() {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }
}

fn refused(word: &str, at: Span) -> Error {
    match word {
        "comp" | "init" | "override" => components(at, &format!(".{word}")),
        "limitsize" => Error::invalid("the directive .limitsize is not supported")
            .at(at.start)
            .with_detail("An answer that is kept current is never partial.")
            .with_hint("Bound the recursion in its rule, for instance with a condition on a counter."),
        "functor" => Error::invalid("functors of users (.functor) are not supported")
            .at(at.start)
            .with_hint("Compute the values outside, and read them as facts."),
        "lattice" => lattices(at),
        "pragma" => Error::invalid("the directive .pragma is not supported")
            .at(at.start)
            .with_hint("Give options on the command line."),
        "plan" | "strict" => Error::invalid(format!(".{word} stands behind no rule")).at(at.start),
        _ => Error::invalid(format!("the directive .{word} is not supported"))
            .at(at.start)
            .with_hint("Put the text of the included file here, or join the files before (cat)."),
    }
}

pub(super) fn components(at: Span, what: &str) -> Error {
    Error::invalid(format!("components are not supported ({what})"))
        .at(at.start)
        .with_hint("Declare the relations of each instance, with its name in front: Net_edge for Net.edge.")
}

fn lattices(at: Span) -> Error {
    Error::invalid("lattices are not supported")
        .at(at.start)
        .with_hint("Keep the values in a relation, and take their min or max in a second one.")
}

fn choice(at: Span) -> Error {
    Error::invalid("choice-domain is not supported")
        .at(at.start)
        .with_detail("Which of several rows is chosen would depend on their order of arrival.")
        .with_hint("Choose by value: x = min y : { .. }.")
}
