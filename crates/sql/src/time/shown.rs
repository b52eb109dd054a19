//! Columns of times as texts: `to_char` and `date_format`.
//!
//! Law: a text is that of the unit which its template tells: `YYYY-MM-DD` writes the same for all
//! moments of a day. Cost: a moment in the same unit as the one before takes its text again; any
//! other is written. Rows come in the order of time more often than not.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, StringViewBuilder, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, Time64MicrosecondType, TimeUnit};
use datafusion_common::{Result as DfResult, exec_datafusion_err};

use super::calendar::{MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR};
use super::columns::{INTERVAL, of_arrow, texts_of, to_arrow};
use super::interval::Interval;
use super::moments::{End, micros_column};
use super::percent::{percent_letters, write_percent};
use super::template::{Field, TemplateNode, Templates};
use super::to_char::{ShownZone, write_interval, write_moment};

/// `to_char` of moments, times of day and intervals.
pub(super) fn to_char(values: &ArrayRef, templates: &ArrayRef) -> DfResult<ArrayRef> {
    match values.data_type() {
        DataType::Time64(_) => {
            let times = cast(values, &DataType::Time64(TimeUnit::Microsecond))?;
            let times = times.as_primitive::<Time64MicrosecondType>();
            let interval = |micros| to_arrow(Interval { micros, ..Interval::default() });
            intervals_to_char(&times.iter().map(|time| interval(time?)).collect(), templates)
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            intervals_to_char(cast(values, &INTERVAL)?.as_primitive::<IntervalMonthDayNanoType>(), templates)
        }
        _ => moments_to_char(values, templates),
    }
}

fn moments_to_char(values: &ArrayRef, templates: &ArrayRef) -> DfResult<ArrayRef> {
    let zone = match values.data_type() {
        DataType::Timestamp(_, None) => ShownZone::None,
        _ => ShownZone::Utc,
    };
    let mut known = Templates::default();
    written(&micros_column(values)?, templates, |micros, template, out| {
        let nodes = known.nodes(template)?;
        write_moment(micros, zone, nodes, out);
        Ok(told_unit(nodes))
    })
}

/// `date_format`.
pub(super) fn date_format(values: &ArrayRef, patterns: &ArrayRef) -> DfResult<ArrayRef> {
    written(&micros_column(values)?, patterns, |micros, pattern, out| {
        write_percent(micros, pattern, out)?;
        Ok(percent_unit(pattern))
    })
}

/// The texts of moments: NULL by an empty template and of what is infinite, as in PostgreSQL (and,
/// of the former, MySQL). `write` tells the unit, in microseconds, whose moments have the same
/// text.
fn written(
    moments: &TimestampMicrosecondArray,
    templates: &ArrayRef,
    mut write: impl FnMut(i64, &str, &mut String) -> Result<i64, String>,
) -> DfResult<ArrayRef> {
    let templates = texts_of(templates)?;
    let mut out = StringViewBuilder::with_capacity(templates.len());
    let (mut text, mut last_template) = (String::new(), None);
    // (The moments that the text is right for, while the template is the last one.)
    let mut same = 0..0;
    let finite = |micros: &i64| End::of_micros(*micros).is_none();
    for (moment, template) in moments.iter().zip(&templates) {
        let (Some(micros), Some(template)) = (moment.filter(finite), template.filter(|template| !template.is_empty()))
        else {
            out.append_null();
            continue;
        };
        if !same.contains(&micros) || last_template != Some(template) {
            text.clear();
            let unit = write(micros, template, &mut text).map_err(|problem| exec_datafusion_err!("{problem}"))?;
            let start = micros.saturating_sub(micros.rem_euclid(unit));
            (same, last_template) = (start..start.saturating_add(unit), Some(template));
        }
        out.append_value(&text);
    }
    Ok(Arc::new(out.finish()))
}

fn intervals_to_char(spans: &IntervalMonthDayNanoArray, templates: &ArrayRef) -> DfResult<ArrayRef> {
    let templates = texts_of(templates)?;
    let mut known = Templates::default();
    let mut out = StringViewBuilder::with_capacity(spans.len());
    let mut text = String::new();
    for (span, template) in spans.iter().zip(&templates) {
        let (Some(span), Some(template)) = (span, template.filter(|template| !template.is_empty())) else {
            out.append_null();
            continue;
        };
        text.clear();
        let nodes = known.nodes(template).map_err(|problem| exec_datafusion_err!("{problem}"))?;
        let written = write_interval(of_arrow(span), nodes, &mut text);
        written.map_err(|problem| exec_datafusion_err!("{problem}"))?;
        out.append_value(&text);
    }
    Ok(Arc::new(out.finish()))
}

/// The longest unit, of those that the calendar's days divide into, whose moments a template writes
/// alike.
fn told_unit(nodes: &[TemplateNode]) -> i64 {
    let units = nodes.iter().map(|node| match node {
        TemplateNode::Field(place) => match place.field {
            Field::Fraction(_) | Field::Millisecond | Field::Microsecond => 1,
            Field::Second | Field::SecondOfDay => MICROS_A_SECOND,
            Field::Minute => MICROS_A_MINUTE,
            Field::HalfDay { .. } | Field::Hour24 | Field::Hour12 => MICROS_AN_HOUR,
            _ => MICROS_A_DAY,
        },
        _ => MICROS_A_DAY,
    });
    units.min().unwrap_or(MICROS_A_DAY)
}

fn percent_unit(pattern: &str) -> i64 {
    let units = percent_letters(pattern).map(|letter| match letter {
        'f' => 1,
        's' | 'S' | 'T' | 'r' => MICROS_A_SECOND,
        'i' => MICROS_A_MINUTE,
        'H' | 'k' | 'h' | 'I' | 'l' | 'p' => MICROS_AN_HOUR,
        _ => MICROS_A_DAY,
    });
    units.min().unwrap_or(MICROS_A_DAY)
}

#[cfg(test)]
mod tests {
    use super::super::template::parse;
    use super::*;

    /// Each template, over moments a little before and behind the borders of units.
    #[test]
    fn a_text_is_that_of_its_moment_whatever_was_before() {
        let borders =
            [0, MICROS_A_DAY, MICROS_AN_HOUR, MICROS_A_MINUTE, MICROS_A_SECOND, -MICROS_A_DAY, 86_399_000_000];
        let moments: Vec<i64> =
            borders.iter().flat_map(|border| [border - 1, *border, border + 1, border + 1_000, *border]).collect();
        let names = "A.D. AM CC DAY DDD DD DY D FF1 FF6 HH24 HH12 IDDD ID IW IYYY J MI MM MONTH MON MS OF Q RM \
                     SSSSS SS TZ US WW W Y,YYY YYYY YY";
        for template in names.split_whitespace().chain(["YYYY-MM-DD", "HH24:MI", "FMDDth"]) {
            let nodes = parse(template).expect("it is a template");
            let mut known = Templates::default();
            let templates: ArrayRef = Arc::new(arrow::array::StringViewArray::from(vec![template; moments.len()]));
            let texts = written(&moments.clone().into(), &templates, |micros, template, out| {
                write_moment(micros, ShownZone::None, known.nodes(template)?, out);
                Ok(told_unit(&nodes))
            });
            let texts = texts.expect("it is written");
            for (micros, text) in moments.iter().zip(texts.as_string_view()) {
                let mut alone = String::new();
                write_moment(*micros, ShownZone::None, &nodes, &mut alone);
                assert_eq!(text, Some(alone.as_str()), "{template} of {micros}");
            }
        }
    }

    #[test]
    fn each_letter_of_a_pattern_tells_its_unit() {
        let moments = [-1, 0, 1, MICROS_A_SECOND, MICROS_A_MINUTE, MICROS_AN_HOUR, 12 * MICROS_AN_HOUR, MICROS_A_DAY];
        for letter in "YymcMbdeDjWawUuVvXxHkhIlisSfpTr%".chars() {
            let pattern = format!("%{letter}");
            let patterns: ArrayRef = Arc::new(arrow::array::StringViewArray::from(vec![pattern.as_str(); 8]));
            let values: ArrayRef = Arc::new(arrow::array::TimestampMicrosecondArray::from(moments.to_vec()));
            let texts = date_format(&values, &patterns).expect("it is written");
            for (micros, text) in moments.iter().zip(texts.as_string_view()) {
                let mut alone = String::new();
                write_percent(*micros, &pattern, &mut alone).expect("it is written");
                assert_eq!(text, Some(alone.as_str()), "{pattern} of {micros}");
            }
        }
    }
}
