//! What the demo shows: each materialized view of its script, under the comment that stands above
//! it.

use anabranch_sql::{Parsed, statement::Statement};

/// One view on show.
pub(super) struct Exhibit {
    /// The question it answers: the first sentence of the comment above it, else its name.
    pub title: String,
    name: String,
    /// `ORDER BY ..`: the view's own order as far as its columns tell it.
    order: String,
}

impl Exhibit {
    /// The first rows of the view, or all of them.
    pub(super) fn query(&self, rows_max: Option<usize>) -> String {
        let limit = rows_max.map(|rows_max| format!(" LIMIT {rows_max}")).unwrap_or_default();
        format!("SELECT * FROM {}{}{limit}", quoted(&self.name), self.order)
    }
}

/// The materialized views of a script, in its order.
pub(super) fn exhibits(text: &str, statements: &[Parsed]) -> Vec<Exhibit> {
    let exhibit = |(i, parsed): (usize, &Parsed)| match &parsed.statement {
        Statement::CreateView(create) if create.materialized => {
            let gap = if i == 0 { 0 } else { statements[i - 1].range.end }..parsed.range.start;
            let question = question(&text[gap]);
            Some(Exhibit {
                title: question
                    .map_or_else(|| create.name.clone(), |question| format!("{question}  ({})", create.name)),
                order: order(create.query.order_by.as_ref().map(ToString::to_string)),
                name: create.name.clone(),
            })
        }
        _ => None,
    };
    statements.iter().enumerate().filter_map(exhibit).collect()
}

/// The first sentence of the last comment in the text between two statements.
fn question(gap: &str) -> Option<String> {
    let block = gap.trim_end().rsplit("\n\n").next()?;
    let lines = block.lines().filter_map(|line| line.trim().strip_prefix("--")).map(str::trim);
    let comment = lines.collect::<Vec<_>>().join(" ");
    let end = comment.find(['?', '.']).map_or(comment.len(), |end| end + 1);
    (!comment.is_empty()).then(|| comment[..end].to_string())
}

/// The view's order in words that hold outside of it: `f.origin DESC` becomes `origin DESC`.
/// Without one, the first column.
fn order(clause: Option<String>) -> String {
    let Some(clause) = clause else { return " ORDER BY 1".into() };
    let keys = clause.trim_start_matches("ORDER BY ").split(',').map(|key| {
        let key = key.trim();
        let word = key.split(' ').next().unwrap_or_default();
        let qualifier = word.rfind('.').map_or(0, |dot| dot + 1);
        key[qualifier..].to_string()
    });
    let keys: Vec<String> = keys.filter(|key| !key.contains(['(', ')', '\''])).collect();
    if keys.is_empty() { " ORDER BY 1".into() } else { format!(" ORDER BY {}", keys.join(", ")) }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_shown_in_their_own_order_under_their_question() {
        assert_eq!(order(Some("ORDER BY late DESC, f.origin".into())), " ORDER BY late DESC, origin");
        assert_eq!(order(Some("ORDER BY sum(x)".into())), " ORDER BY 1");
        assert_eq!(question("\n\n-- About.\n\n-- Which is worst? Only\n-- some.\n"), Some("Which is worst?".into()));
        assert_eq!(question("\n\n"), None);
    }

    #[test]
    fn the_final_answers_are_whole() {
        let exhibit = Exhibit { title: String::new(), name: "v".into(), order: " ORDER BY 1".into() };
        assert_eq!(exhibit.query(Some(3)), "SELECT * FROM \"v\" ORDER BY 1 LIMIT 3");
        assert_eq!(exhibit.query(None), "SELECT * FROM \"v\" ORDER BY 1");
    }
}
