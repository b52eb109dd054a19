//! Queries with bound arguments: the answers are those of the whole relation, and less is computed.

use anabranch_datalog::{Program, Value};
use anabranch_testing::rng::Rng;

use crate::host::{ModelHost, session};
use crate::naive::Facts;
use crate::random::{change, numbers, program};

#[test]
fn queries_agree_with_the_whole_relation() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let random = program(&mut rng);
        // Without outputs in a view, queries compute.
        let text = random.text().replace(".output", ".printsize");
        let shown = text.lines().filter(|line| !line.starts_with(".printsize")).collect::<Vec<_>>().join("\n");
        let hidden = format!("{shown}\n.decl none(x: number)\n.output none");
        let mut host = ModelHost::new();
        let installed = Program::parse(&hidden).unwrap().install(&mut host).unwrap();
        let mut facts = Facts::new();
        (0..3).for_each(|_| change(&mut rng, &random, &installed, &mut host, &mut facts));
        let expected = random.evaluate(&facts);
        for (name, arity) in &random.derived {
            let rows = expected.get(name).cloned().unwrap_or_default();
            let bound = rng.below(5) as i64;
            let (query, column) = match arity {
                1 => (format!("{name}({bound})"), 0),
                _ if rng.chance(50) => (format!("{name}({bound}, x)?"), 0),
                _ => (format!("{name}(x, {bound})."), 1),
            };
            let answers = numbers(installed.query(&mut host, &query).unwrap());
            let wanted = rows.iter().filter(|row| row[column] == bound);
            let wanted = wanted.map(|row| if *arity == 1 { vec![1] } else { vec![row[1 - column]] }).collect();
            assert_eq!(answers, wanted, "seed {seed}: {query} of\n{text}\nover {facts:?}");
        }
    }
}

#[test]
fn a_query_of_what_cannot_all_be_computed_ends() {
    // The whole relation has no end: the numbers go on for ever.
    let text = ".decl up(x: number, n: number)\nup(x, x) :- start(x).\n.decl start(x: number)\nstart(0).\n\
                .decl down(n: number, s: number)\ndown(0, 0).\ndown(n, s + n) :- n > 0, down(n - 1, s).\n\
                .decl some(x: number)\n.output some\nsome(x) :- up(x, _).";
    let error = Program::parse(text).unwrap().check().unwrap_err();
    assert!(error.message.contains("variable n"), "{error}");
    let text = ".decl edge(a: number, b: number)\nedge(1, 2).\nedge(2, 3).\nedge(7, 8).\n\
                .decl path(a: number, b: number)\npath(a, b) :- edge(a, b).\npath(a, c) :- edge(a, b), path(b, c).\n\
                .decl none(x: number)\n.output none";
    let mut host = ModelHost::new();
    let installed = Program::parse(text).unwrap().install(&mut host).unwrap();
    let plan = format!("{:?}", installed.query_plan("path(1, x)").unwrap());
    assert!(plan.contains("?path^bf"), "the loop asks for the values that are wanted: {plan}");
    let answers = installed.query(&mut host, "path(1, x)?").unwrap();
    assert_eq!(answers, [[Value::from(2)], [Value::from(3)]]);
    assert_eq!(installed.query(&mut host, "path(1, 8)").unwrap(), Vec::<Vec<Value>>::new());
    assert_eq!(installed.query(&mut host, "path(7, 8)").unwrap(), [[Value::from(1)]]);
}

#[test]
fn bad_queries_are_told_what_is_wrong() {
    let mut session = session();
    let text = ".decl edge(a: number, b: number)\nedge(1, 2).";
    let installed = Program::parse(text).unwrap().install(&mut session).unwrap();
    for (query, message) in [
        ("edg(1, x)", "relation edg is not declared"),
        ("edge(1)", "relation edge takes 2 arguments, but 1 are given"),
        ("edge(\"a\", x)", "the value is of type symbol, but its place wants type number"),
        ("edge(1, x), edge(x, 2)", "':-' after several heads is expected, but there is '.'"),
        ("", "a declaration or a rule is expected, but there is '.'"),
    ] {
        let error = installed.query(&mut session, query).unwrap_err();
        assert_eq!(error.message, message, "{query}");
    }
    assert_eq!(installed.query(&mut session, "edge(x, x)").unwrap(), Vec::<Vec<Value>>::new());
    assert_eq!(installed.query(&mut session, "edge(y, x)").unwrap(), [[Value::from(1), Value::from(2)]]);
}
