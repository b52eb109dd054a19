//! How verbs on events are shown.

use std::sync::Arc;

use crate::explain::{aggregate_call, expression, list, name, names};
use crate::ir::Plan;
use crate::pattern::{Detect, Element, Overlap, Pattern, Simultaneous, Takes};
use crate::temporal::{FOREVER, LifetimeEnds, Verb, Windows};
use anabranch_spec::asof::Strategy;

/// One temporal node, without its inputs.
pub(crate) fn line(plan: &Plan, verb: &Verb, inputs: &[Arc<Plan>]) -> String {
    let input = |column: &usize| name(&inputs[0].schema, *column);
    match verb {
        Verb::Events { input, .. } => format!("Events {input} [{}]", names(&plan.schema)),
        Verb::Bounds { .. } => "Bounds".to_string(),
        Verb::Shift { ticks } => format!("Shift by {ticks}"),
        Verb::Duration { ticks } => format!("Duration {}", ticks_text(*ticks)),
        Verb::Lifetime { start, duration, ends, back } => {
            let start = start.iter().map(|column| format!(" start {}", input(column)));
            let duration = duration.iter().map(|column| format!(" duration {}", input(column)));
            let ends = match ends {
                LifetimeEnds::Dropped => "",
                LifetimeEnds::Kept => ", end edges kept",
            };
            let back = if *back == 0 { String::new() } else { format!(", back by {back} at most") };
            format!("Lifetime{}{ends}{back}", start.chain(duration).collect::<String>())
        }
        Verb::Hopping(windows) if windows.size == windows.period => format!("Tumbling {}", windows_text(windows)),
        Verb::Hopping(windows) => format!("Hopping {}", windows_text(windows)),
        Verb::Quantize { windows, progress } => {
            let early = if *progress == windows.period { String::new() } else { format!(" progress {progress}") };
            format!("Quantize {}{early}", windows_text(windows))
        }
        Verb::Aggregate { keys, calls } => {
            let by = if keys.is_empty() { String::new() } else { format!(" by {}", list(keys.iter().map(input))) };
            let calls = calls.iter().zip(plan.schema.fields().iter().skip(keys.len())).map(|(call, field)| {
                let text = aggregate_call(&inputs[0].schema, call);
                if text == *field.name() { text } else { format!("{text} as {}", field.name()) }
            });
            format!("Snapshots{by} [{}]", list(calls))
        }
        Verb::PointAtEnd => "PointAtEnd".to_string(),
        Verb::Extend { ticks } => format!("Extend by {ticks}"),
        Verb::ClipDuration { limit } => format!("ClipDuration to {limit}"),
        Verb::Chop { period, offset: 0 } => format!("Chop every {period}"),
        Verb::Chop { period, offset } => format!("Chop every {period} offset {offset}"),
        Verb::Stitch => "Stitch".to_string(),
        Verb::OfChanges => "OfChanges".to_string(),
        Verb::Session { keys, timeout, maximum } => {
            let maximum = maximum.map_or(String::new(), |maximum| format!(" at most {maximum}"));
            format!("Session timeout {timeout}{maximum}{}", by(&inputs[0], keys))
        }
        Verb::Clip { left_key, right_key } => format!("Clip{}", on(inputs, left_key, right_key)),
        Verb::Join { left_key, right_key } => format!("TemporalJoin{}", on(inputs, left_key, right_key)),
        Verb::Asof { left_key, right_key, strategy, exact, tolerance, outer } => {
            let outer = if *outer { " left" } else { "" };
            let strategy = match strategy {
                Strategy::Backward => "backward",
                Strategy::Forward => "forward",
                Strategy::Nearest => "nearest",
            };
            let exact = if *exact { "" } else { " strictly" };
            let within = tolerance.map_or(String::new(), |ticks| format!(" within {ticks}"));
            format!("TemporalAsof{outer} {strategy}{exact}{within}{}", on(inputs, left_key, right_key))
        }
        Verb::WhereNotExists { left_key, right_key, .. } => {
            format!("WhereNotExists{}", on(inputs, left_key, right_key))
        }
        Verb::Detect(detect) => pattern_text(&inputs[0], detect),
        Verb::Custom { operator, keys } => {
            let keys = keys.iter().zip(inputs).map(|(keys, input)| by(input, keys)).collect::<Vec<_>>();
            format!("Operator {}{}", operator.name(), keys.join(" with"))
        }
    }
}

/// ` on a = b and ..`
fn on(inputs: &[Arc<Plan>], left_key: &[usize], right_key: &[usize]) -> String {
    let pairs = left_key
        .iter()
        .zip(right_key)
        .map(|(left, right)| format!("{} = {}", name(&inputs[0].schema, *left), name(&inputs[1].schema, *right)));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!(" on {}", pairs.join(" and ")) }
}

fn ticks_text(ticks: i64) -> String {
    if ticks == FOREVER { "for ever".to_string() } else { ticks.to_string() }
}

fn windows_text(windows: &Windows) -> String {
    let Windows { size, period, offset } = windows;
    let period = if period == size { String::new() } else { format!(" every {period}") };
    let offset = if *offset == 0 { String::new() } else { format!(" offset {offset}") };
    format!("{size}{period}{offset}")
}

fn by(input: &Plan, keys: &[usize]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    format!(" by {}", list(keys.iter().map(|key| name(&input.schema, *key))))
}

fn pattern_text(input: &Plan, detect: &Detect) -> String {
    let overlap = if detect.overlap == Overlap::Forbidden { " without overlap" } else { "" };
    let arrival = if detect.simultaneous == Simultaneous::Arrival { " in order of arrival" } else { "" };
    let registers = detect.registers.iter().map(|register| register.name.clone());
    format!(
        "Detect {} within {}{overlap}{arrival}{} [{}]",
        part_text(&detect.pattern, &detect.elements),
        ticks_text(detect.duration),
        by(input, &detect.group),
        list(registers)
    )
}

fn part_text(pattern: &Pattern, elements: &[Element]) -> String {
    let all = |parts: &[Pattern], between: &str| {
        let parts: Vec<String> = parts.iter().map(|part| part_text(part, elements)).collect();
        format!("({})", parts.join(between))
    };
    match pattern {
        Pattern::Element(element) => {
            let element = &elements[*element];
            let takes = match element.takes {
                Takes::Event => "",
                Takes::Some => "some ",
                Takes::All => "all ",
                Takes::None => "no ",
            };
            let condition = element.condition.as_ref().map_or("any".to_string(), expression);
            format!("{{{takes}{condition}}}")
        }
        Pattern::Sequence(parts) => all(parts, " "),
        Pattern::Alternatives(parts) => all(parts, " | "),
        Pattern::Repeat(part, min, max) => {
            let part = part_text(part, elements);
            match (min, max) {
                (0, None) => format!("{part}*"),
                (1, None) => format!("{part}+"),
                (0, Some(1)) => format!("{part}?"),
                (min, Some(max)) => format!("{part}{{{min},{max}}}"),
                (min, None) => format!("{part}{{{min},}}"),
            }
        }
    }
}
