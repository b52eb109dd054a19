use super::*;
use arrow::array::{Int64Array, StringViewArray};
use std::sync::Arc;

type Key = (Option<i64>, Option<String>);

fn columns(keys: &[Key]) -> Vec<ArrayRef> {
    let numbers: Int64Array = keys.iter().map(|key| key.0).collect();
    let texts: StringViewArray = keys.iter().map(|key| key.1.as_deref()).collect();
    vec![Arc::new(numbers), Arc::new(texts)]
}

fn random_key(state: &mut u64) -> Key {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let number = *state >> 33;
    let text = (!number.is_multiple_of(5)).then(|| format!("{:>width$}", number % 11, width = (number % 20) as usize));
    ((!number.is_multiple_of(7)).then_some((number % 40) as i64), text)
}

/// Checks `touch` and `release` against a dictionary; hashes keep only the bits of `mask`.
fn check_with_mask(mask: u64) {
    let mut table = GroupTable::new(&[DataType::Int64, DataType::Utf8View]);
    let mut model: HashMap<Key, u32> = HashMap::new();
    let mut state = mask;
    for round in 0..60 {
        let keys: Vec<Key> = (0..50).map(|_| random_key(&mut state)).collect();
        let columns = columns(&keys);
        let hashes: Vec<u64> = hash::hash_columns(&columns, keys.len()).iter().map(|hash| hash & mask).collect();
        let touched = table.touch(&columns, &hashes);
        assert!(
            touched
                .slot
                .iter()
                .zip(&touched.first_row)
                .all(|(_, &row)| touched.first_row[touched.of_row[row as usize] as usize] == row)
        );
        for (row, key) in keys.iter().enumerate() {
            let slot = touched.slot[touched.of_row[row] as usize];
            assert_eq!(*model.entry(key.clone()).or_insert(slot), slot, "round {round}: {key:?}");
        }
        let distinct: std::collections::HashSet<u32> = model.values().copied().collect();
        assert_eq!((distinct.len(), table.len()), (model.len(), model.len()));
        assert!(distinct.iter().all(|&slot| (slot as usize) < table.n_slots()));
        for (index, &row) in touched.first_row.iter().enumerate().filter(|(index, _)| index % 2 == round % 2) {
            table.release(touched.slot[index], hashes[row as usize]);
            model.remove(&keys[row as usize]);
        }
        if round % 17 == 16 {
            table.clear();
            model.clear();
            assert!(table.is_empty());
        }
    }
    let slots_max = table.n_slots();
    assert!(slots_max < 600, "slots are reused: {slots_max}");
}

/// A table that is cleared gives slots from the first on, whatever form it had.
#[test]
fn a_cleared_table_is_a_new_one() {
    for (step, groups) in [(1i64, 1_000), (1, 50_000), (1 << 40, 1_000), (1 << 40, 50_000)] {
        let mut table = GroupTable::new(&[DataType::Int64]);
        for round in 0..3 {
            let keys: Int64Array = (0..groups).map(|n| (n % 100 != 7).then_some((n + round) * step)).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(keys)];
            let hashes = hash::hash_columns(&columns, groups as usize);
            let touched = table.touch(&columns, &hashes);
            let nulls = groups as usize / 100;
            assert_eq!((touched.slot.len(), table.len()), (groups as usize - nulls + 1, groups as usize - nulls + 1));
            assert_eq!(table.n_slots(), touched.slot.len(), "slots are those of a new table");
            let again = table.touch(&columns, &hashes);
            let slots =
                |touched: &Touched| touched.of_row.iter().map(|at| touched.slot[*at as usize]).collect::<Vec<_>>();
            assert_eq!(slots(&again), slots(&touched));
            table.clear();
            assert!(table.is_empty() && table.n_slots() == 0);
        }
    }
}

#[test]
fn equal_keys_share_a_slot() {
    check_with_mask(!0);
}

#[test]
fn colliding_keys_have_slots_of_their_own() {
    check_with_mask(0);
    check_with_mask(0x1000_0000_0000_0001);
}

#[test]
fn the_null_of_an_exact_key_collides_with_no_number() {
    let mut table = GroupTable::new(&[DataType::Int64]);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![None, Some(1), None, Some(1)]))];
    // As if NULL hashed as 1 does.
    let hash = hash::hash_columns(&columns, 4)[1];
    let touched = table.touch(&columns, &[hash; 4]);
    assert_eq!((touched.of_row.as_slice(), touched.first_row.as_slice()), ([0, 1, 0, 1].as_slice(), [0, 1].as_slice()));
    table.release(touched.slot[0], hash);
    assert_eq!(table.touch(&columns[..1], &[hash; 4]).slot, touched.slot);
    assert_eq!(table.len(), 2);
}

#[test]
fn shrinking_keeps_the_groups_that_are_left() {
    let mut table = GroupTable::new(&[DataType::Int64, DataType::Utf8View]);
    let keys: Vec<Key> = (0..20_000).map(|number| (Some(number), Some(format!("number {number}")))).collect();
    let columns = columns(&keys);
    let hashes = hash::hash_columns(&columns, keys.len());
    let touched = table.touch(&columns, &hashes);
    assert_eq!(table.shrink(), None);
    let full = table.size_bytes();
    for row in (0..20_000).filter(|row| row % 100 != 7) {
        table.release(touched.slot[row], hashes[row]);
    }
    let old_of_new = table.shrink().expect("most slots are free");
    assert!(table.size_bytes() < full / 20, "{} of {full} bytes", table.size_bytes());
    assert_eq!((table.len(), table.n_slots(), old_of_new.len()), (200, 200, 200));
    let kept: Vec<usize> = (0..20_000).filter(|row| row % 100 == 7).collect();
    let again = table.touch(&columns, &hashes);
    for &row in &kept {
        let slot = again.slot[again.of_row[row] as usize] as usize;
        assert_eq!(old_of_new[slot], touched.slot[touched.of_row[row] as usize]);
    }
    assert_eq!(table.len(), 20_000);
}

/// Integers come and go, close together and far apart, up and down, with NULL among them: with a
/// directory and without one slots are those of a dictionary; also of one of several workers, to
/// which some come that are not its own.
#[test]
fn integers_share_a_slot_with_a_directory_and_without() {
    for shard in [ShardNumber::SINGLE, ShardNumber::new(1, 2), ShardNumber::new(2, 3)] {
        check_integers(shard);
    }
}

fn integers(values: &[Option<i64>]) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from(values.to_vec()))]
}

fn check_integers(shard: ShardNumber) {
    let mut table = GroupTable::new(&[DataType::Int64]).on_shard(shard);
    let mut model: HashMap<Option<i64>, u32> = HashMap::new();
    let mut state = 7u64;
    let mut draw = |below: i64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) as i64) % below
    };
    let (mut n_near, mut n_far, mut n_shrunk) = (0, 0, 0);
    for round in 0..120i64 {
        let mut number = |row: i64| match round / 20 {
            0 => 1000 * round + row,
            1 => 3 * draw(10_000),
            2 => 20_000 - 700 * (round - 40) - row,
            3 if row % 500 == 0 => draw(i64::MAX) - i64::MAX / 2,
            4 => i64::MAX - draw(6_000),
            _ => draw(50_000),
        };
        let comes = |key: &i64| round / 20 == 3 || shard.has(hash::hash_columns(&integers(&[Some(*key)]), 1)[0]);
        let keys = (0..3000).map(|row| (row % 333 != 5).then(|| number(row)));
        let keys: Vec<Option<i64>> = keys.filter(|key| key.as_ref().is_none_or(comes)).take(1000).collect();
        let keys = if round % 3 == 0 { keys.into_iter().filter(Option::is_some).collect() } else { keys };
        let columns = integers(&keys);
        let hashes = hash::hash_columns(&columns, keys.len());
        let touched = table.touch(&columns, &hashes);
        for (row, key) in keys.iter().enumerate() {
            let slot = touched.slot[touched.of_row[row] as usize];
            assert_eq!(*model.entry(*key).or_insert(slot), slot, "round {round}: {key:?}");
            assert_eq!(keys[touched.first_row[touched.of_row[row] as usize] as usize], *key);
        }
        let distinct: std::collections::HashSet<u32> = model.values().copied().collect();
        assert_eq!((distinct.len(), table.len()), (model.len(), model.len()));
        let (slots, columns) = table.groups();
        let told = columns[0].as_any().downcast_ref::<Int64Array>().expect("they are integers");
        assert_eq!(told.iter().zip(slots).collect::<HashMap<_, _>>(), model);
        if table.directory.is_some() {
            n_near += 1
        } else {
            n_far += 1
        }

        // Most go after some rounds, a few after each.
        let goes = |index: usize| index.is_multiple_of(if round % 20 == 19 { 50 } else { 100 }) != (round % 20 == 19);
        let gone: Vec<(Option<i64>, u32)> = model.iter().map(|(key, slot)| (*key, *slot)).collect();
        for (_, (key, slot)) in gone.into_iter().enumerate().filter(|(index, _)| goes(*index)) {
            table.release(slot, hash::hash_columns(&integers(&[key]), 1)[0]);
            model.remove(&key);
        }
        if let Some(old_of_new) = table.shrink() {
            n_shrunk += 1;
            let new_of_old: HashMap<u32, u32> = (0..).zip(old_of_new).map(|(new, old)| (old, new)).collect();
            model.values_mut().for_each(|slot| *slot = new_of_old[slot]);
        }
    }
    assert!(n_near > 20 && n_far > 20 && n_shrunk > 2, "{n_near} with a directory, {n_far} without, {n_shrunk} shrunk");
}
