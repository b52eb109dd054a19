//! How verbs on events are shown.

use std::sync::Arc;

use crate::explain::{aggregate_call, list, name, names};
use crate::ir::Plan;
use crate::temporal::{Ends, FOREVER, Verb, Windows};

/// One temporal node, without its inputs.
pub(crate) fn line(plan: &Plan, verb: &Verb, inputs: &[Arc<Plan>]) -> String {
    let input = |column: &usize| name(&inputs[0].schema, *column);
    match verb {
        Verb::Events { input } => format!("Events {input} [{}]", names(&plan.schema)),
        Verb::Bounds => "Bounds".to_string(),
        Verb::Shift { ticks } => format!("Shift by {ticks}"),
        Verb::Duration { ticks } => format!("Duration {}", ticks_text(*ticks)),
        Verb::Lifetime { start, duration, ends } => {
            let start = start.iter().map(|column| format!(" start {}", input(column)));
            let duration = duration.iter().map(|column| format!(" duration {}", input(column)));
            let ends = match ends {
                Ends::Dropped => "",
                Ends::Kept => ", end edges kept",
            };
            format!("Lifetime{}{ends}", start.chain(duration).collect::<String>())
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
    }
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
