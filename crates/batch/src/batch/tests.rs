use super::*;
use crate::testing::{Rng, meaning, random_batch};
use arrow::array::{Int64Array, StringViewArray};

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn batch(values: &[i64]) -> Batch {
    Batch::new(vec![ints(values)], Times::Constant(1), Diffs::Constant(1))
}

fn bits(values: &[bool]) -> BooleanBuffer {
    BooleanBuffer::from(values)
}

#[test]
fn forms_of_one_batch_mean_the_same() {
    let mut rng = Rng::from_env(21);
    for _ in 0..300 {
        let batch = random_batch(&mut rng);
        let expected = meaning(&batch);
        assert_eq!(meaning(&batch.clone().compact()), expected);
        let flat = batch.clone().flatten();
        assert_eq!(meaning(&flat), expected);
        assert!(matches!(flat.until(), Until::Forever) && flat.present().is_none());

        let cut = rng.below(batch.len() + 1);
        let parts = [batch.slice(0, cut), batch.slice(cut, batch.len() - cut)];
        let whole = Batch::concat(&parts).unwrap();
        assert_eq!(meaning(&whole), expected);
        assert_eq!(whole.key().is_some(), batch.key().is_some(), "parts keyed alike make a keyed whole");

        let mut rows: Vec<u32> = (0..batch.len() as u32).collect();
        rows.reverse();
        assert_eq!(meaning(&batch.take(&rows)), expected);

        let keep: BooleanArray = (0..batch.len()).map(|_| Some(rng.chance(50))).collect();
        let drop = arrow::compute::not(&keep).unwrap();
        let both = Batch::concat(&[batch.filter(&keep), batch.filter(&drop)]).unwrap();
        assert_eq!(meaning(&both), expected);

        let nothing = Batch::concat(&[batch.clone(), batch.clone().negate()]).unwrap();
        assert!(meaning(&nothing).is_empty());
    }
}

#[test]
fn hashes_of_a_key_stay_with_their_rows() {
    let mut rng = Rng::from_env(22);
    for _ in 0..200 {
        let batch = random_batch(&mut rng);
        let Some(columns) = batch.key().map(|key| key.columns.clone()) else { continue };
        let rows: Vec<u32> = (0..batch.len()).filter(|_| rng.chance(60)).map(|row| row as u32).collect();
        for moved in [batch.take(&rows), batch.clone().flatten(), batch.slice(batch.len() / 2, batch.len() / 4)] {
            let fresh = moved.clone().without_key().with_key(&columns);
            assert_eq!(moved.key().unwrap().hashes, fresh.key().unwrap().hashes);
        }
    }
}

#[test]
fn projection_moves_the_key_with_its_columns() {
    let batch = Batch::new(vec![ints(&[1]), ints(&[2]), ints(&[3])], Times::Constant(0), Diffs::Constant(1));
    let keyed = batch.with_key(&[2, 0]);
    assert_eq!(*keyed.project(&[0, 2]).key().unwrap().columns, [1, 0]);
    assert!(keyed.project(&[0, 1]).key().is_none());
    assert!(keyed.clone().with_columns(keyed.columns().clone()).key().is_none());
}

#[test]
fn keying_twice_by_the_same_columns_hashes_once() {
    let keyed = batch(&[1, 2]).with_key(&[0]);
    let again = keyed.clone().with_key(&[0]);
    assert!(keyed.key().unwrap().hashes.ptr_eq(&again.key().unwrap().hashes));
}

#[test]
fn absence_adds_up() {
    let batch = batch(&[1, 2, 3]).with_present(bits(&[true, true, false])).with_present(bits(&[false, true, true]));
    assert_eq!((batch.len(), batch.n_present()), (3, 1));
    let compact = batch.compact();
    assert_eq!((compact.len(), compact.present()), (1, None));
    assert_eq!(compact.column(0).as_ref(), &Int64Array::from(vec![2]) as &dyn Array);
}

#[test]
fn a_lifetime_is_a_start_and_an_end() {
    let until = Until::Column(vec![5, END, 1].into());
    let flat = batch(&[10, 20, 30]).with_until(until).flatten();
    let updates: Vec<(i64, i64)> = (0..flat.len()).map(|row| (flat.times().get(row), flat.diffs().get(row))).collect();
    assert_eq!(updates, [(1, 1), (1, 1), (5, -1)], "the third lifetime is empty");
    assert_eq!(flat.column(0).as_ref(), &Int64Array::from(vec![10, 20, 10]) as &dyn Array);
}

#[test]
fn an_end_before_the_time_is_an_end_edge() {
    let until = Until::Column(vec![END, 1].into());
    let flat = batch(&[10, 10]).with_times(Times::Column(vec![1, 7].into())).with_until(until).flatten();
    let updates: Vec<(i64, i64)> = (0..flat.len()).map(|row| (flat.times().get(row), flat.diffs().get(row))).collect();
    assert_eq!(updates, [(1, 1), (7, -1)], "a start edge at 1, its end edge at 7");
}

#[test]
fn durations_end_before_the_end_of_time() {
    let late = batch(&[1]).with_times(Times::Constant(END - 1)).with_until(Until::Duration(10));
    assert_eq!(late.flatten().len(), 1, "a lifetime beyond END never ends");
}

#[test]
fn constants_stay_constant_through_concat() {
    let whole = Batch::concat(&[batch(&[1]), Batch::default(), batch(&[2, 3])]).unwrap();
    assert!(matches!(whole.times(), Times::Constant(1)) && matches!(whole.diffs(), Diffs::Constant(1)));
    assert_eq!(whole.len(), 3);
    assert!(Batch::concat(&[]).is_none());
    let mixed = Batch::concat(&[batch(&[1]), batch(&[2]).with_times(Times::Constant(9))]).unwrap();
    assert_eq!((mixed.times().get(0), mixed.times().get(1)), (1, 9));
    assert_eq!((mixed.times().min(), mixed.times().max()), (1, 9));
}

#[test]
fn null_in_a_filter_is_false() {
    let kept = batch(&[1, 2, 3]).filter(&BooleanArray::from(vec![Some(true), None, Some(false)]));
    assert_eq!(kept.len(), 1);
}

#[test]
fn rows_need_no_columns() {
    let batch = Batch::with_len(Arc::from([]), 3, Times::Constant(0), Diffs::Constant(1)).with_key(&[]);
    assert_eq!(batch.take(&[0, 0]).len(), 2);
    assert_eq!(batch.key().unwrap().hashes[0], batch.key().unwrap().hashes[2]);
    assert_eq!(Batch::concat(&[batch.clone(), batch]).unwrap().len(), 6);
}

#[test]
fn size_counts_what_is_kept_alive() {
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a string longer than twelve bytes"; 100]));
    let batch = Batch::new(vec![text], Times::Constant(0), Diffs::Constant(1));
    let one = batch.slice(0, 1);
    assert!(one.size_bytes() >= 1600, "a slice keeps the whole alive");
    let keyed = batch.clone().with_key(&[0]);
    assert!(keyed.size_bytes() >= batch.size_bytes() + 800);
}

#[test]
#[should_panic(expected = "2 rows each")]
fn columns_of_different_lengths_are_refused() {
    Batch::new(vec![ints(&[1, 2]), ints(&[1])], Times::Constant(0), Diffs::Constant(1));
}
