//! Choosing the neighbours of a spine that are merged.
//!
//! Law: the newest window that fits is found, as long as it can be. Cost: O(levels), since a run
//! too large for all newer runs of a window together is too large for some of them.

use std::ops::Range;

use crate::demand::MERGED_RUNS_MAX;

/// The newest neighbours of `n_levels` levels with so many rows each, `None` for one that is being
/// merged: `runs` at least, of which each is at most `ratio` times as large as the newer ones
/// together.
pub(crate) fn newest_window(
    n_levels: usize,
    rows_of: impl Fn(usize) -> Option<usize>,
    runs: usize,
    ratio: usize,
) -> Option<Range<usize>> {
    let mut end = n_levels;
    while end > 0 {
        let (mut start, mut rows) = (end, 0);
        while let Some(more) = start.checked_sub(1).and_then(&rows_of)
            && end - start < MERGED_RUNS_MAX
            && (rows == 0 || more <= ratio * rows)
        {
            rows += more;
            start -= 1;
        }
        if end - start >= runs {
            return Some(start..end);
        }
        end = start.min(end - 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window tried, from the newest on.
    fn window_of_model(levels: &[Option<usize>], runs: usize, ratio: usize) -> Option<Range<usize>> {
        let window = |end: usize| {
            let mut rows = 0;
            let belongs = |level: &&Option<usize>| match level {
                Some(more) if rows == 0 || *more <= ratio * rows => {
                    rows += more;
                    true
                }
                _ => false,
            };
            let n = levels[..end].iter().rev().take(MERGED_RUNS_MAX).take_while(belongs).count();
            end - n..end
        };
        (1..=levels.len()).rev().map(window).find(|window| window.len() >= runs)
    }

    #[test]
    fn the_newest_window_is_that_of_trying_all() {
        let mut state = 11u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut n_found = 0;
        for _ in 0..20_000 {
            let levels: Vec<Option<usize>> = (0..draw(40)).map(|_| (draw(20) > 0).then(|| 1 << draw(10))).collect();
            let (runs, ratio) = ([2, 4, 8, 16][draw(4) as usize], [1, 8][draw(2) as usize]);
            let found = newest_window(levels.len(), |at| levels[at], runs, ratio);
            assert_eq!(found, window_of_model(&levels, runs, ratio), "{levels:?}, {runs} runs, {ratio} times");
            n_found += usize::from(found.is_some());
        }
        assert!((5_000..19_000).contains(&n_found), "{n_found}");
    }
}
