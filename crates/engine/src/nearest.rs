//! The nearest known name to a misspelt one, for hints.

/// The candidate with the fewest edits from `name`, if it is near enough to be a likely misspelling
/// (at most a third of the name's characters, and at least two edits are forgiven). Ties go to the
/// first candidate. O(candidates * length^2).
///
/// ```
/// use anabranch_engine::nearest::nearest;
/// assert_eq!(nearest("ordres", ["lineitem", "orders"]), Some("orders"));
/// assert_eq!(nearest("xyz", ["orders"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (name.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (edits(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| *edits <= edits_max && *edits < candidate.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, one row of the table at a time.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
