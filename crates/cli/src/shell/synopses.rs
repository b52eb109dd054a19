//! How statements are written, for `\\h`.

use crate::run::Status;

/// Each statement's synopsis, in the order in which a person meets them.
const SYNOPSES: &[&str] = &[
    "CREATE TABLE [IF NOT EXISTS] name (column type [NOT NULL] [PRIMARY KEY] [, ..] [, PRIMARY KEY (columns)]
             [, WATERMARK FOR column AS expression])",
    "CREATE SOURCE [IF NOT EXISTS] name [(column type, ..)] WITH (connector = 'file', path = '..' [, option = '..'])",
    "CREATE [MATERIALIZED] VIEW name [(columns)] AS query [EMIT ON WINDOW CLOSE]",
    "CREATE INDEX [name] ON relation (columns)",
    "DROP {TABLE | SOURCE | VIEW | MATERIALIZED VIEW | INDEX} [IF EXISTS] name [, ..] [CASCADE | RESTRICT]",
    "INSERT INTO table [(columns)] {VALUES (..) [, ..] | query}",
    "UPDATE table SET column = expression [, ..] [FROM relations] [WHERE condition]",
    "DELETE FROM table [USING relations] [WHERE condition]",
    "TRUNCATE table",
    "COPY table [(columns)] FROM 'file' [WITH (FORMAT csv, HEADER, DELIMITER '..')]",
    "SELECT .. [AS OF time]",
    "SUBSCRIBE [TO] relation [AS OF time] [UP TO time]",
    "EXPLAIN query",
    "SHOW {TABLES | SOURCES | VIEWS | MATERIALIZED VIEWS | INDEXES | ARRANGEMENTS | STEPS | WATERMARKS | TIME}",
    "SHOW {CREATE name | COLUMNS FROM name | setting}",
    "DESCRIBE name",
    "SET setting = value",
    "FLUSH",
];

/// Prints the synopses that begin with the given words; without words, all.
pub(super) fn print(words: &str) -> Status {
    let found = matching(words);
    if found.is_empty() {
        println!("No statement begins with \"{words}\". Type \\h for all.");
    }
    found.iter().for_each(|synopsis| println!("{synopsis}"));
    Status::Good
}

fn matching(words: &str) -> Vec<&'static str> {
    let begin = words.to_uppercase();
    SYNOPSES.iter().copied().filter(|synopsis| synopsis.starts_with(&begin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synopses_are_found_by_their_first_words() {
        assert_eq!(matching("create").len(), 4);
        assert_eq!(matching("flush"), ["FLUSH"]);
        assert!(matching("nonsense").is_empty());
        assert_eq!(matching("").len(), SYNOPSES.len());
    }
}
