//! How statements are written, for `\\h`.

use crate::run::Status;

/// Each statement's synopsis, in the order in which a person meets them.
const SYNOPSES: &[&str] = &[
    "CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (column type [NOT NULL] [DEFAULT value] [PRIMARY KEY] [UNIQUE]
             [CHECK (condition)] [REFERENCES table] [GENERATED ALWAYS AS (expression) STORED] [, ..]
             [, PRIMARY KEY (columns)] [, UNIQUE (columns)] [, CHECK (condition)]
             [, FOREIGN KEY (columns) REFERENCES table [(columns)] [ON DELETE {CASCADE | SET NULL | RESTRICT}]]
             [, WATERMARK FOR column AS expression] [, LIKE table]) [APPEND ONLY] [WITH (retain = 'none')]",
    "CREATE [TEMPORARY] TABLE name [(columns)] AS query",
    "CREATE SOURCE [IF NOT EXISTS] name [(column type, ..)] WITH (connector = 'file', path = '..' [, option = '..'])",
    "CREATE [OR REPLACE] VIEW name [(columns)] AS query",
    "CREATE MATERIALIZED VIEW name [(columns)] AS query [EMIT ON WINDOW CLOSE]",
    "CREATE [UNIQUE] INDEX [name] ON relation (columns)",
    "CREATE SCHEMA [IF NOT EXISTS] name",
    "ALTER TABLE table {ADD [COLUMN] column type [..] | DROP [COLUMN] column | RENAME [COLUMN] column TO name
             | RENAME TO name | ALTER [COLUMN] column {SET DEFAULT value | DROP DEFAULT | SET NOT NULL | DROP NOT NULL
             | TYPE type [USING expression] | RESTART [WITH number]} | ADD [CONSTRAINT name] {CHECK (condition)
             | UNIQUE (columns) | PRIMARY KEY (columns) | FOREIGN KEY ..} | DROP CONSTRAINT name} [, ..]",
    "ALTER {VIEW | MATERIALIZED VIEW | INDEX | SOURCE} name RENAME TO name",
    "ALTER SOURCE name STOP",
    "DROP {TABLE | SOURCE | VIEW | MATERIALIZED VIEW | INDEX | SCHEMA} [IF EXISTS] name [, ..] [CASCADE | RESTRICT]",
    "INSERT INTO table [(columns)] {VALUES (..) [, ..] | query | DEFAULT VALUES}
             [ON CONFLICT [(columns)] {DO NOTHING | DO UPDATE SET column = expression [, ..] [WHERE condition]}]
             [RETURNING ..]",
    "UPDATE table SET column = expression [, ..] [FROM relations] [WHERE condition] [RETURNING ..]",
    "DELETE FROM table [USING relations] [WHERE condition] [RETURNING ..]",
    "MERGE INTO table USING relation ON condition
             WHEN MATCHED [AND condition] THEN {UPDATE SET column = expression [, ..] | DELETE | DO NOTHING}
             WHEN NOT MATCHED [AND condition] THEN {INSERT [(columns)] VALUES (..) | DO NOTHING}",
    "TRUNCATE [TABLE] table [, ..] [RESTART IDENTITY] [CASCADE]",
    "COPY table [(columns)] FROM {'file' | STDIN} [WITH (FORMAT {csv | text | binary}, HEADER, DELIMITER '..', NULL '..')]",
    "COPY {table [(columns)] | (query) | (SUBSCRIBE ..)} TO {'file' | STDOUT}
             [WITH (FORMAT {csv | text | binary}, HEADER, DELIMITER '..', NULL '..')]",
    "SELECT [DISTINCT [ON (..)]] .. FROM relations [WHERE condition] [GROUP BY ..] [HAVING condition] [WINDOW name AS (..)]
             [{UNION | INTERSECT | EXCEPT} [ALL] query] [ORDER BY ..] [LIMIT number] [OFFSET number] [AS OF time]
             FROM takes relation, (query) AS name, 'file', read_csv('file' [, option => value]) and generate_series(..);
             joins are [INNER | LEFT | RIGHT | FULL] JOIN .. {ON condition | USING (columns)}, CROSS JOIN, ASOF JOIN",
    "SELECT .. FROM {TUMBLE(TABLE relation, DESCRIPTOR(time), size) | HOP(TABLE relation, DESCRIPTOR(time), step, size)
             | CUMULATE(TABLE relation, DESCRIPTOR(time), step, size) | SESSION(TABLE relation, DESCRIPTOR(time), gap)}
             windows of time; each row has window_start and window_end",
    "SELECT .. FROM SPLIT(TABLE relation, route, width [, broadcast])
             branches of rows; each row has branch, from 0 up to the width",
    "SELECT function(..) OVER ([PARTITION BY ..] [ORDER BY ..] [{ROWS | RANGE | GROUPS} BETWEEN start AND end]) ..",
    "WITH [RECURSIVE] name [(columns)] AS (query) [, ..] query",
    "VALUES (..) [, ..]",
    "TABLE relation",
    "SUBSCRIBE [TO] {relation | (query)} [ENVELOPE UPSERT (KEY (columns))] [AS OF time] [UP TO time]",
    "EXPLAIN [ANALYZE | (REWRITES) | (FORMAT {python | rust})] query",
    "SHOW {TABLES | SOURCES | VIEWS | MATERIALIZED VIEWS | INDEXES | ARRANGEMENTS | OPERATORS | STEPS | WATERMARKS | TIME}",
    "SHOW {CREATE name | COLUMNS FROM name | setting | ALL}",
    "DESCRIBE name",
    "SET [SESSION | LOCAL] setting {= | TO} value",
    "RESET {setting | ALL}",
    "BEGIN [READ ONLY | READ WRITE]",
    "COMMIT",
    "ROLLBACK [TO [SAVEPOINT] name]",
    "SAVEPOINT name",
    "RELEASE [SAVEPOINT] name",
    "PREPARE name [(types)] AS statement",
    "EXECUTE name [(values)]",
    "DEALLOCATE {name | ALL}",
    "DECLARE name CURSOR [WITH HOLD] FOR {query | SUBSCRIBE ..}",
    "FETCH [number | ALL] [FROM] cursor",
    "MOVE [number | ALL] [FROM] cursor",
    "CLOSE {cursor | ALL}",
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
    let wanted: Vec<String> = words.split_whitespace().map(str::to_uppercase).collect();
    SYNOPSES.iter().copied().filter(|synopsis| begins(synopsis, &wanted)).collect()
}

/// Whether a synopsis begins with these words; those in brackets may be left out, and of those in
/// braces one is chosen.
fn begins(synopsis: &str, wanted: &[String]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return true };
    let synopsis = synopsis.trim_start();
    if let Some(inside) = synopsis.strip_prefix('[').or(synopsis.strip_prefix('{')) {
        let end = closing(inside);
        let behind = &inside[(end + 1).min(inside.len())..];
        let is_optional = synopsis.starts_with('[');
        let chosen = |choice: &str| begins(&format!("{} {behind}", choice.trim()), wanted);
        return choices(&inside[..end]).into_iter().any(chosen) || (is_optional && begins(behind, wanted));
    }
    let length = synopsis.find(char::is_whitespace).unwrap_or(synopsis.len());
    let (word, behind) = synopsis.split_at(length);
    match rest {
        [] => word.starts_with(first.as_str()),
        rest => word == first && begins(behind, rest),
    }
}

/// Where the bracket closes that a text is inside of.
fn closing(inside: &str) -> usize {
    let mut depth = 0;
    for (at, c) in inside.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' if depth == 0 => return at,
            ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    inside.len()
}

/// The parts of a text between bars outside of brackets.
fn choices(inside: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, vec![]);
    for (at, c) in inside.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synopses_are_found_by_their_first_words() {
        assert_eq!(matching("create").len(), 7);
        assert_eq!(matching("alter").len(), 3);
        assert_eq!(matching("create view").len(), 1);
        assert_eq!(matching("create unique index").len(), 1);
        assert_eq!(matching("flush"), ["FLUSH"]);
        assert!(matching("nonsense").is_empty());
        assert_eq!(matching("").len(), SYNOPSES.len());
    }
}
