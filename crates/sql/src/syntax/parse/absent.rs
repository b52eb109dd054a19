//! `DROP` of kinds of objects that there are none of: roles, functions, triggers and so on.
//!
//! Law: with IF EXISTS there is nothing to do, as a script expects that begins with such
//! statements; without it the object does not exist.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::statement::Statement;

/// Kinds, their name in messages, and the tag of an answer.
const KINDS: [(&str, &str, &str); 17] = [
    ("ROLE", "role", "DROP ROLE"),
    ("USER MAPPING", "user mapping", "DROP USER MAPPING"),
    ("USER", "role", "DROP ROLE"),
    ("GROUP", "role", "DROP ROLE"),
    ("DATABASE", "database", "DROP DATABASE"),
    ("FUNCTION", "function", "DROP FUNCTION"),
    ("PROCEDURE", "procedure", "DROP PROCEDURE"),
    ("ROUTINE", "function", "DROP ROUTINE"),
    ("AGGREGATE", "aggregate", "DROP AGGREGATE"),
    ("EVENT TRIGGER", "trigger", "DROP EVENT TRIGGER"),
    ("TRIGGER", "trigger", "DROP TRIGGER"),
    ("RULE", "rule", "DROP RULE"),
    ("POLICY", "policy", "DROP POLICY"),
    ("COLLATION", "collation", "DROP COLLATION"),
    ("STATISTICS", "statistics object", "DROP STATISTICS"),
    ("PUBLICATION", "publication", "DROP PUBLICATION"),
    ("FOREIGN TABLE", "foreign table", "DROP FOREIGN TABLE"),
];

impl Input<'_> {
    /// What follows `DROP` where no object of that kind exists; `None` for other kinds.
    pub(super) fn drop_absent(&mut self) -> Result<Option<Statement>> {
        if self.eat("OWNED") {
            return Err(SqlError::unsupported("DROP OWNED", "Drop the objects by their names."));
        }
        if self.eat("EXTENSION") {
            return self.drop_extension().map(Some);
        }
        let Some((_, kind, tag)) = KINDS.iter().find(|(words, ..)| self.eat(words)) else { return Ok(None) };
        let if_exists = self.eat("IF EXISTS");
        let name = self.name()?;
        if *kind == "database" && name == "anabranch" {
            let message = "cannot drop the currently open database";
            return Err(
                SqlError::new(ErrorKind::Invalid, message).with_hint("There is one database: remove its folder.")
            );
        }
        if !if_exists {
            let called =
                if matches!(*kind, "function" | "procedure" | "aggregate") { name } else { format!("\"{name}\"") };
            return Err(SqlError::new(ErrorKind::UnknownName, format!("{kind} {called} does not exist")));
        }
        // (Arguments of functions, more names, the table of a trigger.)
        self.skip_to_end();
        let notice = Some("There are no objects of this kind.");
        Ok(Some(Statement::Needless { tag, relations: vec![], notice }))
    }

    /// What follows `DROP EXTENSION`: what `CREATE EXTENSION` takes is built in, and stays.
    fn drop_extension(&mut self) -> Result<Statement> {
        let if_exists = self.eat("IF EXISTS");
        let mut names = vec![self.name()?];
        while self.eat_token(&Token::Comma) {
            names.push(self.name()?);
        }
        let is_built_in = |name: &String| matches!(name.as_str(), "pgcrypto" | "uuid-ossp" | "plpgsql");
        if let Some(name) = names.iter().find(|name| !is_built_in(name)).filter(|_| !if_exists) {
            return Err(SqlError::new(ErrorKind::UnknownName, format!("extension \"{name}\" does not exist")));
        }
        let _ = self.eat("CASCADE") || self.eat("RESTRICT");
        let notice = Some("What is built in stays.");
        Ok(Statement::Needless { tag: "DROP EXTENSION", relations: vec![], notice })
    }
}
