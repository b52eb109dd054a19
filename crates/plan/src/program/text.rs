//! Programs as text: Python, which [`read`](super::read()) reads back, and Rust.

use std::fmt::Write as _;

use anabranch_batch::numeric;
use arrow::datatypes::{DataType, Field, IntervalUnit, SchemaRef, TimeUnit};

use super::{MoveScope, MoveTargets, ParaOptions, PlannedSplit, PlannedStep, Program, SplitForm, StepAction};

/// Longer queries are laid out over lines.
const LINE_MAX: usize = 80;

/// Comments end by this column.
const COMMENT_MAX: usize = 96;

/// Words that begin a line of a query.
const CLAUSES: [&str; 12] = [
    " FROM ",
    " WHERE ",
    " GROUP BY ",
    " HAVING ",
    " ORDER BY ",
    " LIMIT ",
    " JOIN ",
    " LEFT JOIN ",
    " RIGHT JOIN ",
    " FULL JOIN ",
    " CROSS JOIN ",
    " UNION ALL ",
];

/// The program in Python: sources are relations of the database `db`.
pub fn python(program: &Program, query: &str) -> String {
    let mut text = comment("#", query);
    statements(program, &mut |name, step, tail| {
        let call = match &step.action {
            StepAction::Relation { relation, columns } if columns.is_empty() => {
                format!("db.shards({})", python_string(relation))
            }
            StepAction::Relation { relation, columns } => {
                let columns: Vec<String> = columns.iter().map(|column| python_string(column)).collect();
                format!("db.shards({}, [{}])", python_string(relation), columns.join(", "))
            }
            other => call(program, other, "", &python_string),
        };
        let tail: String = tail.iter().map(|step| python_move(&step.action)).collect();
        // (Text is written to a string, which takes all of it.)
        let _ = writeln!(text, "{name} = {call}{tail}");
    });
    text
}

fn python_move(action: &StepAction) -> String {
    match action {
        StepAction::Rekey { columns, .. } => {
            let columns: Vec<String> = columns.iter().map(|column| python_string(column)).collect();
            format!(".rekey({})", columns.join(", "))
        }
        StepAction::Move { kind, scope, to, .. } => {
            let scope = (*scope != MoveScope::Flat).then(|| format!("scope=\"{}\"", scope.name()));
            let shards = match to {
                MoveTargets::All => None,
                MoveTargets::First(shards) => Some(format!("shards={shards}")),
                MoveTargets::Group { name: None, shards } => Some(format!("shards={shards:?}")),
                MoveTargets::Group { name: Some(name), shards } => {
                    Some(format!("shards={{{}: {shards:?}}}", python_string(name)))
                }
            };
            let options: Vec<String> = scope.into_iter().chain(shards).collect();
            format!(".{}({})", kind.name(), options.join(", "))
        }
        StepAction::Multicast { targets, .. } => format!(".multicast({})", python_string(targets)),
        StepAction::Split { split, .. } => python_split(split),
        _ => String::new(),
    }
}

fn python_split(split: &PlannedSplit) -> String {
    let broadcast = split.broadcast.as_ref().map(|text| format!("broadcast={}", python_string(text)));
    let form = form_options(split.form);
    let arguments = [split.width.to_string(), python_string(&split.route)];
    let arguments: Vec<String> = arguments.into_iter().chain(broadcast).chain(form).collect();
    let placed = split.places.as_ref().map(|places| format!(".placed({places:?})")).unwrap_or_default();
    format!(".split({}){placed}.{}()", arguments.join(", "), split.merge.name())
}

/// Options of a split that say how rows are split; none for those of their own accord.
fn form_options(form: SplitForm) -> Vec<String> {
    let plan = (form.name() != SplitForm::AUTO.name()).then(|| format!("plan=\"{}\"", form.name()));
    let share = form.share().filter(|share| *share != SplitForm::SHARE).map(|share| format!("share={share}"));
    let mut options: Vec<String> = plan.into_iter().chain(share).collect();
    if let SplitForm::Para(para) = form {
        let whole = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value}"));
        options.extend(whole("splitters", para.splitters.map(u64::from)));
        options.extend(whole("window", para.window.map(u64::from)));
        options.extend(whole("seed", (para.seed != ParaOptions::CHOSEN.seed).then_some(para.seed)));
        options.extend(para.rate.map(|rate| format!("rate={rate}")));
        options.extend(para.rate_of_one.map(|rate| format!("rate_of_one={rate}")));
    }
    options
}

/// The program as an example of Rust. `schemas` says what columns of relations are.
pub fn rust(program: &Program, query: &str, schemas: &dyn Fn(&str, &[String]) -> Option<SchemaRef>) -> String {
    let mut text = comment("//!", query);
    let mut body = String::new();
    statements(program, &mut |name, step, tail| {
        let call = match &step.action {
            StepAction::Relation { relation, columns } => {
                let schema = schemas(relation, columns);
                let fields = schema.iter().flat_map(|schema| schema.fields().iter().map(|field| rust_field(field)));
                let fields: String = fields.map(|field| format!("            {field},\n")).collect();
                let schema = format!("Schema::new(vec![\n{fields}        ])");
                format!("Shards::source(\n        {relation:?},\n        {schema},\n        layout,\n    )")
            }
            other => call(program, other, "&", &rust_string),
        };
        let tail: String = tail.iter().map(|step| rust_move(&step.action)).collect();
        let _ = match name {
            "result" => writeln!(body, "    {call}{tail}"),
            name => writeln!(body, "    let {name} = {call}{tail};"),
        };
    });
    let has = |word: &str| body.contains(word);
    let moves = match (has("Move::"), has("ShardGroup::")) {
        (_, true) => "Move, ShardGroup, ",
        (true, false) => "Move, ",
        (false, false) => "",
    };
    let units = [("IntervalUnit::", ", IntervalUnit"), ("TimeUnit::", ", TimeUnit")];
    let units: String = units.into_iter().filter(|(word, _)| has(word)).map(|(_, name)| name).collect();
    let units = units.replacen(", IntervalUnit", ", IntervalUnit, Schema", 1);
    let schema = if units.contains("Schema") { "" } else { ", Schema" };
    let units = match units.strip_suffix(", TimeUnit") {
        Some(rest) => format!("{rest}{schema}, TimeUnit"),
        None => format!("{units}{schema}"),
    };
    let _ = write!(
        text,
        "
use anabranch_engine::Error;
use anabranch_shards::{{Layout, {moves}Shards}};
use arrow::datatypes::{{DataType, Field{units}}};

/// The program; the rows of each relation are pushed into the source of its name.
pub fn program(layout: Layout) -> Shards {{
{body}}}

fn main() -> Result<(), Error> {{
    let program = program(Layout::flat(2));
    program.check()?;
    println!(\"{{}}\", program.explain()?);
    Ok(())
}}
"
    );
    text
}

fn rust_move(action: &StepAction) -> String {
    match action {
        StepAction::Rekey { columns, .. } => {
            let columns: Vec<String> = columns.iter().map(|column| format!("{column:?}")).collect();
            format!(".rekey([{}])", columns.join(", "))
        }
        StepAction::Move { kind, scope, to, .. } => {
            let reach = match (scope, to) {
                (_, MoveTargets::First(shards)) => format!("Move::to_shards({shards})"),
                (_, MoveTargets::Group { name, shards }) => {
                    let name = name.as_deref().unwrap_or(MoveTargets::UNNAMED);
                    format!("Move::to_group(&ShardGroup::new({name:?}, {shards:?}))")
                }
                (MoveScope::Flat, MoveTargets::All) => "Move::FLAT".to_owned(),
                (MoveScope::Local, MoveTargets::All) => "Move::LOCAL".to_owned(),
                (MoveScope::Global, MoveTargets::All) => "Move::GLOBAL".to_owned(),
            };
            format!(".{}({reach})", kind.name())
        }
        // (Programs that are cut have neither; what a person wrote is Python.)
        StepAction::Multicast { .. } | StepAction::Split { .. } => python_move(action),
        _ => String::new(),
    }
}

fn rust_field(field: &Field) -> String {
    if *field.data_type() == numeric::TYPE {
        let text = format!("Field::new({:?}, DataType::Utf8View, true)", field.name());
        return format!("{text}.with_metadata([(\"anabranch.type\".to_owned(), \"numeric\".to_owned())].into())");
    }
    format!("Field::new({:?}, {}, true)", field.name(), rust_type(field.data_type()))
}

fn rust_type(data_type: &DataType) -> String {
    let unit = |unit: &TimeUnit| format!("TimeUnit::{unit:?}");
    match data_type {
        DataType::Timestamp(of, None) => format!("DataType::Timestamp({}, None)", unit(of)),
        DataType::Timestamp(of, Some(zone)) => format!("DataType::Timestamp({}, Some({zone:?}.into()))", unit(of)),
        DataType::Time64(of) => format!("DataType::Time64({})", unit(of)),
        DataType::Interval(IntervalUnit::MonthDayNano) => "DataType::Interval(IntervalUnit::MonthDayNano)".to_owned(),
        DataType::List(element) => format!("DataType::List({}.into())", rust_field(element)),
        other => format!("DataType::{other:?}"),
    }
}

/// What a step that reads others is called with; `by` stands before the second of them.
fn call(program: &Program, action: &StepAction, by: &str, string: &dyn Fn(&str) -> String) -> String {
    let name = |step: usize| &program.steps[step].name;
    match action {
        StepAction::Sql { inputs, text } => {
            let (first, text) = (name(inputs[0]), string(&laid_out(text)));
            match inputs.get(1) {
                None => format!("{first}.sql({text})"),
                Some(second) => format!("{first}.sql_with({by}{}, {text})", name(*second)),
            }
        }
        StepAction::Union { inputs: [first, second] } => format!("{}.union({by}{})", name(*first), name(*second)),
        // (Keys and movements follow as links of a chain.)
        other => other.inputs().first().map_or(String::new(), |input| name(*input).clone()),
    }
}

/// Each statement: its name, its step, and the keys and movements that follow right behind it.
fn statements(program: &Program, write: &mut dyn FnMut(&str, &PlannedStep, &[&PlannedStep])) {
    let readers = |step: usize| program.steps.iter().filter(move |other| other.action.inputs().contains(&step)).count();
    // (Where a chain begins that ends with this step, and its links.)
    let is_start = |action: &StepAction| {
        matches!(action, StepAction::Relation { .. } | StepAction::Sql { .. } | StepAction::Union { .. })
    };
    let is_link = |action: &StepAction| !is_start(action);
    let is_inner = |step: usize| {
        let next = program.steps.get(step + 1).map(|next| &next.action);
        readers(step) == 1 && next.is_some_and(|next| is_link(next) && next.inputs() == [step])
    };
    let mut chain: Vec<&PlannedStep> = Vec::new();
    let last = program.steps.len().saturating_sub(1);
    for (at, step) in program.steps.iter().enumerate() {
        chain.push(step);
        if at != last && is_inner(at) && !is_start(&step.action) {
            continue;
        }
        let name = if at == last { "result" } else { &step.name };
        match is_link(&chain[0].action) {
            true => write(name, chain[0], &chain),
            false => write(name, chain[0], &chain[1..]),
        }
        chain.clear();
    }
}

/// Lines of a comment, broken between words.
fn comment(mark: &str, query: &str) -> String {
    let mut text = String::new();
    for line in query.trim().lines() {
        let mut width = mark.len();
        text.push_str(mark);
        for word in line.trim_end().split(' ') {
            if width + 1 + word.chars().count() > COMMENT_MAX && width > mark.len() {
                text.push('\n');
                text.push_str(mark);
                width = mark.len();
            }
            if !word.is_empty() || width > mark.len() {
                text.push(' ');
                text.push_str(word);
                width += 1 + word.chars().count();
            }
        }
        text.push('\n');
    }
    text
}

/// A query over lines, if it is long and has none.
fn laid_out(text: &str) -> String {
    if text.len() <= LINE_MAX || text.contains('\n') {
        return text.to_owned();
    }
    let (mut out, mut depth, mut quote) = (String::from("\n    "), 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = |clause: &str| text[at..].starts_with(clause);
        // (LEFT JOIN begins a line, and JOIN behind it none.)
        let is_second = ["LEFT", "RIGHT", "FULL", "CROSS"].iter().any(|word| text[..at].ends_with(word));
        match quote.is_none() && depth == 0 && c == ' ' && !is_second && CLAUSES.iter().any(|clause| begins(clause)) {
            true => out.push_str("\n    "),
            false => out.push(c),
        }
    }
    out.push('\n');
    out
}

/// A literal of Python.
fn python_string(text: &str) -> String {
    let raw = if text.contains('\\') { "r" } else { "" };
    let is_plain = !text.contains(['"', '\n']);
    match is_plain && !text.ends_with('\\') {
        true => format!("{raw}\"{text}\""),
        false if !text.contains("\"\"\"") && !text.ends_with(['"', '\\']) => format!("{raw}\"\"\"{text}\"\"\""),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")),
    }
}

/// A literal of Rust.
fn rust_string(text: &str) -> String {
    if !text.contains(['"', '\\', '\n']) {
        return format!("\"{text}\"");
    }
    let hashes = (1..).map(|n| "#".repeat(n)).find(|hashes| !text.contains(&format!("\"{hashes}")));
    let hashes = hashes.unwrap_or_default();
    format!("r{hashes}\"{text}\"{hashes}")
}
