//! "Did you mean": the known name closest to an unknown one.
//!
//! Closeness is the number of single-character edits, a swap of neighbours counting as one (optimal
//! string alignment). A name is offered only when at most a third of its characters differ.

/// The candidate closest to `name`, if one is close; among equally close ones the first in order of
/// the alphabet.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = (name.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_is_one_edit() {
        assert_eq!(distance("form", "from"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_close_names_are_offered() {
        assert_eq!(nearest("oders", ["orders", "part"].into_iter()), Some("orders"));
        assert_eq!(nearest("xyz", ["orders", "part"].into_iter()), None);
    }
}
