//! Tests that kernels agree with each other and with a plain model, for every type.

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::{DataType, i256};
use std::cmp::Ordering;
use std::slice::from_ref;
use std::sync::Arc;

use crate::order::{Comparator, Direction, prefixes};
use crate::testing::{Rng, all_types, cell, random_column};
use crate::{equal, gather, hash, types};

const DIRECTIONS: [Direction; 4] = [
    Direction { descending: false, nulls_first: false },
    Direction { descending: false, nulls_first: true },
    Direction { descending: true, nulls_first: false },
    Direction { descending: true, nulls_first: true },
];

/// All pairs of rows of two columns.
fn all_pairs(left: usize, right: usize) -> (Vec<u32>, Vec<u32>) {
    (0..left * right).map(|pair| ((pair / right) as u32, (pair % right) as u32)).unzip()
}

fn cells(array: &dyn Array) -> Vec<String> {
    (0..array.len()).map(|row| cell(array, row)).collect()
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn rows_are_equal_as_the_model_says_and_then_hash_alike() {
    let mut rng = Rng::from_env(11);
    for data_type in all_types() {
        for _ in 0..8 {
            let (left, right) = (random_column(&mut rng, &data_type, 40), random_column(&mut rng, &data_type, 30));
            let (lefts, rights) = all_pairs(40, 30);
            let equal = equal::rows_equal(from_ref(&left), &lefts, from_ref(&right), &rights);
            let (left_hashes, right_hashes) =
                (hash::hash_columns(from_ref(&left), 40), hash::hash_columns(from_ref(&right), 30));
            let exact = hash::is_exact(from_ref(&left)) && hash::is_exact(from_ref(&right));
            if hash::is_exact(from_ref(&left)) {
                let back = hash::unhash(&data_type, &left_hashes);
                assert_eq!((back.data_type(), cells(&back)), (&data_type, cells(&left)), "exact hashes lead back");
            }
            for ((&i, &j), equal) in lefts.iter().zip(&rights).zip(equal) {
                let cells = (cell(&left, i as usize), cell(&right, j as usize));
                assert_eq!(equal, cells.0 == cells.1, "{data_type}: {cells:?}");
                let same_hash = left_hashes[i as usize] == right_hashes[j as usize];
                assert!(same_hash || !equal, "{data_type}: equal {cells:?} hash apart");
                assert!(!same_hash || equal || !exact, "{data_type}: exact hash of {cells:?}");
            }
        }
    }
}

#[test]
fn several_columns_are_equal_when_each_is() {
    let mut rng = Rng::from_env(12);
    let types = all_types();
    for _ in 0..200 {
        let chosen: Vec<DataType> = (0..1 + rng.below(3)).map(|_| rng.pick(&types).clone()).collect();
        let left: Vec<ArrayRef> = chosen.iter().map(|data_type| random_column(&mut rng, data_type, 25)).collect();
        let right: Vec<ArrayRef> = chosen.iter().map(|data_type| random_column(&mut rng, data_type, 25)).collect();
        let (lefts, rights) = all_pairs(25, 25);
        let equal = equal::rows_equal(&left, &lefts, &right, &rights);
        let hashes = (hash::hash_columns(&left, 25), hash::hash_columns(&right, 25));
        for ((&i, &j), equal) in lefts.iter().zip(&rights).zip(equal) {
            let (i, j) = (i as usize, j as usize);
            assert_eq!(equal, left.iter().zip(&right).all(|(left, right)| cell(left, i) == cell(right, j)));
            assert!(!equal || hashes.0[i] == hashes.1[j]);
        }
    }
}

#[test]
fn order_is_total_and_agrees_with_equality() {
    let mut rng = Rng::from_env(13);
    for data_type in all_types() {
        for direction in DIRECTIONS {
            let column = random_column(&mut rng, &data_type, 50);
            let model = cells(&column);
            let order = Comparator::new(from_ref(&column), from_ref(&column), &[direction]);
            let mut rows: Vec<usize> = (0..50).collect();
            rows.sort_by(|&i, &j| order.compare(i, j));
            for (at, &i) in rows.iter().enumerate() {
                for (place, &j) in rows.iter().enumerate() {
                    let ordering = order.compare(i, j);
                    assert_eq!(ordering, order.compare(j, i).reverse(), "{data_type}");
                    assert_eq!(ordering.is_eq(), model[i] == model[j], "{data_type}: {} {}", model[i], model[j]);
                    assert!(ordering.is_eq() || ordering == at.cmp(&place), "{data_type} is sorted");
                }
            }
            let first_null = rows.iter().position(|&row| model[row] == "NULL");
            let first_value = rows.iter().position(|&row| model[row] != "NULL");
            if let (Some(null), Some(value)) = (first_null, first_value) {
                assert_eq!(null < value, direction.nulls_first, "{data_type}");
            }
        }
    }
}

#[test]
fn prefixes_keep_the_order_across_batches() {
    let mut rng = Rng::from_env(14);
    for data_type in all_types() {
        for direction in DIRECTIONS {
            for _ in 0..4 {
                let (left, right) =
                    ([random_column(&mut rng, &data_type, 30)], [random_column(&mut rng, &data_type, 20)]);
                let order = Comparator::new(&left, &right, &[direction]);
                let (left_prefixes, left_exact) = prefixes(&left, &[direction], 30);
                let (right_prefixes, right_exact) = prefixes(&right, &[direction], 20);
                let (lefts, rights) = all_pairs(30, 20);
                for (i, j) in lefts.into_iter().zip(rights).map(|(i, j)| (i as usize, j as usize)) {
                    let cells = (cell(&left[0], i), cell(&right[0], j));
                    match left_prefixes[i].cmp(&right_prefixes[j]) {
                        Ordering::Equal if left_exact && right_exact => {
                            assert!(order.compare(i, j).is_eq(), "{data_type}: {cells:?}")
                        }
                        Ordering::Equal => {}
                        unequal => assert_eq!(order.compare(i, j), unequal, "{data_type} {direction:?}: {cells:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn usual_columns_have_exact_prefixes() {
    let exact = |column: ArrayRef| prefixes(&[column], &[Direction::DESCENDING], 2).1;
    assert!(exact(ints(&[0, -7])));
    assert!(exact(Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY]))));
    assert!(exact(Arc::new(BooleanArray::from(vec![true, false]))));
    assert!(exact(Arc::new(Date32Array::from(vec![0, i32::MIN]))));
    assert!(exact(Arc::new(Decimal128Array::from(vec![0, 1 << 62]))));
    assert!(!exact(Arc::new(Decimal128Array::from(vec![0, 1 << 63]))));
    assert!(!exact(Arc::new(Int64Array::from(vec![Some(1), None]))));
    assert_eq!(prefixes(&[], &[], 3), (vec![0; 3], true));
}

#[test]
fn later_columns_decide_only_ties() {
    let columns = [ints(&[1, 1, 0]), ints(&[5, 4, 9])];
    let order = Comparator::new(&columns, &columns, &[Direction::ASCENDING, Direction::DESCENDING]);
    assert_eq!(order.compare(0, 1), Ordering::Less);
    assert_eq!(order.compare(0, 2), Ordering::Greater);
}

#[test]
fn one_value_hashes_alike_in_every_physical_form() {
    let same = |array: &ArrayRef, forms: &[DataType]| {
        let expected = hash::hash_columns(from_ref(array), array.len());
        for form in forms {
            let other = cast(array, form).unwrap();
            assert_eq!(hash::hash_columns(from_ref(&other), array.len()), expected, "{form}");
            let rows: Vec<u32> = (0..array.len() as u32).collect();
            assert!(
                equal::rows_equal(from_ref(array), &rows, from_ref(&other), &rows).iter().all(|&equal| equal),
                "{form}"
            );
            Comparator::new(from_ref(array), &[other], &[Direction::ASCENDING]);
        }
    };
    use DataType as D;
    same(&(Arc::new(Int8Array::from(vec![Some(1), None, Some(-5)])) as ArrayRef), &[D::Int16, D::Int32, D::Int64]);
    same(&(Arc::new(UInt8Array::from(vec![1, 250])) as ArrayRef), &[D::Int16, D::Int64, D::UInt16, D::UInt64]);
    same(&(Arc::new(Float32Array::from(vec![1.5, -0.0])) as ArrayRef), &[D::Float64, D::Float16]);
    let decimals = Decimal64Array::from(vec![Some(150), None, Some(-1)]).with_precision_and_scale(5, 2).unwrap();
    same(&(Arc::new(decimals) as ArrayRef), &[D::Decimal64(18, 2), D::Decimal128(5, 2), D::Decimal128(38, 2)]);
    let texts: Vec<String> = (0..70).map(|len| "ö0123456789".chars().cycle().take(len).collect()).collect();
    let text: ArrayRef = Arc::new(StringArray::from(texts));
    same(&text, &[D::LargeUtf8, D::Utf8View]);
    let forms = [D::LargeBinary, D::BinaryView];
    same(&cast(&text, &D::Binary).unwrap(), &forms);
}

#[test]
fn several_columns_hash_alike_whatever_the_width_of_their_decimals() {
    let narrow: ArrayRef = Arc::new(Decimal64Array::from(vec![Some(7), None, Some(i64::MIN)]));
    let wide = types::widened(&narrow);
    let other = ints(&[1, 2, 3]);
    for [left, right] in [[[&narrow, &other], [&wide, &other]], [[&other, &narrow], [&other, &wide]]] {
        let hashes = |columns: [&ArrayRef; 2]| hash::hash_columns(&columns.map(ArrayRef::clone), 3);
        assert_eq!(hashes(left), hashes(right));
    }
}

#[test]
fn hashes_of_this_major_release_stay() {
    let first = |column: ArrayRef| hash::hash_columns(&[column], 1)[0];
    let hashes = [
        first(ints(&[0])),
        first(ints(&[-1])),
        first(Arc::new(Int64Array::from(vec![None]))),
        first(Arc::new(Float64Array::from(vec![1.5]))),
        first(Arc::new(StringViewArray::from(vec![""]))),
        first(Arc::new(StringViewArray::from(vec!["anabranch"]))),
        first(Arc::new(StringViewArray::from(vec!["a channel that leaves a river"]))),
        first(Arc::new(Decimal128Array::from(vec![i128::MAX]))),
        first(Arc::new(Decimal256Array::from(vec![i256::MIN]))),
        hash::hash_columns(&[ints(&[1]), ints(&[2])], 1)[0],
        hash::hash_columns(&[], 1)[0],
    ];
    let expected = [
        0x8000_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x7fff_ffff_ffff_ffff,
        0xbff8_0000_0000_0000,
        0x09c0_3fb0_e492_65d7,
        0xc475_d2b2_0394_edd5,
        0x1f85_3748_acb9_dbcc,
        0xffff_ffff_ffff_ffff,
        0xece6_75d1_fc8f_8cbb,
        0x8000_0001_2efc_97c4,
        0x2545_f491_4f6c_dd1d,
    ];
    assert_eq!(hashes, expected, "routing and stored runs rest on these: {hashes:#x?}");
}

#[test]
fn spread_hashes_fill_high_and_low_bits_whatever_the_integers() {
    for (start, step) in [(0, 1), (-40_000, 1), (0, 1 << 10), (7, 1 << 32), (0, 12_345_678_901)] {
        let column = ints(&(0..80_000).map(|row: i64| start + step * row).collect::<Vec<_>>());
        for columns in [vec![column.clone()], vec![column.clone(), ints(&[5; 80_000])]] {
            let mut high = [0; 8];
            let mut low = [0; 8];
            let mut shards = [0; 7];
            for hash in hash::hash_columns(&columns, 80_000) {
                high[(hash::spread(hash) >> 61) as usize] += 1;
                low[(hash::spread(hash) & 7) as usize] += 1;
                shards[crate::route(hash, 7)] += 1;
            }
            assert!(high.iter().chain(&low).all(|&n| (9_000..11_000).contains(&n)), "{step}: {high:?} {low:?}");
            assert!(shards.iter().all(|&n| (10_500..12_400).contains(&n)), "{step}: {shards:?}");
        }
    }
}

#[test]
fn integers_that_lead_keep_their_order() {
    let values: Vec<i64> = vec![i64::from(i32::MIN), -70_000, -1, 0, 1, 2, 70_000, i64::from(i32::MAX)];
    let rest = ints(&[3, 1, 4, 1, 5, 9, 2, 6]);
    for columns in [vec![ints(&values)], vec![ints(&values), rest]] {
        let hashes = hash::hash_columns(&columns, values.len());
        assert!(hashes.is_sorted_by(|a, b| a < b), "{hashes:x?}");
    }
}

#[test]
fn rows_that_are_equal_in_the_first_column_lie_where_it_leads() {
    let mut rng = Rng::from_env(17);
    for data_type in all_types() {
        let first = random_column(&mut rng, &data_type, 30);
        let rest = ints(&(0..30).collect::<Vec<_>>());
        let leads = hash::leads(&first);
        let hashes = hash::hash_columns(&[first, rest.clone(), rest], 30);
        assert!(hashes.iter().zip(leads).all(|(hash, (from, to))| (from..=to).contains(hash)), "{data_type}");
    }
}

#[test]
fn gathered_cells_are_the_cells_asked_for() {
    let mut rng = Rng::from_env(15);
    for data_type in all_types() {
        let sources: Vec<[ArrayRef; 1]> = (0..3).map(|_| [random_column(&mut rng, &data_type, 20)]).collect();
        let models: Vec<Vec<String>> = sources.iter().map(|source| cells(&source[0])).collect();
        let slices: Vec<&[ArrayRef]> = sources.iter().map(|source| &source[..]).collect();

        for n_rows in [0, 1, 5, 33] {
            let rows: Vec<u32> = (0..n_rows).map(|_| rng.below(20) as u32).collect();
            let taken = gather::take(&sources[0], &rows);
            assert_eq!(taken[0].data_type(), &data_type);
            assert_eq!(cells(&taken[0]), rows.iter().map(|&row| models[0][row as usize].clone()).collect::<Vec<_>>());
        }

        let picks: Vec<(u32, u32)> = (0..50).map(|_| (rng.below(3) as u32, rng.below(20) as u32)).collect();
        let mixed = gather::interleave(&slices, &picks);
        assert_eq!(mixed[0].data_type(), &data_type);
        let expected: Vec<_> =
            picks.iter().map(|&(source, row)| models[source as usize][row as usize].clone()).collect();
        assert_eq!(cells(&mixed[0]), expected, "{data_type}");
        assert_eq!(cells(&gather::compact_views(mixed)[0]), expected, "{data_type}");
        assert_eq!(cells(&gather::concat(&slices)[0]), models.concat(), "{data_type}");
    }
}

#[test]
fn texts_of_many_sources_keep_a_buffer_each() {
    let source = |number: usize| -> ArrayRef {
        let texts = (0..3).map(|row| format!("a string longer than a view, {row} of source {number}"));
        Arc::new(StringViewArray::from_iter_values(texts))
    };
    for n_sources in [1, 2, 16, 17, 18, 50] {
        let sources: Vec<[ArrayRef; 1]> = (0..n_sources).map(|number| [source(number)]).collect();
        let twice: Vec<&[ArrayRef]> = sources.iter().chain(&sources).map(|source| &source[..]).collect();
        let picks: Vec<(u32, u32)> = (0..2 * n_sources as u32).map(|source| (source, source % 3)).collect();
        let mixed = gather::interleave(&twice, &picks);
        let expected: Vec<String> =
            picks.iter().map(|&(at, row)| cells(&twice[at as usize][0])[row as usize].clone()).collect();
        assert_eq!(cells(&mixed[0]), expected);
        assert_eq!(mixed[0].as_string_view().data_buffers().len(), n_sources);
    }
}

#[test]
fn a_buffer_of_texts_is_held_once_and_where_few_rows_are_picked_not_without_need() {
    let text = |number: usize| -> ArrayRef {
        let texts = (0..3).map(|at| (at != number % 4).then(|| format!("text {at} of a source, number {number}")));
        Arc::new(texts.collect::<StringViewArray>())
    };
    let sources: Vec<[ArrayRef; 1]> = (0..40).map(|number| [text(number)]).collect();
    let slices: Vec<[ArrayRef; 1]> = sources.iter().flat_map(|[text]| (0..3).map(|row| [text.slice(row, 1)])).collect();
    let slices: Vec<&[ArrayRef]> = slices.iter().map(|slice| &slice[..]).collect();
    let all = gather::concat(&slices);
    let expected: Vec<String> = sources.iter().flat_map(|[text]| cells(text)).collect();
    assert_eq!(cells(&all[0]), expected);
    let n_buffers = |column: &ArrayRef| column.as_string_view().data_buffers().len();
    assert_eq!(n_buffers(&all[0]), 40);

    let rows = [7u32, 119, 6, 7];
    let few = gather::take(&all, &rows);
    assert_eq!(cells(&few[0]), rows.map(|row| expected[row as usize].clone()));
    assert!(n_buffers(&few[0]) <= 4);
    let picked = gather::interleave(&[&all, &all], &rows.map(|row| (row % 2, row)));
    assert_eq!(cells(&picked[0]), cells(&few[0]));
    assert!(n_buffers(&picked[0]) <= 4);
}

#[test]
fn compact_views_frees_buffers_that_are_hardly_used() {
    let texts = (0..10_000).map(|i| format!("a string longer than a view, number {i}"));
    let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
    let few = gather::take(&[column], &[3, 9_999]);
    assert!(few[0].get_buffer_memory_size() > 100_000);
    let compact = gather::compact_views(few.clone());
    assert!(compact[0].get_buffer_memory_size() < 1_000);
    assert_eq!(cells(&compact[0]), cells(&few[0]));
}
