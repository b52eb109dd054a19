//! Matches that PostgreSQL 15 reported for the same patterns and texts.

use super::*;

/// The match and its groups, or what is wrong with the pattern.
fn found(text: &str, pattern: &str, letters: &str) -> String {
    let (flags, _) = Flags::read(letters).expect("they are flags");
    let regex = match Regex::new(pattern, flags) {
        Ok(regex) => regex,
        Err(problem) => return problem,
    };
    let text = SearchedText::new(text);
    let matched = regex.find(&text, 0).expect("it is short");
    assert_eq!(regex.is_match(&text), Ok(matched.is_some()), "{pattern}");
    let Some(matched) = matched else { return "none".into() };
    let part =
        |part: &Option<(usize, usize)>| part.map_or("-".to_string(), |(start, end)| text.part(start, end).into_owned());
    matched.groups.iter().map(part).collect::<Vec<_>>().join("|")
}

#[test]
fn the_longest_of_the_leftmost_matches_is_found() {
    assert_eq!(found("xab", "a|ab", ""), "ab");
    assert_eq!(found("ab", "(a?)(ab)?", ""), "ab||ab");
    assert_eq!(found("aaa", "a+?", ""), "a");
    assert_eq!(found("abcd", "a.*?d|x", ""), "abcd");
    assert_eq!(found("bcd", "a", ""), "none");
}

#[test]
fn groups_are_divided_from_the_left() {
    assert_eq!(found("ab", "(ab|a|b)+", ""), "ab|b");
    assert_eq!(found("xbbaa", "([ab][^a]{1,}|.)(\\w{0,2}?){0,2}?(b|cb)+", ""), "xbb|x|-|b");
    assert_eq!(found("abbab1 b", "b\\w(b*?)*?", ""), "bb|-");
    assert_eq!(found("abc", "(z)|(b)", ""), "b|-|b");
}

#[test]
fn references_and_conditions_are_kept() {
    assert_eq!(found("xabab", "(ab)\\1", ""), "abab|ab");
    assert_eq!(found("abaB", "(ab)\\1", "i"), "abaB|ab");
    assert_eq!(found("foobaz foobar", "foo(?=bar)", ""), "foo");
    assert_eq!(found("xbar bar", "(?<!x)bar", ""), "bar");
    assert_eq!(found("b", "(a)?b\\1*", ""), "none");
    assert!(found("aa", "(a)*?\\1", "").contains("not supported"));
}

#[test]
fn lines_matter_where_flags_say_so() {
    assert_eq!(found("a\nb", "a.b", ""), "a\nb");
    assert_eq!(found("a\nb", "a.b", "n"), "none");
    assert_eq!(found("a\nb", "^b", "n"), "b");
    assert_eq!(found("a\nb", "^b", "p"), "none");
    assert_eq!(found("a\nb", "a$", "w"), "a");
    assert_eq!(found("a\n", "a$", ""), "none");
}

#[test]
fn what_is_no_pattern_is_refused() {
    let invalid = |what: &str| format!("invalid regular expression: {what}");
    assert_eq!(found("", "(", ""), invalid("parentheses () not balanced"));
    assert_eq!(found("", "a)", ""), invalid("parentheses () not balanced"));
    assert_eq!(found("", "[a", ""), invalid("brackets [] not balanced"));
    assert_eq!(found("", "*", ""), invalid("quantifier operand invalid"));
    assert_eq!(found("", "a**", ""), invalid("quantifier operand invalid"));
    assert_eq!(found("", "a{2,1}", ""), invalid("invalid repetition count(s)"));
    assert_eq!(found("", "\\1", ""), invalid("invalid backreference number"));
    assert_eq!(found("", "[b-a]", ""), invalid("invalid character range"));
    assert_eq!(found("", &"(".repeat(10_000), ""), invalid("regular expression is too complex"));
    assert_eq!(found("", "(((a{250}){250}){250}){250}", ""), invalid("regular expression is too complex"));
}

#[test]
fn long_texts_need_no_deep_stack() {
    let text = "ab".repeat(3000);
    assert_eq!(found(&text, "^(a|b)*$", ""), format!("{text}|b"));
}

#[test]
fn matches_are_found_behind_what_they_begin_with() {
    assert_eq!(found("?query=1&channel_id=12&x", "channel_id=([^&]*)", ""), "channel_id=12|12");
    assert_eq!(found("channel_i channel_id", "channel_id=([^&]*)", ""), "none");
    assert_eq!(found("xxabaab", "(ab)+b?|z", ""), "ab|ab");
    assert_eq!(found("xxABC", "abc", "i"), "ABC");
    assert_eq!(found("ab\nac", "a(c)$", ""), "ac|c");
    // More beginnings than are tried one by one.
    assert_eq!(found(&"ax".repeat(30), "ab", ""), "none");
    assert_eq!(found(&("a".repeat(30) + "b"), "aa?(b)", ""), "aab|b");
    assert_eq!(found(&"a".repeat(30), "a+b", ""), "none");
}

/// Whole numbers below a bound, the same in each run (Knuth's constants for a linear congruence).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn pattern(&mut self, depth: usize) -> String {
        let atoms = ["a", "b", "é", ".", "[^a]", "[ab]", "\\w", "ab"];
        match self.below(if depth == 0 { 1 } else { 7 }) {
            0 | 1 => atoms[self.below(atoms.len())].to_string(),
            2 => format!("({})", self.pattern(depth - 1)),
            3 => format!("(?:{}|{})", self.pattern(depth - 1), self.pattern(depth - 1)),
            4 => format!("(?:{}){}", self.pattern(depth - 1), ["*", "+", "?", "*?", "+?", "{1,2}"][self.below(6)]),
            _ => format!("{}{}", self.pattern(depth - 1), self.pattern(depth - 1)),
        }
    }
}

#[test]
fn automata_answer_what_the_program_answers() {
    let mut dice = Dice(41);
    let mut n_found = 0;
    for _ in 0..3_000 {
        let pattern = dice.pattern(4);
        let quick = Regex::new(&pattern, Flags::default()).expect("it is a pattern");
        let slow = Regex::new(&pattern, Flags::default()).expect("it is a pattern");
        let slow = Regex { program: slow.program.without_automata(), ..slow };
        // (Several texts each, for steps are kept from one to the next.)
        for _ in 0..4 {
            let letters: &[char] = if dice.below(2) == 0 { &['a', 'b', 'c'] } else { &['a', 'b', 'é', 'c'] };
            let written: String = (0..dice.below(9)).map(|_| letters[dice.below(letters.len())]).collect();
            let text = SearchedText::new(&written);
            let from = dice.below(text.len() + 1);
            let found = quick.find(&text, from);
            assert_eq!(found, slow.find(&text, from), "{pattern} on {written} from {from}");
            assert_eq!(quick.is_match(&text), slow.is_match(&text), "{pattern} on {written}");
            n_found += usize::from(found.is_ok_and(|found| found.is_some()));
        }
    }
    assert!(n_found > 4_000, "{n_found} matches are few");
}

#[test]
fn a_pattern_with_many_sets_of_states_is_followed_as_it_is() {
    // (The automaton would have a state for each of 2^12 beginnings.)
    let mut dice = Dice(7);
    let text: String = (0..40_000).map(|_| ['a', 'b'][dice.below(2)]).collect();
    assert_eq!(found(&(text + "abbbbbbbbbbbb!"), "(?:a|b)*(a)(?:a|b){12}!", "").len(), 40_016);
}

#[test]
fn what_stands_before_a_place_is_looked_for_quickly() {
    let text = "ab ".repeat(100_000);
    let text = SearchedText::new(&text);
    let regex = Regex::new("(?<=a)b$", Flags::default()).expect("it is a pattern");
    assert_eq!(regex.is_match(&text), Ok(false));
    let text = "ab ".repeat(100);
    let text = SearchedText::new(&text);
    let regex = Regex::new("(?<=(?<=a)b) a", Flags::default()).expect("it is a pattern");
    assert_eq!(regex.find(&text, 0).map(|found| found.map(|found| found.start())), Ok(Some(2)));
}
