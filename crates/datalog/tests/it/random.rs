//! Random programs under random changes of their facts, against the naive evaluator after each one.

use std::collections::BTreeSet;

use anabranch_datalog::{Host, Installed, Program, Value};
use anabranch_testing::rng::Rng;

use crate::host::{ModelHost, session};
use crate::naive::{Arg, Facts, Lit, Random, Rule};

/// Values of facts: few, so that joins meet.
const VALUES: usize = 5;

pub fn program(rng: &mut Rng) -> Random {
    let mut random = Random { inputs: vec![("e0".into(), 2), ("e1".into(), 1), ("e2".into(), 2)], ..Random::default() };
    for stratum in 0..1 + rng.below(3) {
        let below: Vec<(String, usize)> = random.inputs.iter().chain(&random.derived).cloned().collect();
        let own: Vec<(String, usize)> =
            (0..1 + rng.below(3)).map(|i| (format!("r{stratum}{i}"), 1 + rng.below(2))).collect();
        let mut rules = vec![];
        for head in &own {
            for _ in 0..1 + rng.below(3) {
                rules.push(rule(rng, head, &own, &below));
            }
        }
        random.derived.extend(own);
        random.strata.push(rules);
    }
    random
}

fn rule(rng: &mut Rng, head: &(String, usize), own: &[(String, usize)], below: &[(String, usize)]) -> Rule {
    let mut body = vec![];
    let mut bound: Vec<String> = vec![];
    for _ in 0..1 + rng.below(3) {
        let relations = if rng.below(2) == 0 { own } else { below };
        let (name, arity) = pick(rng, relations);
        let args = args(rng, *arity, &mut bound, true);
        body.push(Lit::Pos(name.clone(), args));
    }
    if bound.is_empty() {
        let args = vec![Arg::Var("v0".into())];
        bound.push("v0".into());
        body.push(Lit::Pos("e1".into(), args));
    }
    let known: Vec<String> = bound.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    if rng.below(3) == 0 {
        let (name, arity) = pick(rng, below);
        let mut known = known.clone();
        body.push(Lit::Neg(name.clone(), args(rng, *arity, &mut known, false)));
    }
    if rng.below(3) == 0 {
        let operator = ["=", "!=", "<", ">="][rng.below(4)];
        let left = Arg::Var(pick(rng, &known).clone());
        body.push(Lit::Cmp(left, operator, constant_or(rng, &known)));
    }
    let mut outputs = known.clone();
    if rng.below(4) == 0 {
        let kind = ["count", "sum", "min", "max"][rng.below(4)];
        let (name, arity) = pick(rng, below);
        let mut inner: Vec<Arg> = vec![Arg::Var("t".into())];
        if *arity == 2 {
            inner.push(match rng.below(3) {
                0 => Arg::Any,
                1 => Arg::Const(rng.below(VALUES) as i64),
                _ => Arg::Var(pick(rng, &known).clone()),
            });
        }
        body.push(Lit::Agg("g".into(), kind, "t".into(), name.clone(), inner));
        if rng.chance(25) {
            body.push(Lit::Cmp(Arg::Var("g".into()), "=", Arg::Var(pick(rng, &known).clone())));
        }
        // Results are compared only, so that values stay few.
        body.push(Lit::Cmp(Arg::Var("g".into()), "<", Arg::Const(rng.below(12) as i64)));
        if rng.below(2) == 0 {
            body.push(Lit::Cmp(Arg::Var("g".into()), ">=", Arg::Const(0)));
            body.push(Lit::Cmp(Arg::Var("g".into()), "<", Arg::Const(VALUES as i64)));
            outputs.push("g".into());
        }
    }
    if rng.below(4) == 0 {
        body.push(Lit::Plus("p".into(), pick(rng, &known).clone(), 1));
        body.push(Lit::Cmp(Arg::Var("p".into()), "<", Arg::Const(VALUES as i64 + 2)));
        outputs.push("p".into());
    }
    let head_args = (0..head.1).map(|_| constant_or(rng, &outputs)).collect();
    Rule { head: (head.0.clone(), head_args), body }
}

fn args(rng: &mut Rng, arity: usize, bound: &mut Vec<String>, binds: bool) -> Vec<Arg> {
    let arg = |_| match rng.below(8) {
        0 => Arg::Const(rng.below(VALUES) as i64),
        1 => Arg::Any,
        _ if binds => {
            let name = format!("v{}", rng.below(4));
            bound.push(name.clone());
            Arg::Var(name)
        }
        _ => Arg::Var(pick(rng, bound).clone()),
    };
    (0..arity).map(arg).collect()
}

fn constant_or(rng: &mut Rng, names: &[String]) -> Arg {
    match rng.below(5) {
        0 => Arg::Const(rng.below(VALUES) as i64),
        _ => Arg::Var(pick(rng, names).clone()),
    }
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len())]
}

pub fn numbers(rows: Vec<Vec<Value>>) -> BTreeSet<Vec<i64>> {
    let number = |value: Value| match value {
        Value::Number(number) => number,
        other => panic!("{other:?} is no number"),
    };
    rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect()
}

/// One random change of the facts.
pub fn change(rng: &mut Rng, random: &Random, installed: &Installed, host: &mut impl Host, facts: &mut Facts) {
    let (name, arity) = pick(rng, &random.inputs).clone();
    let rows = facts.entry(name.clone()).or_default();
    if rng.below(3) == 0 && !rows.is_empty() {
        let row = rows.iter().nth(rng.below(rows.len())).unwrap().clone();
        rows.remove(&row);
        let fact = row.into_iter().map(Value::from).collect();
        installed.delete(host, &name, &[fact]).unwrap();
        return;
    }
    let new: Vec<Vec<i64>> =
        (0..1 + rng.below(4)).map(|_| (0..arity).map(|_| rng.below(VALUES) as i64).collect()).collect();
    rows.extend(new.iter().cloned());
    let new: Vec<Vec<Value>> = new.into_iter().map(|row| row.into_iter().map(Value::from).collect()).collect();
    installed.insert(host, &name, &new).unwrap();
}

fn check(seed: u64, n_changes: usize, host: &mut impl Host) {
    let mut rng = Rng::new(seed);
    let random = program(&mut rng);
    let text = random.text();
    let installed = Program::parse(&text).and_then(|program| program.install(host));
    let installed = installed.unwrap_or_else(|error| panic!("SEED={seed}\n{text}\n{}", error.render(&text)));
    let mut facts = Facts::new();
    for step in 0..n_changes {
        change(&mut rng, &random, &installed, host, &mut facts);
        let expected = random.evaluate(&facts);
        for (name, _) in &random.derived {
            let rows =
                numbers(installed.rows(host, name).unwrap_or_else(|error| panic!("SEED={seed}\n{text}\n{error:?}")));
            let wanted = expected.get(name).cloned().unwrap_or_default();
            assert_eq!(rows, wanted, "SEED={seed}, after change {step}, relation {name} of\n{text}\nover {facts:?}");
        }
    }
}

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..count).collect(),
    }
}

#[test]
fn random_programs_agree_with_nested_loops_in_the_model() {
    seeds(120).into_iter().for_each(|seed| check(seed, 3, &mut ModelHost::new()));
}

#[test]
fn random_programs_agree_with_nested_loops_in_the_engine() {
    seeds(150).into_iter().for_each(|seed| check(seed, 8, &mut session()));
}
