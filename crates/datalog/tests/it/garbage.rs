//! Garbage: the parser and the checker give an error or a program, and never panic.

use anabranch_datalog::Program;
use anabranch_testing::rng::Rng;

const WORDS: &[&str] = &[
    ".decl",
    ".type",
    ".input",
    ".output",
    ".comp",
    ".plan",
    "a",
    "b",
    "x",
    "y",
    "_",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ".",
    ":",
    ":-",
    "<:",
    "|",
    "!",
    "=",
    "!=",
    "<",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "^",
    "%",
    "$",
    "@",
    "1",
    "2u",
    "0xf",
    "1.5",
    "\"s\"",
    "\"",
    "nil",
    "as",
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "band",
    "lnot",
    "cat",
    "range",
    "match",
    "true",
    "symbol",
    "number",
    "eqrel",
    "\n",
    "#define a b\n",
    "#ifdef a\n",
    "#endif\n",
    "//",
    "/*",
    "*/",
    "é",
];

fn survives(text: &str) {
    if let Ok(program) = Program::parse(text) {
        let _ = program.check();
    }
}

#[test]
fn random_words_do_not_panic() {
    let mut rng = Rng::new(7);
    for _ in 0..20_000 {
        let n_words = rng.below(40);
        let words: Vec<&str> = (0..n_words).map(|_| WORDS[rng.below(WORDS.len())]).collect();
        survives(&words.join(if rng.below(2) == 0 { "" } else { " " }));
    }
}

#[test]
fn programs_with_a_damaged_place_do_not_panic() {
    let whole = ".type L = [h: number, t: L]\n.type T = A {x: number} | B {}\n.decl a(x: number, l: L, t: T)\n\
                 a(1, [1, nil], $A(2)).\n.decl b(x: number)\nb(x) :- a(x, [y, _], $A(z)), !b2(y), z = count : { a(_, _, _) }, \
                 (x < y; match(\"a.*\", \"b\")).\n.decl b2(x: number)\n.output b(filename=\"x\")";
    let mut rng = Rng::new(11);
    let pick = |rng: &mut Rng, text: &str| {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        places[rng.below(places.len())]
    };
    for _ in 0..20_000 {
        let mut text = whole.to_owned();
        for _ in 0..=rng.below(3) {
            if text.is_empty() {
                break;
            }
            let at = pick(&mut rng, &text);
            match rng.below(3) {
                0 => drop(text.remove(at)),
                1 => text.insert_str(at, WORDS[rng.below(WORDS.len())]),
                _ => text.truncate(at.max(1)),
            }
        }
        survives(&text);
    }
}

#[test]
fn deep_nesting_is_refused_without_overflowing_the_stack() {
    let deep = 200_000;
    let head = ".decl a(x: number)\na(x) :- ";
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("lnot ", ""), ("$A(", ")"), ("2 ^ ", "")] {
        let text = format!("{head}a(x), x = {}1{}.", open.repeat(deep), close.repeat(deep));
        assert!(Program::parse(&text).is_err(), "{open} is refused");
        let text = format!("{head}{}a(x){}.", open.repeat(deep), close.repeat(deep));
        assert!(Program::parse(&text).is_err(), "{open} before an atom is refused");
    }
    let sum = format!("{head}a(x), x = 1{}.", " + 1".repeat(deep));
    assert!(Program::parse(&sum).is_err(), "long sums are refused");
    let counts = format!("{head}{}a(x).", "x = count : { ".repeat(deep));
    assert!(Program::parse(&counts).is_err(), "aggregates within aggregates are refused");
    let macros: String = (0..60).map(|i| format!("#define m{} m{i} m{i}\n", i + 1)).collect();
    assert!(Program::parse(&format!("#define m0 a\n{macros}m60")).is_err(), "macros that double are refused");
}

#[test]
fn wide_programs_are_refused_or_planned() {
    let alternatives = "(a(x); a(x + 1))".to_owned() + &", (a(x); a(x + 1))".repeat(30);
    let text = format!(".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x), {alternatives}.");
    let error = Program::parse(&text).unwrap().check().unwrap_err();
    assert!(error.message.contains("1000 alternatives"), "{error}");
    let chain: String = (1..3_000).map(|i| format!(".decl r{i}(x: number)\nr{i}(x) :- r{}(x).\n", i - 1)).collect();
    Program::parse(&format!(".decl r0(x: number)\nr0(1).\n{chain}")).unwrap().check().unwrap();
}
