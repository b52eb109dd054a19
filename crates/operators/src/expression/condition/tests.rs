use super::*;
use anabranch_batch::types;
use arrow::array::{Date32Array, Decimal128Array, Int64Array};

const ROWS: usize = 1000;

fn columns() -> Columns {
    let number = |row: usize| (row as i64 * 7919 + 13) % 101;
    let wholes: Int64Array = (0..ROWS).map(|row| (!row.is_multiple_of(11)).then(|| number(row))).collect();
    let days: Date32Array = (0..ROWS).map(|row| Some(number(row + 5) as i32)).collect();
    let later: Date32Array = (0..ROWS).map(|row| (!row.is_multiple_of(7)).then(|| number(row * 3) as i32)).collect();
    let prices: Decimal128Array = (0..ROWS).map(|row| Some(i128::from(number(row + 9)) - 50)).collect();
    let prices = prices.with_precision_and_scale(15, 2).unwrap();
    let text = |row: usize| format!("{}{}", "long text in front of ".repeat(row % 2), number(row) % 10);
    let texts: StringViewArray = (0..ROWS).map(|row| (!row.is_multiple_of(13)).then(|| text(row))).collect();
    vec![Arc::new(wholes) as ArrayRef, Arc::new(days), Arc::new(later), Arc::new(prices), Arc::new(texts)].into()
}

fn range(column: usize, least: i128, greatest: i128, negated: bool) -> Test {
    Test { column, question: Question::Range { least, greatest }, negated }
}

/// What a test says, row by row.
fn says(test: &Test, columns: &Columns, row: usize) -> bool {
    let number = |column: usize| -> Option<i128> {
        let column = &columns[column];
        column.is_valid(row).then(|| match column.data_type() {
            DataType::Int64 => i128::from(column.as_primitive::<Int64Type>().value(row)),
            DataType::Date32 => i128::from(column.as_primitive::<Date32Type>().value(row)),
            DataType::Decimal64(..) => i128::from(column.as_primitive::<Decimal64Type>().value(row)),
            _ => column.as_primitive::<Decimal128Type>().value(row),
        })
    };
    let text = || {
        let texts = columns[test.column].as_string_view();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let answer = match &test.question {
        Question::Range { least, greatest } => number(test.column).map(|value| (*least..=*greatest).contains(&value)),
        Question::Below { other, or_equal } => {
            number(test.column).zip(number(*other)).map(|(left, right)| left < right || (*or_equal && left == right))
        }
        Question::OneOf(wanted) => text().map(|text| wanted.contains(&text)),
        Question::Like(like) => text().map(|text| like.matches(text.as_bytes())),
    };
    answer.is_some_and(|answer| answer != test.negated)
}

/// With decimals of both widths.
fn check(tests: Vec<Test>, columns: &Columns) {
    let narrow = columns.iter().map(types::narrowed).collect::<Result<Columns, _>>().unwrap();
    assert!(matches!(narrow[3].data_type(), DataType::Decimal64(..)));
    check_columns(tests.clone(), columns);
    check_columns(tests, &narrow);
}

fn check_columns(tests: Vec<Test>, columns: &Columns) {
    let expected: Vec<bool> = (0..ROWS).map(|row| tests.iter().all(|test| says(test, columns, row))).collect();
    let mask = Condition::new(tests.clone()).evaluate(columns, ROWS).unwrap();
    let mask = mask.as_boolean();
    assert_eq!(mask.null_count(), 0);
    assert_eq!((0..ROWS).map(|row| mask.value(row)).collect::<Vec<_>>(), expected, "{tests:?}");
}

#[test]
fn tests_say_what_they_say_row_by_row() {
    let columns = columns();
    let below = |or_equal, negated| Test { column: 1, question: Question::Below { other: 2, or_equal }, negated };
    let texts = |texts: &[&str], negated| Test {
        column: 4,
        question: Question::OneOf(texts.iter().map(|text| text.to_string()).collect()),
        negated,
    };
    let like = |pattern, negated| Test { column: 4, question: Question::Like(Like::new(pattern).unwrap()), negated };
    let tests = [
        range(0, 10, 60, false),
        range(0, 10, 10, true),
        range(1, i128::MIN, 50, false),
        range(1, 200, i128::MAX, false),
        range(1, i128::from(i32::MAX) + 1, i128::MAX, true),
        range(3, -20, 20, false),
        range(3, 5, 4, false),
        below(true, false),
        below(false, true),
        texts(&["1", "long text in front of 2", "5"], false),
        texts(&["3"], true),
        like("%front%3", false),
        like("long%", true),
    ];
    for first in &tests {
        check(vec![first.clone()], &columns);
        for second in &tests {
            check(vec![first.clone(), second.clone()], &columns);
        }
    }
    check(tests[..2].iter().chain(&tests[7..10]).cloned().collect(), &columns);
}

#[test]
fn slices_and_any_number_of_rows_will_do() {
    let columns: Columns = columns().iter().map(|column| column.slice(3, 130)).collect();
    for rows in [0, 1, 63, 64, 65, 128, 130] {
        let cut: Columns = columns.iter().map(|column| column.slice(0, rows)).collect();
        let test = range(1, 20, 70, false);
        let mask = Condition::new(vec![test.clone()]).evaluate(&cut, rows).unwrap();
        assert_eq!(mask.len(), rows);
        assert!((0..rows).all(|row| mask.as_boolean().value(row) == says(&test, &cut, row)));
        let verdict = Condition::new(vec![test.clone()]).verdict(&cut, rows);
        let bits = (0..rows.min(64)).fold(0, |bits, row| bits | u64::from(says(&test, &cut, row)) << row);
        assert_eq!(verdict, (rows <= 64).then_some(bits));
    }
}
