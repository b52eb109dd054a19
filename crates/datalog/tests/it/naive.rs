//! A Datalog evaluator from scratch: nested loops until nothing is new, stratum by stratum.

use std::collections::{BTreeMap, BTreeSet};

/// Rows of each relation.
pub type Facts = BTreeMap<String, BTreeSet<Vec<i64>>>;

/// A variable or a constant.
#[derive(Clone, Debug)]
pub enum Arg {
    Var(String),
    Const(i64),
    Any,
}

#[derive(Clone, Debug)]
pub enum Lit {
    Pos(String, Vec<Arg>),
    Neg(String, Vec<Arg>),
    /// Left, operator, right.
    Cmp(Arg, &'static str, Arg),
    /// `variable = left + number`
    Plus(String, String, i64),
    /// `variable = kind target : relation(args)`
    Agg(String, &'static str, String, String, Vec<Arg>),
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub head: (String, Vec<Arg>),
    pub body: Vec<Lit>,
}

/// Relations with their arities, and the rules of each stratum.
#[derive(Clone, Debug, Default)]
pub struct Random {
    pub inputs: Vec<(String, usize)>,
    pub derived: Vec<(String, usize)>,
    pub strata: Vec<Vec<Rule>>,
}

type Env = BTreeMap<String, i64>;

impl Random {
    /// The program in Souffle's syntax.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let columns = |n: usize| (0..n).map(|i| format!("c{i}: number")).collect::<Vec<_>>().join(", ");
        for (name, arity) in &self.inputs {
            out.push_str(&format!(".decl {name}({})\n.input {name}\n", columns(*arity)));
        }
        for (name, arity) in &self.derived {
            out.push_str(&format!(".decl {name}({})\n.output {name}\n", columns(*arity)));
        }
        for rule in self.strata.iter().flatten() {
            let body: Vec<String> = rule.body.iter().map(lit_text).collect();
            out.push_str(&format!("{} :- {}.\n", atom_text(&rule.head.0, &rule.head.1), body.join(", ")));
        }
        out
    }

    /// All rows of all relations.
    pub fn evaluate(&self, inputs: &Facts) -> Facts {
        let mut facts = inputs.clone();
        for stratum in &self.strata {
            loop {
                let mut new = vec![];
                for rule in stratum {
                    for env in matches(&rule.body, &facts) {
                        new.push((rule.head.0.clone(), rule.head.1.iter().map(|arg| value(arg, &env)).collect()));
                    }
                }
                let mut grown = false;
                for (relation, row) in new {
                    grown |= facts.entry(relation).or_default().insert(row);
                }
                if !grown {
                    break;
                }
            }
        }
        facts
    }
}

fn matches(body: &[Lit], facts: &Facts) -> Vec<Env> {
    let mut envs = vec![Env::new()];
    for lit in body {
        envs = envs.into_iter().flat_map(|env| step(lit, env, facts)).collect();
    }
    envs
}

fn step(lit: &Lit, env: Env, facts: &Facts) -> Vec<Env> {
    match lit {
        Lit::Pos(relation, args) => extend(relation, args, &env, facts),
        Lit::Neg(relation, args) => match extend(relation, args, &env, facts).is_empty() {
            true => vec![env],
            false => vec![],
        },
        Lit::Cmp(left, operator, right) => {
            let (left, right) = (value(left, &env), value(right, &env));
            let holds = match *operator {
                "=" => left == right,
                "!=" => left != right,
                "<" => left < right,
                _ => left >= right,
            };
            if holds { vec![env] } else { vec![] }
        }
        Lit::Plus(variable, left, number) => {
            let mut env = env;
            let sum = env[left] + number;
            env.insert(variable.clone(), sum);
            vec![env]
        }
        Lit::Agg(variable, kind, target, relation, args) => {
            // A match is a row of the relation: rows differ in what no variable names, too.
            let values: Vec<i64> = extend(relation, args, &env, facts)
                .iter()
                .map(|inner| inner.get(target).copied().unwrap_or_default())
                .collect();
            let result = match *kind {
                "count" => Some(values.len() as i64),
                "sum" => Some(values.iter().sum()),
                "min" => values.iter().min().copied(),
                _ => values.iter().max().copied(),
            };
            let with = |result| {
                let mut env = env.clone();
                env.insert(variable.clone(), result);
                env
            };
            result.map(with).into_iter().collect()
        }
    }
}

fn extend(relation: &str, args: &[Arg], env: &Env, facts: &Facts) -> Vec<Env> {
    let mut out = vec![];
    for row in facts.get(relation).into_iter().flatten() {
        let mut env = env.clone();
        let fits = row.iter().zip(args).all(|(value, arg)| match arg {
            Arg::Any => true,
            Arg::Const(number) => number == value,
            Arg::Var(name) => *env.entry(name.clone()).or_insert(*value) == *value,
        });
        if fits {
            out.push(env);
        }
    }
    out
}

fn value(arg: &Arg, env: &Env) -> i64 {
    match arg {
        Arg::Var(name) => env[name],
        Arg::Const(number) => *number,
        Arg::Any => unreachable!("a wildcard has no value"),
    }
}

fn arg_text(arg: &Arg) -> String {
    match arg {
        Arg::Var(name) => name.clone(),
        Arg::Const(number) => number.to_string(),
        Arg::Any => "_".to_owned(),
    }
}

fn atom_text(relation: &str, args: &[Arg]) -> String {
    format!("{relation}({})", args.iter().map(arg_text).collect::<Vec<_>>().join(", "))
}

fn lit_text(lit: &Lit) -> String {
    match lit {
        Lit::Pos(relation, args) => atom_text(relation, args),
        Lit::Neg(relation, args) => format!("!{}", atom_text(relation, args)),
        Lit::Cmp(left, operator, right) => format!("{} {operator} {}", arg_text(left), arg_text(right)),
        Lit::Plus(variable, left, number) => format!("{variable} = {left} + {number}"),
        Lit::Agg(variable, "count", _, relation, args) => {
            format!("{variable} = count : {{ {} }}", atom_text(relation, args))
        }
        Lit::Agg(variable, kind, target, relation, args) => {
            format!("{variable} = {kind} {target} : {{ {} }}", atom_text(relation, args))
        }
    }
}
