use anabranch_spec::pattern::{Overlap, Pattern, Simultaneous, Takes};
use std::sync::Arc;

use anabranch_batch::Columns;
use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;
use crate::expression::Expression;
use crate::temporal::Hold;
use crate::temporal::testing::*;
use anabranch_flow::tactic::{Output, Timed};

/// A function of the event's value and the register.
struct Function<F>(F);

impl<F: Fn(i64, i64) -> i64 + Send + Sync> Expression for Function<F> {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let values = |column: usize| columns[column].as_primitive::<Int64Type>().values();
        let result = (0..rows).map(|row| (self.0)(values(0)[row], values(1)[row]));
        Ok(Arc::new(Int64Array::from_iter_values(result)))
    }
}

struct Condition<F>(F);

impl<F: Fn(i64, i64) -> bool + Send + Sync> Expression for Condition<F> {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let values = columns[0].as_primitive::<Int64Type>().values();
        let register = columns.get(1).map(|column| column.as_primitive::<Int64Type>().values());
        let met = (0..rows).map(|row| {
            let register = register.map_or(0, |register| register[row]);
            if values[row] == FAILS { Err("failed".to_owned()) } else { Ok(Some((self.0)(values[row], register))) }
        });
        Ok(Arc::new(met.collect::<Result<BooleanArray, _>>()?))
    }
}

const FAILS: i64 = 777_777;

/// Values are a letter and a number: `letter * 100 + number`.
const A: i64 = 100;
const B: i64 = 200;
const C: i64 = 300;

fn is(letter: i64) -> Element {
    let condition: ExpressionRef = Arc::new(Condition(move |value, _| value / 100 * 100 == letter));
    Element { takes: Takes::Event, condition: Some(condition), reads_register: false, register: None }
}

fn with(element: Element, register: impl Fn(i64, i64) -> i64 + Send + Sync + 'static) -> Element {
    Element { register: Some(vec![Arc::new(Function(register))]), ..element }
}

fn spec(pattern: Pattern, elements: Vec<Element>, duration: Time) -> DetectSpec {
    DetectSpec {
        automaton: Automaton::new(&pattern),
        elements,
        group: vec![],
        input_types: types().to_vec(),
        register: vec![Arc::new(Int64Array::from(vec![0]))],
        duration,
        overlap: Overlap::Allowed,
        simultaneous: Simultaneous::Instant,
        instances_max: 1000,
    }
}

fn element(index: usize) -> Pattern {
    Pattern::Element(index)
}

fn sequence(parts: &[Pattern]) -> Pattern {
    Pattern::Sequence(parts.to_vec())
}

fn check_detect(spec: DetectSpec, input: &[Event], expected: &[Event]) {
    if spec.simultaneous == Simultaneous::Arrival {
        for stops in [&[END][..], &[2, 3, 4, 8, END]] {
            let result = intervals(&run(Detect::new(spec.clone()), Hold::Same, &[input], stops, false));
            assert_eq!(result, expected);
        }
    } else {
        check(|| Detect::new(spec.clone()), input, expected);
    }
}

#[test]
fn registers_are_carried_along() {
    let pattern = sequence(&[element(0), element(1).star(), element(2)]);
    let elements = vec![is(A), with(is(B), |value, register| register + value % 100), is(C)];
    let input: Vec<Event> =
        [(10, A), (11, C), (12, A), (13, B + 6), (14, B + 8), (15, C), (16, B)].map(|(time, v)| (time, END, v)).into();
    check_detect(spec(pattern, elements, 1000), &input, &[(11, 1010, 0), (15, 1012, 14)]);
}

/// A^n B^n
fn counting(overlap: Overlap) -> DetectSpec {
    let pattern = sequence(&[element(0).star(), element(1).star(), element(2)]);
    let counted = |least: bool| {
        let condition: ExpressionRef =
            Arc::new(Condition(move |value, register| value == B && if least { register > 1 } else { register == 1 }));
        Element { takes: Takes::Event, condition: Some(condition), reads_register: true, register: None }
    };
    let elements =
        vec![with(is(A), |_, register| register + 1), with(counted(true), |_, register| register - 1), counted(false)];
    DetectSpec { overlap, ..spec(pattern, elements, 1000) }
}

#[test]
fn conditions_read_the_register() {
    let input: Vec<Event> =
        [(10, A), (11, A), (12, A), (13, B), (14, B), (15, B), (16, B)].map(|(time, v)| (time, END, v)).into();
    check_detect(counting(Overlap::Allowed), &input, &[(13, 1012, 1), (14, 1011, 1), (15, 1010, 1)]);
    check_detect(counting(Overlap::Forbidden), &input, &[(15, 1010, 1)]);
}

/// The letters of a match, as digits of its register.
fn spelled(pattern: Pattern, duration: Time) -> DetectSpec {
    let letters = [A, B, C].map(|letter| with(is(letter), move |_, register| register * 10 + letter / 100));
    spec(pattern, letters.into(), duration)
}

#[test]
fn a_match_may_be_complete_and_go_on() {
    let pattern = sequence(&[element(0), element(1).optional()]);
    let input: Vec<Event> =
        [(0, A), (1, C), (2, B), (3, B), (4, C), (5, A), (6, B), (7, B), (9, A)].map(|(t, v)| (t, END, v)).into();
    let spec = DetectSpec { overlap: Overlap::Forbidden, ..spelled(pattern, 2) };
    check_detect(spec, &input, &[(0, 2, 1), (5, 7, 1), (6, 7, 12), (9, 11, 1)]);
}

#[test]
fn simultaneous_events_are_a_sequence_only_if_promised() {
    let pattern = sequence(&[element(0).plus(), element(1).plus()]);
    let input: Vec<Event> =
        [(0, A), (1, A), (1, B), (3, B), (4, C), (5, A), (5, B), (5, B), (9, A)].map(|(t, v)| (t, END, v)).into();
    check_detect(spelled(pattern.clone(), 5), &input, &[]);
    let spec = DetectSpec { simultaneous: Simultaneous::Arrival, ..spelled(pattern, 5) };
    let expected = [(1, 5, 112), (1, 6, 12), (3, 5, 1122), (3, 6, 122), (5, 10, 12), (5, 10, 122)];
    check_detect(spec, &input, &expected);
}

#[test]
fn instants_are_asked_as_a_whole() {
    let takes = |element: Element, takes| Element { takes, ..element };
    let pattern = sequence(&[element(0), element(1).star(), element(2)]);
    let elements = vec![
        with(takes(is(A), Takes::Some), |value, register| register + value % 100),
        takes(is(B), Takes::None),
        takes(is(B), Takes::All),
    ];
    let spec = DetectSpec { overlap: Overlap::Forbidden, ..spec(pattern, elements, 10) };
    let input = [(0, END, A + 1), (0, END, A + 2), (0, END, C), (1, END, A), (1, END, C), (2, END, B), (2, END, B)];
    check_detect(spec, &input, &[(2, 10, 3)]);
}

#[test]
fn groups_match_on_their_own() {
    // The register is the group's own count of events.
    let any = Element { takes: Takes::Event, condition: None, reads_register: false, register: None };
    let pattern = Pattern::Repeat(Box::new(element(0)), 3, Some(3));
    let spec = DetectSpec { group: vec![0], register: vec![], ..spec(pattern, vec![any], 10) };
    let input: Vec<Event> = (0..9).map(|time| (time, END, time % 2)).collect();
    check_detect(spec, &input, &[(4, 10, 0), (5, 11, 1), (6, 12, 0), (7, 13, 1), (8, 14, 0)]);
}

#[test]
fn instances_die_with_their_duration() {
    let pattern = sequence(&[element(0), element(1).star(), element(2)]);
    let mut detect = Detect::new(spelled(pattern, 5));
    detect.push(0, events(&[(0, END, A), (1, END, B)]));
    detect.advance(3, &mut Output::default());
    let busy = detect.size_bytes();
    detect.advance(6, &mut Output::default());
    detect.push(0, events(&[(6, END, C)]));
    let mut out = Output::default();
    detect.advance(7, &mut out);
    assert!(out.rows.is_empty() && detect.size_bytes() <= busy);
}

#[test]
fn too_many_instances_are_an_error() {
    let pattern = sequence(&[element(0).plus(), element(1)]);
    let mut detect = Detect::new(DetectSpec { instances_max: 5, ..spelled(pattern, END) });
    detect.push(0, events(&(0..7).map(|time| (time, END, A)).collect::<Vec<_>>()));
    let mut out = Output::default();
    detect.advance(END, &mut out);
    assert_eq!(out.errors.len(), 1);
}

#[test]
fn a_condition_that_fails_is_an_error_of_its_event() {
    let mut detect = Detect::new(spelled(element(0), 5));
    detect.push(0, events(&[(0, END, A), (1, END, FAILS), (2, END, A)]));
    let mut out = Output::default();
    detect.advance(END, &mut out);
    let result: Vec<Event> = out.rows.iter().flat_map(rows).collect();
    assert_eq!((result, out.errors.len()), (vec![(0, 5, 1), (2, 7, 1)], 3), "one for each element");
}
