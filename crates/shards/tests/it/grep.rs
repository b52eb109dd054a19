//! Distributed grep finds the lines that a search of all texts finds, and moves none.

use anabranch_shards::Layout;

#[path = "../../examples/grep.rs"]
mod example;

#[test]
fn lines_are_found_where_they_lie() {
    let text = |file: usize| {
        let line = |at: usize| {
            format!("line {at} of {file} {}", if (at * 7 + file).is_multiple_of(5) { "a needle" } else { "hay" })
        };
        (format!("file {file:03}"), (0..40).map(line).collect::<Vec<_>>().join("\n"))
    };
    let texts: Vec<(String, String)> = (0..100).map(text).collect();
    let all = texts.iter().flat_map(|(file, text)| {
        text.lines().enumerate().map(|(at, line)| (file.clone(), at as i64 + 1, line.to_owned())).collect::<Vec<_>>()
    });
    let expected: Vec<example::Found> = all.filter(|(.., line)| line.contains("needle")).collect();
    assert_eq!(expected.len(), 800);
    for shards in [1, 2, 5] {
        assert_eq!(example::grep("%needle%", &texts, Layout::flat(shards)).unwrap(), expected, "{shards} shards");
    }
    assert!(example::grep("%needles%", &texts, Layout::flat(3)).unwrap().is_empty());
}
