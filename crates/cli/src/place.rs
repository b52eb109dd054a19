//! The place where statements run: a session of this process, or a server.
//!
//! Law: the shell, scripts and their commands know this type only, so they do the same over both.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anabranch_engine::{Error, Rows, SourceStatus};
use anabranch_sql::{Parsed, statement::ObjectKind};

use crate::{
    copy::Transfer,
    host::{Host, gone},
    output::texts,
    remote::Remote,
    reply::Reply,
};

/// See the module.
pub(crate) enum Place {
    /// A session on a thread of this process, over the database in a folder if one is named.
    Embedded { host: Host, folder: Option<PathBuf> },
    /// A server, by PostgreSQL's protocol.
    Remote(Box<Remote>),
}

/// A statement, as far as its place wants to know it.
pub(crate) enum Part {
    Parsed(Arc<str>, Box<Parsed>),
    Text(Arc<str>),
}

/// A relation, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub name: String,
    pub kind: &'static str,
    pub columns: Vec<String>,
}

/// Columns of tables and views of a server, in order.
const RELATIONS: &str = "SELECT c.relname, c.relkind, a.attname FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'v', 'm') AND a.attnum > 0 ORDER BY c.relname, a.attnum";

impl Place {
    /// The statements of a text. A server parses for itself.
    ///
    /// # Errors
    /// What is wrong with the text, where it is parsed here.
    pub(crate) fn parts(&self, text: &str) -> Result<Vec<Part>, Error> {
        let script: Arc<str> = Arc::from(text);
        match self {
            Place::Remote(_) => Ok(vec![Part::Text(script)]),
            Place::Embedded { host, .. } => {
                let Ok(statements) = anabranch_sql::parse(text) else {
                    // (The session says what is wrong: the error fails its transaction.)
                    let text = text.to_owned();
                    return host.call(move |session| session.execute(&text))?.map(|_| vec![]);
                };
                Ok(statements.into_iter().map(|parsed| Part::Parsed(Arc::clone(&script), Box::new(parsed))).collect())
            }
        }
    }

    /// Starts a statement. Dropping the receiver ends a subscription; other statements run to their
    /// end.
    ///
    /// # Errors
    /// When the place is gone.
    pub(crate) fn begin(&self, part: Part) -> Result<Receiver<Reply>, Error> {
        match (self, part) {
            (Place::Embedded { host, .. }, Part::Parsed(script, parsed)) => host.begin(script, *parsed),
            (Place::Remote(remote), Part::Text(text) | Part::Parsed(text, _)) => remote.begin(text, Transfer::None),
            (Place::Embedded { .. }, Part::Text(_)) => Err(Error::internal("a statement was not parsed")),
        }
    }

    /// Starts a COPY whose rows this program reads or writes.
    ///
    /// # Errors
    /// When the place is gone, and where the engine reads files itself.
    pub(crate) fn begin_copy(&self, text: &str, transfer: Transfer) -> Result<Receiver<Reply>, Error> {
        match self {
            Place::Remote(remote) => remote.begin(Arc::from(text), transfer),
            Place::Embedded { .. } => Err(Error::internal("a session copies by itself")),
        }
    }

    /// The rows of one query.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub(crate) fn query(&self, sql: &str) -> Result<Rows, Error> {
        if let Place::Embedded { host, .. } = self {
            let sql = sql.to_owned();
            return host.call(move |session| session.query(&sql))?;
        }
        let mut answer = Err(Error::internal("a query gave no rows"));
        for part in self.parts(sql)? {
            for reply in self.begin(part)? {
                match reply {
                    Reply::Rows(rows) => answer = Ok(rows),
                    Reply::Finished(Err(error)) => return Err(error),
                    _ => {}
                }
            }
        }
        answer
    }

    /// Relations in the order of their names.
    ///
    /// # Errors
    /// When the place does not answer.
    pub(crate) fn relations(&self) -> Result<Vec<Relation>, Error> {
        match self {
            Place::Embedded { host, .. } => {
                let relations = host.call(|session| session.relations())?;
                let relation = |info: anabranch_engine::RelationInfo| Relation {
                    columns: info.schema.fields().iter().map(|field| field.name().clone()).collect(),
                    kind: kind(info.kind),
                    name: info.name,
                };
                Ok(relations.into_iter().map(relation).collect())
            }
            Place::Remote(_) => {
                let sources: Vec<String> = match self.query("SHOW SOURCES") {
                    Ok(rows) => texts(&rows).into_iter().filter_map(|row| row.into_iter().next().flatten()).collect(),
                    // (A server of another kind has no sources.)
                    Err(_) => vec![],
                };
                Ok(gathered(texts(&self.query(RELATIONS)?), &sources))
            }
        }
    }

    /// Where the sources of this process stand, also while a statement runs.
    pub(crate) fn sources(&self) -> Vec<SourceStatus> {
        match self {
            Place::Embedded { host, .. } => host.sources(),
            Place::Remote(_) => vec![],
        }
    }

    /// Rows that the operators of this process have put out, also while a statement runs.
    pub(crate) fn rows_put_out(&self) -> u64 {
        match self {
            Place::Embedded { host, .. } => host.rows_put_out(),
            Place::Remote(_) => 0,
        }
    }

    /// What stops the running statement, from any thread.
    pub(crate) fn stopper(&self) -> Box<dyn Fn() + Send> {
        match self {
            Place::Embedded { host, .. } => {
                let interrupt = host.interrupt();
                Box::new(move || interrupt.trigger())
            }
            Place::Remote(remote) => remote.stopper(),
        }
    }

    /// In words, for people.
    pub(crate) fn told(&self) -> String {
        match self {
            Place::Embedded { folder: None, .. } => "memory (of this process; nothing is kept when it ends)".into(),
            Place::Embedded { folder: Some(folder), .. } => format!("{} (a folder of this machine)", folder.display()),
            Place::Remote(remote) => remote.told(),
        }
    }

    /// The session of this process.
    pub(crate) fn host(&self) -> Option<&Host> {
        match self {
            Place::Embedded { host, .. } => Some(host),
            Place::Remote(_) => None,
        }
    }
}

/// The error of a place that is no more.
pub(crate) fn lost(place: &Place) -> Error {
    match place {
        Place::Embedded { .. } => gone(),
        Place::Remote(_) => Error::internal("the connection's thread has stopped"),
    }
}

fn kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::Source => "source",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Index => "index",
        ObjectKind::Sequence => "sequence",
    }
}

/// Relations of rows (name, kind, column) that are in order.
fn gathered(rows: Vec<Vec<Option<String>>>, sources: &[String]) -> Vec<Relation> {
    let mut relations: Vec<Relation> = vec![];
    for row in rows {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let (name, kind, column) = (cells.next(), cells.next(), cells.next());
        let (Some(name), Some(kind), Some(column)) = (name, kind, column) else { continue };
        match relations.last_mut().filter(|last| last.name == name) {
            Some(last) => last.columns.push(column),
            None => {
                let kind = match kind.as_str() {
                    "v" => "view",
                    "m" => "materialized view",
                    _ if sources.contains(&name) => "source",
                    _ => "table",
                };
                relations.push(Relation { name, kind, columns: vec![column] });
            }
        }
    }
    relations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_gathered_by_relation() {
        let row = |name: &str, kind: &str, column: &str| {
            vec![name, kind, column].into_iter().map(|cell| Some(cell.to_owned())).collect()
        };
        let rows = vec![row("a", "r", "x"), row("a", "r", "y"), row("s", "r", "z"), row("v", "m", "n")];
        let relations = gathered(rows, &["s".into()]);
        let shown: Vec<(&str, &str, usize)> =
            relations.iter().map(|relation| (relation.name.as_str(), relation.kind, relation.columns.len())).collect();
        assert_eq!(shown, [("a", "table", 2), ("s", "source", 1), ("v", "materialized view", 1)]);
    }
}
