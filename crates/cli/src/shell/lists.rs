//! What there is: `\d` and its family, as questions that every place can answer.

use super::words::complain;
use crate::{
    output::texts,
    place::Relation,
    run::{Runner, Status},
};

/// Lists whose rows come from the catalog: their name, the query, and the column that a pattern is
/// for.
const QUERIES: &[(&str, &str, &str)] = &[
    (
        "\\di",
        "SELECT indexname AS \"Name\", tablename AS \"Table\", indexdef AS \"Definition\" FROM pg_catalog.pg_indexes",
        "indexname",
    ),
    ("\\dn", "SELECT nspname AS \"Name\" FROM pg_catalog.pg_namespace", "nspname"),
    (
        "\\du",
        "SELECT rolname AS \"Role name\", rolsuper AS \"Superuser\", rolcanlogin AS \"Can log in\" FROM pg_catalog.pg_roles",
        "rolname",
    ),
    (
        "\\df",
        "SELECT n.nspname AS \"Schema\", p.proname AS \"Name\" FROM pg_catalog.pg_proc p \
         JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace",
        "proname",
    ),
    ("\\l", "SELECT datname AS \"Name\" FROM pg_catalog.pg_database", "datname"),
];

/// Lists rows of the catalog; `None` for a name that is no such list.
pub(super) fn query(runner: &mut Runner<'_>, name: &str, pattern: &str) -> Option<Status> {
    let (_, sql, column) = QUERIES.iter().find(|(known, ..)| *known == name)?;
    let only = match pattern {
        "" => String::new(),
        pattern => format!(" WHERE {column} LIKE '{}'", like(pattern)),
    };
    let last = runner.last.clone();
    let status = runner.run_alone(&format!("{sql}{only} ORDER BY 1"));
    runner.last = last;
    Some(status)
}

/// A pattern of the shell as one of LIKE.
fn like(pattern: &str) -> String {
    let part = |c: char| match c {
        '*' => "%".to_owned(),
        '?' => "_".to_owned(),
        '%' | '_' | '\\' => format!("\\{c}"),
        '\'' => "''".to_owned(),
        c => c.to_string(),
    };
    pattern.chars().map(part).collect()
}

/// Whether a name is one that a pattern means.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => {
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(&name[at..], &pattern[1..]))
        }
        Some(wanted) => name.chars().next().is_some_and(|c| {
            (wanted == '?' || wanted == c) && fits(&name[c.len_utf8()..], &pattern[wanted.len_utf8()..])
        }),
    }
}

/// Lists relations of these kinds whose names fit; all kinds where none is given.
pub(super) fn relations(runner: &Runner<'_>, kinds: &[&str], pattern: &str) -> Status {
    let mut relations = match runner.place.relations() {
        Ok(relations) => relations,
        Err(error) => return complain(error.render("").trim_start_matches("error: ")),
    };
    if relations.is_empty() {
        println!("There is nothing yet: begin with CREATE TABLE or CREATE SOURCE.");
        return Status::Good;
    }
    relations.retain(|relation| {
        (kinds.is_empty() || kinds.contains(&relation.kind)) && (pattern.is_empty() || fits(&relation.name, pattern))
    });
    print(&relations);
    Status::Good
}

fn print(relations: &[Relation]) {
    let widest = relations.iter().map(|relation| relation.name.len()).max().unwrap_or(0);
    for relation in relations {
        println!("{:widest$}  {:17}  {}", relation.name, relation.kind, relation.columns.join(", "));
    }
}

/// Prints how everything was created.
pub(super) fn definitions(runner: &Runner<'_>) -> Status {
    for relation in runner.place.relations().unwrap_or_default() {
        let sql = format!("SHOW CREATE \"{}\"", relation.name.replace('"', "\"\""));
        let Ok(rows) = runner.place.query(&sql) else { continue };
        for text in texts(&rows).into_iter().filter_map(|row| row.into_iter().next_back().flatten()) {
            println!("{};", text.trim_end_matches(';'));
        }
    }
    Status::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_names() {
        assert!(fits("orders", "ord*") && fits("orders", "*e?s") && fits("ü", "?") && fits("a", "a"));
        assert!(!fits("orders", "ord") && !fits("orders", "x*") && !fits("", "?"));
        assert_eq!(like("a_*'?"), "a\\_%''_");
    }
}
